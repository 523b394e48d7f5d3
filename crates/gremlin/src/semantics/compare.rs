//! Equality, comparability and orderability.
//!
//! # Shape
//! * [`equal`]: `P.eq`. Numbers by value in their common class, elements by identity, collections item by
//!   item.
//! * [`compare`]: `P.lt`. The same; `None` for incomparable values: different types, null with non-null,
//!   `NaN`.
//! * [`order`], [`order_with`]: `order()`. Total; types in the order of [`Kind`], null first, `NaN` the last
//!   number.
//! # Invariants
//! `compare(a, b) == Some(Equal)` if and only if `equal(a, b)`. [`order`] is a total preorder: reflexive,
//! transitive, and `order(a, b) == order(b, a).reverse()`.
//! # Elements
//! Two elements with store keys are equal if the keys are. Their order is that of `T.id`: [`order_with`]
//! looks it up in [`Details`] at each comparison (a caller that sorts many elements looks the ids up once, in
//! advance); [`order`] falls back on keys. Elements with an unknown id precede others of their kind.
//! # Cost
//! Linear in the size of the operands; sets and maps are sorted first.
//! # Source
//! TinkerPop 3.8, "Comparability, Equality, Orderability, and Equivalence". Different: `order` compares
//! numbers without rounding, because comparison in a common class is not transitive; `-0.0` equals `0.0` (as
//! in the specification); strings compare by code points, not by UTF-16 units; a bag is a set with
//! repetitions.

use super::{Details, NoDetails, details, number};
use crate::{Extended, Tree, Value};
use std::cmp::Ordering;
use time::OffsetDateTime;
use vervet_model::days_from_civil;

/// `P.eq`.
#[must_use]
pub fn equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::String(a), Value::String(b)) => a == b,
        (Value::Int(a), Value::Int(b)) => a == b,
        (Value::Long(a), Value::Long(b)) => a == b,
        (Value::List(a), Value::List(b)) => {
            a.len() == b.len() && a.iter().zip(b.iter()).all(|(a, b)| equal(a, b))
        }
        (Value::Path(a), Value::Path(b)) => {
            a.objects.len() == b.objects.len() && a.objects.iter().zip(&b.objects).all(|(a, b)| equal(a, b))
        }
        (Value::Set(x), Value::Set(y)) if x.len() != y.len() => false,
        (Value::Map(x), Value::Map(y)) if x.len() != y.len() => false,
        _ => compare(a, b) == Some(Ordering::Equal),
    }
}

/// `P.lt`, `P.lte`, `P.gt`, `P.gte`; `None`: incomparable, so none of them holds.
#[must_use]
pub fn compare(a: &Value, b: &Value) -> Option<Ordering> {
    let kind = Kind::of(a);
    if kind != Kind::of(b) {
        return None;
    }
    match kind {
        Kind::Number => number::compare_promoted(a, b),
        Kind::Unknown => {
            if a == b {
                return Some(Ordering::Equal);
            }
            if a.type_name() == b.type_name() { natural(a, b) } else { None }
        }
        _ => same_kind(kind, a, b, &Comparability),
    }
}

/// `order()`; elements without details are ordered by their keys.
#[must_use]
pub fn order(a: &Value, b: &Value) -> Ordering {
    order_with(a, b, &NoDetails)
}

/// `order()`; `details` resolves elements without details.
#[must_use]
pub fn order_with(a: &Value, b: &Value, details: &dyn Details) -> Ordering {
    Orderability(details).compare(a, b).unwrap_or(Ordering::Equal)
}

/// Families of mutually comparable types, in the order of [`order`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Kind {
    /// No value.
    Null,
    /// False before true.
    Boolean,
    /// The eight numeric types.
    Number,
    /// By instant.
    Date,
    /// By code points.
    Text,
    /// By bytes.
    Uuid,
    /// By id.
    Vertex,
    /// By id.
    Edge,
    /// By id.
    VertexProperty,
    /// By key, then by value.
    Property,
    /// Object by object.
    Path,
    /// Item by item, both sorted; includes bags.
    Set,
    /// Item by item.
    List,
    /// Entry by entry, both sorted; includes trees.
    Map,
    /// One entry of a map: by key, then by value.
    Entry,
    /// By the name of the type, then by value or text.
    Unknown,
}

