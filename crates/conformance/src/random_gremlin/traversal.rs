//! Traversals as trees of texts, and their random generator.
//!
//! # Shape
//! A [`Unit`] is a few steps that only make sense together, with their nested traversals; a traversal is a
//! list of units, and any unit may be removed to minimize it. The generator tracks the [`Kind`] of the
//! traverser's value and picks a unit that accepts it: `steps` has the units, `argument` predicates and
//! modulators.
//! # Invariants
//! A generated traversal has exactly one answer. Choices that Gremlin leaves open are not generated: `limit`
//! follows a total order; a step that picks one of several equal values (`dedup`) discards their history, and
//! so their labels and paths; a list of undefined order ([`Kind::Bag`]) is compared without its order; a
//! modulator gives one value.

//! # Not generated, because of TinkerGraph 3.8.1
//! This suite found each of these; Vervet follows the documentation, or the behaviour is undocumented:
//! * `identity().identity()` as a whole traversal: both are removed, and a traversal without steps gives
//!   nothing.
//! * `count().is(…)`: it counts no further than the test needs and returns that as the result; bounds of
//!   other types are cast.
//! * Reducing barriers (`count`, `fold`, `group`, `dedup`) in `optional` and `local`: for empty input they
//!   return the count of that, and one of several equal traversers represents all.
//! * A reducing barrier without a result in the second `by` of `group`: the map shows the barrier's state.
//! * `by(values("k").fold())` of a key with several values: it becomes `by("k")`, which rejects them.
//! * A duplicate label or id (`out("a", "a")`, `hasId(1, 1)`): it finds such elements twice.
//! * `has(k, inside(a, b))` where `k` has several values: it becomes two tests, which different values may
//!   pass.
//! * `dedup("a", "b")` of labels from `match`: equal pairs occur more than once.
//! * `substring` with negative positions on an empty string: an arithmetic error.
//! * The order of results behind walks and `values`: equal traversers may be merged.

use super::graph::Graph;
use crate::random_terms::Random;

/// Steps, with `#` for each nested traversal.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Unit {
    pub(super) template: String,
    pub(super) nested: Vec<Vec<Unit>>,
    /// Whether it defines the order of the results.
    pub(super) makes_order: bool,
}

impl Unit {
    pub(super) fn new(template: impl Into<String>) -> Self {
        Self::with(template, Vec::new())
    }

    pub(super) fn with(template: impl Into<String>, nested: Vec<Vec<Unit>>) -> Self {
        Self { template: template.into(), nested, makes_order: false }
    }
}

/// The kind of a traverser's value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    Vertex,
    Edge,
    VertexProperty,
    Property,
    Int,
    Long,
    Double,
    Text,
    Boolean,
    /// A value of any of these types.
    Mixed,
    /// A list, bag or set of undefined order.
    Bag(Box<Kind>),
    /// A list with an order.
    List(Box<Kind>),
    /// A map with these keys, or some of them.
    Project(Vec<(String, Kind)>),
    /// A map with arbitrary keys.
    Table(Box<Kind>, Box<Kind>),
    Entry(Box<Kind>, Box<Kind>),
    Path,
    /// Anything else.
    Any,
}

impl Kind {
    /// Whether values have one type with a total order.
    pub(super) fn is_ordered(&self) -> bool {
        matches!(self, Self::Int | Self::Long | Self::Double | Self::Text | Self::Boolean)
    }

    pub(super) fn is_number(&self) -> bool {
        matches!(self, Self::Int | Self::Long | Self::Double)
    }

    pub(super) fn is_scalar(&self) -> bool {
        self.is_ordered() || *self == Self::Mixed
    }

    /// Whether equal values are indistinguishable in every answer.
    pub(super) fn is_plain(&self) -> bool {
        self.is_scalar() || matches!(self, Self::Vertex | Self::Edge)
    }
}

/// A traversal of a source.
#[derive(Clone, Debug)]
pub(super) struct Traversal {
    pub(super) units: Vec<Unit>,
    /// Whether the traversal defines the order of the results.
    pub(super) ordered: bool,
    /// Whether there are lists of undefined order.
    pub(super) bags: bool,
}

impl Traversal {
    /// Generates a traversal for a graph.
    pub(super) fn new(random: &mut Random, graph: &Graph) -> Self {
        let mut writer = Writer {
            random,
            graph,
            labels: Vec::new(),
            has_history: true,
            bags: false,
            fresh: 0,
            budget: 22,
            is_repeated: false,
            gathers: true,
            stored: None,
        };
        let (start, mut kind) = writer.start();
        let mut units = vec![start];
        let mut ordered = false;
        for _ in 0..1 + writer.random.below(7) {
            let (mut unit, next, keeps) = writer.step(&kind, 2, true);
            unit.makes_order = keeps == OrderEffect::Makes;
            if goes_on(&units, &unit) {
                ordered = keeps.order(ordered);
                units.push(unit);
                kind = next;
            }
        }
        let bags = writer.bags;
        Self { units, ordered, bags }
    }

    pub(super) fn text(&self) -> String {
        format!("g.{}", text(&self.units))
    }

