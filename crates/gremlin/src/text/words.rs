//! Words that denote values: enumeration members, with and without their class, and constants.

use super::suggest::nearest;
use crate::{
    Barrier, Cardinality, Column, Direction, GType, Merge, Operator, Order, Pick, Pop, Scope, T, TimeUnit,
    Token, Value,
};

/// The member that a bare word denotes: `id`, `desc`, `OUT`, `INT`. `set` and `list` are cardinalities.
pub(super) fn member(word: &str) -> Option<Token> {
    Some(match word {
        "id" | "label" | "key" | "value" => Token::T(T::from_name(word)?),
        "asc" | "desc" | "shuffle" => Token::Order(Order::from_name(word)?),
        "incr" => Token::Order(Order::Asc),
        "decr" => Token::Order(Order::Desc),
        "local" | "global" => Token::Scope(Scope::from_name(word)?),
        "from" | "to" | "IN" | "OUT" | "BOTH" => Token::Direction(direction(word)?),
        "keys" | "values" => Token::Column(Column::from_name(word)?),
        "first" | "last" | "all" | "mixed" => Token::Pop(Pop::from_name(word)?),
        "single" | "set" | "list" => Token::Cardinality(Cardinality::from_name(word)?),
        "any" | "none" | "unproductive" => Token::Pick(Pick::from_name(word)?),
        "onCreate" | "onMatch" | "outV" | "inV" => Token::Merge(Merge::from_name(word)?),
        "second" | "minute" | "hour" | "day" => Token::TimeUnit(TimeUnit::from_name(word)?),
        "normSack" => Token::Barrier(Barrier::NormSack),
        _ => Operator::from_name(word).map(Token::Operator).or_else(|| gtype(word).map(Token::GType))?,
    })
}

fn direction(word: &str) -> Option<Direction> {
    match word {
        "from" => Some(Direction::Out),
        "to" => Some(Direction::In),
        _ => Direction::from_name(word),
    }
}

/// Type names are all upper case or camel case: `BIGINT`, `bigInt`.
fn gtype(word: &str) -> Option<GType> {
    if let Some(found) = GType::from_name(word) {
        return Some(found);
    }
    let camel = match word {
        "bigDecimal" | "bigInt" => true,
        _ => word.bytes().all(|b| b.is_ascii_lowercase()) && word.len() <= 9,
    };
    camel.then(|| GType::from_name(&word.to_ascii_uppercase())).flatten()
}

/// Reinterprets `set` and `list` as types, for arguments that are types.
pub(super) fn as_type(value: &mut Value) {
    let found = match value {
        Value::Token(Token::Cardinality(Cardinality::Set)) => GType::Set,
        Value::Token(Token::Cardinality(Cardinality::List)) => GType::List,
        _ => return,
    };
    *value = Value::Token(Token::GType(found));
}

/// Class names of the enumerations in gremlin-lang.
const CLASSES: &[(&str, &str)] = &[
    ("Barrier", "Barrier"),
    ("Cardinality", "Cardinality"),
    ("Column", "Column"),
    ("DT", "TimeUnit"),
    ("Direction", "Direction"),
    ("GType", "GType"),
    ("Merge", "Merge"),
    ("Operator", "Operator"),
    ("Order", "Order"),
    ("Pick", "Pick"),
    ("Pop", "Pop"),
    ("Scope", "Scope"),
    ("T", "T"),
];

/// String constants of options: class, member, text.
const TEXTS: &[(&str, &str, &str)] = &[
    ("ConnectedComponent", "component", "gremlin.connectedComponentVertexProgram.component"),
    ("ConnectedComponent", "edges", "~tinkerpop.connectedComponent.edges"),
    ("ConnectedComponent", "propertyName", "~tinkerpop.connectedComponent.propertyName"),
    ("IO", "graphml", "graphml"),
    ("IO", "graphson", "graphson"),
    ("IO", "gryo", "gryo"),
    ("IO", "reader", "~tinkerpop.io.reader"),
    ("IO", "registry", "~tinkerpop.io.registry"),
    ("IO", "writer", "~tinkerpop.io.writer"),
    ("PageRank", "edges", "~tinkerpop.pageRank.edges"),
    ("PageRank", "propertyName", "~tinkerpop.pageRank.propertyName"),
    ("PageRank", "times", "~tinkerpop.pageRank.times"),
    ("PeerPressure", "edges", "~tinkerpop.peerPressure.edges"),
    ("PeerPressure", "propertyName", "~tinkerpop.peerPressure.propertyName"),
    ("PeerPressure", "times", "~tinkerpop.peerPressure.times"),
    ("ShortestPath", "distance", "~tinkerpop.shortestPath.distance"),
    ("ShortestPath", "edges", "~tinkerpop.shortestPath.edges"),
    ("ShortestPath", "includeEdges", "~tinkerpop.shortestPath.includeEdges"),
    ("ShortestPath", "maxDistance", "~tinkerpop.shortestPath.maxDistance"),
    ("ShortestPath", "target", "~tinkerpop.shortestPath.target"),
    ("WithOptions", "indexer", "~tinkerpop.index.indexer"),
    ("WithOptions", "tokens", "~tinkerpop.valueMap.tokens"),
];

