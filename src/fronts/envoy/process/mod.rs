//! `ExternalProcessor/Process`: Envoy's filter `ext_proc` shows a request, and then its answer, on one stream.

mod attributes;
mod code_details;
mod modes;
mod replies;
mod reply_stream;
mod request;
mod request_parts;
mod response;
mod session;
mod shown_stream;
