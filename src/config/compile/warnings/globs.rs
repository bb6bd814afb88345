//! Texts that look like globs where no glob is allowed.

use crate::config::compile::compiler::Compiler;
use crate::config::raw;
use crate::config::raw::Text;
use crate::config::raw::route::Match;

impl Compiler {
    /// A glob in a name is a mistake. These texts may be meant literally, so they get a warning.
    pub(super) fn warn_of_globs(&mut self, route: &raw::route::Route) {
        if let Some(Match::Long(conditions)) = route.r#match.get()
            && let Some(Text { value, at }) = conditions.path_regex.get()
            && let Some(path) = value.strip_suffix("/*")
        {
            let message = format!("`{value}` is a regular expression, in which `/*` matches any number of slashes");
            let path = path.trim_start_matches('^');
            self.mistakes.warn(*at, message, format!("to match everything below, write `path: {path}/*`"));
        }
        let Some(outcome) = route.outcome.get() else { return };
        for side in [&outcome.success, &outcome.failure].into_iter().filter_map(|side| side.get()) {
            let values = side.json.get().map(|values| &values.0.entries[..]).unwrap_or_default();
            let texts = values.iter().map(|(_, value)| value).chain(side.body.get());
            for Text { value, at } in texts.filter(|text| is_glob(&text.value)) {
                let message = format!("`{value}` looks like a glob, and is compared literally");
                self.mistakes.warn(
                    *at,
                    message,
                    "write the literal text; a `body` may be a regular expression: `/.../`",
                );
            }
        }
    }
}

fn is_glob(text: &str) -> bool {
    text.len() > 1 && (text.starts_with('*') || text.ends_with('*'))
}
