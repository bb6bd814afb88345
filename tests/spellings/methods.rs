//! Method overrides: headers, their alternative spellings, and form fields.

use std::net::SocketAddr;

use crate::login::{Asked, check_route};

/// Requires that every request which the application at `server` takes for a PUT is charged to the route of PUT.
#[track_caller]
pub(crate) fn check(server: SocketAddr) {
    let plain = Asked { head: "PUT /method.php HTTP/1.1\r\nContent-Length: 0\r\n".to_owned(), body: String::new() };
    check_route(server, "PUT /method.php", &plain, &requests(), 50);
}

fn requests() -> Vec<Asked> {
    let mut requests = Vec::new();
    let mut add = |head: String, body: &str| requests.push(Asked { head, body: body.to_owned() });
    for name in NAMES.iter().flat_map(|name| twins(name)) {
        for value in ["PUT", "put", " Put ", "GET, PUT", "PUT, GET", "GET\r\nNAME: PUT", "PUT\r\nNAME: GET"] {
            let value = value.replace("NAME", &name);
            add(format!("POST /method.php HTTP/1.1\r\nContent-Length: 0\r\n{name}: {value}\r\n"), "");
            add(format!("GET /method.php HTTP/1.1\r\n{name}: {value}\r\n"), "");
        }
    }
    for field in FIELDS {
        add(format!("GET /method.php?{field} HTTP/1.1\r\n"), "");
        // Farther away than the gateway reads.
        let late = format!("padding={}&{field}", "x".repeat(100_000));
        for (method, body) in ["POST", "GET", "PATCH"].iter().flat_map(|method| [(method, *field), (method, &late)]) {
            let kind = "Content-Type: application/x-www-form-urlencoded";
            add(format!("{method} /method.php HTTP/1.1\r\n{kind}\r\nContent-Length: {}\r\n", body.len()), body);
        }
    }
    requests
}

/// The name as servers that hand headers on as variables may have it said.
fn twins(name: &str) -> Vec<String> {
    let with = |other: &str| name.replace('-', other);
    vec![name.to_owned(), name.to_uppercase(), with("_"), with("."), with("~"), name.replacen('-', "_", 1)]
}

const NAMES: &[&str] = &["X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override"];

const FIELDS: &[&str] = &[
    "_method=PUT",
    "_METHOD=put",
    "%5Fmethod=PUT",
    ".method=PUT",
    "+_method=PUT",
    "_method=GET&_method=PUT",
    "_method=PUT&_method=GET",
    "_method%00x=PUT",
    "a=b;_method=PUT",
    "_method=%50UT",
    "[method=PUT",
];
