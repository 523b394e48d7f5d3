//! GraphML loader: typed `<key>` declarations, `<node>`, `<edge>`, `<data>`.
//!
//! Labels are the keys `labelV` and `labelE` (TinkerPop), the attributes `labels` and `label` (Neo4j, where
//! data repeats them), or the keys in `LoadOptions::label_keys`. Undirected edges are counted, and loaded in
//! their written direction or in both. Nested graphs and hyperedges are rejected; ports and descriptions are
//! skipped. A document without the root element `<graphml>` is rejected.

use crate::apoc;
use crate::block::Malformed;
use crate::merge::Merger;
use crate::positioned::Positioned;
use crate::property::{EDGE_LABEL, PropertyWriter, Rejected, VERTEX_LABEL, labels_of};
use crate::source::read_error;
use crate::target::Target;
use crate::value::Type;
use quick_xml::Reader;
use quick_xml::XmlVersion;
use quick_xml::events::{BytesRef, BytesStart, Event};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::Read;
use vervet_model::{Error, ErrorKind, Id, Result};

/// A `<key>`.
#[derive(Clone, Debug)]
struct KeyDefinition {
    name: String,
    kind: Type,
    /// Whether values are lists in JSON, as APOC writes them.
    is_list: bool,
    /// Whether the key is for vertices, and for edges.
    of: [bool; 2],
    default: Option<String>,
}

/// The `<node>` or `<edge>` that is being read.
#[derive(Default)]
struct GraphmlElement {
    is_edge: bool,
    id: Option<String>,
    source: Option<String>,
    target: Option<String>,
    labels: Vec<String>,
    /// The attribute with the labels, which APOC repeats as data.
    label_attribute: Option<String>,
    /// The attribute `directed` of an edge.
    directed: Option<String>,
    data: Vec<(String, String)>,
}

/// The target of collected text.
enum TextTarget {
    Nothing,
    Default(String),
    Data(String),
}

/// Scope of an error.
enum GraphmlError {
    /// The element is malformed; reading continues.
    Element(String),
    /// Reading cannot continue.
    File(String, ErrorKind),
    Other(Error),
}

impl From<Error> for GraphmlError {
    fn from(error: Error) -> Self {
        Self::Other(error)
    }
}

impl From<Rejected> for GraphmlError {
    fn from(refused: Rejected) -> Self {
        match refused {
            Rejected::Name(message) => Self::Element(message),
            Rejected::Other(error) => Self::Other(error),
        }
    }
}

/// Whether the root element of a document is `<graphml>`; `head` is the start of the document.
pub(crate) fn is_graphml(head: &[u8]) -> bool {
    let mut reader = Reader::from_reader(head);
    let mut buffer = Vec::new();
    loop {
        buffer.clear();
        match reader.read_event_into(&mut buffer) {
            Ok(Event::Start(start) | Event::Empty(start)) => return start.local_name().as_ref() == "graphml",
            Ok(Event::Eof) | Err(_) => return false,
            Ok(_) => {}
        }
    }
}

