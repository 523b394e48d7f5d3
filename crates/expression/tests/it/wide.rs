//! Integers and decimals of any length. The expected values are worked by hand from XSD 1.1 part 2 and XPath
//! F&O 3.1, on numbers whose digits show the result.

use crate::common::{Terms, evaluate, now, parse, term};
use oxrdf::{Literal, Term, vocab::xsd};
use std::cmp::Ordering;
use std::time::Instant;
use vervet_algebra::{Aggregate, AggregateKind};
use vervet_expression::{Accumulators, ComputedTerms, DIGITS_MAX, Evaluator};
use vervet_model::{Id, Multiplicity};

/// `error`, or a term in SPARQL's syntax; constants folded, and as columns of computed and of stored terms.
fn check(cases: &[(&str, &str)]) {
    for (text, expected) in cases {
        let expected = (*expected != "error").then(|| term(expected));
        assert_eq!(evaluate(&Terms::default(), text, &[], 1), [expected], "{text}");
    }
}

/// Each relation between two numbers, as constants and as stored terms.
fn check_order(a: &str, b: &str, order: Ordering) {
    let columns = [vec![term(a)], vec![term(b)]];
    let stored = Terms::new(columns.iter().flatten().cloned());
    for (operator, holds) in [
        ("=", order.is_eq()),
        ("!=", order.is_ne()),
        ("<", order.is_lt()),
        ("<=", order.is_le()),
        (">", order.is_gt()),
        (">=", order.is_ge()),
    ] {
        let expected = Some(term(if holds { "true" } else { "false" }));
        let text = format!("{a} {operator} {b}");
        assert_eq!(evaluate(&Terms::default(), &text, &[], 1), std::slice::from_ref(&expected), "{text}");
        let found = evaluate(&stored, &format!("?v0 {operator} ?v1"), &columns, 1);
        assert_eq!(found, [expected], "{text}, stored");
    }
    let sorts = |a: &str, b: &str| {
        let computed = ComputedTerms::new();
        let evaluator = Evaluator::new(&stored, &computed, now(), 1);
        let [a, b] = [a, b].map(|text| evaluator.intern(term(text).as_ref()).expect("no limit"));
        evaluator.compare(a, b).expect("no limit")
    };
    assert_eq!((sorts(a, b), sorts(b, a)), (order, order.reverse()), "{a} {b}");
}

/// The factor of a conversion from degrees to turns, as QUDT has it.
const TURN: &str = "0.0002777777777777777777777777777777778";
const SEXTILLION: &str = "1000000000000000000000.0";

#[test]
fn wide_literals_are_numbers() {
    check(&[
        ("isNumeric(1000000000000000000000.0)", "true"),
        ("isNumeric(0.0002777777777777777777777777777777778)", "true"),
        ("isNumeric(123456789012345678901234567890123456789012345678901234567890)", "true"),
        ("isNumeric('-00000000000000000000000000000000000000000000000000000001'^^xsd:integer)", "true"),
        ("isNumeric('+.0000000000000000000000000000000000000000000000000001'^^xsd:decimal)", "true"),
        ("isNumeric('99999999999999999999999999999999999999999'^^xsd:positiveInteger)", "true"),
        ("isNumeric('99999999999999999999999999999999999999999'^^xsd:long)", "false"),
        ("isNumeric('1e30'^^xsd:decimal)", "false"),
        ("isNumeric('100000000000000000000000000000000000000000.5'^^xsd:integer)", "false"),
        ("isNumeric('1000000000000000000000000000000000000000000-'^^xsd:integer)", "false"),
        ("isNumeric('1000000000000000000000000000000000000000000 '^^xsd:integer)", "false"),
        ("isNumeric('.'^^xsd:decimal)", "false"),
        ("isNumeric('-'^^xsd:decimal)", "false"),
        ("isNumeric('1.0000000000000000000000000000000000000000.0'^^xsd:decimal)", "false"),
        // A term keeps its form, a computed value has the canonical form.
        ("STR(1000000000000000000000.0)", "'1000000000000000000000.0'"),
        ("STR(+1000000000000000000000.50)", "'1000000000000000000000.5'"),
        ("DATATYPE(100000000000000000000000000000000000000000)", "xsd:integer"),
        ("DATATYPE(100000000000000000000000000000000000000000.0 + 0)", "xsd:decimal"),
        ("IF(100000000000000000000000000000000000000000, 1, 2)", "1"),
        ("!(0.0000000000000000000000000000000000000001)", "false"),
        ("!(0.0000000000000000000000000000000000000000)", "true"),
    ]);
}

