//! Paths of elements in an XML body.

use smallvec::SmallVec;

/// A path of local names, from the outer element to the one whose text counts. Elements outside the path and prefixes
/// do not matter.
#[derive(Debug)]
pub(crate) struct ElementPath<'p>(pub(super) SmallVec<[PathStep<'p>; 4]>);

#[derive(Clone, Copy, Debug)]
pub(super) struct PathStep<'p> {
    pub(super) name: &'p str,
    /// Which of several sibling elements with this name, counted from 0; `None`: all of them.
    pub(super) nth: Option<usize>,
}

impl<'p> ElementPath<'p> {
    /// `params.param.0.value`: names, and numbers that select among siblings.
    pub(crate) fn dotted(path: &'p str) -> Self {
        let mut steps: SmallVec<[PathStep<'p>; 4]> = SmallVec::new();
        for name in path.split('.') {
            match (steps.last_mut(), name.parse()) {
                (Some(step), Ok(nth)) if step.nth.is_none() => step.nth = Some(nth),
                _ => steps.push(PathStep { name, nth: None }),
            }
        }
        Self(steps)
    }

    /// Every element with this name.
    pub(crate) fn name(name: &'p str) -> Self {
        Self::nested(&[name])
    }

    /// The path of these nested elements.
    pub(super) fn nested(names: &[&'p str]) -> Self {
        Self(names.iter().map(|&name| PathStep { name, nth: None }).collect())
    }
}
