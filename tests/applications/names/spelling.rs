//! Spellings of names, made up without end: the same ones each time.

/// What applications and databases take for an ASCII letter, a digit or two of them: measured over all of Unicode.
const LOOKALIKES: &str = include_str!("lookalikes.txt");

/// What some application drops: marks, blanks, characters that are not seen, punctuation, tags, references, octets.
const DROPPED: [&str; 64] = [
    "\u{301}",
    "\u{308}",
    "\u{327}",
    "\u{345}",
    "\u{363}",
    "\u{5b4}",
    "\u{64e}",
    "\u{200b}",
    "\u{200d}",
    "\u{feff}",
    "\u{ad}",
    "\u{2060}",
    "\u{202e}",
    "\u{fe0f}",
    "\u{1f}",
    "\u{7f}",
    "\u{85}",
    "\0",
    " ",
    "\t",
    "\n",
    "\r\n",
    "\u{a0}",
    "\u{3000}",
    "\u{2003}",
    "_",
    "-",
    ".",
    "!",
    "'",
    "\"",
    "*",
    ":",
    "/",
    ";",
    "²",
    "™",
    "№",
    "ª",
    "£",
    "€",
    "😀",
    "<b>",
    "</b>",
    "<b1>",
    "<a b=\">\">",
    "<!-- x -->",
    "<?php x ?>",
    "<script>x</script>",
    "<STYLE a>y</style>",
    "<<b>b>",
    "<b <i>>",
    "&x1;",
    "&amp;",
    "&#8203;",
    "&#x200b;",
    "& a b <c> ;",
    "&;x;",
    "%01",
    "%41",
    "%4%411",
    "%3<b>C",
    "%zz",
    "\u{1d6fc}",
];

/// What makes a name long: none of it is seen by an application that drops it.
const PADDING: [&str; 8] = ["<x>", "\u{200b}", "%41", "&x;", "\u{301}", " ", "&", "<"];

/// Numbers that look drawn.
#[derive(Debug)]
pub(crate) struct Draw(u64);

impl Draw {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).expect("31 bits") % bound
    }

    fn one<'t, T: ?Sized>(&mut self, items: &[&'t T]) -> &'t T {
        items[self.below(items.len())]
    }
}

/// What may stand for letters and digits of a name.
#[derive(Debug)]
pub(crate) struct Alphabet(Vec<(&'static str, Vec<char>)>);

impl Alphabet {
    pub(crate) fn new() -> Self {
        let line = |line: &'static str| line.split_once(' ').map(|(text, chars)| (text, chars.chars().collect()));
        Self(LOOKALIKES.lines().filter_map(line).collect())
    }

    /// A spelling of the name that some application may take for it.
    pub(crate) fn spell(&self, name: &str, draw: &mut Draw) -> String {
        let mut spelling = name.to_owned();
        for _ in 0..=draw.below(4) {
            spelling = self.change(&spelling, draw);
        }
        spelling
    }

    fn change(&self, name: &str, draw: &mut Draw) -> String {
        match draw.below(16) {
            0..=6 => self.replace(name, draw),
            7 | 8 => insert(name, draw.one(&DROPPED), draw),
            9 => insert(name, &draw.one(&DROPPED).repeat(2), draw),
            10 | 11 => flip(name, draw),
            12 => format!("{}{name}{}", draw.one(&DROPPED), draw.one(&DROPPED)),
            13 => insert(name, &format!("&#{};", 33 + draw.below(90)), draw),
            14 => insert(name, &format!("%{:02x}", draw.below(256)), draw),
            _ => padded(name, draw),
        }
    }

    /// One place of the name is replaced by what may stand for it.
    fn replace(&self, name: &str, draw: &mut Draw) -> String {
        let places: Vec<usize> = name.char_indices().map(|(place, _)| place).collect();
        if places.is_empty() {
            return name.to_owned();
        }
        let (before, rest) = name.split_at(places[draw.below(places.len())]);
        let starts = |text: &str| rest.get(..text.len()).is_some_and(|start| start.eq_ignore_ascii_case(text));
        let fitting: Vec<&(&str, Vec<char>)> = self.0.iter().filter(|(text, _)| starts(text)).collect();
        if fitting.is_empty() {
            return name.to_owned();
        }
        let (text, chars) = draw.one(&fitting);
        format!("{before}{}{}", chars[draw.below(chars.len())], &rest[text.len()..])
    }
}

fn insert(name: &str, text: &str, draw: &mut Draw) -> String {
    let places: Vec<usize> = name.char_indices().map(|(place, _)| place).chain([name.len()]).collect();
    let (before, after) = name.split_at(places[draw.below(places.len())]);
    format!("{before}{text}{after}")
}

fn flip(name: &str, draw: &mut Draw) -> String {
    let mut flipped = String::with_capacity(name.len());
    for char in name.chars() {
        match draw.below(3) {
            0 => flipped.extend(char.to_uppercase()),
            1 => flipped.extend(char.to_lowercase()),
            _ => flipped.push(char),
        }
    }
    flipped
}

/// What is longer than any name, of which an application drops the most.
fn padded(name: &str, draw: &mut Draw) -> String {
    let many = 100 + draw.below(700);
    match draw.below(7) {
        0 => format!("User:{name}"),
        1 => format!("{name}<{}", draw.one(&DROPPED)),
        2 => insert(name, &format!("<{}>", "y".repeat(many)), draw),
        3 => insert(name, &format!("&{};", "z".repeat(many)), draw),
        4 => format!("{}{name}", draw.one(&PADDING).repeat(many)),
        _ => insert(name, &draw.one(&PADDING).repeat(many), draw),
    }
}
