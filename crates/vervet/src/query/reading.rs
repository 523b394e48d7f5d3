//! The graph version that a query reads, and the validity of cached plans.
//!
//! # Invariants
//! A plan is reused on another version of the graph only if all its assumptions hold there: the base is the
//! same, the same predicates have changes ([`Version::structure`]), and no term was unknown at planning time.
//! Proofs use only predicates without changes. A plan with an unknown term is valid for its version only.

use crate::QueryOptions;
use oxrdf::TermRef;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use vervet_delta::Version;
use vervet_kernel::Control;
use vervet_kernel::plan::Plan;
use vervet_model::{Direction, Id, LiteralKind, Meter, Result, TermParts, TextSearch};
use vervet_planner::PlanOptions;
use vervet_snapshot::{ClassId, KeyEntries, Segment, Snapshot};
use vervet_txn::{Published, Timestamp};

/// Shared ownership of an immutable version of the graph.
#[derive(Clone, Debug)]
pub(crate) enum PinnedVersion {
    /// A published version.
    Published(Arc<Published>),
    /// A version with the uncommitted changes of a transaction.
    Private(Arc<Version>),
}

impl PinnedVersion {
    pub(crate) fn version(&self) -> &Version {
        match self {
            Self::Published(published) => &published.version,
            Self::Private(version) => version,
        }
    }
}

/// A plan and its assumptions.
#[derive(Clone, Debug)]
pub(crate) struct CachedPlan {
    pub(crate) plan: Arc<Plan>,
    /// The number of the base in this process.
    base: u64,
    structure: u64,
    /// Valid for this version only, since a term was unknown.
    only: Option<Timestamp>,
}

impl CachedPlan {
    /// Plans for a published version.
    pub(crate) fn make(
        query: &vervet_algebra::Query,
        published: &Published,
        options: &PlanOptions,
        control: &Control<'_>,
    ) -> Result<Self> {
        let version = &published.version;
        let recorder = LookupRecorder { version, has_missing_term: AtomicBool::new(false) };
        let plan = Arc::new(vervet_planner::plan(query, &recorder, options, control)?);
        let only = recorder.has_missing_term.into_inner().then_some(published.timestamp);
        Ok(Self { plan, base: version.base().number(), structure: version.structure(), only })
    }

    /// Whether the plan is valid for this version too.
    pub(crate) fn is_valid_for(&self, published: &Published) -> bool {
        let version = &published.version;
        self.base == version.base().number()
            && self.only.is_none_or(|only| only == published.timestamp)
            && self.structure == version.structure()
    }
}

/// The planner options of a query.
pub(crate) fn plan_options(optimize: bool, known_counts: bool) -> PlanOptions {
    match optimize {
        true => PlanOptions { known_counts, ..PlanOptions::default() },
        false => PlanOptions::plain(),
    }
}

/// The same options for a run with these options: where every query is heavy, for tests, every step is
/// watched closely, and the planner is [eager](PlanOptions::eager); with more than two threads it evaluates
/// parts alone wherever it can.
pub(crate) fn watched(planning: PlanOptions, options: &QueryOptions) -> PlanOptions {
    match options.heavy_from.is_zero() && planning.reorder {
        true => {
            let alone = options.threads.is_some_and(|threads| threads > 2);
            PlanOptions { unexpected_rows: 0.0, ..planning.eager(alone) }
        }
        false => planning,
    }
}

/// A version that records whether a term lookup failed.
struct LookupRecorder<'a> {
    version: &'a Version,
    has_missing_term: AtomicBool,
}

