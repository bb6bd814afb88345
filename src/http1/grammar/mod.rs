//! What both sides of HTTP/1.1 share: the end of a head, fields, the framing of bodies, and the buffer for output.

mod body_length;
pub(crate) mod decoder;
mod encoder;
mod error;
mod field_lines;
mod head_scanner;
mod list;
mod trailers;
mod write_buffer;

pub use self::body_length::BodyLength;
pub use self::decoder::BodyDecoder;
pub use self::decoder::Sender;
pub use self::encoder::BodyEncoder;
pub use self::error::IncompleteBody;
pub use self::error::InvalidMessage;
pub use self::field_lines::InvalidLines;
pub use self::field_lines::LINE_END;
pub use self::field_lines::line_end;
pub use self::field_lines::note_lines;
pub use self::head_scanner::HeadScanner;
pub use self::list::elements;
pub use self::list::list_has;
pub use self::write_buffer::WriteBuffer;
