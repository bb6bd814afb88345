//! Whether every application reads the same key in a request. Otherwise a success must not reset failures or make a
//! client known, because it may belong to another user name.

use http::Method;

use super::KeyPart;
use super::KeySpec;
use super::Selector;
use super::Source;
use super::Spelling;
use super::extract;

/// Whether every part of a key is undisputed.
pub fn is_undisputed(key: &KeySpec, source: &Source<'_>) -> bool {
    key.parts.iter().all(|part| part_is_undisputed(part, source))
}

/// Whether every application reads the same value of this part: it stands in one place, once, under exactly this name,
/// and nothing was cut off.
pub fn part_is_undisputed(part: &KeyPart, source: &Source<'_>) -> bool {
    is_read_alike(part, source) && is_whole(part, source) && extract::not_understood(part, source).is_none()
}

/// Whether the value is a whole name that nobody else has. Failures of `alice` and of `alice@example.com` or `a.lice` may be
/// counted together, but a success of `a.lice` or `alice@elsewhere.example` may be that of another user.
fn is_whole(part: &KeyPart, source: &Source<'_>) -> bool {
    if matches!(part.spelling, Spelling::Usual | Spelling::AsSent) {
        return true;
    }
    let mut is_whole = true;
    extract::each_as_sent(&part.selector, source, &mut |value| is_whole &= part.is_own_name(&value));
    is_whole
}

/// Whether every application reads the same name in a request, so that a success is of that name. Who else has a name that
/// reads so is not asked: what is remembered of it frees nobody of what was counted.
pub fn names_one(key: &KeySpec, source: &Source<'_>) -> bool {
    key.parts.iter().all(|part| {
        let mut is_whole = true;
        extract::each_as_sent(&part.selector, source, &mut |value| is_whole &= part.is_whole_name(&value));
        is_whole && is_read_alike(part, source) && extract::not_understood(part, source).is_none()
    })
}

fn is_read_alike(part: &KeyPart, source: &Source<'_>) -> bool {
    let Source { head, fields, .. } = *source;
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
            extract::taken(choices, source).iter().all(|choice| part_is_undisputed(choice, source))
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
