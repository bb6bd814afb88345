//! The flags become a document, and the document becomes settings.

use std::path::PathBuf;

use super::limit_flag::LimitFlag;
use super::limit_flag::parse_limit;
use super::nodes::flag;
use super::nodes::map;
use super::routes::routes;
use crate::config::compile;
use crate::config::diagnostic::Diagnostic;
use crate::config::mistakes::Mistakes;
use crate::config::raw::Document;
use crate::config::raw::RawValue;
use crate::config::settings::Settings;
use crate::config::yaml::Content;
use crate::config::yaml::Node;

/// The flags of `run` that stand for a configuration.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Flags {
    pub upstream: String,
    /// `None`: port 8080 of every address.
    pub listen: Option<String>,
    /// `None`: no admin listener.
    pub admin: Option<String>,
    /// Each `[METHODS] PATH KEY[,KEY] RATE`.
    pub limits: Vec<String>,
}

/// Settings from flags alone. Returns all mistakes at once, each under the name of its flag.
///
/// Unlike the routes of a file, every limit applies to each request that it matches, whatever the order of the flags.
pub fn inline(flags: &Flags) -> Result<Settings, Vec<Diagnostic>> {
    let mut mistakes = Mistakes::default();
    let listen = flag("--listen", flags.listen.as_deref().unwrap_or("0.0.0.0:8080"), &mut mistakes);
    let upstream = flag("--upstream", &flags.upstream, &mut mistakes);
    let at = upstream.at;
    let limits: Vec<LimitFlag> = flags
        .limits
        .iter()
        .enumerate()
        .filter_map(|(index, text)| parse_limit(index + 1, text, &mut mistakes))
        .collect();

    let (everywhere, somewhere): (Vec<_>, Vec<_>) = limits.into_iter().partition(|limit| limit.scope.is_everything());
    let everywhere = everywhere.into_iter().map(|limit| limit.node).collect();
    let mut sections = vec![
        ("listen", listen),
        ("upstream", upstream),
        ("limits", Node { at, content: Content::List(everywhere) }),
        ("routes", Node { at, content: Content::List(routes(&somewhere, &mut mistakes)) }),
    ];
    if let Some(address) = &flags.admin {
        let address = flag("--admin", address, &mut mistakes);
        sections.push(("admin", map(address.at, vec![("address", address)])));
    }
    let root = map(at, sections);
    let document = Document::read(&root, &mut mistakes);
    compile::compile(document.as_ref(), &root, PathBuf::new(), Vec::new(), mistakes)
}
