//! The languages that the gateway's own pages are written in, and what they say in each.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::{Deserialize, Deserializer};

use crate::wire::head::{Fields, KnownName};

/// A language that the gateway's own pages are written in.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Language {
    English,
    German,
    French,
    Spanish,
    Italian,
    Dutch,
    Portuguese,
    Polish,
    Czech,
    Swedish,
    Japanese,
    Chinese,
}

impl Language {
    pub const ALL: [Self; 12] = [
        Self::English,
        Self::German,
        Self::French,
        Self::Spanish,
        Self::Italian,
        Self::Dutch,
        Self::Portuguese,
        Self::Polish,
        Self::Czech,
        Self::Swedish,
        Self::Japanese,
        Self::Chinese,
    ];

    /// Its tag (RFC 5646), which is also its part in the name of an operator's page.
    pub fn tag(self) -> &'static str {
        match self {
            Self::English => "en",
            Self::German => "de",
            Self::French => "fr",
            Self::Spanish => "es",
            Self::Italian => "it",
            Self::Dutch => "nl",
            Self::Portuguese => "pt",
            Self::Polish => "pl",
            Self::Czech => "cs",
            Self::Swedish => "sv",
            Self::Japanese => "ja",
            Self::Chinese => "zh",
        }
    }

    pub fn from_tag(tag: &[u8]) -> Option<Self> {
        Self::ALL.into_iter().find(|language| language.tag().as_bytes().eq_ignore_ascii_case(tag))
    }

    /// The position of the plural form for a count, by the rules of CLDR for whole numbers. The script of the page asks the
    /// browser for the same rules.
    fn plural_form(self, count: u64) -> usize {
        match (self, count) {
            (Self::Japanese | Self::Chinese, _) | (_, 1) => 0,
            (Self::Polish, _) if matches!(count % 10, 2..=4) && !matches!(count % 100, 12..=14) => 1,
            (Self::Czech, 2..=4) => 1,
            (Self::Polish | Self::Czech, _) => 2,
            _ => 1,
        }
    }
}

// Reads `Accept-Language`.

/// A longer header is from no browser. It is not read.
const MAX_ACCEPT_LANGUAGE: usize = 1000;

/// The weight of a range without `q`, in thousandths.
pub const MAX_QUALITY: u16 = 1000;

/// The language that a client prefers, by `Accept-Language` (RFC 9110, section 12.5.4) and lookup (RFC 4647, section 3.4):
/// a language is found by every range that begins with it. English where the header is absent, malformed or too long, or
/// names no language of the gateway.
pub fn preferred_language(fields: &Fields) -> Language {
    negotiate(fields.get_all(KnownName::ACCEPT_LANGUAGE)).unwrap_or(Language::English)
}

/// `None`: the header is malformed, or names no language.
fn negotiate<'h>(lines: impl Iterator<Item = &'h [u8]>) -> Option<Language> {
    let mut qualities = [None::<u16>; Language::ALL.len()];
    let (mut any, mut best, mut length) = (None::<u16>, None::<(u16, Language)>, 0);
    for line in lines {
        length += line.len();
        if length > MAX_ACCEPT_LANGUAGE {
            return None;
        }
        // A list may have empty elements.
        for range in line.split(|byte| *byte == b',').map(<[u8]>::trim_ascii).filter(|range| !range.is_empty()) {
            let (range, quality) = weighted(range)?;
            let (primary, is_whole) = primary_subtag(range)?;
            if primary == b"*" {
                any = any.max(Some(quality));
            } else if let Some(language) = Language::from_tag(primary) {
                // `de-CH;q=0` refuses a dialect, and not the language.
                if is_whole || quality > 0 {
                    let known = &mut qualities[language as usize];
                    *known = (*known).max(Some(quality));
                }
                // Of two languages with one weight the first in the list is preferred.
                if quality > 0 && best.is_none_or(|(most, _)| quality > most) {
                    best = Some((quality, language));
                }
            }
        }
    }
    // `*` is every language that no other range names.
    let unnamed = || Language::ALL.into_iter().find(|language| qualities[*language as usize].is_none());
    match (best, any) {
        (Some((most, _)), Some(any)) if any > most => unnamed(),
        (None, Some(1..)) => unnamed(),
        (best, _) => best.map(|(_, language)| language),
    }
}

