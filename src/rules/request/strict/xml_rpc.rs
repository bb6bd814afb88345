//! XML-RPC calls as clients write them.
//!
//! Libraries read a call by its tags, each in its own way: some take a `value` outside of a `param` for a parameter, some skip
//! one that is empty or of a type that they do not know, so that those behind it move up. In a call of exactly this form they
//! all find the same parameters in the same places.

use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};

use crate::rules::request::xml::{MAX_DEPTH, XmlPiece, character, walk};

/// Every tag that a call may have.
const TAGS: [&str; 17] = [
    "methodCall",
    "methodName",
    "params",
    "param",
    "value",
    "string",
    "int",
    "i4",
    "boolean",
    "double",
    "dateTime.iso8601",
    "base64",
    "struct",
    "member",
    "name",
    "array",
    "data",
];

/// In bytes: longer numbers are read as floating-point numbers by some.
const MAX_NUMBER: usize = 15;

/// Whether some library may take a text for a call: it has the element `methodCall`, or `methodName` and `value`.
pub(super) fn may_be_a_call(text: &str) -> bool {
    let (mut has_call, mut has_name, mut has_value) = (false, false, false);
    walk(text, &mut |piece| {
        if let XmlPiece::Open(name) = piece {
            has_call |= name.eq_ignore_ascii_case("methodCall");
            has_name |= name.eq_ignore_ascii_case("methodName");
            has_value |= name.eq_ignore_ascii_case("value");
        }
    });
    has_call || has_name && has_value
}

/// Whether a text is a call with tags in the case of the specification, without attributes and comments, whose parameters
/// are a text or one value of a type of the specification.
pub(super) fn is_call(text: &str) -> bool {
    let mut reader = CallReader { reader: Reader::from_str(text), next: Token::Odd, closes: false, depth: 0 };
    reader.advance();
    reader.document().is_some()
}

/// Reads one document, token by token. `None`: it is no call.
struct CallReader<'t> {
    reader: Reader<&'t [u8]>,
    /// The token that is read next.
    next: Token,
    /// An element without content has still to be closed.
    closes: bool,
    /// How many values are open.
    depth: usize,
}

#[derive(Clone, Copy, Eq, PartialEq)]
enum Token {
    Declaration,
    Open(&'static str),
    Close,
    /// Text as it stands.
    Text(TextKind),
    /// The character of a reference, or a section.
    Quoted(TextKind),
    End,
    /// What no call has.
    Odd,
}

#[derive(Clone, Copy, Eq, PartialEq)]
enum TextKind {
    /// Nothing that is left when it is trimmed.
    Blank,
    /// A number, which is the name of a method too.
    Number,
    Name,
    Other,
}

/// The text that was read in an element.
#[derive(Clone, Copy, Eq, PartialEq)]
enum ReadText {
    Nothing,
    /// One piece, as it stands.
    Plain(TextKind),
    /// With a reference or a section.
    Quoted {
        is_blank: bool,
    },
}

impl CallReader<'_> {
    fn document(&mut self) -> Option<()> {
        if self.next == Token::Declaration {
            self.advance();
        }
        self.open("methodCall")?;
        self.open("methodName")?;
        matches!(self.text(), ReadText::Plain(TextKind::Name | TextKind::Number)).then_some(())?;
        self.close()?;
        if self.open("params").is_some() {
            self.each("param", Self::value_alone)?;
            self.close()?;
        }
        self.close()?;
        self.skip_blanks();
        (self.next == Token::End).then_some(())
    }

    fn value_alone(&mut self) -> Option<()> {
        self.open("value")?;
        self.value()?;
        self.close()
    }

    /// The content of a value.
    fn value(&mut self) -> Option<()> {
        self.depth += 1;
        let text = self.text();
        match self.next {
            Token::Close if text.is_text() => {}
            Token::Open(kind) if matches!(text, ReadText::Nothing | ReadText::Plain(TextKind::Blank)) => {
                self.advance();
                self.typed(kind)?;
                self.close()?;
                self.skip_blanks();
            }
            _ => return None,
        }
        self.depth -= 1;
        (self.next == Token::Close).then_some(())
    }

    /// The content of a value of this type.
    fn typed(&mut self, kind: &str) -> Option<()> {
        match kind {
            "int" | "i4" => (self.text() == ReadText::Plain(TextKind::Number)).then_some(()),
            "string" | "boolean" | "double" | "dateTime.iso8601" | "base64" => {
                self.text();
                Some(())
            }
            _ if self.depth > MAX_DEPTH => None,
            "struct" => self.each("member", Self::member),
            "array" => {
                self.open("data")?;
                self.each("value", Self::value)?;
                self.close()
            }
            _ => None,
        }
    }

