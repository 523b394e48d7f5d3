//! Differential test of random expressions, aggregates and orders against Oxigraph.
//!
//! Each expression is evaluated three ways: constants folded, constants as columns of stored terms, constants
//! as columns of computed terms. `VERVET_SEED` and `VERVET_CASES` select other runs.
//!
//! The generator avoids these intended differences:
//! * Oxigraph does not preserve lexical forms (`STR("01"^^xsd:integer)` is `1` there) and narrow types
//!   (`DATATYPE("7"^^xsd:int)` is `xsd:integer`), so non-canonical terms occur only where just their value
//!   matters, and results are compared as values.
//! * A comparison with NaN is an error there, and false here (XPath); likewise booleans have an order only
//!   here; and the effective boolean value of an invalid number is an error there, false here (§17.2.2).
//! * A time or date with a zone and one without are never equal there, and incomparable here if they are less
//!   than 14 hours apart. The generator does produce these few cases; the comparison skips them.
//! * `GROUP_CONCAT` keeps a common language tag there; it is a simple literal here (§18.5.1.7).
//! * A date plus a duration is an error there (and a date minus a duration is not).
//! * `BNODE("x")` is one blank node for the whole query there, one for each solution here.
//! * `REPLACE` with a pattern that matches the empty string is an error only here (FORX0003), and patterns
//!   are those of the crate `regex` there; the generator's patterns mean the same in both.
//! * `$1x` in `REPLACE` names a group `1x` there, and is group 1 and an `x` here (XPath).
//! * Numbers have limits there, and quotients such as `0 / 1.5` may be errors; a cast from double
//!   to decimal multiplies doubles there. The comparison allows these.
//! * The order of literals of different types, which is not transitive there.

#![allow(clippy::cast_possible_truncation, reason = "random numbers, of which any part suffices")]

use crate::common::{BASE, PREFIXES, Terms, evaluate, term};
use oxigraph::sparql::{QueryResults, SparqlEvaluator};
use oxigraph::store::Store;
use oxrdf::{Literal, Term};
use oxsdatatypes::{Boolean, DateTime, Decimal, Double, Float, Integer};
use std::cmp::Ordering;
use vervet_algebra::{Aggregate, AggregateKind};
use vervet_expression::{Accumulators, ComputedTerms, Evaluator, SortKey};
use vervet_model::{Id, Multiplicity};

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        // xorshift64* (Vigna 2016).
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 16
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    fn of<'t>(&mut self, list: &[&'t str]) -> &'t str {
        list[self.below(list.len())]
    }

    fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }
}

