//! The limits of a query are checked within a batch: each function, operator and aggregate stops after a
//! bounded amount of work when the query is cancelled, without a clock.

use crate::common::{Terms, now, parse};
use oxrdf::vocab::xsd;
use oxrdf::{Literal, NamedNode};
use std::fmt::Write;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use vervet_algebra::{Aggregate, AggregateKind, Comparator, Expression, Function, Variable};
use vervet_expression::{Accumulators, CompiledExpression, ComputedTerms, Evaluator, Interrupt};
use vervet_model::{Error, ErrorKind, Id, Result};

/// A query that is cancelled at the check after `allowed` others, and has `room` bytes.
struct Cancelled {
    allowed: usize,
    checks: AtomicUsize,
    room: u64,
}

impl Cancelled {
    fn after(allowed: usize) -> Self {
        Self { allowed, checks: AtomicUsize::new(0), room: u64::MAX }
    }
}

impl Interrupt for Cancelled {
    fn check(&self) -> Result<()> {
        match self.checks.fetch_add(1, Relaxed) < self.allowed {
            true => Ok(()),
            false => Err(Error::new(ErrorKind::Cancelled, "the query was cancelled")),
        }
    }

    fn check_room(&self, bytes: u64) -> Result<()> {
        match bytes <= self.room {
            true => Ok(()),
            false => Err(Error::new(ErrorKind::MemoryLimit, format!("{bytes} bytes"))),
        }
    }
}

/// Columns: texts, wide integers, dates, IRIs; each row has other terms.
fn columns(snapshot: &mut Terms, rows: usize, text_bytes: usize, digits: usize) -> Vec<Vec<Id>> {
    let mut columns = vec![Vec::new(); 4];
    for row in 0..rows {
        let text = format!("{}{row}", "ab".repeat(text_bytes / 2));
        let digits = format!("{row}{}", "7".repeat(digits));
        let date = format!("2024-02-29T12:34:56.{row:06}Z");
        let iri = NamedNode::new_unchecked(format!("http://example.org/{row}"));
        columns[0].push(snapshot.add(Literal::from(text).into()));
        columns[1].push(snapshot.add(Literal::new_typed_literal(digits, xsd::INTEGER).into()));
        columns[2].push(snapshot.add(Literal::new_typed_literal(date, xsd::DATE_TIME).into()));
        columns[3].push(snapshot.add(iri.into()));
    }
    columns
}

fn variable(number: u16) -> Expression {
    Expression::Variable(Variable(number))
}

fn text(text: &str) -> Expression {
    Expression::Constant(Literal::from(text).into())
}

/// Arguments for which a function computes a value.
fn arguments(function: &Function) -> Vec<Expression> {
    let (a_text, number, date, iri) = (|| variable(0), || variable(1), || variable(2), || variable(3));
    match function {
        Function::Rand | Function::Uuid | Function::StrUuid | Function::Now => Vec::new(),
        Function::Str
        | Function::Lang
        | Function::Datatype
        | Function::StrLen
        | Function::UCase
        | Function::LCase
        | Function::EncodeForUri
        | Function::Md5
        | Function::Sha1
        | Function::Sha256
        | Function::Sha384
        | Function::Sha512
        | Function::LangDir
        | Function::HasLang
        | Function::HasLangDir
        | Function::IsTriple
        | Function::IsIri
        | Function::IsBlank
        | Function::IsLiteral
        | Function::IsNumeric
        | Function::EqualityKey
        | Function::Iri { .. }
        | Function::BNode => vec![a_text()],
        Function::Abs | Function::Ceil | Function::Floor | Function::Round => vec![number()],
        Function::Concat => vec![a_text(), text("x")],
        Function::SubStr => {
            vec![a_text(), Expression::Constant(Literal::from(2).into())]
        }
        Function::LangMatches
        | Function::Contains
        | Function::StrStarts
        | Function::StrEnds
        | Function::StrBefore
        | Function::StrAfter
        | Function::Regex
        | Function::TextMatches
        | Function::TextScore => vec![a_text(), text("c")],
        Function::StrLang => vec![a_text(), text("en")],
        Function::StrDt => vec![a_text(), Expression::Constant(xsd::ANY_URI.into_owned().into())],
        Function::StrLangDir => vec![a_text(), text("en"), text("ltr")],
        Function::Replace => vec![a_text(), text("b(a?)"), text("-$1-")],
        Function::Year
        | Function::Month
        | Function::Day
        | Function::Hours
        | Function::Minutes
        | Function::Seconds
        | Function::Timezone
        | Function::Tz => vec![date()],
        Function::Triple => vec![iri(), iri(), a_text()],
        Function::Subject | Function::Predicate | Function::Object => {
            vec![Expression::Call(Function::Triple, vec![iri(), iri(), a_text()])]
        }
        Function::Cast(_) => vec![number()],
        other => panic!("{other:?} needs arguments"),
    }
}

