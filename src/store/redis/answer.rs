//! What the scripts answer.

use super::Ruling;
use crate::decision::Charge;

/// Reads the answer to a group, in its order; `None`: that was no answer of our script.
pub fn read(_value: &redis::Value, _charges: &[&Charge<'_>]) -> Option<Vec<Ruling>> {
    todo!()
}
