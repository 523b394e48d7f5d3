//! GraphML export, with labels in TinkerPop's form.
//!
//! GraphML has few types, one value for each key of an element, and no meta-properties. A graph that needs
//! more is rejected, since the file would lose data. Keys are declared before elements, so properties are
//! read twice.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::Write;
use time::format_description::well_known::Rfc3339;
use vervet_gremlin::{Extended, Property, Value};
use vervet_kernel::Control;
use vervet_model::{Error, ErrorKind, Result};
use vervet_snapshot::Snapshot;
use vervet_tinkerpop::graph_file::{GraphEdge, GraphVertex};
use vervet_tinkerpop::rdf_values::{double_text, float_text, vertex_name};
use vervet_traversal::{VertexParts, for_each_vertex};

/// Size of the output buffer, in bytes.
const HELD_BYTES: usize = 1 << 16;

/// Edges between two checks of the limits.
const EDGES_AT_ONCE: usize = 256;

/// Approximate size of a key with its id, in bytes.
const KEY_BYTES: u64 = 256;

const LABELS: [&str; 2] = ["labelV", "labelE"];

const HEAD: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
  <key id="labelV" for="node" attr.name="labelV" attr.type="string"/>
  <key id="labelE" for="edge" attr.name="labelE" attr.type="string"/>
"#;