#[test]
fn wide_numbers_have_an_order() {
    use Ordering::{Equal, Greater, Less};
    for (a, b, order) in [
        (TURN, "1", Less),
        (TURN, "0.0002777777777777777777777777777777777", Greater),
        (TURN, "0.00027777777777777777777777777777777780", Equal),
        (TURN, SEXTILLION, Less),
        (SEXTILLION, "1000000000000000000000", Equal),
        (SEXTILLION, "3.6", Greater),
        ("-0.0002777777777777777777777777777777778", "0", Less),
        ("-1000000000000000000000.5", "-1000000000000000000000.4", Less),
        ("170141183460469231731687303715884105727", "170141183460469231731687303715884105728", Less),
        (
            "170141183460469231731687303715884105728",
            "'170141183460469231731687303715884105728.0'^^xsd:decimal",
            Equal,
        ),
        ("-170141183460469231731687303715884105729", "-170141183460469231731687303715884105728", Less),
        // Two narrow numbers of different types, one beyond the range of the other.
        ("100000000000000000000000", "5.5", Greater),
        ("100000000000000000000000", "100000000000000000000000.0", Equal),
        ("'00000000000000000000000000000000000000000000000000000007'^^xsd:integer", "7.0", Equal),
        // Doubles: the other number is rounded.
        (SEXTILLION, "1e21", Equal),
        (SEXTILLION, "2e21", Less),
        (TURN, "1e0", Less),
        (TURN, "-1e300", Greater),
        ("0.1", "1e-1", Equal),
        ("'100000000000000000'^^xsd:decimal", "1e17", Equal),
        // A number is never infinite.
        (SEXTILLION, "'INF'^^xsd:double", Less),
        (SEXTILLION, "'-INF'^^xsd:double", Greater),
        (SEXTILLION, "'INF'^^xsd:float", Less),
    ] {
        check_order(a, b, order);
    }
    let huge = format!("1{}", "0".repeat(400));
    check_order(&huge, "'INF'^^xsd:double", Less);
    check_order(&format!("-{huge}"), "'-INF'^^xsd:double", Greater);
    check_order(&huge, "1e308", Greater);
    check_order(&huge, "'INF'^^xsd:float", Less);
    check(&[("1000000000000000000000.0 = 'NaN'^^xsd:double", "false")]);
    // Rounded they are equal, but a sort must be transitive.
    let computed = ComputedTerms::new();
    let empty = Terms::default();
    let evaluator = Evaluator::new(&empty, &computed, now(), 1);
    let ids = ["9007199254740992.0e0", "9007199254740993", "1e30", "1000000000000000019884624838657"]
        .map(|text| evaluator.intern(term(text).as_ref()).expect("no limit"));
    for pair in ids.windows(2) {
        assert_eq!(evaluator.compare(pair[0], pair[1]).expect("no limit"), Less);
        assert_eq!(evaluator.compare(pair[1], pair[0]).expect("no limit"), Greater);
    }
}

