//! The graph of a random case as a layered version: a part in a store, the rest inserted, with other
//! statements added and removed.
//!
//! # Shape
//! Quads of the case are randomly divided between a store and a list to insert; quads of another case (noise)
//! are put into the store or inserted, and removed again; some of the real ones are removed and reinserted.
//! Terms of the store are in its dictionary, the others were added later. Queries run as the facade runs
//! them.

use crate::random_outcome::{Outcome, row};
use crate::random_terms::{Random, graph};
use oxrdf::{GraphName, Quad, Term};
use oxrdfio::{RdfFormat, RdfParser};
use oxsdatatypes::DateTime;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use vervet_algebra::Form;
use vervet_delta::Version;
use vervet_dictionary::{Dictionary, DictionaryBuilder, MutableDictionary};
use vervet_driver_local::{CutPolicy, Parallelism};
use vervet_env::Environment;
use vervet_expression::{ComputedTerms, Evaluator};
use vervet_kernel::{Batch, Control, Flow, Limits};
use vervet_model::{Error, Id, Result, Statement, Tag};
use vervet_planner::PlanOptions;
use vervet_snapshot::Snapshot;
use vervet_store::{BuildOptions, StoreBuilder, Target};

/// Converts quads to statements.
struct Ids {
    dictionary: Dictionary,
    terms: Arc<MutableDictionary>,
}

impl Ids {
    fn of(&self, term: &Term) -> Result<Id> {
        match self.dictionary.lookup(term.as_ref())? {
            Some(id) => Ok(id),
            None => self.terms.intern(term.as_ref()),
        }
    }

    fn statement(&self, quad: &Quad) -> Result<Statement> {
        let [subject, predicate, object, graph] = terms_of(quad);
        Ok(Statement {
            subject: self.of(&subject)?,
            predicate: self.of(&predicate)?,
            object: self.of(&object)?,
            graph: if quad.graph_name.is_default_graph() { Id::UNBOUND } else { self.of(&graph)? },
            edge: Id::UNBOUND,
        })
    }
}

/// The terms of a quad; the default graph is represented by the subject, which exists anyway.
fn terms_of(quad: &Quad) -> [Term; 4] {
    let subject: Term = quad.subject.clone().into();
    let graph = match &quad.graph_name {
        GraphName::NamedNode(node) => node.clone().into(),
        GraphName::BlankNode(node) => node.clone().into(),
        GraphName::DefaultGraph => subject.clone(),
    };
    [subject, quad.predicate.clone().into(), quad.object.clone(), graph]
}

fn parse(trig: &str) -> std::result::Result<Vec<Quad>, String> {
    let quads: std::result::Result<Vec<Quad>, _> =
        RdfParser::from_format(RdfFormat::TriG).for_slice(trig.as_bytes()).collect();
    // Sorted by their text, without duplicates.
    let quads: BTreeMap<String, Quad> =
        quads.map_err(|error| error.to_string())?.into_iter().map(|quad| (quad.to_string(), quad)).collect();
    Ok(quads.into_values().collect())
}

/// The graph `trig` as a version.
pub(crate) fn version(trig: &str, seed: u64) -> std::result::Result<Version, String> {
    let mut random = Random(seed ^ 0x0DE1_7A00);
    let real = parse(trig)?;
    let noise: Vec<Quad> =
        parse(&graph(&mut random))?.into_iter().filter(|quad| !real.contains(quad)).collect();
    let in_store = [0, 30, 60, 100][random.below(4)];
    let mut deal =
        |of: &[Quad]| -> (Vec<Quad>, Vec<Quad>) { of.iter().cloned().partition(|_| random.chance(in_store)) };
    let ((stored, later), (stored_noise, later_noise)) = (deal(&real), deal(&noise));
    let built = build([stored, stored_noise].concat(), &mut random, later, (&noise, later_noise), &real);
    let version = built.map_err(|error| error.to_string())?;
    match version.statement_count() == real.len() as u64 {
        true => Ok(version),
        false => Err(format!("{} statements, not {}", version.statement_count(), real.len())),
    }
}

