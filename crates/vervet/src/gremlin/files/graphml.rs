//! GraphML: read by the loader into a list of statements, which become vertices and edges; written in TinkerPop's way.
//!
//! # Shape
//! Labels are the keys `labelV` and `labelE`. A key has one type for all vertices and one for all edges, so a graph is looked at
//! twice: for its keys, then to be written. Values of several types under one key, and those that GraphML has no type for, are
//! written as text.
//! # Not here
//! Several values of one key, and properties of properties, which GraphML cannot say: an error names the vertex.

use super::super::host::TransactionHost;
use quick_xml::Writer;
use quick_xml::events::{BytesDecl, BytesText, Event};
use std::collections::{BTreeMap, HashMap};
use std::fmt::Display;
use std::io::Write;
use std::path::Path;
use vervet_gremlin::{Cardinality, Value};
use vervet_kernel::Control;
use vervet_load::{Format, LoadOptions, Source, Target};
use vervet_model::vocab::{EDGE_ID, KEY_NAMESPACE, LABEL_NAMESPACE, RDF_TYPE, VERTEX_NAMESPACE, iri_name};
use vervet_model::{Error, ErrorKind, Id, LiteralKind, Result, Statement, Tag, TermParts};
use vervet_snapshot::Snapshot;
use vervet_tinkerpop::graph_file::GraphVertex;
use vervet_traversal::{Host, Owner, each_vertex, literal, vertex_name};

/// What a term or statement that waits counts as, in bytes.
const HELD_BYTES: u64 = 128;
const LABEL_DEFAULT: &str = "vertex";
const GRAPHML: &str = "http://graphml.graphdrawing.org/xmlns";

/// Puts the graph of a file into a transaction.
pub(super) fn read(host: &mut TransactionHost<'_>, path: &Path, control: &Control<'_>) -> Result<()> {
    let options = LoadOptions { format: Some(Format::GraphMl), threads: 1, ..LoadOptions::default() };
    let mut held =
        Held { control, names: HashMap::new(), terms: Vec::new(), statements: Vec::new(), edges: 0 };
    vervet_load::load(vec![Source::path(path)], &options, &mut held, &mut std::io::sink())?;
    let Held { terms, statements, .. } = held;
    let term = |id: Id| {
        let place = usize::try_from(id.payload()).ok();
        place.and_then(|place| terms.get(place)).ok_or_else(|| Error::internal("a loader made up a term"))
    };
    let name = |id: Id, namespace: &str| -> Result<String> {
        match term(id)? {
            oxrdf::Term::NamedNode(node) => {
                Ok(iri_name(namespace, node.as_str()).unwrap_or_else(|| node.as_str().to_owned()))
            }
            other => Err(Error::internal(format!("{other} names nothing"))),
        }
    };
    // Vertices by first sight, with their labels; what is said of edges.
    let (mut order, mut labels) = (Vec::new(), HashMap::<Id, Vec<String>>::new());
    let mut about: HashMap<Id, Vec<(Id, Id)>> = HashMap::new();
    for statement in &statements {
        if statement.subject.tag() == Tag::Edge {
            about.entry(statement.subject).or_default().push((statement.predicate, statement.object));
            continue;
        }
        let ends = [Some(statement.subject), Some(statement.object).filter(|_| statement.edge.is_bound())];
        for vertex in ends.into_iter().flatten() {
            labels.entry(vertex).or_insert_with(|| {
                order.push(vertex);
                Vec::new()
            });
        }
        if term(statement.predicate)?.to_string() == format!("<{RDF_TYPE}>") {
            labels.entry(statement.subject).or_default().push(name(statement.object, LABEL_NAMESPACE)?);
        }
    }
    let mut vertices: HashMap<Id, u64> = HashMap::with_capacity(order.len());
    for vertex in order {
        control.check()?;
        let own = labels.remove(&vertex).unwrap_or_default();
        let label = if own.is_empty() { LABEL_DEFAULT.to_owned() } else { own.join("::") };
        let id = Value::text(name(vertex, VERTEX_NAMESPACE)?);
        vertices.insert(vertex, host.add_vertex(Some(&id), &label)?);
    }
    let known = |id: Id| vertices.get(&id).copied().ok_or_else(|| Error::internal("a vertex was not added"));
    for statement in statements {
        control.check()?;
        let Statement { subject, predicate, object, edge, .. } = statement;
        if subject.tag() == Tag::Edge || term(predicate)?.to_string() == format!("<{RDF_TYPE}>") {
            continue;
        }
        let key = name(predicate, KEY_NAMESPACE)?;
        if !edge.is_bound() {
            if let oxrdf::Term::Literal(value) = term(object)? {
                host.put_vertex_property(known(subject)?, &key, value, Cardinality::Single)?;
            }
            continue;
        }
        let (mut id, mut properties) = (None, Vec::new());
        for (predicate, object) in about.remove(&edge).unwrap_or_default() {
            let oxrdf::Term::Literal(value) = term(object)? else { continue };
            match term(predicate)? {
                oxrdf::Term::NamedNode(node) if node.as_str() == EDGE_ID => {
                    id = Some(Value::text(value.value()));
                }
                _ => properties.push((name(predicate, KEY_NAMESPACE)?, value)),
            }
        }
        let added = host.add_edge(known(subject)?, &key, known(object)?, id.as_ref())?;
        let mut owner = Owner::Edge(added);
        for (key, value) in properties {
            owner = host.put_property(owner, &key, value)?;
        }
    }
    Ok(())
}

