//! Helps that say what to do and not what to write, each with the reason, and what they need beside them.

/// What a help contains that is advice, and why nothing can be written for it.
pub(super) const ADVICE: &[(&str, &str)] = &[
    ("write one anew", "it is about the whole file"),
    ("`portcullis convert ratelimit FILE`", "a program writes the file"),
    ("lists have names: define", "it takes two changes"),
    ("no list holds everyone", PLACE),
    ("write it into the `match`", PLACE),
    ("the keys here are", KEYS),
    ("its keys are", KEYS),
    ("selectors are", "a list of the selectors to choose from"),
    ("expected second, minute", UNITS),
    ("expected ms, s", UNITS),
    ("expected B, KiB", UNITS),
    ("expected 0 to", "the prefix is a part of the value"),
    ("a port is a number", "the port is a part of the value"),
    ("remove the number", "the number is a part of the URL"),
    ("remove the password from the url", "the password is a part of the URL"),
    ("into it, as one line", CONTENT),
    ("write one line into it", CONTENT),
    ("paths are relative", CONTENT),
    ("check the path", CONTENT),
    ("write the path of a file in a directory that exists", CONTENT),
    ("PEM file", CONTENT),
    ("name a directory with a page", CONTENT),
    ("put denied.html or error.html there", CONTENT),
    ("name it denied.html or error.html", CONTENT),
    ("a page may have", CONTENT),
    ("write a JWK set", CONTENT),
    ("copy the whole file again", CONTENT),
    ("convert it", CONTENT),
    ("name the key of this certificate", CONTENT),
    ("write the one that `cscli machines list` shows", CONTENT),
    ("make a key with `cscli", CONTENT),
    ("get the certificate with an ACME client", CONTENT),
    ("name one file", "which of the files is meant is not known"),
    ("write the whole name", "which of the names is meant is not known"),
    ("fetch it into a file at times", "another program fetches it"),
    ("write each server", "which servers are meant is not known"),
    ("write a route for each domain", "which domains are meant is not known"),
    ("name each, or leave the methods out", "which methods are meant is not known"),
    ("name those alone", "which of the cookies are meant is not known"),
    ("give one of the two another", NAME),
    ("use letters, digits", NAME),
    ("end the name with a letter", NAME),
    ("rename the", NAME),
    ("or rename one", NAME),
    ("the other one is at line", NAME),
    ("write a word as the name", NAME),
    ("move the limit", PLACE),
    ("move it to", PLACE),
    ("keep `domain` alone", PLACE),
    ("write it under `unless`", PLACE),
    ("write such a list under", PLACE),
    ("name the values at the limit", PLACE),
    ("name one of them, and make a list of its own", PLACE),
    ("write all selectors into one list", PLACE),
    ("write one limit for each", PLACE),
    ("write two limits", PLACE),
    ("write a limit with a `rate`", PLACE),
    ("write `only` or `access.deny`", PLACE),
    ("match parameters with `query`", PLACE),
    ("write a name, a colon", "the value is not known"),
    ("write one value, without", "which of the values is meant is not known"),
    ("write `${NAME}`", "the name of the variable is not known"),
    ("lower the", "how much is wanted is not known"),
    ("repeat less", "what is wanted is not known"),
    ("count different values of another selector", "which one is wanted is not known"),
    ("give every url the same", "which one is right is not known"),
    ("header values are one line", "what is wanted is not known"),
];

const KEYS: &str = "a list of the keys to choose from";
const UNITS: &str = "a list of the units to choose from";
const CONTENT: &str = "it is about the content of a file";
const NAME: &str = "any other name will do";
const PLACE: &str = "it belongs elsewhere, which only its author can decide";

/// Mistakes that may follow a help because what it says needs something else beside it, which their own help says.
pub(super) const FOLLOWED_BY: &[(&str, &str)] = &[
    ("needs the meaning of the application's answers", "an outcome"),
    ("no client can become", "known clients, or an answer that is a success"),
    ("no answer of this route is a success", "an outcome"),
    ("the route's path has no capture", "a capture"),
    ("there is no channel", "the channel"),
    ("lets only trusted proxies connect", "the proxies, or another word"),
    ("a `ban` of", "a shorter one of the times that a duration may be"),
    ("expected a map, found a single value", "the map that the key takes"),
    ("would be valid for more than an hour", "a shorter one of the times that a duration may be"),
];

