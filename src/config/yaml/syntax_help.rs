//! What to do about a text that is not YAML.

/// What a person can do about a text that is not YAML.
pub(super) fn syntax_help(info: &str, line: &str) -> &'static str {
    let indentation = &line[..line.len() - line.trim_start().len()];
    let says = |words: &[&str]| words.iter().any(|word| info.contains(word));
    if indentation.contains('\t') {
        "indent with spaces: YAML knows no tabs there"
    } else if says(&["quote"]) {
        "close the text with the quote it begins with"
    } else if says(&["anchor", "alias"]) {
        "a text that begins with `*` or `&` is written in quotes; an alias `*name` needs its `&name` before it"
    } else if says(&["mapping values are not allowed", "simple key"]) {
        "a value that holds `: ` is written in quotes; keys of one map begin in one column"
    } else if says(&["flow"]) && (line.contains("${") || line.contains("/{")) {
        "inside `{ }` and `[ ]` a text that holds a `{` is written in quotes: `\"/users/{id}\"`, `\"${NAME}\"`"
    } else if says(&["flow", "bracket", "illegal placement"]) {
        "close every `[` with `]` and every `{` with `}`, and put `,` between entries"
    } else if says(&["block", "indentation"]) {
        "keys of one map, and dashes of one list, begin in one column"
    } else if says(&["unexpected character"]) {
        "a text that begins with `%`, `@` or a backtick is written in quotes"
    } else {
        "look for a quote or bracket that is left open, and for a line that begins in another column than its neighbours"
    }
}