/// Loads all of `input`.
pub(crate) fn load_graphml<T: Target + ?Sized>(
    name: &str,
    input: Box<dyn Read + Send>,
    merger: &mut Merger<'_, T>,
) -> Result<()> {
    let mut reader = Reader::from_reader(Positioned::new(input));
    let mut loader = GraphmlLoader {
        writer: PropertyWriter::new(merger)?,
        keys: BTreeMap::default(),
        element: None,
        text: TextTarget::Nothing,
        content: String::new(),
        graphs: 0,
        is_undirected: false,
        depth: 0,
        rooted: false,
        untyped: Vec::new(),
    };
    let mut buffer = Vec::new();
    loop {
        buffer.clear();
        let outcome = match reader.read_event_into(&mut buffer) {
            Ok(Event::Eof) if loader.depth == 0 && loader.rooted => break,
            Ok(Event::Eof) if loader.depth == 0 => {
                Err(not_graphml("the file has no element <graphml>: it is empty, or not GraphML"))
            }
            Ok(Event::Eof) => {
                Err(GraphmlError::File("the file ends inside an element".to_owned(), ErrorKind::Input))
            }
            Ok(event) => loader.event(&event),
            Err(quick_xml::Error::Io(error)) => return Err(read_error(name, &error)),
            Err(error) => Err(GraphmlError::File(error.to_string(), ErrorKind::Input)),
        };
        let at = reader.get_ref();
        let malformed =
            |message, kind| Malformed { line: at.line(), column: Some(at.column()), message, kind };
        match outcome {
            Ok(()) => {}
            Err(GraphmlError::Element(message)) => {
                loader.writer.merger.malformed(&malformed(message, ErrorKind::Input))?;
            }
            Err(GraphmlError::File(message, kind)) => {
                return Err(loader.writer.merger.fatal(&malformed(message, kind)));
            }
            Err(GraphmlError::Other(error)) => return Err(error),
        }
    }
    if let Some(first) = loader.untyped.first() {
        let keys = match loader.untyped.len() {
            1 => format!("the key {first} declares no type, so its values are texts"),
            count => format!("{count} keys, such as {first}, declare no type, so their values are texts"),
        };
        let note = format!("{name}: {keys}; APOC writes types with useTypes: true");
        loader.writer.merger.report.add_note(note);
    }
    loader.writer.finish()
}

struct GraphmlLoader<'m, 'a, T: Target + ?Sized> {
    writer: PropertyWriter<'m, 'a, T>,
    keys: BTreeMap<String, KeyDefinition>,
    element: Option<GraphmlElement>,
    text: TextTarget,
    content: String,
    /// Number of open `<graph>` elements.
    graphs: u32,
    /// Whether edges are undirected by default.
    is_undirected: bool,
    /// Number of open elements.
    depth: u64,
    /// Whether an element has occurred.
    rooted: bool,
    /// The keys without a type.
    untyped: Vec<String>,
}