impl Kind {
    /// The family of a value.
    #[must_use]
    pub fn of(value: &Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Boolean(_) => Self::Boolean,
            Value::Byte(_)
            | Value::Short(_)
            | Value::Int(_)
            | Value::Long(_)
            | Value::Float(_)
            | Value::Double(_)
            | Value::BigInteger(_)
            | Value::BigDecimal(_) => Self::Number,
            Value::DateTime(_) => Self::Date,
            Value::Extended(extended) => match **extended {
                Extended::OffsetDateTime(..) => Self::Date,
                _ => Self::Unknown,
            },
            Value::String(_) => Self::Text,
            Value::Uuid(_) => Self::Uuid,
            Value::Vertex(_) => Self::Vertex,
            Value::Edge(_) => Self::Edge,
            Value::VertexProperty(_) => Self::VertexProperty,
            Value::Property(_) => Self::Property,
            Value::Path(_) => Self::Path,
            Value::Set(_) | Value::Bulk(_) => Self::Set,
            Value::List(_) => Self::List,
            Value::Map(_) | Value::Tree(_) => Self::Map,
            Value::Entry(_) => Self::Entry,
            _ => Self::Unknown,
        }
    }
}

/// Strategy of comparison: comparability or orderability. [`same_kind`] is their common part.
trait Comparison {
    /// `None` if incomparable.
    fn compare(&self, a: &Value, b: &Value) -> Option<Ordering>;
    /// Compares two elements of one kind.
    fn elements(&self, a: &Value, b: &Value) -> Option<Ordering>;
    /// Compares two unequal values whose kinds have this order.
    fn kinds(&self, kinds: Ordering) -> Option<Ordering>;
}

struct Comparability;

impl Comparison for Comparability {
    fn compare(&self, a: &Value, b: &Value) -> Option<Ordering> {
        compare(a, b)
    }

    fn elements(&self, a: &Value, b: &Value) -> Option<Ordering> {
        if a == b {
            return Some(Ordering::Equal);
        }
        match (details::id(a, &NoDetails), details::id(b, &NoDetails)) {
            (Some(x), Some(y)) => match compare(&x, &y) {
                // `==` is exact for keys, and for properties without ids.
                Some(Ordering::Equal) if has_key(a) && has_key(b) => by_key(a, b),
                found => found,
            },
            _ if has_key(a) && has_key(b) => by_key(a, b),
            _ => None,
        }
    }

    fn kinds(&self, _: Ordering) -> Option<Ordering> {
        None
    }
}

struct Orderability<'d>(&'d dyn Details);

impl Comparison for Orderability<'_> {
    fn compare(&self, a: &Value, b: &Value) -> Option<Ordering> {
        let kind = Kind::of(a);
        let kinds = kind.cmp(&Kind::of(b));
        if kinds != Ordering::Equal {
            return Some(kinds);
        }
        match kind {
            Kind::Number => number::compare_exactly(a, b),
            Kind::Unknown => Some(
                a.type_name()
                    .cmp(b.type_name())
                    .then_with(|| natural(a, b).unwrap_or_else(|| format!("{a:?}").cmp(&format!("{b:?}")))),
            ),
            _ => same_kind(kind, a, b, self),
        }
    }

    fn elements(&self, a: &Value, b: &Value) -> Option<Ordering> {
        match (details::id(a, self.0), details::id(b, self.0)) {
            (Some(x), Some(y)) => self.compare(&x, &y),
            (x, y) => match x.is_some().cmp(&y.is_some()) {
                Ordering::Equal => by_key(a, b),
                known => Some(known),
            },
        }
    }

    fn kinds(&self, kinds: Ordering) -> Option<Ordering> {
        Some(kinds)
    }
}

