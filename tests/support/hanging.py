"""A file system whose files hold one line each, and which answers nothing while a file called `hang` stands beside it.

It speaks to the kernel itself: /dev/fuse and the right to mount are all that it needs.
"""

import ctypes
import os
import select
import struct
import sys
import time

LOOKUP, FORGET, GETATTR, OPEN, READ, RELEASE, FLUSH, INIT, INTERRUPT, BATCH_FORGET = 1, 2, 3, 14, 15, 18, 25, 26, 36, 42
DIRECT_IO = 1
NOT_IMPLEMENTED = -38
CONTENT = b"192.0.2.1\n"

mounted, hang = sys.argv[1], sys.argv[2]
fuse = os.open("/dev/fuse", os.O_RDWR)
libc = ctypes.CDLL(None, use_errno=True)
options = b"fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other" % fuse
if libc.mount(b"hanging", mounted.encode(), b"fuse", 0, options) != 0:
    sys.exit("cannot mount: " + os.strerror(ctypes.get_errno()))


def attributes(node):
    mode = 0o40755 if node == 1 else 0o100644
    now = 1_700_000_000
    return struct.pack("<6Q10I", node, len(CONTENT), 1, now, now, now, 0, 0, 0, mode, 1, 0, 0, 0, 4096, 0)


def answered(opcode, node):
    if opcode == INIT:
        return 0, struct.pack("<4I2H2I2HI7I", 7, 31, 0, 0, 0, 0, 4096, 1, 0, 0, 0, *([0] * 7))
    if opcode == LOOKUP:
        return 0, struct.pack("<4Q2I", 2, 0, 0, 0, 0, 0) + attributes(2)
    if opcode == GETATTR:
        return 0, struct.pack("<Q2I", 0, 0, 0) + attributes(node)
    if opcode == OPEN:
        return 0, struct.pack("<Q2I", 0, DIRECT_IO, 0)
    if opcode == READ:
        return 0, CONTENT
    if opcode in (FLUSH, RELEASE):
        return 0, b""
    return NOT_IMPLEMENTED, b""


def answer(request):
    _, opcode, unique, node = struct.unpack("<IIQQ", request[:24])
    if opcode in (FORGET, INTERRUPT, BATCH_FORGET):
        return
    error, body = answered(opcode, node)
    if opcode == READ and struct.unpack("<Q", request[48:56])[0] > 0:
        body = b""
    try:
        os.write(fuse, struct.pack("<IiQ", 16 + len(body), error, unique) + body)
    except OSError:
        pass  # Nobody waits for it any more.


print("mounted", flush=True)
is_told = False
while True:
    if not select.select([fuse], [], [], 0.02)[0]:
        continue
    if os.path.exists(hang):
        # What is never fetched can be killed: whoever waits for what was fetched cannot, whatever happens to it.
        if not is_told:
            print("held", flush=True)
        is_told = True
        time.sleep(0.02)
        continue
    is_told = False
    answer(os.read(fuse, 1 << 20))
