//! Requests for a path, spelled as attackers, scanners and advisories do.

use crate::login::Asked;
use crate::support::spellings;

/// Every spelling of an absolute path, the plain one among them, and requests that name it in a header.
pub(crate) fn of(path: &str) -> Vec<Asked> {
    let name = path.trim_matches('/');
    let plain = spellings(path).into_iter().map(|target| Asked::post(&target, ""));
    let moved = ["/", "/x", "/x/", &format!("/x/{name}")]
        .map(|target| LINES.iter().map(|line| Asked::post(target, line)).collect());
    plain.chain(moved.into_iter().flat_map(|moved: Vec<_>| moved)).collect()
}

/// Headers in which servers and frameworks were told another path by what stood in front of them.
const LINES: &[&str] = &[
    "SCRIPT_NAME: /x\r\n",
    "Script_Name: /x\r\n",
    "Script-Name: /x\r\n",
    "X-Script-Name: /x\r\n",
    "PATH_INFO: /login\r\n",
    "Path-Info: /login\r\n",
    "REQUEST_URI: /login\r\n",
    "SCRIPT_NAME: /x/\r\n",
    "X-Original-URL: /login\r\n",
    "X-Rewrite-URL: /login\r\n",
    "X-Forwarded-Prefix: /x\r\n",
    "X-Forwarded-Path: /login\r\n",
    "X-Forwarded-Uri: /login\r\n",
];