const NUMBERS: &[&str] = &[
    "0",
    "1",
    "2",
    "-3",
    "42",
    "1000000",
    "9223372036854775807",
    "1.5",
    "0.1",
    "-2.5",
    "'2'^^xsd:decimal",
    "123456789.123456789",
    "'1'^^xsd:double",
    "'-2.5'^^xsd:double",
    "'0.1'^^xsd:double",
    "'1000000000000'^^xsd:double",
    "'3'^^xsd:float",
    "'0.25'^^xsd:float",
];
/// Numbers in forms that decoding does not preserve.
const ODD_NUMBERS: &[&str] = &[
    "'01'^^xsd:integer",
    "'+5'^^xsd:integer",
    "1.50",
    "'7'^^xsd:int",
    "'-9'^^xsd:long",
    "'3'^^xsd:byte",
    "'4'^^xsd:nonNegativeInteger",
    "1.0E0",
    "-2.5E-1",
    "1e3",
    "'1.50'^^xsd:decimal",
    "'00.5'^^xsd:float",
];
const TEXTS: &[&str] = &[
    "''",
    "'a'",
    "'b'",
    "'abc'",
    "'ABC'",
    "'foobar and more'",
    "'größe'",
    "'日本語 text'",
    "'1'",
    "'12'",
    "'-1.5'",
    "'true'",
    "'2024-02-29T10:00:00Z'",
    "'a'@en",
    "'abc'@en",
    "'foobar and more'@fr",
    "'b'@de-at",
    "'x y+z&'",
    "'http://example.org/a'",
    "'\\n\\t'",
    "'1e2'",
];
const RESOURCES: &[&str] = &["ex:a", "ex:b", "<urn:x>", "xsd:integer", "xsd:string", "ex:t"];
const DATES: &[&str] = &[
    "'2024-02-29T10:11:12Z'^^xsd:dateTime",
    "'2024-02-29T10:11:12.5+02:00'^^xsd:dateTime",
    "'1999-12-31T23:59:59'^^xsd:dateTime",
    "'0001-01-01T00:00:00Z'^^xsd:dateTime",
    "'2024-02-29'^^xsd:date",
    "'2024-03-01Z'^^xsd:date",
    "'2024-03-01+05:00'^^xsd:date",
    "'10:00:00'^^xsd:time",
    "'10:00:00.25Z'^^xsd:time",
    "'2024'^^xsd:gYear",
    "'2024-02'^^xsd:gYearMonth",
    "'--02-29'^^xsd:gMonthDay",
    "'---05'^^xsd:gDay",
    "'--12'^^xsd:gMonth",
];
const SPANS: &[&str] = &[
    "'P1Y'^^xsd:yearMonthDuration",
    "'P1D'^^xsd:dayTimeDuration",
    "'PT1H30M'^^xsd:dayTimeDuration",
    "'P1Y2M3DT4H'^^xsd:duration",
    "'-P1M'^^xsd:yearMonthDuration",
];
const OTHERS: &[&str] = &["'x'^^ex:t", "'y'^^ex:t", "true", "false"];
/// Invalid forms of known types; excluded as operands of boolean operators.
const INVALID: &[&str] =
    &["'x'^^xsd:integer", "'maybe'^^xsd:boolean", "'2024-13-01'^^xsd:date", "'1.2.3'^^xsd:decimal"];

fn leaf(r: &mut Random) -> String {
    let list = [NUMBERS, TEXTS, TEXTS, RESOURCES, DATES, SPANS, OTHERS, NUMBERS][r.below(8)];
    r.of(list).to_owned()
}

fn any(r: &mut Random, depth: usize) -> String {
    if depth == 0 {
        return leaf(r);
    }
    let d = depth - 1;
    match r.below(7) {
        0 => leaf(r),
        1 => number(r, d),
        2 => truth(r, d),
        3 => text(r, d),
        4 => date(r, d),
        5 => format!("IF({}, {}, {})", truth(r, d), any(r, d), any(r, d)),
        _ => format!("COALESCE({}, {})", any(r, d), any(r, d)),
    }
}

fn number(r: &mut Random, depth: usize) -> String {
    if r.one_in(25) {
        return leaf(r);
    }
    if depth == 0 {
        return r.of(NUMBERS).to_owned();
    }
    let d = depth - 1;
    // Below an operator only the value of a number matters.
    let operand = |r: &mut Random| if r.one_in(4) { r.of(ODD_NUMBERS).to_owned() } else { number(r, d) };
    match r.below(12) {
        0..=2 => {
            let (a, operator, b) = (operand(r), r.of(&["+", "-", "*"]), operand(r));
            format!("({a} {operator} {b})")
        }
        // No division of doubles by zero, which could yield NaN.
        3 => format!(
            "({} / {})",
            operand(r),
            r.of(&["2", "0", "-3", "1.5", "0.1", "'4'^^xsd:double", "'7'^^xsd:int"])
        ),
        4 => format!("(- {})", operand(r)),
        5 => format!("{}({})", r.of(&["ABS", "CEIL", "FLOOR", "ROUND"]), operand(r)),
        6 => format!("STRLEN({})", text(r, d)),
        7 => format!("{}({})", r.of(&["YEAR", "MONTH", "DAY", "HOURS", "MINUTES", "SECONDS"]), date(r, d)),
        8 => format!("{}({})", r.of(&["xsd:integer", "xsd:decimal", "xsd:float", "xsd:double"]), text(r, d)),
        9 => format!("{}({})", r.of(&["xsd:integer", "xsd:decimal", "xsd:float", "xsd:double"]), operand(r)),
        10 => format!("{}({})", r.of(&["xsd:integer", "xsd:decimal"]), truth(r, d)),
        _ => r.of(NUMBERS).to_owned(),
    }
}

