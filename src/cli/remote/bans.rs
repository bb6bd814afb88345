//! `portcullis bans`: who is banned by a running gateway, and bans by hand.

use std::collections::BTreeMap;

use clap::Subcommand;
use clap::builder::PossibleValuesParser;
use http::Method;
use serde::Deserialize;
use serde_json::Value;
use serde_json::json;

use super::gateway::GatewayArguments;
use super::gateway::RemoteArguments;
use super::selector_value::parse_pair;
use super::selector_value::path_segment;
use crate::cli::arguments::Format;
use crate::cli::exit::Exit;
use crate::cli::output;
use crate::cli::output::Table;
use crate::units::Span;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  portcullis bans list
  portcullis bans add 198.51.100.7 --for 1h --reason 'scans for backups'
  portcullis bans add --limit login-failures param.username=alice --for 30m
  portcullis bans add 198.0.0.0/7 --for 1h --force
  portcullis bans remove 5f1d4c9a0b7e42f8a6c3d2e1908f7b6a
  portcullis bans remove 198.51.100.7
  portcullis bans remove --limit login-failures param.username=alice
  portcullis bans remove --all
  portcullis bans export --format nft | nft -f -
  portcullis bans export --format iptables | iptables-restore --noflush

A ban of a key holds on every route that its limit stands on; a ban of an address holds everywhere. Every gateway on
the same store sees a ban, and its end, within a second.
Exit codes: 0 done, 1 the input was wrong, 2 usage, 3 the gateway could not be reached.")]
pub(in crate::cli) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Every ban that lasts
    List(RemoteArguments),
    /// Ban an address, or a key of a limit, for a while
    Add(Add),
    /// Lift bans, and forget what was counted under their keys
    Remove(Remove),
    /// Banned networks in the words of a firewall or a server
    Export(Export),
}

#[derive(Debug, clap::Args)]
struct Add {
    /// An address or a network; with `--limit` the key: a value for each of its selectors
    #[arg(value_name = "ADDRESS | SELECTOR=VALUE", required_unless_present = "limit")]
    what: Vec<String>,
    /// Ban a key of this limit instead of an address
    #[arg(long, value_name = "NAME")]
    limit: Option<String>,
    /// How long: 15m, 1h, 7d
    #[arg(long = "for", value_name = "D")]
    span: Span,
    /// Why, for whoever reads the list
    #[arg(long, value_name = "R", default_value = "")]
    reason: String,
    /// Ban a network of more than a /8 (IPv6: a /16) all the same
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    remote: RemoteArguments,
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
    /// Lift every ban there is
    #[arg(long, conflicts_with_all = ["what", "limit"])]
    all: bool,
    #[command(flatten)]
    remote: RemoteArguments,
}

#[derive(Debug, clap::Args)]
struct Export {
    /// Who is to read it
    #[arg(long, value_name = "F", value_parser = PossibleValuesParser::new(FORMATS), default_value = "plain")]
    format: String,
    #[command(flatten)]
    gateway: GatewayArguments,
}

/// As the admin API knows them.
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
        Format::Json => output::say_json(&answer),
        Format::Human => {
            let bans: Vec<Ban> = serde_json::from_value(answer)?;
            let mut table = Table::new(["ID", "BANNED", "UNTIL", "REASON"]);
            for ban in &bans {
                table.row([ban.id.clone(), ban.what(), ban.until.clone(), ban.reason.clone()]);
            }
            if bans.is_empty() { output::say("nobody is banned") } else { output::say(&table.to_string()) }
        }
    }
    Ok(Exit::Done)
}

fn add(wanted: &Add) -> anyhow::Result<Exit> {
    let document = match wanted.document() {
        Ok(document) => document,
        Err(wrong) => {
            output::complain(&wrong);
            return Ok(Exit::Wrong);
        }
    };
    let answer = match wanted.remote.gateway.send(Method::POST, BANS, &document)? {
        Ok(answer) => answer,
        Err(exit) => return Ok(exit),
    };
    match wanted.remote.format {
        Format::Json => output::say_json(&answer),
        Format::Human => {
            let ban: Ban = serde_json::from_value(answer)?;
            output::say(&format!("{} is banned until {}: {}", ban.what(), ban.until, ban.id));
        }
    }
    Ok(Exit::Done)
}