    /// Whether each name from [`Writer::name`] is still defined by a step.
    pub(super) fn has_its_names(&self) -> bool {
        let text = self.text();
        let quoted: Vec<&str> = text.split('\'').skip(1).step_by(2).collect();
        let is_name = |name: &&&str| {
            name.starts_with(['l', 'm'])
                && name.len() > 1
                && name[1..].bytes().all(|byte| byte.is_ascii_digit())
        };
        quoted.iter().filter(is_name).all(|name| text.contains(&format!("as('{name}')")))
    }
}

/// Whether a unit may follow others: see *Not generated* in the header.
fn goes_on(units: &[Unit], unit: &Unit) -> bool {
    let name = |unit: &Unit| unit.template.split('(').next().unwrap_or_default().to_owned();
    let filters =
        ["is", "and", "or", "not", "where", "filter", "as", "identity", "barrier", "sideEffect", "aggregate"];
    match name(unit).as_str() {
        "identity" => units.is_empty(),
        test if filters[..6].contains(&test) => {
            let last = units.iter().rev().find(|last| !filters.contains(&name(last).as_str()));
            last.is_none_or(|last| !last.template.ends_with("count()"))
        }
        _ => true,
    }
}

/// The text of steps.
pub(super) fn text(units: &[Unit]) -> String {
    let units: Vec<String> = units
        .iter()
        .map(|unit| {
            let mut parts = unit.template.split('#');
            let mut text = parts.next().unwrap_or_default().to_owned();
            for (part, nested) in parts.zip(&unit.nested) {
                text += "__.";
                text += &self::text(nested);
                text += part;
            }
            text
        })
        .collect();
    units.join(".")
}

/// The effect of a step on the order of results.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum OrderEffect {
    /// It may lose the order.
    Nothing,
    /// It preserves the order. (Not walks and `values`: TinkerGraph may merge equal traversers.)
    Order,
    /// It defines an order.
    Makes,
}

impl OrderEffect {
    fn order(self, ordered: bool) -> bool {
        match self {
            Self::Nothing => false,
            Self::Order => ordered,
            Self::Makes => true,
        }
    }
}

/// Generates units.
pub(super) struct Writer<'r> {
    pub(super) random: &'r mut Random,
    pub(super) graph: &'r Graph,
    /// Labels of traversers, and the kinds of their values.
    pub(super) labels: Vec<(String, Kind)>,
    /// Whether equal traversers have equal histories.
    pub(super) has_history: bool,
    /// See [`Traversal`].
    pub(super) bags: bool,
    /// The number of names generated so far.
    pub(super) fresh: usize,
    /// The number of units that may still be generated.
    pub(super) budget: usize,
    /// Whether this is inside `repeat`.
    pub(super) is_repeated: bool,
    /// Whether reducing barriers are allowed here.
    pub(super) gathers: bool,
    /// The contents of the side effect.
    pub(super) stored: Option<Kind>,
}

impl Writer<'_> {
    pub(super) fn name(&mut self, prefix: &str) -> String {
        self.fresh += 1;
        format!("{prefix}{}", self.fresh)
    }

    /// A nested traversal for values of a kind, and the kind of its results. Its labels are local.
    pub(super) fn nested(&mut self, kind: &Kind, depth: usize) -> (Vec<Unit>, Kind) {
        let length = 1 + usize::from(self.random.chance(40)) + usize::from(self.random.chance(15));
        let labels = self.labels.len();
        let (mut units, mut kind) = (Vec::new(), kind.clone());
        for _ in 0..length {
            let (unit, next, _) = self.step(&kind, depth.saturating_sub(1), false);
            if goes_on(&units, &unit) {
                units.push(unit);
                kind = next;
            }
        }
        self.labels.truncate(labels);
        (units, kind)
    }

    /// Like [`Self::nested`], for a filter: its effect on histories is discarded.
    pub(super) fn question(&mut self, kind: &Kind, depth: usize) -> Vec<Unit> {
        let (labels, has_history) = (self.labels.clone(), self.has_history);
        // At an end of a `where` traversal, `as` tests a label instead of defining it, and filters may be
        // reordered.
        let has_labels = |units: &[Unit]| units.iter().any(|unit| unit.template.starts_with("as("));
        loop {
            let (units, _) = self.nested(kind, depth);
            self.labels.clone_from(&labels);
            self.has_history = has_history;
            if !has_labels(&units) {
                return units;
            }
        }
    }

    /// Equal traversers are merged into one, or into a number of them.
    pub(super) fn forget(&mut self) {
        self.labels.clear();
        self.has_history = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_become_text() {
        let inner = vec![Unit::new("out()"), Unit::with("where(#)", vec![vec![Unit::new("in()")]])];
        let units = [Unit::new("V()"), Unit::with("union(#,#)", vec![inner, vec![Unit::new("id()")]])];
        assert_eq!(text(&units), "V().union(__.out().where(__.in()),__.id())");
    }

    #[test]
    fn traversals_can_be_read_and_differ() {
        let mut texts = std::collections::BTreeSet::new();
        for seed in 0..500 {
            let mut random = Random::new(seed);
            let graph = Graph::new(&mut random);
            let text = Traversal::new(&mut random, &graph).text();
            let options = vervet::gremlin::text::ParseOptions::default();
            let read = vervet::gremlin::text::parse(&text, &options);
            assert!(read.is_ok(), "seed {seed}: {text}: {read:?}");
            texts.insert(text);
        }
        assert!(texts.len() > 480, "{}", texts.len());
    }
}
