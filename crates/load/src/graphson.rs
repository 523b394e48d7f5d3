//! GraphSON 2 and 3 loader, one vertex at a time. Each edge is listed at both of its vertices and counts
//! once.
//!
//! Values keep their types. A repeated value, or a value with meta-properties, gets an identity
//! (docs/gremlin.md). Ids of vertex properties are dropped, and there are no null values.

use crate::block::Malformed;
use crate::merge::Merger;
use crate::positioned::Positioned;
use crate::property::{PropertyWriter, Rejected, VERTEX_LABEL, labels_of};
use crate::source::{Source, read_error};
use crate::target::Target;
use foldhash::HashMap as SeededMap;
use oxrdf::Literal;
use std::io::{BufRead, Read};
use std::sync::Arc;
use vervet_gremlin::{Property, Value};
use vervet_model::{ErrorKind, Id, LiteralKind, Result};
use vervet_tinkerpop::graph_file::{GraphReader, GraphVertex};
use vervet_tinkerpop::rdf_values::{literal, vertex_name};
use vervet_tinkerpop::{ReadError, ReadErrorKind};

const XSD_STRING: &str = "http://www.w3.org/2001/XMLSchema#string";

/// Loads all of `input`; `again` is a second source of the same input, for the line of an error.
pub(crate) fn load_graphson<T: Target + ?Sized>(
    name: &str,
    input: Box<dyn Read + Send>,
    again: Option<Source>,
    merger: &mut Merger<'_, T>,
) -> Result<()> {
    let mut reader = GraphReader::new(Positioned::new(input));
    let mut writer = PropertyWriter::new(merger)?;
    while let Some(vertex) = reader.next() {
        let vertex = match vertex {
            Ok(vertex) => vertex,
            Err(error) => {
                // Finding the position means reading the file again, so it is not done for skipped vertices.
                let is_skipped = reader.has_more() && writer.merger.options.skip_errors;
                let again = again.as_ref().filter(|_| !is_skipped);
                let malformed = malformed(name, &error, reader.get_ref(), again)?;
                if !reader.has_more() {
                    return Err(writer.merger.fatal(&malformed));
                }
                writer.merger.malformed(&malformed)?;
                continue;
            }
        };
        match add_vertex(&vertex, &mut writer) {
            Ok(()) => {}
            Err(Rejected::Name(message)) => {
                // After the vertex: on its line, if each vertex is on one line.
                let line = reader.get_ref().line();
                let message = match vertex_name(&vertex.id) {
                    Ok(id) => format!("vertex {id}: {message}"),
                    Err(_) => message,
                };
                let malformed = Malformed { line, column: None, message, kind: ErrorKind::Input };
                writer.merger.malformed(&malformed)?;
            }
            Err(Rejected::Other(error)) => return Err(error),
        }
    }
    writer.finish()
}

/// Adds a vertex and those of its edges that this vertex counts. A malformed vertex adds no statements.
fn add_vertex<T: Target + ?Sized>(
    vertex: &GraphVertex,
    writer: &mut PropertyWriter<'_, '_, T>,
) -> Result<(), Rejected> {
    let name = name_of(&vertex.id)?;
    let subject = writer.vertex("", &name)?;
    let mut labels = Vec::with_capacity(1);
    for label in labels_of(&vertex.label) {
        labels.push(writer.label_id(label)?);
    }
    if labels.is_empty() {
        labels.push(writer.label_id(VERTEX_LABEL)?);
    }
    let mut values = Vec::with_capacity(vertex.properties.len());
    let mut counts: SeededMap<(Id, Id), u32> = SeededMap::default();
    for property in &vertex.properties {
        let Some(statement) = statement(&property.label, &property.value, writer)? else { continue };
        *counts.entry(statement).or_default() += 1;
        let about = property.detail.as_ref().map_or(&[][..], |detail| &detail.properties);
        values.push((statement, statements(about, writer)?));
    }
    let mut edges = Vec::new();
    for (edge, source, target) in vertex.edges() {
        let ends = [name_of(source)?, name_of(target)?];
        for end in &ends {
            writer.vertex("", end)?;
        }
        writer.key(&edge.label)?;
        let id = match &edge.id {
            Value::Null => None,
            id => Some(name_of(id)?),
        };
        edges.push((edge, ends, id, statements(&edge.properties, writer)?));
    }
    writer.declare(subject);
    for label in labels {
        writer.label(subject, label)?;
    }
    for ((key, value), about) in values {
        // A plain statement would coincide with an equal one that has an identity.
        let is_plain = about.is_empty() && counts.get(&(key, value)) == Some(&1);
        let identity = if is_plain { Id::UNBOUND } else { writer.identity()? };
        writer.add(subject, key, value, identity)?;
        for (key, value) in about {
            writer.add(identity, key, value, Id::UNBOUND)?;
        }
    }
    for (edge, [source, target], id, properties) in edges {
        let ends = [source.as_str(), target.as_str()];
        let edge = writer.edge_between(ends, &edge.label, id.as_deref(), properties.is_empty())?;
        for (key, value) in properties {
            writer.add(edge, key, value, Id::UNBOUND)?;
        }
    }
    Ok(())
}

fn name_of(id: &Value) -> Result<String, Rejected> {
    vertex_name(id).map_err(|error| Rejected::Name(error.to_string()))
}

/// Key and value of a property; `None` for null.
fn statement<T: Target + ?Sized>(
    key: &str,
    value: &Value,
    writer: &mut PropertyWriter<'_, '_, T>,
) -> Result<Option<(Id, Id)>, Rejected> {
    if matches!(value, Value::Null) {
        return Ok(None);
    }
    let key = writer.key(key)?;
    let literal: Literal = literal(value).map_err(|error| Rejected::Name(error.to_string()))?;
    let kind = match literal.datatype().as_str() {
        XSD_STRING => LiteralKind::String,
        datatype => LiteralKind::Typed(datatype),
    };
    Ok(Some((key, writer.merger.target.intern_literal(literal.value(), kind)?)))
}

fn statements<T: Target + ?Sized>(
    properties: &[Arc<Property>],
    writer: &mut PropertyWriter<'_, '_, T>,
) -> Result<Vec<(Id, Id)>, Rejected> {
    let mut all = Vec::with_capacity(properties.len());
    for property in properties {
        all.extend(statement(&property.key, &property.value, writer)?);
    }
    Ok(all)
}

/// The malformed statement for an error in a vertex or in the file.
///
/// # Errors
/// An I/O error.
fn malformed(name: &str, error: &ReadError, at: &Positioned, again: Option<&Source>) -> Result<Malformed> {
    if let Some(error) = at.failure() {
        return Err(read_error(name, error));
    }
    let kind = match error.kind() {
        ReadErrorKind::Unsupported => ErrorKind::Unsupported,
        _ => ErrorKind::Input,
    };
    let position =
        again.and_then(Source::reopen).and_then(|mut source| line_and_column(&mut source, error.at()));
    let (line, column, message) = match position {
        Some((line, column)) => (line, Some(column), error.message().to_owned()),
        None => (at.line(), None, error.message().to_owned()),
    };
    Ok(Malformed { line, column, message, kind })
}

/// Line and column of a byte offset, from 0.
fn line_and_column(source: &mut Source, byte: u64) -> Option<(u64, u64)> {
    let mut input = Positioned::new(source.open(&Arc::default()).ok()?);
    let mut left = usize::try_from(byte).ok()?;
    while left > 0 {
        let length = input.fill_buf().ok()?.len().min(left);
        if length == 0 {
            break;
        }
        input.consume(length);
        left -= length;
    }
    Some((input.line(), input.column()))
}