#[test]
fn a_sort_of_wide_and_narrow_numbers_is_one_order() {
    let sorted = [
        "'-INF'^^xsd:double",
        "-1000000000000000000000000000000000000000000000000000000000000",
        "-1e50",
        "-170141183460469231731687303715884105729.5",
        "-170141183460469231731687303715884105729",
        "-1000000000000000000000.1",
        "-1000000000000000000000",
        "-3.6",
        "-0.0000000000000000000000000000000000000000000000002",
        "-0.0000000000000000000000000000000000000000000000001",
        "0",
        "1e-300",
        "0.0000000000000000000000000000000000000000000000001",
        TURN,
        "1e-3",
        "0.1",
        "0.1000000000000000000000000000000000000001",
        "1",
        "170141183460469231731.5",
        "1e21",
        "1000000000000000000000.000000000000000000000000001",
        "1000000000000000000001",
        "170141183460469231731687303715884105728",
        "1e300",
        "'INF'^^xsd:double",
        "'NaN'^^xsd:double",
    ];
    let (snapshot, computed) =
        (Terms::new(sorted.iter().step_by(2).map(|text| term(text))), ComputedTerms::new());
    let evaluator = Evaluator::new(&snapshot, &computed, now(), 1);
    let ids = sorted.map(|text| evaluator.intern(term(text).as_ref()).expect("no limit"));
    for (a, &first) in ids.iter().enumerate() {
        for (b, &second) in ids.iter().enumerate() {
            assert_eq!(
                evaluator.compare(first, second).expect("no limit"),
                a.cmp(&b),
                "{} {}",
                sorted[a],
                sorted[b]
            );
        }
    }
}

#[test]
fn arithmetic_of_wide_numbers_is_exact() {
    check(&[
        ("0.1 + 0.0002777777777777777777777777777777778", "0.1002777777777777777777777777777777778"),
        ("1000000000000.0 * 1000000000000.0", "'1000000000000000000000000'^^xsd:decimal"),
        ("1000000000000000000000.0 - 1000000000000000000000.0", "'0'^^xsd:decimal"),
        ("1000000000000000000000.5 - 1000000000000000000000", "0.5"),
        ("99999999999999999999999999999999999999999999 + 1", "100000000000000000000000000000000000000000000"),
        ("100000000000000000000000000000000000000000000 - 1", "99999999999999999999999999999999999999999999"),
        ("11111111111111111111 * 11111111111111111111", "123456790123456790120987654320987654321"),
        ("0.1234567890 * 0.1234567890", "0.015241578750190521"),
        ("0.000000000000000001 * 0.000000000000000001", "0.000000000000000000000000000000000001"),
        ("1000000000000000000000.0 + 1e0", "'1000000000000000000000'^^xsd:double"),
        ("0.0000000000000000000000000000000000000001 + '1'^^xsd:float", "'1'^^xsd:float"),
        ("-1000000000000000000000.0", "'-1000000000000000000000'^^xsd:decimal"),
        ("-(-170141183460469231731687303715884105727 - 1)", "170141183460469231731687303715884105728"),
        ("ABS(-1000000000000000000000.5)", "1000000000000000000000.5"),
        ("ABS(-170141183460469231731687303715884105728)", "170141183460469231731687303715884105728"),
        ("+(1000000000000000000000.50)", "1000000000000000000000.5"),
        // Halves are rounded up (F&O 4.4.4).
        ("ROUND(1000000000000000000000.5)", "'1000000000000000000001'^^xsd:decimal"),
        ("ROUND(-1000000000000000000000.5)", "'-1000000000000000000000'^^xsd:decimal"),
        ("ROUND(-1000000000000000000000.50000000000000000000001)", "'-1000000000000000000001'^^xsd:decimal"),
        ("ROUND(0.49999999999999999999999999)", "'0'^^xsd:decimal"),
        ("CEIL(1000000000000000000000.1)", "'1000000000000000000001'^^xsd:decimal"),
        ("CEIL(-1000000000000000000000.1)", "'-1000000000000000000000'^^xsd:decimal"),
        ("CEIL(0.0000000000000000000000000001)", "'1'^^xsd:decimal"),
        ("FLOOR(1000000000000000000000.1)", "'1000000000000000000000'^^xsd:decimal"),
        ("FLOOR(-1000000000000000000000.1)", "'-1000000000000000000001'^^xsd:decimal"),
        ("FLOOR(-0.0000000000000000000000000001)", "'-1'^^xsd:decimal"),
        ("FLOOR(100000000000000000000000000000000000000000)", "100000000000000000000000000000000000000000"),
        ("170141183460469231731.5 + 1", "170141183460469231732.5"),
        ("ROUND(170141183460469231731.5)", "'170141183460469231732'^^xsd:decimal"),
    ]);
}