/// Keeps terms and statements until the file has been read to its end.
struct Held<'a> {
    control: &'a Control<'a>,
    names: HashMap<oxrdf::Term, Id>,
    terms: Vec<oxrdf::Term>,
    statements: Vec<Statement>,
    edges: u64,
}

impl Held<'_> {
    fn intern(&mut self, term: oxrdf::Term) -> Result<Id> {
        if let Some(id) = self.names.get(&term) {
            return Ok(*id);
        }
        self.control.grow(2 * HELD_BYTES)?;
        let number = self.terms.len() as u64;
        let id = if term.is_literal() { Id::literal(number) } else { Id::vertex(number) };
        self.terms.push(term.clone());
        self.names.insert(term, id);
        Ok(id)
    }
}

impl Target for Held<'_> {
    fn intern_iri(&mut self, iri: &str) -> Result<Id> {
        self.intern(oxrdf::NamedNode::new_unchecked(iri).into())
    }

    fn intern_blank(&mut self, label: &str) -> Result<Id> {
        self.intern(oxrdf::BlankNode::new_unchecked(label).into())
    }

    fn intern_literal(&mut self, value: &str, kind: LiteralKind<'_>) -> Result<Id> {
        self.intern(TermParts::Literal { head: value, tail: "", kind }.to_term())
    }

    fn next_edge(&mut self) -> Result<Id> {
        self.edges += 1;
        Ok(Id::edge(self.edges - 1))
    }

    fn add_triples(&mut self, triples: &[[Id; 3]]) -> Result<()> {
        let statement = |&[subject, predicate, object]: &[Id; 3]| Statement {
            subject,
            predicate,
            object,
            graph: Id::UNBOUND,
            edge: Id::UNBOUND,
        };
        let statements: Vec<Statement> = triples.iter().map(statement).collect();
        self.add(&statements)
    }

    fn add(&mut self, statements: &[Statement]) -> Result<()> {
        self.control.check()?;
        self.control.grow(HELD_BYTES * statements.len() as u64)?;
        self.statements.extend_from_slice(statements);
        Ok(())
    }

    fn rewrite(&mut self, each: &mut dyn FnMut(&mut Statement) -> bool) -> Result<()> {
        self.statements.retain_mut(each);
        Ok(())
    }
}

/// The type of a key, as GraphML names it.
fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Boolean(_) => "boolean",
        Value::Byte(_) | Value::Short(_) | Value::Int(_) => "int",
        Value::Long(_) => "long",
        Value::Float(_) => "float",
        Value::Double(_) => "double",
        _ => "string",
    }
}

/// One type for two.
fn joined(a: &'static str, b: &'static str) -> &'static str {
    match (a, b) {
        _ if a == b => a,
        ("int", "long") | ("long", "int") => "long",
        _ => "string",
    }
}

