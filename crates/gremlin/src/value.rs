//! `Value`: the type of every traverser, argument and result.
//!
//! # Invariants
//! `==` and `Hash` are TinkerPop's *equivalence*, the relation of groups, sets and maps: types are
//! significant (`1` is not `1L`), `NaN` equals itself, `0.0` differs from `-0.0`. *Equality* (`P.eq`),
//! comparison and order are separate functions.
//! # Cost
//! 24 bytes; larger values are behind an `Arc`, so a clone is at most an increment.
//! # Source
//! Apache TinkerPop 3.8, provider documentation, "Gremlin Semantics": "Equality, Equivalence, Comparability
//! and Orderability".

pub(crate) mod element;
pub(crate) mod extended;
pub(crate) mod metrics;

use crate::semantics::number::big::equal_decimals;
use crate::{
    Bytecode, Cardinality, Duration, Edge, Extended, Lambda, Metrics, P, Path, Property, Strategy, Subgraph,
    Token, Tree, Vertex, VertexProperty,
};
use bigdecimal::BigDecimal;
use indexmap::{IndexMap, IndexSet};
use num_bigint::BigInt;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, LazyLock};
use time::OffsetDateTime;
use uuid::Uuid;

/// Hash function of tables: fast, and keyed with a secret of this process, since clients choose the values.
pub type Hashing = foldhash::quality::RandomState;
/// A map in insertion order.
pub type Map = IndexMap<Value, Value, Hashing>;
/// A set in insertion order.
pub type Set = IndexSet<Value, Hashing>;
/// A bag: values with multiplicities, in the order of their first insertion.
pub type Bulk = IndexMap<Value, u64, Hashing>;

/// A value. See the header of this file.
#[derive(Clone, Debug, Default)]
pub enum Value {
    /// `null`
    #[default]
    Null,
    /// `true`
    Boolean(bool),
    /// `1b`
    Byte(i8),
    /// `1s`
    Short(i16),
    /// `1` or `1i`
    Int(i32),
    /// `1l`
    Long(i64),
    /// `1f`
    Float(f32),
    /// `1.0` or `1d`
    Double(f64),
    /// `1n`
    BigInteger(Arc<BigInt>),
    /// `1m`
    BigDecimal(Arc<BigDecimal>),
    /// A character; only the wire formats have literals of it.
    Char(char),
    /// `"text"`
    String(Arc<str>),
    /// `UUID("…")`
    Uuid(Uuid),
    /// `datetime("…")`
    DateTime(Box<OffsetDateTime>),
    /// A duration.
    Duration(Duration),
    /// Opaque types of the wire formats.
    Extended(Arc<Extended>),
    /// `[1, 2]`
    List(Arc<Vec<Value>>),
    /// `{1, 2}`
    Set(Arc<Set>),
    /// `[a: 1]`
    Map(Arc<Map>),
    /// A map entry, the result of `unfold()` on a map. Clients receive it as a map with one key.
    Entry(Arc<(Value, Value)>),
    /// A bag.
    Bulk(Arc<Bulk>),
    /// A vertex.
    Vertex(Vertex),
    /// An edge.
    Edge(Arc<Edge>),
    /// A vertex property.
    VertexProperty(Arc<VertexProperty>),
    /// A property of an edge or of a vertex property.
    Property(Arc<Property>),
    /// A path.
    Path(Arc<Path>),
    /// A tree.
    Tree(Arc<Tree>),
    /// A subgraph.
    Subgraph(Arc<Subgraph>),
    /// The result of `profile()`.
    Metrics(Arc<Metrics>),
    /// `T.id`, `Order.desc`
    Token(Token),
    /// `Cardinality.set("x")`
    WithCardinality(Arc<(Cardinality, Value)>),
    /// `P.gt(1)`
    P(Arc<P>),
    /// `__.out()`
    Traversal(Arc<Bytecode>),
    /// `new SubgraphStrategy(…)`
    Strategy(Arc<Strategy>),
    /// A function in another language.
    Lambda(Arc<Lambda>),
}

impl Value {
    /// Creates a string.
    #[must_use]
    pub fn text(text: impl AsRef<str>) -> Self {
        Self::String(text.as_ref().into())
    }

    /// Creates a list.
    #[must_use]
    pub fn list(values: Vec<Value>) -> Self {
        Self::List(Arc::new(values))
    }

    /// Creates a set.
    #[must_use]
    pub fn set(values: impl IntoIterator<Item = Value>) -> Self {
        Self::Set(Arc::new(values.into_iter().collect()))
    }

    /// Creates a map.
    #[must_use]
    pub fn map(map: Map) -> Self {
        Self::Map(Arc::new(map))
    }

