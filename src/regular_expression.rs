//! How large a regular expression is when it is compiled, and in one line what is wrong with it.

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

/// Compiles with the smallest bound that suffices, and answers it with the expression: so many bytes it takes at most. The library
/// tells no size, and stops at its bound.
pub fn compile_within<R>(
    largest: usize,
    compile: impl Fn(usize) -> Result<R, regex::Error>,
) -> Result<(R, usize), regex::Error> {
    let mut bound = SMALLEST.min(largest);
    loop {
        match compile(bound) {
            Err(regex::Error::CompiledTooBig(_)) if bound < largest => bound = (2 * bound).min(largest),
            compiled => return compiled.map(|regex| (regex, bound)),
        }
    }
}

/// Most expressions of paths and names take less.
const SMALLEST: usize = 2 << 10;

#[cfg(test)]
mod tests {
    use regex::RegexBuilder;

    use super::*;

    #[test]
    fn the_size_of_an_expression_is_known_to_a_factor_of_two() {
        let size = |text: &str| {
            let compile = |bound| RegexBuilder::new(text).size_limit(bound).build();
            compile_within(1 << 20, compile).map(|(_, bytes)| bytes)
        };
        assert_eq!(size("^/v[12]/").unwrap(), SMALLEST);
        assert!(size(r"\w").unwrap() > SMALLEST && size(r"\w{4}").unwrap() > 2 * size(r"\w").unwrap());
        assert!(matches!(size(r"(\w+){1,50}{1,50}"), Err(regex::Error::CompiledTooBig(_))));
        assert!(matches!(size("("), Err(regex::Error::Syntax(_))));
    }
}
