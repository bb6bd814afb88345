//! Routes with a regular expression, by a text that every path that it matches has.

use aho_corasick::AhoCorasick;
use aho_corasick::AhoCorasickKind;
use hashbrown::HashMap;
use smallvec::SmallVec;

use super::candidates::Candidates;
use super::hosts::Hosts;
use crate::route::Condition;
use crate::route::HostPattern;
use crate::route::PathRegex;
use crate::route::RouteId;
use crate::route::required_texts::AnyOf;

/// Finds all texts in one walk over a path.
#[derive(Clone, Debug)]
pub(super) struct TextIndex {
    automaton: AhoCorasick,
    /// By the number of the text.
    routes: Vec<Hosts<Vec<RouteId>>>,
}

/// What goes into the index.
#[derive(Debug, Default)]
pub(super) struct Texts<'r> {
    numbers: HashMap<&'r str, usize>,
    routes: Vec<Hosts<Vec<RouteId>>>,
}

/// How many expressions require a text.
#[derive(Debug, Default)]
pub(super) struct TextCounts<'r>(HashMap<&'r str, usize>);

impl<'r> TextCounts<'r> {
    pub(super) fn of(conditions: impl Iterator<Item = &'r Condition>) -> Self {
        let mut counts = HashMap::new();
        let expressions = conditions.filter_map(|condition| condition.path_regex.as_ref());
        for text in expressions.flat_map(PathRegex::required).flatten() {
            *counts.entry(&**text).or_default() += 1;
        }
        Self(counts)
    }

    /// Of what an expression requires, the texts that fewest others require; among equals the longest. `None`: it may match any path.
    pub(super) fn rarest(&self, expression: &'r PathRegex) -> Option<&'r AnyOf> {
        let count = |texts: &AnyOf| texts.iter().map(|text| self.0[&**text]).sum::<usize>();
        let shortest = |texts: &AnyOf| texts.iter().map(|text| text.len()).min();
        expression.required().iter().min_by_key(|texts| (count(texts), std::cmp::Reverse(shortest(texts))))
    }
}

impl<'r> Texts<'r> {
    /// Adds a route, whose id is larger than those before.
    pub(super) fn insert(&mut self, host: Option<&HostPattern>, texts: &'r AnyOf, id: RouteId) {
        for text in texts {
            let next = self.numbers.len();
            let number = *self.numbers.entry(text).or_insert(next);
            if number == next {
                self.routes.push(Hosts::default());
            }
            self.routes[number].of_mut(host).push(id);
        }
    }

    /// `None`: there are no texts.
    pub(super) fn index(self) -> Option<TextIndex> {
        if self.routes.is_empty() {
            return None;
        }
        let mut texts: Vec<(&str, usize)> = self.numbers.into_iter().collect();
        texts.sort_unstable_by_key(|(_, number)| *number);
        let texts = texts.into_iter().map(|(text, _)| text);
        // All other kinds take a table of all letters for each state.
        let automaton = AhoCorasick::builder().kind(Some(AhoCorasickKind::ContiguousNFA)).build(texts);
        // A configuration bounds how much all expressions take, texts included.
        Some(TextIndex { automaton: automaton.expect("fewer letters than states"), routes: self.routes })
    }
}

impl TextIndex {
    /// Adds the routes for one host of which a text is in a path.
    pub(super) fn find(&self, host: &str, path: &str, found: &mut Candidates<'_>) {
        let texts = self.automaton.find_overlapping_iter(path).map(|text| text.pattern().as_usize());
        let mut texts: SmallVec<[usize; 8]> = texts.collect();
        // A path may repeat a text as often as it has room.
        texts.sort_unstable();
        texts.dedup();
        for routes in texts.into_iter().flat_map(|text| self.routes[text].of(host)) {
            found.add_each(routes);
        }
    }
}