fn text(r: &mut Random, depth: usize) -> String {
    if r.one_in(25) {
        return leaf(r);
    }
    if depth == 0 {
        return r.of(TEXTS).to_owned();
    }
    let d = depth - 1;
    match r.below(14) {
        0 => format!("CONCAT({}, {})", text(r, d), text(r, d)),
        1 => format!("SUBSTR({}, {})", text(r, d), r.of(&["0", "1", "2", "-1", "7", "'x'"])),
        2 => format!(
            "SUBSTR({}, {}, {})",
            text(r, d),
            r.of(&["0", "1", "3", "-2"]),
            r.of(&["0", "1", "4", "-1"])
        ),
        3 => format!("{}({})", r.of(&["UCASE", "LCASE", "ENCODE_FOR_URI"]), text(r, d)),
        4 => format!("{}({}, {})", r.of(&["STRBEFORE", "STRAFTER"]), text(r, d), text(r, d)),
        5 => {
            let (pattern, flags) = (
                r.of(&["a", "[ab]", "(b)(c)?", ".", "x+", "^a", "("]),
                r.of(&["", ", 'i'", ", 's'", ", 'q'"]),
            );
            let replacement =
                if flags.contains('q') { "Z" } else { r.of(&["Z", "", "<$0>", "[$1]", "$2$1"]) };
            // References to groups that do not exist are empty on both sides.
            format!("REPLACE({}, '{pattern}', '{replacement}'{flags})", text(r, d))
        }
        6 => format!("STR({})", any(r, d)),
        7 => format!("xsd:string({})", any(r, d)),
        8 => format!("LANG({})", any(r, d)),
        9 => format!("{}({})", r.of(&["MD5", "SHA1", "SHA256", "SHA384", "SHA512"]), text(r, d)),
        10 => format!("STRLANG({}, {})", text(r, d), r.of(&["'en'", "'EN-gb'", "'!'", "''"])),
        11 => format!("STRDT({}, {})", text(r, d), r.of(&["xsd:string", "ex:t", "'x'"])),
        12 => format!("TZ({})", date(r, d)),
        _ => r.of(TEXTS).to_owned(),
    }
}

fn date(r: &mut Random, depth: usize) -> String {
    if depth == 0 || r.one_in(2) {
        return r.of(DATES).to_owned();
    }
    let d = depth - 1;
    match r.below(7) {
        0 => format!("xsd:dateTime({})", text(r, d)),
        1 => format!(
            "{}({})",
            r.of(&["xsd:date", "xsd:time", "xsd:dateTime", "xsd:gYear", "xsd:gMonthDay"]),
            date(r, d)
        ),
        2 => format!("({} - {})", date(r, d), r.of(SPANS)),
        3 => format!("({} - {})", date(r, d), date(r, d)),
        4 => format!("({} + {})", r.of(SPANS), r.of(SPANS)),
        5 => format!("TIMEZONE({})", date(r, d)),
        _ => r.of(SPANS).to_owned(),
    }
}

fn truth(r: &mut Random, depth: usize) -> String {
    if depth == 0 {
        return r.of(&["true", "false", "(1/0 = 1)", "1", "''", "ex:a", "'a'"]).to_owned();
    }
    let d = depth - 1;
    let comparator = r.of(&["<", "<=", ">", ">="]);
    match r.below(16) {
        0 => format!("({} || {})", truth(r, d), truth(r, d)),
        1 => format!("({} && {})", truth(r, d), truth(r, d)),
        2 => format!("(! {})", truth(r, d)),
        3 | 4 => {
            let operand = |r: &mut Random| match r.below(6) {
                0 => r.of(INVALID).to_owned(),
                1 => r.of(ODD_NUMBERS).to_owned(),
                _ => any(r, d),
            };
            let (a, operator, b) = (operand(r), r.of(&["=", "!="]), operand(r));
            format!("({a} {operator} {b})")
        }
        5 => {
            let operand =
                |r: &mut Random| if r.one_in(3) { r.of(ODD_NUMBERS).to_owned() } else { number(r, d) };
            let (a, b) = (operand(r), operand(r));
            format!("({a} {comparator} {b})")
        }
        6 => format!("({} {comparator} {})", text(r, d), text(r, d)),
        7 => format!("({} {comparator} {})", date(r, d), date(r, d)),
        8 => format!(
            "({} {} ({}, {}, {}))",
            any(r, d),
            r.of(&["IN", "NOT IN"]),
            any(r, d),
            any(r, d),
            any(r, d)
        ),
        9 => format!("sameTerm({}, {})", any(r, d), any(r, d)),
        10 => format!("{}({})", r.of(&["isIRI", "isBLANK", "isLITERAL", "isNUMERIC"]), any(r, d)),
        11 => format!("{}({}, {})", r.of(&["CONTAINS", "STRSTARTS", "STRENDS"]), text(r, d), text(r, d)),
        12 => format!(
            "REGEX({}, '{}'{})",
            text(r, d),
            r.of(&["a", "^[A-Z]", ".b", "o{2}", "(", "ö"]),
            r.of(&["", ", 'i'", ", 'x'", ", 'z'"])
        ),
        13 => format!("LANGMATCHES({}, {})", text(r, d), r.of(&["'*'", "'en'", "'EN'", "''", "'de'"])),
        14 => format!("xsd:boolean({})", any(r, d)),
        _ => format!(
            "({} = {})",
            if r.one_in(2) { format!("DATATYPE({})", any(r, d)) } else { format!("IRI({})", text(r, d)) },
            r.of(RESOURCES)
        ),
    }
}

