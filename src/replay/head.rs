//! The head of a logged request, as far as the log holds it.

use std::net::Ipv4Addr;
use std::net::SocketAddr;

use http::HeaderValue;
use http::Version;

use super::LoggedHeader;
use super::LoggedRequest;
use super::LoggedValue;
use crate::gateway::admit::framing;
use crate::gateway::admit::strip::strip;
use crate::gateway::forward::significant_headers::SignificantHeaders;
use crate::head;
use crate::head::Fields;
use crate::head::KnownName;

/// The head as the rules see it, without what the gateway removes. `None`: the gateway refuses the request.
pub(super) fn admitted(
    request: &LoggedRequest,
    significant: &SignificantHeaders,
    has_challenges: bool,
) -> Option<head::RequestHead> {
    let mut head = head(request)?;
    strip(&mut head.fields, significant, has_challenges);
    Some(head)
}

/// The head of a logged request, as far as the log holds it. `None`: the gateway refuses it.
pub(super) fn head(request: &LoggedRequest) -> Option<head::RequestHead> {
    if request.size() > MAX_HEAD {
        return None;
    }
    let mut head = head::RequestHead::to(request.method.clone(), &request.target).ok()?;
    append(&mut head.fields, &request.headers);
    match &request.host {
        Some(host) if HeaderValue::from_str(host).is_err() => return None,
        Some(host) => {
            head.fields.remove(KnownName::HOST);
            head.fields.append(KnownName::HOST, host.as_bytes());
        }
        // A request of HTTP/1.0 may do without.
        None => head.version = Version::HTTP_10,
    }
    framing::check(&mut head, SocketAddr::from((Ipv4Addr::LOCALHOST, 80))).ok()?;
    Some(head)
}

pub(super) fn append(fields: &mut Fields, headers: &[LoggedHeader]) {
    for LoggedHeader { name, value } in headers {
        if let LoggedValue::Sent(value) = value
            && HeaderValue::from_bytes(value).is_ok()
        {
            fields.append(name, value);
        }
    }
}

/// In bytes. The gateway accepts 64 KiB by default, and no server much more.
const MAX_HEAD: usize = 128 * 1024;