fn functions() -> Vec<Function> {
    use Function::*;
    let mut all = vec![
        Str,
        Lang,
        LangMatches,
        Datatype,
        BNode,
        Rand,
        Abs,
        Ceil,
        Floor,
        Round,
        Concat,
        SubStr,
        StrLen,
        Replace,
        UCase,
        LCase,
        EncodeForUri,
        Contains,
        StrStarts,
        StrEnds,
        StrBefore,
        StrAfter,
        Year,
        Month,
        Day,
        Hours,
        Minutes,
        Seconds,
        Timezone,
        Tz,
        Uuid,
        StrUuid,
        Md5,
        Sha1,
        Sha256,
        Sha384,
        Sha512,
        StrLang,
        LangDir,
        HasLang,
        HasLangDir,
        StrLangDir,
        IsTriple,
        Triple,
        Subject,
        Predicate,
        Object,
        StrDt,
        IsIri,
        IsBlank,
        IsLiteral,
        IsNumeric,
        Regex,
        EqualityKey,
        TextMatches,
        TextScore,
        Iri { base: Some("http://example.org/".to_owned()) },
    ];
    all.extend([xsd::STRING, xsd::DECIMAL, xsd::DOUBLE].map(|datatype| Cast(datatype.into_owned())));
    all
}

fn operators() -> Vec<Expression> {
    let two = |make: fn(Box<Expression>, Box<Expression>) -> Expression| {
        make(Box::new(variable(1)), Box::new(text("7")))
    };
    let boxed = |number| Box::new(variable(number));
    let mut operators = vec![
        two(Expression::Add),
        two(Expression::Subtract),
        two(Expression::Multiply),
        two(Expression::Divide),
        two(Expression::Equal),
        two(Expression::SameTerm),
        Expression::Plus(boxed(1)),
        Expression::Minus(boxed(1)),
        Expression::Not(boxed(0)),
        Expression::Or(vec![variable(3), variable(2)]),
        Expression::And(vec![variable(0), variable(0)]),
        Expression::Bound(Variable(0)),
        Expression::In(boxed(0), vec![variable(1), variable(2)]),
        Expression::If(boxed(0), boxed(1), boxed(2)),
        Expression::Coalesce(vec![Expression::Unbound, variable(1)]),
    ];
    for comparator in
        [Comparator::Less, Comparator::LessOrEqual, Comparator::Greater, Comparator::GreaterOrEqual]
    {
        operators.push(Expression::Compare(comparator, boxed(0), Box::new(text("b"))));
    }
    operators
}

/// The rows that a cancelled evaluation has computed; `None`: it was not stopped.
fn rows_when_cancelled(
    expression: &Expression,
    snapshot: &Terms,
    columns: &[Vec<Id>],
    checks: usize,
) -> Option<usize> {
    let computed = ComputedTerms::new();
    // Constants are compiled without limits.
    let free = Evaluator::new(snapshot, &computed, now(), 7);
    let compiled = CompiledExpression::new(expression, &free).expect("it compiles");
    let cancelled = Cancelled::after(checks);
    let evaluator = Evaluator::new(snapshot, &computed, now(), 7).with_interrupt(&cancelled);
    let mut out = Vec::new();
    match compiled.evaluate(&evaluator, columns, columns[0].len(), &mut out) {
        Ok(()) => None,
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::Cancelled, "{expression:?}");
            Some(out.len())
        }
    }
}

/// All functions and operators, on short terms: within a few thousand rows.
#[test]
fn every_function_stops_when_the_query_is_cancelled() {
    const ROWS: usize = 1 << 13;
    let mut snapshot = Terms::default();
    let columns = columns(&mut snapshot, ROWS, 20, 20);
    let calls = functions().into_iter().map(|function| {
        let arguments = arguments(&function);
        Expression::Call(function, arguments)
    });
    for expression in calls.chain(operators()) {
        let rows = rows_when_cancelled(&expression, &snapshot, &columns, 0);
        assert!(rows.is_some_and(|rows| rows <= ROWS / 2), "{expression:?}: {rows:?} rows");
    }
}

