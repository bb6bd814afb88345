//! The formats as one type, and which of them a line has.

use std::borrow::Cow;

use super::{caddy, combined, haproxy, iis, json, load_balancers, portcullis, traefik};
use crate::replay::LoggedRequest;
use crate::replay::formats::prefix::{JoinedLine, Pieces};
use crate::replay::formats::{FieldNames, prefix};

/// The operator's description of a log.
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

/// The context of a line: earlier lines, and the operator's description.
#[derive(Clone, Debug, Default)]
pub struct ReadState {
    pub fields: FieldNames,
    pub columns: iis::Columns,
}

impl LogFormat {
    /// The formats that a line may have. Formats that match only their own lines come first.
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
            Self::PortcullisOtel => portcullis::read_otel(line),
            Self::PortcullisHuman => portcullis::read_human(line),
            Self::Caddy => caddy::read(line),
            Self::Traefik => traefik::read(line),
            Self::TraefikCommon => traefik::read_common(line),
            Self::Haproxy => haproxy::read(line),
            Self::HaproxyClf => haproxy::read_clf(line),
            Self::Json => json::read(line, &state.fields),
            Self::Envoy => load_balancers::read_envoy(line),
            Self::Alb => load_balancers::read_alb(line),
            Self::Iis => iis::read(line, &mut state.columns),
            Self::NginxProxyManager => combined::read_npm(line),
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

// A line of a log that was understood.

/// A line that was understood.
#[derive(Clone, Debug, PartialEq)]
pub enum LogLine {
    Request(LoggedRequest),
    /// It holds no request for the rules: the gateway would refuse it before, or the line is about something else.
    NoRequest,
    /// It describes the lines after it.
    Directive,
    /// A proxy has asked about descriptors. The log does not hold which.
    DescriptorCall,
}

// Reads the lines of one file, whose format its first line that can be read decides.

/// As syslog within the log of a container.
const MOST_LAYERS: usize = 2;

/// Reads the lines of one file.
#[derive(Debug)]
pub struct LineReader {
    candidates: Vec<LineFormat>,
    /// `None`: no line could be read yet.
    pub format: Option<LineFormat>,
    state: ReadState,
    pieces: Pieces,
}

/// The result of reading a line.
#[derive(Debug, PartialEq)]
pub enum LineContent<'l> {
    Line(LogLine),
    /// A piece of a line, which is read with its last piece.
    Piece,
    /// With its text, without the layers around it, and joined if it was in pieces.
    Unreadable(Cow<'l, [u8]>),
}

impl LineReader {
    pub fn new(format: LogFormat, fields: &FieldNames) -> Self {
        let mut candidates = format.candidates().to_vec();
        if fields.is_any_named() && format == LogFormat::Auto {
            // If the operator names fields, no other format may match the line.
            candidates.insert(0, LineFormat::Json);
        }
        let state = ReadState { fields: fields.clone(), ..ReadState::default() };
        Self { candidates, format: None, state, pieces: Pieces::default() }
    }

    /// Reads one line, without its end, as it is or within what syslog and containers write around it.
    pub fn read<'l>(&mut self, line: &'l [u8]) -> LineContent<'l> {
        self.read_within(line, MOST_LAYERS)
    }

    /// Reads a line whose last piece is not in the file. `None`: there is none.
    pub fn rest(&mut self) -> Option<LineContent<'static>> {
        self.pieces.rest().map(|line| self.read_joined(line, MOST_LAYERS - 1))
    }

    fn read_within<'l>(&mut self, line: &'l [u8], layers: usize) -> LineContent<'l> {
        if let Some(read) = self.read_bare(line) {
            return LineContent::Line(read);
        }
        let layer = if layers > 0 { prefix::without(line) } else { None };
        let Some(layer) = layer else { return LineContent::Unreadable(Cow::Borrowed(line)) };
        match self.pieces.join(layer) {
            None => LineContent::Piece,
            Some(joined) => self.read_joined(joined, layers - 1),
        }
    }

    fn read_joined<'l>(&mut self, line: JoinedLine<'l>, layers: usize) -> LineContent<'l> {
        if line.is_too_long {
            return LineContent::Unreadable(line.text);
        }
        match line.text {
            Cow::Borrowed(text) => self.read_within(text, layers),
            Cow::Owned(text) => match self.read_within(&text, layers) {
                LineContent::Line(read) => LineContent::Line(read),
                LineContent::Piece => LineContent::Piece,
                LineContent::Unreadable(_) => LineContent::Unreadable(Cow::Owned(text)),
            },
        }
    }

    fn read_bare(&mut self, line: &[u8]) -> Option<LogLine> {
        if let Some(format) = self.format {
            return format.read(line, &mut self.state);
        }
        let state = &mut self.state;
        let (format, read) = self.candidates.iter().find_map(|format| Some((*format, format.read(line, state)?)))?;
        self.format = Some(format);
        Some(read)
    }
}