/// The term in Oxigraph's canonical form of its value.
fn normal(term: Term) -> Term {
    let Term::Literal(literal) = &term else { return term };
    let Some(name) =
        literal.datatype().as_str().strip_prefix("http://www.w3.org/2001/XMLSchema#").map(str::to_owned)
    else {
        return term;
    };
    let lexical = literal.value();
    let normal: Option<Literal> = match name.as_str() {
        "boolean" => lexical.parse::<Boolean>().ok().map(Into::into),
        "decimal" => lexical.parse::<Decimal>().ok().map(Into::into),
        "float" => lexical.parse::<Float>().ok().map(Into::into),
        "double" => lexical.parse::<Double>().ok().map(Into::into),
        "dateTime" => lexical.parse::<DateTime>().ok().map(Into::into),
        "integer" | "int" | "long" | "byte" | "nonNegativeInteger" => {
            lexical.parse::<Integer>().ok().map(Into::into)
        }
        _ => None,
    };
    normal.map_or(term, Into::into)
}

fn oxigraph(store: &Store, query: &str) -> Result<Vec<Option<Term>>, String> {
    let parsed = SparqlEvaluator::new()
        .with_base_iri(BASE)
        .map_err(|error| error.to_string())?
        .parse_query(&format!("{PREFIXES} {query}"))
        .map_err(|error| error.to_string())?;
    let QueryResults::Solutions(solutions) =
        parsed.on_store(store).execute().map_err(|error| error.to_string())?
    else {
        return Err("no solutions".to_owned());
    };
    solutions.map(|solution| Ok(solution.map_err(|e| e.to_string())?.get(0).cloned())).collect()
}

fn seed_and_cases(cases: usize) -> (u64, usize) {
    let number = |name| std::env::var(name).ok().and_then(|value: String| value.parse::<u64>().ok());
    let seed = number("VERVET_SEED").unwrap_or(20_240_229);
    let cases = number("VERVET_CASES").map_or(cases, |cases| cases as usize);
    println!("seed {seed}, {cases} cases");
    (seed, cases)
}

/// The text with each constant of `?v0`, `?v1`... in its place, and the constants.
fn constants_to_columns(text: &str) -> (String, Vec<Term>) {
    let mut constants: Vec<&str> = [NUMBERS, ODD_NUMBERS, TEXTS, DATES, SPANS, OTHERS, INVALID].concat();
    // Longest first, so that no constant matches a prefix of a longer one.
    constants.sort_by_key(|constant| std::cmp::Reverse(constant.len()));
    let (mut out, mut terms) = (String::new(), Vec::new());
    let mut rest = text;
    'next: while let Some(c) = rest.chars().next() {
        let boundary = out.chars().last().is_none_or(|last| matches!(last, '(' | ' '));
        if boundary {
            for constant in &constants {
                if let Some(after) = rest.strip_prefix(constant)
                    && after.chars().next().is_none_or(|next| matches!(next, ')' | ' ' | ','))
                {
                    out.push_str(&format!("?v{}", terms.len()));
                    terms.push(term(constant));
                    rest = after;
                    continue 'next;
                }
            }
        }
        // A text that is not an operand (a pattern, a flag) is kept.
        if c == '\'' {
            let end = rest[1..].find('\'').map_or(rest.len(), |end| end + 2);
            out.push_str(&rest[..end]);
            rest = &rest[end..];
        } else {
            out.push(c);
            rest = &rest[c.len_utf8()..];
        }
    }
    (out, terms)
}

