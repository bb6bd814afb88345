//! A page that stays open while its gateway restarts.

use crate::site::Site;
use crate::support::eventually;

#[test]
fn a_page_says_since_when_its_gateway_is_gone_and_recovers_by_itself() {
    let mut site = Site::that_restarts("");
    let page = site.page();
    site.gateway.kill();
    page.says("#gone", "The gateway has not answered since");
    // The verdict is no other than that, and the one of before is of before.
    page.says("#verdict-heading", "✕ The gateway has not answered since");
    page.says("#facts", "Before, at ");
    assert!(!page.text("#verdict").contains('✓'), "{}", page.text("#verdict"));
    assert_eq!(page.title(), "✕ no answer: portcullis");
    for (width, scheme) in [(360, "light"), (1280, "dark")] {
        page.look(width, scheme);
        assert_eq!(page.script("return document.documentElement.scrollWidth"), width, "{scheme}");
    }
    site.gateway.restart();
    page.says("#said", "The gateway answers again");
    page.says("#verdict-heading", "✓ All is well");
    assert_eq!(page.title(), "✓ well: portcullis");
    assert_eq!(page.text("#gone"), "");
    // It listens to the events of the new process.
    eventually("the page shows events of the new process", || {
        site.log_in("127.0.1.9", "alice");
        page.text("#events-list").contains("denied 127.0.1.9")
    });
}

#[test]
fn a_restart_ends_the_session_and_nothing_of_before_is_shown_as_of_now() {
    let mut site = Site::that_restarts(", token_file: token");
    let page = crate::browser::Browser::start();
    page.open(&site.url());
    page.open_session("s3cret");
    page.says("#updated", "as of");
    page.says("#verdict-sentence", "All is well");
    site.gateway.kill();
    page.says("#verdict-heading", "✕ The gateway has not answered since");
    site.gateway.restart();
    page.says("#session", "Token of the admin API");
    assert_eq!((page.text("#board"), page.text("#updated")), (String::new(), String::new()));
    assert_eq!(page.title(), "portcullis");
    page.hold_answers();
    page.open_session("s3cret");
    page.says("#verdict-sentence", "Asking the gateway");
    assert_eq!((page.text("#facts"), page.title()), (String::new(), "portcullis".to_owned()));
    page.release_answers();
    page.says("#verdict-heading", "✓ All is well");
    assert_eq!(page.title(), "✓ well: portcullis");
}
