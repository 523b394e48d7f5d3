//! The graphs of scenarios.
//!
//! # Shape
//! A named graph is read from its file once. *Base*: it is loaded as RDF, in the property-graph form of
//! docs/loading.md. *Delta*: a transaction writes it with traversals. Each scenario gets a new empty graph.

use super::configuration::Configuration;
use super::elements::Elements;
use super::wire::Running;
use std::cell::OnceCell;
use std::collections::HashMap;
use std::fmt::Write;
use std::fs::File;
use std::io::BufReader;
use std::path::PathBuf;
use std::rc::Rc;
use vervet::gremlin::{Bytecode, Cardinality, Instruction, T, Token, Value};
use vervet::{Database, Format, GremlinOptions, NamedNode, Term, Triple};
use vervet_model::vocab::{
    EDGE_ID, EDGE_NAMESPACE, KEY_NAMESPACE, LABEL_NAMESPACE, RDF_REIFIES, RDF_TYPE, VERTEX_NAMESPACE,
    name_iri,
};
use vervet_tinkerpop::graph_file::{GraphReader, GraphVertex};
use vervet_traversal::{literal, vertex_name};

/// A graph and its elements.
pub(super) struct Graph {
    pub(super) database: crate::cluster::Spread,
    pub(super) elements: Elements,
    /// Its server, started on first use.
    pub(super) server: OnceCell<Running>,
}

/// The named graphs, read on first use.
pub(super) struct Graphs {
    folder: PathBuf,
    configuration: Configuration,
    named: HashMap<String, Rc<Graph>>,
}

impl Graphs {
    /// Graphs whose files are in `folder`.
    pub(super) fn new(folder: PathBuf, configuration: Configuration) -> Self {
        Self { folder, configuration, named: HashMap::new() }
    }

    /// The graph `modern`, `classic`, `crew`, `sink` or `grateful`.
    ///
    /// # Errors
    /// A missing or malformed file; errors of the engine.
    pub(super) fn named(&mut self, name: &str) -> Result<Rc<Graph>, String> {
        if let Some(graph) = self.named.get(name) {
            return Ok(graph.clone());
        }
        let file = match name {
            "grateful" => "grateful-dead.json".to_owned(),
            name => format!("tinkerpop-{name}.json"),
        };
        let path = self.folder.join(file);
        let file =
            File::open(&path).map_err(|error| format!("could not open {}: {error}", path.display()))?;
        let vertices: Vec<GraphVertex> = GraphReader::new(BufReader::new(file))
            .collect::<Result<_, _>>()
            .map_err(|error| format!("{}: {error}", path.display()))?;
        let database = crate::partitions::database(name);
        match self.configuration {
            Configuration::Base => {
                let text = triples(&vertices).map_err(|error| error.to_string())?;
                database.load_text(Format::NTriples, &text).map_err(|error| error.to_string())?;
            }
            Configuration::Delta | Configuration::Steps => {
                write(&database, &vertices).map_err(|error| error.to_string())?
            }
        }
        let database = crate::cluster::spread(database)?;
        let elements = Elements::of(&database).map_err(|error| error.to_string())?;
        let graph = Rc::new(Graph { database, elements, server: OnceCell::new() });
        self.named.insert(name.to_owned(), graph.clone());
        Ok(graph)
    }
}

/// The graph as N-Triples.
fn triples(vertices: &[GraphVertex]) -> vervet::Result<String> {
    let mut text = String::new();
    let mut identities = 0;
    // An identity allows statements about the statement, which `about` contains.
    let mut add = |triple: Triple, identity: bool, about: &[(&str, Term)]| {
        let _ = writeln!(text, "{triple} .");
        if !identity {
            return;
        }
        let edge = NamedNode::new_unchecked(format!("{EDGE_NAMESPACE}{identities}"));
        identities += 1;
        let _ = writeln!(text, "{edge} <{RDF_REIFIES}> <<( {triple} )>> .");
        for (predicate, object) in about {
            let _ = writeln!(text, "{edge} <{predicate}> {object} .");
        }
    };
    let node = |iri: String| NamedNode::new_unchecked(iri);
    for vertex in vertices {
        let subject = node(name_iri(VERTEX_NAMESPACE, &vertex_name(&vertex.id)?));
        let label = node(name_iri(LABEL_NAMESPACE, &vertex.label));
        add(Triple::new(subject.clone(), NamedNode::new_unchecked(RDF_TYPE), label), false, &[]);
        for property in &vertex.properties {
            let mut about = Vec::new();
            for own in property.detail.iter().flat_map(|detail| &detail.properties) {
                about.push((name_iri(KEY_NAMESPACE, &own.key), Term::from(literal(&own.value)?)));
            }
            let about: Vec<(&str, Term)> =
                about.iter().map(|(key, value)| (key.as_str(), value.clone())).collect();
            let key = node(name_iri(KEY_NAMESPACE, &property.label));
            let triple = Triple::new(subject.clone(), key, literal(&property.value)?);
            add(triple, !about.is_empty(), &about);
        }
        for (edge, source, target) in vertex.edges() {
            let source = node(name_iri(VERTEX_NAMESPACE, &vertex_name(source)?));
            let target = node(name_iri(VERTEX_NAMESPACE, &vertex_name(target)?));
            let triple = Triple::new(source, node(name_iri(KEY_NAMESPACE, &edge.label)), target);
            let mut about =
                vec![(EDGE_ID.to_owned(), Term::from(literal(&Value::text(vertex_name(&edge.id)?))?))];
            for property in &edge.properties {
                about.push((name_iri(KEY_NAMESPACE, &property.key), Term::from(literal(&property.value)?)));
            }
            let about: Vec<(&str, Term)> =
                about.iter().map(|(key, value)| (key.as_str(), value.clone())).collect();
            add(triple, true, &about);
        }
    }
    Ok(text)
}

/// Writes the graph with traversals, in one transaction.
fn write(database: &Database, vertices: &[GraphVertex]) -> vervet::Result<()> {
    let step = Instruction::new;
    let options = GremlinOptions::default();
    let id = || Value::from(Token::T(T::Id));
    database.transact(|transaction| {
        for vertex in vertices {
            let mut steps = vec![
                step("addV", vec![Value::text(&vertex.label)]),
                step("property", vec![id(), vertex.id.clone()]),
            ];
            for property in &vertex.properties {
                let cardinality =
                    match vertex.properties.iter().filter(|other| other.label == property.label).count() {
                        1 => Cardinality::Single,
                        _ => Cardinality::List,
                    };
                let mut arguments = vec![
                    Token::Cardinality(cardinality).into(),
                    Value::text(&property.label),
                    property.value.clone(),
                ];
                for own in property.detail.iter().flat_map(|detail| &detail.properties) {
                    arguments.extend([Value::text(&own.key), own.value.clone()]);
                }
                steps.push(step("property", arguments));
            }
            transaction.traverse(&Bytecode { source: Vec::new(), steps }, &options)?;
        }
        for (edge, source, target) in vertices.iter().flat_map(GraphVertex::edges) {
            let to = Bytecode { source: Vec::new(), steps: vec![step("V", vec![target.clone()])] };
            let mut steps = vec![
                step("V", vec![source.clone()]),
                step("addE", vec![Value::text(&edge.label)]),
                step("to", vec![to.into()]),
                step("property", vec![id(), edge.id.clone()]),
            ];
            for property in &edge.properties {
                steps.push(step("property", vec![Value::text(&property.key), property.value.clone()]));
            }
            transaction.traverse(&Bytecode { source: Vec::new(), steps }, &options)?;
        }
        Ok(())
    })
}