/// Whether the result may be an integer beyond Oxigraph's 64 bits.
fn has_large_integers(text: &str) -> bool {
    let digits = text.split(|c: char| !c.is_ascii_digit()).map(str::len);
    text.contains("9223372036854775807") || digits.sum::<usize>() > 18
}

/// Whether the two are consecutive integers: Oxigraph casts a double to an integer via a decimal, which may
/// be slightly smaller.
fn are_neighbours(a: Option<&Term>, b: Option<&Term>) -> bool {
    let value = |term: Option<&Term>| match term {
        Some(Term::Literal(literal)) if literal.datatype().as_str().ends_with("#integer") => {
            literal.value().parse::<i64>().ok()
        }
        _ => None,
    };
    value(a).zip(value(b)).is_some_and(|(a, b)| a.abs_diff(b) == 1)
}

/// Whether the result is a number that exceeds the limits of Oxigraph's decimals, which is an error there.
fn is_error_there(text: &str, found: Option<&Term>, expected: Option<&Term>) -> bool {
    text.contains(" / ") && found.is_some() && expected.is_none()
}

/// Whether two decimals differ by the rounding of a cast from a double.
fn are_casts(text: &str, a: Option<&Term>, b: Option<&Term>) -> bool {
    let value = |term: Option<&Term>| match term {
        Some(Term::Literal(literal)) if literal.datatype().as_str().ends_with("#decimal") => {
            literal.value().parse::<f64>().ok()
        }
        _ => None,
    };
    text.contains("xsd:decimal(")
        && value(a).zip(value(b)).is_some_and(|(a, b)| (a - b).abs() <= 1e-15 * a.abs())
}

/// Whether the expression may cast a double or float to a text: Oxigraph writes no exponents.
fn may_have_exponents(text: &str) -> bool {
    text.contains("xsd:string(") && ["xsd:double", "xsd:float"].iter().any(|name| text.contains(name))
}

/// Whether the expression may compare times or dates.
fn compares_times(text: &str) -> bool {
    let has = |words: &[&str]| words.iter().any(|word| text.contains(word));
    has(&[" = ", " != ", " IN ("]) && has(&["xsd:time", "xsd:date", "xsd:g"])
}

#[test]
fn random_expressions_have_the_same_value() {
    let (seed, cases) = seed_and_cases(20_000);
    let mut r = Random(seed);
    let store = Store::new().unwrap();
    let empty = Terms::default();
    let (mut values, mut wrong, mut zones, mut large, mut exponents) = (0, 0, 0, 0, 0);
    for case in 0..cases {
        let depth = 1 + r.below(4);
        let text = any(&mut r, depth);
        let expected = match oxigraph(&store, &format!("SELECT ({text} AS ?result) {{}}")) {
            Ok(rows) => rows.into_iter().next().flatten().map(normal),
            Err(error) => panic!("{text}: {error}"),
        };
        values += usize::from(expected.is_some());
        let (with_columns, terms) = constants_to_columns(&text);
        let columns: Vec<Vec<Term>> = terms.iter().map(|term| vec![term.clone(); 2]).collect();
        let stored = Terms::new(terms);
        for (way, found) in [
            ("folded", evaluate(&empty, &text, &[], 1)),
            ("computed", evaluate(&empty, &with_columns, &columns, 2)),
            ("stored", evaluate(&stored, &with_columns, &columns, 2)),
        ] {
            for found in found {
                if found.clone().map(normal) == expected {
                    continue;
                }
                let (ours, theirs) = (found.as_ref(), expected.as_ref());
                if has_large_integers(&text)
                    || are_neighbours(ours, theirs)
                    || is_error_there(&text, ours, theirs)
                    || are_casts(&text, ours, theirs)
                {
                    large += 1;
                } else if compares_times(&text) {
                    zones += 1;
                } else if may_have_exponents(&text) {
                    exponents += 1;
                } else if wrong < 40 {
                    wrong += 1;
                    println!("case {case}, {way}: {text}\n  expected {expected:?}\n  found    {found:?}");
                }
            }
        }
    }
    println!("{values} of {cases} have a value");
    assert_eq!(wrong, 0);
    assert!(large * 20 <= cases, "{large} cases differ, perhaps by integers above 64 bits");
    assert!(zones * 500 <= cases, "{zones} cases differ, perhaps by time zones");
    assert!(exponents * 500 <= cases, "{exponents} cases differ, perhaps by exponents");
    assert!(values * 3 > cases, "too many expressions are errors");
}

