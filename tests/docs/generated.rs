//! Pages that are made from the program itself: `UPDATE_EXPECT=1 cargo test --test docs generated` writes them.

mod command_line;
mod reference;

use std::fs;

use crate::page::BOOK;

/// Fails where the page is not what the program says today.
#[track_caller]
fn is_up_to_date(name: &str, text: &str) {
    let path = format!("{BOOK}/{name}");
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        fs::write(&path, text).expect("the page is written");
    }
    let written = fs::read_to_string(&path).unwrap_or_default();
    assert!(written == text, "{path} is out of date: UPDATE_EXPECT=1 cargo test --test docs generated");
}
