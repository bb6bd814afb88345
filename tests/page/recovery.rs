//! A page that stays open while its gateway restarts.

use crate::site::Site;
use crate::support::eventually;

#[test]
fn a_page_says_since_when_its_gateway_is_gone_and_recovers_by_itself() {
    let mut site = Site::that_restarts("");
    let page = site.page();
    site.gateway.kill();
    page.says("#gone", "The gateway has not answered since");
    assert!(page.title().contains("no answer"), "{}", page.title());
    site.gateway.restart();
    page.says("#said", "The gateway answers again");
    page.says("#verdict-sentence", "All is well");
    assert_eq!(page.text("#gone"), "");
    // It listens to the events of the new process.
    eventually("the page shows events of the new process", || {
        site.log_in("127.0.1.9", "alice");
        page.text("#events-list").contains("denied 127.0.1.9")
    });
}

#[test]
fn a_restart_ends_the_session() {
    let mut site = Site::that_restarts(", token_file: token");
    let page = crate::browser::Browser::start();
    page.open(&site.url());
    page.open_session("s3cret");
    page.says("#updated", "as of");
    site.gateway.restart();
    page.open_session("s3cret");
    page.says("#verdict-sentence", "All is well");
}
