//! What the page says while answers are on their way: nothing that may be wrong.

use fantoccini::key::Key;

use crate::browser::Browser;
use crate::site::Site;
use crate::support::eventually;

/// Each list of the page, and what it says of a gateway without routes, limits and requests.
const LISTS: [(&str, &str); 12] = [
    ("#entered-list", "Nobody signed in after failures in the last hour: no sign-in was counted."),
    ("#done-list", "Nothing is banned, and nothing was changed in the last hour."),
    ("#routes", "No route is configured."),
    ("#limits", "No limit is configured: everything passes."),
    ("#top-list", "None in this time."),
    ("#requests-list", "This gateway has denied or held no request."),
    ("#bans-list", "Nothing is banned."),
    ("#standing", "No limit is configured."),
    ("#gateways-list", "(this one)"),
    ("#servers-list", "✓ healthy"),
    ("#advice-list", "Nothing looks misconfigured."),
    ("#events-list", "Nothing was denied, banned or reloaded at this gateway since this page is open."),
];

#[test]
fn before_the_gateway_has_answered_the_page_says_that_it_is_loading_and_nothing_else() {
    let site = Site::without_limits();
    let page = Browser::start();
    page.hold_answers();
    page.open(&site.url());
    page.says("#verdict", "Asking the gateway…");
    for (list, _) in LISTS {
        page.says(list, "Loading…");
        assert_eq!(page.text(list), "Loading…", "{list}");
    }
    assert_eq!(page.text("#chart figcaption"), "Loading…");
    assert_eq!((page.text("#config-state"), page.text("#facts")), ("Loading…".to_owned(), String::new()));
    assert_eq!(page.text("#key-form"), "", "a form without a limit to choose");
    assert!(page.text("#ban-form").contains("Address or network"), "an address may be banned at once");

    page.release_answers();
    for (list, empty) in LISTS {
        page.says(list, empty);
    }
    page.says("#verdict-sentence", "All is well. No request came in the last minute.");
    assert!(!page.text("body").contains("oading…"), "{}", page.text("body"));
}

#[test]
fn another_choice_shows_nothing_of_the_one_before() {
    let site = Site::start();
    for _ in 0..4 {
        site.log_in("127.0.1.9", "alice");
    }
    let page = site.page();
    page.says("#top-list", "client_ip 127.0.1.9");
    page.says("#requests-list", "127.0.1.9");
    page.hold_answers();
    page.tab_to("#top-limit");
    page.type_text("keys of login-n");
    eventually("the list of clients is gone", || page.text("#top-list") == "Loading…");
    page.fill("#requests-client", "127.0.1.8");
    page.press(Key::Tab);
    eventually("the list of all is gone", || page.text("#requests-list") == "Loading…");
    page.tab_to("#minutes");
    page.type_text("15");
    eventually("the hour is gone", || page.text("#chart figcaption") == "Loading…");
    page.release_answers();
    page.says("#top-list", "None in this time.");
    page.says("#requests-list", "This gateway has denied or held no request like that.");
    page.says("#chart figcaption", "1 denied in this time");
}

#[test]
fn long_lists_show_their_first_rows_until_all_are_wanted() {
    let site = Site::start();
    for number in 1..=12 {
        for _ in 0..4 {
            site.log_in(&format!("127.0.1.{number}"), "alice");
        }
    }
    let page = site.page();
    eventually("ten of twelve are shown", || page.rows("#top-list").len() == 10);
    page.push("#top-list > button");
    assert_eq!(page.text("#top-list > button"), "Show fewer");
    assert_eq!(page.rows("#top-list").len(), 12);
    page.press(Key::Enter);
    assert_eq!(page.rows("#top-list").len(), 10);
}
