use crate::record::line::*;

#[test]
fn every_line_is_written_whole_and_once() {
    let out = Shared::default();
    let lines = LineWriter::start(out.clone()).unwrap();
    thread::scope(|scope| {
        for thread in 0..4 {
            let lines = &lines;
            scope.spawn(move || {
                for number in 0..1000 {
                    lines.append(|line| writeln!(line, "{thread} {number}").unwrap());
                }
            });
        }
    });
    lines.flush(LONG);

    let written = out.0.lock();
    let mut found: Vec<&str> = std::str::from_utf8(&written).unwrap().lines().collect();
    found.sort_unstable();
    found.dedup();
    assert_eq!((found.len(), lines.dropped()), (4000, 0));
}

#[test]
fn a_line_after_a_long_silence_is_written_without_a_flush() {
    let out = Shared::default();
    let lines = LineWriter::start(out.clone()).unwrap();
    lines.flush(LONG);
    lines.append(|line| line.extend_from_slice(b"late\n"));
    let mut waited = 0;
    while out.0.lock().is_empty() && waited < 1000 {
        thread::sleep(Duration::from_millis(5));
        waited += 1;
    }
    assert_eq!(&**out.0.lock(), b"late\n");
}

#[test]
fn lines_that_are_not_read_are_dropped_and_counted() {
    let lines = LineWriter::detached();
    let line = vec![b'x'; MAX_BUFFERED];
    lines.append(|buffer| buffer.extend_from_slice(&line));
    lines.append(|_| panic!("there is no room for this one"));
    assert_eq!(lines.dropped(), 1);
}

#[test]
fn lines_that_come_steadily_need_no_new_memory_and_a_burst_keeps_none() {
    let (lines, mut swap_buffer) = (LineWriter::detached(), Vec::new());
    let own = &lines.buffers[buffer_of_this_thread()].0;
    let mut round = |size: usize| {
        let before = own.lock().capacity();
        lines.append(|line| line.resize(size, b'x'));
        let grew = own.lock().capacity() > before;
        lines.write_round(&mut swap_buffer, std::io::sink());
        (grew, own.lock().capacity().max(swap_buffer.capacity()))
    };
    for size in [1000, MAX_BUFFERED] {
        assert!(round(size).0 && round(size).0, "there are two buffers to grow");
        assert!((0..100).all(|_| !round(size).0));
    }
    round(100);
    let (_, kept) = round(100);
    assert!(kept <= MAX_KEPT, "{kept}");
}

const LONG: Duration = Duration::from_secs(30);

#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
