//! The headers of clients that the gateway does not pass on, for the ready files of other proxies.

/// The source that names them: a new name there is one that every ready file must remove.
const SOURCE: &str = include_str!("../../src/gateway/header_kind.rs");

/// Names in lower case. A name that stands for all names that begin with it is among them as it is.
pub fn dropped_headers() -> Vec<&'static str> {
    let mut names = USUAL.to_vec();
    for (start, end) in [("fn of_proper", "fn may_trail"), ("fn is_vendor", "\n}\n")] {
        let from = &SOURCE[SOURCE.find(start).expect("the function")..];
        let part = &from[..from.find(end).expect("the end of the function")];
        // Between quotation marks is every second piece.
        names.extend(part.split('"').skip(1).step_by(2));
    }
    assert!(names.len() > 90 && names.contains(&"proxy") && names.contains(&"akamai-client-ip"), "{names:?}");
    names
}

/// Names of their own there, or those that begin as one of them.
const USUAL: [&str; 12] = [
    "x-forwarded",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-port",
    "x-forwarded-prefix",
    "x-forwarded-proto",
    "x-forwarded-scheme",
    "x-forwarded-server",
    "x-forwarded-ssl",
    "x-forwarded-client-ip",
    "x-forward-for",
    "x-forwarder-for",
];