#[test]
fn quotients_are_cut_after_18_digits() {
    check(&[
        ("1 / 3", "0.333333333333333333"),
        ("2 / 3", "0.666666666666666666"),
        ("-2 / 3", "-0.666666666666666666"),
        ("0 / 1.5", "'0'^^xsd:decimal"),
        (
            "100000000000000000000000000000000000000000 / 4",
            "'25000000000000000000000000000000000000000'^^xsd:decimal",
        ),
        (
            "100000000000000000000000000000000000000000 / 3",
            "33333333333333333333333333333333333333333.333333333333333333",
        ),
        ("1 / 1000000000000000000000.0", "0.000000000000000000001"),
        // 18 significant digits below 10^-9.
        ("1 / 3000000000", "0.000000000333333333333333333"),
        ("1 / 3000000000000000000000", "0.000000000000000000000333333333333333333"),
        ("2 / 300000000", "0.000000006666666666"),
        // As many fraction digits as an operand.
        (
            "0.0000000000000000000000000000000001 / 0.0000000000000000000000000000000003",
            "0.3333333333333333333333333333333333",
        ),
        ("1.0000000000000000000000000000 / 3", "0.333333333333333333"),
        ("1.0000000000000000000000000001 / 3", "0.3333333333333333333333333333"),
        // The operand's 40 digits are more than 18 significant ones.
        (
            "0.0000000000000000000000000000000000000001 + 0.0000000000001 / 3",
            "0.0000000000000333333333333333333000000001",
        ),
        ("0.0000000000100000000000000000000000000001 / 3", "0.0000000000033333333333333333333333333333"),
        ("1000000000000000000000.0 / 0", "error"),
        ("1000000000000000000000.0 / 0.0", "error"),
        ("1000000000000000000000.0 / 0e0", "'INF'^^xsd:double"),
    ]);
}

