//! What is one account for a real application is one budget: names folded as recipes fold them are held against what
//! applications, frameworks and databases make of thousands of spellings.
//!
//! `NAMES=100000` draws that many.

mod judge;
mod spelling;

use std::collections::{BTreeMap, BTreeSet};
use std::{env, fs};

use portcullis::config::{load_with, render};
use portcullis::rules::client::ClientIp;
use portcullis::rules::key::{KeySpec, ValueSource, extract};
use portcullis::rules::request::{BodyFields, CanonicalHead};
use portcullis::wire::head;
use portcullis::wire::head::FieldName;

use self::judge::Judges;
pub(crate) use self::spelling::{Alphabet, Draw};
use crate::attack::form;

/// Accounts, as an application knows them.
const NAMES: [&str; 16] = [
    "alice",
    "bob.smith",
    "josé",
    "straße",
    "o'neil",
    "user_1",
    "admin",
    "иван",
    "андрей",
    "李雷",
    "müller",
    "mueller",
    "søren",
    "Łukasz",
    "αλέξης",
    "bob@example.com",
];

/// How many spellings are drawn where nothing else is said.
const FEW: usize = 3000;

/// A key as it is stored.
type Key = Vec<u8>;

#[test]
fn no_spelling_that_an_application_takes_for_an_account_has_a_budget_of_its_own() {
    let many = env::var("NAMES").map_or(FEW, |many| many.parse().expect("a number of spellings"));
    let alphabet = Alphabet::new();
    let mut draw = Draw::new(1);
    let mut spellings: Vec<String> = NAMES.map(str::to_owned).to_vec();
    spellings.extend((0..many).map(|number| alphabet.spell(NAMES[number % NAMES.len()], &mut draw)));

    let spec = folded();
    let keys: Vec<Option<BTreeSet<Key>>> = spellings.iter().map(|spelling| keys(&spec, spelling)).collect();
    let mut slipped = Vec::new();
    let mut taken = BTreeMap::new();
    for (judge, accounts) in Judges::start().accounts(&spellings, NAMES.len()) {
        for (account, places) in accounts {
            // The plain name is the first of them.
            let mut shared = keys[places[0]].clone().expect("a plain name is not refused");
            for place in places {
                *taken.entry(judge.clone()).or_insert(0) += 1;
                // What is refused reaches no application.
                let Some(keys) = &keys[place] else { continue };
                let common: BTreeSet<Key> = shared.intersection(keys).cloned().collect();
                if common.is_empty() {
                    slipped.push(format!("{judge}\t{account}\t{:?}", spellings[place]));
                } else {
                    shared = common;
                }
            }
        }
    }
    let refused = keys.iter().filter(|keys| keys.is_none()).count();
    assert!(refused < many / 5, "{refused} refused");
    assert!(taken.values().all(|count| *count > NAMES.len() / 2), "an application takes none: {taken:?}");
    assert!(slipped.is_empty(), "{} slip past, such as\n{}", slipped.len(), slipped.join("\n"));
}

/// The key of a login as recipes count it.
fn folded() -> KeySpec {
    let folder = tempfile::tempdir().expect("a folder for a file");
    let file = folder.path().join("portcullis.yaml");
    let limit = "{name: login, key: [{param.u: {fold: letters}}], rate: 5/hour}";
    let text = format!("listen: 127.0.0.1:0\nupstream: http://127.0.0.1:1\nlimits: [{limit}]\n");
    fs::write(&file, text).expect("a file in the folder");
    let settings = load_with(&file, &|_| None).unwrap_or_else(|mistakes| panic!("{}", render(&mistakes, false)));
    settings.policy.limits[0].key.clone()
}

/// What is charged for a login by this name; nothing where it is refused.
fn keys(spec: &KeySpec, name: &str) -> Option<BTreeSet<Key>> {
    let mut sent = head::RequestHead::to("POST".parse().expect("a method"), "/login").expect("a target");
    let urlencoded = b"application/x-www-form-urlencoded";
    sent.fields.append(&"content-type".parse::<FieldName>().expect("a name"), urlencoded);
    let body = form(&[("u", name)]);
    let fields = BodyFields::read(&sent.fields, &body.into(), true, 65536);
    let client = ClientIp::new("192.0.2.1".parse().expect("an address"));
    let head = CanonicalHead::read(&sent, client);
    let source = ValueSource::new(&head, &fields);
    let found = extract::keys(spec, &source).ok()?;
    Some(found.keys.iter().map(|candidate| candidate.key.as_bytes().to_vec()).collect())
}
