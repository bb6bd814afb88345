//! What a help says to write.

/// One thing that a help proposes.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Proposal {
    /// To write this text: a value, a name, or an entry such as `key: value`.
    Write(String),
    /// To remove what the mistake stands at.
    Remove,
    /// To remove the entry of this name beside it.
    RemoveKey(String),
    /// To change the text itself.
    Change(Change),
}

/// A change of a text that needs nothing but the text.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Change {
    RemoveCredentials,
    EncodePassword,
    MakeList,
}

/// What the words before a text in backticks say of it.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Meaning {
    Written,
    Removed,
    /// It is only spoken of.
    Mentioned,
}

/// Everything that a help proposes, in its order. Texts that it only speaks of are none.
pub(super) fn proposals(help: &str) -> Vec<Proposal> {
    if let Some((_, change)) = CHANGES.iter().find(|(words, _)| help.contains(words)) {
        return vec![Proposal::Change(*change)];
    }
    let mut found = Vec::new();
    let mut meaning = Meaning::Mentioned;
    let mut words = "";
    for (at, part) in help.split('`').enumerate() {
        if at % 2 == 0 {
            words = part;
            meaning = meaning_after(words, meaning);
            if REMOVALS.iter().any(|removal| words.contains(removal)) {
                found.push(Proposal::Remove);
            }
        } else if is_whole(part) && !ends_in_preposition(words) {
            match meaning {
                Meaning::Written => found.push(Proposal::Write(part.to_owned())),
                Meaning::Removed => found.push(Proposal::RemoveKey(part.to_owned())),
                Meaning::Mentioned => {}
            }
        }
    }
    found.dedup();
    found
}

/// Whether a text can be written as it is: a sign, a key without its value and a word that stands for others cannot.
fn is_whole(text: &str) -> bool {
    text.contains(|letter: char| letter.is_alphanumeric()) && !text.ends_with(':') && !text.contains("NAME")
}

/// What the words say of the text behind them, after those before.
fn meaning_after(words: &str, before: Meaning) -> Meaning {
    let mut meaning = before;
    let mut is_after_semicolon = false;
    for (at, clause) in words.split_inclusive([';', ':', '?']).enumerate() {
        let begins_explanation = is_after_semicolon || at > 0 && !clause.trim().is_empty();
        if begins_explanation {
            meaning = Meaning::Mentioned;
        }
        is_after_semicolon = clause.ends_with(';');
        for word in clause.split(|letter: char| !letter.is_alphabetic()) {
            match word {
                "write" | "add" | "such" | "mean" | "name" | "define" | "capture" => meaning = Meaning::Written,
                "remove" => meaning = Meaning::Removed,
                "move" | "rename" | "keep" | "lower" | "raise" | "give" | "use" | "stands" => {
                    meaning = Meaning::Mentioned;
                }
                _ => {}
            }
        }
    }
    // What is wanted stands behind the colon.
    if words.ends_with(": ") || words.ends_with(" as in ") { Meaning::Written } else { meaning }
}

/// Whether the text that follows is only where something is, or what it is for.
fn ends_in_preposition(text: &str) -> bool {
    if text.ends_with("as in ") {
        return false;
    }
    let mut words = text.split_whitespace().rev().filter(|word| !["the", "a", "an"].contains(word));
    let prepositions =
        ["of", "in", "with", "for", "from", "under", "at", "into", "without", "where", "whose", "contains", "by"];
    ["to the ", "to a "].iter().any(|place| text.ends_with(place))
        || words.next().is_some_and(|last| prepositions.contains(&last))
}

/// How a help says to remove what it is about.
const REMOVALS: [&str; 5] =
    ["remove it", "remove one of the two", "keep one of the two", "remove the key", "remove the line"];

/// Helps that say how to change the text.
const CHANGES: [(&str, Change); 4] = [
    ("remove the part before the `@`", Change::RemoveCredentials),
    ("remove what stands before the `@`", Change::RemoveCredentials),
    ("in a password write `%23` for `#`", Change::EncodePassword),
    ("put `- ` before each entry", Change::MakeList),
];

#[test]
fn texts_to_write_are_told_from_those_that_are_spoken_of() {
    let written = |texts: &[&str]| texts.iter().map(|text| Proposal::Write((*text).to_owned())).collect::<Vec<_>>();
    assert_eq!(proposals("did you mean `a`?"), written(&["a"]));
    assert_eq!(proposals("write `a`, `b: 1` or `c`; a `d` is another one"), written(&["a", "b: 1", "c"]));
    assert_eq!(proposals("write what is counted: `key: []` for all"), written(&["key: []"]));
    assert_eq!(proposals("write `1` to `3`"), written(&["1", "3"]));
    assert_eq!(proposals("add `a: b` to the `c` of the route, or `d: e`"), written(&["a: b", "d: e"]));
    assert_eq!(proposals("remove it: a `limit` denies"), [Proposal::Remove]);
    assert_eq!(proposals("add `a: b`, or remove it"), [written(&["a: b"]), vec![Proposal::Remove]].concat());
    assert_eq!(
        proposals("remove `a`, or add `b: c`"),
        [vec![Proposal::RemoveKey("a".to_owned())], written(&["b: c"])].concat()
    );
    assert_eq!(proposals("end the name with a letter"), []);
}
