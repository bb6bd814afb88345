//! `portcullis bans`: lists, adds, lifts and exports the bans of a running gateway.

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
    /// An address or a network; with `--limit` the key: a value for each of its selectors
    #[arg(value_name = "ADDRESS | SELECTOR=VALUE", required_unless_present = "limit")]
    what: Vec<String>,
    /// Ban a key of this limit instead of an address
    #[arg(long, value_name = "NAME")]
    limit: Option<String>,
    /// How long: 15m, 1h, 7d
    #[arg(long = "for", value_name = "D")]
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
            let bans: Vec<BanView> = serde_json::from_value(answer)?;
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
    let answer = match wanted.remote.gateway.send(Method::POST, BANS, &document)? {
        Ok(answer) => answer,
        Err(exit) => return Ok(exit),
    };
    match wanted.remote.format {
        Format::Json => output::print_json(&answer)?,
        Format::Human => {
            let ban: BanView = serde_json::from_value(answer)?;
            output::print(&format!("{} is banned until {}: {}", ban.subject(), ban.until, ban.id))?;
            if ban.is_only_here() {
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
            let LiftedBans { lifted, remaining } = serde_json::from_value(answer)?;
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
            (None, [address]) => document["address"] = json!(address),
            (None, _) => return Err("write one address at a time".to_owned()),
            (Some(limit), parts) => {
                document["limit"] = json!(limit);
                document["key"] = json!(key(parts)?);
            }
        }
        Ok(document)
    }
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

/// The answer to a request to lift bans.
#[derive(Debug, Deserialize)]
struct LiftedBans {
    lifted: Vec<BanView>,
    /// The ban of a wider network.
    remaining: Option<BanView>,
}

/// The fields of a ban that are printed.
#[derive(Debug, Deserialize)]
struct BanView {
    id: String,
    address: Option<String>,
    limit: Option<String>,
    #[serde(default)]
    key: BTreeMap<String, String>,
    until: String,
    reason: String,
    scope: String,
}

impl BanView {
    /// Whether the other gateways on the store do not know it.
    fn is_only_here(&self) -> bool {
        self.scope == "this_gateway"
    }

    /// `198.51.100.0/24`, or `login-failures: param.username=a***`
    fn subject(&self) -> String {
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
    fn a_ban_is_printed_with_its_address_or_key() {
        let subject = |document: Value| serde_json::from_value::<BanView>(document).unwrap().subject();
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
