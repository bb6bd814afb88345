//! The texts of a kept request in one buffer, which is filled again for the next request that is kept in its place.

/// The texts of a request. One that is empty is not known.
#[derive(Clone, Debug, Default)]
pub(super) struct KeptText {
    buffer: String,
    /// Where each text ends, in the order of [`Texts`].
    ends: [u16; TEXTS],
}

/// The texts of a request, to be kept.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Texts<'a> {
    pub(super) id: &'a str,
    pub(super) host: &'a str,
    pub(super) path: &'a str,
    pub(super) ban: &'a str,
    pub(super) list: &'a str,
}

const TEXTS: usize = 5;

/// Longer paths are cut.
const MAX_PATH: usize = 512;

/// Every other text is cut at this length. Names of hosts are not longer, and ids and bans are short.
const MAX_OTHER: usize = 255;

/// A buffer that was larger for a long path becomes as small as this again. It holds what most requests have.
const USUAL: usize = 256;

impl KeptText {
    /// Takes the place of what was there.
    pub(super) fn set(&mut self, Texts { id, host, path, ban, list }: Texts<'_>) {
        let texts =
            [cut(id, MAX_OTHER), cut(host, MAX_OTHER), cut(path, MAX_PATH), cut(ban, MAX_OTHER), cut(list, MAX_OTHER)];
        let length = texts.iter().map(|text| text.len()).sum();
        self.buffer.clear();
        if length <= USUAL && self.buffer.capacity() > USUAL {
            self.buffer.shrink_to(USUAL);
        }
        self.buffer.reserve(length);
        for (text, end) in texts.into_iter().zip(&mut self.ends) {
            self.buffer.push_str(text);
            *end = u16::try_from(self.buffer.len()).unwrap_or(u16::MAX);
        }
    }

    pub(super) fn get(&self) -> Texts<'_> {
        let mut start = 0;
        let [id, host, path, ban, list] = self.ends.map(|end| {
            let text = self.buffer.get(start..usize::from(end)).unwrap_or_default();
            start = usize::from(end);
            text
        });
        Texts { id, host, path, ban, list }
    }
}

/// The start of a text, cut at the end of a character.
fn cut(text: &str, most: usize) -> &str {
    if text.len() <= most {
        return text;
    }
    let end = (0..=most).rev().find(|&end| text.is_char_boundary(end));
    &text[..end.unwrap_or_default()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_cut_at_the_end_of_a_character_and_leaves_no_large_buffer() {
        let mut text = KeptText::default();
        let long = "é".repeat(300);
        text.set(Texts { id: "1", host: &long, path: &long, ban: "b", list: "" });
        let Texts { id, host, path, ban, list } = text.get();
        assert_eq!((id, host.len(), path.len(), ban, list), ("1", 254, 512, "b", ""));
        assert!(text.buffer.capacity() <= 2 * (4 * MAX_OTHER + MAX_PATH));
        text.set(Texts { id: "2", host: "h", path: "/", ban: "", list: "l" });
        let Texts { id, host, path, ban, list } = text.get();
        assert_eq!((id, host, path, ban, list), ("2", "h", "/", "", "l"));
        assert!(text.buffer.capacity() <= USUAL);
    }
}
