//! Applications that sign in a connection and not a request: NTLM and Negotiate.

use bytes::Bytes;
use h2::client::SendRequest;
use http::Request;

use crate::http2::{ask, over_http2};
use crate::support::{Answer, Gateway, Origin, RawClient, Response};

/// Speaks the three legs of NTLM, or the one of Negotiate. From then on every request of the connection is its user's.
fn application() -> Origin {
    Origin::scripted(|mut exchange| {
        let (mut user, mut is_challenged) = (None::<String>, false);
        while let Some(received) = exchange.request() {
            let credentials = received.header("authorization").map(str::to_owned);
            let answer = match (credentials.as_deref(), &user) {
                (Some("NTLM negotiate"), _) => {
                    is_challenged = true;
                    Answer::new(401, &[("WWW-Authenticate", "NTLM challenge")], "")
                }
                (Some(other), _) if other.starts_with("NTLM user=") && is_challenged => {
                    user = other.strip_prefix("NTLM user=").map(str::to_owned);
                    Answer::ok(user.clone().unwrap_or_default())
                }
                // The answer says nothing of it.
                (Some(other), _) if other.starts_with("Negotiate user=") => {
                    user = other.strip_prefix("Negotiate user=").map(str::to_owned);
                    Answer::ok(user.clone().unwrap_or_default())
                }
                (_, Some(user)) => Answer::ok(user),
                _ if received.target == "/public" => Answer::ok("public"),
                _ => Answer::raw(
                    "HTTP/1.1 401 No\r\nWWW-Authenticate: Basic realm=\"a\", NTLM\r\nWWW-Authenticate: Negotiate\r\n\
                     Content-Length: 0\r\n\r\n",
                ),
            };
            if !exchange.write(answer.bytes()) {
                return;
            }
        }
    })
}

fn gateway(origin: &Origin) -> Gateway {
    Gateway::start(format!("upstream: {}", origin.url()))
}

fn get(gateway: &Gateway, client: &mut RawClient, target: &str, credentials: Option<&str>) -> Response {
    let request = gateway.get(target);
    let request = credentials.into_iter().fold(request, |request, it| request.header("Authorization", it));
    request.send_on(client)
}

/// All three legs.
fn sign_in(gateway: &Gateway, client: &mut RawClient, user: &str) {
    assert_eq!(get(gateway, client, "/", None).status, 401);
    assert_eq!(get(gateway, client, "/", Some("NTLM negotiate")).status, 401);
    let answer = get(gateway, client, "/", Some(&format!("NTLM user={user}")));
    assert_eq!((answer.status, answer.text().as_str()), (200, user));
}

#[test]
fn a_connection_that_was_signed_in_is_given_to_nobody_else() {
    let origin = application();
    let gateway = gateway(&origin);
    let mut alice = gateway.connect();
    sign_in(&gateway, &mut alice, "alice");
    let mut stranger = gateway.connect();
    for _ in 0..3 {
        assert_eq!(get(&gateway, &mut stranger, "/", None).status, 401);
        assert_eq!(get(&gateway, &mut alice, "/", None).text(), "alice");
        assert_eq!(get(&gateway, &mut gateway.connect(), "/public", None).text(), "public");
    }
    drop(alice);
    for _ in 0..3 {
        assert_eq!(get(&gateway, &mut gateway.connect(), "/", None).status, 401);
    }
}

#[test]
fn clients_sign_in_beside_each_other() {
    let origin = application();
    let gateway = gateway(&origin);
    let mut clients: Vec<_> = (0..8).map(|number| (format!("user{number}"), gateway.connect())).collect();
    let legs = [None, Some("NTLM negotiate".to_owned())];
    for leg in &legs {
        for (_, client) in &mut clients {
            assert_eq!(get(&gateway, client, "/", leg.as_deref()).status, 401);
        }
    }
    for (user, client) in clients.iter_mut().rev() {
        assert_eq!(get(&gateway, client, "/", Some(&format!("NTLM user={user}"))).text(), *user);
    }
    for _ in 0..3 {
        for (user, client) in &mut clients {
            assert_eq!(get(&gateway, client, "/", None).text(), *user);
        }
    }
}

#[test]
fn credentials_that_are_taken_without_a_challenge_bind_too() {
    let origin = application();
    let gateway = gateway(&origin);
    let mut alice = gateway.connect();
    // Over a connection that was everybody's until then.
    assert_eq!(get(&gateway, &mut alice, "/public", None).text(), "public");
    assert_eq!(get(&gateway, &mut alice, "/", Some("Negotiate user=alice")).text(), "alice");
    assert_eq!(get(&gateway, &mut gateway.connect(), "/", None).status, 401);
    assert_eq!(get(&gateway, &mut alice, "/", None).text(), "alice");
}

#[test]
fn over_http2_no_request_gets_the_connection_of_another() {
    let origin = application();
    let gateway = gateway(&origin);
    let request = |credentials: Option<&str>| {
        let request = Request::get("http://app.example/");
        let request = credentials.into_iter().fold(request, |request, it| request.header("authorization", it));
        request.body(()).expect("a request")
    };
    over_http2(&gateway, async |sender: SendRequest<Bytes>| {
        for _ in 0..3 {
            let answered = ask(&sender, request(Some("Negotiate user=alice")), None).await.expect("an answer");
            assert_eq!(answered.body, b"alice");
            assert_eq!(ask(&sender, request(None), None).await.expect("an answer").status, 401);
        }
    });
    assert_eq!(get(&gateway, &mut gateway.connect(), "/", None).status, 401);
}
