//! Edges in RDF 1.2: `E rdf:reifies <<( s p o )>>` makes `E` the edge of the statement `s p o`.
//!
//! An edge id belongs to one asserted statement, and a statement with `E` as its subject or object is about
//! that edge. A name of the form `urn:vervet:edge:N` gets a new edge id at its first occurrence; any other
//! name becomes an edge when it is declared, so earlier statements are renamed at the end.
//!
//! # Invariants
//! 1. All statements that the load has passed to the target contain edge ids assigned by the target, never
//!    those of the input.
//! 2. A claim is resolved in its block if its statement is in that block or was the last one before it (true
//!    for every claim of an export), else at the end by a pass over all statements of the load.
//! # Cost
//! For blocks without edges only a check of the tag of each distinct term. 40 bytes per edge.
//! # Not here
//! Parsing of triple terms (`terms`), and the edges of property-graph files (`property`).

use crate::block::{Block, BlockPosition, DEFAULT_GRAPH, Reifier};
use crate::edge_table::{Claim, InputPosition, NamedEdge};
use crate::merge::Merger;
use crate::target::{Statement, Target};
use foldhash::{HashMap as SeededMap, HashSet as SeededSet};
use std::hash::BuildHasher;
use vervet_model::vocab::{EDGE_ID, EDGE_NAMESPACE};
use vervet_model::{Error, ErrorKind, Id, Result, Tag};

