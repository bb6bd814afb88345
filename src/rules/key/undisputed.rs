//! Whether every application reads the same key in a request. Otherwise a success must not reset failures or make a
//! client known, because it may belong to another user name.

use std::{fmt, str};

use http::Method;

use super::{KeyPart, KeySpec, Selector, Spelling, ValueSource, extract};
use crate::rules::jwt::RequestClaims;
use crate::rules::key::KeyHash;
use crate::rules::request::head::{body_may_hide_a_method, judge_basic, judge_bearer, query_may_hide_a_method};
use crate::rules::request::query::judge_cookies;
use crate::rules::request::{BodyFields, CanonicalHead, NotUnderstood};

/// Whether every part of a key is undisputed.
pub fn is_undisputed(key: &KeySpec, source: &ValueSource<'_>) -> bool {
    key.parts.iter().all(|part| part_is_undisputed(part, source))
}

/// Whether every application reads the same value of this part: it stands in one place, once, under exactly this name,
/// and nothing was cut off.
pub fn part_is_undisputed(part: &KeyPart, source: &ValueSource<'_>) -> bool {
    is_read_alike(part, source) && is_whole(part, source) && extract::not_understood(part, source).is_none()
}

/// Whether the value is a whole name of one user only. Failures of `alice` and of `alice@example.com` or `a.lice` may
/// be counted together, but `a.lice` or `alice@elsewhere.example` may be another user, who has a success.
fn is_whole(part: &KeyPart, source: &ValueSource<'_>) -> bool {
    if matches!(part.spelling, Spelling::Usual | Spelling::AsSent) {
        return true;
    }
    let mut is_whole = true;
    extract::each_as_sent(&part.selector, source, &mut |value| is_whole &= part.is_own_name(&value));
    is_whole
}

/// Whether every application reads the same name in a request, so that a success is of that name. Other users may have
/// the same reading. That does no harm, because no count is reset for it.
pub fn names_one(key: &KeySpec, source: &ValueSource<'_>) -> bool {
    key.parts.iter().all(|part| {
        let mut is_whole = true;
        extract::each_as_sent(&part.selector, source, &mut |value| is_whole &= part.is_whole_name(&value));
        is_whole && is_read_alike(part, source) && extract::not_understood(part, source).is_none()
    })
}

fn is_read_alike(part: &KeyPart, source: &ValueSource<'_>) -> bool {
    let ValueSource { head, fields, .. } = *source;
    // Some applications read no body of other methods.
    let posts = *head.method == Method::POST;
    match &part.selector {
        Selector::Query(name) => head.query.is_sole(name),
        Selector::Form(name) => posts && fields.form_is_sole(name),
        Selector::Json(path) => posts && fields.json_is_sole(path),
        Selector::Xml(path) => posts && fields.xml_is_sole(path),
        Selector::Param(name) => {
            let stands = [
                head.query.values(name).next().is_some(),
                fields.form(name).next().is_some(),
                fields.json(name).next().is_some(),
                fields.element(name).next().is_some(),
            ];
            match stands {
                // Beside fields in a body, a name in the query may be none that the application reads: its user may have
                // signed in by another field.
                [true, false, false, false] => fields.has_no_field() && head.query.is_sole(name),
                [false, true, false, false] => posts && fields.form_is_sole(name),
                [false, false, true, false] => posts && fields.json_is_sole(name),
                [false, false, false, true] => posts && fields.element_is_sole(name),
                _ => false,
            }
        }
        // A verified token or a known session says who it is, but not which of several.
        Selector::User | Selector::Jwt(_) => extract::values(part, source).is_ok_and(|found| found.values.len() == 1),
        Selector::First(choices) => {
            let is_there = |choice: &&KeyPart| !extract::is_surely_missing(choice, source);
            let fields = choices.iter().filter(|choice| is_field(&choice.selector)).filter(is_there).count();
            let mut taken = extract::taken(choices, source).iter().filter(is_there);
            // Where a client sends several fields, applications may read another one than the first.
            fields <= 1 && taken.all(|choice| part_is_undisputed(choice, source))
        }
        Selector::ClientIp(_)
        | Selector::Header(_)
        | Selector::Cookie(_)
        | Selector::Capture(_)
        | Selector::Bearer
        | Selector::BasicUser
        | Selector::Host
        | Selector::Method
        | Selector::Path
        | Selector::Route
        | Selector::Device
        | Selector::Descriptor(_) => true,
    }
}

