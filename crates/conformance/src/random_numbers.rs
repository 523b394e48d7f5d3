//! Random queries on numbers of any length, against an evaluation with the crate `bigdecimal`.
//!
//! Oxigraph, the judge of [`crate::random`], has decimals of 128 bits, so the rows here are computed from the
//! generated numbers: exact decimals, and doubles by the parser of the standard library. A case is a graph of
//! two predicates, a part of it loaded and the rest inserted, and one query of each kind.

use crate::random_terms::Random;
use bigdecimal::{BigDecimal, RoundingMode, Zero};
use num_bigint::BigInt;
use oxrdf::vocab::xsd;
use oxrdf::{Literal, Term};
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::str::FromStr;
use vervet::{Answer, Database, Format, QueryOptions};

/// The value of a number.
#[derive(Clone, Debug)]
enum Number {
    /// An integer (`true`) or a decimal.
    Exact(BigDecimal, bool),
    Double(f64),
}

/// A generated literal and its value.
#[derive(Clone, Debug)]
struct Generated {
    literal: Literal,
    value: Number,
}

impl Number {
    /// The value of a result.
    fn of(term: &Term) -> Option<Self> {
        let Term::Literal(literal) = term else { return None };
        match literal.datatype() {
            xsd::DOUBLE => Some(Self::Double(literal.value().parse().ok()?)),
            xsd::DECIMAL => Some(Self::Exact(BigDecimal::from_str(literal.value()).ok()?, false)),
            _ => Some(Self::Exact(BigDecimal::from_str(literal.value()).ok()?, true)),
        }
    }

    fn to_double(&self) -> f64 {
        match self {
            Self::Exact(value, _) => value.to_plain_string().parse().unwrap_or(f64::NAN),
            Self::Double(value) => *value,
        }
    }

    /// The order by which XPath compares: exact, or as doubles if one is a double.
    fn compare(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Exact(a, _), Self::Exact(b, _)) => a.cmp(b),
            _ => self.to_double().total_cmp(&other.to_double()),
        }
    }

    fn text(&self) -> String {
        match self {
            Self::Exact(value, integer) => {
                let kind = if *integer { "integer" } else { "decimal" };
                format!("{} {kind}", value.normalized().to_plain_string())
            }
            Self::Double(value) => format!("{value:e} double"),
        }
    }
}

fn digits(random: &mut Random, count: usize) -> String {
    // Runs of 0 and 9, where carries and cuts happen, as often as other digits.
    let fixed = random.pick(&["", "", "0", "9"]);
    (0..count)
        .map(|_| {
            if fixed.is_empty() || random.chance(10) {
                random.below(10).to_string()
            } else {
                fixed.to_owned()
            }
        })
        .collect()
}

