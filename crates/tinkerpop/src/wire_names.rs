//! Names on the wire that both formats share: predicates, enumerations, strategies and traversals.

use indexmap::IndexSet;
use std::sync::Arc;
use vervet_gremlin::{
    Bytecode, Cardinality, Comparison, Direction, Instruction, Order, P, TextTest, Token, Value,
};

/// Drivers send `Cardinality.set("x")` as a traversal with this single source instruction.
const CARDINALITY_VALUE: &str = "CardinalityValueTraversal";

/// The predicate with this name and these arguments.
///
/// Drivers send `inside`, `outside` and `between` by name or as `and`/`or` of comparisons; both are read
/// without conversion.
pub(crate) fn predicate(name: &str, mut values: Vec<Value>) -> Result<P, String> {
    let comparison = match name {
        "eq" => Some(Comparison::Eq),
        "neq" => Some(Comparison::Neq),
        "lt" => Some(Comparison::Lt),
        "lte" => Some(Comparison::Lte),
        "gt" => Some(Comparison::Gt),
        "gte" => Some(Comparison::Gte),
        _ => None,
    };
    if let Some(comparison) = comparison {
        return Ok(P::Compare(comparison, one_or_list(values)));
    }
    if let Some(test) = text_test(name) {
        let [value] = taken(name, values)?;
        return Ok(P::Text(test, value));
    }
    match name {
        "within" => Ok(P::Within(values)),
        "without" => Ok(P::Without(values)),
        "inside" => taken(name, values).map(|[low, high]| P::Inside(low, high)),
        "outside" => taken(name, values).map(|[low, high]| P::Outside(low, high)),
        "between" => taken(name, values).map(|[low, high]| P::Between(low, high)),
        "typeOf" => taken(name, values).map(|[of]| P::TypeOf(of)),
        "not" => {
            let [value] = taken(name, values)?;
            predicate_of(name, &value).map(|p| P::Not(Box::new(p)))
        }
        "and" | "or" => {
            if values.is_empty() {
                return Err(format!("expected predicates in {name}, found none"));
            }
            let all = values.drain(..).map(|value| predicate_of(name, &value)).collect::<Result<_, _>>()?;
            Ok(if name == "and" { P::And(all) } else { P::Or(all) })
        }
        _ => Err(format!("expected a predicate such as eq or within, found {name:?}")),
    }
}

/// Whether a list is the arguments of this predicate rather than its single argument.
pub(crate) fn takes_many(name: &str) -> bool {
    matches!(name, "within" | "without" | "inside" | "outside" | "between" | "and" | "or")
}

fn one_or_list(mut values: Vec<Value>) -> Value {
    // A collection argument of a comparison is sent as its elements.
    match values.len() {
        1 => values.remove(0),
        _ => Value::list(values),
    }
}

fn taken<const N: usize>(name: &str, values: Vec<Value>) -> Result<[Value; N], String> {
    let found = values.len();
    values.try_into().map_err(|_| format!("expected {N} arguments of {name}, found {found}"))
}

fn predicate_of(name: &str, value: &Value) -> Result<P, String> {
    match value {
        Value::P(p) => Ok(p.as_ref().clone()),
        other => Err(format!("expected a predicate in {name}, found a value of type {}", other.type_name())),
    }
}

fn text_test(name: &str) -> Option<TextTest> {
    Some(match name {
        "startingWith" => TextTest::StartingWith,
        "notStartingWith" => TextTest::NotStartingWith,
        "endingWith" => TextTest::EndingWith,
        "notEndingWith" => TextTest::NotEndingWith,
        "containing" => TextTest::Containing,
        "notContaining" => TextTest::NotContaining,
        "regex" => TextTest::Regex,
        "notRegex" => TextTest::NotRegex,
        _ => return None,
    })
}

