//! The parsers of bytes from outside, each as a function that panics where the parser breaks a promise. The targets in
//! `fuzz/` call them with inputs that libFuzzer finds, the tests beside them with the files in `fuzz/corpus/`.

pub use crate::config::yaml::fuzz::check as yaml;
pub use crate::gateway::admit::fuzz::check as cookies;
pub use crate::listen::proxy_protocol::fuzz::check as proxy_header;
pub use crate::replay::formats::fuzz::check as access_log;
pub use crate::rules::jwt::fuzz::check as jwt;
pub use crate::rules::request::json::fuzz::check as json;
pub use crate::rules::request::multipart::fuzz::check as multipart;
pub use crate::store::redis::transport::reply::fuzz::check as redis_reply;
pub use crate::wire::crowdsec::decision_stream::fuzz::check as decision_stream;
pub use crate::wire::http1::client::fuzz::check as answer_head;
pub use crate::wire::http1::grammar::decoder::fuzz::check as chunks;
pub use crate::wire::http1::server::fuzz::check as request_head;
pub use crate::wire::http2::hpack::fuzz::check as hpack;

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::Path;

    fn names(folder: &str) -> BTreeSet<String> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
        let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        paths.map(|path| path.file_stem().unwrap().to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn every_target_has_a_corpus_and_a_binary() {
        let targets: BTreeSet<String> = include_str!("fuzzing.rs")
            .lines()
            .filter_map(|line| line.strip_prefix("pub use ")?.strip_suffix(';')?.split(" as ").nth(1))
            .map(str::to_owned)
            .collect();
        assert!(targets.len() > 5, "the targets were not found");
        assert_eq!(names("fuzz/fuzz_targets"), targets);
        assert_eq!(names("fuzz/corpus"), targets);
        let manifest = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/Cargo.toml")).unwrap();
        for target in targets {
            assert!(manifest.contains(&format!("name = \"{target}\"")), "fuzz/Cargo.toml has no `{target}`");
        }
    }
}