/// Compares two values of one kind, neither numbers nor unknown.
fn same_kind(kind: Kind, a: &Value, b: &Value, comparison: &dyn Comparison) -> Option<Ordering> {
    match (a, b) {
        (Value::Null, Value::Null) => Some(Ordering::Equal),
        (Value::Boolean(a), Value::Boolean(b)) => Some(a.cmp(b)),
        (Value::String(a), Value::String(b)) => Some(a.cmp(b)),
        (Value::Uuid(a), Value::Uuid(b)) => Some(a.as_bytes().cmp(b.as_bytes())),
        (Value::DateTime(a), Value::DateTime(b)) => Some(a.cmp(b)),
        (Value::Property(a), Value::Property(b)) => match a.key.cmp(&b.key) {
            Ordering::Equal => comparison.compare(&a.value, &b.value),
            unequal => Some(unequal),
        },
        (Value::Entry(a), Value::Entry(b)) => match comparison.compare(&a.0, &b.0) {
            Some(Ordering::Equal) => comparison.compare(&a.1, &b.1),
            unequal => unequal,
        },
        (Value::List(a), Value::List(b)) => items(a, b, comparison),
        (Value::Path(a), Value::Path(b)) => items(&a.objects, &b.objects, comparison),
        _ => match kind {
            Kind::Date => instant(a).partial_cmp(&instant(b)),
            Kind::Set => runs(&sorted_items(a), &sorted_items(b), comparison),
            Kind::Map => entries(&Below::Value(a).entries(), &Below::Value(b).entries(), comparison),
            _ => comparison.elements(a, b),
        },
    }
}

/// Lexicographic order.
fn items(a: &[Value], b: &[Value], comparison: &dyn Comparison) -> Option<Ordering> {
    for (a, b) in a.iter().zip(b) {
        match comparison.compare(a, b) {
            Some(Ordering::Equal) => {}
            found => return found,
        }
    }
    Some(a.len().cmp(&b.len()))
}

/// As [`items`], with multiplicities.
fn runs(a: &[(&Value, u64)], b: &[(&Value, u64)], comparison: &dyn Comparison) -> Option<Ordering> {
    let (mut a, mut b) = (a.iter().copied(), b.iter().copied());
    let (mut first, mut second) = (a.next(), b.next());
    loop {
        match (&mut first, &mut second) {
            (Some((x, m)), Some((y, n))) => {
                match comparison.compare(x, y) {
                    Some(Ordering::Equal) => {}
                    found => return found,
                }
                let both = (*m).min(*n);
                *m -= both;
                *n -= both;
                if *m == 0 {
                    first = a.next();
                }
                if second.is_some_and(|(_, n)| n == 0) {
                    second = b.next();
                }
            }
            (x, y) => return Some(x.is_some().cmp(&y.is_some())),
        }
    }
}