impl<T: Target + ?Sized> Merger<'_, T> {
    /// Adds the statements of `block` if it concerns edges. `graph`: the graph of statements without one.
    pub(crate) fn merge_edges(&mut self, block: &Block, graph: Id) -> Result<bool> {
        if !self.edges.concerns_edges(block, &self.ids) {
            let last = block.triples.last().map(|_| (self.raw(block, block.triples.len() - 1, graph), true));
            self.edges.record_block(&self.ids, last);
            return Ok(false);
        }
        let mut claims = self.declare(block, graph)?;
        let before = self.edges.last;
        let ends_last_block = |claim: &Claim| before.is_some_and(|(last, _)| last == claim.statement);
        let mut found: SeededMap<[Id; 4], bool> =
            claims.iter().map(|claim| (claim.statement, ends_last_block(claim))).collect();
        // The statement with the edge replaces the one without, which was counted with the last block.
        let replaces_last =
            before.is_some_and(|(_, is_plain)| is_plain) && claims.iter().any(ends_last_block);
        let mut statements = Vec::with_capacity(block.triples.len() + claims.len());
        let mut last = None;
        for row in 0..block.triples.len() {
            let Some(statement) = self.statement(block, row, graph)? else { continue };
            match found.get_mut(&statement) {
                Some(found) => *found = true,
                None => statements.push(with_edge(statement, Id::UNBOUND)),
            }
            last = Some((statement, !found.contains_key(&statement)));
        }
        claims.retain(|claim| {
            let found = found.get(&claim.statement).is_some_and(|found| *found);
            if found {
                statements.push(with_edge(claim.statement, claim.edge));
            }
            !found
        });
        self.edges.claims.append(&mut claims);
        self.target.add(&statements)?;
        let last = last.or(before.map(|(last, is_plain)| (last, is_plain && !replaces_last)));
        self.edges.record_block(&self.ids, last);
        self.record_added(statements.len())?;
        if let Some((last, _)) = before.filter(|_| replaces_last) {
            self.edges.replaced.insert(last);
            self.report.statements = self.report.statements.saturating_sub(1);
        }
        Ok(true)
    }

    /// Declares the reifiers of a block; returns the new claims.
    fn declare(&mut self, block: &Block, graph: Id) -> Result<Vec<Claim>> {
        // All names first: reified triples may mention each other's edges.
        for reifier in &block.reifiers {
            let name = self.id(reifier.reifier);
            if !self.edges.named.contains_key(&name) {
                let edge = self.target.next_edge()?;
                self.edges.named.insert(name, NamedEdge { edge, statement: None });
                if name.is_vertex() {
                    self.edges.vertex_names += 1;
                    self.edges.late |= name.payload() < self.edges.vertex_end;
                    if block.is_iri(reifier.reifier) {
                        let graph = self.graph_of(reifier.graph, graph);
                        self.edges.external.push((edge, name, graph));
                    }
                }
            }
        }
        let mut claims = Vec::with_capacity(block.reifiers.len());
        for reifier in &block.reifiers {
            claims.extend(self.claim(reifier, graph)?);
        }
        Ok(claims)
    }

    fn claim(&mut self, reifier: &Reifier, graph: Id) -> Result<Option<Claim>> {
        let position = self.input_position(reifier.at);
        let [subject, predicate, object] = reifier.triple.map(|number| self.id(number));
        let statement = [subject, predicate, object, self.graph_of(reifier.graph, graph)];
        let Some(statement) = self.resolve_edges(statement, position)? else { return Ok(None) };
        let name = self.id(reifier.reifier);
        let hash = self.edges.hashing.hash_one(statement);
        let Some(named) = self.edges.named.get_mut(&name) else { return Ok(None) };
        match named.statement.replace(hash) {
            None => {
                let edge = named.edge;
                self.edges.uses.remove(&name);
                Ok(Some(Claim { statement, edge, position }))
            }
            Some(before) if before == hash => Ok(None),
            before => {
                named.statement = before;
                let message = "this reifier already has another statement; an edge has one statement";
                self.malformed_at(position, message)?;
                Ok(None)
            }
        }
    }

    /// Row `row` of a block with its input terms.
    fn raw(&self, block: &Block, row: usize, graph: Id) -> [Id; 4] {
        let [subject, predicate, object] = block.triples[row].map(|number| self.id(number));
        let number = block.graphs.get(row).copied().unwrap_or(DEFAULT_GRAPH);
        [subject, predicate, object, self.graph_of(number, graph)]
    }

    /// Row `row` of a block with edge ids of this load; `None` if it was skipped.
    fn statement(&mut self, block: &Block, row: usize, graph: Id) -> Result<Option<[Id; 4]>> {
        let statement = self.raw(block, row, graph);
        let of_edge = |id: &Id| id.tag() == Tag::Edge;
        let position = if statement.iter().any(of_edge) {
            self.input_position(block.position_of(row))
        } else {
            self.input_position(BlockPosition::Unknown)
        };
        self.resolve_edges(statement, position)
    }

    /// `statement` with edge names replaced by edge ids of this load.
    fn resolve_edges(&mut self, statement: [Id; 4], position: InputPosition) -> Result<Option<[Id; 4]>> {
        let [subject, predicate, object, graph] = statement;
        if predicate.tag() == Tag::Edge || graph.tag() == Tag::Edge {
            let message = format!("an edge ({EDGE_NAMESPACE}…) cannot be a predicate or the name of a graph");
            self.malformed_at(position, &message)?;
            return Ok(None);
        }
        Ok(Some([self.renamed(subject, position)?, predicate, self.renamed(object, position)?, graph]))
    }

    fn renamed(&mut self, id: Id, position: InputPosition) -> Result<Id> {
        match id.tag() {
            Tag::Vertex if self.edges.vertex_names > 0 => Ok(self.edges.vertex_or_edge(id)),
            Tag::Edge => {
                if let Some(named) = self.edges.named.get(&id) {
                    return Ok(named.edge);
                }
                let edge = self.target.next_edge()?;
                self.edges.named.insert(id, NamedEdge { edge, statement: None });
                self.edges.uses.insert(id, position);
                Ok(edge)
            }
            _ => Ok(id),
        }
    }

    /// Resolves undeclared names and open claims at the end of the load.
    pub(crate) fn resolve_edges_at_end(&mut self) -> Result<()> {
        let mut dropped = self.drop_undeclared()?;
        self.resolve_claims(&mut dropped)?;
        self.drop_edges(&mut dropped)?;
        let external = std::mem::take(&mut self.edges.external);
        if external.is_empty() {
            return Ok(());
        }
        let key = self.target.intern_iri(EDGE_ID)?;
        let kept = external.into_iter().filter(|(edge, ..)| !dropped.contains(edge));
        let statements: Vec<Statement> =
            kept.map(|(edge, name, graph)| with_edge([edge, key, name, graph], Id::UNBOUND)).collect();
        self.target.add(&statements)?;
        self.record_added(statements.len())
    }

    /// Drops the edges that were used but never declared.
    fn drop_undeclared(&mut self) -> Result<SeededSet<Id>> {
        let mut dropped = SeededSet::default();
        let mut uses: Vec<(Id, Id, InputPosition)> = std::mem::take(&mut self.edges.uses)
            .into_iter()
            .map(|(name, position)| (self.edges.vertex_or_edge(name), name, position))
            .collect();
        uses.sort_unstable_by_key(|(edge, ..)| *edge);
        for (edge, name, position) in uses {
            let message = format!(
                "{EDGE_NAMESPACE}{} is used as an edge, but no rdf:reifies in this load defines its statement",
                name.payload()
            );
            self.malformed_at(position, &message)?;
            dropped.insert(edge);
        }
        Ok(dropped)
    }

    /// Renames early uses and finds the statements of open claims.
    fn resolve_claims(&mut self, dropped: &mut SeededSet<Id>) -> Result<()> {
        let mut claims = std::mem::take(&mut self.edges.claims);
        if claims.is_empty() && !self.edges.late {
            return Ok(());
        }
        let edges = &self.edges;
        let mut found = SeededMap::default();
        for claim in &mut claims {
            let [subject, predicate, object, graph] = claim.statement;
            claim.statement = [
                edges.vertex_or_edge_of_load(subject),
                predicate,
                edges.vertex_or_edge_of_load(object),
                graph,
            ];
            found.insert(claim.statement, false);
        }
        let mut removed = 0;
        self.target.rewrite(&mut |statement| {
            statement.subject = edges.vertex_or_edge_of_load(statement.subject);
            statement.object = edges.vertex_or_edge_of_load(statement.object);
            let key = [statement.subject, statement.predicate, statement.object, statement.graph];
            match found.get_mut(&key) {
                Some(found) => {
                    *found = true;
                    // The statement with the edge replaces the one without.
                    let keep = statement.edge.is_bound();
                    removed += u64::from(!keep && !edges.replaced.contains(&key));
                    keep
                }
                None => true,
            }
        })?;
        self.report.statements = self.report.statements.saturating_sub(removed);
        let mut statements = Vec::new();
        for claim in claims {
            if found.get(&claim.statement).is_some_and(|found| *found) {
                statements.push(with_edge(claim.statement, claim.edge));
            } else {
                let message = "the statement of this reifier is not stated in the same graph in this load; \
                               state it, too";
                // Valid RDF 1.2, but an edge id requires an asserted statement.
                self.malformed_at(claim.position, message).map_err(|error| {
                    let hint = error.hint().unwrap_or("state the statement, too").to_owned();
                    Error::new(ErrorKind::Unsupported, error.message()).with_hint(hint)
                })?;
                dropped.insert(claim.edge);
            }
        }
        self.target.add(&statements)?;
        self.record_added(statements.len())
    }

    /// Removes the statements of and about `dropped` edges, transitively.
    fn drop_edges(&mut self, dropped: &mut SeededSet<Id>) -> Result<()> {
        let mut before = 0;
        while before < dropped.len() {
            before = dropped.len();
            let mut removed = 0;
            self.target.rewrite(&mut |statement| {
                let Statement { subject, object, edge, .. } = *statement;
                if ![subject, object, edge].iter().any(|id| dropped.contains(id)) {
                    return true;
                }
                if edge.is_bound() {
                    dropped.insert(edge);
                }
                removed += 1;
                false
            })?;
            self.report.statements = self.report.statements.saturating_sub(removed);
        }
        Ok(())
    }
}

fn with_edge([subject, predicate, object, graph]: [Id; 4], edge: Id) -> Statement {
    Statement { subject, predicate, object, graph, edge }
}
