//! A value that is clicked filters the whole page, and stands in its address.

use fantoccini::key::Key;

use crate::browser::Browser;
use crate::site::Site;
use crate::support::eventually;

/// A page of a site where two clients were denied.
#[track_caller]
fn attacked() -> (Site, Browser) {
    let site = Site::start();
    for source in ["127.0.1.8", "127.0.1.9"] {
        for _ in 0..4 {
            site.log_in(source, "alice");
        }
        site.browse(source, "/shop");
    }
    let page = site.page();
    page.says("#top-list", "127.0.1.8");
    page.says("#requests-list", "127.0.1.8");
    (site, page)
}

#[test]
fn a_client_filters_the_page_and_its_address_until_it_is_taken_back() {
    let (site, page) = attacked();
    page.tab_to("#top-list a[href='?client=127.0.1.8']");
    page.press(Key::Enter);
    page.says("#filters", "client 127.0.1.8");
    eventually("only that client is shown", || {
        ["#top-list", "#requests-list"].iter().all(|list| {
            let rows = page.rows(list);
            rows.len() == 1 && rows[0].iter().any(|cell| cell.contains("127.0.1.8"))
        })
    });
    page.says("#traffic", "Not told apart by client");
    assert_eq!(page.script("return location.search"), "?client=127.0.1.8");

    // The browser goes back, and the address leads there again.
    page.script("history.back()");
    eventually("both are shown", || page.rows("#top-list").len() == 2 && page.text("#filters").is_empty());
    page.open(&format!("{}?client=127.0.1.9&route=login", site.url()));
    page.says("#filters", "route login");
    eventually("only what is asked for is shown", || {
        page.rows("#top-list").len() == 1
            && page.rows("#routes").len() == 1
            && page.text("#top-list").contains("127.0.1.9")
    });
    page.says("#chart figcaption", "6 passed, 6 of them failed to sign in, 2 denied in this time");
    page.push("#filters button:nth-of-type(2)");
    eventually("the route is no filter", || page.rows("#routes").len() == 2);
    page.says("#filters", "client 127.0.1.9");
    page.push("#filters button");
    eventually("everything is shown", || page.rows("#top-list").len() == 2);
    assert_eq!(page.script("return location.search"), "");
}

#[test]
fn a_limit_that_is_clicked_shows_its_keys() {
    let (_site, page) = attacked();
    page.tab_to("#limits a[href='?limit=login-pace']");
    page.press(Key::Enter);
    page.says("#top-list", "See");
    eventually("only that limit is shown", || page.rows("#limits").len() == 1);
    assert_eq!(page.script("return document.querySelector('#top-limit').value"), "login-pace");
    assert_eq!(page.script("return document.querySelector('#requests-limit').value"), "login-pace");
    page.says("#chart figcaption", "2 denied in this time");
}

#[test]
fn networks_hold_their_addresses() {
    let (site, page) = attacked();
    page.open(&format!("{}?network=127.0.1.8/31", site.url()));
    eventually("both lie in it", || page.rows("#top-list").len() == 2);
    page.open(&format!("{}?network=127.0.1.9/32", site.url()));
    eventually("one lies in it", || page.rows("#top-list").len() == 1 && page.rows("#requests-list").len() == 1);
    page.open(&format!("{}?network=::/0", site.url()));
    page.says("#top-list", "None that this filter shows.");
}
