//! Options of the planner.

use crate::corrections::Corrections;

/// Optimizations of the planner. All are on by default; tests switch some off and expect equal answers.
#[derive(Clone, Debug)]
pub struct PlanOptions {
    /// Search the join order; otherwise joins follow the order of the text.
    pub reorder: bool,
    /// Use intersections.
    pub intersect: bool,
    /// Drop type patterns that other patterns imply, and detect joins that classes prove empty.
    pub inference: bool,
    /// Start from the values within the prefix or range of a sargable condition.
    pub seek: bool,
    /// Answer counts of single patterns from statistics.
    pub known_counts: bool,
    /// Deduplicate rows before expansion where set semantics hold.
    pub frontiers: bool,
    /// Join parts on the equalities between them.
    pub equalities: bool,
    /// Join parts on comparisons between them by ranges of sorted values.
    pub ranges: bool,
    /// Beam width: states kept for each number of joined patterns; `None`: chosen by the number of patterns.
    pub beam: Option<usize>,
    /// Minimum rows for comparing exploration with separate evaluation and a hash join. Below it, the
    /// comparison takes longer than either.
    pub compare_from_rows: f64,
    /// Minimum cost of a part in the first way considered for planning it in other ways, in ns. Below it,
    /// another planning takes longer than it can save.
    pub compare_from_cost: f64,
    /// Maximum cost of a part that is evaluated alone and joined by hash, as a multiple of exploring it from
    /// each row; infinity: alone, wherever it is equivalent.
    pub alone: f64,
    /// Maximum cost of evaluating an optional part from the distinct values of one variable, as a multiple of
    /// exploring it from each row; infinity: always, wherever it is equivalent.
    pub seeded: f64,
    /// Maximum cost of connected patterns cut in two between the sides of a comparison, as a multiple of
    /// their cost in one search; infinity: a cut, wherever there is one.
    pub cut: f64,
    /// Over servers, maximum cost of joins under set semantics, as a multiple of that of a search along the
    /// path that they are; infinity: always joins.
    pub joined: f64,
    /// What earlier runs of the query have taught.
    pub corrections: Corrections,
    /// Minimum rows of a step at which its run is looked at; 0: as soon as there are more than estimated, for
    /// tests.
    pub unexpected_rows: f64,
}

impl Default for PlanOptions {
    fn default() -> Self {
        Self {
            reorder: true,
            intersect: true,
            inference: true,
            seek: true,
            known_counts: true,
            frontiers: true,
            equalities: true,
            ranges: true,
            beam: None,
            compare_from_rows: 64.0,
            compare_from_cost: 5_000.0,
            alone: 1.0,
            seeded: 1.0,
            cut: 1.0,
            // One server searches, and asks the others for each level; joins run at all of them.
            joined: 8.0,
            corrections: Corrections::default(),
            unexpected_rows: 20_000.0,
        }
    }
}

impl PlanOptions {
    /// These options for tests on small graphs: alternatives of parts are compared that are cheap, and
    /// connected patterns are cut wherever possible; with `alone`, parts are evaluated alone and joined by
    /// hash wherever that is equivalent; without, joins under set semantics are paths over servers too.
    #[must_use]
    pub fn eager(self, alone: bool) -> Self {
        let eager = Self { compare_from_cost: 0.0, cut: f64::INFINITY, ..self };
        match alone {
            true => Self { compare_from_rows: 0.0, alone: f64::INFINITY, ..eager },
            false => Self { joined: 0.0, ..eager },
        }
    }

    /// Whether a part of cost `alone`, evaluated alone, replaces exploring it from each row at cost
    /// `explored`.
    pub(crate) fn prefers_alone(&self, alone: f64, explored: f64) -> bool {
        self.alone == f64::INFINITY || alone < explored * self.alone
    }

    /// All optimizations off: patterns in the order of the text, with the simplest steps.
    #[must_use]
    pub fn plain() -> Self {
        Self {
            reorder: false,
            intersect: false,
            inference: false,
            seek: false,
            known_counts: false,
            frontiers: false,
            equalities: false,
            ranges: false,
            beam: Some(1),
            compare_from_rows: f64::INFINITY,
            compare_from_cost: f64::INFINITY,
            alone: 0.0,
            seeded: 0.0,
            cut: 0.0,
            joined: f64::INFINITY,
            corrections: Corrections::default(),
            unexpected_rows: f64::INFINITY,
        }
    }
}
