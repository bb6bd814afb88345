//! Builds the tree from the events of the YAML parser, and reports what the configuration does not allow.

use std::collections::HashMap;
use std::mem;

use saphyr_parser::{Event, Parser, ScalarStyle, ScanError, Span};

use crate::config::diagnostic::Mistakes;
use crate::config::secrets::Place;
use crate::config::source::{Environment, InvalidVariable, SourceRange, substitute};
use crate::config::yaml::{Content, MERGE_KEY, MapEntries, MapKey, Node, directive, syntax_help};

/// Reads the one document of a text. `None`: there is none, or a mistake was found that leaves no tree.
pub fn parse(text: &str, source: u16, environment: Environment<'_>, mistakes: &mut Mistakes) -> Option<Node> {
    TreeBuilder::new(source, environment, Style::Ours, mistakes).documents(text).pop()
}

/// Reads all documents of a text that another program reads, and which may hold merge keys. Empty ones are left out. A
/// mistake in one is the end of all.
pub fn parse_foreign(text: &str, source: u16, environment: Environment<'_>, mistakes: &mut Mistakes) -> Vec<Node> {
    TreeBuilder::new(source, environment, Style::Foreign, mistakes).documents(text)
}

/// Reading stops. The mistake has been reported.
struct Stop;

/// The features that a text may use.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Style {
    /// One document, in which everything is written out.
    Ours,
    /// Any number of documents, and merge keys.
    Foreign,
}

struct TreeBuilder<'t> {
    source: u16,
    environment: Environment<'t>,
    style: Style,
    mistakes: &'t mut Mistakes,
    stack: Vec<OpenNode>,
    /// Complete nodes by anchor, with the number of nodes in each.
    anchors: HashMap<usize, (Node, usize)>,
    root: Option<Node>,
    nodes: usize,
}

/// A list or map that is not closed yet.
struct OpenNode {
    at: SourceRange,
    /// Where its values stand; of a map, before its keys.
    place: Place,
    anchor: usize,
    /// The number of nodes before it.
    nodes_before: usize,
    inside: OpenContent,
}

enum OpenContent {
    List(Vec<Node>),
    Map { entries: MapEntries, key: Option<Key>, place: Place },
}

/// A key without its value yet.
enum Key {
    New(MapKey),
    /// `<<`: its value is taken over into the map.
    Merge,
    /// A mistake that was reported. Its value is read and dropped.
    Refused,
}

impl<'t> TreeBuilder<'t> {
    fn new(source: u16, environment: Environment<'t>, style: Style, mistakes: &'t mut Mistakes) -> Self {
        let (stack, anchors) = (Vec::new(), HashMap::new());
        Self { source, environment, style, mistakes, stack, anchors, root: None, nodes: 0 }
    }

