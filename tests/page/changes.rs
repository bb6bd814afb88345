//! Every change, with the keyboard alone.

use fantoccini::key::Key;

use crate::site::Site;
use crate::support::eventually;

#[test]
fn an_operator_bans_and_lifts_with_the_keyboard() {
    let site = Site::start();
    let page = site.page();
    page.says("#bans-list", "Nothing is banned.");
    page.tab_to("#ban-part-0");
    page.write("127.0.1.9");
    page.tab_to("#ban-for");
    page.write("15m");
    page.tab_to("#ban-reason");
    page.write("guesses passwords");
    page.press(Key::Enter);
    page.says("#ask", "Ban 127.0.1.9 for 15m?");

    // Escape, and the button that has the focus first, are a no.
    page.press(Key::Escape);
    eventually("the question is gone", || page.text("#ask").is_empty());
    page.tab_to("#ban-form button[type=submit]");
    page.press(Key::Enter);
    page.says("#ask", "Ban 127.0.1.9 for 15m?");
    page.press(Key::Enter);
    eventually("the question is gone", || page.text("#ask").is_empty());
    assert_eq!(site.api("/api/v1/bans").as_array().expect("a list").len(), 0);

    page.press(Key::Enter);
    page.tab_to("#ask-yes");
    page.press(Key::Enter);
    page.says("#said", "127.0.1.9/32 is banned until");
    page.says("#bans-list", "guesses passwords");
    assert_eq!(site.browse("127.0.1.9", "/"), 403);

    page.tab_to("#bans-filter");
    page.write("nobody");
    page.says("#bans-more", "None of 1 bans");
    page.write("");
    page.tab_to("#bans-list button");
    page.press(Key::Enter);
    page.says("#ask", "Lift the ban of 127.0.1.9/32?");
    page.tab_to("#ask-yes");
    page.press(Key::Enter);
    page.says("#said", "is lifted");
    page.says("#bans-list", "Nothing is banned.");
    assert_eq!(site.browse("127.0.1.9", "/"), 200);
}

#[test]
fn an_operator_looks_at_a_key_resets_and_bans_it_with_the_keyboard() {
    let site = Site::start();
    for _ in 0..4 {
        site.log_in("127.0.1.9", "alice");
    }
    let page = site.page();
    page.tab_to("#key-limit");
    page.type_text("login-p");
    page.tab_to("#key-part-0");
    page.write("127.0.1.9");
    page.press(Key::Enter);
    page.says("#standing", "Denied now: client_ip 127.0.1.9 under login-pace.");
    page.says("#standing", "3 of 3 in 60 min used, 0 left");
    page.tab_to("#key-reset");
    page.press(Key::Enter);
    page.says("#ask", "Reset login-pace for client_ip 127.0.1.9?");
    page.tab_to("#ask-yes");
    page.press(Key::Enter);
    page.says("#standing", "May pass now");
    assert_eq!(site.log_in("127.0.1.9", "alice"), 401);

    page.tab_to("#key-reset + button");
    page.press(Key::Enter);
    page.tab_to("#ban-form button[type=submit]");
    page.press(Key::Enter);
    page.says("#ask", "Ban client_ip 127.0.1.9 of login-pace for 1h?");
    page.tab_to("#ask-yes");
    page.press(Key::Enter);
    page.says("#bans-list", "client_ip 127.0.1.9 of login-pace");
    assert_eq!(site.log_in("127.0.1.9", "alice"), 429);
}

#[test]
fn a_mistake_is_shown_where_it_was_made_and_changes_nothing() {
    let site = Site::start();
    let page = site.page();
    for (address, span, said) in
        [("nonsense", "1h", "address"), ("10.0.0.0/4", "1h", "force"), ("10.0.0.1", "soon", "for")]
    {
        page.tab_to("#ban-part-0");
        page.write(address);
        page.tab_to("#ban-for");
        page.write(span);
        page.press(Key::Enter);
        page.tab_to("#ask-yes");
        page.press(Key::Enter);
        page.says("#ban-error", said);
    }
    page.tab_to("#key-part-0");
    page.write("nonsense");
    page.press(Key::Enter);
    page.says("#key-error", "client_ip");
    assert_eq!(site.api("/api/v1/bans").as_array().expect("a list").len(), 0);
}

#[test]
fn the_time_that_charts_show_is_chosen_with_the_keyboard() {
    let site = Site::start();
    let page = site.page();
    page.tab_to("#minutes");
    page.type_text("15");
    eventually("the page asks for 15 minutes", || {
        let asked = page.script("return performance.getEntriesByType('resource').map(entry => entry.name)");
        asked.to_string().contains("history?minutes=15")
    });
    page.tab_to("#minutes-table summary");
    page.press(Key::Enter);
    eventually("the table has a row for each minute", || page.rows("#by-minute").len() >= 15);
}