#[test]
fn random_aggregates_have_the_same_value() {
    let (seed, cases) = seed_and_cases(3_000);
    let mut r = Random(seed);
    let store = Store::new().unwrap();
    let empty = Terms::default();
    let computed = ComputedTerms::new();
    let evaluator = Evaluator::new(&empty, &computed, crate::common::now(), 1);
    for case in 0..cases {
        let name = r.of(&["COUNT", "SUM", "AVG", "MIN", "MAX", "SAMPLE", "GROUP_CONCAT"]);
        let distinct = r.one_in(3);
        let pool = match name {
            "GROUP_CONCAT" => TEXTS,
            "MIN" | "MAX" => [TEXTS, NUMBERS, RESOURCES, &DATES[..2]][r.below(4)],
            _ => NUMBERS,
        };
        let count = r.below(6);
        let mut values: Vec<&str> = (0..count).map(|_| r.of(pool)).collect();
        if r.one_in(10) {
            values.push("UNDEF");
        }
        if name == "SAMPLE" {
            // SAMPLE may select any value, so there is only one.
            values.truncate(1);
        }
        let rows: Vec<(String, u64)> =
            values.iter().map(|value| ((*value).to_owned(), 1 + r.next() % 3)).collect();
        let listed: Vec<String> =
            rows.iter().flat_map(|(value, times)| vec![format!("({value})"); *times as usize]).collect();
        let word = if distinct { "DISTINCT " } else { "" };
        let separator = if name == "GROUP_CONCAT" { "; SEPARATOR='|'" } else { "" };
        let query = format!(
            "SELECT ({name}({word}?v{separator}) AS ?x) {{ VALUES (?v) {{ {} }} }}",
            listed.join(" ")
        );
        let expected = oxigraph(&store, &query).unwrap_or_else(|error| panic!("{query}: {error}"));
        let mut expected = expected.into_iter().next().flatten().map(normal);
        if name == "GROUP_CONCAT"
            && let Some(Term::Literal(literal)) = &expected
        {
            expected = Some(Literal::from(literal.value()).into());
        }
        let aggregate = Aggregate {
            kind: match name {
                "COUNT" => AggregateKind::Count,
                "SUM" => AggregateKind::Sum,
                "AVG" => AggregateKind::Avg,
                "MIN" => AggregateKind::Min,
                "MAX" => AggregateKind::Max,
                "SAMPLE" => AggregateKind::Sample,
                _ => AggregateKind::GroupConcat { separator: "|".to_owned() },
            },
            expression: Some(crate::common::parse("?v0")),
            distinct,
        };
        let mut accumulators = Accumulators::new(&aggregate, &evaluator).unwrap();
        let column: Vec<Id> = rows
            .iter()
            .map(|(value, _)| match value.as_str() {
                "UNDEF" => Id::UNBOUND,
                value => evaluator.intern(term(value).as_ref()).unwrap(),
            })
            .collect();
        let times: Vec<Multiplicity> = rows.iter().map(|(_, times)| Multiplicity::new(*times)).collect();
        // In two batches, and in a group that is not the first.
        let cut = r.below(column.len() + 1);
        for (part, times) in [(&column[..cut], &times[..cut]), (&column[cut..], &times[cut..])] {
            accumulators.update(&vec![3; part.len()], &[part.to_vec()], Some(times)).unwrap();
        }
        let found = evaluator.term(accumulators.finish(3).unwrap()).unwrap().map(normal);
        let largest = values.iter().filter(|value| **value != "UNDEF").map(|value| match term(value) {
            Term::Literal(literal) => literal.value().parse::<f64>().unwrap_or_default().abs(),
            _ => 0.0,
        });
        let largest = largest.fold(1.0, f64::max);
        assert!(
            close(found.as_ref(), expected.as_ref(), largest) || has_large_integers(&query),
            "case {case}: {query}: {found:?}, not {expected:?}"
        );
    }
}

