//! The formats as one type, and which of them a line has.

use super::caddy;
use super::combined;
use super::haproxy;
use super::log_line::LogLine;
use super::portcullis;
use super::portcullis_human;
use super::portcullis_otel;
use super::traefik;
use super::traefik_common;

/// What an operator says of a log.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum LogFormat {
    /// Each file says by its first lines what it is.
    #[default]
    Auto,
    Portcullis,
    /// Common and combined.
    Combined,
    Caddy,
    Traefik,
    Haproxy,
}

/// The format of a line.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum LineFormat {
    /// The formats `json` and `ecs`, which differ in the names of fields.
    Portcullis,
    PortcullisOtel,
    PortcullisHuman,
    Caddy,
    Traefik,
    TraefikCommon,
    Haproxy,
    Combined,
}

impl LogFormat {
    /// The formats that a line may have, those first that only their own lines have.
    pub fn candidates(self) -> &'static [LineFormat] {
        match self {
            Self::Auto => &[
                LineFormat::Portcullis,
                LineFormat::PortcullisOtel,
                LineFormat::Caddy,
                LineFormat::Traefik,
                LineFormat::PortcullisHuman,
                LineFormat::TraefikCommon,
                LineFormat::Combined,
                LineFormat::Haproxy,
            ],
            Self::Portcullis => &[LineFormat::Portcullis, LineFormat::PortcullisOtel, LineFormat::PortcullisHuman],
            Self::Combined => &[LineFormat::Combined],
            Self::Caddy => &[LineFormat::Caddy],
            Self::Traefik => &[LineFormat::Traefik, LineFormat::TraefikCommon],
            Self::Haproxy => &[LineFormat::Haproxy],
        }
    }
}

impl LineFormat {
    /// Reads one line, without its end. `None`: it is not a line of this format.
    pub fn read(self, line: &[u8]) -> Option<LogLine> {
        match self {
            Self::Portcullis => portcullis::read(line),
            Self::PortcullisOtel => portcullis_otel::read(line),
            Self::PortcullisHuman => portcullis_human::read(line),
            Self::Caddy => caddy::read(line),
            Self::Traefik => traefik::read(line),
            Self::TraefikCommon => traefik_common::read(line),
            Self::Haproxy => haproxy::read(line),
            Self::Combined => combined::read(line),
        }
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Portcullis | Self::PortcullisOtel | Self::PortcullisHuman => "portcullis",
            Self::Caddy => "caddy",
            Self::Traefik | Self::TraefikCommon => "traefik",
            Self::Haproxy => "haproxy",
            Self::Combined => "combined",
        }
    }
}
