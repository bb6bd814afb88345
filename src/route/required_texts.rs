//! What stands in every path that a regular expression matches. Most expressions need not be tried on a path without it.

use regex_syntax::ParserBuilder;
use regex_syntax::hir::Class;
use regex_syntax::hir::Hir;
use regex_syntax::hir::HirKind;
use regex_syntax::hir::Repetition;

use crate::route::pattern::Case;

/// Texts of which every matching path has one. All are of letters of ASCII, in lower case where case is ignored: then the folded path
/// has one, whichever spelling of the path matches.
pub(in crate::route) type AnyOf = Box<[Box<str>]>;

/// Everything that is known to stand in a matching path, in the order of the path.
pub(super) fn required_texts(expression: &str, case: Case) -> Box<[AnyOf]> {
    let parsed = ParserBuilder::new().case_insensitive(case == Case::Ignored).build().parse(expression);
    let Ok(parsed) = parsed else { return Box::default() };
    let found = Reader { case }.required(&parsed);
    found.into_iter().map(|texts| texts.into_iter().map(String::into_boxed_str).collect()).collect()
}

struct Reader {
    case: Case,
}

/// More alternatives are not told apart.
const MAX_TEXTS: usize = 16;

/// Longer texts are cut.
const MAX_LENGTH: usize = 64;

/// One letter, such as `/`, is in too many paths.
const MIN_LENGTH: usize = 2;

/// A class of more letters is of any.
const MAX_LETTERS: usize = 4;

impl Reader {
    fn required(&self, part: &Hir) -> Vec<Vec<String>> {
        if let Some(texts) = self.whole(part) {
            return useful(texts).into_iter().collect();
        }
        match part.kind() {
            HirKind::Capture(group) => self.required(&group.sub),
            HirKind::Repetition(repetition) if repetition.min > 0 => self.required(&repetition.sub),
            HirKind::Concat(parts) => self.of_sequence(parts),
            HirKind::Alternation(branches) => self.of_branches(branches).into_iter().collect(),
            HirKind::Literal(literal) => {
                let ascii = literal.0.iter().take_while(|byte| byte.is_ascii()).take(MAX_LENGTH);
                let text = ascii.map(|byte| self.folded(char::from(*byte)).unwrap_or_default()).collect();
                useful(vec![text]).into_iter().collect()
            }
            _ => Vec::new(),
        }
    }

    /// Neighbours whose texts are known make longer texts.
    fn of_sequence(&self, parts: &[Hir]) -> Vec<Vec<String>> {
        let mut found = Vec::new();
        let mut run = vec![String::new()];
        for part in parts {
            let texts = self.whole(part);
            if let Some(longer) = texts.as_ref().and_then(|texts| joined(&run, texts)) {
                run = longer;
                continue;
            }
            found.extend(useful(std::mem::replace(&mut run, vec![String::new()])));
            match texts {
                Some(texts) => run = texts,
                None => found.extend(self.required(part)),
            }
        }
        found.extend(useful(run));
        found
    }

    /// Of each branch its longest texts; `None`: one has none.
    fn of_branches(&self, branches: &[Hir]) -> Option<Vec<String>> {
        let mut all = Vec::new();
        for branch in branches {
            all.extend(self.required(branch).into_iter().max_by_key(|texts| shortest(texts))?);
        }
        if all.len() > MAX_TEXTS { None } else { useful(all) }
    }

    /// Every text that this part matches; `None`: they are too many, or too long.
    fn whole(&self, part: &Hir) -> Option<Vec<String>> {
        match part.kind() {
            HirKind::Empty | HirKind::Look(_) => Some(vec![String::new()]),
            HirKind::Literal(literal) => {
                let text: Option<String> = literal.0.iter().map(|byte| self.folded(char::from(*byte))).collect();
                text.filter(|text| literal.0.is_ascii() && text.len() <= MAX_LENGTH).map(|text| vec![text])
            }
            HirKind::Class(class) => self.letters(class),
            HirKind::Capture(group) => self.whole(&group.sub),
            HirKind::Repetition(repetition) => self.repeated(repetition),
            HirKind::Concat(parts) => {
                let parts = parts.iter().map(|part| self.whole(part));
                parts.into_iter().try_fold(vec![String::new()], |texts, part| joined(&texts, &part?))
            }
            HirKind::Alternation(branches) => {
                let mut all = Vec::new();
                for branch in branches {
                    all.extend(self.whole(branch)?);
                }
                bounded(all)
            }
        }
    }

    fn repeated(&self, repetition: &Repetition) -> Option<Vec<String>> {
        match (repetition.min, repetition.max?) {
            (0, 1) => {
                let mut texts = self.whole(&repetition.sub)?;
                texts.push(String::new());
                bounded(texts)
            }
            (min, max) if min == max && max as usize <= MAX_LENGTH => {
                let texts = self.whole(&repetition.sub)?;
                (0..max).try_fold(vec![String::new()], |repeated, _| joined(&repeated, &texts))
            }
            _ => None,
        }
    }

