//! Traversals as trees of texts, and the random writer of them.
//!
//! # Shape
//! A [`Unit`] is a few steps that make sense only together, with the traversals inside of them; a traversal
//! is a list of units, and any unit may be left out to make it shorter. The writer knows the [`Kind`] of what
//! a traverser is at, and writes what goes on from there: `steps` has the units, `argument` predicates and
//! modulators.
//! # Invariants
//! What is written has one answer. Where Gremlin leaves a choice open, it is not written: `limit` stands
//! behind an order that is total; what chooses one of equal ones (`dedup`) forgets how it came there, and so
//! do labels and paths; a list that nobody has put into an order ([`Kind::Bag`]) is not asked for its order,
//! nor compared by it; a modulator gives one value.

//! # Not written, because of TinkerGraph 3.8.1
//! Each was found by this suite; Vervet does what the steps are documented to do, or nothing is said:
//! * `identity().identity()` as a whole traversal: both are removed, and one without steps gives nothing.
//! * `count().is(…)`: it counts no further than the test needs and gives that as the result; bounds of other
//!   types are cast.
//! * What gathers (`count`, `fold`, `group`, `dedup`) in `optional` and `local`: where nothing comes in they
//!   give the count of that, and one of several equal traversers stands for all.
//! * What gathers, and gives nothing, in the second `by` of `group`: the map shows what was gathered.
//! * `by(values("k").fold())` of a key with several values: it becomes `by("k")`, which refuses them.
//! * One label or id twice (`out("a", "a")`, `hasId(1, 1)`): it finds such elements twice.
//! * `has(k, inside(a, b))` where `k` has several values: it becomes two tests, which different values may
//!   pass.
//! * `dedup("a", "b")` of labels that `match` gives: equal pairs come more than once.
//! * `substring` with negative places on an empty text: an error of arithmetic.
//! * An order of results behind walks and `values`: equal traversers may come together.

use super::graph::Graph;
use crate::random::Random;

/// Steps, with `#` for each traversal inside of them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Unit {
    pub(super) template: String,
    pub(super) nested: Vec<Vec<Unit>>,
    /// Whether the order of results is the one that it makes.
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

/// What a traverser is at.
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
    /// A list, bag or set whose order nobody knows.
    Bag(Box<Kind>),
    /// A list with an order.
    List(Box<Kind>),
    /// A map with these keys, or some of them.
    Project(Vec<(String, Kind)>),
    /// A map of any keys.
    Table(Box<Kind>, Box<Kind>),
    Entry(Box<Kind>, Box<Kind>),
    Path,
    /// Anything else.
    Any,
}

impl Kind {
    /// Values of one type, which have an order that is total.
    pub(super) fn is_ordered(&self) -> bool {
        matches!(self, Self::Int | Self::Long | Self::Double | Self::Text | Self::Boolean)
    }

    pub(super) fn is_number(&self) -> bool {
        matches!(self, Self::Int | Self::Long | Self::Double)
    }

    pub(super) fn is_scalar(&self) -> bool {
        self.is_ordered() || *self == Self::Mixed
    }

    /// Whether equal ones are the same in every answer.
    pub(super) fn is_plain(&self) -> bool {
        self.is_scalar() || matches!(self, Self::Vertex | Self::Edge)
    }
}

/// A traversal of a source.
#[derive(Clone, Debug)]
pub(super) struct Traversal {
    pub(super) units: Vec<Unit>,
    /// Whether results come in an order that the traversal says.
    pub(super) ordered: bool,
    /// Whether there are lists whose order it does not say.
    pub(super) bags: bool,
}

impl Traversal {
    /// Writes one for a graph.
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
            unit.makes_order = keeps == Keeps::Makes;
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

    /// Whether each name that [`Writer::name`] gave is still given by a step.
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

/// Whether a unit may stand behind others: see *Not written* in the header.
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

/// What a step does to an order of results.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Keeps {
    /// It may lose it.
    Nothing,
    /// What comes first goes first. (Not behind walks and `values`: TinkerGraph may put equal ones together.)
    Order,
    /// It makes one.
    Makes,
}

impl Keeps {
    fn order(self, ordered: bool) -> bool {
        match self {
            Self::Nothing => false,
            Self::Order => ordered,
            Self::Makes => true,
        }
    }
}

/// Writes units.
pub(super) struct Writer<'r> {
    pub(super) random: &'r mut Random,
    pub(super) graph: &'r Graph,
    /// Labels that traversers have, and of what.
    pub(super) labels: Vec<(String, Kind)>,
    /// Whether all that is equal has come the same way.
    pub(super) has_history: bool,
    /// See [`Traversal`].
    pub(super) bags: bool,
    /// Numbers of names that have been given.
    pub(super) fresh: usize,
    /// Units that may still be written.
    pub(super) budget: usize,
    /// Inside of `repeat`.
    pub(super) is_repeated: bool,
    /// Whether what gathers traversers may stand here.
    pub(super) gathers: bool,
    /// What a side effect holds.
    pub(super) stored: Option<Kind>,
}

impl Writer<'_> {
    pub(super) fn name(&mut self, prefix: &str) -> String {
        self.fresh += 1;
        format!("{prefix}{}", self.fresh)
    }

    /// A traversal inside of another, for what is of a kind; and what it leads to. Labels that it gives are
    /// its own.
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

    /// As [`Self::nested`], but it only asks: what it does to histories is forgotten.
    pub(super) fn question(&mut self, kind: &Kind, depth: usize) -> Vec<Unit> {
        let (labels, has_history) = (self.labels.clone(), self.has_history);
        // At an end of what `where` asks, a label is not given but asked for, and filters may change their
        // places.
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

    /// Equal ones become one, or a number of them.
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
