//! Says in one line what is wrong with a regular expression.

/// The mistake in it; `None`: it is right and too large.
pub fn syntax_mistake(error: &regex::Error) -> Option<String> {
    if let regex::Error::CompiledTooBig(_) = error {
        return None;
    }
    // The lines before the last one show the expression and a caret.
    let text = error.to_string();
    let last = text.lines().last().unwrap_or_default().trim();
    Some(last.strip_prefix("error: ").unwrap_or(last).to_owned())
}
