//! How the page looks and what it loads.

use std::collections::BTreeSet;

use crate::site::Site;

#[test]
fn nothing_is_wider_than_a_telephone_in_light_and_dark() {
    let site = Site::start();
    for _ in 0..5 {
        site.log_in("127.0.1.9", "alice");
    }
    let page = site.page();
    page.says("#events", "Since this page is open");
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
            .filter(node => !(node.labels?.length || node.ariaLabel || node.textContent.trim() || node.closest('[hidden], dialog')))
            .map(node => node.outerHTML)",
    );
    assert_eq!(unnamed, serde_json::json!([]));
    assert_eq!(page.script("return document.querySelectorAll('[style], [onclick], style').length"), 0);
}