/// The wire form of a predicate.
pub(crate) enum WirePredicate {
    /// Name and argument.
    One(&'static str, Value),
    /// Name and arguments.
    Many(&'static str, Vec<Value>),
    /// Name and nested predicates.
    Nested(&'static str, Vec<P>),
    /// `TextP`: name and argument.
    Text(&'static str, Value),
}

/// The wire form of `p`: ranges are `and`/`or` of comparisons, as TinkerPop writes them.
pub(crate) fn wire_predicate(p: &P) -> WirePredicate {
    let compare = |comparison, value: &Value| P::Compare(comparison, value.clone());
    match p {
        P::Compare(comparison, value) => {
            let name = match comparison {
                Comparison::Eq => "eq",
                Comparison::Neq => "neq",
                Comparison::Lt => "lt",
                Comparison::Lte => "lte",
                Comparison::Gt => "gt",
                Comparison::Gte => "gte",
            };
            WirePredicate::One(name, value.clone())
        }
        P::Inside(low, high) => {
            WirePredicate::Nested("and", vec![compare(Comparison::Gt, low), compare(Comparison::Lt, high)])
        }
        P::Outside(low, high) => {
            WirePredicate::Nested("or", vec![compare(Comparison::Lt, low), compare(Comparison::Gt, high)])
        }
        P::Between(low, high) => {
            WirePredicate::Nested("and", vec![compare(Comparison::Gte, low), compare(Comparison::Lt, high)])
        }
        P::Within(values) => WirePredicate::Many("within", values.clone()),
        P::Without(values) => WirePredicate::Many("without", values.clone()),
        P::Text(test, value) => {
            let name = match test {
                TextTest::StartingWith => "startingWith",
                TextTest::NotStartingWith => "notStartingWith",
                TextTest::EndingWith => "endingWith",
                TextTest::NotEndingWith => "notEndingWith",
                TextTest::Containing => "containing",
                TextTest::NotContaining => "notContaining",
                TextTest::Regex => "regex",
                TextTest::NotRegex => "notRegex",
            };
            WirePredicate::Text(name, value.clone())
        }
        P::TypeOf(value) => WirePredicate::One("typeOf", value.clone()),
        P::Not(p) => WirePredicate::One("not", Value::P(Arc::new(p.as_ref().clone()))),
        P::And(all) => WirePredicate::Nested("and", all.clone()),
        P::Or(all) => WirePredicate::Nested("or", all.clone()),
    }
}

/// The member `name` of the enumeration with the wire name `kind`; none if there is no such enumeration.
pub(crate) fn token(kind: &str, name: &str) -> Option<Result<Token, String>> {
    let kind = match kind {
        "DT" => "TimeUnit",
        "Barrier" | "Cardinality" | "Column" | "Direction" | "GType" | "Merge" | "Operator" | "Order"
        | "Pick" | "Pop" | "Scope" | "T" => kind,
        _ => return None,
    };
    // Python names such as `id_` and `from_`, and names of old versions.
    let plain = name.strip_suffix('_').unwrap_or(name);
    let known = Token::from_names(kind, plain).or(match (kind, plain) {
        ("Direction", "from") => Some(Token::Direction(Direction::Out)),
        ("Direction", "to") => Some(Token::Direction(Direction::In)),
        ("Order", "incr") => Some(Token::Order(Order::Asc)),
        ("Order", "decr") => Some(Token::Order(Order::Desc)),
        _ => None,
    });
    Some(
        known.ok_or_else(|| format!("expected a member of {kind}, found {}", crate::number::shortened(name))),
    )
}

/// The wire name of the enumeration of `token`.
pub(crate) fn token_kind(token: Token) -> &'static str {
    match token {
        Token::TimeUnit(_) => "DT",
        _ => token.kind(),
    }
}

/// A traversal as a value; converts the traversal form of a cardinality value.
pub(crate) fn traversal(bytecode: Bytecode) -> Value {
    if let ([source], []) = (bytecode.source.as_slice(), bytecode.steps.as_slice())
        && &*source.name == CARDINALITY_VALUE
        && let [Value::Token(Token::Cardinality(cardinality)), value] = source.arguments.as_slice()
    {
        return Value::WithCardinality(Arc::new((*cardinality, value.clone())));
    }
    Value::Traversal(Arc::new(bytecode))
}

/// The traversal form of `cardinality(value)`.
pub(crate) fn cardinality_value(cardinality: Cardinality, value: &Value) -> Bytecode {
    let arguments = vec![Value::Token(Token::Cardinality(cardinality)), value.clone()];
    Bytecode { source: vec![Instruction::new(CARDINALITY_VALUE, arguments)], steps: Vec::new() }
}

/// The distinct labels of a path object; none if one is not a string.
pub(crate) fn labels<'a>(labels: impl Iterator<Item = &'a Value>) -> Option<Vec<Arc<str>>> {
    let labels: Option<IndexSet<Arc<str>, vervet_gremlin::Hashing>> =
        labels.map(|label| label.as_text().map(Arc::from)).collect();
    labels.map(|labels| labels.into_iter().collect())
}

/// The Java class of a strategy; unchanged if `name` is a class name.
pub(crate) fn strategy_class(name: &str) -> String {
    if name.contains('.') {
        return name.to_owned();
    }
    const OLTP: &str = "org.apache.tinkerpop.gremlin.process.traversal.strategy";
    const OLAP: &str = "org.apache.tinkerpop.gremlin.process.computer.traversal.strategy";
    let (root, kind) = match name {
        "VertexProgramStrategy" => (OLAP, "decoration"),
        "ComputerFinalizationStrategy" => (OLAP, "finalization"),
        "GraphFilterStrategy" | "MessagePassingReductionStrategy" => (OLAP, "optimization"),
        "VertexProgramRestrictionStrategy" => (OLAP, "verification"),
        "MatchAlgorithmStrategy" | "ProfileStrategy" | "ReferenceElementStrategy" => (OLTP, "finalization"),
        "AdjacentToIncidentStrategy"
        | "ByModulatorOptimizationStrategy"
        | "CountStrategy"
        | "EarlyLimitStrategy"
        | "FilterRankingStrategy"
        | "IdentityRemovalStrategy"
        | "IncidentToAdjacentStrategy"
        | "InlineFilterStrategy"
        | "LazyBarrierStrategy"
        | "MatchPredicateStrategy"
        | "OrderLimitStrategy"
        | "PathProcessorStrategy"
        | "PathRetractionStrategy"
        | "ProductiveByStrategy"
        | "RepeatUnrollStrategy" => (OLTP, "optimization"),
        "ComputerVerificationStrategy"
        | "EdgeLabelVerificationStrategy"
        | "LambdaRestrictionStrategy"
        | "ReadOnlyStrategy"
        | "ReservedKeysVerificationStrategy"
        | "StandardVerificationStrategy" => (OLTP, "verification"),
        _ => (OLTP, "decoration"),
    };
    format!("{root}.{kind}.{name}")
}

/// The name of a class without its package.
pub(crate) fn simple_name(class: &str) -> &str {
    class.rsplit('.').next().unwrap_or(class)
}
