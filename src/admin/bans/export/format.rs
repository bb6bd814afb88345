//! The formats of an export.

use std::str::FromStr;

use utoipa::ToSchema;

/// The program that reads the export.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ToSchema)]
#[schema(rename_all = "lowercase")]
pub(super) enum Format {
    Plain,
    Nft,
    Ipset,
    Iptables,
    Pf,
    #[schema(rename = "hosts.deny")]
    HostsDeny,
    Nginx,
    Haproxy,
    Cisco,
}

impl FromStr for Format {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = FORMATS.iter().find(|(name, _)| *name == text).map(|(_, format)| *format);
        known.ok_or_else(|| {
            let names: Vec<_> = FORMATS.iter().map(|(name, _)| format!("`{name}`")).collect();
            format!("there is no such format, expected one of {}", names.join(", "))
        })
    }
}

const FORMATS: [(&str, Format); 9] = [
    ("plain", Format::Plain),
    ("nft", Format::Nft),
    ("ipset", Format::Ipset),
    ("iptables", Format::Iptables),
    ("pf", Format::Pf),
    ("hosts.deny", Format::HostsDeny),
    ("nginx", Format::Nginx),
    ("haproxy", Format::Haproxy),
    ("cisco", Format::Cisco),
];
