//! Every configuration in the README and the book passes `check` without a warning.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::page::{Block, pages};
use crate::session::folder;
use crate::support::binary;

#[test]
fn every_configuration_passes_check_without_a_warning() {
    let folder = folder();
    let mut refused = Vec::new();
    let mut checked = 0;
    for page in pages() {
        for block in page.blocks.iter().filter(|block| block.language == "yaml") {
            for text in whole(block) {
                checked += 1;
                if let Err(said) = check(folder.path(), &text) {
                    refused.push(format!("{}\n{text}\n{said}", page.at(block.line)));
                }
            }
        }
    }
    assert!(refused.is_empty(), "{}", refused.join("\n"));
    assert!(checked >= 50, "only {checked}");
}

/// What `check` says of a configuration that it does not like.
fn check(folder: &Path, text: &str) -> Result<(), String> {
    // Where the package has made folders for the gateway.
    let own = folder.display().to_string();
    let text = text.replace("/var/log/portcullis", &own).replace("/var/lib/portcullis", &own);
    fs::write(folder.join("page.yaml"), text).expect("a file in the folder");
    let output = Command::new(binary())
        .args(["check", "--deny-warnings", "-c", "page.yaml"])
        .current_dir(folder)
        .env("OPS_WEBHOOK", "http://127.0.0.1:9095/portcullis")
        .output()
        .expect("the binary starts");
    let said = [output.stdout, output.stderr].concat();
    if output.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&said).into_owned()) }
}

/// The configurations that a block stands for. A mark says what is to be put around it.
fn whole(block: &Block) -> Vec<String> {
    let text = &block.text;
    let indented = || format!("  {}\n", text.trim_end().replace('\n', "\n  "));
    match block.mark.as_str() {
        // A whole file; with a name it is the one that the commands of the page use.
        "" | "file=portcullis.yaml" => vec![text.clone()],
        // Some keys of a file.
        "part" => vec![completed(text)],
        // Entries of `routes`, and of `limits`.
        "route" => vec![completed(&format!("routes:\n{}", indented()))],
        "limit" => vec![completed(&format!("limits:\n{}", indented()))],
        // Each line is one way to write the key `redis` of `store`.
        "redis" => text.lines().map(|line| completed(&format!("store:\n  {line}\n"))).collect(),
        other => panic!("unknown mark `{other}` on a block of yaml"),
    }
}

/// With what a part leaves to the rest of the file.
fn completed(part: &str) -> String {
    let has = |key: &str| part.lines().any(|line| line.starts_with(key));
    let mut text = part.to_owned();
    if !has("listen:") {
        text += "listen: 0.0.0.0:8080\n";
    }
    if !has("upstream:") && !has("upstreams:") {
        text += "upstream: http://127.0.0.1:8000\n";
    }
    if part.contains("notify: [ops]") && !has("notify:") {
        text += "notify: {ops: {webhook: \"${OPS_WEBHOOK}\"}}\n";
    }
    if part.contains("proxy_protocol: true") && !has("client_ip:") {
        text += "client_ip: {trusted_proxies: [10.0.0.10]}\n";
    }
    if part.contains("office") && !has("lists:") {
        text += "lists: {office: {addresses: [10.20.30.0/24]}}\n";
    }
    text
}