    fn member(&mut self) -> Option<()> {
        self.open("name")?;
        self.text();
        self.close()?;
        self.value_alone()
    }

    /// Elements of one name, with nothing but blanks between.
    fn each(&mut self, name: &'static str, read: fn(&mut Self) -> Option<()>) -> Option<()> {
        while self.open(name).is_some() {
            read(self)?;
            self.close()?;
        }
        Some(())
    }

    fn open(&mut self, name: &'static str) -> Option<()> {
        self.skip_blanks();
        self.take(Token::Open(name))
    }

    fn close(&mut self) -> Option<()> {
        self.skip_blanks();
        self.take(Token::Close)
    }

    fn take(&mut self, token: Token) -> Option<()> {
        (self.next == token).then(|| self.advance())
    }

    fn skip_blanks(&mut self) {
        while self.next == Token::Text(TextKind::Blank) {
            self.advance();
        }
    }

    /// Text up to the next tag.
    fn text(&mut self) -> ReadText {
        let mut read = ReadText::Nothing;
        while let Token::Text(kind) | Token::Quoted(kind) = self.next {
            read = match read {
                ReadText::Nothing if self.next == Token::Text(kind) => ReadText::Plain(kind),
                _ => ReadText::Quoted { is_blank: !read.is_text() && kind == TextKind::Blank },
            };
            self.advance();
        }
        read
    }

    fn advance(&mut self) {
        self.next = if std::mem::take(&mut self.closes) { Token::Close } else { self.read() };
    }

    fn read(&mut self) -> Token {
        match self.reader.read_event() {
            Ok(Event::Decl(_)) => Token::Declaration,
            Ok(Event::Start(start)) => opened(&start),
            Ok(Event::Empty(start)) => {
                self.closes = true;
                opened(&start)
            }
            Ok(Event::End(_)) => Token::Close,
            Ok(Event::Text(text)) => Token::Text(TextKind::of(&text)),
            Ok(Event::CData(text)) => Token::Quoted(TextKind::of(&text)),
            Ok(Event::GeneralRef(name)) => character(&name).map_or(Token::Odd, |char| {
                Token::Quoted(if is_blank(char) { TextKind::Blank } else { TextKind::Other })
            }),
            Ok(Event::Eof) => Token::End,
            Ok(Event::Comment(_) | Event::PI(_) | Event::DocType(_)) | Err(_) => Token::Odd,
        }
    }
}

fn opened(start: &BytesStart<'_>) -> Token {
    let name = start.name();
    let known = TAGS.iter().find(|tag| **tag == name.as_ref());
    let has_attributes = !start.attributes_raw().trim_ascii().is_empty();
    known.filter(|_| !has_attributes).map_or(Token::Odd, |tag| Token::Open(tag))
}

impl TextKind {
    fn of(text: &str) -> Self {
        let digits = text.strip_prefix('-').unwrap_or(text);
        let is_number = matches!(digits.len(), 1..=MAX_NUMBER) && digits.bytes().all(|byte| byte.is_ascii_digit());
        if text.chars().all(is_blank) {
            Self::Blank
        } else if is_number && (!digits.starts_with('0') || text == "0") {
            Self::Number
        } else if text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.:/".contains(&byte)) {
            Self::Name
        } else {
            Self::Other
        }
    }
}

impl ReadText {
    /// Whether it is more than blanks.
    fn is_text(self) -> bool {
        match self {
            Self::Nothing | Self::Plain(TextKind::Blank) => false,
            Self::Plain(_) => true,
            Self::Quoted { is_blank } => !is_blank,
        }
    }
}

