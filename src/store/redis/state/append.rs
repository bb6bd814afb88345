//! Entries of a stream, in the slot of its key. No decision depends on it.

use redis::Value;

use super::store::RedisStore;
use crate::store::redis::topology::links::Failure;

impl RedisStore {
    /// Appends an entry and cuts the stream to `max` of them. What the server says against it comes in its words.
    pub async fn append(
        &self,
        key: &str,
        max: u64,
        fields: &[(&'static str, String)],
    ) -> Result<(), (Failure, String)> {
        let mut append = redis::cmd("XADD");
        append.arg(key).arg("MAXLEN").arg(max).arg("*");
        for (name, value) in fields {
            append.arg(*name).arg(value);
        }
        let links = &self.core.links;
        match links.beside(links.slot(key.as_bytes()), &append).await {
            Ok(Value::ServerError(error)) => {
                let words = format!("{} {}", error.code(), error.details().unwrap_or_default());
                match error.code() {
                    // It does not take entries now, and will.
                    "LOADING" | "READONLY" | "OOM" | "MASTERDOWN" | "CLUSTERDOWN" | "TRYAGAIN" | "MOVED" | "ASK"
                    | "BUSY" | "MISCONF" | "NOREPLICAS" => Err((Failure::Open, words)),
                    "NOPERM" => Err((Failure::Refused, format!("{words}: allow the user `+xadd` on this key"))),
                    _ => Err((Failure::Refused, words)),
                }
            }
            Ok(_) => Ok(()),
            Err(failure) => Err((failure, String::new())),
        }
    }
}