/// A number; `doubles`: perhaps a double.
fn number(random: &mut Random, doubles: bool) -> Generated {
    const WHOLE: [usize; 12] = [0, 1, 1, 2, 5, 17, 18, 20, 30, 38, 39, 60];
    const FRACTION: [usize; 10] = [0, 1, 1, 2, 17, 18, 19, 20, 37, 60];
    const NEAR: [&str; 8] = [
        "170141183460469231731687303715884105727",
        "170141183460469231731687303715884105728",
        "170141183460469231731.687303715884105727",
        "170141183460469231731.687303715884105728",
        "9223372036854775807",
        "36028797018963968",
        "0.000000000000000001",
        "0.0000000000000000009",
    ];
    let sign = random.pick(&["", "", "-", "+"]);
    let zeros = random.pick(&["", "", "", "0", "00000000000000000000000000000000000000000000"]);
    if doubles && random.chance(30) {
        let text = format!("{}.{}E{}", 1 + random.below(9), random.below(100), random.below(40));
        let value = Number::Double(text.parse().unwrap_or(f64::NAN));
        return Generated { literal: Literal::new_typed_literal(text, xsd::DOUBLE), value };
    }
    let (mut whole, mut fraction) = match random.chance(25) {
        true => {
            let near = random.pick(&NEAR);
            let (whole, fraction) = near.split_once('.').unwrap_or((near, ""));
            (whole.to_owned(), fraction.to_owned())
        }
        false => {
            let (whole, fraction) =
                (WHOLE[random.below(WHOLE.len())], FRACTION[random.below(FRACTION.len())]);
            (digits(random, whole), digits(random, fraction))
        }
    };
    if whole.is_empty() && fraction.is_empty() {
        whole.push('7');
    }
    let integer = fraction.is_empty() && random.chance(70);
    if integer {
        whole = format!("{zeros}{whole}");
    } else if random.chance(30) {
        fraction.push_str(zeros);
    }
    let point = if fraction.is_empty() { "" } else { "." };
    let text = format!("{sign}{whole}{point}{fraction}");
    let exact = format!("{}{whole}.{fraction}0", sign.replace('+', ""));
    let value = Number::Exact(
        BigDecimal::from_str(&format!("0{exact}").replace("0-", "-0")).unwrap_or_default(),
        integer,
    );
    let datatype = match integer {
        false => xsd::DECIMAL,
        true if random.chance(80) => xsd::INTEGER,
        true if sign == "-" => xsd::NON_POSITIVE_INTEGER,
        true => xsd::NON_NEGATIVE_INTEGER,
    };
    Generated { literal: Literal::new_typed_literal(text, datatype), value }
}

/// Subjects by number, with the values of `<urn:p>` and `<urn:q>`.
struct Graph {
    values: [Vec<(usize, Generated)>; 2],
}

impl Graph {
    fn new(random: &mut Random, doubles: bool) -> Self {
        let mut values = [Vec::new(), Vec::new()];
        for of in &mut values {
            for _ in 0..1 + random.below(8) {
                let generated = number(random, doubles);
                let subject = random.below(5);
                // A graph is a set.
                if !of.iter().any(|(s, other): &(usize, Generated)| {
                    *s == subject && other.literal == generated.literal
                }) {
                    of.push((subject, generated));
                }
            }
        }
        Self { values }
    }

    fn statements(&self) -> Vec<String> {
        let of = |name, values: &[(usize, Generated)]| -> Vec<String> {
            values
                .iter()
                .map(|(subject, one)| format!("<urn:v{subject}> <urn:{name}> {} .", one.literal))
                .collect()
        };
        [of("p", &self.values[0]), of("q", &self.values[1])].concat()
    }

    /// The pairs of a value of `<urn:p>` and a value of `<urn:q>` with one subject.
    fn pairs(&self) -> impl Iterator<Item = (&Number, &Number)> {
        let [p, q] = &self.values;
        p.iter().flat_map(move |(subject, a)| {
            q.iter().filter(move |(other, _)| other == subject).map(move |(_, b)| (&a.value, &b.value))
        })
    }

    fn by_subject(&self) -> BTreeMap<usize, Vec<&Number>> {
        let mut all: BTreeMap<usize, Vec<&Number>> = BTreeMap::new();
        for (subject, one) in &self.values[0] {
            all.entry(*subject).or_default().push(&one.value);
        }
        all
    }
}

/// `a / b` as docs/sparql.md describes it: cut after 18 fraction digits or those of an operand; after 18
/// significant digits below 10^-9.
fn quotient(a: &BigDecimal, b: &BigDecimal) -> Option<BigDecimal> {
    if b.is_zero() {
        return None;
    }
    let places = |number: &BigDecimal| number.normalized().as_bigint_and_exponent().1.max(0);
    let cut = |places: i64| {
        let (x, s) = a.as_bigint_and_exponent();
        let (y, t) = b.as_bigint_and_exponent();
        // x / 10^s / (y / 10^t) * 10^places
        let power = places + t - s;
        let ten = |power: i64| BigInt::from(10).pow(u32::try_from(power).unwrap_or(0));
        let whole = if power >= 0 { x * ten(power) / y } else { x / (y * ten(-power)) };
        BigDecimal::new(whole, places)
    };
    let least = 18.max(places(a)).max(places(b));
    let first = cut(least);
    if first.abs() >= BigDecimal::new(1.into(), 9) || a.is_zero() {
        return Some(first);
    }
    // The place of the first significant digit, and 17 more.
    let leading = (0..).find(|places| !cut(*places).is_zero())?;
    Some(cut(least.max(leading + 17)))
}

