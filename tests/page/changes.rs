//! Every change, with the keyboard alone.

use fantoccini::key::Key;

use crate::site::Site;
use crate::support::eventually;

#[test]
fn an_operator_bans_and_lifts_with_the_keyboard() {
    let site = Site::start();
    let page = site.page();
    page.says("#bans-list", "Nothing is banned.");
    page.fill("#ban-reason", "guesses passwords");
    page.ask_to_ban("127.0.1.9", "15m");

    // Escape, and the button that has the focus first, are a no.
    page.decline(Key::Escape);
    page.push("#ban-form button[type=submit]");
    page.says("#ask", "Ban 127.0.1.9 for 15m?");
    page.decline(Key::Enter);
    assert_eq!(site.api("/api/v1/bans").as_array().expect("a list").len(), 0);

    page.press(Key::Enter);
    page.confirm("Ban 127.0.1.9 for 15m?");
    page.says("#said", "127.0.1.9/32 is banned until");
    page.says("#bans-list", "guesses passwords");
    assert_eq!(site.browse("127.0.1.9", "/"), 403);

    page.fill("#bans-filter", "nobody");
    page.says("#bans-list", "None of the bans has that text.");
    page.write("");
    page.push("#bans-list button");
    page.confirm("Lift the ban of 127.0.1.9/32?");
    page.says("#said", "is lifted");
    page.says("#bans-list", "Nothing is banned.");
    assert_eq!(site.browse("127.0.1.9", "/"), 200);
}

#[test]
fn an_answer_is_to_the_question_that_is_shown() {
    let site = Site::start();
    let page = site.page();
    // Faster than any frame is drawn.
    page.script(
        "const ask = (address, answer) => {
            document.querySelector('#ban-part-0').value = address;
            for (const button of ['#ban-form button[type=submit]', answer]) document.querySelector(button).click();
        };
        ask('127.0.1.8', '#ask-no'); ask('127.0.1.9', '#ask-yes');",
    );
    page.says("#said", "127.0.1.9/32 is banned until");
    assert_eq!((site.browse("127.0.1.8", "/"), site.browse("127.0.1.9", "/")), (200, 403));
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
    page.fill("#key-part-0", "127.0.1.9");
    page.press(Key::Enter);
    page.says("#standing", "Denied now: client_ip 127.0.1.9 under login-pace.");
    page.says("#standing", "3 of 3 in 60 min used, 0 left");
    page.push("#key-reset");
    page.confirm("Reset login-pace for client_ip 127.0.1.9?");
    page.says("#standing", "May pass now");
    assert_eq!(site.log_in("127.0.1.9", "alice"), 401);

    page.push("#key-reset + button");
    page.push("#ban-form button[type=submit]");
    page.confirm("Ban client_ip 127.0.1.9 of login-pace for 1h?");
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
        page.ask_to_ban(address, span);
        page.confirm("Ban");
        page.says("#ban-error", said);
    }
    page.fill("#key-part-0", "nonsense");
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
    page.push("#minutes-table summary");
    eventually("the table has a row for each minute", || page.rows("#by-minute").len() >= 15);
}
