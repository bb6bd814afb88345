//! A reload, asked for with the keyboard.

use crate::site::Site;
use crate::support::eventually;

#[test]
fn a_reload_is_asked_again_and_its_mistakes_are_shown_where_it_was_asked_for() {
    let site = Site::start();
    let page = site.page();
    site.gateway.write_config(format!("{}rutes: []\n", site.config));
    page.push("#reload");
    page.confirm("Reload the configuration?");
    page.says("#config-error", "portcullis.yaml:");
    page.says("#config-error", "unknown key `rutes`; did you mean `routes`?");
    page.says("#verdict-sentence", "failed, the configuration of");

    site.gateway.write_config(&site.config);
    page.push("#reload");
    page.confirm("Reload the configuration?");
    page.says("#said", "The configuration is loaded, at");
    page.says("#verdict-sentence", "All is well.");
    assert_eq!(page.text("#config-error"), "");
    page.push("#config-details summary");
    page.says("#config-text", "login-pace");
}

#[test]
fn a_page_goes_on_when_the_limit_that_it_looks_at_is_removed() {
    let site = Site::start();
    for _ in 0..4 {
        site.log_in("127.0.1.9", "alice");
    }
    let page = site.page();
    page.tab_to("#top-limit");
    page.type_text("keys of login-p");
    page.says("#top-list", "See");
    page.tab_to("#requests-limit");
    page.type_text("login-p");
    page.tab_to("#key-limit");
    page.type_text("login-p");

    site.gateway.reload(site.config.replace("login-pace", "login-speed"));
    page.says("#limits", "login-speed");
    let chosen = |select: &str| page.script(&format!("return document.querySelector('{select}').value"));
    eventually("nothing is chosen that is not there", || {
        ["#top-limit", "#requests-limit"].iter().all(|select| chosen(select) == "")
            && chosen("#key-limit") != "login-pace"
    });
    page.says("#top-list", "client_ip 127.0.1.9");
    page.says("#requests-list", "127.0.1.9");
    page.says("#verdict-sentence", "All is well.");
    // What was asked of the limit that is gone may be answered last.
    eventually("no mistake is shown", || page.text("#requests-error").is_empty());
}
