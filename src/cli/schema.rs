//! `portcullis schema`: the JSON Schema of the configuration.

use super::exit::Exit;
use super::output;
use crate::config;

pub(super) fn schema() -> anyhow::Result<Exit> {
    output::print_json(&config::schema())?;
    Ok(Exit::Done)
}