fn build(
    stored: Vec<Quad>,
    random: &mut Random,
    later: Vec<Quad>,
    (noise, later_noise): (&[Quad], Vec<Quad>),
    real: &[Quad],
) -> Result<Version> {
    let mut builder = DictionaryBuilder::new();
    for term in stored.iter().flat_map(terms_of) {
        builder.intern_term(term.as_ref())?;
    }
    let image = builder.finish()?;
    let dictionary = Dictionary::open(image.clone().into(), "dictionary")?;
    let terms = Arc::new(MutableDictionary::new(dictionary.vertex_count(), dictionary.literal_count()));
    let ids = Ids { dictionary, terms: Arc::clone(&terms) };
    let mut builder = StoreBuilder::new(BuildOptions {
        threads: 1,
        memory_bytes: 1 << 30,
        environment: Environment::simulated(1),
        temp_dir: None,
        log: None,
        orders: Vec::new(),
    });
    for quad in &stored {
        builder.add(&[ids.statement(quad)?])?;
    }
    let partitioning = crate::partitions::of_case(random.0);
    let base = vervet_partition::finish(builder, image, &Target::Memory, partitioning, None)?;
    let mut version = Version::new(base, terms);
    let (mut many, mut single): (Vec<_>, Vec<_>) = (Vec::new(), Vec::new());
    for quad in later.iter().chain(&later_noise) {
        (if random.chance(50) { &mut many } else { &mut single }).push(ids.statement(quad)?);
    }
    version.insert_all(&many)?;
    for statement in &single {
        version.insert(statement)?;
    }
    let mut back = Vec::new();
    for quad in real.iter().filter(|_| random.chance(20)) {
        let statement = ids.statement(quad)?;
        version.remove(&statement)?;
        back.push(statement);
    }
    for quad in noise {
        version.remove(&ids.statement(quad)?)?;
    }
    for statement in &back {
        version.insert(statement)?;
    }
    Ok(version)
}

/// The answer of a query on a version.
pub(crate) fn answer(version: &Version, text: &str, threads: usize, heavy_from: Duration) -> Outcome {
    let cut_policy = if heavy_from.is_zero() { CutPolicy::EAGER } else { CutPolicy::default() };
    let parallelism =
        Parallelism { threads: Some(threads), heavy_from, cut_policy, ..Parallelism::default() };
    let options = match heavy_from.is_zero() {
        true => PlanOptions::default().eager(threads > 2),
        false => PlanOptions::default(),
    };
    run(version, text, parallelism, &options).unwrap_or_else(Outcome::from)
}

fn run(
    version: &Version,
    text: &str,
    parallelism: Parallelism,
    plan_options: &PlanOptions,
) -> Result<Outcome> {
    let options =
        vervet_sparql::ParseOptions { base_iri: None, prefixes: &[], parameters: &[], dataset: None };
    let query = vervet_sparql::parse(text, &options)?;
    let plan = vervet_planner::plan(&query, version, plan_options, &Control::default())?;
    let computed = ComputedTerms::new();
    let evaluator = Evaluator::new(version, &computed, DateTime::MIN, 1)
        .with_solution(vervet_kernel::solution_column(&plan));
    for (index, term) in (0_u64..).zip(&plan.computed) {
        if evaluator.intern(term.as_ref())? != Id::new(Tag::Computed, index) {
            return Err(Error::internal(format!("the plan expects {term} to be new to the graph")));
        }
    }
    let control = Control::new(Limits::default());
    let mut input = Batch::unit(plan.variables.len());
    let (mut rows, mut count) = (Vec::new(), 0);
    let mut scratch = String::new();
    let driver = crate::device::driver_of_plans();
    driver.execute(&plan, version, &evaluator, &control, parallelism, &mut input, false, &mut |batch| {
        count += batch.rows;
        let Form::Select(columns) = &query.form else { return Ok(Flow::Done) };
        for at in 0..batch.rows {
            let mut cells = Vec::with_capacity(columns.len());
            for column in columns {
                let id = batch.columns[column.index()].get(at).copied().unwrap_or_default();
                let mut term = None;
                if id.is_bound() {
                    evaluator.read_term(id, &mut scratch, &mut |parts| term = Some(parts.to_term()))?;
                }
                cells.push((query.variables[column.index()].as_str(), term));
            }
            rows.push(row(cells.into_iter()));
        }
        Ok(Flow::More)
    })?;
    rows.sort();
    Ok(match query.form {
        Form::Select(_) => Outcome::Rows(rows),
        Form::Ask => Outcome::Boolean(count > 0),
        _ => Outcome::Refused("a graph".to_owned()),
    })
}

/// The plan of a query, for the report of a difference.
pub(crate) fn explain(version: &Version, text: &str) -> Result<String> {
    let options =
        vervet_sparql::ParseOptions { base_iri: None, prefixes: &[], parameters: &[], dataset: None };
    let query = vervet_sparql::parse(text, &options)?;
    let plan = vervet_planner::plan(&query, version, &PlanOptions::default(), &Control::default())?;
    Ok(vervet_planner::explain(&plan, version, &[]))
}