    /// The documents of a text. None after a mistake that leaves no tree.
    fn documents(mut self, text: &str) -> Vec<Node> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let mut documents = Vec::new();
        let mut has_begun = false;
        for event in Parser::new_from_str(text) {
            let (event, span) = match event {
                Ok(event) => event,
                Err(error) => {
                    self.refuse_syntax(&error, text);
                    return Vec::new();
                }
            };
            if matches!(event, Event::DocumentStart(_))
                && mem::replace(&mut has_begun, true)
                && self.style == Style::Ours
            {
                let place = self.place(span);
                self.mistakes.report(
                    place,
                    "a second document begins here",
                    "a file holds one configuration: remove the `---`",
                );
                return Vec::new();
            }
            let ends = matches!(event, Event::DocumentEnd);
            if self.take(event, span).is_err() {
                return Vec::new();
            }
            if ends {
                documents.extend(self.root.take());
            }
        }
        self.mistakes.note_all_read(self.source);
        if self.style == Style::Foreign {
            documents.retain(|document| document.content != Content::Nothing);
        }
        documents
    }

    fn take(&mut self, event: Event<'_>, span: Span) -> Result<(), Stop> {
        let at = self.place(span);
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                self.refuse_tag(at, tag.as_deref());
                let content = self.scalar(&text, style, at);
                let node = Node { at, content };
                if span.start.line() < span.end.line() {
                    self.mistakes.note_end(at, number(span.end.line()), number(span.end.col() + 1));
                }
                self.note(&node, self.value_place());
                self.finish(node, anchor, self.nodes)
            }
            Event::SequenceStart(anchor, tag) => {
                self.refuse_tag(at, tag.as_deref());
                self.open(SourceRange { length: 1, ..at }, anchor, OpenContent::List(Vec::new()))
            }
            Event::MappingStart(anchor, tag) => {
                self.refuse_tag(at, tag.as_deref());
                let inside = OpenContent::Map { entries: MapEntries::default(), key: None, place: self.value_place() };
                self.open(SourceRange { length: 1, ..at }, anchor, inside)
            }
            Event::SequenceEnd | Event::MappingEnd => {
                let Some(frame) = self.stack.pop() else { return Ok(()) };
                let content = match frame.inside {
                    OpenContent::List(items) => Content::List(items),
                    OpenContent::Map { entries, .. } => Content::Map(entries.into_vec()),
                };
                self.finish(Node { at: frame.at, content }, frame.anchor, frame.nodes_before)
            }
            Event::Alias(anchor) => {
                let Some((node, size)) = self.anchors.get(&anchor).cloned() else {
                    self.mistakes.report(at, "this alias is inside the value that it repeats", "write the value out");
                    return Err(Stop);
                };
                self.note(&node, self.value_place());
                let before = self.nodes;
                // The node itself is added by `finish`.
                self.nodes += size - 1;
                self.finish(node, 0, before)
            }
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentStart(_) | Event::DocumentEnd => {
                Ok(())
            }
        }
    }

    fn open(&mut self, at: SourceRange, anchor: usize, inside: OpenContent) -> Result<(), Stop> {
        if self.stack.len() == MAX_DEPTH {
            let message = format!("lists and maps are nested more than {MAX_DEPTH} deep");
            self.mistakes.report(at, message, "no part of a configuration is that deep: is a bracket not closed?");
            return Err(Stop);
        }
        let place = self.value_place();
        self.stack.push(OpenNode { at, place, anchor, nodes_before: self.nodes, inside });
        Ok(())
    }

    /// Puts a complete node into its parent.
    fn finish(&mut self, node: Node, anchor: usize, nodes_before: usize) -> Result<(), Stop> {
        self.nodes += 1;
        if self.nodes > MAX_NODES {
            self.mistakes.report(
                node.at,
                format!("the file holds more than {MAX_NODES} values, counting each alias as what it repeats"),
                "put long lists into a file: `lists: {name: {file: ...}}`",
            );
            return Err(Stop);
        }
        if anchor > 0 {
            self.anchors.insert(anchor, (node.clone(), self.nodes - nodes_before));
        }
        let (outer, map) = self.stack.last().map_or((Place::Document, node.at), |frame| (frame.place, frame.at));
        match self.stack.last_mut().map(|frame| &mut frame.inside) {
            None => self.root = Some(node),
            Some(OpenContent::List(items)) => items.push(node),
            Some(OpenContent::Map { entries, key, place }) => match key.take() {
                Some(Key::New(name)) => entries.push(name, node),
                Some(Key::Merge) => entries.merge(node, self.mistakes),
                Some(Key::Refused) => {}
                None => {
                    *place = place_below(outer, &node);
                    *key = Some(accept_key(node, map, entries, self.style, self.mistakes));
                }
            },
        }
        Ok(())
    }

    fn scalar(&mut self, text: &str, style: ScalarStyle, at: SourceRange) -> Content {
        if style == ScalarStyle::Plain && matches!(text, "" | "~" | "null" | "Null" | "NULL") {
            return Content::Nothing;
        }
        if self.expects_key() {
            return Content::Scalar(text.to_owned());
        }
        match substitute(text, self.environment) {
            Ok(text) => Content::Scalar(text.into_owned()),
            Err(error) => {
                let help = match &error {
                    InvalidVariable::Unset(name) => format!("set it, or give a default: `${{{name}:-...}}`"),
                    _ => "write `${NAME}` or `${NAME:-default}`; a literal `${` is written `$${`".to_owned(),
                };
                self.mistakes.report_unknown(at, error.to_string(), help);
                Content::Scalar(text.to_owned())
            }
        }
    }

    /// Where the next value stands, or the next key.
    fn value_place(&self) -> Place {
        match self.stack.last().map(|frame| (&frame.inside, frame.place)) {
            Some((OpenContent::Map { key: Some(_), place, .. }, _)) => *place,
            Some((_, place)) => place,
            None if self.style == Style::Ours => Place::Document,
            // Another program's file has no webhooks of ours.
            None => Place::Public,
        }
    }

    /// Notes the secrets in a value.
    fn note(&mut self, node: &Node, place: Place) {
        match &node.content {
            Content::Nothing => {}
            Content::Scalar(text) => self.mistakes.note_value(node.at, text, place),
            Content::List(items) => items.iter().for_each(|item| self.note(item, place)),
            Content::Map(entries) => {
                for (key, value) in entries {
                    self.note(value, place.below(&key.text));
                }
            }
        }
    }

    fn expects_key(&self) -> bool {
        matches!(self.stack.last(), Some(OpenNode { inside: OpenContent::Map { key: None, .. }, .. }))
    }

    fn refuse_tag(&mut self, at: SourceRange, tag: Option<&saphyr_parser::Tag>) {
        if let Some(tag) = tag {
            let shown = if tag.is_yaml_core_schema() { format!("!!{}", tag.suffix) } else { tag.to_string() };
            self.mistakes.report(at, format!("the tag `{shown}` has no meaning here"), "remove the tag");
        }
    }

    fn refuse_syntax(&mut self, error: &ScanError, text: &str) {
        let marker = error.marker();
        let lines = text.lines().count().max(1);
        // The parser reports the end of the text as the line after the last.
        let (line, column) = match text.lines().nth(marker.line().saturating_sub(1)) {
            Some(_) => (marker.line(), marker.col()),
            None => (lines, text.lines().last().map_or(0, |last| last.chars().count())),
        };
        let at = SourceRange { source: self.source, line: number(line), column: number(column + 1), length: 1 };
        // The parser sees only behind such a line that it is none of YAML.
        if let Some((above, directive, help)) = directive(text, line) {
            let length = number(directive.chars().count());
            let column =
                text.lines().nth(above - 1).map_or(0, |line| line.chars().count() - line.trim_start().chars().count());
            let at = SourceRange { source: self.source, line: number(above), column: number(column + 1), length };
            let message = format!("`{directive}` is written as nginx takes it: in YAML a key has a colon behind it");
            self.mistakes.report(at, message, help);
            return;
        }
        let line = text.lines().nth(line.saturating_sub(1)).unwrap_or_default();
        let message = format!("this is not YAML: {}", error.info());
        self.mistakes.report(at, message, syntax_help(error.info(), line));
    }

    fn place(&self, span: Span) -> SourceRange {
        let length =
            if span.start.line() == span.end.line() { span.end.col().saturating_sub(span.start.col()) } else { 1 };
        SourceRange {
            source: self.source,
            line: number(span.start.line()),
            column: number(span.start.col() + 1),
            length: number(length.max(1)),
        }
    }
}

