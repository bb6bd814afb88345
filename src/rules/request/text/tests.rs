use proptest::prelude::*;

use super::*;

#[track_caller]
fn check(sent: &str, expected: &str) {
    assert_eq!(normalise(sent), expected, "{sent:?}");
}

#[test]
fn spellings_of_a_name_are_one_name() {
    check("alice", "alice");
    check("Alice", "alice");
    check("  Alice\t\r\n", "alice");
    check("\u{a0}alice\u{3000}", "alice");
    check("Ａｌｉｃｅ", "alice");
    check("ａlice ", "alice");
    check("𝓪𝓵𝓲𝓬𝓮", "alice");
    check("ⓐⓛⓘⓒⓔ", "alice");
    check("STRASSE", "strasse");
    check("straße", "strasse");
    check("STRAẞE", "strasse");
    check("ﬁona", "fiona");
    check("\u{212a}ate", "kate");
    check("Jose\u{301}", "josé");
    check("JOSÉ", "josé");
    check("Σίσυφος", "σίσυφοσ");
    check("al\u{ad}ice", "alice");
    check("al\u{200b}i\u{200d}ce\u{feff}", "alice");
    check("alice\0", "alice");
    check("ali\u{1}ce", "alice");
    check("alice\u{fffd}", "alice");
    check("a b", "a b");
    check("a\tb", "a\tb");
    check("", "");
    check(" \u{200b} ", "");
    check("\u{fffd}", "");
}

#[test]
fn an_address_is_the_name_before_its_at_sign() {
    for sent in [
        "bob",
        "bob@example.com",
        " BOB@EXAMPLE.com ",
        "bob\u{ff20}example.com",
        "\"bob\"@example.com",
        "bob@a@b",
        "bob @x",
        "bob@",
    ] {
        assert_eq!(local_part(sent), "bob", "{sent:?}");
    }
    assert_eq!(local_part("@bob"), "@bob");
    assert_eq!(local_part(""), "");
    assert_ne!(local_part("bob.smith@x"), local_part("bob"));
}

#[test]
fn different_names_stay_different() {
    for (one, other) in [("alice", "alicе"), ("jose", "josé"), ("a b", "ab"), ("a.b", "ab")] {
        assert_ne!(normalise(one), normalise(other));
    }
}

#[test]
fn a_name_in_lower_case_is_borrowed() {
    assert!(matches!(normalise(" alice@example.com "), Cow::Borrowed("alice@example.com")));
}

#[test]
fn every_character_is_stable_once_normalised() {
    // The planes that have case or compatibility mappings, and the one of tags.
    for char in ('\0'..='\u{1ffff}').chain('\u{2f800}'..='\u{2fa1f}').chain('\u{e0000}'..='\u{e0fff}') {
        let text = format!("a{char}");
        let normal = normalise(&text);
        assert_eq!(normalise(&normal), normal, "{char:?}");
        let alone = char.to_string();
        let normal = normalise(&alone);
        assert_eq!(normalise(&normal), normal, "{char:?} alone");
    }
}

#[test]
fn a_text_that_grows_is_cut() {
    let text = "\u{fdfa}".repeat(20_000);
    let normal = normalise(&text);
    assert!(normal.len() <= MAX_LENGTH);
    assert_eq!(normalise(&normal), normal);
}

proptest! {
    #[test]
    fn normalising_twice_is_normalising_once(text in ".{0,40}") {
        let normal = normalise(&text).into_owned();
        prop_assert_eq!(normalise(&normal), normal.as_str());
    }

    #[test]
    fn marks_in_any_order_are_normalised_once(text in "[a-cA-C\u{300}-\u{345}\u{3b1}\u{1fb3}\u{1f80}-\u{1faf}\u{130}\u{1e9e}\u{ad}\u{ac00}-\u{ac10}\u{1161}\u{11a8}]{0,12}") {
        let normal = normalise(&text).into_owned();
        prop_assert_eq!(normalise(&normal), normal.as_str());
    }

    #[test]
    fn case_and_width_do_not_distinguish_names(text in "[a-z]{1,12}") {
        let wide: String = text.chars().map(|char| char::from_u32(u32::from(char) + 0xfee0).expect("a full-width letter")).collect();
        prop_assert_eq!(normalise(&wide), text.as_str());
        let upper = text.to_uppercase();
        prop_assert_eq!(normalise(&upper), text.as_str());
    }
}
