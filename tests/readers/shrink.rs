//! Makes a failing case small, so that a person sees what it is about.

use crate::case::Case;

/// The smallest case found that still fails: header lines, then pieces of the query, of values and of the body are dropped as
/// long as it does.
pub(crate) fn shrink(mut case: Case, fails: &mut dyn FnMut(&Case) -> bool) -> Case {
    for at in (0..case.lines.len()).rev() {
        let mut without = case.clone();
        without.lines.remove(at);
        if fails(&without) {
            case = without;
        }
    }
    case = drop_pieces(case, |case| &mut case.body, fails);
    for at in 0..case.lines.len() {
        case = drop_pieces(case, |case| &mut case.lines[at].1, fails);
    }
    drop_pieces(case, |case| &mut case.query, fails)
}

fn drop_pieces(mut case: Case, part: impl Fn(&mut Case) -> &mut Vec<u8>, fails: &mut dyn FnMut(&Case) -> bool) -> Case {
    let mut size = part(&mut case).len() / 2;
    let mut tries = 0;
    while size > 0 && tries < MOST_TRIES {
        let mut at = 0;
        while at < part(&mut case).len() && tries < MOST_TRIES {
            let mut without = case.clone();
            let text = part(&mut without);
            text.drain(at..text.len().min(at + size));
            tries += 1;
            if fails(&without) {
                case = without;
            } else {
                at += size;
            }
        }
        size /= 2;
    }
    case
}

const MOST_TRIES: usize = 150;