/// A range and its weight.
fn weighted(range: &[u8]) -> Option<(&[u8], u16)> {
    let mut parts = range.splitn(2, |byte| *byte == b';').map(<[u8]>::trim_ascii);
    let range = parts.next()?;
    let Some(weight) = parts.next() else { return Some((range, MAX_QUALITY)) };
    let (b"q=" | b"Q=", value) = weight.split_at_checked(2)? else { return None };
    Some((range, quality(value)?))
}

/// The first subtag of a well-formed range, and whether it is the whole range.
fn primary_subtag(range: &[u8]) -> Option<(&[u8], bool)> {
    if range == b"*" {
        return Some((range, true));
    }
    let mut subtags = range.split(|byte| *byte == b'-');
    let primary = subtags.next()?;
    let is_subtag = |subtag: &[u8]| (1..=8).contains(&subtag.len()) && subtag.iter().all(u8::is_ascii_alphanumeric);
    let is_well_formed = is_subtag(primary) && primary.iter().all(u8::is_ascii_alphabetic) && subtags.all(is_subtag);
    is_well_formed.then_some((primary, primary.len() == range.len()))
}

/// A weight in thousandths (RFC 9110, section 12.4.2); `None`: it is malformed.
pub fn quality(value: &[u8]) -> Option<u16> {
    let (whole, fraction) = match value {
        [whole, b'.', fraction @ ..] => (*whole, fraction),
        [whole] => (*whole, &b""[..]),
        _ => return None,
    };
    if !matches!(whole, b'0' | b'1') || fraction.len() > 3 || !fraction.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let digit = |position: usize| u16::from(fraction.get(position).map_or(0, |digit| digit - b'0'));
    let thousandths = u16::from(whole - b'0') * MAX_QUALITY + digit(0) * 100 + digit(1) * 10 + digit(2);
    Some(thousandths.min(MAX_QUALITY))
}

// What the pages say.

/// What happened, as a page tells a person.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Message {
    WrongPasswords,
    TooManyAttempts,
    AccessDenied,
    NotUnderstood,
    NotFound,
    TookTooLong,
    TooLarge,
    AddressTooLong,
    WrongConnection,
    TooMuchSentAlong,
    NoAnswer,
    Unavailable,
    TooSlow,
}

impl Message {
    /// Whether the same request may pass another time.
    pub fn is_passing(self) -> bool {
        match self {
            Self::WrongPasswords
            | Self::TooManyAttempts
            | Self::TookTooLong
            | Self::WrongConnection
            | Self::TooMuchSentAlong
            | Self::NoAnswer
            | Self::Unavailable
            | Self::TooSlow => true,
            Self::AccessDenied | Self::NotUnderstood | Self::NotFound | Self::TooLarge | Self::AddressTooLong => false,
        }
    }
}

