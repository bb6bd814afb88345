//! What the page says of the other gateways on one Redis.

use crate::browser::Browser;
use crate::fleet::Fleet;
use crate::support::eventually;

#[test]
fn a_gateway_that_does_not_answer_is_named_where_its_counts_are_missing() {
    let fleet = Fleet::start();
    let silent = fleet.api(1, "status")["gateway"].as_str().expect("an id").to_owned();
    let page = Browser::start();
    fleet.show(0, &page);
    page.says("#gateways-list", &silent);
    assert_eq!(page.text("#traffic-missing"), "");
    fleet.gateways[1].pause();
    let sentence = format!("{silent} does not answer: what it counted last is not shown.");
    for place in ["#traffic-missing", "#top-missing"] {
        page.says(place, &sentence);
    }
    page.says("#verdict", &silent);
    fleet.gateways[1].resume();
    eventually("it is named no more", || {
        ["#traffic-missing", "#top-missing"].iter().all(|place| page.text(place).is_empty())
    });
    page.says("#verdict-sentence", "All is well");
    assert_eq!(page.console(), Vec::<String>::new());
}