#[test]
fn casts_of_wide_numbers() {
    check(&[
        ("xsd:integer(1000000000000000000000.9)", "1000000000000000000000"),
        (
            "xsd:integer(-1000000000000000000000000000000000000000000000.9)",
            "-1000000000000000000000000000000000000000000000",
        ),
        ("xsd:integer(-0.00000000000000000000000000001)", "0"),
        (
            "xsd:integer('1000000000000000000000000000000000000000000000')",
            "1000000000000000000000000000000000000000000000",
        ),
        ("xsd:integer('1e30')", "error"),
        ("xsd:integer('INF'^^xsd:double)", "error"),
        // 10^22 is the greatest power of ten that a double has; 10^23 is the double below.
        ("xsd:integer(1e22)", "10000000000000000000000"),
        ("xsd:decimal('1e21'^^xsd:double)", "'1000000000000000000000'^^xsd:decimal"),
        ("xsd:decimal(1e23)", "'99999999999999991611392'^^xsd:decimal"),
        ("xsd:decimal(1e17)", "'100000000000000000'^^xsd:decimal"),
        ("xsd:decimal(1e-20)", "0.00000000000000000001"),
        ("xsd:decimal(0.1e0)", "0.1"),
        ("xsd:decimal(-2.5e0)", "-2.5"),
        ("xsd:decimal('NaN'^^xsd:double)", "error"),
        ("xsd:decimal('INF'^^xsd:float)", "error"),
        (
            "xsd:decimal(100000000000000000000000000000000000000000)",
            "'100000000000000000000000000000000000000000'^^xsd:decimal",
        ),
        ("xsd:decimal(100000000000000000000)", "'100000000000000000000'^^xsd:decimal"),
        ("xsd:decimal('0.0000000000000000000000000000010')", "0.000000000000000000000000000001"),
        ("xsd:decimal('1e-30')", "error"),
        ("xsd:double(1000000000000000000000.0)", "'1000000000000000000000'^^xsd:double"),
        ("xsd:double(0.0000000000000000000000000000001)", "'0.0000000000000000000000000000001'^^xsd:double"),
        ("xsd:double(99999999959999999999.00000700200000790)", "'99999999960000000000'^^xsd:double"),
        ("xsd:double(0.1)", "'0.1'^^xsd:double"),
        ("xsd:double(-123456.789)", "'-123456.789'^^xsd:double"),
        ("xsd:double(9007199254740993.0)", "'9007199254740992'^^xsd:double"),
        ("xsd:float(1000000000000000000000000000000000000000000.0)", "'INF'^^xsd:float"),
        ("xsd:string(1000000000000000000000.50 + 0)", "'1000000000000000000000.5'"),
        ("xsd:boolean(1000000000000000000000.0)", "true"),
        ("xsd:boolean(0.0000000000000000000000000000000000)", "false"),
        ("SUBSTR('abc', 1.0000000000000000000000000000001)", "'abc'"),
        ("SUBSTR('abc', 1000000000000000000000000000000.0)", "''"),
    ]);
}

fn aggregate(kind: AggregateKind, values: &[(&str, u64)], merged: bool) -> Option<Term> {
    let computed = ComputedTerms::new();
    let stored = Terms::new(values.iter().step_by(2).map(|(text, _)| term(text)));
    let evaluator = Evaluator::new(&stored, &computed, now(), 1);
    let aggregate = Aggregate { kind, expression: Some(parse("?v0")), distinct: false };
    let mut halves = [0, 1].map(|_| Accumulators::new(&aggregate, &evaluator).expect("no limit"));
    for (row, (text, times)) in values.iter().enumerate() {
        let id: Id = evaluator.intern(term(text).as_ref()).expect("no limit");
        let half = if merged { row % 2 } else { 0 };
        halves[half].update(&[0], &[vec![id]], Some(&[Multiplicity::new(*times)])).expect("no limit");
    }
    let [mut all, other] = halves;
    all.merge(other, &[0], &|_| Ok(())).expect("no limit");
    let found = evaluator.term(all.finish(0).expect("no limit")).expect("no limit");
    assert!(all.size_bytes() < 10_000);
    found
}

#[test]
fn aggregates_of_wide_numbers() {
    use AggregateKind::{Avg, Max, Min, Sum};
    let factors = [(TURN, 1), ("3.6", 1), (SEXTILLION, 1), ("3.6", 1)];
    let huge = [("99999999999999999999999999999999999999999", 3), ("1", 3), ("-5", 2)];
    let cancelled =
        [("170141183460469231731687303715884105727", 2), ("-170141183460469231731687303715884105727", 1)];
    for (kind, values, expected) in [
        (Min, &factors[..], TURN),
        (Max, &factors[..], SEXTILLION),
        (Sum, &factors[..], "1000000000000000000007.2002777777777777777777777777777777778"),
        (Avg, &factors[..], "250000000000000000001.8000694444444444444444444444444444444"),
        (Sum, &huge[..], "299999999999999999999999999999999999999990"),
        (Avg, &huge[..], "37499999999999999999999999999999999999998.75"),
        (Sum, &cancelled[..], "170141183460469231731687303715884105727"),
        (Max, &cancelled[..], "170141183460469231731687303715884105727"),
        (Sum, &[(SEXTILLION, 1), ("1e0", 1)], "'1000000000000000000000'^^xsd:double"),
        (Min, &[("1e0", 1), (SEXTILLION, 1)], "1e0"),
    ] {
        for merged in [false, true] {
            assert_eq!(aggregate(kind.clone(), values, merged), Some(term(expected)), "{kind:?} {values:?}");
        }
    }
}

