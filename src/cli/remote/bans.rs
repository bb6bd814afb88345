//! `portcullis bans`: lists, adds, lifts and exports the bans of a running gateway.

use std::collections::BTreeMap;
use std::io;

use clap::Subcommand;
use clap::builder::PossibleValuesParser;
use http::Method;
use serde_json::{Value, json};

use super::gateway::{GatewayArguments, RemoteArguments};
use crate::api::bans::{BanResponse, BannedResponse, LiftedResponse};
use crate::cli::output;
use crate::cli::output::Table;
use crate::cli::program::{Exit, Format};
use crate::cli::remote::limits::{parse_pair, path_segment};
use crate::words::units::{InvalidSpan, Span};
use crate::words::word::Help;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  portcullis bans list
  portcullis bans add 198.51.100.7 --for 1h --reason 'scans for backups'
  portcullis bans add 198.51.100.0/26 203.0.113.9 2001:db8:7::/48 --for 6h
  portcullis bans add - --for 6h < addresses.txt
  portcullis bans add --limit login-failures param.username=alice --for 30m
  portcullis bans add 198.0.0.0/7 --for 1h --force
  portcullis bans remove 5f1d4c9a0b7e42f8a6c3d2e1908f7b6a
  portcullis bans remove 198.51.100.7
  portcullis bans remove --limit login-failures param.username=alice
  portcullis bans remove --all
  portcullis bans export --format nft | nft -f -
  portcullis bans export --format iptables | iptables-restore --noflush

A ban of a key applies on every route that has the limit. A ban of an address applies everywhere. Every gateway on
the same store sees a ban, and its end, within a second.
Exit codes: 0 done, 1 the input was wrong, 2 usage, 3 the gateway could not be reached.")]
pub(in crate::cli) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List the bans in force
    List(RemoteArguments),
    /// Ban an address, or a key of a limit, for a while
    Add(Add),
    /// Lift bans, and reset the counters of their keys
    Remove(Remove),
    /// Print banned networks in the format of a firewall or a server
    Export(Export),
}

#[derive(Debug, clap::Args)]
struct Add {
    /// Addresses and networks, at most 10,000: all are banned, or none. `-` reads them from standard input, where a `#`
    /// begins a comment. With `--limit` the key: a value for each of its selectors
    #[arg(value_name = "ADDRESS | - | SELECTOR=VALUE", required_unless_present = "limit")]
    what: Vec<String>,
    /// Ban a key of this limit instead of an address
    #[arg(long, value_name = "NAME")]
    limit: Option<String>,
    /// How long: 15m, 1h, 7d
    #[arg(long = "for", value_name = "D", value_parser = span)]
    span: Span,
    /// The reason, shown in the list
    #[arg(long, value_name = "R", default_value = "")]
    reason: String,
    /// Ban a network larger than a /8 (IPv6: a /16)
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    remote: RemoteArguments,
}

fn span(text: &str) -> Result<Span, String> {
    text.parse().map_err(|error: InvalidSpan| error.sentence())
}

#[derive(Debug, clap::Args)]
struct Remove {
    /// An id as `bans list` shows it; an address or a network, whose bans by limits are lifted too; with `--limit` the
    /// key: a value for each of its selectors
    #[arg(value_name = "ID | ADDRESS | SELECTOR=VALUE", required_unless_present_any = ["limit", "all"])]
    what: Vec<String>,
    /// Lift the ban of a key of this limit
    #[arg(long, value_name = "NAME")]
    limit: Option<String>,
    /// Lift every ban
    #[arg(long, conflicts_with_all = ["what", "limit"])]
    all: bool,
    #[command(flatten)]
    remote: RemoteArguments,
}

#[derive(Debug, clap::Args)]
struct Export {
    /// The firewall or server
    #[arg(long, value_name = "F", value_parser = PossibleValuesParser::new(FORMATS), default_value = "plain")]
    format: String,
    #[command(flatten)]
    gateway: GatewayArguments,
}

/// What is said of a ban that Redis does not have yet.
const ONLY_HERE: &str = "only this gateway knows it: Redis does not answer; the other gateways know it when it is back";

/// The formats of the admin API.
const FORMATS: [&str; 9] = ["plain", "nft", "ipset", "iptables", "pf", "hosts.deny", "nginx", "haproxy", "cisco"];

pub(in crate::cli) fn bans(arguments: &Arguments) -> anyhow::Result<Exit> {
    match &arguments.command {
        Command::List(remote) => list(remote),
        Command::Add(wanted) => add(wanted),
        Command::Remove(wanted) => remove(wanted),
        Command::Export(wanted) => export(wanted),
    }
}