/// Where the value of a key stands.
fn place_below(outer: Place, key: &Node) -> Place {
    match &key.content {
        Content::Scalar(text) => outer.below(text),
        _ => outer,
    }
}

fn accept_key(node: Node, map: SourceRange, entries: &mut MapEntries, style: Style, mistakes: &mut Mistakes) -> Key {
    let Content::Scalar(text) = node.content else {
        mistakes.report(
            node.at,
            format!("a key must be a name, not {}", node.kind()),
            "write a text that begins with `{` or `[` in quotes",
        );
        mistakes.note_unsure(map);
        return Key::Refused;
    };
    if text == MERGE_KEY && style == Style::Ours {
        mistakes.report(
            node.at,
            "merge keys are not supported",
            "use an anchor and its alias (`&name`, `*name`), which repeat a whole value",
        );
        mistakes.note_unsure(map);
        return Key::Refused;
    }
    if let Some(first) = entries.begin(&text, node.at) {
        let (line, column) = (first.line, first.column);
        mistakes.report(
            node.at,
            format!("the key `{text}` is repeated"),
            format!("the first one is at {line}:{column}: keep one of the two"),
        );
        return Key::Refused;
    }
    if text == MERGE_KEY { Key::Merge } else { Key::New(MapKey { at: node.at, text }) }
}

fn number(value: usize) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

/// More than twice the depth of any section.
pub(super) const MAX_DEPTH: usize = 32;

/// More than the longest handwritten file, and low enough that aliases of aliases stay harmless.
pub(super) const MAX_NODES: usize = 200_000;
