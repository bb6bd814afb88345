/* Has a process believe in as many cores as $WORKERS says: `WORKERS=8 ./tests/run`. */
#define _GNU_SOURCE
#include <sched.h>
#include <stdlib.h>
#include <string.h>

int sched_getaffinity(pid_t process, size_t size, cpu_set_t *set) {
    const char *workers = getenv("WORKERS");
    int count = workers ? atoi(workers) : 1;
    (void)process;
    memset(set, 0, size);
    for (int core = 0; core < count; core++) CPU_SET_S(core, size, set);
    return 0;
}
