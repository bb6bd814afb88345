//! What a verified token says.

use serde_json::Map;
use serde_json::Value;

use crate::clock::Timestamp;

/// The claims of a verified token: texts, numbers and booleans by their dotted paths.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Claims {
    /// In the order of the names. Elements of a list have the path of the list.
    leaves: Box<[Leaf]>,
    /// By the wall clock. `None`: it does not end.
    pub ends: Option<Timestamp>,
}

#[derive(Clone, Debug, Eq, PartialEq)]
struct Leaf {
    path: Box<str>,
    value: Box<str>,
}

/// Paths and values of one token together, in bytes. A long name repeats with each element of a list in it.
const MAX_SIZE: usize = 32 * 1024;

impl Claims {
    /// The claims of a token that was verified; `None`: there are too many to keep.
    pub fn new(payload: &Map<String, Value>, ends: Option<Timestamp>) -> Option<Self> {
        let mut leaves = Leaves::default();
        leaves.add_members("", payload);
        (leaves.size <= MAX_SIZE).then(|| Self { leaves: leaves.found.into(), ends })
    }

    /// Every value at a dotted path: of a list each element. A name may have dots itself, as in
    /// `https://example.com/plan`.
    pub fn values<'c>(&'c self, path: &'c str) -> impl Iterator<Item = &'c str> {
        self.leaves.iter().filter(move |leaf| *leaf.path == *path).map(|leaf| &*leaf.value)
    }

    /// How much memory it takes, in bytes, about.
    pub fn weight(&self) -> usize {
        let leaf = |leaf: &Leaf| size_of::<Leaf>() + leaf.path.len() + leaf.value.len();
        size_of::<Self>() + self.leaves.iter().map(leaf).sum::<usize>()
    }
}

/// What was found so far.
#[derive(Default)]
struct Leaves {
    found: Vec<Leaf>,
    size: usize,
}

impl Leaves {
    fn add_members(&mut self, path: &str, members: &Map<String, Value>) {
        for (name, value) in members {
            if self.size > MAX_SIZE {
                return;
            }
            if path.is_empty() {
                self.add(name, value);
            } else {
                self.add(&format!("{path}.{name}"), value);
            }
        }
    }

    fn add(&mut self, path: &str, value: &Value) {
        if self.size > MAX_SIZE {
            return;
        }
        let text = match value {
            Value::Null => return,
            Value::Bool(value) => value.to_string(),
            Value::Number(number) => number.to_string(),
            Value::String(text) => text.clone(),
            Value::Array(elements) => return elements.iter().for_each(|element| self.add(path, element)),
            Value::Object(members) => return self.add_members(path, members),
        };
        self.size += path.len() + text.len();
        self.found.push(Leaf { path: path.into(), value: text.into() });
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn claims(payload: &Value) -> Option<Claims> {
        Claims::new(payload.as_object().unwrap(), None)
    }

    #[test]
    fn values_have_dotted_paths_and_of_a_list_each_counts() {
        let claims = claims(&json!({
            "sub": "alice",
            "level": 3,
            "ratio": 1.5,
            "admin": true,
            "nothing": null,
            "empty": {},
            "realm_access": {"roles": ["user", "admin", ["nested"], null]},
            "groups": [{"id": 1}, {"id": 2}],
            "https://example.com/plan": "gold",
            "a": {"b": "inner"},
            "a.b": "outer",
        }))
        .unwrap();
        let values = |path| claims.values(path).collect::<Vec<_>>();
        assert_eq!(values("sub"), ["alice"]);
        assert_eq!(values("level"), ["3"]);
        assert_eq!(values("ratio"), ["1.5"]);
        assert_eq!(values("admin"), ["true"]);
        assert_eq!(values("realm_access.roles"), ["user", "admin", "nested"]);
        assert_eq!(values("groups.id"), ["1", "2"]);
        assert_eq!(values("https://example.com/plan"), ["gold"]);
        assert_eq!(values("a.b"), ["inner", "outer"]);
        for path in ["nothing", "empty", "realm_access", "SUB", "", "sub.x"] {
            assert!(values(path).is_empty(), "{path}");
        }
    }

    #[test]
    fn more_claims_than_can_be_kept_are_none() {
        let name = "n".repeat(4000);
        assert!(claims(&json!({ &name: [1, 2, 3] })).is_some());
        assert!(claims(&json!({ &name: vec![1; 1000] })).is_none());
    }
}