fn exact(number: &Number) -> (&BigDecimal, bool) {
    match number {
        Number::Exact(value, integer) => (value, *integer),
        Number::Double(_) => unreachable!("this graph has no doubles"),
    }
}

fn arithmetic(operator: &str, a: &Number, b: &Number) -> Option<Number> {
    let ((a, a_is), (b, b_is)) = (exact(a), exact(b));
    let integer = a_is && b_is && operator != "/";
    Some(Number::Exact(
        match operator {
            "+" => a + b,
            "-" => a - b,
            "*" => a * b,
            _ => quotient(a, b)?,
        },
        integer,
    ))
}

fn unary(function: &str, number: &Number) -> Number {
    let (value, integer) = exact(number);
    let rounded = |value: &BigDecimal, mode| value.with_scale_round(0, mode);
    match function {
        "-" => Number::Exact(-value, integer),
        "ABS" => Number::Exact(value.abs(), integer),
        "CEIL" => Number::Exact(rounded(value, RoundingMode::Ceiling), integer),
        "FLOOR" => Number::Exact(rounded(value, RoundingMode::Floor), integer),
        "ROUND" => {
            Number::Exact(rounded(&(value + BigDecimal::new(5.into(), 1)), RoundingMode::Floor), integer)
        }
        "xsd:integer" => Number::Exact(rounded(value, RoundingMode::Down), true),
        "xsd:decimal" => Number::Exact(value.clone(), false),
        _ => Number::Double(number.to_double()),
    }
}

/// A query, and its rows as texts; `ordered`: their order matters.
struct Question {
    text: String,
    expected: Vec<String>,
    ordered: bool,
}

fn holds(operator: &str, order: Ordering) -> bool {
    match operator {
        "=" => order.is_eq(),
        "!=" => order.is_ne(),
        "<" => order.is_lt(),
        "<=" => order.is_le(),
        ">" => order.is_gt(),
        _ => order.is_ge(),
    }
}

const COMPARATORS: [&str; 6] = ["=", "!=", "<", "<=", ">", ">="];

/// Conditions, on numbers of all types.
fn conditions(random: &mut Random, graph: &Graph) -> Vec<Question> {
    let mut all = Vec::new();
    let one_row = |value: &Number| format!("r={}", value.text());
    for _ in 0..4 {
        let operator = random.pick(&COMPARATORS);
        let constant = match random.chance(50) {
            true => number(random, true),
            false => graph.values[0][random.below(graph.values[0].len())].1.clone(),
        };
        let passing =
            graph.values[0].iter().filter(|(_, one)| holds(operator, one.value.compare(&constant.value)));
        let expected = passing.map(|(_, one)| one_row(&one.value)).collect();
        let text = format!("SELECT ?r {{ ?s <urn:p> ?r FILTER(?r {operator} {}) }}", constant.literal);
        all.push(Question { text, expected, ordered: false });
        let pairs = graph.pairs().filter(|(a, b)| holds(operator, a.compare(b)));
        let expected = pairs.map(|(a, _)| one_row(a)).collect();
        let text = format!("SELECT ?r {{ ?s <urn:p> ?r ; <urn:q> ?b FILTER(?r {operator} ?b) }}");
        all.push(Question { text, expected, ordered: false });
    }
    all
}