#[test]
fn lengths_have_a_limit() {
    let number = |digits: usize| "7".repeat(digits);
    let is_number = |text: &str| {
        let literal: Term = Literal::new_typed_literal(text, xsd::DECIMAL).into();
        evaluate(&Terms::default(), "isNumeric(?v0)", &[vec![literal]], 1) == [Some(term("true"))]
    };
    assert!(is_number(&number(DIGITS_MAX)));
    assert!(!is_number(&number(DIGITS_MAX + 1)));
    assert!(is_number(&format!("-0.{}", number(DIGITS_MAX))));
    assert!(!is_number(&format!("{}.{}", number(DIGITS_MAX / 2), number(DIGITS_MAX / 2 + 1))));
    // Zeros at the ends do not count.
    assert!(is_number(&format!("{}7.7{}", "0".repeat(DIGITS_MAX), "0".repeat(DIGITS_MAX))));
    assert!(!is_number(&format!("7{}", "0".repeat(DIGITS_MAX))));
    assert!(!is_number(&format!("0.{}7", "0".repeat(DIGITS_MAX))));

    let literal = |digits: usize| Term::from(Literal::new_typed_literal(number(digits), xsd::INTEGER));
    let fraction = Term::from(Literal::new_typed_literal(format!("0.{}", number(DIGITS_MAX)), xsd::DECIMAL));
    let value = |text: &str, terms: [Term; 2]| {
        evaluate(&Terms::default(), text, &terms.map(|term| vec![term]), 1).remove(0)
    };
    // An integer part that is too long is an overflow; fraction digits that are too many are cut.
    assert!(value("?v0 * ?v1", [literal(5000), literal(5000)]).is_some());
    assert_eq!(value("?v0 * ?v1", [literal(5000), literal(5002)]), None);
    assert!(value("?v0 + ?v1", [literal(DIGITS_MAX), term("99999999999999")]).is_some());
    let square = value("?v0 * ?v1", [fraction.clone(), fraction.clone()]);
    let Some(Term::Literal(square)) = square else { panic!("{square:?}") };
    assert_eq!(square.value().len(), "0.".len() + DIGITS_MAX);
    assert!(square.value().starts_with("0.604938"), "7/9 squared is 49/81");
    assert_eq!(value("?v0 / ?v1", [fraction.clone(), fraction]), Some(term("'1'^^xsd:decimal")));
}

/// A million digits take linear time, and a number at the limit takes milliseconds.
#[test]
fn long_literals_take_bounded_time() {
    let started = Instant::now();
    for digits in [DIGITS_MAX, 1_000_000] {
        for text in ["7".repeat(digits), format!("0.{}", "3".repeat(digits)), "0".repeat(digits)] {
            let literal: Term = Literal::new_typed_literal(text, xsd::DECIMAL).into();
            let columns = [vec![literal.clone(); 2], vec![literal; 2]];
            for text in [
                "?v0 + ?v1",
                "?v0 * ?v1",
                "?v0 / ?v1",
                "?v0 / 7",
                "?v0 < ?v1",
                "?v0 = 1e0",
                "ROUND(?v0)",
                "xsd:double(?v0)",
                "xsd:integer(?v0)",
                "-?v0",
            ] {
                evaluate(&Terms::default(), text, &columns, 2);
            }
        }
    }
    let elapsed = started.elapsed();
    assert!(elapsed.as_secs() < 20, "{elapsed:?}");
}
