//! Descriptors as tests write them.

use portcullis::rules::decision::descriptors::PricedDescriptor;
use portcullis::rules::key::{Descriptor, DescriptorEntry};

/// A descriptor of entries: `user=alice path=/`.
pub(crate) fn descriptor(entries: &str) -> PricedDescriptor {
    let entry = |text: &str| {
        let (name, value) = text.split_once('=').unwrap_or((text, ""));
        DescriptorEntry { name: name.to_owned(), value: value.to_owned() }
    };
    let descriptor = Descriptor { entries: entries.split_whitespace().map(entry).collect() };
    PricedDescriptor { descriptor, hits: None }
}