/// Sorts, aggregates and arithmetic, on integers and decimals.
fn computations(graph: &Graph) -> Vec<Question> {
    let mut all = Vec::new();
    let mut sorted: Vec<&Number> = graph.values[0].iter().map(|(_, one)| &one.value).collect();
    sorted.sort_by(|a, b| a.compare(b));
    let value_of = |number: &&Number| exact(number).0.normalized().to_plain_string();
    for (direction, limit) in [("ASC", sorted.len()), ("DESC", sorted.len()), ("ASC", 2), ("DESC", 3)] {
        let mut rows: Vec<String> = sorted.iter().map(value_of).collect();
        if direction == "DESC" {
            rows.reverse();
        }
        rows.truncate(limit);
        let text = format!("SELECT ?r {{ ?s <urn:p> ?r }} ORDER BY {direction}(?r) LIMIT {limit}");
        let expected = rows.into_iter().map(|value| format!("v={value}")).collect();
        all.push(Question { text, expected, ordered: true });
    }
    for aggregate in ["MIN", "MAX", "SUM", "AVG"] {
        let groups = graph.by_subject().into_iter().map(|(subject, numbers)| {
            let sum = numbers.iter().fold(BigDecimal::zero(), |sum, number| sum + exact(number).0);
            let value = match aggregate {
                "MIN" => numbers.iter().map(|number| exact(number).0).min().cloned(),
                "MAX" => numbers.iter().map(|number| exact(number).0).max().cloned(),
                "SUM" => Some(sum),
                _ => quotient(&sum, &BigDecimal::from(numbers.len() as u64)),
            };
            format!("s={subject} v={}", value.unwrap_or_default().normalized().to_plain_string())
        });
        let expected = groups.collect();
        let text = format!("SELECT ?s ({aggregate}(?x) AS ?r) {{ ?s <urn:p> ?x }} GROUP BY ?s");
        all.push(Question { text, expected, ordered: false });
    }
    for operator in ["+", "-", "*", "/"] {
        let expected = (graph.pairs())
            .map(|(a, b)| {
                arithmetic(operator, a, b).map_or("error".to_owned(), |value| format!("r={}", value.text()))
            })
            .collect();
        let text = format!("SELECT ?r {{ ?s <urn:p> ?a ; <urn:q> ?b BIND(?a {operator} ?b AS ?r) }}");
        all.push(Question { text, expected, ordered: false });
    }
    for function in ["-", "ABS", "CEIL", "FLOOR", "ROUND", "xsd:integer", "xsd:decimal", "xsd:double"] {
        let expected = (graph.values[0].iter())
            .map(|(_, one)| format!("r={}", unary(function, &one.value).text()))
            .collect();
        let text = format!(
            "PREFIX xsd: <http://www.w3.org/2001/XMLSchema#> SELECT ?r {{ ?s <urn:p> ?a BIND({function}(?a) AS ?r) }}"
        );
        all.push(Question { text, expected, ordered: false });
    }
    let mut distinct: Vec<String> = sorted
        .iter()
        .map(|number| format!("r={}", Number::Exact(exact(number).0.clone(), false).text()))
        .collect();
    distinct.dedup();
    let text = "SELECT DISTINCT ?r { ?s <urn:p> ?a BIND(?a + 0.0 AS ?r) }".to_owned();
    all.push(Question { text, expected: distinct, ordered: false });
    let numbers = format!("r={} integer", graph.values[0].len());
    let text = "SELECT (COUNT(*) AS ?r) { ?s <urn:p> ?a FILTER(isNumeric(?a)) }".to_owned();
    all.push(Question { text, expected: vec![numbers], ordered: false });
    all
}

/// The rows of a query, as [`Question::expected`] has them: `v=` only the value, `r=` also its datatype.
fn rows(database: &Database, question: &Question, options: &QueryOptions) -> Result<Vec<String>, String> {
    let only_value = question.expected.iter().any(|row| row.contains("v="));
    let answer = database.query_with(&question.text, options).map_err(|error| error.to_string())?;
    let Answer::Solutions(solutions) = answer else { return Err("no solutions".to_owned()) };
    let mut all = Vec::new();
    for row in solutions.rows() {
        let mut text = String::new();
        if let Ok(Some(Term::NamedNode(subject))) = row.get("s") {
            // Writing to a `String` cannot fail.
            let _ = write!(text, "s={} ", subject.as_str().trim_start_matches("urn:v"));
        }
        let value = row.get("r").map_err(|error| error.to_string())?;
        match value.as_ref().map(Number::of) {
            None => text.push_str("error"),
            Some(None) => return Err(format!("no number: {value:?}")),
            Some(Some(Number::Exact(value, _))) if only_value => {
                let _ = write!(text, "v={}", value.normalized().to_plain_string());
            }
            Some(Some(number)) => {
                let _ = write!(text, "r={}", number.text());
            }
        }
        all.push(text);
    }
    Ok(all)
}

