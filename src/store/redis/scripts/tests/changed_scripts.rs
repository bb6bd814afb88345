//! Scripts that are not quite as they are, so that a test can show what a rule of them is for.

use std::collections::HashMap;

use redis::Value;

use super::server::Keys;
use crate::store::redis::scripts::{Invocation, Script};

/// Runs scripts with some of their text replaced.
#[derive(Default)]
pub(super) struct ChangedScripts {
    /// What stands in the scripts, and what stands there instead.
    replaced: Vec<(&'static str, &'static str)>,
    /// The hashes of the scripts as they are here, by those as they are.
    known: HashMap<String, String>,
}

impl ChangedScripts {
    pub(super) fn new(replaced: impl IntoIterator<Item = (&'static str, &'static str)>) -> Self {
        Self { replaced: replaced.into_iter().collect(), known: HashMap::new() }
    }

    pub(super) fn run(&mut self, keys: &mut Keys, invocation: &Invocation) -> Value {
        let sha = match self.known.get(&invocation.script.sha) {
            Some(sha) => sha.clone(),
            None => self.load(keys, invocation.script),
        };
        let mut command = redis::cmd("EVALSHA");
        command.arg(sha);
        for argument in invocation.command.args_iter().skip(2) {
            if let redis::Arg::Simple(bytes) = argument {
                command.arg(bytes);
            }
        }
        keys.send(&command)
    }

    fn load(&mut self, keys: &mut Keys, script: &Script) -> String {
        let mut text = script.text.clone();
        for (before, after) in &self.replaced {
            text = text.replace(before, after);
        }
        let mut load = redis::cmd("SCRIPT");
        load.arg("LOAD").arg(&text);
        let Value::BulkString(sha) = keys.send(&load) else { panic!("{text}") };
        let sha = String::from_utf8(sha).expect("digits");
        self.known.insert(script.sha.clone(), sha.clone());
        sha
    }
}