/// What is wrong after a help was followed, and stays so whatever the help says.
pub(super) const FOLLOWED_BY_DANGER: &[(&str, &str)] = &[
    (
        "any client may invent a new `header.x-api-key`",
        "whoever counts by a header alone shall know, whatever its name is",
    ),
    ("this login is limited only by client", "a login needs a limit for each account too, and now it can have one"),
    ("a Redis url must not contain", "the url has this mistake too, behind the one that was mended"),
];

/// What the reader of YAML finds. Nothing of it is left in a file that is written anew.
pub(super) const OF_THE_READER: &[(&str, &str)] = &[
    ("keep one of the two", "the second one is not read"),
    ("remove the tag", "it is not read"),
    ("use an anchor and its alias", "the value is written out"),
    ("write one anew", "it is not the text of another program any more"),
];

/// Texts that are no YAML: the file, and what a person replaces by what; with `$` up to the end.
pub(super) const BY_HAND: &[(&str, &str, &str)] = &[
    ("at-unquoted.yaml", "@slow", "\"@slow\""),
    ("bad-indentation.yaml", "\n format", "\n  format"),
    ("colon-in-value.yaml", "slow down: you are too fast", "\"slow down: you are too fast\""),
    ("alias-bomb.yaml", "a: &a$", "lists: {names: {of: param.username, file: abusers.list}}\n"),
    ("deep.yaml", "[[[$", "[]\n"),
    ("empty.yaml", "", "listen: 0.0.0.0:8080\nupstream: http://127.0.0.1:8000\n"),
    ("habit-nginx-include.yaml", "include /etc/portcullis/sites/*.yaml\n", ""),
    (
        "habit-nginx-limit-req-zone.yaml",
        "limit_req_zone $binary_remote_addr zone=one:10m rate=1r/s;",
        "limits: [{key: client_ip, rate: 10/second}]",
    ),
    ("habit-nginx-listen-ipv6.yaml", "[::]:80", "\"[::]:80\""),
    ("not-utf8.yaml", "caf\u{fffd}", "cafe"),
    ("notify-broken.yaml", "\"https://example.com/hunter2\" x", "\"https://example.com/hunter2\""),
    ("only-comments.yaml", "# nothing yet\n", "listen: 0.0.0.0:8080\nupstream: http://127.0.0.1:8000\n"),
    ("star-unquoted.yaml", "*.example.com", "\"*.example.com\""),
    ("tab.yaml", "\t", "  "),
    ("two-documents.yaml", "---\nlisten: 0.0.0.0:9090\n", ""),
    ("unclosed-brace.yaml", "1/second", "1/second}"),
    ("unclosed-bracket.yaml", "10.0.0.0/8", "10.1.2.0/24]"),
    ("unclosed-quote.yaml", "\"ietf", "\"ietf\""),
    ("unknown-anchor.yaml", "*base", "&base {key: client_ip, rate: 1/second}"),
    ("yaml-brace-in-flow.yaml", "/users/{id}", "\"/users/{id}\""),
];

/// A text in which `...` stands for what its author has.
pub(super) fn filled(text: &str) -> String {
    let author_has = [
        ("lists: {", "{addresses: [10.9.8.0/24]}"),
        ("notify: {", "{webhook: \"https://chat.internal/T1/B2\"}"),
        ("OFFICE", "10.9.8.0/24"),
    ];
    let has = author_has.iter().find(|(of, _)| text.contains(of)).map_or("x", |(_, has)| has);
    text.replace("...", has)
}

/// A value in which the text replaces a part: the scheme of a URL, the count of a rate, or a variable.
pub(super) fn with_part(value: &str, text: &str) -> Option<String> {
    if let (true, Some((_, rest))) = (text.ends_with("://"), value.split_once("://")) {
        return Some(format!("{text}{rest}"));
    }
    // The count of a rate.
    if text.chars().all(|letter| letter.is_ascii_digit()) && value.contains('/') {
        let rest = value.trim_start_matches(|letter: char| letter.is_ascii_digit());
        return rest.starts_with('/').then(|| format!("{text}{rest}"));
    }
    let (name, _) = text.strip_prefix("${")?.split_once(":-")?;
    Some(value.replace(&format!("${{{name}}}"), text))
}
