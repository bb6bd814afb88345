//! Names that some framework may read as `username`, `user_name` or `user[name]`.

use fastrand::Rng;

use super::{once_in, pick};

/// The name of a field: plain half of the time.
pub(super) fn name(rng: &mut Rng) -> Vec<u8> {
    if rng.bool() {
        return b"username".to_vec();
    }
    if rng.bool() {
        return pick(rng, NAMES).as_bytes().to_vec();
    }
    let mut name = pick(rng, &["username", "username", "user_name", "user[name]"]).as_bytes().to_vec();
    for _ in 0..rng.usize(1..=3) {
        let at = if rng.bool() { pick(rng, &[0, 4.min(name.len()), name.len()]) } else { rng.usize(..=name.len()) };
        let sign = pick(rng, SIGNS).as_bytes();
        if once_in(rng, 3) && at < name.len() {
            name.splice(at..=at, sign.iter().copied());
        } else {
            name.splice(at..at, sign.iter().copied());
        }
    }
    name
}

const NAMES: &[&str] = &[
    "USERNAME",
    "Username",
    "userName",
    "username[]",
    "username[0]",
    "username[a][b]",
    "][username",
    "[username",
    "username[",
    "username]",
    "[username]",
    "[[username]]",
    "username[[]",
    "username[]]",
    "username][",
    "user name",
    "user.name",
    "user[name",
    "user]name",
    "user_name",
    "user[name]",
    "user[name][]",
    "user[][name]",
    "user][name]",
    "[user]name",
    "[user][name]",
    "user[ name]",
    "user[name]]",
    "user[[name]",
    "user[name ]",
    "user [name]",
    "user.name[]",
    "user[\"name\"]",
    "user['name']",
    "username.",
    ".username",
    "username ",
    " username",
    "\tusername",
    "username\t",
    "username\0",
    "username\0x",
    "\0username",
    "usern\0ame",
    "?username",
    "&username",
    "username;",
    ";username",
    "username:",
    "!username",
    "_username",
    "@username",
    "$username",
    "\u{feff}username",
    "username\u{a0}",
    "\u{a0}username",
    "\u{200b}username",
    "user\u{ad}name",
    "u\u{17f}ername",
    "username'",
    "'username'",
    "\"username\"",
    "username\r",
    "username\n",
    "\r\nusername",
    "username\u{b}",
    "\u{c}username",
    "username=",
    "=username",
    "user\\name",
    "\\username",
    "username\\",
    "user_name[",
    "user_name[]",
    "user-name",
    "user+name",
    "user[name",
    "user.name.",
    "user..name",
    "user__name",
    "user _name",
];

const SIGNS: &[&str] = &[
    "[", "]", "[]", "[0]", ".", "_", " ", "+", "\0", "\t", "\r", "\n", "\u{b}", "\u{c}", "\u{a0}", "\u{feff}", "!",
    "?", "&", ";", "=", "\"", "'", "\\", "%", "*", "-", ",", ":", "/", "#", "(", "@", "\u{1f}", "\u{7f}", "\u{85}",
    "\u{200b}", "\u{2028}", "\u{ff3b}", "x", "][",
];
