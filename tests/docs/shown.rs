//! Compares a command's output with a page: `...` stands for any text of a line, or alone for any lines.

/// Whether a text is what a page shows of it.
pub(crate) fn is_like(shown: &str, printed: &str) -> bool {
    let (shown, printed): (Vec<&str>, Vec<&str>) = (shown.lines().collect(), printed.lines().collect());
    lines_are_like(&shown, &printed)
}

fn lines_are_like(shown: &[&str], printed: &[&str]) -> bool {
    match (shown, printed) {
        ([], printed) => printed.is_empty(),
        (["...", shown @ ..], printed) => (0..=printed.len()).any(|from| lines_are_like(shown, &printed[from..])),
        ([first, shown @ ..], [line, printed @ ..]) => is_line_like(first, line) && lines_are_like(shown, printed),
        (_, []) => false,
    }
}

fn is_line_like(shown: &str, line: &str) -> bool {
    let Some((begin, rest)) = shown.split_once("...") else { return shown.trim_end() == line.trim_end() };
    let Some(line) = line.strip_prefix(begin) else { return false };
    (0..=line.len()).filter(|at| line.is_char_boundary(*at)).any(|at| is_line_like(rest, &line[at..]))
}

#[test]
fn dots_stand_for_what_a_page_leaves_out() {
    let is_shown = |shown: &str| is_like(shown, "one\ntwo 22\nthree\n");
    assert!(is_shown("one\ntwo 22\nthree\n") && is_shown("one\ntwo ...\n...\n") && is_shown("...\nthree\n"));
    assert!(!is_shown("one\n") && !is_shown("one\ntwo 2\nthree\n") && !is_shown("...\ntwo\n...\n"));
}
