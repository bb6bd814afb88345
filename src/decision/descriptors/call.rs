//! What a proxy asks about in one call.

use crate::key::Descriptor;

/// The descriptors of one call, which pass together or not at all.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct DescriptorCall {
    pub domain: String,
    pub descriptors: Vec<PricedDescriptor>,
    /// What each descriptor costs that does not say it itself. As Envoy means it, zero is one.
    pub hits: u32,
}

/// A descriptor, and what it costs.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct PricedDescriptor {
    pub descriptor: Descriptor,
    /// Zero: nothing is charged, but an exhausted limit denies. `None`: as the call says.
    pub hits: Option<u64>,
}

/// Why a call cannot be decided.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum InvalidCall {
    #[error("the domain is empty")]
    NoDomain,
    #[error("there is no descriptor")]
    NoDescriptors,
    #[error("there are {0} descriptors, at most {MAX_DESCRIPTORS} are decided together")]
    TooManyDescriptors(usize),
    #[error("a descriptor has {0} entries, at most {MAX_ENTRIES} are read")]
    TooManyEntries(usize),
    #[error("an entry of a descriptor comes with more than {max} values", max = crate::key::extract::MAX_VALUES)]
    TooManyValues,
    #[error("the descriptors meet limits under more than {max} keys", max = MAX_COUNTED_KEYS)]
    TooManyKeys,
    #[error("the hits under one key add up to more than {max}", max = u32::MAX)]
    TooManyHits,
}

impl InvalidCall {
    /// The part of the call that it is about, as Envoy's message names it.
    pub fn part(self) -> &'static str {
        match self {
            Self::NoDomain => "domain",
            Self::NoDescriptors | Self::TooManyDescriptors(_) | Self::TooManyKeys => "descriptors",
            Self::TooManyEntries(_) | Self::TooManyValues => "descriptors[].entries",
            Self::TooManyHits => "hits_addend",
        }
    }
}

/// Envoy makes a descriptor for each entry of `rate_limits` of a route. More in one call are a mistake or an attack.
pub const MAX_DESCRIPTORS: usize = 128;

/// Envoy makes an entry for each of the `actions`.
pub const MAX_ENTRIES: usize = 64;

/// More keys in one call are a mistake or an attack. Redis decides so many in about a millisecond.
pub const MAX_COUNTED_KEYS: usize = 1024;

impl DescriptorCall {
    /// Whether the call stays within the bounds.
    pub(super) fn check(&self) -> Result<(), InvalidCall> {
        let longest = self.descriptors.iter().map(|priced| priced.descriptor.entries.len()).max();
        match (self.descriptors.len(), longest) {
            _ if self.domain.is_empty() => Err(InvalidCall::NoDomain),
            (0, _) | (_, None) => Err(InvalidCall::NoDescriptors),
            (count, _) if count > MAX_DESCRIPTORS => Err(InvalidCall::TooManyDescriptors(count)),
            (_, Some(count)) if count > MAX_ENTRIES => Err(InvalidCall::TooManyEntries(count)),
            _ => Ok(()),
        }
    }

    /// What a descriptor of this call costs.
    pub(super) fn hits_of(&self, priced: &PricedDescriptor) -> u64 {
        priced.hits.unwrap_or_else(|| u64::from(self.hits.max(1)))
    }
}