/// Numeric constants of `WithOptions`.
const NUMBERS: &[(&str, i32)] = &[
    ("none", 0),
    ("ids", 1),
    ("labels", 2),
    ("keys", 4),
    ("values", 8),
    ("all", 15),
    ("list", 0),
    ("map", 1),
];

/// Whether this word is a class name with members.
pub(super) fn is_class(word: &str) -> bool {
    CLASSES.iter().any(|class| class.0 == word) || TEXTS.iter().any(|constant| constant.0 == word)
}

/// The value of `class.member`; else a hint with the nearest member.
pub(super) fn constant(class: &str, word: &str) -> Result<Value, Option<String>> {
    if let Some((_, kind)) = CLASSES.iter().find(|(name, _)| *name == class) {
        let found = match *kind {
            "Direction" => direction(word).map(Token::Direction),
            "GType" => gtype(word).map(Token::GType),
            kind => Token::from_names(kind, word),
        };
        let old = match (class, word) {
            ("Order", "incr") => Some(Token::Order(Order::Asc)),
            ("Order", "decr") => Some(Token::Order(Order::Desc)),
            _ => None,
        };
        return found.or(old).map(Value::Token).ok_or_else(|| suggestion(class, &members(kind), word));
    }
    let texts = TEXTS.iter().filter(|constant| constant.0 == class);
    if let Some((.., text)) = texts.clone().find(|constant| constant.1 == word) {
        return Ok(Value::text(text));
    }
    let numbers = NUMBERS.iter().filter(|_| class == "WithOptions");
    if let Some((_, number)) = numbers.clone().find(|(name, _)| *name == word) {
        return Ok(Value::Int(*number));
    }
    let names: Vec<_> = texts.map(|constant| constant.1).chain(numbers.map(|number| number.0)).collect();
    Err(suggestion(class, &names, word))
}

fn members(kind: &str) -> Vec<&'static str> {
    fn names<M: Copy>(all: &[M], name: impl Fn(M) -> &'static str) -> Vec<&'static str> {
        all.iter().map(|member| name(*member)).collect()
    }
    match kind {
        "Barrier" => names(Barrier::ALL, Barrier::name),
        "Cardinality" => names(Cardinality::ALL, Cardinality::name),
        "Column" => names(Column::ALL, Column::name),
        "Direction" => [names(Direction::ALL, Direction::name), vec!["from", "to"]].concat(),
        "GType" => names(GType::ALL, GType::name),
        "Merge" => names(Merge::ALL, Merge::name),
        "Operator" => names(Operator::ALL, Operator::name),
        "Order" => names(Order::ALL, Order::name),
        "Pick" => names(Pick::ALL, Pick::name),
        "Pop" => names(Pop::ALL, Pop::name),
        "Scope" => names(Scope::ALL, Scope::name),
        "T" => names(T::ALL, T::name),
        _ => names(TimeUnit::ALL, TimeUnit::name),
    }
}

fn suggestion(class: &str, names: &[&'static str], word: &str) -> Option<String> {
    nearest(word, names.iter().copied()).map(|near| format!("did you mean {class}.{near}?"))
}

/// The class name of a member's enumeration in gremlin-lang.
pub(super) fn class(token: Token) -> &'static str {
    match token {
        Token::TimeUnit(_) => "DT",
        other => other.kind(),
    }
}

/// All class names of enumerations and constants, for hints.
pub(super) fn classes() -> impl Iterator<Item = &'static str> + Clone {
    CLASSES.iter().map(|class| class.0).chain(["IO", "P", "TextP", "WithOptions"])
}