fn list(RemoteArguments { gateway, format }: &RemoteArguments) -> anyhow::Result<Exit> {
    let answer = match gateway.ask(Method::GET, BANS)? {
        Ok(answer) => answer,
        Err(exit) => return Ok(exit),
    };
    match format {
        Format::Json => output::print_json(&answer)?,
        Format::Human => {
            let bans: Vec<BanResponse> = serde_json::from_value(answer)?;
            let mut table = Table::new(["ID", "BANNED", "UNTIL", "REASON"]);
            for ban in &bans {
                table.row([ban.id.clone(), ban.subject(), ban.until.clone(), ban.reason.clone()]);
            }
            if bans.is_empty() {
                output::print("no bans")?;
            } else {
                output::print(&table.to_string())?;
            }
            if let count @ 1.. = bans.iter().filter(|ban| ban.is_only_here()).count() {
                output::print(&format!("{count} of {}: {ONLY_HERE}", bans.len()))?;
            }
            if let count @ 1.. = bans.iter().filter(|ban| ban.unenforced).count() {
                output::print(&format!("{count} of {}: {UNENFORCED}", bans.len()))?;
            }
        }
    }
    Ok(Exit::Done)
}

fn add(wanted: &Add) -> anyhow::Result<Exit> {
    let document = match wanted.document() {
        Ok(document) => document,
        Err(wrong) => {
            output::print_error(&wrong);
            return Ok(Exit::Wrong);
        }
    };
    let answer = match wanted.remote.gateway.send_patiently(Method::POST, BANS, &document)? {
        Ok(answer) => answer,
        Err(exit) => return Ok(exit),
    };
    match wanted.remote.format {
        Format::Json => output::print_json(&answer)?,
        Format::Human => {
            let banned = match serde_json::from_value(answer)? {
                BannedResponse::Several { banned } => banned,
                BannedResponse::One(ban) => vec![ban],
            };
            let lines = banned.iter().map(|ban| format!("{} is banned until {}: {}", ban.subject(), ban.until, ban.id));
            output::print(&lines.collect::<Vec<_>>().join("\n"))?;
            if banned.iter().any(BanResponse::is_only_here) {
                output::print(ONLY_HERE)?;
            }
        }
    }
    Ok(Exit::Done)
}

fn remove(wanted: &Remove) -> anyhow::Result<Exit> {
    let query = match wanted.query() {
        Ok(BanSelection::Query(query)) => query,
        Ok(BanSelection::Id(id)) => return remove_one(id, &wanted.remote),
        Err(wrong) => {
            output::print_error(&wrong);
            return Ok(Exit::Wrong);
        }
    };
    let answer = match wanted.remote.gateway.ask_patiently(Method::DELETE, &format!("{BANS}?{query}"))? {
        Ok(answer) => answer,
        Err(exit) => return Ok(exit),
    };
    match wanted.remote.format {
        Format::Json => output::print_json(&answer)?,
        Format::Human => {
            let LiftedResponse { lifted, remaining } = serde_json::from_value(answer)?;
            for ban in &lifted {
                output::print(&format!("{}: the ban of {} is lifted", ban.id, ban.subject()))?;
            }
            if lifted.is_empty() {
                output::print("no bans")?;
            }
            if let Some(wider) = remaining {
                output::print(&format!("{}: still banned, as part of {}", wider.id, wider.subject()))?;
            }
        }
    }
    Ok(Exit::Done)
}

fn remove_one(id: &str, RemoteArguments { gateway, format }: &RemoteArguments) -> anyhow::Result<Exit> {
    if let Err(exit) = gateway.ask(Method::DELETE, &format!("{BANS}/{}", path_segment(id)))? {
        return Ok(exit);
    }
    match format {
        Format::Json => output::print_json(&json!({"id": id, "removed": true})),
        Format::Human => output::print(&format!("{id}: the ban is lifted")),
    }?;
    Ok(Exit::Done)
}

fn export(wanted: &Export) -> anyhow::Result<Exit> {
    let target = format!("{BANS}/export?format={}", wanted.format);
    Ok(match wanted.gateway.ask_for_text(&target, "text/plain")? {
        Ok(text) => {
            output::print_as_is(&text)?;
            Exit::Done
        }
        Err(exit) => exit,
    })
}

const BANS: &str = "/api/v1/bans";

