//! Patterns of hosts.

use std::fmt;

use crate::request::CanonicalHost;

/// A host, or every host below a domain: `example.com`, `*.example.com`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum HostPattern {
    Exact(Box<str>),
    /// One or more labels before this domain. The domain itself does not match.
    Below(Box<str>),
}

impl HostPattern {
    /// Whether it is one host.
    pub fn is_exact(&self) -> bool {
        matches!(self, Self::Exact(_))
    }

    pub fn matches(&self, host: &CanonicalHost<'_>) -> bool {
        let host = host.as_str();
        match self {
            Self::Exact(name) => host == &**name,
            Self::Below(domain) => host
                .strip_suffix(&**domain)
                .and_then(|labels| labels.strip_suffix('.'))
                .is_some_and(|labels| !labels.is_empty()),
        }
    }

    /// Whether this matches every host that `other` matches.
    pub(super) fn includes(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Exact(host), Self::Exact(other)) => host == other,
            (Self::Exact(_), Self::Below(_)) => false,
            (Self::Below(_), Self::Exact(other)) => self.matches(&CanonicalHost::new(other)),
            (Self::Below(domain), Self::Below(other)) => {
                let labels = other.strip_suffix(&**domain);
                labels.is_some_and(|labels| labels.is_empty() || labels.ends_with('.'))
            }
        }
    }
}

impl std::str::FromStr for HostPattern {
    type Err = InvalidHostPattern;

    fn from_str(text: &str) -> Result<Self, InvalidHostPattern> {
        let text = text.trim();
        let (below, name) = match text.strip_prefix("*.") {
            Some(domain) => (true, domain),
            None => (false, text),
        };
        if name.is_empty() || name.starts_with('.') || name.contains(['/', '#', '@', ' ', ',']) {
            return Err(InvalidHostPattern::NotAHost(text.to_owned()));
        }
        if name.contains(['*', '?']) {
            return Err(InvalidHostPattern::Star(text.to_owned()));
        }
        if has_port(name) {
            return Err(InvalidHostPattern::Port(text.to_owned()));
        }
        let name = CanonicalHost::new(name).as_str().into();
        Ok(if below { Self::Below(name) } else { Self::Exact(name) })
    }
}

/// A colon outside the brackets of an IPv6 address.
fn has_port(name: &str) -> bool {
    let after_address = name.rsplit(']').next().unwrap_or(name);
    after_address.contains(':')
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exact(name) => f.write_str(name),
            Self::Below(domain) => write!(f, "*.{domain}"),
        }
    }
}

#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum InvalidHostPattern {
    #[error("`{0}` is not a host pattern: a `*` stands for leading labels only, as in `*.example.com`")]
    Star(String),
    #[error("`{0}`: hosts are compared without their port, write the name alone: `{name}`", name = without_port(.0))]
    Port(String),
    #[error("`{0}` is not a host")]
    NotAHost(String),
}

fn without_port(host: &str) -> &str {
    host.rsplit_once(':').map_or(host, |(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(pattern: &str, host: &str, expected: bool) {
        let pattern: HostPattern = pattern.parse().unwrap();
        assert_eq!(pattern.matches(&CanonicalHost::new(host)), expected, "{host} under {pattern}");
    }

    #[test]
    fn an_exact_host_matches_in_every_spelling() {
        check("api.example.com", "api.example.com", true);
        check("API.Example.com.", "api.EXAMPLE.com:8080", true);
        check("api.example.com", "api.example.com.", true);
        check("api.example.com", "xapi.example.com", false);
        check("[::1]", "[::1]:80", true);
    }

    #[test]
    fn a_star_is_one_or_more_labels() {
        check("*.example.com", "a.example.com", true);
        check("*.example.com", "a.b.Example.com", true);
        check("*.example.com", "example.com", false);
        check("*.example.com", ".example.com", false);
        check("*.example.com", "notexample.com", false);
    }

    #[test]
    fn a_pattern_includes_what_it_matches_in_every_case() {
        for (one, other, expected) in [
            ("a.com", "A.com.", true),
            ("a.com", "b.com", false),
            ("*.a.com", "x.a.com", true),
            ("*.a.com", "a.com", false),
            ("*.a.com", "*.a.com", true),
            ("*.a.com", "*.x.a.com", true),
            ("*.a.com", "*.xa.com", false),
            ("x.a.com", "*.a.com", false),
        ] {
            let [one, other]: [HostPattern; 2] = [one, other].map(|text| text.parse().unwrap());
            assert_eq!(one.includes(&other), expected, "{other} in {one}");
        }
    }

    #[test]
    fn what_is_no_host_says_so() {
        let refused = |text: &str| text.parse::<HostPattern>().unwrap_err();
        assert_eq!(refused("a.*.com"), InvalidHostPattern::Star("a.*.com".into()));
        assert_eq!(refused("api?.com"), InvalidHostPattern::Star("api?.com".into()));
        assert_eq!(refused("*"), InvalidHostPattern::Star("*".into()));
        assert_eq!(refused("example.com:80"), InvalidHostPattern::Port("example.com:80".into()));
        assert_eq!(refused("http://example.com"), InvalidHostPattern::NotAHost("http://example.com".into()));
        assert_eq!(refused("example.com/x"), InvalidHostPattern::NotAHost("example.com/x".into()));
        assert_eq!(refused("*."), InvalidHostPattern::NotAHost("*.".into()));
        assert_eq!(refused(""), InvalidHostPattern::NotAHost(String::new()));
    }
}