/// All sentences of one language. None has a character that HTML escapes.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Texts {
    /// Stands between two sentences.
    stop: &'static str,
    wrong_passwords: &'static str,
    too_many_attempts: &'static str,
    access_denied: [&'static str; 2],
    not_understood: [&'static str; 2],
    not_found: [&'static str; 2],
    took_too_long: [&'static str; 2],
    too_large: [&'static str; 2],
    address_too_long: [&'static str; 2],
    wrong_connection: [&'static str; 2],
    too_much_sent_along: [&'static str; 2],
    no_answer: [&'static str; 2],
    unavailable: [&'static str; 2],
    too_slow: [&'static str; 2],
    /// With a place for the time.
    pub wait: Pattern,
    pub later: &'static str,
    pub now: &'static str,
    /// With a place for the count, by plural form.
    seconds: Vec<Pattern>,
    minutes: Vec<Pattern>,
    hours: Vec<Pattern>,
    days: Vec<Pattern>,
    pub try_again: &'static str,
    pub go_back: &'static str,
    pub home: &'static str,
    pub request: &'static str,
    pub challenge: ChallengeTexts,
}

/// A text with a place, written `{}`.
#[derive(Clone, Copy, Debug)]
pub struct Pattern {
    pub text: &'static str,
    /// What stands before the place, and behind it.
    halves: [&'static str; 2],
}

impl<'de: 'static> Deserialize<'de> for Pattern {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <&'static str>::deserialize(deserializer)?;
        let (before, after) = text.split_once("{}").unwrap_or((text, ""));
        Ok(Self { text, halves: [before, after] })
    }
}

/// The sentences of the page with a challenge.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChallengeTexts {
    title: &'static str,
    working: &'static str,
    progress: &'static str,
    script: &'static str,
    form_done: &'static str,
    back_to_form: &'static str,
    done: &'static str,
    go_on: &'static str,
    cookies: &'static str,
    failed: &'static str,
    pub without: &'static str,
}

impl ChallengeTexts {
    /// The text for a mark of the page.
    pub fn text(&self, mark: &str) -> &'static str {
        match mark {
            "title" => self.title,
            "working" => self.working,
            "progress" => self.progress,
            "script" => self.script,
            "form_done" => self.form_done,
            "back_to_form" => self.back_to_form,
            "done" => self.done,
            "go_on" => self.go_on,
            "cookies" => self.cookies,
            "failed" => self.failed,
            _ => "",
        }
    }
}

/// By `Language`. A test reads the file.
static TEXTS: LazyLock<Vec<Texts>> = LazyLock::new(|| {
    let mut texts: BTreeMap<&'static str, Texts> =
        serde_json::from_str(include_str!("languages/texts.json")).expect("the texts are complete");
    Language::ALL.iter().map(|language| texts.remove(language.tag()).expect("each language has its texts")).collect()
});

impl Language {
    pub fn texts(self) -> &'static Texts {
        &TEXTS[self as usize]
    }

    /// The sentence that says how long to wait, in the unit that fits, rounded up.
    pub fn write_wait(self, seconds: u64, html: &mut Vec<u8>) {
        let texts = self.texts();
        let (count, forms) = match seconds {
            0..=120 => (seconds, &texts.seconds),
            121..=7200 => (seconds.div_ceil(60), &texts.minutes),
            7201..=172_800 => (seconds.div_ceil(3600), &texts.hours),
            _ => (seconds.div_ceil(86_400), &texts.days),
        };
        let ([before, after], [before_count, after_count]) = (texts.wait.halves, forms[self.plural_form(count)].halves);
        for part in [before, before_count, itoa::Buffer::new().format(count), after_count, after] {
            html.extend_from_slice(part.as_bytes());
        }
    }
}

impl Texts {
    /// What happened, in a few words without a full stop.
    pub fn title(&self, message: Message) -> &'static str {
        match message {
            Message::WrongPasswords => self.wrong_passwords,
            Message::TooManyAttempts => self.too_many_attempts,
            _ => self.both(message)[0],
        }
    }

    /// What the person can do, where it is not known for how long to wait.
    pub fn advice(&self, message: Message) -> &'static str {
        match message {
            Message::WrongPasswords | Message::TooManyAttempts => self.later,
            _ => self.both(message)[1],
        }
    }

    fn both(&self, message: Message) -> [&'static str; 2] {
        match message {
            Message::WrongPasswords => [self.wrong_passwords, self.later],
            Message::TooManyAttempts => [self.too_many_attempts, self.later],
            Message::AccessDenied => self.access_denied,
            Message::NotUnderstood => self.not_understood,
            Message::NotFound => self.not_found,
            Message::TookTooLong => self.took_too_long,
            Message::TooLarge => self.too_large,
            Message::AddressTooLong => self.address_too_long,
            Message::WrongConnection => self.wrong_connection,
            Message::TooMuchSentAlong => self.too_much_sent_along,
            Message::NoAnswer => self.no_answer,
            Message::Unavailable => self.unavailable,
            Message::TooSlow => self.too_slow,
        }
    }

    /// What stands between two sentences.
    pub fn stop(&self) -> &'static str {
        self.stop
    }

    /// The forms of seconds, minutes, hours and days, for the script that counts down.
    pub fn units(&self) -> [&[Pattern]; 4] {
        [&self.seconds, &self.minutes, &self.hours, &self.days]
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(header: &[&str], expected: Language) {
        let fields: Fields = header.iter().map(|line| (KnownName::ACCEPT_LANGUAGE, *line)).collect();
        assert_eq!(preferred_language(&fields), expected, "{header:?}");
    }

    #[test]
    fn the_language_with_the_highest_weight_is_chosen() {
        check(&["de"], Language::German);
        check(&["fr;q=0.5, de;q=0.8, en;q=0.1"], Language::German);
        check(&["FR-ca, en-US;q=0.7, en;q=0.3"], Language::French);
        check(&["fi, sv;q=0.4, en;q=0.2"], Language::Swedish);
        check(&["es, it"], Language::Spanish);
        check(&["pt-BR,pt;q=0.9,en-US;q=0.8"], Language::Portuguese);
        check(&["ja;q=0.001"], Language::Japanese);
        check(&["fi", "nl;q=0.2, pl;q=0.9"], Language::Polish);
        check(&["cs ; Q=1.000 , , de"], Language::Czech);
    }

    #[test]
    fn a_dialect_is_read_as_its_language() {
        check(&["de-CH"], Language::German);
        check(&["zh-Hant"], Language::Chinese);
        check(&["zh-Hant-TW;q=0.8, en;q=0.7"], Language::Chinese);
        // Only the dialect is refused.
        check(&["de-CH;q=0, de;q=0.5"], Language::German);
    }

    #[test]
    fn a_star_is_every_language_that_is_not_named() {
        check(&["*"], Language::English);
        check(&["de, *;q=0.5"], Language::German);
        check(&["de;q=0.2, *;q=0.5"], Language::English);
        check(&["en;q=0.2, *;q=0.5"], Language::German);
        check(&["de;q=0, *"], Language::English);
        check(&["en;q=0, de;q=0, *"], Language::French);
        check(&["*;q=0"], Language::English);
    }

    #[test]
    fn english_stands_in_where_no_language_is_chosen() {
        check(&[], Language::English);
        check(&[""], Language::English);
        check(&["fi, da"], Language::English);
        check(&["de;q=0"], Language::English);
        for malformed in [
            "de_DE",
            "de;q=2",
            "de;q=0.1234",
            "de;q=",
            "de;level=1",
            "deutschland-",
            "de-",
            "-de",
            "d3",
            "de fr",
            "*-CH",
        ] {
            check(&[malformed], Language::English);
            check(&["de", malformed], Language::English);
        }
        let long = "fi, ".repeat(300);
        check(&["de", &long], Language::English);
    }

    proptest! {
        #[test]
        fn any_header_is_read(lines in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..4)) {
            negotiate(lines.iter().map(Vec::as_slice));
        }

        #[test]
        fn a_language_is_chosen_only_where_it_is_named(header in "(de|fr|fi|[-;,q=.0-9 ]){0,12}") {
            let chosen = negotiate(std::iter::once(header.as_bytes()));
            prop_assert!(chosen.is_none_or(|language| header.contains(language.tag())), "{chosen:?}");
        }
    }

    const MESSAGES: [Message; 13] = [
        Message::WrongPasswords,
        Message::TooManyAttempts,
        Message::AccessDenied,
        Message::NotUnderstood,
        Message::NotFound,
        Message::TookTooLong,
        Message::TooLarge,
        Message::AddressTooLong,
        Message::WrongConnection,
        Message::TooMuchSentAlong,
        Message::NoAnswer,
        Message::Unavailable,
        Message::TooSlow,
    ];

    /// Every sentence of a language. The fields of the type see to it that none is missing.
    fn sentences(texts: &Texts) -> Vec<&'static str> {
        let of_messages = MESSAGES.into_iter().flat_map(|message| [texts.title(message), texts.advice(message)]);
        let ChallengeTexts {
            title,
            working,
            progress,
            script,
            form_done,
            back_to_form,
            done,
            go_on,
            cookies,
            failed,
            without,
        } = &texts.challenge;
        of_messages
            .chain([texts.wait.text, texts.later, texts.now, texts.try_again, texts.go_back, texts.home, texts.request])
            .chain([*title, working, progress, script, form_done, back_to_form, done, go_on, cookies, failed, without])
            .chain(texts.units().into_iter().flatten().map(|form| form.text))
            .collect()
    }

    #[test]
    fn every_language_has_every_sentence_in_words_of_its_own() {
        for language in Language::ALL {
            let texts = language.texts();
            let all = sentences(texts);
            assert!(all.iter().all(|text| !text.trim().is_empty()), "{language:?}");
            // They stand in pages as they are.
            let escaped = ['<', '>', '&', '"', '\'', '|', ';'];
            assert!(all.iter().all(|text| !text.contains(&escaped[..5])), "{language:?}");
            assert!(texts.units().into_iter().flatten().all(|form| !form.text.contains(escaped)), "{language:?}");
            let with_place = all.iter().filter(|text| text.matches("{}").count() == 1).count();
            assert_eq!(with_place, 1 + texts.units().into_iter().map(<[_]>::len).sum::<usize>(), "{language:?}");
            for message in MESSAGES {
                assert!(!texts.title(message).ends_with(['.', '。']), "{language:?} {message:?}");
                assert!(texts.advice(message).ends_with(['.', '。']), "{language:?} {message:?}");
            }
            let forms = match language {
                Language::Japanese | Language::Chinese => 1,
                Language::Polish | Language::Czech => 3,
                _ => 2,
            };
            assert!(texts.units().iter().all(|unit| unit.len() == forms), "{language:?}");
        }
        let titles = |message: Message| Language::ALL.map(|language| language.texts().title(message));
        for message in MESSAGES {
            let different: std::collections::BTreeSet<_> = titles(message).into_iter().collect();
            assert_eq!(different.len(), Language::ALL.len(), "{message:?}");
        }
    }

    #[track_caller]
    fn check_wait(language: Language, seconds: u64, expected: &str) {
        let mut text = Vec::new();
        language.write_wait(seconds, &mut text);
        assert_eq!(String::from_utf8_lossy(&text), expected);
    }

    #[test]
    fn a_wait_has_the_plural_of_its_language() {
        check_wait(Language::English, 1, "Try again in 1 second.");
        check_wait(Language::English, 42, "Try again in 42 seconds.");
        check_wait(Language::English, 121, "Try again in 3 minutes.");
        check_wait(Language::German, 7201, "Versuchen Sie es in 3 Stunden erneut.");
        check_wait(Language::German, 200_000, "Versuchen Sie es in 3 Tagen erneut.");
        check_wait(Language::Dutch, 7201, "Probeer het over 3 uur opnieuw.");
        for (seconds, form) in [
            (1, "1 sekundę"),
            (2, "2 sekundy"),
            (5, "5 sekund"),
            (12, "12 sekund"),
            (22, "22 sekundy"),
            (112, "112 sekund"),
        ] {
            check_wait(Language::Polish, seconds, &format!("Spróbuj ponownie za {form}."));
        }
        for (seconds, form) in [(1, "1 sekundu"), (3, "3 sekundy"), (5, "5 sekund"), (22, "22 sekund")] {
            check_wait(Language::Czech, seconds, &format!("Zkuste to znovu za {form}."));
        }
        check_wait(Language::Japanese, 5, "5 秒後にもう一度お試しください。");
        check_wait(Language::Chinese, 180, "请在 3 分钟后重试。");
    }
}
