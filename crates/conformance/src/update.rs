//! Updates on the reference snapshot, and the W3C's tests of updates: syntax, and the dataset afterwards.
//!
//! Terms must be identical, blank nodes up to isomorphism of the whole dataset. Empty named graphs in a test
//! are ignored: Vervet does not store them.
//!
//! # Not here
//! Documents for `LOAD`: the tests only load missing documents, silently.

use crate::compare::isomorphic;
use crate::manifest::{Files, Test};
use crate::test_failure::{TestFailure, action};
use oxrdf::{BlankNode, Dataset, GraphName, NamedNode, NamedOrBlankNode, Quad, Term, TermRef, Triple};
use oxrdfio::RdfFormat;
use vervet::update::{UpdateOptions, UpdateTarget, run};
use vervet::{Environment, Error, ErrorKind, Id, QueryOptions, Result};
use vervet_algebra::Update;
use vervet_model::Statement;
use vervet_snapshot::Snapshot;
use vervet_sparql::{ParseOptions, parse_update};
use vervet_testkit::MemorySnapshot;

/// The reference snapshot, rebuilt when it is read after a change.
#[derive(Default)]
pub(crate) struct Model {
    graph: MemorySnapshot,
    changed: bool,
}

impl UpdateTarget for Model {
    fn read(&mut self, with: &mut dyn FnMut(&dyn Snapshot) -> Result<()>) -> Result<()> {
        if std::mem::take(&mut self.changed) {
            self.graph = std::mem::take(&mut self.graph).finish();
        }
        with(&self.graph)
    }

    fn intern(&mut self, term: TermRef<'_>) -> Result<Id> {
        Ok(self.graph.intern(&term.into_owned()))
    }

    fn insert(&mut self, statement: &Statement) -> Result<bool> {
        self.changed = true;
        Ok(self.graph.add(*statement))
    }

    fn remove(&mut self, statement: &Statement) -> Result<bool> {
        self.changed = true;
        Ok(self.graph.remove(statement))
    }
}

impl Model {
    pub(crate) fn of(quads: impl IntoIterator<Item = Quad>) -> Self {
        Self { graph: MemorySnapshot::from_quads(quads), changed: false }
    }

    /// Runs an update whose relative IRIs are resolved against `base`.
    pub(crate) fn update(&mut self, text: &str, base: &str) -> Result<()> {
        let query = QueryOptions { base_iri: Some(base.to_owned()), ..QueryOptions::default() };
        let mut options = UpdateOptions { query, documents: None };
        run(&parse(text, base)?, self, &Environment::simulated(1), &mut options).map(drop)
    }

    pub(crate) fn dataset(&self) -> Result<Dataset, String> {
        self.graph.statements().map(|statement| self.quad(statement)).collect()
    }

    fn quad(&self, statement: &Statement) -> Result<Quad, String> {
        let node = |id| match self.term(id)? {
            Term::NamedNode(node) => Ok(NamedOrBlankNode::from(node)),
            Term::BlankNode(node) => Ok(node.into()),
            other => Err(format!("{other} is neither a subject nor a graph name")),
        };
        let Term::NamedNode(predicate) = self.term(statement.predicate)? else {
            return Err("a predicate is not an IRI".to_owned());
        };
        let graph = match statement.graph.is_bound() {
            true => node(statement.graph)?.into(),
            false => GraphName::DefaultGraph,
        };
        Ok(Triple { subject: node(statement.subject)?, predicate, object: self.term(statement.object)? }
            .in_graph(graph))
    }

    fn term(&self, id: Id) -> Result<Term, String> {
        let mut term = None;
        self.graph
            .read_term(id, &mut String::new(), &mut |parts| term = Some(parts.to_term()))
            .map_err(|error| error.to_string())?;
        term.ok_or_else(|| format!("no term was read for {id:?}"))
    }
}

/// Parses an update whose relative IRIs are resolved against `base`.
fn parse(text: &str, base: &str) -> Result<Update> {
    let options = ParseOptions { base_iri: Some(base), ..ParseOptions::default() };
    parse_update(text, &options).map_err(Error::from)
}

pub(crate) fn positive(test: &Test) -> Result<(), TestFailure> {
    let (file, text) = action(test)?;
    parse(&text, &file.iri)?;
    Ok(())
}

pub(crate) fn negative(test: &Test) -> Result<(), TestFailure> {
    let (file, text) = action(test)?;
    match parse(&text, &file.iri) {
        Ok(_) => Err(TestFailure::Failed(format!("the update is accepted:\n{text}"))),
        Err(error) if error.kind() == ErrorKind::Query => Ok(()),
        Err(error) => Err(error.into()),
    }
}

pub(crate) fn evaluation(test: &Test) -> Result<(), TestFailure> {
    let (file, text) = action(test)?;
    // First, so that an unsupported feature is reported as such.
    parse(&text, &file.iri)?;
    let mut model = Model::of(quads(&test.input)?);
    model.update(&text, &file.iri)?;
    let found = model.dataset()?;
    let expected: Dataset = quads(&test.output)?.into_iter().collect();
    if isomorphic(expected.clone(), found.clone()) {
        return Ok(());
    }
    Err(TestFailure::Failed(format!("expected\n{expected}\nfound\n{found}\n{}", text.trim())))
}

/// The statements of a dataset; blank-node labels are scoped to a file.
fn quads(files: &Files) -> Result<Vec<Quad>, String> {
    let mut quads = Vec::new();
    let default = files.data.iter().map(|file| (file, None));
    let named = files.graph_data.iter().map(|(file, name)| (file, Some(name)));
    for (number, (file, name)) in default.chain(named).enumerate() {
        let graph = match name {
            Some(name) => NamedNode::new(name).map_err(|error| format!("{name}: {error}"))?.into(),
            None => GraphName::DefaultGraph,
        };
        let mut of_file: Vec<Quad> = match file.extension() {
            "trig" => file.quads(RdfFormat::TriG)?,
            _ => file.graph()?.iter().map(|triple| Triple::from(triple).in_graph(graph.clone())).collect(),
        };
        of_file.iter_mut().for_each(|quad| rename(quad, number));
        quads.append(&mut of_file);
    }
    Ok(quads)
}

fn rename(quad: &mut Quad, number: usize) {
    let own = |node: &BlankNode| BlankNode::new_unchecked(format!("f{number}x{}", node.as_str()));
    if let NamedOrBlankNode::BlankNode(node) = &mut quad.subject {
        *node = own(node);
    }
    if let Term::BlankNode(node) = &mut quad.object {
        *node = own(node);
    }
}