/// Equal, or doubles that differ only by the rounding of repeated addition of numbers up to `largest`.
fn close(a: Option<&Term>, b: Option<&Term>, largest: f64) -> bool {
    if a == b {
        return true;
    }
    match (a, b) {
        (Some(Term::Literal(a)), Some(Term::Literal(b))) if a.datatype() == b.datatype() => {
            let is_float = ["#double", "#float"].iter().any(|name| a.datatype().as_str().ends_with(name));
            match (a.value().parse::<f64>(), b.value().parse::<f64>()) {
                (Ok(a), Ok(b)) => is_float && (a - b).abs() <= 1e-5 * largest,
                _ => false,
            }
        }
        _ => false,
    }
}

#[test]
fn random_orders_are_the_same() {
    let (seed, cases) = seed_and_cases(1_000);
    let mut r = Random(seed);
    let store = Store::new().unwrap();
    let empty = Terms::default();
    let computed = ComputedTerms::new();
    let evaluator = Evaluator::new(&empty, &computed, crate::common::now(), 1);
    let mixed = [RESOURCES, &["UNDEF", "'a'", "'b'@en", "'abc'"]].concat();
    let pools = [NUMBERS, TEXTS, RESOURCES, &DATES[..2], &DATES[4..5], &OTHERS[..2], &OTHERS[2..], &mixed];
    for _ in 0..cases {
        let pool = pools[r.below(pools.len())];
        let count = 1 + r.below(8);
        let mut values: Vec<&str> = (0..count).map(|_| r.of(pool)).collect();
        let listed: Vec<String> = values.iter().map(|value| format!("({value})")).collect();
        let query = format!("SELECT ?v {{ VALUES (?v) {{ {} }} }} ORDER BY ?v", listed.join(" "));
        let expected: Vec<_> =
            oxigraph(&store, &query).unwrap().into_iter().map(|term| term.map(normal)).collect();
        let id = |value: &str| match value {
            "UNDEF" => Id::UNBOUND,
            value => evaluator.intern(term(value).as_ref()).unwrap(),
        };
        values.sort_by_cached_key(|value| SortKey::new(&evaluator, id(value)).unwrap());
        let found: Vec<_> =
            values.iter().map(|value| evaluator.term(id(value)).unwrap().map(normal)).collect();
        assert_eq!(found, expected, "{query}");
    }
}

#[test]
fn the_order_is_total_and_ids_agree_with_sort_keys() {
    let empty = Terms::default();
    let computed = ComputedTerms::new();
    let evaluator = Evaluator::new(&empty, &computed, crate::common::now(), 1);
    let texts =
        [NUMBERS, ODD_NUMBERS, TEXTS, RESOURCES, DATES, SPANS, OTHERS, INVALID, &["'NaN'^^xsd:double"]]
            .concat();
    let mut ids: Vec<Id> = texts.iter().map(|text| evaluator.intern(term(text).as_ref()).unwrap()).collect();
    ids.push(Id::UNBOUND);
    let keys: Vec<SortKey> = ids.iter().map(|&id| SortKey::new(&evaluator, id).unwrap()).collect();
    for (i, a) in keys.iter().enumerate() {
        for (j, b) in keys.iter().enumerate() {
            assert_eq!(a.cmp(b), b.cmp(a).reverse());
            assert_eq!(evaluator.compare(ids[i], ids[j]).unwrap(), a.cmp(b), "{:?} {:?}", ids[i], ids[j]);
            for c in &keys {
                if a.cmp(b) != Ordering::Greater && b.cmp(c) != Ordering::Greater {
                    assert_ne!(a.cmp(c), Ordering::Greater, "{a:?} {b:?} {c:?}");
                }
            }
        }
    }
}
