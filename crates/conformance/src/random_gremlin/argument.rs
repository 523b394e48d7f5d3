//! Arguments of random steps: values, predicates, and arguments of `by`.

use super::graph::{BOOLEANS, DOUBLES, INTS, LONGS, MIXED, TEXTS};
use super::traversal::{Kind, Unit, Writer};

/// Keys of vertices with at most one value, and its kind.
pub(super) const VERTEX_KEYS: [(&str, Kind); 7] = [
    ("name", Kind::Text),
    ("age", Kind::Int),
    ("big", Kind::Long),
    ("score", Kind::Double),
    ("flag", Kind::Boolean),
    ("near", Kind::Int),
    ("mixed", Kind::Mixed),
];
/// Likewise for edges.
pub(super) const EDGE_KEYS: [(&str, Kind); 3] =
    [("weight", Kind::Double), ("since", Kind::Int), ("mixed", Kind::Mixed)];
/// Likewise for properties of vertices.
pub(super) const META_KEYS: [(&str, Kind); 2] = [("since", Kind::Int), ("note", Kind::Text)];

impl Writer<'_> {
    /// A key of an element with at most one value.
    pub(super) fn key(&mut self, kind: &Kind) -> Option<(&'static str, Kind)> {
        let keys: &[(&str, Kind)] = match kind {
            Kind::Vertex => &VERTEX_KEYS,
            Kind::Edge => &EDGE_KEYS,
            Kind::VertexProperty => &META_KEYS,
            _ => return None,
        };
        Some(keys[self.random.below(keys.len())].clone())
    }

    /// A literal, usually of a given kind.
    pub(super) fn value(&mut self, kind: &Kind) -> String {
        let any = self.random.chance(8);
        let values: &[&'static str] = match kind {
            _ if any => &MIXED,
            Kind::Int if self.random.chance(80) => &INTS,
            Kind::Long if self.random.chance(80) => &LONGS,
            Kind::Double if self.random.chance(80) => &DOUBLES,
            Kind::Text => &TEXTS,
            Kind::Boolean => &BOOLEANS,
            _ => &MIXED,
        };
        self.random.pick(values).to_owned()
    }

    /// A predicate for values of a kind.
    pub(super) fn predicate(&mut self, kind: &Kind, depth: usize) -> String {
        let (a, b, c) = (self.value(kind), self.value(kind), self.value(kind));
        let simple = match self.random.below(if *kind == Kind::Text { 16 } else { 11 }) {
            0 | 1 => format!("P.eq({a})"),
            2 => format!("P.neq({a})"),
            3 => format!("P.lt({a})"),
            4 => format!("P.lte({a})"),
            5 => format!("P.gt({a})"),
            6 => format!("P.gte({a})"),
            7 => format!("P.within({a},{b},{c})"),
            8 => format!("P.without({a},{b})"),
            9 => format!("P.between({a},{b})"),
            10 => match self.random.chance(50) {
                true => format!("P.inside({a},{b})"),
                false => format!("P.outside({a},{b})"),
            },
            _ => {
                let test = self.random.pick(&[
                    "startingWith",
                    "endingWith",
                    "containing",
                    "notStartingWith",
                    "notEndingWith",
                    "notContaining",
                ]);
                format!("TextP.{test}({})", self.random.pick(&["'a'", "'b'", "'bob'", "'y'", "'n'", "''"]))
            }
        };
        if depth == 0 {
            return simple;
        }
        match self.random.below(12) {
            0 => format!("{simple}.and({})", self.predicate(kind, depth - 1)),
            1 => format!("{simple}.or({})", self.predicate(kind, depth - 1)),
            2 => format!("{simple}.negate()"),
            3 => format!("P.not({simple})"),
            _ => simple,
        }
    }

    /// A predicate that a single value passes or fails as a whole. (In `has`, TinkerPop splits `inside` into
    /// two tests, which different values of a key may pass.)
    pub(super) fn whole_predicate(&mut self, kind: &Kind) -> String {
        loop {
            let predicate = self.predicate(kind, 0);
            if !predicate.starts_with("P.between") && !predicate.starts_with("P.inside") {
                return predicate;
            }
        }
    }

    /// An argument of `by` that maps a value of a kind to one value: its text with `#` for nested traversals,
    /// those traversals, and the kind of the result.
    pub(super) fn by(&mut self, kind: &Kind, depth: usize) -> (String, Vec<Vec<Unit>>, Kind) {
        let id = if self.graph.numbered { Kind::Long } else { Kind::Text };
        let plain = |text: &str, kind: Kind| (text.to_owned(), Vec::new(), kind);
        match (kind, self.random.below(10)) {
            (_, 0 | 1) if depth > 0 => {
                let (units, kind) = self.single(kind, depth - 1);
                (".by(#)".to_owned(), vec![units], kind)
            }
            (Kind::Vertex | Kind::Edge, 2..=6) => {
                let (key, of) = self.key(kind).unwrap_or(("name", Kind::Text));
                plain(&format!(".by('{key}')"), of)
            }
            (Kind::Vertex | Kind::Edge, 7) => plain(".by(T.id)", id),
            (Kind::Vertex | Kind::Edge, 8) => plain(".by(T.label)", Kind::Text),
            (Kind::Entry(key, _), 2..=5) => plain(".by(keys)", (**key).clone()),
            (Kind::Entry(_, value), 6..=8) => plain(".by(values)", (**value).clone()),
            (Kind::Project(keys), 2..=8) if !keys.is_empty() => {
                let (key, kind) = keys[self.random.below(keys.len())].clone();
                plain(&format!(".by('{key}')"), kind)
            }
            (Kind::VertexProperty, 2..=8) => plain(".by(__.value())", Kind::Mixed),
            (_, 9) => plain("", kind.clone()),
            _ => plain(".by()", kind.clone()),
        }
    }

    /// A traversal with at most one result.
    pub(super) fn single(&mut self, kind: &Kind, depth: usize) -> (Vec<Unit>, Kind) {
        let labels = self.labels.clone();
        let history = self.has_history;
        let (mut units, mut inner) = (Vec::new(), kind.clone());
        if self.random.chance(70) {
            (units, inner) = self.nested(kind, depth);
        }
        let (unit, inner) = self.reduced(&inner);
        units.push(unit);
        self.labels = labels;
        self.has_history = history;
        (units, inner)
    }

    /// A reducing unit.
    pub(super) fn reduced(&mut self, kind: &Kind) -> (Unit, Kind) {
        match self.random.below(7) {
            0 | 1 => (Unit::new("count()"), Kind::Long),
            2 if kind.is_number() => (Unit::new("sum()"), kind.clone()),
            3 if kind.is_number() => (Unit::new("mean()"), Kind::Double),
            4 if kind.is_ordered() => (Unit::new("max()"), kind.clone()),
            5 if kind.is_ordered() => (Unit::new("min()"), kind.clone()),
            2 if kind.is_plain() => (Unit::new("dedup().count()"), Kind::Long),
            3 if kind.is_plain() => {
                let table = Kind::Table(Box::new(kind.clone()), Box::new(Kind::Long));
                (Unit::new("groupCount()"), table)
            }
            4 | 5 if matches!(kind, Kind::Vertex) => {
                self.bags = true;
                (Unit::new("values('name').fold()"), Kind::Bag(Box::new(Kind::Text)))
            }
            _ => {
                self.bags = true;
                (Unit::new("fold()"), Kind::Bag(Box::new(kind.clone())))
            }
        }
    }
}
