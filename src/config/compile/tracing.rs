//! The `tracing` section.

use super::compiler::Compiler;
use crate::config::raw::Document;
use crate::config::raw::InvalidValue;
use crate::record::spans::CollectorUrl;
use crate::record::spans::SampleRatio;
use crate::record::spans::TracingSettings;

impl Compiler {
    pub(super) fn tracing(&mut self, document: &Document) -> Option<TracingSettings> {
        let raw = document.tracing.get()?;
        let text = raw.otlp.get()?;
        let collector = CollectorUrl::parse(&text.value).map_err(InvalidValue::from);
        let collector = collector
            .map_err(|InvalidValue { message, help }| self.mistakes.report_secret(text.at, message, help))
            .ok()?;
        let sample = raw.sample.get().map_or(SampleRatio::ALL, |sample| sample.value);
        Some(TracingSettings { collector, sample })
    }
}
