//! The whole graph as a document: statements here, as a property graph in `graphson` and `graphml`.

pub(crate) mod graphml;
pub(crate) mod graphson;

use crate::Database;
use std::io::Write;
use vervet_load::Format;
use vervet_model::vocab::RDF_REIFIES;
use vervet_model::{Error, ErrorKind, Id, Result};
use vervet_snapshot::Snapshot;
use vervet_tinkerpop::graphson::Dialect;

/// Bytes that are held back before they are handed on.
const HELD_BYTES: usize = 1 << 20;

impl Database {
    /// Writes all statements as N-Triples (also read as Turtle), N-Quads or TriG, and returns their number.
    /// A statement with an identity is followed by a statement that says so (`rdf:reifies`, RDF 1.2), since
    /// its properties hang on that; both are in the same graph. [`Database::load`] reads it back.
    ///
    /// N-Triples have no graph names: statements of named graphs are an error there.
    ///
    /// As a property graph, in GraphSON or GraphML, it returns the number of vertices and edges. That is what Gremlin sees
    /// (docs/gremlin.md): literals have Gremlin's types, and GraphML refuses what it cannot hold.
    ///
    /// # Errors
    /// Another format; named graphs in one that has none; values that GraphML cannot hold; `out` fails; damaged data.
    pub fn export(&self, format: Format, out: &mut dyn Write) -> Result<u64> {
        let published = self.published();
        let store = &published.version;
        let graphs = match format {
            Format::NQuads => Graphs::Behind,
            Format::TriG => Graphs::Around,
            Format::NTriples | Format::Turtle | Format::GraphSon | Format::GraphSon2 | Format::GraphMl => {
                Graphs::None
            }
            _ => {
                let message = "a graph is exported as N-Triples (also read as Turtle), N-Quads, TriG, GraphSON or GraphML";
                return Err(Error::new(ErrorKind::Unsupported, message));
            }
        };
        if graphs == Graphs::None && !store.graphs().is_empty() {
            let message = match store.graphs().len() {
                1 => "a named graph does not fit into this format".to_owned(),
                count => format!("{count} named graphs do not fit into this format"),
            };
            return Err(Error::new(ErrorKind::Input, message).with_hint("export as N-Quads (nq)"));
        }
        match format {
            Format::GraphSon => return graphson::write(store, Dialect::V3, &|| Ok(()), out),
            Format::GraphSon2 => return graphson::write(store, Dialect::V2, &|| Ok(()), out),
            Format::GraphMl => return graphml::write(store, &|| Ok(()), out),
            _ => {}
        }
        let mut text = Text { held: Vec::with_capacity(HELD_BYTES), ends: Vec::new() };
        let mut count = 0;
        for statement in store.statements() {
            let statement = statement?;
            text.line(
                store,
                &[statement.subject, statement.predicate, statement.object],
                statement.graph,
                graphs,
            )?;
            if statement.edge.is_bound() {
                text.reifier(
                    store,
                    statement.edge,
                    &[statement.subject, statement.predicate, statement.object],
                    statement.graph,
                    graphs,
                )?;
            }
            count += 1;
            if text.held.len() >= HELD_BYTES {
                text.hand_on(out)?;
            }
        }
        text.hand_on(out)?;
        out.flush().map_err(|error| Error::io("write the export", &error))?;
        Ok(count)
    }
}

/// Where a format writes the name of a graph.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Graphs {
    None,
    /// `subject predicate object graph .`
    Behind,
    /// `graph { subject predicate object }`
    Around,
}

struct Text {
    held: Vec<u8>,
    ends: Vec<usize>,
}

impl Text {
    fn terms(&mut self, store: &dyn Snapshot, ids: &[Id]) -> Result<()> {
        for id in ids {
            self.ends.clear();
            store.write_terms(std::slice::from_ref(id), &mut self.held, &mut self.ends)?;
            self.held.push(b' ');
        }
        Ok(())
    }

    fn line(&mut self, store: &dyn Snapshot, ids: &[Id], graph: Id, graphs: Graphs) -> Result<()> {
        self.begin(store, graph, graphs)?;
        self.terms(store, ids)?;
        self.end(store, graph, graphs)
    }

    fn begin(&mut self, store: &dyn Snapshot, graph: Id, graphs: Graphs) -> Result<()> {
        if graph.is_bound() && graphs == Graphs::Around {
            self.terms(store, &[graph])?;
            self.held.extend_from_slice(b"{ ");
        }
        Ok(())
    }

    fn end(&mut self, store: &dyn Snapshot, graph: Id, graphs: Graphs) -> Result<()> {
        let graphs = if graph.is_bound() { graphs } else { Graphs::None };
        if graphs == Graphs::Behind {
            self.terms(store, &[graph])?;
        }
        self.held.extend_from_slice(if graphs == Graphs::Around { b"}\n" } else { b".\n" });
        Ok(())
    }

    fn reifier(
        &mut self,
        store: &dyn Snapshot,
        edge: Id,
        ids: &[Id],
        graph: Id,
        graphs: Graphs,
    ) -> Result<()> {
        self.begin(store, graph, graphs)?;
        self.terms(store, &[edge])?;
        self.held.extend_from_slice(format!("<{RDF_REIFIES}> <<( ").as_bytes());
        self.terms(store, ids)?;
        self.held.extend_from_slice(b")>> ");
        self.end(store, graph, graphs)
    }

    fn hand_on(&mut self, out: &mut dyn Write) -> Result<()> {
        let written = out.write_all(&self.held);
        self.held.clear();
        written.map_err(|error| Error::io("write the export", &error))
    }
}
