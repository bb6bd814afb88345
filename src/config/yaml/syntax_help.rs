//! What to do about a text that is not YAML.

/// What a person can do about a text that is not YAML.
pub(super) fn syntax_help(info: &str, line: &str) -> &'static str {
    let indentation = &line[..line.len() - line.trim_start().len()];
    let says = |words: &[&str]| words.iter().any(|word| info.contains(word));
    if indentation.contains('\t') {
        "indent with spaces: YAML allows no tabs there"
    } else if says(&["quote"]) {
        "close the text with the quote that it begins with"
    } else if says(&["anchor", "alias"]) {
        "write a text that begins with `*` or `&` in quotes; an alias `*name` needs its `&name` before it"
    } else if says(&["mapping values are not allowed", "simple key"]) {
        "write a value that contains `: ` in quotes; begin the keys of one map in the same column"
    } else if says(&["flow"]) && (line.contains("${") || line.contains("/{")) {
        "inside `{ }` and `[ ]` write a text that contains a `{` in quotes: `\"/users/{id}\"`, `\"${NAME}\"`"
    } else if says(&["flow", "bracket", "illegal placement"]) {
        "close every `[` with `]` and every `{` with `}`, and put `,` between entries"
    } else if says(&["block", "indentation"]) {
        "begin the keys of one map, and the dashes of one list, in the same column"
    } else if says(&["unexpected character"]) {
        "write a text that begins with `%`, `@` or a backtick in quotes"
    } else {
        "look for a quote or bracket that is not closed, and for a line that begins in another column than its neighbours"
    }
}