    /// The contents of a string.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::String(text) => Some(text),
            _ => None,
        }
    }

    /// The value of an integer of any width, if it fits 64 bits.
    #[must_use]
    pub fn as_integer(&self) -> Option<i64> {
        match self {
            Self::Byte(n) => Some((*n).into()),
            Self::Short(n) => Some((*n).into()),
            Self::Int(n) => Some((*n).into()),
            Self::Long(n) => Some(*n),
            Self::BigInteger(n) => i64::try_from(n.as_ref()).ok(),
            _ => None,
        }
    }

    /// Whether the value has a numeric type.
    #[must_use]
    pub fn is_number(&self) -> bool {
        matches!(
            self,
            Self::Byte(_)
                | Self::Short(_)
                | Self::Int(_)
                | Self::Long(_)
                | Self::Float(_)
                | Self::Double(_)
                | Self::BigInteger(_)
                | Self::BigDecimal(_)
        )
    }

    /// The readable type name for messages: `Integer`, `Vertex`, `Map`.
    #[must_use]
    pub fn type_name(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Boolean(_) => "Boolean",
            Self::Byte(_) => "Byte",
            Self::Short(_) => "Short",
            Self::Int(_) => "Integer",
            Self::Long(_) => "Long",
            Self::Float(_) => "Float",
            Self::Double(_) => "Double",
            Self::BigInteger(_) => "BigInteger",
            Self::BigDecimal(_) => "BigDecimal",
            Self::Char(_) => "Character",
            Self::String(_) => "String",
            Self::Uuid(_) => "UUID",
            Self::DateTime(_) => "OffsetDateTime",
            Self::Duration(_) => "Duration",
            Self::Extended(extended) => extended.type_name(),
            Self::List(_) => "List",
            Self::Set(_) => "Set",
            Self::Map(_) | Self::Entry(_) => "Map",
            Self::Bulk(_) => "BulkSet",
            Self::Vertex(_) => "Vertex",
            Self::Edge(_) => "Edge",
            Self::VertexProperty(_) => "VertexProperty",
            Self::Property(_) => "Property",
            Self::Path(_) => "Path",
            Self::Tree(_) => "Tree",
            Self::Subgraph(_) => "Graph",
            Self::Metrics(_) => "TraversalMetrics",
            Self::Token(token) => token.kind(),
            Self::WithCardinality(_) => "CardinalityValue",
            Self::P(_) => "P",
            Self::Traversal(_) => "Traversal",
            Self::Strategy(_) => "TraversalStrategy",
            Self::Lambda(_) => "Lambda",
        }
    }
}

impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Null, Self::Null) => true,
            (Self::Boolean(a), Self::Boolean(b)) => a == b,
            (Self::Byte(a), Self::Byte(b)) => a == b,
            (Self::Short(a), Self::Short(b)) => a == b,
            (Self::Int(a), Self::Int(b)) => a == b,
            (Self::Long(a), Self::Long(b)) => a == b,
            (Self::Float(a), Self::Float(b)) => float_bits(*a) == float_bits(*b),
            (Self::Double(a), Self::Double(b)) => double_bits(*a) == double_bits(*b),
            (Self::BigInteger(a), Self::BigInteger(b)) => a == b,
            (Self::BigDecimal(a), Self::BigDecimal(b)) => equal_decimals(a, b),
            (Self::Char(a), Self::Char(b)) => a == b,
            (Self::String(a), Self::String(b)) => a == b,
            (Self::Uuid(a), Self::Uuid(b)) => a == b,
            (Self::DateTime(a), Self::DateTime(b)) => a == b,
            (Self::Duration(a), Self::Duration(b)) => a == b,
            (Self::Extended(a), Self::Extended(b)) => a == b,
            (Self::List(a), Self::List(b)) => a == b,
            (Self::Set(a), Self::Set(b)) => a == b,
            (Self::Map(a), Self::Map(b)) => a == b,
            (Self::Entry(a), Self::Entry(b)) => a == b,
            (Self::Bulk(a), Self::Bulk(b)) => a == b,
            (Self::Vertex(a), Self::Vertex(b)) => a == b,
            (Self::Edge(a), Self::Edge(b)) => a == b,
            (Self::VertexProperty(a), Self::VertexProperty(b)) => a == b,
            (Self::Property(a), Self::Property(b)) => a == b,
            (Self::Path(a), Self::Path(b)) => a == b,
            (Self::Tree(a), Self::Tree(b)) => a == b,
            (Self::Subgraph(a), Self::Subgraph(b)) => a == b,
            (Self::Metrics(a), Self::Metrics(b)) => Arc::ptr_eq(a, b),
            (Self::Token(a), Self::Token(b)) => a == b,
            (Self::WithCardinality(a), Self::WithCardinality(b)) => a == b,
            (Self::P(a), Self::P(b)) => a == b,
            (Self::Traversal(a), Self::Traversal(b)) => a == b,
            (Self::Strategy(a), Self::Strategy(b)) => a == b,
            (Self::Lambda(a), Self::Lambda(b)) => a == b,
            _ => false,
        }
    }
}