/// Writes a graph; gives `out` back.
pub(super) fn write<W: Write>(snapshot: &dyn Snapshot, out: W, control: &Control<'_>) -> Result<W> {
    let mut keys = [BTreeMap::<String, &'static str>::new(), BTreeMap::new()];
    each_vertex(snapshot, control, &mut |vertex| {
        let mut note = |of: usize, key: &str, value: &Value| {
            let kind = type_of(value);
            let known = keys[of].entry(key.to_owned()).or_insert(kind);
            *known = joined(known, kind);
        };
        vertex.properties.iter().for_each(|property| note(0, &property.label, &property.value));
        for edge in &vertex.outgoing {
            edge.properties.iter().for_each(|property| note(1, &property.key, &property.value));
        }
        Ok(())
    })?;
    for (of, label) in [(0, "labelV"), (1, "labelE")] {
        if keys[of].contains_key(label) {
            let message =
                format!("a property with the key {label} cannot be written: GraphML has labels under it");
            return Err(Error::new(ErrorKind::Unsupported, message).with_hint("write the graph as GraphSON"));
        }
    }
    let mut writer = Writer::new(out);
    let mut event = |event: Event<'_>| writer.write_event(event);
    event(Event::Decl(BytesDecl::new("1.0", Some("UTF-8"), None))).map_err(|error| failed(&error))?;
    let written = (|| {
        writer.create_element("graphml").with_attribute(("xmlns", GRAPHML)).write_inner_content(
            |writer| {
                for (of, label, keys) in [("node", "labelV", &keys[0]), ("edge", "labelE", &keys[1])] {
                    let own = keys.iter().map(|(key, kind)| (key.as_str(), *kind));
                    for (key, kind) in std::iter::once((label, "string")).chain(own) {
                        let id = if key == label { key.to_owned() } else { key_id(of, key) };
                        let attributes =
                            [("id", id.as_str()), ("for", of), ("attr.name", key), ("attr.type", kind)];
                        writer.create_element("key").with_attributes(attributes).write_empty()?;
                    }
                }
                let attributes = [("id", "G"), ("edgedefault", "directed")];
                writer.create_element("graph").with_attributes(attributes).write_inner_content(|writer| {
                    for edges in [false, true] {
                        each_vertex(snapshot, control, &mut |vertex| element(writer, &vertex, edges))
                            .map_err(std::io::Error::other)?;
                    }
                    Ok(())
                })?;
                Ok(())
            },
        )?;
        Ok::<(), std::io::Error>(())
    })();
    match written {
        Ok(()) => Ok(writer.into_inner()),
        // An error of our own that has passed through the library.
        Err(error) => Err(match error.downcast::<Error>() {
            Ok(own) => own,
            Err(error) => failed(&error),
        }),
    }
}

/// What names a key in a file: the key itself, if vertices have it, since TinkerPop does so.
fn key_id(of: &str, key: &str) -> String {
    if of == "node" { key.to_owned() } else { format!("edge-{key}") }
}

fn failed(error: &dyn Display) -> Error {
    Error::new(ErrorKind::Io, format!("could not write GraphML: {error}"))
}

/// Writes a vertex, or the edges that leave it.
fn element<W: Write>(writer: &mut Writer<W>, vertex: &GraphVertex, edges: bool) -> Result<()> {
    let id = vertex_name(&vertex.id)?;
    if !edges {
        let mut data = vec![("labelV".to_owned(), vertex.label.to_string())];
        for property in &vertex.properties {
            let key = key_id("node", &property.label);
            let about = property.detail.as_ref().is_some_and(|detail| !detail.properties.is_empty());
            if about || data[1..].iter().any(|(known, _)| *known == key) {
                let what = if about { "a value with properties" } else { "several values" };
                let message =
                    format!("the vertex {id} has {what} of {}, which GraphML cannot say", property.label);
                return Err(Error::new(ErrorKind::Unsupported, message).with_hint("write it as GraphSON"));
            }
            data.push((key, text(&property.value)?));
        }
        return written(writer, "node", &[("id", &id)], &data);
    }
    for edge in &vertex.outgoing {
        let mut data = vec![("labelE".to_owned(), edge.label.to_string())];
        for property in &edge.properties {
            data.push((key_id("edge", &property.key), text(&property.value)?));
        }
        let (name, target) = (vertex_name(&edge.id)?, vertex_name(&edge.other)?);
        written(writer, "edge", &[("id", &name), ("source", &id), ("target", &target)], &data)?;
    }
    Ok(())
}

fn text(value: &Value) -> Result<String> {
    Ok(literal(value)?.value().to_owned())
}

fn written<W: Write>(
    writer: &mut Writer<W>,
    name: &str,
    attributes: &[(&str, &str)],
    data: &[(String, String)],
) -> Result<()> {
    // XML has no way to say these characters.
    let never = |c: char| matches!(c, '\0'..='\u{1f}' | '\u{fffe}' | '\u{ffff}');
    // Attributes lose what kind of white space they have.
    let bad = |text: &str, kept: &[char]| text.chars().any(|c| never(c) && !kept.contains(&c));
    if attributes.iter().any(|(_, text)| bad(text, &[]))
        || data.iter().any(|(_, text)| bad(text, &['\t', '\n', '\r']))
    {
        let message = format!("a {name} has a text with control characters, which XML cannot say");
        return Err(Error::new(ErrorKind::Unsupported, message).with_hint("write it as GraphSON"));
    }
    writer
        .create_element(name)
        .with_attributes(attributes.iter().copied())
        .write_inner_content(|writer| {
            for (key, value) in data {
                let element = writer.create_element("data").with_attribute(("key", key.as_str()));
                // A reader would make another line end of it.
                let escaped = quick_xml::escape::escape(value.as_str()).replace('\r', "&#13;");
                element.write_text_content(BytesText::from_escaped(escaped))?;
            }
            Ok(())
        })
        .map(|_| ())
        .map_err(|error| failed(&error))
}