impl<T: Target + ?Sized> GraphmlLoader<'_, '_, T> {
    fn event(&mut self, event: &Event<'_>) -> Result<(), GraphmlError> {
        match event {
            Event::Start(start) => {
                self.check_root(start)?;
                self.depth += 1;
                self.start(start)
            }
            Event::Empty(start) => {
                self.check_root(start)?;
                self.start(start)?;
                self.end(start.local_name().as_ref())
            }
            Event::End(end) => {
                // The XML reader checks that end tags match.
                self.depth = self.depth.saturating_sub(1);
                self.end(end.local_name().as_ref())
            }
            Event::Text(text) if !matches!(self.text, TextTarget::Nothing) => {
                self.content.push_str(&text.xml10_content());
                Ok(())
            }
            Event::CData(text) if !matches!(self.text, TextTarget::Nothing) => {
                self.content.push_str(&text.xml10_content());
                Ok(())
            }
            Event::GeneralRef(reference) if !matches!(self.text, TextTarget::Nothing) => {
                self.content.push_str(&resolve(reference)?);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Checks the root element: other XML would load as an empty graph.
    fn check_root(&mut self, start: &BytesStart<'_>) -> Result<(), GraphmlError> {
        if self.depth == 0 && start.local_name().as_ref() != "graphml" {
            // Input that is not XML may have a tag of any length.
            let name: String = start.name().as_ref().chars().take(40).collect();
            return Err(not_graphml(&format!("the first element is <{name}>, not <graphml>")));
        }
        self.rooted = true;
        Ok(())
    }

    fn start(&mut self, start: &BytesStart<'_>) -> Result<(), GraphmlError> {
        match start.local_name().as_ref() {
            "key" => self.key(start)?,
            "graph" => {
                self.graphs += 1;
                self.is_undirected = attribute(start, "edgedefault")?.as_deref() == Some("undirected");
                if self.graphs > 1 || self.element.is_some() {
                    return Err(GraphmlError::File(
                        "nested graphs cannot be loaded".to_owned(),
                        ErrorKind::Unsupported,
                    ));
                }
            }
            "hyperedge" => {
                return Err(GraphmlError::File(
                    "hyperedges cannot be loaded".to_owned(),
                    ErrorKind::Unsupported,
                ));
            }
            "node" => self.element = Some(element(start, false)?),
            "edge" => self.element = Some(element(start, true)?),
            "data" => {
                let key = attribute(start, "key")?;
                self.content.clear();
                self.text = match (key, &self.element) {
                    (Some(key), Some(_)) => TextTarget::Data(key),
                    // Data of the graph itself is ignored.
                    (_, None) => TextTarget::Nothing,
                    (None, Some(_)) => {
                        return Err(GraphmlError::Element("<data> has no attribute key".to_owned()));
                    }
                };
            }
            "default" => self.content.clear(),
            _ => {}
        }
        Ok(())
    }

    fn end(&mut self, name: &str) -> Result<(), GraphmlError> {
        match name {
            "graph" => self.graphs = self.graphs.saturating_sub(1),
            "default" => {
                if let TextTarget::Default(id) = &self.text
                    && let Some(key) = self.keys.get_mut(id)
                {
                    key.default = Some(self.content.clone());
                }
            }
            "key" => self.text = TextTarget::Nothing,
            "data" => {
                if let TextTarget::Data(key) = std::mem::replace(&mut self.text, TextTarget::Nothing)
                    && let Some(element) = &mut self.element
                {
                    element.data.push((key, std::mem::take(&mut self.content)));
                }
            }
            "node" | "edge" => {
                if let Some(element) = self.element.take() {
                    return self.element(element);
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn key(&mut self, start: &BytesStart<'_>) -> Result<(), GraphmlError> {
        let Some(id) = attribute(start, "id")? else {
            return Err(GraphmlError::File("<key> has no attribute id".to_owned(), ErrorKind::Input));
        };
        let name = attribute(start, "attr.name")?.unwrap_or_else(|| id.clone());
        let kind = match attribute(start, "attr.type")? {
            None => {
                if !matches!(name.as_str(), "label" | "labels" | "labelV" | "labelE") {
                    self.untyped.push(name.clone());
                }
                Type::String
            }
            Some(name) => Type::from_name(&name).ok_or_else(|| {
                GraphmlError::File(format!("<key> {id} has the unknown type {name}"), ErrorKind::Unsupported)
            })?,
        };
        let of = match attribute(start, "for")?.as_deref() {
            Some("node") => [true, false],
            Some("edge") => [false, true],
            None | Some("all") => [true, true],
            Some(_) => [false, false],
        };
        let is_list = attribute(start, "attr.list")?.is_some();
        self.keys.insert(id.clone(), KeyDefinition { name, kind, is_list, of, default: None });
        self.text = TextTarget::Default(id);
        Ok(())
    }

    /// Adds a complete element. A malformed one adds no statements.
    fn element(&mut self, mut element: GraphmlElement) -> Result<(), GraphmlError> {
        let what = if element.is_edge { "edge" } else { "node" };
        let missing =
            |attribute: &str| GraphmlError::Element(format!("<{what}> has no attribute {attribute}"));
        for (id, key) in &self.keys {
            if let Some(default) = &key.default
                && key.of[usize::from(element.is_edge)]
                && !element.data.iter().any(|(key, _)| key == id)
            {
                element.data.push((id.clone(), default.clone()));
            }
        }
        let label_key = if element.is_edge { "labelE" } else { "labelV" };
        let mut properties = Vec::with_capacity(element.data.len());
        for (id, text) in &element.data {
            let Some(key) = self.keys.get(id) else {
                return Err(GraphmlError::Element(format!("<data> of {what} has the undeclared key {id}")));
            };
            let named = &self.writer.merger.options.label_keys;
            if id == label_key
                || key.name == label_key
                || named.iter().any(|label| label == id || *label == key.name)
            {
                if element.is_edge {
                    element.labels.push(text.clone());
                } else {
                    element.labels.extend(labels_of(text).map(str::to_owned));
                }
                continue;
            }
            let repeats = if element.is_edge { "label" } else { "labels" };
            if key.name == repeats && element.label_attribute.as_ref() == Some(text) {
                continue;
            }
            let refused =
                |what: &str| GraphmlError::Element(format!("{text:?} of key {} is not {what}", key.name));
            let items = match key.is_list {
                true => {
                    let items = apoc::list(text).ok_or_else(|| refused("a list in JSON"))?;
                    items.into_iter().map(|(_, text)| Cow::Owned(text)).collect()
                }
                false => vec![Cow::Borrowed(text.as_str())],
            };
            for text in items {
                let lexical = key.kind.canonical(&text);
                let lexical =
                    lexical.ok_or_else(|| refused(&format!("a value of type {}", key.kind.name())))?;
                properties.push((self.writer.key(&key.name)?, self.writer.value(key.kind, &lexical)?));
            }
        }
        let subject = if element.is_edge {
            let source = element.source.as_deref().ok_or_else(|| missing("source"))?;
            let target = element.target.as_deref().ok_or_else(|| missing("target"))?;
            let label = element.labels.first().map_or(EDGE_LABEL, String::as_str);
            let ends = [source, target];
            let edge = self.writer.edge_between(ends, label, element.id.as_deref(), properties.is_empty())?;
            if element.directed.as_deref().map_or(self.is_undirected, |directed| directed == "false") {
                let of = [
                    self.writer.vertex("", source)?,
                    self.writer.key(label)?,
                    self.writer.vertex("", target)?,
                ];
                self.writer.undirected(of, &properties)?;
            }
            edge
        } else {
            let id = element.id.as_deref().ok_or_else(|| missing("id"))?;
            let vertex = self.writer.vertex("", id)?;
            self.writer.declare(vertex);
            if element.labels.is_empty() {
                element.labels.push(VERTEX_LABEL.to_owned());
            }
            let labels = element.labels.iter().map(|label| self.writer.label_id(label));
            for label in labels.collect::<Result<Vec<_>, _>>()? {
                self.writer.label(vertex, label)?;
            }
            vertex
        };
        for (key, value) in properties {
            self.writer.add(subject, key, value, Id::UNBOUND)?;
        }
        Ok(())
    }
}

fn not_graphml(message: &str) -> GraphmlError {
    GraphmlError::File(message.to_owned(), ErrorKind::Input)
}

fn element(start: &BytesStart<'_>, is_edge: bool) -> Result<GraphmlElement, GraphmlError> {
    let label_attribute = attribute(start, if is_edge { "label" } else { "labels" })?;
    let labels = match (is_edge, &label_attribute) {
        (true, Some(label)) => vec![label.clone()],
        (false, Some(labels)) => {
            labels.split(':').filter(|label| !label.is_empty()).map(str::to_owned).collect()
        }
        _ => Vec::new(),
    };
    Ok(GraphmlElement {
        is_edge,
        id: attribute(start, "id")?,
        source: attribute(start, "source")?,
        target: attribute(start, "target")?,
        labels,
        label_attribute,
        directed: attribute(start, "directed")?,
        data: Vec::new(),
    })
}

fn attribute(start: &BytesStart<'_>, name: &str) -> Result<Option<String>, GraphmlError> {
    let bad = |error: &dyn std::fmt::Display| GraphmlError::File(error.to_string(), ErrorKind::Input);
    match start.try_get_attribute(name).map_err(|error| bad(&error))? {
        None => Ok(None),
        Some(attribute) => attribute
            .normalized_value(XmlVersion::Implicit1_0)
            .map(|value| Some(value.into_owned()))
            .map_err(|error| bad(&error)),
    }
}

/// Resolves `&name;` or `&#number;`.
fn resolve(reference: &BytesRef<'_>) -> Result<Cow<'static, str>, GraphmlError> {
    let bad = |reason: String| GraphmlError::File(reason, ErrorKind::Input);
    if let Some(character) = reference.resolve_char_ref().map_err(|error| bad(error.to_string()))? {
        return Ok(Cow::Owned(character.to_string()));
    }
    let name = reference.xml10_content();
    quick_xml::escape::resolve_predefined_entity(&name)
        .map(Cow::Borrowed)
        .ok_or_else(|| bad(format!("the entity &{name}; is not known")))
}
