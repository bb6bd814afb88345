//! Takes the gateway's own cookies out of a request, before rules and applications read it.

use memchr::memmem;
use smallvec::SmallVec;

use crate::head::Fields;
use crate::head::KnownName;

/// Removes every cookie of this name, and returns the values of the first few.
pub fn take(fields: &mut Fields, name: &str) -> SmallVec<[Box<str>; 1]> {
    let mut taken = SmallVec::new();
    let may_be_there = |value: &[u8]| memmem::find(value, name.as_bytes()).is_some();
    if !fields.get_all(KnownName::COOKIE).any(may_be_there) {
        return taken;
    }
    let lines: SmallVec<[Vec<u8>; 2]> = fields.get_all(KnownName::COOKIE).map(<[u8]>::to_vec).collect();
    fields.remove(KnownName::COOKIE);
    for line in lines {
        let mut kept = Vec::with_capacity(line.len());
        for pair in line.split(|byte| *byte == b';').map(<[u8]>::trim_ascii) {
            match value_of(pair, name) {
                Some(value) => {
                    if let Ok(value) = str::from_utf8(value)
                        && taken.len() < MOST
                    {
                        taken.push(value.into());
                    }
                }
                None if pair.is_empty() => {}
                None => {
                    if !kept.is_empty() {
                        kept.extend_from_slice(b"; ");
                    }
                    kept.extend_from_slice(pair);
                }
            }
        }
        if !kept.is_empty() {
            fields.append(KnownName::COOKIE, &kept);
        }
    }
    taken
}

/// Browsers send one cookie; more values are only work.
const MOST: usize = 4;

fn value_of<'c>(pair: &'c [u8], name: &str) -> Option<&'c [u8]> {
    let equals = memchr::memchr(b'=', pair)?;
    let (named, value) = (pair[..equals].trim_ascii(), pair[equals + 1..].trim_ascii());
    (named == name.as_bytes()).then_some(value)
}

#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzz;
#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(lines: &[&'static str], taken: &[&str], left: &[&str]) {
        let mut fields = Fields::default();
        for line in lines {
            fields.append(KnownName::COOKIE, line.as_bytes());
        }
        let found = take(&mut fields, "ours");
        assert_eq!(found.iter().map(|value| &**value).collect::<Vec<_>>(), taken);
        let rest: Vec<_> = fields.get_all(KnownName::COOKIE).map(|line| str::from_utf8(line).unwrap()).collect();
        assert_eq!(rest, left);
    }

    #[test]
    fn our_cookie_is_removed_and_others_stay() {
        check(&[], &[], &[]);
        check(&["a=1;b=2"], &[], &["a=1;b=2"]);
        check(&["ours=x"], &["x"], &[]);
        check(&["a=1; ours=x.7; b=2"], &["x.7"], &["a=1; b=2"]);
        check(&["a=1", "ours=x", "b=ours"], &["x"], &["a=1", "b=ours"]);
        check(&["ours=1; ours = 2 ;;a"], &["1", "2"], &["a"]);
    }

    #[test]
    fn a_cookie_with_a_similar_name_stays() {
        check(&["yours=1; ours2=2; a=ours=3"], &[], &["yours=1; ours2=2; a=ours=3"]);
    }

    #[test]
    fn of_many_cookies_the_first_few_are_read_and_all_are_removed() {
        check(&["ours=1; ours=2; ours=3; ours=4; ours=5; ours=6"], &["1", "2", "3", "4"], &[]);
    }

    proptest! {
        #[test]
        fn no_cookie_of_ours_is_left_and_no_other_is_lost(line in "(ours|theirs|=|;| |x|,){0,12}") {
            let pairs = |line: &str| -> Vec<String> {
                line.split(';').map(|pair| pair.trim().to_owned()).filter(|pair| !pair.is_empty()).collect()
            };
            let mut fields = Fields::default();
            fields.append(KnownName::COOKIE, line.as_bytes());
            let taken = take(&mut fields, "ours");
            let left = fields.get(KnownName::COOKIE).map_or(Vec::new(), |line| pairs(str::from_utf8(line).expect("text")));
            let is_ours = |pair: &String| value_of(pair.as_bytes(), "ours").is_some();
            let (ours, others): (Vec<String>, Vec<String>) = pairs(&line).into_iter().partition(is_ours);
            prop_assert_eq!(left, others);
            prop_assert_eq!(taken.len(), ours.len().min(MOST));
        }
    }
}
