//! What the page says of the other gateways on one Redis.

use crate::browser::Browser;
use crate::fleet::Fleet;
use crate::support::eventually;

#[test]
fn a_gateway_that_does_not_answer_is_named_where_its_counts_are_missing() {
    let fleet = Fleet::start();
    let of_silent = |field: &str| fleet.api(1, "status")["gateways"][0][field].as_str().expect("a text").to_owned();
    let [silent, name] = ["id", "name"].map(of_silent);
    let page = Browser::start();
    fleet.show(0, &page);
    page.says("#gateways-list", &name);
    assert_eq!(page.text("#traffic-missing"), "");
    fleet.gateways[1].pause();
    let sentence = format!("{silent} does not answer: what it counted last is not shown.");
    for place in ["#traffic-missing", "#top-missing"] {
        page.says(place, &sentence);
    }
    page.says("#verdict", &name);
    fleet.gateways[1].resume();
    eventually("it is named no more", || {
        ["#traffic-missing", "#top-missing"].iter().all(|place| page.text(place).is_empty())
    });
    page.says("#verdict-sentence", "All is well");
    assert_eq!(page.console(), Vec::<String>::new());
}