/// Runs the case of `seed`.
///
/// # Errors
/// The graph, the query, and the differing rows.
pub(crate) fn case(seed: u64) -> Result<(), String> {
    let mut random = Random::new(seed ^ 0x00AB_5EED);
    let mixed = Graph::new(&mut random, true);
    let exact = Graph::new(&mut random, false);
    let questions = [conditions(&mut random, &mixed), computations(&exact)];
    for (graph, questions) in [mixed, exact].iter().zip(questions) {
        let statements = graph.statements();
        let loaded = [0, statements.len() / 2, statements.len()][random.below(3)];
        let database = crate::partitions::database(random.0);
        let run = || -> vervet::Result<()> {
            database.load_text(Format::Turtle, &statements[..loaded].join("\n"))?;
            database.update(&format!("INSERT DATA {{ {} }}", statements[loaded..].join("\n")))?;
            Ok(())
        };
        run().map_err(|error| format!("seed {seed}: {error}\n{}", statements.join("\n")))?;
        for question in questions {
            for (threads, heavy_from) in crate::CONFIGURATIONS {
                let options = QueryOptions { heavy_from, ..QueryOptions::default().with_threads(threads) };
                let mut found = rows(&database, &question, &options).map_err(|error| {
                    format!("seed {seed}: {error}\n{}\n{}", statements.join("\n"), question.text)
                })?;
                let mut expected = question.expected.clone();
                if !question.ordered {
                    found.sort();
                    expected.sort();
                }
                if found != expected {
                    return Err(format!(
                        "seed {seed}, numbers, {threads} threads, {loaded} statements loaded\n{}\n{}\nvervet:     {found:#?}\nbigdecimal: {expected:#?}",
                        statements.join("\n"),
                        question.text
                    ));
                }
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use oxrdf::NamedNodeRef;

    #[test]
    fn the_judge_divides_as_documented() {
        let number = |text: &str| BigDecimal::from_str(text).expect("digits");
        for (a, b, expected) in [
            ("1", "3", "0.333333333333333333"),
            ("-2", "3", "-0.666666666666666666"),
            ("1", "3000000000", "0.000000000333333333333333333"),
            ("1", "4", "0.25"),
            ("1.0000000000000000000000000001", "3", "0.3333333333333333333333333333"),
            ("0", "7", "0"),
        ] {
            assert_eq!(quotient(&number(a), &number(b)), Some(number(expected)), "{a} / {b}");
        }
        assert_eq!(quotient(&number("1"), &number("0")), None);
    }

    #[test]
    fn generated_numbers_have_their_values() {
        let (mut wide, mut doubles) = (0, 0);
        for seed in 0..2_000 {
            let Generated { literal, value } = number(&mut Random::new(seed), true);
            match (&value, Number::of(&literal.clone().into())) {
                (Number::Exact(a, is), Some(Number::Exact(b, other))) => {
                    assert!(*a == b && *is == other, "{literal}: {a}");
                    wide += usize::from(literal.value().len() > 25);
                }
                (Number::Double(a), Some(Number::Double(b))) => {
                    assert!(a.to_bits() == b.to_bits(), "{literal}");
                    doubles += 1;
                }
                other => panic!("{literal}: {other:?}"),
            }
            let known: [NamedNodeRef<'_>; 5] = [
                xsd::INTEGER,
                xsd::DECIMAL,
                xsd::DOUBLE,
                xsd::NON_NEGATIVE_INTEGER,
                xsd::NON_POSITIVE_INTEGER,
            ];
            assert!(known.contains(&literal.datatype()));
        }
        assert!(wide > 500 && doubles > 200, "{wide} {doubles}");
    }
}
