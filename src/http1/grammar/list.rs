//! Comma-separated lists.

/// Whether a list has this element, in any case.
pub fn list_has(list: &[u8], element: &[u8]) -> bool {
    elements(list).any(|one| one.eq_ignore_ascii_case(element))
}

/// The elements of a list, without the blanks around them.
pub fn elements(list: &[u8]) -> impl Iterator<Item = &[u8]> {
    list.split(|byte| *byte == b',').map(<[u8]>::trim_ascii)
}
