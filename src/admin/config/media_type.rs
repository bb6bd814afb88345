//! Which of the two forms of the configuration a client prefers.

use http::HeaderMap;
use http::header::ACCEPT;

/// Whether JSON is preferred to YAML. Where both are equally welcome, YAML is sent.
pub(super) fn prefers_json(headers: &HeaderMap) -> bool {
    let accept: Vec<&str> = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok()).collect();
    quality(&accept, &["application/json", "application/*", "*/*"])
        > quality(&accept, &["application/yaml", "application/x-yaml", "text/yaml", "text/*", "application/*", "*/*"])
}

/// The quality of the first of these names that is listed, in thousandths; 0: none is.
fn quality(accept: &[&str], names: &[&str]) -> u16 {
    let ranges = || accept.iter().flat_map(|line| line.split(','));
    let of = |name: &&str| {
        ranges().find_map(|range| {
            let mut parts = range.split(';').map(str::trim);
            let is_named = parts.next().is_some_and(|media_type| media_type.eq_ignore_ascii_case(name));
            is_named.then(|| parts.find_map(weight).unwrap_or(1000))
        })
    };
    names.iter().find_map(of).unwrap_or(0)
}

fn weight(parameter: &str) -> Option<u16> {
    let value = parameter.strip_prefix("q=").or_else(|| parameter.strip_prefix("Q="))?;
    let (whole, fraction) = value.split_once('.').unwrap_or((value, ""));
    let fraction: String = fraction.chars().chain("000".chars()).take(3).collect();
    Some((whole.parse::<u16>().ok()?.min(1) * 1000 + fraction.parse::<u16>().ok()?).min(1000))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_sent_where_it_is_preferred() {
        let prefers = |accept: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT, accept.parse().unwrap());
            prefers_json(&headers)
        };
        for accept in [
            "application/json",
            "APPLICATION/JSON;q=0.5",
            "application/json, text/*;q=0.9",
            "application/json, */*;q=0.1",
        ] {
            assert!(prefers(accept), "{accept}");
        }
        for accept in [
            "*/*",
            "application/yaml",
            "text/html, */*",
            "application/json;q=0",
            "application/json;q=0.5, application/yaml",
            "x",
        ] {
            assert!(!prefers(accept), "{accept}");
        }
        assert!(!prefers_json(&HeaderMap::new()));
    }
}
