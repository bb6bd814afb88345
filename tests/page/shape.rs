//! How the page looks and what it loads.

use std::collections::BTreeSet;

use crate::browser::Browser;
use crate::site::Site;

#[test]
fn nothing_is_wider_than_a_telephone_in_light_and_dark() {
    let site = Site::start();
    for _ in 0..5 {
        site.log_in("127.0.1.9", "alice");
    }
    let page = site.page();
    page.says("#events", "since this page is open");
    let mut backgrounds = BTreeSet::new();
    for scheme in ["light", "dark"] {
        for width in [360, 1280] {
            page.look(width, scheme);
            assert_eq!(page.script("return document.documentElement.scrollWidth"), width, "{scheme}");
            backgrounds.insert(page.script("return getComputedStyle(document.body).backgroundColor").to_string());
        }
    }
    assert_eq!(backgrounds.len(), 2, "{backgrounds:?}");
}

#[test]
fn the_name_of_the_page_stays_in_one_line_beside_every_button() {
    let site = Site::start();
    let page = site.page();
    page.script("document.getElementById('end-session').hidden = false");
    let lines = "const name = document.createRange();
                 name.selectNodeContents(document.querySelector('h1'));
                 return name.getClientRects().length";
    for width in [320, 360, 412, 1280] {
        page.look(width, "light");
        assert_eq!(page.script(lines), 1, "{width}");
        assert_eq!(page.script("return document.documentElement.scrollWidth"), width);
    }
}

#[test]
fn the_page_scrolls_down_and_never_sideways() {
    let site = Site::that_counts_programs();
    for _ in 0..5 {
        site.log_in("127.0.1.9", "alice");
        site.browse("127.0.1.9", "/search/all");
    }
    let ban = site.gateway.admin_request("POST", "/api/v1/bans");
    assert_eq!(ban.json(r#"{"address": "198.51.100.7", "for": "1h", "reason": "many guesses"}"#).status(), 201);
    let page = site.page();
    page.push("#requests-list button");
    page.says("#story", "counted of");
    page.says("#bans-list", "many guesses");
    page.script("document.querySelectorAll('details').forEach(part => { part.open = true; })");
    page.says("#config-text", "login-pace");
    fits_each_width(&page, "with the names of the site");
    // Tables of a busy site, as wide as they get.
    page.script("document.querySelectorAll('td.number').forEach(cell => { cell.textContent = '99,999,999'; })");
    page.script(
        "document.querySelectorAll('td.name, td.id').forEach(cell => { cell.textContent = 'a-long-name-'.repeat(6); })",
    );
    fits_each_width(&page, "with long names and large numbers");
}

#[track_caller]
fn fits_each_width(page: &Browser, what: &str) {
    let just_beside_a_rule = [351, 353, 703, 705, 719, 721, 959, 961];
    for width in (320..=1400).step_by(40).chain(just_beside_a_rule) {
        page.look(width, "light");
        assert_eq!(page.script("return document.documentElement.scrollWidth"), width, "{what}");
    }
}

#[test]
fn only_this_gateway_is_asked_and_the_console_stays_empty() {
    let site = Site::start();
    let page = site.page();
    site.log_in("127.0.1.9", "alice");
    page.says("#routes", "login");
    assert_eq!(page.asked(), BTreeSet::from([site.gateway.admin().to_string()]));
    assert_eq!(page.console(), Vec::<String>::new());
}

#[test]
fn each_control_and_each_picture_has_a_name() {
    let site = Site::start();
    let page = site.page();
    let unnamed = page.script(
        "return [...document.querySelectorAll('input, select, button, svg, table')]
            .filter(node => node.ariaHidden !== 'true' && !(node.labels?.length || node.ariaLabel || node.textContent.trim() || node.closest('[hidden], dialog')))
            .map(node => node.outerHTML)",
    );
    assert_eq!(unnamed, serde_json::json!([]));
    assert_eq!(page.script("return document.querySelectorAll('[style], [onclick], style').length"), 0);
}