impl Add {
    /// The body of the request, or an error message.
    fn document(&self) -> Result<Value, String> {
        let mut document = json!({"for": self.span.to_string(), "reason": self.reason, "force": self.force});
        match (&self.limit, self.what.as_slice()) {
            (None, [address]) if address != "-" => document["address"] = json!(address),
            (None, addresses) => document["addresses"] = json!(with_standard_input(addresses)?),
            (Some(limit), parts) => {
                document["limit"] = json!(limit);
                document["key"] = json!(key(parts)?);
            }
        }
        Ok(document)
    }
}

/// The addresses, and in place of a `-` those of standard input.
fn with_standard_input(addresses: &[String]) -> Result<Vec<String>, String> {
    let mut all = Vec::new();
    for address in addresses {
        if address == "-" {
            let text = io::read_to_string(io::stdin()).map_err(|error| format!("standard input: {error}"))?;
            all.extend(words(&text).map(str::to_owned));
        } else {
            all.push(address.clone());
        }
    }
    if all.is_empty() { Err("standard input has no address".to_owned()) } else { Ok(all) }
}

/// Addresses are separated by blanks, commas or ends of lines. A `#` begins a comment.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default());
    let words = lines.flat_map(|line| line.split([' ', '\t', ',', '\r']));
    words.filter(|word| !word.is_empty())
}

/// Which bans to lift.
enum BanSelection<'w> {
    Id(&'w str),
    Query(String),
}

impl Remove {
    /// The bans to lift, or an error message.
    fn query(&self) -> Result<BanSelection<'_>, String> {
        let mut query = form_urlencoded::Serializer::new(String::new());
        match (&self.limit, self.what.as_slice()) {
            _ if self.all => query.append_pair("all", "true"),
            (Some(limit), parts) => query.append_pair("limit", limit).extend_pairs(key(parts)?),
            // Only addresses contain these characters, ids do not.
            (None, [address]) if address.contains(['.', ':']) => query.append_pair("address", address),
            (None, [id]) => return Ok(BanSelection::Id(id)),
            (None, _) => return Err("write one at a time, or `--all`".to_owned()),
        };
        Ok(BanSelection::Query(query.finish()))
    }
}

/// A key of a limit: a value for each of its selectors.
fn key(parts: &[String]) -> Result<BTreeMap<String, String>, String> {
    let mut key = BTreeMap::new();
    for part in parts {
        let (name, value) = parse_pair(part).map_err(|wrong| format!("`--limit` needs a key: {wrong}"))?;
        if key.insert(name.clone(), value).is_some() {
            return Err(format!("several values for `{name}`: a key has one of each part"));
        }
    }
    Ok(key)
}

const UNENFORCED: &str = "this gateway has no such limit by now, and denies nobody by the ban";

impl BanResponse {
    /// Whether the other gateways on the store do not know it.
    fn is_only_here(&self) -> bool {
        self.scope == "this_gateway"
    }

    /// `198.51.100.0/24`, or `login-failures: param.username=a***`
    fn subject(&self) -> String {
        if let Some(address) = &self.address {
            return address.clone();
        }
        let parts: Vec<_> = self.key.iter().flatten().map(|(name, value)| format!("{name}={value}")).collect();
        let key = if parts.is_empty() { "one key for all".to_owned() } else { parts.join(" ") };
        format!("{}: {key}", self.limit.as_deref().unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_from_a_text_as_people_and_programs_write_them() {
        let text = "# scanners\n198.51.100.7\r\n203.0.113.0/24, 192.0.2.1  # one more\n\n\t2001:db8::/32\n";
        assert_eq!(words(text).collect::<Vec<_>>(), ["198.51.100.7", "203.0.113.0/24", "192.0.2.1", "2001:db8::/32"]);
    }

    #[test]
    fn a_ban_is_printed_with_its_address_or_key() {
        let subject = |document: Value| serde_json::from_value::<BanResponse>(document).unwrap().subject();
        assert_eq!(
            subject(json!({"id": "1", "address": "10.0.0.0/8", "until": "", "reason": "", "scope": "all"})),
            "10.0.0.0/8"
        );
        let key = json!({"param.user": "a***", "client_ip": "10.0.*.*"});
        let ban = json!({"id": "1", "limit": "pace", "key": key, "until": "", "reason": "", "scope": "all"});
        assert_eq!(subject(ban), "pace: client_ip=10.0.*.* param.user=a***");
        assert_eq!(
            subject(json!({"id": "1", "limit": "all", "key": {}, "until": "", "reason": "", "scope": "all"})),
            "all: one key for all"
        );
    }
}
