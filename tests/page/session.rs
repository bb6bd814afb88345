//! The form for the token.

use fantoccini::key::Key;

use crate::browser::Browser;
use crate::site::Site;

#[test]
fn the_token_is_asked_for_once_and_the_session_ends_on_demand() {
    let site = Site::with_token();
    let page = Browser::start();
    page.open(&site.url());
    page.says("#session", "Token of the admin API");
    assert_eq!(page.text("#board"), "");
    page.tab_to("#token");
    page.write("wrong");
    page.press(Key::Enter);
    page.says("#session-error", "the token is wrong");
    page.write("s3cret");
    page.press(Key::Enter);
    page.says("#updated", "as of");
    assert_eq!(page.script("return document.cookie"), "", "scripts do not see the cookie");

    // The session outlives the page, and its changes carry their token.
    page.open(&site.url());
    page.says("#updated", "as of");
    page.tab_to("#ban-part-0");
    page.write("127.0.1.9");
    page.press(Key::Enter);
    page.tab_to("#ask-yes");
    page.press(Key::Enter);
    page.says("#bans-list", "127.0.1.9/32");
    assert_eq!(site.browse("127.0.1.9", "/"), 403);

    page.tab_to("#end-session");
    page.press(Key::Enter);
    page.says("#session", "Token of the admin API");
    page.open(&site.url());
    page.says("#session", "Token of the admin API");
    assert_eq!(page.text("#board"), "");
}
