//! Export of the whole graph: as RDF statements here, as a property graph in `graphson` and `graphml`.

pub(crate) mod graphml;
pub(crate) mod graphson;

use crate::query::run::control;
use crate::{Database, GraphSnapshot, QueryOptions, RowCounter};
use std::io::Write;
use vervet_delta::Version;
use vervet_kernel::Control;
use vervet_load::Format;
use vervet_model::vocab::RDF_REIFIES;
use vervet_model::{Error, ErrorKind, Id, Result, Statement};
use vervet_snapshot::Snapshot;
use vervet_tinkerpop::graphson::Dialect;

/// Size of the output buffer, in bytes.
const BUFFER_BYTES: usize = 1 << 20;

/// Statements between two checks of the limits, about 200 µs of work.
const BATCH_STATEMENTS: u64 = 256;

impl Database {
    /// Writes all statements as N-Triples (also valid Turtle), N-Quads or TriG, and returns their number. A
    /// statement with an identity is followed by an `rdf:reifies` statement (RDF 1.2) in the same graph,
    /// since its properties depend on the identity. [`Database::load`] reads it back.
    ///
    /// N-Triples have no graph names: statements of named graphs are an error there.
    ///
    /// As GraphSON or GraphML, it writes the property graph that Gremlin sees (docs/gremlin.md) and returns
    /// the number of vertices and edges. Literals get Gremlin's types; a value that GraphML cannot represent
    /// is an error.
    ///
    /// # Errors
    /// Another format; named graphs in a format without graph names; values that GraphML cannot represent;
    /// `out` fails; damaged data.
    pub fn export(&self, format: Format, out: &mut dyn Write) -> Result<u64> {
        let options = QueryOptions { timeout: None, memory_limit_bytes: None, ..QueryOptions::default() };
        self.export_with(format, &options, out)
    }

    /// [`Database::export`] with the limits of `options`: deadline, cancellation, memory of single vertices
    /// with their edges. Like a heavy query it yields to light ones.
    ///
    /// # Errors
    /// As [`Database::export`]; limits.
    pub fn export_with(&self, format: Format, options: &QueryOptions, out: &mut dyn Write) -> Result<u64> {
        self.export_snapshot(&self.snapshot(), format, options, out)
    }

    /// [`Database::export_with`] of a snapshot of this database.
    ///
    /// # Errors
    /// As [`Database::export_with`].
    pub fn export_snapshot(
        &self,
        snapshot: &GraphSnapshot,
        format: Format,
        options: &QueryOptions,
        out: &mut dyn Write,
    ) -> Result<u64> {
        let control = control(options, options.begin(), self.driver().gate());
        let _limits = control.enter();
        write(&snapshot.published().version, format, &control, options.progress.as_ref(), out)
    }
}

fn write(
    store: &Version,
    format: Format,
    control: &Control<'_>,
    progress: Option<&RowCounter>,
    out: &mut dyn Write,
) -> Result<u64> {
    let graphs = match format {
        Format::NQuads => GraphPosition::Behind,
        Format::TriG => GraphPosition::Around,
        Format::NTriples | Format::Turtle | Format::GraphSon | Format::GraphSon2 | Format::GraphMl => {
            GraphPosition::None
        }
        _ => {
            let message =
                "a graph is exported as N-Triples (also read as Turtle), N-Quads, TriG, GraphSON or GraphML";
            return Err(Error::new(ErrorKind::Unsupported, message));
        }
    };
    if graphs == GraphPosition::None && !store.graphs().is_empty() {
        let message = match store.graphs().len() {
            1 => "a named graph does not fit into this format".to_owned(),
            count => format!("{count} named graphs do not fit into this format"),
        };
        return Err(Error::new(ErrorKind::Input, message).with_hint("export as N-Quads (nq)"));
    }
    match format {
        Format::GraphSon => graphson::write(store, Dialect::V3, control, out),
        Format::GraphSon2 => graphson::write(store, Dialect::V2, control, out),
        Format::GraphMl => graphml::write(store, control, out),
        _ => write_statements(store, graphs, control, progress, out),
    }
}

fn write_statements(
    store: &Version,
    graphs: GraphPosition,
    control: &Control<'_>,
    progress: Option<&RowCounter>,
    out: &mut dyn Write,
) -> Result<u64> {
    let mut text = StatementText { buffer: Vec::with_capacity(BUFFER_BYTES), ends: Vec::new() };
    let mut count = 0;
    control.check()?;
    for statement in store.statements() {
        let Statement { subject, predicate, object, graph, edge } = statement?;
        let ids = [subject, predicate, object];
        text.line(store, &ids, graph, graphs)?;
        if edge.is_bound() {
            text.reifier(store, edge, &ids, graph, graphs)?;
        }
        count += 1;
        if count % BATCH_STATEMENTS == 0 {
            control.check()?;
            progress.into_iter().for_each(|progress| progress.add(BATCH_STATEMENTS));
        }
        if text.buffer.len() >= BUFFER_BYTES {
            text.write_buffer(out)?;
        }
    }
    progress.into_iter().for_each(|progress| progress.add(count % BATCH_STATEMENTS));
    text.write_buffer(out)?;
    out.flush().map_err(|error| Error::io("write the export", &error))?;
    Ok(count)
}