    fn letters(&self, class: &Class) -> Option<Vec<String>> {
        let mut letters = Vec::new();
        let mut add = |from: char, to: char| {
            for letter in from..=to {
                let letter = self.folded(letter)?.to_string();
                if !letters.contains(&letter) {
                    letters.push(letter);
                }
                if letters.len() > MAX_LETTERS {
                    return None;
                }
            }
            Some(())
        };
        match class {
            Class::Unicode(class) => class.ranges().iter().try_for_each(|range| add(range.start(), range.end()))?,
            Class::Bytes(class) => {
                let ascii = class.is_ascii().then(|| class.ranges())?;
                ascii.iter().try_for_each(|range| add(char::from(range.start()), char::from(range.end())))?;
            }
        }
        Some(letters).filter(|letters| !letters.is_empty())
    }

    /// A letter of ASCII as the compared path has it; `None`: it may be of another script there.
    fn folded(&self, letter: char) -> Option<char> {
        match (self.case, letter) {
            (Case::Ignored, 'ſ') => Some('s'),
            // The sign of the unit Kelvin.
            (Case::Ignored, '\u{212a}') => Some('k'),
            (Case::Ignored, letter) => letter.is_ascii().then(|| letter.to_ascii_lowercase()),
            (Case::Sensitive, letter) => letter.is_ascii().then_some(letter),
        }
    }
}

/// Each text followed by each of the others; `None`: they are too many, or too long.
fn joined(texts: &[String], others: &[String]) -> Option<Vec<String>> {
    if texts.len() * others.len() > MAX_TEXTS {
        return None;
    }
    bounded(texts.iter().flat_map(|text| others.iter().map(move |other| format!("{text}{other}"))).collect())
}

fn bounded(texts: Vec<String>) -> Option<Vec<String>> {
    Some(texts).filter(|texts| texts.len() <= MAX_TEXTS && texts.iter().all(|text| text.len() <= MAX_LENGTH))
}

/// The texts without those that have another one in them; `None`: one of them is in too many paths.
fn useful(mut texts: Vec<String>) -> Option<Vec<String>> {
    if texts.is_empty() || shortest(&texts) < MIN_LENGTH {
        return None;
    }
    texts.sort_unstable_by(|one, other| one.len().cmp(&other.len()).then_with(|| one.cmp(other)));
    let mut kept: Vec<String> = Vec::new();
    for text in texts {
        if !kept.iter().any(|shorter| text.contains(shorter.as_str())) {
            kept.push(text);
        }
    }
    Some(kept)
}

fn shortest(texts: &[String]) -> usize {
    texts.iter().map(String::len).min().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(expression: &str, case: Case, expected: &[&[&str]]) {
        let found = required_texts(expression, case);
        let found: Vec<Vec<&str>> = found.iter().map(|texts| texts.iter().map(|text| &**text).collect()).collect();
        assert_eq!(found, expected, "{expression}");
    }

    #[test]
    fn what_every_matching_path_has_is_found() {
        check("^/shop-7/[0-9]+$", Case::Ignored, &[&["/shop-7/"]]);
        check("^/Shop/(?P<id>[^/]+)/Item$", Case::Ignored, &[&["/shop/"], &["/item"]]);
        check("^/Shop/(?P<id>[^/]+)/Item$", Case::Sensitive, &[&["/Shop/"], &["/Item"]]);
        check("/item-7[.]html?$", Case::Ignored, &[&["/item-7.htm"]]);
        check("^/admin(?:/|$)", Case::Ignored, &[&["/admin"]]);
        check("^/(en|de)/shop", Case::Ignored, &[&["/de/shop", "/en/shop"]]);
        check("^/(?:a[0-9]+/edit|b[0-9]+/delete)", Case::Ignored, &[&["/edit", "/delete"]]);
        check("^/v[12]/users(?:/[0-9]+)?$", Case::Ignored, &[&["/v1/users", "/v2/users"]]);
        check("(?:/ab){2}(?:/cd)+", Case::Ignored, &[&["/ab/ab"], &["/cd"]]);
        check("(?i)/KISS", Case::Sensitive, &[]);
        check("(?i)/KISS", Case::Ignored, &[&["/kiss"]]);
        check("^/straße/b", Case::Ignored, &[&["/stra"], &["e/b"]]);
    }

    #[test]
    fn what_may_be_missing_is_not_required() {
        check("^/", Case::Ignored, &[]);
        check("^/[a-z]+/?", Case::Ignored, &[]);
        check("(?:login)?", Case::Ignored, &[]);
        check("(?:login)*/", Case::Ignored, &[]);
        check("login|[0-9]+", Case::Ignored, &[]);
        check("login|", Case::Ignored, &[]);
        check("", Case::Ignored, &[]);
        check("[^a]{5}", Case::Ignored, &[]);
    }

    #[test]
    fn long_texts_and_many_are_bounded() {
        let long = "/ab".repeat(100);
        check(&long, Case::Sensitive, &[&[&long[..MAX_LENGTH]]]);
        assert!(required_texts(&long, Case::Ignored).iter().flatten().all(|text| text.len() <= MAX_LENGTH));
        let many: Vec<String> = (10..40).map(|n| format!("/{n}")).collect();
        check(&format!("(?:{})x+", many.join("|")), Case::Ignored, &[]);
    }
}
