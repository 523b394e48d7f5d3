//! Operations on whole graphs: `CLEAR`, `DROP`, `CREATE`, `ADD`, `MOVE`, `COPY`.
//!
//! # Cost
//! There is no index by graph: each operation reads every segment, one predicate at a time, and holds the
//! statements of one predicate.

use super::remove::{Removal, scan};
use super::{Request, no_such_graph};
use oxrdf::{NamedNode, TermRef};
use vervet_algebra::{GraphTarget, Transfer};
use vervet_model::{Error, ErrorKind, Id, Result, Tag};
use vervet_snapshot::GraphFilter;

impl Request<'_, '_> {
    pub(super) fn clear(&mut self, target: &GraphTarget) -> Result<()> {
        let graphs = match target {
            GraphTarget::Default => GraphFilter::Default,
            GraphTarget::Named => GraphFilter::AnyNamed,
            GraphTarget::All => GraphFilter::Any,
            // Empty graphs are not stored, so a graph without statements is not an error.
            GraphTarget::Graph(graph) => match self.graph(Some(graph))? {
                Some(graph) => graph,
                None => return Ok(()),
            },
        };
        self.clear_graphs(graphs)
    }

    fn clear_graphs(&mut self, graphs: GraphFilter) -> Result<()> {
        for predicate in self.predicates()? {
            let removal = self.read(|snapshot, control| {
                let mut removal = Removal::default();
                scan(snapshot, predicate, graphs, control, &mut removal.entries)?;
                let edges = removal.entries.iter().map(|entry| entry.edge).filter(|edge| edge.is_bound());
                // Statements about the edges are removed before them, also from other graphs.
                removal.add_edges(edges.collect(), snapshot, control)?;
                Ok(removal)
            })?;
            self.remove(removal.entries)?;
        }
        Ok(())
    }

    pub(super) fn create(&mut self, graph: &NamedNode) -> Result<()> {
        match self.graph(Some(graph))? {
            Some(_) => Err(Error::new(ErrorKind::Query, format!("the graph {graph} is there already"))
                .with_hint("SILENT makes this no error")),
            None => Ok(()),
        }
    }

    pub(super) fn add(&mut self, transfer: &Transfer) -> Result<()> {
        let Some(from) = self.source(transfer)? else { return Ok(()) };
        self.pour(from, transfer)
    }

    /// Copies a graph; returns whether source and destination differ.
    pub(super) fn copy(&mut self, transfer: &Transfer) -> Result<bool> {
        let Some(from) = self.source(transfer)? else { return Ok(false) };
        if let Some(to) = self.graph(transfer.to.as_ref())? {
            self.clear_graphs(to)?;
        }
        self.pour(from, transfer)?;
        Ok(true)
    }

    pub(super) fn move_graph(&mut self, transfer: &Transfer) -> Result<()> {
        if self.copy(transfer)?
            && let Some(from) = self.graph(transfer.from.as_ref())?
        {
            self.clear_graphs(from)?;
        }
        Ok(())
    }

    /// The source of a transfer; `None` if it equals the destination, so that there is nothing to do.
    fn source(&mut self, transfer: &Transfer) -> Result<Option<GraphFilter>> {
        let Some(from) = self.graph(transfer.from.as_ref())? else {
            return Err(transfer
                .from
                .as_ref()
                .map_or_else(|| Error::internal("the default graph is always there"), no_such_graph));
        };
        if transfer.from == transfer.to {
            return Ok(None);
        }
        if !self.read(|snapshot, _| Ok(snapshot.edge_count() > 0))? {
            return Ok(Some(from));
        }
        for predicate in self.predicates()? {
            let edges = self.read(|snapshot, control| {
                let mut entries = Vec::new();
                scan(snapshot, predicate, from, control, &mut entries)?;
                let about = |id: Id| id.tag() == Tag::Edge;
                Ok(entries.iter().any(|s| s.edge.is_bound() || about(s.subject) || about(s.object)))
            })?;
            if edges {
                let name = transfer.from.as_ref().map_or("the default graph".to_owned(), ToString::to_string);
                let message = format!("cannot copy {name}: it has edges with identities");
                let hint = "an edge is in one graph; INSERT ... WHERE copies the statements alone";
                return Err(Error::new(ErrorKind::Unsupported, message).with_hint(hint));
            }
        }
        Ok(Some(from))
    }

    /// Adds the statements of a graph to the destination.
    fn pour(&mut self, from: GraphFilter, transfer: &Transfer) -> Result<()> {
        let graph = match &transfer.to {
            Some(graph) => self.intern(graph.as_ref().into())?,
            None => Id::UNBOUND,
        };
        for predicate in self.predicates()? {
            let mut entries = self.read(|snapshot, control| {
                let mut entries = Vec::new();
                scan(snapshot, predicate, from, control, &mut entries)?;
                Ok(entries)
            })?;
            entries.iter_mut().for_each(|entry| entry.graph = graph);
            self.insert(&mut entries)?;
        }
        Ok(())
    }

    /// A graph, if it has statements (the default graph always exists).
    fn graph(&mut self, graph: Option<&NamedNode>) -> Result<Option<GraphFilter>> {
        let Some(graph) = graph else { return Ok(Some(GraphFilter::Default)) };
        self.read(|snapshot, _| {
            let id = snapshot.lookup(TermRef::NamedNode(graph.as_ref()))?;
            let is_there = |id: &Id| snapshot.graphs().iter().any(|(graph, count)| graph == id && *count > 0);
            Ok(id.filter(is_there).map(GraphFilter::Named))
        })
    }

    fn predicates(&mut self) -> Result<Vec<Id>> {
        self.read(|snapshot, _| Ok(snapshot.predicates().iter().map(|(predicate, _)| *predicate).collect()))
    }
}