/// The position of the graph name in a format.
#[derive(Clone, Copy, PartialEq, Eq)]
enum GraphPosition {
    None,
    /// `subject predicate object graph .`
    Behind,
    /// `graph { subject predicate object }`
    Around,
}

struct StatementText {
    buffer: Vec<u8>,
    ends: Vec<usize>,
}

impl StatementText {
    fn terms(&mut self, store: &dyn Snapshot, ids: &[Id]) -> Result<()> {
        for id in ids {
            self.ends.clear();
            store.write_terms(std::slice::from_ref(id), &mut self.buffer, &mut self.ends)?;
            self.buffer.push(b' ');
        }
        Ok(())
    }

    fn line(&mut self, store: &dyn Snapshot, ids: &[Id], graph: Id, graphs: GraphPosition) -> Result<()> {
        self.begin(store, graph, graphs)?;
        self.terms(store, ids)?;
        self.end(store, graph, graphs)
    }

    fn begin(&mut self, store: &dyn Snapshot, graph: Id, graphs: GraphPosition) -> Result<()> {
        if graph.is_bound() && graphs == GraphPosition::Around {
            self.terms(store, &[graph])?;
            self.buffer.extend_from_slice(b"{ ");
        }
        Ok(())
    }

    fn end(&mut self, store: &dyn Snapshot, graph: Id, graphs: GraphPosition) -> Result<()> {
        let graphs = if graph.is_bound() { graphs } else { GraphPosition::None };
        if graphs == GraphPosition::Behind {
            self.terms(store, &[graph])?;
        }
        self.buffer.extend_from_slice(if graphs == GraphPosition::Around { b"}\n" } else { b".\n" });
        Ok(())
    }

    fn reifier(
        &mut self,
        store: &dyn Snapshot,
        edge: Id,
        ids: &[Id],
        graph: Id,
        graphs: GraphPosition,
    ) -> Result<()> {
        self.begin(store, graph, graphs)?;
        self.terms(store, &[edge])?;
        self.buffer.extend_from_slice(format!("<{RDF_REIFIES}> <<( ").as_bytes());
        self.terms(store, ids)?;
        self.buffer.extend_from_slice(b")>> ");
        self.end(store, graph, graphs)
    }

    fn write_buffer(&mut self, out: &mut dyn Write) -> Result<()> {
        let written = out.write_all(&self.buffer);
        self.buffer.clear();
        written.map_err(|error| Error::io("write the export", &error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::{Duration, Instant};
    use vervet_kernel::{Gate, Limits};

    #[derive(Debug, Default)]
    struct Counting(AtomicU64);

    impl Gate for Counting {
        fn pass(&self, _now: Instant, _stop: &dyn Fn() -> bool) -> bool {
            self.0.fetch_add(1, Ordering::Relaxed);
            false
        }

        fn leave(&self) {}

        fn light_ended(&self, _checked: Instant) {}

        fn processor_time(&self) -> Duration {
            Duration::ZERO
        }
    }

    /// An export counts as a heavy query: it passes the gate with each batch of statements, and with each
    /// vertex.
    #[test]
    fn an_export_passes_the_gate() {
        let database = Database::in_memory();
        let text: String =
            (0..2000).map(|n| format!("<urn:a{n}> <urn:vervet:key:k> <urn:b{n}> .\n")).collect();
        database.load_text(Format::NTriples, &text).expect("it loads");
        let gate = Arc::new(Counting::default());
        for (format, passes) in [
            (Format::NQuads, 2000 / BATCH_STATEMENTS),
            (Format::TriG, 2000 / BATCH_STATEMENTS),
            (Format::GraphSon, 4000),
            (Format::GraphMl, 4000),
        ] {
            let control = Control::with_gate(Limits::default(), Some(Arc::clone(&gate) as Arc<dyn Gate>));
            control.set_heavy();
            gate.0.store(0, Ordering::Relaxed);
            write(&database.published().version, format, &control, None, &mut std::io::sink())
                .expect("written");
            let passed = gate.0.load(Ordering::Relaxed);
            assert!(passed >= passes, "{format:?}: {passed} passes");
            assert_eq!(control.memory_bytes(), 0, "{format:?}");
        }
    }
}