fn remove(wanted: &Remove) -> anyhow::Result<Exit> {
    let query = match wanted.query() {
        Ok(Named::Query(query)) => query,
        Ok(Named::Id(id)) => return remove_one(id, &wanted.remote),
        Err(wrong) => {
            output::complain(&wrong);
            return Ok(Exit::Wrong);
        }
    };
    let answer = match wanted.remote.gateway.ask_patiently(Method::DELETE, &format!("{BANS}?{query}"))? {
        Ok(answer) => answer,
        Err(exit) => return Ok(exit),
    };
    match wanted.remote.format {
        Format::Json => output::say_json(&answer),
        Format::Human => {
            let Lifted { lifted, remaining } = serde_json::from_value(answer)?;
            for ban in &lifted {
                output::say(&format!("{}: the ban of {} is lifted", ban.id, ban.what()));
            }
            if lifted.is_empty() {
                output::say("nobody is banned");
            }
            if let Some(wider) = remaining {
                output::say(&format!("{}: still banned, as part of {}", wider.id, wider.what()));
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
        Format::Json => output::say_json(&json!({"id": id, "removed": true})),
        Format::Human => output::say(&format!("{id}: the ban is lifted")),
    }
    Ok(Exit::Done)
}

fn export(wanted: &Export) -> anyhow::Result<Exit> {
    let target = format!("{BANS}/export?format={}", wanted.format);
    Ok(match wanted.gateway.ask_for_text(Method::GET, &target)? {
        Ok(text) => {
            output::say_as_is(&text);
            Exit::Done
        }
        Err(exit) => exit,
    })
}

const BANS: &str = "/api/v1/bans";

impl Add {
    /// What the API is asked for, or what is wrong.
    fn document(&self) -> Result<Value, String> {
        let mut document = json!({"for": self.span.to_string(), "reason": self.reason, "force": self.force});
        match (&self.limit, self.what.as_slice()) {
            (None, [address]) => document["address"] = json!(address),
            (None, _) => return Err("one address at a time".to_owned()),
            (Some(limit), parts) => {
                document["limit"] = json!(limit);
                document["key"] = json!(key(parts)?);
            }
        }
        Ok(document)
    }
}

/// How bans are named that are to be lifted.
enum Named<'w> {
    Id(&'w str),
    Query(String),
}

impl Remove {
    /// What the API is asked to lift, or what is wrong.
    fn query(&self) -> Result<Named<'_>, String> {
        let mut query = form_urlencoded::Serializer::new(String::new());
        match (&self.limit, self.what.as_slice()) {
            _ if self.all => query.append_pair("all", "true"),
            (Some(limit), parts) => query.append_pair("limit", limit).extend_pairs(key(parts)?),
            // Only an address has these.
            (None, [address]) if address.contains(['.', ':']) => query.append_pair("address", address),
            (None, [id]) => return Ok(Named::Id(id)),
            (None, _) => return Err("one at a time, or `--all`".to_owned()),
        };
        Ok(Named::Query(query.finish()))
    }
}

/// A key of a limit, a value for each of its selectors.
fn key(parts: &[String]) -> Result<BTreeMap<String, String>, String> {
    let mut key = BTreeMap::new();
    for part in parts {
        let (name, value) = parse_pair(part).map_err(|wrong| format!("`--limit` goes with a key: {wrong}"))?;
        if key.insert(name.clone(), value).is_some() {
            return Err(format!("several values for `{name}`: a key has one of each part"));
        }
    }
    Ok(key)
}

/// What became of bans that were to be lifted.
#[derive(Debug, Deserialize)]
struct Lifted {
    lifted: Vec<Ban>,
    /// The ban of a wider network.
    remaining: Option<Ban>,
}

/// What of a ban a person is shown.
#[derive(Debug, Deserialize)]
struct Ban {
    id: String,
    address: Option<String>,
    limit: Option<String>,
    #[serde(default)]
    key: BTreeMap<String, String>,
    until: String,
    reason: String,
}

impl Ban {
    /// `198.51.100.0/24`, or `login-failures: param.username=a***`
    fn what(&self) -> String {
        if let Some(address) = &self.address {
            return address.clone();
        }
        let parts: Vec<_> = self.key.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let key = if parts.is_empty() { "one key for all".to_owned() } else { parts.join(" ") };
        format!("{}: {key}", self.limit.as_deref().unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ban_is_told_by_what_is_banned() {
        let what = |document: Value| serde_json::from_value::<Ban>(document).unwrap().what();
        assert_eq!(what(json!({"id": "1", "address": "10.0.0.0/8", "until": "", "reason": ""})), "10.0.0.0/8");
        let key = json!({"param.user": "a***", "client_ip": "10.0.*.*"});
        let ban = json!({"id": "1", "limit": "pace", "key": key, "until": "", "reason": ""});
        assert_eq!(what(ban), "pace: client_ip=10.0.*.* param.user=a***");
        assert_eq!(
            what(json!({"id": "1", "limit": "all", "key": {}, "until": "", "reason": ""})),
            "all: one key for all"
        );
    }
}