impl Snapshot for LookupRecorder<'_> {
    fn lookup(&self, term: TermRef<'_>) -> Result<Option<Id>> {
        let id = self.version.lookup(term)?;
        // Relaxed: one thread plans.
        self.has_missing_term.fetch_or(id.is_none(), Ordering::Relaxed);
        Ok(id)
    }

    fn base_number(&self) -> Option<u64> {
        self.version.base_number()
    }

    fn read_term(&self, id: Id, scratch: &mut String, read: &mut dyn FnMut(TermParts<'_>)) -> Result<()> {
        self.version.read_term(id, scratch, read)
    }

    fn write_terms(&self, ids: &[Id], out: &mut Vec<u8>, ends: &mut Vec<usize>) -> Result<()> {
        self.version.write_terms(ids, out, ends)
    }

    fn is_plain_text(&self, id: Id) -> Result<bool> {
        self.version.is_plain_text(id)
    }

    fn read_literal_kind(&self, id: Id, read: &mut dyn FnMut(Option<LiteralKind<'_>>)) -> Result<()> {
        self.version.read_literal_kind(id, read)
    }

    fn text_rank(&self, literal: Id) -> Result<Option<u64>> {
        self.version.text_rank(literal)
    }

    fn may_have_triple_terms(&self) -> bool {
        self.version.may_have_triple_terms()
    }

    fn may_have_blanks(&self) -> bool {
        self.version.may_have_blanks()
    }

    fn is_blank(&self, id: Id) -> Result<bool> {
        self.version.is_blank(id)
    }

    fn segment(&self, predicate: Id, direction: Direction) -> Result<Option<&dyn Segment>> {
        self.version.segment(predicate, direction)
    }

    fn entries_together(
        &self,
        segments: &[(Id, Direction)],
        keys: &[Id],
        limit: usize,
    ) -> Result<Option<Vec<KeyEntries>>> {
        self.version.entries_together(segments, keys, limit)
    }

    fn predicates(&self) -> &[(Id, u64)] {
        self.version.predicates()
    }

    fn graphs(&self) -> &[(Id, u64)] {
        self.version.graphs()
    }

    fn type_predicate(&self) -> Option<Id> {
        self.version.type_predicate()
    }

    fn vertex_count(&self) -> u64 {
        self.version.vertex_count()
    }

    fn edge_count(&self) -> u64 {
        self.version.edge_count()
    }

    fn literal_count(&self) -> u64 {
        self.version.literal_count()
    }

    fn statement_count(&self) -> u64 {
        self.version.statement_count()
    }

    fn edge(&self, edge: Id) -> Result<[Id; 4]> {
        self.version.edge(edge)
    }

    fn classes_of_type(&self, type_id: Id) -> &[ClassId] {
        self.version.classes_of_type(type_id)
    }

    fn class_size(&self, class: ClassId) -> u64 {
        self.version.class_size(class)
    }

    fn classes_are_exact(&self) -> bool {
        self.version.classes_are_exact()
    }

    fn literal_range(&self, from: &[u8], to: Option<&[u8]>) -> Result<Option<Range<u64>>> {
        self.version.literal_range(from, to)
    }

    fn unordered_literals(
        &self,
        from: &[u8],
        to: Option<&[u8]>,
        out: &mut Vec<Id>,
        meter: &mut Meter<'_>,
    ) -> Result<()> {
        self.version.unordered_literals(from, to, out, meter)
    }

    fn unordered_literal_count(&self, from: &[u8], to: Option<&[u8]>) -> Result<u64> {
        self.version.unordered_literal_count(from, to)
    }

    fn search_count(&self, search: &TextSearch, meter: &mut Meter<'_>) -> Result<Option<u64>> {
        self.version.search_count(search, meter)
    }

    fn search(&self, search: &TextSearch, out: &mut Vec<Id>, meter: &mut Meter<'_>) -> Result<()> {
        self.version.search(search, out, meter)
    }

    fn literals_in_order(&self, positions: Range<u64>, out: &mut Vec<Id>) -> Result<()> {
        self.version.literals_in_order(positions, out)
    }
}

#[cfg(test)]
mod tests {
    /// Every method of `Snapshot` is forwarded to the version. A method that is left to its default body
    /// would read the graph through other methods, more slowly and with different results. Compares the
    /// source of the trait with that of the implementation.
    #[test]
    fn lookup_recorder_forwards_every_method() {
        let methods = |source: &str, header: &str| -> Vec<String> {
            let body = source.split_once(header).expect("the header is in the source").1;
            let body = body.split_once("\n}\n").expect("a closing brace").0;
            let names = body.lines().filter_map(|line| line.strip_prefix("    fn "));
            names.map(|rest| rest.split(['(', '<']).next().unwrap_or_default().to_owned()).collect()
        };
        let required =
            methods(include_str!("../../../snapshot/src/lib.rs"), "pub trait Snapshot: Send + Sync {");
        let forwarded = methods(include_str!("reading.rs"), "impl Snapshot for LookupRecorder<'_> {");
        assert!(required.len() > 20, "the trait was found: {required:?}");
        for method in required {
            assert!(forwarded.contains(&method), "{method} is not forwarded");
        }
    }
}