/// Whether clients write its value into a query or a body.
fn is_field(selector: &Selector) -> bool {
    matches!(
        selector,
        Selector::Query(_) | Selector::Form(_) | Selector::Json(_) | Selector::Xml(_) | Selector::Param(_)
    )
}

// Whether the part of a request that a selector reads is exactly what well-behaved clients write. If it is not, some
// application may read a value that the gateway has not found, and the request also counts under the empty value.

/// Whether the values that the gateway finds for a selector are surely all that any application reads.
pub(super) fn judge(selector: &Selector, head: &CanonicalHead<'_>, fields: &BodyFields) -> Result<(), NotUnderstood> {
    match selector {
        Selector::Query(name) => head.query.judge(name)?,
        Selector::Cookie(name) => judge_cookies(head.fields, name)?,
        Selector::Form(name) => fields.judge_form(name)?,
        Selector::Json(path) => fields.judge_json(path)?,
        Selector::Xml(path) => fields.judge_xml(path)?,
        Selector::Param(name) => {
            head.query.judge(name)?;
            fields.judge_form(name)?;
            fields.judge_json(name)?;
            fields.judge_element(name)?;
        }
        Selector::Bearer => judge_bearer(head.fields)?,
        Selector::BasicUser => judge_basic(head.fields)?,
        Selector::Method => {
            if query_may_hide_a_method(&head.query) || body_may_hide_a_method(head, fields) {
                return Err(NotUnderstood::Method);
            }
        }
        // Each choice of `first` is judged by itself. A header line is its value, and values that the gateway itself
        // computes have one reading.
        Selector::ClientIp(_)
        | Selector::Header(_)
        | Selector::Capture(_)
        | Selector::Host
        | Selector::Path
        | Selector::Route
        | Selector::Device
        | Selector::User
        | Selector::Jwt(_)
        | Selector::First(_)
        | Selector::Descriptor(_) => {}
    }
    Ok(())
}

// The identity of the client, as far as it is proven.

const HEXADECIMAL: &[u8; 16] = b"0123456789abcdef";

/// The account and claims that sessions and verified tokens prove. Empty if neither is configured.
#[derive(Clone, Copy, Debug)]
pub struct Identity<'a> {
    /// The accounts whose sessions the request carries, each once.
    pub users: &'a [UserMark],
    /// Why the request may carry other sessions, too.
    pub unread_users: Option<NotUnderstood>,
    /// The claims of the tokens that verify.
    pub claims: &'a RequestClaims,
}

/// The mark of an account: the value of `user`, and the form that operators see. The whole hash decides which account a
/// session belongs to. A mark is shorter: two accounts may share a count, but no client can find two such accounts.
#[derive(Clone, Copy, Eq, PartialEq)]
pub struct UserMark([u8; Self::DIGITS]);

impl Default for Identity<'_> {
    fn default() -> Self {
        Self { users: &[], unread_users: None, claims: RequestClaims::NONE }
    }
}

impl UserMark {
    /// The length of a mark in hexadecimal digits.
    pub const DIGITS: usize = 16;

    /// The mark of the account with this hash: its first half.
    pub fn of(account: KeyHash) -> Self {
        let mut digits = [0; Self::DIGITS];
        for ([high, low], byte) in digits.as_chunks_mut().0.iter_mut().zip(account.0.to_be_bytes()) {
            *high = HEXADECIMAL[usize::from(byte >> 4)];
            *low = HEXADECIMAL[usize::from(byte & 0xf)];
        }
        Self(digits)
    }

    pub fn as_str(&self) -> &str {
        str::from_utf8(&self.0).expect("digits are ASCII")
    }
}

impl fmt::Debug for UserMark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_the_first_half_of_the_hash() {
        let account = KeyHash(0x0123_4567_89ab_cdef_fedc_ba98_7654_3210);
        assert_eq!(UserMark::of(account).as_str(), "0123456789abcdef");
    }
}