/// Functions that read or write a whole text, on texts of a megabyte: within a few rows.
#[test]
fn functions_of_long_texts_stop_within_rows() {
    let mut snapshot = Terms::default();
    let columns = columns(&mut snapshot, 32, 1 << 20, 10);
    for text in [
        "STRLEN(?v0)",
        "UCASE(?v0)",
        "LCASE(?v0)",
        "ENCODE_FOR_URI(?v0)",
        "CONCAT(?v0, 'a')",
        "SUBSTR(?v0, 3)",
        "STRBEFORE(?v0, 'c')",
        "STRAFTER(?v0, 'b')",
        "CONTAINS(?v0, 'c')",
        "STRSTARTS(?v0, 'c')",
        "STRENDS(?v0, 'c')",
        "SHA256(?v0)",
        "MD5(?v0)",
        "STR(?v0)",
        "?v0 < 'abc'",
        "?v0 = CONCAT(?v0, 'a')",
        "xsd:integer(?v0)",
        "REPLACE(?v0, 'b', 'c')",
        "REPLACE(?v0, '(a)(b)', '$2$1')",
        "REGEX(?v0, 'c')",
        "REGEX(?v0, '([ab]{30}[a-b]*){20}x')",
        "REGEX(?v0, '[ab]*a[ab]{12}c')",
        "STRDT(?v0, xsd:anyURI)",
    ] {
        let rows = rows_when_cancelled(&parse(text), &snapshot, &columns, 0);
        assert!(rows.is_some_and(|rows| rows <= 2), "{text}: {rows:?} rows");
    }
}

/// Arithmetic, comparisons and casts of numbers of 9,000 digits: within a few rows.
#[test]
fn wide_numbers_stop_within_rows() {
    let mut snapshot = Terms::default();
    let columns = columns(&mut snapshot, 32, 10, 9_000);
    for text in [
        "?v1 / 3.0",
        "?v1 / 3.0 / 3.0 / 3.0",
        "?v1 + 1",
        "?v1 * 2",
        "ABS(?v1)",
        "ROUND(?v1)",
        "STR(?v1 + 1)",
        "xsd:double(?v1)",
        "xsd:decimal(?v1)",
        "?v1 < 1.5e0",
        "?v1 = 1.5e0",
        "?v1 > ?v1 + 1",
        "?v1 IN (?v1 + 1, ?v1 + 2, ?v1 + 3)",
        "SUBSTR('abc', ?v1)",
    ] {
        let rows = rows_when_cancelled(&parse(text), &snapshot, &columns, 0);
        assert!(rows.is_some_and(|rows| rows <= 2), "{text}: {rows:?} rows");
    }
}

/// The members of `IN`, the operands of `CONCAT`, and patterns that are computed for each row.
#[test]
fn many_operands_and_patterns_stop_within_rows() {
    let mut snapshot = Terms::default();
    let columns = columns(&mut snapshot, 32, 10, 5);
    let mut sums = String::new();
    for number in 1..1_000 {
        write!(sums, "{}?v1 + {number}.5", if sums.is_empty() { "" } else { ", " }).unwrap();
    }
    let pattern = "\\\\p{L}\\\\d".repeat(500);
    for text in [
        format!("?v1 IN ({sums})"),
        format!("COALESCE(1/0, ?v1 NOT IN ({sums}))"),
        format!("REGEX('aaaa', CONCAT('[{pattern}]', STR(?v1)))"),
        format!("REPLACE('aaaa', CONCAT('[{pattern}]', STR(?v1)), 'b')"),
    ] {
        let rows = rows_when_cancelled(&parse(&text), &snapshot, &columns, 0);
        assert!(rows.is_some_and(|rows| rows <= 4), "{}: {rows:?} rows", &text[..40]);
    }
}

/// Constant parts are computed when an expression is compiled.
#[test]
fn compilation_stops_when_the_query_is_cancelled() {
    let (snapshot, computed) = (Terms::default(), ComputedTerms::new());
    let cancelled = Cancelled::after(0);
    let evaluator = Evaluator::new(&snapshot, &computed, now(), 7).with_interrupt(&cancelled);
    for text in ["1 + 2", "CONCAT('a', 'b')", "REGEX(?v0, '(a{100}){100}')", "REGEX('a', '[a-z]')"] {
        let stopped = CompiledExpression::new(&parse(text), &evaluator).map(|_| ());
        assert_eq!(stopped.unwrap_err().kind(), ErrorKind::Cancelled, "{text}");
    }
}