impl Eq for Value {}

impl Hash for Value {
    fn hash<H: Hasher>(&self, state: &mut H) {
        std::mem::discriminant(self).hash(state);
        match self {
            Self::Null | Self::Metrics(_) => {}
            Self::Boolean(a) => a.hash(state),
            Self::Byte(a) => a.hash(state),
            Self::Short(a) => a.hash(state),
            Self::Int(a) => a.hash(state),
            Self::Long(a) => a.hash(state),
            Self::Float(a) => float_bits(*a).hash(state),
            Self::Double(a) => double_bits(*a).hash(state),
            Self::BigInteger(a) => a.hash(state),
            Self::BigDecimal(a) => normal(a).hash(state),
            Self::Char(a) => a.hash(state),
            Self::String(a) => a.hash(state),
            Self::Uuid(a) => a.hash(state),
            Self::DateTime(a) => a.hash(state),
            Self::Duration(a) => a.hash(state),
            Self::Extended(a) => a.hash(state),
            Self::List(a) => a.hash(state),
            // Independent of the insertion order.
            Self::Set(a) => commutative(a.iter()).hash(state),
            Self::Map(a) => commutative(a.iter()).hash(state),
            Self::Entry(a) => a.hash(state),
            Self::Bulk(a) => commutative(a.iter()).hash(state),
            Self::Vertex(a) => a.hash(state),
            Self::Edge(a) => a.hash(state),
            Self::VertexProperty(a) => a.hash(state),
            Self::Property(a) => a.hash(state),
            Self::Path(a) => a.hash(state),
            Self::Tree(a) => a.hash(state),
            Self::Subgraph(a) => a.hash(state),
            Self::Token(a) => a.hash(state),
            Self::WithCardinality(a) => a.hash(state),
            Self::P(a) => a.hash(state),
            Self::Traversal(a) => a.hash(state),
            Self::Strategy(a) => a.hash(state),
            Self::Lambda(a) => a.hash(state),
        }
    }
}

fn float_bits(number: f32) -> u32 {
    if number.is_nan() { f32::NAN.to_bits() } else { number.to_bits() }
}

fn double_bits(number: f64) -> u64 {
    if number.is_nan() { f64::NAN.to_bits() } else { number.to_bits() }
}

/// Digits without trailing zeros, and the corresponding scale: the same for equal decimals.
///
/// `BigDecimal`'s own hash expands all zeros, even those of `1E1000000000`.
fn normal(number: &BigDecimal) -> (String, i128) {
    let (digits, scale) = number.as_bigint_and_scale();
    let mut text = digits.to_string();
    let length = text.trim_end_matches('0').len();
    if length == 0 {
        return (String::new(), 0);
    }
    let zeros = i128::try_from(text.len() - length).unwrap_or(0);
    text.truncate(length);
    (text, i128::from(scale) - zeros)
}

/// An order-independent hash of items.
pub(crate) fn commutative<T: Hash>(items: impl Iterator<Item = T>) -> u64 {
    use std::hash::BuildHasher;
    // Equal sets need equal hashes in all tables.
    static ONE: LazyLock<Hashing> = LazyLock::new(Hashing::default);
    items.fold(0, |sum: u64, item| sum.wrapping_add(ONE.hash_one(item)))
}

macro_rules! from {
    ($($type:ty => $variant:ident),+ $(,)?) => {
        $(impl From<$type> for Value {
            fn from(value: $type) -> Self {
                Self::$variant(value.into())
            }
        })+
    };
}

from! {
    bool => Boolean, i8 => Byte, i16 => Short, i32 => Int, i64 => Long, f32 => Float, f64 => Double,
    &str => String, String => String, Uuid => Uuid, OffsetDateTime => DateTime, Duration => Duration,
    Vec<Value> => List, Map => Map, Set => Set, Bulk => Bulk, Vertex => Vertex, Edge => Edge,
    VertexProperty => VertexProperty, Property => Property, Path => Path, Tree => Tree, P => P,
    Bytecode => Traversal, Strategy => Strategy, Token => Token,
}