/// Key ids by domain (0: vertices, 1: edges), name and type.
type Keys = BTreeMap<(usize, String, &'static str), String>;

/// Writes all vertices, then all edges, within the limits of `control`. Returns their number.
pub(crate) fn write(snapshot: &dyn Snapshot, control: &Control<'_>, out: &mut dyn Write) -> Result<u64> {
    let keys = keys(snapshot, control)?;
    let mut text = HEAD.to_owned();
    for ((of, name, kind), id) in &keys {
        text.push_str("  <key id=\"");
        escape(id, &mut text)?;
        let _ = write!(text, "\" for=\"{}\" attr.name=\"", ["node", "edge"][*of]);
        escape(name, &mut text)?;
        let _ = writeln!(text, "\" attr.type=\"{kind}\"/>");
    }
    text.push_str("  <graph id=\"G\" edgedefault=\"directed\">\n");
    let mut count = 0;
    let nodes = VertexParts { properties: true, outgoing: false, incoming: false };
    let edges = VertexParts { properties: false, outgoing: true, incoming: false };
    for_each_vertex(snapshot, nodes, control, &mut |vertex| {
        count += 1;
        write_node(&vertex, &keys, &mut text)?;
        hand_on(&mut text, HELD_BYTES, out)
    })?;
    for_each_vertex(snapshot, edges, control, &mut |vertex| {
        count += vertex.outgoing.len() as u64;
        let source = vertex_name(&vertex.id)?;
        for edges in vertex.outgoing.chunks(EDGES_AT_ONCE) {
            control.check()?;
            write_edges(&source, edges, &keys, &mut text)?;
            hand_on(&mut text, HELD_BYTES, out)?;
        }
        Ok(())
    })?;
    text.push_str("  </graph>\n</graphml>\n");
    hand_on(&mut text, 0, out)?;
    out.flush().map_err(|error| Error::io("write the export", &error))?;
    control.shrink(keys.len() as u64 * KEY_BYTES);
    Ok(count)
}

/// All keys. The id of a key is its name where that is unique, as in TinkerPop's files.
fn keys(snapshot: &dyn Snapshot, control: &Control<'_>) -> Result<Keys> {
    let mut found: BTreeSet<(usize, String, &'static str)> = BTreeSet::new();
    let parts = VertexParts { incoming: false, ..VertexParts::ALL };
    for_each_vertex(snapshot, parts, control, &mut |vertex| {
        let id = vertex_name(&vertex.id)?;
        let values = vertex.properties.iter().map(|property| (&property.label, &property.value));
        let mut add = |of: usize, key: &str, value: &Value| -> Result<()> {
            if LABELS.contains(&key) {
                return Err(refused(
                    &id,
                    &format!("a property is called {key}, which means a label in GraphML"),
                ));
            }
            let Some((kind, _)) = typed(value)? else {
                let kind = value.type_name();
                return Err(refused(
                    &id,
                    &format!("the property {key} has the type {kind}, which GraphML does not have"),
                ));
            };
            if !found.contains(&(of, key.to_owned(), kind)) {
                control.grow(KEY_BYTES)?;
                found.insert((of, key.to_owned(), kind));
            }
            Ok(())
        };
        let mut seen = BTreeSet::new();
        for (key, value) in values {
            add(0, key, value)?;
            if !seen.insert(key) {
                return Err(refused(&id, &format!("the property {key} has several values")));
            }
        }
        for property in &vertex.properties {
            if property.detail.as_ref().is_some_and(|detail| !detail.properties.is_empty()) {
                let message = format!("the property {} has properties of its own", property.label);
                return Err(refused(&id, &message));
            }
        }
        for edge in &vertex.outgoing {
            let mut seen = BTreeSet::new();
            for property in &edge.properties {
                add(1, &property.key, &property.value)?;
                if !seen.insert(&property.key) {
                    let message = format!("an edge has several values of the property {}", property.key);
                    return Err(refused(&id, &message));
                }
            }
        }
        Ok(())
    })?;
    let mut ids: BTreeSet<String> = LABELS.map(str::to_owned).into();
    let mut keys = Keys::new();
    for (of, name, kind) in found {
        let mut id = name.clone();
        while !ids.insert(id.clone()) {
            id.push_str(["_node_", "_edge_"][of]);
            id.push_str(kind);
        }
        keys.insert((of, name, kind), id);
    }
    Ok(keys)
}

fn refused(vertex: &str, why: &str) -> Error {
    Error::new(ErrorKind::Unsupported, format!("vertex {vertex} cannot be written as GraphML: {why}"))
        .with_hint("export as GraphSON (graphson) or N-Quads (nq), which hold everything")
}

/// The type name and the text of a value; `None`: GraphML has no such type. Its standard has no dates, but
/// the loader reads them.
fn typed(value: &Value) -> Result<Option<(&'static str, String)>> {
    Ok(Some(match value {
        Value::String(text) => ("string", text.to_string()),
        Value::Boolean(value) => ("boolean", value.to_string()),
        Value::Int(number) => ("int", number.to_string()),
        Value::Long(number) => ("long", number.to_string()),
        Value::Float(number) => ("float", float_text(*number)),
        Value::Double(number) => ("double", double_text(*number)),
        Value::DateTime(time) => match time.format(&Rfc3339) {
            Ok(text) => ("datetime", text),
            Err(_) => return Ok(None),
        },
        Value::Extended(extended) => match extended.as_ref() {
            Extended::LocalDate(year @ 0..=9999, month, day) => {
                ("date", format!("{year:04}-{month:02}-{day:02}"))
            }
            _ => return Ok(None),
        },
        _ => return Ok(None),
    }))
}

fn write_node(vertex: &GraphVertex, keys: &Keys, text: &mut String) -> Result<()> {
    text.push_str("    <node id=\"");
    escape(&vertex_name(&vertex.id)?, text)?;
    text.push_str("\"><data key=\"labelV\">");
    escape(&vertex.label, text)?;
    text.push_str("</data>");
    for property in &vertex.properties {
        write_data(0, &property.label, &property.value, keys, text)?;
    }
    text.push_str("</node>\n");
    Ok(())
}

fn write_edges(source: &str, edges: &[GraphEdge], keys: &Keys, text: &mut String) -> Result<()> {
    for edge in edges {
        text.push_str("    <edge id=\"");
        escape(&vertex_name(&edge.id)?, text)?;
        text.push_str("\" source=\"");
        escape(source, text)?;
        text.push_str("\" target=\"");
        escape(&vertex_name(&edge.other)?, text)?;
        text.push_str("\"><data key=\"labelE\">");
        escape(&edge.label, text)?;
        text.push_str("</data>");
        for property in &edge.properties {
            let Property { key, value, .. } = property.as_ref();
            write_data(1, key, value, keys, text)?;
        }
        text.push_str("</edge>\n");
    }
    Ok(())
}

fn write_data(of: usize, name: &str, value: &Value, keys: &Keys, text: &mut String) -> Result<()> {
    // The first pass read the same snapshot, so the key is known and the type is one of GraphML's.
    let known =
        typed(value)?.and_then(|(kind, lexical)| Some((keys.get(&(of, name.to_owned(), kind))?, lexical)));
    let (key, lexical) = known.ok_or_else(|| Error::internal(format!("the key {name} is not declared")))?;
    text.push_str("<data key=\"");
    escape(key, text)?;
    text.push_str("\">");
    escape(&lexical, text)?;
    text.push_str("</data>");
    Ok(())
}

/// Appends a text, escaped for element content and attribute values. White space other than a blank is
/// written as a reference, since XML readers turn it into blanks in attributes, and carriage returns into
/// line feeds everywhere.
fn escape(from: &str, text: &mut String) -> Result<()> {
    for c in from.chars() {
        match c {
            '&' => text.push_str("&amp;"),
            '<' => text.push_str("&lt;"),
            '>' => text.push_str("&gt;"),
            '"' => text.push_str("&quot;"),
            '\t' | '\n' | '\r' | '\u{85}' | '\u{2028}' => {
                let _ = write!(text, "&#{};", u32::from(c));
            }
            '\0'..='\u{1F}' | '\u{FFFE}' | '\u{FFFF}' => {
                let message = format!("the character U+{:04X} cannot be written as XML", u32::from(c));
                return Err(Error::new(ErrorKind::Unsupported, message)
                    .with_hint("export as GraphSON (graphson) or N-Quads (nq), which hold everything"));
            }
            c => text.push(c),
        }
    }
    Ok(())
}

fn hand_on(text: &mut String, from: usize, out: &mut dyn Write) -> Result<()> {
    if text.len() >= from {
        out.write_all(text.as_bytes()).map_err(|error| Error::io("write the export", &error))?;
        text.clear();
    }
    Ok(())
}
