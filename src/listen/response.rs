//! A response to a client.

use std::error::Error;

use bytes::Bytes;
use http_body::Body;

use crate::head::ResponseHead;

/// A response, whose body follows its head.
#[derive(Debug)]
pub struct Response<B> {
    pub head: ResponseHead,
    pub body: B,
}

/// The body of a response.
pub trait ResponseBody: Body<Data = Bytes, Error: Into<Box<dyn Error + Send + Sync>>> + Send + Unpin + 'static {
    /// Writes the whole body, if all of it is at hand and it has this length, and ends it. `false`: it is read part by part.
    fn write_whole(&mut self, _out: &mut Vec<u8>, _length: u64) -> bool {
        false
    }
}
