//! Does what the script of a challenge page does.

use portcullis::rules::challenge::is_solution;

use super::message::Response;

/// What stands in a `data-` attribute of the page.
#[track_caller]
pub fn attribute(page: &Response, name: &str) -> String {
    let text = page.text();
    let value = text.split(&format!("data-{name}=\"")).nth(1).and_then(|rest| rest.split('"').next());
    value.unwrap_or_else(|| panic!("no {name} in {text}")).to_owned()
}

/// The proof of work that the page asks for.
#[track_caller]
pub fn solve(page: &Response) -> String {
    let (token, difficulty) = (attribute(page, "token"), attribute(page, "difficulty"));
    let difficulty = difficulty.parse().expect("a number of bits");
    let proofs = (0u64..).map(|counter| format!("{token}.{counter}"));
    proofs.into_iter().find(|proof| is_solution(proof, difficulty)).expect("there is one")
}