/// Whether some application drops it at the ends of a text.
fn is_blank(char: char) -> bool {
    char.is_whitespace() || char.is_control()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn call(params: &str) -> String {
        format!("<methodCall><methodName>login</methodName><params>{params}</params></methodCall>")
    }

    #[test]
    fn what_clients_write_is_a_call() {
        let array = "<array><data><value>a</value><value><int>7</int></value></data></array>";
        let member = format!("<member><name>a b</name><value>{array}</value></member>");
        for value in [
            "alice",
            " al&#105;ce&amp;co ",
            "<string>alice</string>",
            "<string></string>",
            "<string/>",
            "<string><![CDATA[a<b]]></string>",
            "\n  <string>alice</string>\n ",
            "<int>7</int>",
            "<i4>-70</i4>",
            "<boolean>1</boolean>",
            "<double>1.5</double>",
            "<dateTime.iso8601>20260310T12:00:00</dateTime.iso8601>",
            "<base64>YWxpY2U=</base64>",
            array,
            "<array><data/></array>",
            "<struct></struct>",
            &format!("<struct>{member}\n{member}</struct>"),
        ] {
            let param = format!("<param><value>{value}</value></param>");
            for text in [call(&param), call(&format!("\n {param}\n {param}\n")), call(&param).replace("><", ">\n<")] {
                let text = text.replace(">\n</string>", "></string>");
                assert!(may_be_a_call(&text) && is_call(&text), "{text}");
            }
        }
        for text in [
            "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<methodCall>\n<methodName>system.listMethods</methodName>\n</methodCall>\n",
            "<methodCall><methodName>a:b/c_d</methodName><params/></methodCall>",
            &call(""),
        ] {
            assert!(is_call(text), "{text}");
        }
    }

    #[test]
    fn what_some_library_reads_otherwise_is_no_call() {
        let two = "<param><value>alice</value></param><param><value>pw</value></param>";
        for params in [
            "<value>alice</value><param><value>pw</value></param>",
            "<param><name>alice</name><value><string>pw</string></value></param>",
            "<Param><value>x</value></Param><param><value>alice</value></param>",
            "<param><value>x</value><value>alice</value></param>",
            "<param></param><param><value>alice</value></param>",
            "<param>alice</param>",
            "<param><string>alice</string></param>",
            "<param><value></value></param><param><value>alice</value></param>",
            "<param><value/></param><param><value>alice</value></param>",
            "<param><value> </value></param>",
            "<param><value>&#32;</value></param>",
            "<param><value><![CDATA[ ]]></value></param>",
            "<param><value><nil/></value></param>",
            "<param><value><i8>7</i8></value></param>",
            "<param><value><ex:i8>7</ex:i8></value></param>",
            "<param><value><String>alice</String></value></param>",
            "<param><value>x<string>alice</string></value></param>",
            "<param><value><string>x</string>alice</value></param>",
            "<param><value><string>x</string><string>alice</string></value></param>",
            "<param><value><string>al<b>i</b>ce</string></value></param>",
            "<param><value>al<!-- x -->ice</value></param>",
            "<param><value><int>007</int></value></param>",
            "<param><value><int> 7</int></value></param>",
            "<param><value><int>+7</int></value></param>",
            "<param><value a=\"b\">alice</value></param>",
            "<param><value><array><value>alice</value></array></value></param>",
            "<param><value><struct><member><value>x</value><name>n</name></member></struct></value></param>",
            "<param><value>alice</value></param>x",
        ] {
            let text = call(params);
            assert!(may_be_a_call(&text) && !is_call(&text), "{text}");
        }
        for text in [
            call(two).replace("<params>", "<string>alice</string><params>"),
            call(two).replace("<params>", "<value>alice</value><params>"),
            call(two).replace("</params>", "</params><params><param><value>alice</value></param></params>"),
            call(two).replace("methodCall", "methodcall"),
            call(two).replace("methodCall", "x"),
            call(two).replace("methodCall", "a:methodCall"),
            call(two).replace("login", " login"),
            call(two).replace("login", ""),
            call(two).replace("<methodName>login</methodName>", ""),
            call(two).replace("params>", "Params>"),
            format!("<x>{}</x>", call(two)),
            format!("{}<!-- x -->", call(two)),
            format!("{}<?x?>", call(two)),
        ] {
            assert!(may_be_a_call(&text) && !is_call(&text), "{text}");
        }
    }

    #[test]
    fn other_documents_are_no_calls() {
        for text in ["<a><value>x</value></a>", "<s:Envelope><s:Body><m:methodName/></s:Body></s:Envelope>", "", "x"] {
            assert!(!may_be_a_call(text), "{text}");
        }
    }

    #[test]
    fn values_are_nested_as_deep_as_documents() {
        let nested = |depth: usize| {
            let (begin, end) = ("<value><array><data>".repeat(depth), "</data></array></value>".repeat(depth));
            call(&format!("<param>{begin}<value>x</value>{end}</param>"))
        };
        assert!(is_call(&nested(30)));
        assert!(!is_call(&nested(20_000)));
    }

    proptest! {
        #[test]
        fn a_call_loses_its_form_with_any_of_its_tags(tag in 0..20_usize) {
            let text = call(
                "<param><value><string>alice</string></value></param>\
                 <param><value><array><data><value>pw</value></data></array></value></param>",
            );
            prop_assert!(is_call(&text));
            let begins: Vec<usize> = text.match_indices('<').map(|(at, _)| at).collect();
            let begin = begins[tag % begins.len()];
            let end = begin + text[begin..].find('>').expect("the end of the tag");
            let without = [&text[..begin], &text[end + 1..]].concat();
            prop_assert!(!is_call(&without), "{}", without);
        }

        #[test]
        fn any_text_is_read(text in "(<|>|/|value|param|methodCall|struct|!|--|&|;|#|\\?|'|[ -~\u{e9}]){0,40}") {
            is_call(&text);
        }
    }
}