fn entries(
    a: &[(&Value, Below<'_>)],
    b: &[(&Value, Below<'_>)],
    comparison: &dyn Comparison,
) -> Option<Ordering> {
    for ((key, value), (other_key, other_value)) in a.iter().zip(b) {
        match comparison.compare(key, other_key) {
            Some(Ordering::Equal) => {}
            found => return found,
        }
        match value.compare(*other_value, comparison) {
            Some(Ordering::Equal) => {}
            found => return found,
        }
    }
    Some(a.len().cmp(&b.len()))
}

/// The child of a key: a value in a map, a subtree in a tree.
#[derive(Clone, Copy)]
enum Below<'v> {
    Value(&'v Value),
    Tree(&'v Tree),
}

impl<'v> Below<'v> {
    fn compare(self, other: Self, comparison: &dyn Comparison) -> Option<Ordering> {
        if let (Self::Value(a), Self::Value(b)) = (self, other) {
            return comparison.compare(a, b);
        }
        match self.kind().cmp(&other.kind()) {
            Ordering::Equal => entries(&self.entries(), &other.entries(), comparison),
            unequal => comparison.kinds(unequal),
        }
    }

    fn kind(self) -> Kind {
        match self {
            Self::Value(value) => Kind::of(value),
            Self::Tree(_) => Kind::Map,
        }
    }

    /// Entries of a map or tree, in the order of [`order`].
    fn entries(self) -> Vec<(&'v Value, Below<'v>)> {
        let tree =
            |tree: &'v Tree| tree.children.iter().map(|(key, below)| (key, Below::Tree(below))).collect();
        let mut entries: Vec<_> = match self {
            Self::Value(Value::Map(map)) => {
                map.iter().map(|(key, value)| (key, Below::Value(value))).collect()
            }
            Self::Value(Value::Tree(children)) => tree(children),
            Self::Tree(children) => tree(children),
            Self::Value(_) => Vec::new(),
        };
        let sort = Orderability(&NoDetails);
        entries.sort_by(|(a, below), (b, other)| {
            order(a, b).then_with(|| below.compare(*other, &sort).unwrap_or(Ordering::Equal))
        });
        entries
    }
}

/// The items of a set or bag with counts above 0, in the order of [`order`].
fn sorted_items(value: &Value) -> Vec<(&Value, u64)> {
    let mut items: Vec<_> = match value {
        Value::Set(set) => set.iter().map(|item| (item, 1)).collect(),
        Value::Bulk(bag) => {
            bag.iter().map(|(item, count)| (item, *count)).filter(|item| item.1 > 0).collect()
        }
        _ => Vec::new(),
    };
    items.sort_by(|a, b| order(a.0, b.0));
    items
}

/// Two values of one unknown type; `None` if the type has no order.
fn natural(a: &Value, b: &Value) -> Option<Ordering> {
    match (a, b) {
        (Value::Char(a), Value::Char(b)) => Some(a.cmp(b)),
        (Value::Duration(a), Value::Duration(b)) => Some(a.cmp(b)),
        (Value::Extended(a), Value::Extended(b)) => Some(a.cmp(b)),
        (Value::Token(a), Value::Token(b)) => Some(a.name().cmp(b.name())),
        _ => None,
    }
}

fn has_key(element: &Value) -> bool {
    match element {
        Value::Vertex(vertex) => vertex.key != 0,
        Value::Edge(edge) => edge.key.is_known(),
        Value::VertexProperty(property) => property.key.vertex != 0,
        _ => false,
    }
}

fn by_key(a: &Value, b: &Value) -> Option<Ordering> {
    match (a, b) {
        (Value::Vertex(a), Value::Vertex(b)) => Some(a.key.cmp(&b.key)),
        (Value::Edge(a), Value::Edge(b)) => {
            let key = |edge: &crate::EdgeKey| (edge.edge, edge.source, edge.label, edge.target);
            Some(key(&a.key).cmp(&key(&b.key)))
        }
        (Value::VertexProperty(a), Value::VertexProperty(b)) => {
            let key = |property: &crate::PropertyKey| {
                (property.vertex, property.key, property.value, property.edge)
            };
            let keys = key(&a.key).cmp(&key(&b.key));
            Some(keys.then_with(|| a.label.cmp(&b.label)).then_with(|| order(&a.value, &b.value)))
        }
        _ => None,
    }
}

/// Nanoseconds since 1970.
fn instant(value: &Value) -> Option<i128> {
    match value {
        Value::DateTime(date) => Some(date.unix_timestamp_nanos()),
        Value::Extended(extended) => match **extended {
            Extended::OffsetDateTime(year, month, day, nanoseconds, offset) => {
                let days = days_from_civil(year.into(), month.into(), day.into());
                let seconds = i128::from(days) * 86_400 - i128::from(offset);
                Some(seconds * 1_000_000_000 + i128::from(nanoseconds))
            }
            _ => None,
        },
        _ => None,
    }
}

/// Milliseconds since 1970, rounded down.
pub(crate) fn milliseconds(date: &OffsetDateTime) -> i64 {
    // 10,000 years are far below the limit.
    i64::try_from(date.unix_timestamp_nanos().div_euclid(1_000_000)).unwrap_or(i64::MAX)
}
