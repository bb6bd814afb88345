//! What the arguments ask for.

use std::time::Duration;

use super::measure::Plan;
use super::proxy::Proxy;

#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) plan: Plan,
    /// One column or one table.
    only: Option<&'static str>,
    /// Jobs with this word in their names.
    pub(crate) job: Option<&'static str>,
    /// Builds of portcullis: cargo's, and others.
    binaries: Vec<Proxy>,
    pub(crate) counting: Option<Counting>,
    /// A build that counts what it runs.
    pub(crate) trained: Option<Proxy>,
}

/// What is done with counted instructions.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Counting {
    Print,
    /// The figures are compared to those in `instructions.toml`, too.
    Hold,
}

/// Enough to see whether something is badly off.
const QUICK: Plan = Plan { rounds: 3, round: Duration::from_millis(700), idle: &[1000], starts: 3 };

/// Enough for ratios to settle within two or three percent on a quiet machine.
const FULL: Plan = Plan { rounds: 9, round: Duration::from_secs(3), idle: &[1000, 10_000], starts: 9 };

impl Options {
    /// The error is a sentence for whoever wrote the arguments.
    pub(crate) fn read(words: &[&'static str]) -> Result<Self, String> {
        let mut options = Self {
            plan: FULL,
            only: None,
            job: None,
            binaries: vec![Proxy::PORTCULLIS],
            counting: None,
            trained: None,
        };
        let mut words = words.iter().copied();
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or_else(|| format!("`{word}` needs a value behind it"));
            match word {
                "--quick" => options.plan = QUICK,
                "--only" => options.only = Some(value()?),
                "--job" => options.job = Some(value()?),
                "--binary" => options.binaries.push(binary(value()?)),
                "--train" => options.trained = Some(binary(value()?)),
                "--instructions" => options.counting = options.counting.or(Some(Counting::Print)),
                "--hold" => options.counting = Some(Counting::Hold),
                // cargo adds it.
                "--bench" => {}
                _ => return Err(format!("there is no option `{word}`")),
            }
        }
        Ok(options)
    }

    /// The programs that set the same fields.
    pub(crate) fn all(&self) -> Vec<Proxy> {
        [&[Proxy::NGINX, Proxy::HAPROXY], self.binaries()].concat()
    }

    /// The columns of the tables that are not named.
    pub(crate) fn columns(&self) -> Vec<Proxy> {
        let all = [vec![Proxy::NGINX, Proxy::NGINX_ALONE, Proxy::HAPROXY], self.binaries.clone()].concat();
        all.into_iter().filter(|proxy| self.only.is_none_or(|only| only == proxy.name)).collect()
    }

    pub(crate) fn binaries(&self) -> &[Proxy] {
        &self.binaries
    }

    /// Whether the table of that name is to be measured.
    pub(crate) fn wants(&self, table: &str) -> bool {
        self.only.map_or(self.job.is_none(), |only| only == table)
    }
}

/// `NAME=PATH`, or a path that is its own name.
fn binary(word: &'static str) -> Proxy {
    let (name, path) = word.split_once('=').unwrap_or((word, word));
    Proxy::binary(name, path)
}