/// Aggregates of long texts and wide numbers stop within a batch, at either limit.
#[test]
fn aggregates_stop_within_a_batch() {
    const ROWS: usize = 64;
    let mut snapshot = Terms::default();
    let columns = columns(&mut snapshot, ROWS, 1 << 18, 9_000);
    let concat = || AggregateKind::GroupConcat { separator: ", ".to_owned() };
    for (kind, text, grows) in [
        (AggregateKind::Sum, "?v1", false),
        (AggregateKind::Avg, "?v1 / 3", false),
        (AggregateKind::Min, "?v1", false),
        (AggregateKind::Max, "?v0", true),
        (AggregateKind::Count, "?v0 > 'a'", false),
        (AggregateKind::Sample, "UCASE(?v0)", false),
        (concat(), "?v0", true),
    ] {
        for distinct in [false, true] {
            let aggregate = Aggregate { kind: kind.clone(), expression: Some(parse(text)), distinct };
            let computed = ComputedTerms::new();
            let cancelled = Cancelled::after(0);
            let evaluator = Evaluator::new(&snapshot, &computed, now(), 7).with_interrupt(&cancelled);
            let mut all = Accumulators::new(&aggregate, &evaluator).expect("it compiles");
            let stopped = all.update(&[0; ROWS], &columns, None);
            let kind_of = |stopped: Result<()>| stopped.map_err(|error| error.kind());
            assert_eq!(kind_of(stopped), Err(ErrorKind::Cancelled), "{kind:?} {distinct}");
            // One group for each row, so that each holds a text or a key.
            let full = Cancelled { room: 1 << 20, ..Cancelled::after(usize::MAX) };
            let evaluator = Evaluator::new(&snapshot, &computed, now(), 7).with_interrupt(&full);
            let mut all = Accumulators::new(&aggregate, &evaluator).expect("it compiles");
            let groups: Vec<u32> = (0..64).chain(0..64).collect();
            let twice = |column: &Vec<Id>| [column.clone(), column.iter().rev().copied().collect()].concat();
            let stopped = all.update(&groups, &columns.iter().map(twice).collect::<Vec<_>>(), None);
            let expected = if grows { Err(ErrorKind::MemoryLimit) } else { Ok(()) };
            assert_eq!(kind_of(stopped), expected, "{kind:?} {distinct}");
        }
    }
}

/// Nested `CONCAT`s hold one unfinished text each.
#[test]
fn unfinished_texts_count_against_the_memory_cap() {
    let mut snapshot = Terms::default();
    let columns = columns(&mut snapshot, 1, 1 << 20, 5);
    let text = (0..20).fold("''".to_owned(), |inner, _| format!("CONCAT(?v0, {inner})"));
    let run = |room| {
        let (computed, limits) = (ComputedTerms::new(), Cancelled { room, ..Cancelled::after(usize::MAX) });
        let evaluator = Evaluator::new(&snapshot, &computed, now(), 7).with_interrupt(&limits);
        let compiled = CompiledExpression::new(&parse(&format!("STRLEN({text})")), &evaluator).unwrap();
        let mut out = Vec::new();
        // Twice, so that what is held is released.
        compiled.evaluate(&evaluator, &columns, 1, &mut out)?;
        compiled.evaluate(&evaluator, &columns, 1, &mut out)
    };
    assert_eq!(run(10 << 20).map_err(|error| error.kind()), Err(ErrorKind::MemoryLimit));
    assert_eq!(run(500 << 20).map_err(|error| error.kind()), Ok(()));
}

/// Filters that ids decide look at no limits: their work is constant for each row.
#[test]
fn filters_of_ids_check_nothing() {
    let mut snapshot = Terms::default();
    let columns = columns(&mut snapshot, 1_000, 10, 5);
    let computed = ComputedTerms::new();
    let cancelled = Cancelled::after(0);
    let evaluator = Evaluator::new(&snapshot, &computed, now(), 7).with_interrupt(&cancelled);
    for text in ["?v1 > 500", "?v1 = 500", "SAMETERM(?v0, 'a')", "?v1 > 100 && ?v1 < 900"] {
        let compiled = CompiledExpression::new(&parse(text), &evaluator).unwrap();
        compiled.filter(&evaluator, &columns, 1_000, &mut Vec::new()).unwrap();
    }
}
