//! The request that a proxy would ask about, where there is no proxy.

use super::bad_question::BadQuestion;
use super::description::Description;
use super::endpoint::Endpoint;
use crate::head::KnownName;
use crate::head::Name;
use crate::head::RequestHead;

/// The head that is judged where a client sends `request`, with its one host, for `target` as it is written, and the proxy
/// describes it under `/auth` in `X-Forwarded-*`. An error is why the gateway answers the question with 400.
pub fn asked(mut request: RequestHead, target: &str) -> Result<RequestHead, String> {
    let host = request.fields.get(KnownName::HOST).unwrap_or_default().to_vec();
    let method = request.method.clone();
    // The proxy writes them over those of the client.
    for (name, value) in [
        ("x-forwarded-method", method.as_str().as_bytes()),
        ("x-forwarded-proto", b"http"),
        ("x-forwarded-host", &host),
        ("x-forwarded-uri", target.as_bytes()),
    ] {
        request.fields.insert(Name::of(name), value);
    }
    let read = Description::read(Endpoint::Auth, &request.fields, "http");
    let description = read.map_err(|bad| BadQuestion::Description(bad).to_string())?;
    let target = description.target(&mut request).map_err(|bad| BadQuestion::Framing(bad).to_string())?;
    Ok(description.into_head(target, request))
}
