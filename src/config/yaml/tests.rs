use std::fmt::Write;

use proptest::prelude::*;

use super::*;
use crate::config::diagnostic::Mistakes;
use crate::config::source::SourceText;

fn environment(name: &str) -> Option<String> {
    (name == "HOME_NET").then(|| "10.0.0.0/8".to_owned())
}

fn read(text: &str) -> (Option<Node>, Vec<String>) {
    let mut mistakes = Mistakes::default();
    let source = mistakes.source(SourceText::new("f", text.to_owned()));
    let node = parse(text, source, &environment, &mut mistakes);
    let said = mistakes.into_sorted().into_iter();
    (node, said.map(|mistake| format!("{}:{}: {}", mistake.line, mistake.column, mistake.message)).collect())
}

/// A tree in brackets, with the place of each part.
fn shown(node: &Node) -> String {
    let at = format!("@{}:{}+{}", node.at.line, node.at.column, node.at.length);
    match &node.content {
        Content::Nothing => format!("-{at}"),
        Content::Scalar(text) => format!("{text}{at}"),
        Content::List(items) => format!("[{}]", items.iter().map(shown).collect::<Vec<_>>().join(" ")),
        Content::Map(entries) => {
            let entry = |(name, node): &(MapKey, Node)| format!("{}@{}: {}", name.text, name.at.column, shown(node));
            format!("{{{}}}", entries.iter().map(entry).collect::<Vec<_>>().join(" "))
        }
    }
}

#[track_caller]
fn check(text: &str, expected: &str) {
    let (node, mistakes) = read(text);
    assert_eq!(mistakes, Vec::<String>::new());
    assert_eq!(node.as_ref().map(shown).as_deref(), Some(expected));
}

#[track_caller]
fn check_advice(text: &str, expected: &str) {
    let mut mistakes = Mistakes::default();
    let source = mistakes.source(SourceText::new("f", text.to_owned()));
    parse(text, source, &environment, &mut mistakes);
    let help = mistakes.into_sorted().pop().and_then(|mistake| mistake.help).unwrap_or_default();
    assert!(help.contains(expected), "{help}");
}

#[track_caller]
fn refuse(text: &str, expected: &str) {
    let (_, mistakes) = read(text);
    assert_eq!(mistakes, [expected]);
}

#[test]
fn every_part_knows_its_place() {
    check("a: 1\nbé: [x, {y: z}]\n", "{a@1: 1@1:4+1 bé@1: [x@2:6+1 {y@10: z@2:13+1}]}");
    check("a:\n- 'q'\n-\n", "{a@1: [q@2:3+3 -@3:2+1]}");
}

#[test]
fn values_are_not_typed_but_nothing_is_nothing() {
    check("[true, 1.0, 'null', null, ~, \"\"]", "[true@1:2+4 1.0@1:8+3 null@1:13+6 -@1:21+4 -@1:27+1 @1:30+2]");
}

#[test]
fn the_environment_fills_values_and_cannot_change_the_tree() {
    check("a: ${HOME_NET}", "{a@1: 10.0.0.0/8@1:4+11}");
    check("a: \"${GONE:-x: [1]}\"", "{a@1: x: [1]@1:4+17}");
    check("${HOME_NET}: 1", "{${HOME_NET}@1: 1@1:14+1}");
    refuse("a:\n  b: ${GONE}", "2:6: the environment variable `GONE` is not set");
}

#[test]
fn an_alias_repeats_a_value_with_its_place() {
    check("a: &x [1]\nb: *x", "{a@1: [1@1:8+1] b@1: [1@1:8+1]}");
}

#[test]
fn what_would_be_read_twice_is_refused() {
    refuse("a: 1\nb: 2\na: 3", "3:1: the key `a` is repeated");
    refuse("a: 1\n---\nb: 2", "2:1: a second document begins here");
    refuse("a: &x {b: 1}\nc:\n  <<: *x\n", "3:3: merge keys are not supported");
    refuse("a: !!str 1", "1:4: the tag `!!str` has no meaning here");
    refuse("[a]: 1", "1:1: a key must be a name, not a list");
}

#[test]
fn a_brace_that_needs_quotes_is_distinguished_from_an_unclosed_one() {
    check_advice("{path: /users/{id}}", "in quotes");
    check_advice("{max_keys: ${MAX_KEYS}}", "in quotes");
    check_advice("{a: 1", "close every");
}

#[test]
fn a_tree_has_bounds() {
    let deep = "[".repeat(100);
    refuse(&deep, "1:33: lists and maps are nested more than 32 deep");
    let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..10 {
        let before = format!("*a{}, ", level - 1).repeat(10);
        let _ = writeln!(bomb, "a{level}: &a{level} [{before}]");
    }
    let (node, mistakes) = read(&bomb);
    assert!(node.is_none());
    assert!(mistakes[0].contains("more than 200000 values"), "{mistakes:?}");
    let (node, mistakes) = read("a: &x [*x]");
    assert!(node.is_none());
    assert_eq!(mistakes.len(), 1);
}

#[test]
fn text_that_holds_nothing_is_no_tree() {
    assert_eq!(read("").0, None);
    assert_eq!(read("# only a comment\n").0, None);
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in "\\PC{0,200}") {
        read(&text);
    }

    #[test]
    fn no_near_yaml_makes_it_panic(text in "[-a-c:&*!|>'\"\\[\\]{}#%@?, \t\n$\u{e9}0~]{0,80}") {
        read(&text);
    }
}
