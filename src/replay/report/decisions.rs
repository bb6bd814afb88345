//! Requests counted by what became of them.

use serde::Serialize;
use serde::Serializer;

use crate::record::DecisionLabel;

/// How many requests had each decision. As JSON, an object of those that there were.
#[derive(Clone, Debug, Default)]
pub struct Decisions([u64; DecisionLabel::ALL.len()]);

impl Decisions {
    pub fn add(&mut self, label: DecisionLabel) {
        self.0[place(label)] += 1;
    }

    pub fn of(&self, label: DecisionLabel) -> u64 {
        self.0[place(label)]
    }

    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// Those that there were, in the order of the labels.
    pub fn all(&self) -> impl Iterator<Item = (DecisionLabel, u64)> {
        DecisionLabel::ALL.into_iter().zip(self.0).filter(|(_, count)| *count > 0)
    }
}

impl Serialize for Decisions {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.all().map(|(label, count)| (label.as_str(), count)))
    }
}

fn place(label: DecisionLabel) -> usize {
    DecisionLabel::ALL.iter().position(|known| *known == label).expect("all labels are there")
}
