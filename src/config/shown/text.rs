//! The two forms in which a configuration is shown.

use serde::Serialize;
use serde::Serializer;
use serde::ser::SerializeMap;
use serde_json::value::RawValue;

use super::mask::mask;
use super::yaml::write;
use crate::config::yaml::Content;
use crate::config::yaml::Node;

/// A configuration without its secrets. Either text can be read as a configuration again.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ShownConfig {
    pub yaml: String,
    pub json: String,
}

impl ShownConfig {
    /// `root` is the whole document.
    pub(in crate::config) fn of(root: &Node) -> Self {
        let masked = mask(root);
        let json = serde_json::to_string_pretty(&Json(&masked)).expect("the keys are text");
        Self { yaml: write(&masked), json }
    }
}

/// In the order of the file.
struct Json<'n>(&'n Node);

impl Serialize for Json<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0.content {
            Content::Nothing => serializer.serialize_none(),
            Content::Scalar(text) => match text.as_str() {
                "true" => serializer.serialize_bool(true),
                "false" => serializer.serialize_bool(false),
                text => match (whole_number(text), decimal(text)) {
                    (Some(number), _) => serializer.serialize_u64(number),
                    (None, Some(number)) => number.serialize(serializer),
                    (None, None) => serializer.serialize_str(text),
                },
            },
            Content::List(items) => serializer.collect_seq(items.iter().map(Json)),
            Content::Map(entries) => {
                let mut map = serializer.serialize_map(Some(entries.len()))?;
                for (key, value) in entries {
                    map.serialize_entry(&key.text, &Json(value))?;
                }
                map.end()
            }
        }
    }
}

/// Only where the number is written as the text was.
fn whole_number(text: &str) -> Option<u64> {
    text.parse().ok().filter(|number: &u64| number.to_string() == text)
}

/// A number with a fraction, in the digits of the text: `1.50` may be a text elsewhere, and must be read again as it was.
fn decimal(text: &str) -> Option<Box<RawValue>> {
    let (whole, fraction) = text.split_once('.')?;
    let is_number = |digits: &str| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let is_decimal = is_number(whole) && is_number(fraction);
    // JSON has no numbers such as `007.5`.
    is_decimal.then(|| RawValue::from_string(text.to_owned()).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;
    use crate::config::mistakes::Mistakes;
    use crate::config::yaml;

    fn parse(text: &str) -> Node {
        let mut mistakes = Mistakes::default();
        let root = yaml::parse(text, 0, &|_| None, &mut mistakes);
        assert!(mistakes.is_empty(), "{text}\n{mistakes:?}");
        root.expect("a document")
    }

    /// The text of a tree, without its places.
    fn plain(node: &Node) -> String {
        serde_json::to_string(&Json(node)).unwrap()
    }

    #[test]
    fn what_is_shown_can_be_read_again() {
        let files = fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("config")).unwrap();
        let files = files.map(|file| file.unwrap().path()).filter(|path| path.extension().is_some_and(|e| e == "yaml"));
        let texts = files.map(|path| fs::read_to_string(path).unwrap()).chain([
            "a: \"x: y # z\"\nb: [\"-\", \"~\", \"\", \"a,b\", 007, 1.50, true, [], {}]\nc: {\"*\": {d: \"tab\\t\\n\"}}".to_owned(),
            "a:\n  - - nested\n    - [list]\n  - {map: [{deep: 'it''s'}]}\n\"quoted: key\": ' space '".to_owned(),
        ]);
        for text in texts {
            let root = parse(&text);
            let shown = ShownConfig::of(&root);
            assert_eq!(plain(&parse(&shown.yaml)), plain(&mask(&root)), "{}", shown.yaml);
            assert_eq!(plain(&parse(&shown.json)), plain(&mask(&root)), "{}", shown.json);
        }
    }

    #[test]
    fn numbers_are_numbers_in_json_with_the_digits_they_were_written_with() {
        let numbers = "a: [0, 20, 0.01, 0.50, 1.0, 007, 1.2.3, .5, 5., -1.5, 1e3, 00.5]";
        let expected = r#"{"a":[0,20,0.01,0.50,1.0,"007","1.2.3",".5","5.","-1.5","1e3","00.5"]}"#;
        assert_eq!(plain(&parse(numbers)), expected);
        assert_eq!(plain(&parse(&ShownConfig::of(&parse(numbers)).json)), expected);
    }

    #[test]
    fn a_literal_that_looks_like_a_variable_stays_one() {
        let shown = ShownConfig::of(&parse("body: 'costs $${PRICE}'"));
        assert_eq!(plain(&parse(&shown.yaml)), r#"{"body":"costs ${PRICE}"}"#);
    }

    #[test]
    fn no_secret_is_shown() {
        let text = "\
store: {redis: {url: 'redis://user:hunter2@127.0.0.1:6379/0'}}
upstream: http://10.0.0.1:8000
notify: {ops: {webhook: 'https://hooks.example.com/T0/hunter2?x=hunter2'}}
routes:
  - match: {path: /a, header: {x-api-key: hunter2, accept: 'text/*'}, cookie: {session: hunter2}, query: {token: hunter2, step: '?'}}
";
        let ShownConfig { yaml, json } = ShownConfig::of(&parse(text));
        for shown in [&yaml, &json] {
            assert!(!shown.contains("hunter2"), "{shown}");
            for kept in ["127.0.0.1:6379/0", "10.0.0.1:8000", "https://hooks.example.com/", "text/*", "x-api-key", "/a"]
            {
                assert!(shown.contains(kept), "{kept}: {shown}");
            }
        }
        // The length of a secret is not shown either.
        assert!(yaml.contains("redis://***@127.0.0.1"), "{yaml}");
    }
}
