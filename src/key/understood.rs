//! Whether the part of a request that a selector reads is exactly what well-behaved clients write. Where it is not, some
//! application may read another value than those found, and the request also counts under the empty value.

use super::Selector;
use crate::request::BodyFields;
use crate::request::NotUnderstood;
use crate::request::RequestHead;
use crate::request::header::judge_basic;
use crate::request::header::judge_bearer;
use crate::request::method::body_may_hide_a_method;
use crate::request::method::query_may_hide_a_method;
use crate::request::query::judge_cookies;

/// Whether the values that the gateway finds for a selector are surely all that any application reads.
pub(super) fn judge(selector: &Selector, head: &RequestHead<'_>, fields: &BodyFields) -> Result<(), NotUnderstood> {
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
        // Of `first`, each choice is judged by itself. A header line is its value, and what the gateway itself makes of a request has one reading.
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
