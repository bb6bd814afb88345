//! XML as clients write it.

use super::Presence;
use super::content_type::charset;
use crate::request::NotUnderstood;
use crate::request::xml;
use crate::request::xml::ElementPath;

/// Whether a text is XML from its first to its last byte, with neither a document type nor entities of its own.
pub(super) fn is_xml(text: &str) -> bool {
    text.starts_with('<')
        && memchr::memmem::find(text.as_bytes(), b"<!DOCTYPE").is_none()
        && xml::declared_encoding(text.as_bytes()).is_none_or(|name| charset(name).is_some())
        && xml::is_well_formed(text.as_bytes())
}

/// How often the element stands in a text that is XML.
pub(super) fn presence(text: &[u8], path: &ElementPath<'_>) -> Result<Presence, NotUnderstood> {
    let texts = xml::texts(text, path);
    if texts.has_other_readings {
        return Err(NotUnderstood::Value);
    }
    Ok(match texts.elements {
        0 => Presence::Absent,
        1 => Presence::Once,
        _ => Presence::Otherwise,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(path: &str, text: &str, expected: Result<Presence, NotUnderstood>) {
        assert!(is_xml(text), "{text}");
        assert_eq!(presence(text.as_bytes(), &ElementPath::dotted(path)), expected, "{path} of {text}");
    }

    #[test]
    fn an_element_with_one_text_is_understood() {
        let call = "<?xml version=\"1.0\"?>\n<methodCall><methodName>wp.getUsersBlogs</methodName><params>\
            <param><value><string>alice</string></value></param><param><value>secret</value></param></params></methodCall>";
        check("params.param.0.value", call, Ok(Presence::Once));
        check("param.value", call, Ok(Presence::Otherwise));
        check("username", call, Ok(Presence::Absent));
        check("username", "<s:a xmlns:s='u'><s:username>al&#105;ce</s:username></s:a>", Ok(Presence::Once));
        check("u", "<u>  alice\r\n</u>", Ok(Presence::Once));
        check("u", "<u><![CDATA[alice]]></u>", Ok(Presence::Once));
    }

    #[test]
    fn an_element_that_applications_read_differently_is_not_understood() {
        check("u", "<u>ali<!-- x -->ce</u>", Err(NotUnderstood::Value));
        check("u", "<u>ali<![CDATA[ce]]></u>", Err(NotUnderstood::Value));
        check("u", "<u>ali<b>ce</b></u>", Err(NotUnderstood::Value));
        check("u", "<u><b>ali</b><b>ce</b></u>", Err(NotUnderstood::Value));
        check("u", "<a u='alice'><x/></a>", Err(NotUnderstood::Value));
        let decoys: String = (0..70).map(|i| format!("<u>{i}</u>")).collect::<Vec<_>>().concat();
        check("u", &format!("<a>{decoys}</a>"), Err(NotUnderstood::Value));
    }

    #[test]
    fn other_texts_are_not_xml() {
        for text in [
            "",
            " <a/>",
            "<a>",
            "<a></b>",
            "<!DOCTYPE a SYSTEM 'x'><a/>",
            "<?xml version='1.0' encoding='utf-7'?><a/>",
            "<a>&x;</a>",
        ] {
            assert!(!is_xml(text), "{text}");
        }
    }
}
