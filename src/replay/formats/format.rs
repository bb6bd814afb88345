//! The formats as one type, and which of them a line has.

use super::alb;
use super::caddy;
use super::combined;
use super::envoy;
use super::haproxy;
use super::haproxy_clf;
use super::iis;
use super::json;
use super::log_line::LogLine;
use super::nginx_proxy_manager;
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
    /// With fields of any name.
    Json,
    Envoy,
    Alb,
    Iis,
    NginxProxyManager,
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
    HaproxyClf,
    Json,
    Envoy,
    Alb,
    Iis,
    NginxProxyManager,
    Combined,
}

/// What the lines before say of a line, and the operator.
#[derive(Clone, Debug, Default)]
pub struct ReadState {
    pub fields: json::FieldNames,
    pub columns: iis::Columns,
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
                LineFormat::Json,
                LineFormat::PortcullisHuman,
                LineFormat::TraefikCommon,
                LineFormat::HaproxyClf,
                LineFormat::Envoy,
                LineFormat::Alb,
                LineFormat::Iis,
                LineFormat::NginxProxyManager,
                LineFormat::Combined,
                LineFormat::Haproxy,
            ],
            Self::Portcullis => &[LineFormat::Portcullis, LineFormat::PortcullisOtel, LineFormat::PortcullisHuman],
            Self::Combined => &[LineFormat::Combined],
            Self::Caddy => &[LineFormat::Caddy],
            Self::Traefik => &[LineFormat::Traefik, LineFormat::TraefikCommon],
            Self::Haproxy => &[LineFormat::HaproxyClf, LineFormat::Haproxy],
            Self::Json => &[LineFormat::Json],
            Self::Envoy => &[LineFormat::Envoy],
            Self::Alb => &[LineFormat::Alb],
            Self::Iis => &[LineFormat::Iis],
            Self::NginxProxyManager => &[LineFormat::NginxProxyManager],
        }
    }
}

impl LineFormat {
    /// Reads one line, without its end. `None`: it is not a line of this format.
    pub fn read(self, line: &[u8], state: &mut ReadState) -> Option<LogLine> {
        match self {
            Self::Portcullis => portcullis::read(line),
            Self::PortcullisOtel => portcullis_otel::read(line),
            Self::PortcullisHuman => portcullis_human::read(line),
            Self::Caddy => caddy::read(line),
            Self::Traefik => traefik::read(line),
            Self::TraefikCommon => traefik_common::read(line),
            Self::Haproxy => haproxy::read(line),
            Self::HaproxyClf => haproxy_clf::read(line),
            Self::Json => json::read(line, &state.fields),
            Self::Envoy => envoy::read(line),
            Self::Alb => alb::read(line),
            Self::Iis => iis::read(line, &mut state.columns),
            Self::NginxProxyManager => nginx_proxy_manager::read(line),
            Self::Combined => combined::read(line),
        }
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Portcullis | Self::PortcullisOtel | Self::PortcullisHuman => "portcullis",
            Self::Caddy => "caddy",
            Self::Traefik | Self::TraefikCommon => "traefik",
            Self::Haproxy | Self::HaproxyClf => "haproxy",
            Self::Json => "json",
            Self::Envoy => "envoy",
            Self::Alb => "alb",
            Self::Iis => "iis",
            Self::NginxProxyManager => "nginx-proxy-manager",
            Self::Combined => "combined",
        }
    }
}
