//! The form for the token.

use crate::browser::Browser;
use crate::site::Site;

#[test]
fn the_token_is_asked_for_once_and_the_session_ends_on_demand() {
    let site = Site::with_token();
    let page = Browser::start();
    page.open(&site.url());
    page.open_session("wrong");
    page.says("#session-error", "the token is wrong");
    assert_eq!(page.text("#board"), "");
    page.open_session("s3cret");
    page.says("#updated", "as of");
    assert_eq!(page.script("return document.cookie"), "", "scripts do not see the cookie");

    // The session outlives the page, and its changes carry their token.
    page.open(&site.url());
    page.says("#updated", "as of");
    page.ask_to_ban("127.0.1.9", "1h");
    page.confirm("Ban 127.0.1.9 for 1h?");
    page.says("#bans-list", "127.0.1.9/32");
    assert_eq!(site.browse("127.0.1.9", "/"), 403);

    page.push("#end-session");
    page.says("#session", "Token of the admin API");
    page.open(&site.url());
    page.says("#session", "Token of the admin API");
    assert_eq!(page.text("#board"), "");
}
