//! Opens a log, which may be compressed with gzip or zstd. Its first bytes tell, whatever its name is.

use std::cell::Cell;
use std::fs::File;
use std::io;
use std::io::BufRead;
use std::io::BufReader;
use std::io::Cursor;
use std::io::ErrorKind;
use std::io::Read;
use std::rc::Rc;

use flate2::bufread::MultiGzDecoder;

use super::counting_reader::CountingReader;
use super::zstd_frames::ZstdFrames;

/// The file name that stands for standard input.
pub(super) const STANDARD_INPUT: &str = "-";

/// An open log, and the length of its file in bytes; 0 where that is unknown.
pub(super) type OpenLog = (Box<dyn BufRead>, u64);

/// Opens a file, or standard input for `-`. Adds to `read` what was read of the file. A FIFO is waited for.
pub(super) fn open(name: &str, read: &Rc<Cell<u64>>) -> io::Result<OpenLog> {
    let (input, length): (Box<dyn Read>, u64) = if name == STANDARD_INPUT {
        (Box::new(io::stdin().lock()), 0)
    } else {
        let file = File::open(name)?;
        let metadata = file.metadata()?;
        if metadata.is_dir() {
            return Err(io::Error::from(ErrorKind::IsADirectory));
        }
        let length = metadata.len();
        (Box::new(file), length)
    };
    Ok((decompressed(CountingReader::new(input, Rc::clone(read)))?, length))
}

fn decompressed(mut input: impl Read + 'static) -> io::Result<Box<dyn BufRead>> {
    let mut magic = Vec::with_capacity(4);
    input.by_ref().take(4).read_to_end(&mut magic)?;
    let is_gzip = magic.starts_with(&[0x1f, 0x8b]);
    let is_zstd = magic == ZSTD || matches!(magic[..], [0x50..=0x5f, 0x2a, 0x4d, 0x18]);
    let input = BufReader::with_capacity(BUFFER, Cursor::new(magic).chain(input));
    Ok(match (is_gzip, is_zstd) {
        (true, _) => {
            Box::new(BufReader::with_capacity(BUFFER, Decoder { input: MultiGzDecoder::new(input), name: "gzip" }))
        }
        (_, true) => {
            Box::new(BufReader::with_capacity(BUFFER, Decoder { input: ZstdFrames::new(input), name: "zstd" }))
        }
        _ => Box::new(input),
    })
}

/// Says plainly that compressed data is broken: the decoders speak of their insides.
struct Decoder<R> {
    input: R,
    name: &'static str,
}

impl<R: Read> Read for Decoder<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.input.read(buffer).map_err(|error| match error.raw_os_error() {
            Some(_) => error,
            None => io::Error::new(ErrorKind::InvalidData, format!("its {} data is broken or cut off", self.name)),
        })
    }
}

const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

const BUFFER: usize = 64 * 1024;
