//! Caches within a batch do not change results: the reference is each row in a batch of its own.

use crate::common::{Terms, parse, term};
use vervet_expression::{CompiledExpression, ComputedTerms, Evaluator, IdOutcome, IdTest};
use vervet_model::Id;

/// Conditions on `?v0`, each true, false and an error for some of the values below.
const CONDITIONS: [&str; 17] = [
    "sameTerm(?v0, <urn:v4>)",
    "sameTerm('India', ?v0)",
    "!sameTerm(?v0, 'a string that is longer than an id')",
    "!sameTerm(?v0, 'computed e')",
    "?v0 = 'a string that is longer than an id'",
    "?v0 IN ('India', 'a string that is longer than an id')",
    "?v0 IN ('text 3 of those that fill the places', <urn:v4>, 'absent')",
    "?v0 IN ('text 3 of those that fill the places', 4)",
    "?v0 IN (<urn:v4>, <urn:v5>)",
    "?v0 IN (1, 1.0)",
    "?v0 NOT IN ('India', 'a string that is longer than an id')",
    "!(?v0 = 'a string that is longer than an id')",
    "CONTAINS(?v0, 'e')",
    "STRLEN(?v0) > 5 || ?v0 = 4",
    "!BOUND(?v0)",
    "COALESCE(?v0, 1) = 1",
    "REGEX(STR(?v0), '[13]')",
];

#[test]
fn batches_agree_with_single_rows() {
    let mut texts: Vec<String> = [
        "'India'",
        "'a string that is longer than an id'",
        "'a string that is longer than an id'@en",
        "'a string that is longer than an id'^^<urn:t>",
        "1",
        "'01'^^<http://www.w3.org/2001/XMLSchema#integer>",
        "1.0",
        "'1.00'^^<http://www.w3.org/2001/XMLSchema#decimal>",
        "1e0",
        "true",
        "<urn:v4>",
    ]
    .map(str::to_owned)
    .to_vec();
    // More values than cache slots.
    texts.extend((0..90).map(|n| format!("'text {n} of those that fill the places'")));
    texts.extend((0..40).map(|n| n.to_string()));
    let mut terms = Terms::default();
    let mut values: Vec<Id> = texts.iter().map(|text| terms.add(term(text))).collect();
    values.push(Id::UNBOUND);
    let computed = ComputedTerms::new();
    let evaluator = Evaluator::new(&terms, &computed, crate::common::now(), 7);
    // A text that is not in the snapshot.
    values.push(evaluator.intern(term("'computed e'").as_ref()).expect("room"));
    let seed = 20_261_122_u64;
    let mut state = seed;
    let mut draw = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(state >> 33).expect("31 bits") % below
    };
    for condition in CONDITIONS {
        let condition_text = condition;
        let condition = CompiledExpression::new(&parse(condition), &evaluator).expect("it compiles");
        // Few repeated values, and many.
        for distinct in [3, 20, values.len()] {
            let first = draw(values.len());
            let column: Vec<Id> =
                (0..2000).map(|_| values[(first + draw(distinct)) % values.len()]).collect();
            let columns = [column];
            let (mut selected, mut found) = (Vec::new(), Vec::new());
            condition.filter(&evaluator, &columns, 2000, &mut selected).expect("it runs");
            condition.evaluate(&evaluator, &columns, 2000, &mut found).expect("it runs");
            let mut expected = Vec::new();
            for (row, id) in columns[0].iter().enumerate() {
                let (alone, mut yes, mut value) = ([vec![*id]], Vec::new(), Vec::new());
                condition.filter(&evaluator, &alone, 1, &mut yes).expect("it runs");
                condition.evaluate(&evaluator, &alone, 1, &mut value).expect("it runs");
                assert_eq!(value[0], found[row], "{condition_text}, row {row}, {id:?}, seed {seed}");
                if !yes.is_empty() {
                    expected.push(u32::try_from(row).expect("few rows"));
                }
                // The selection equals the rows with value true.
                let is_true = evaluator.term(value[0]).expect("a term") == Some(term("true"));
                assert_eq!(!yes.is_empty(), is_true, "{condition_text} of {id:?}");
            }
            assert_eq!(selected, expected, "{condition_text}, seed {seed}");
        }
    }
}

/// Ids decide comparisons of integers of any type; a sum has no id, so it is compared by value.
#[test]
fn ids_of_integers_compare_as_their_values() {
    let literal = |number: i64, kind: &str| format!("'{number}'^^<http://www.w3.org/2001/XMLSchema#{kind}>");
    let numbers = [-1 << 50, -3, -1, 0, 1, 2, 3, 4, 1 << 31, 1 << 50];
    let kinds = ["integer", "int", "long"];
    let mut terms = Terms::default();
    let fits = |number: i64, kind: &str| kind != "int" || i32::try_from(number).is_ok();
    let pairs = numbers.iter().flat_map(|number| kinds.map(|kind| (*number, kind)));
    let literals =
        pairs.filter(|(number, kind)| fits(*number, kind)).map(|(number, kind)| literal(number, kind));
    let literals: Vec<(String, Id)> = literals.map(|text| (text.clone(), terms.add(term(&text)))).collect();
    let column: Vec<Id> = literals.iter().map(|(_, id)| *id).collect();
    let computed = ComputedTerms::new();
    let evaluator = Evaluator::new(&terms, &computed, crate::common::now(), 7);
    // `?v1` has the same value in every row, as a parameter has.
    let selected = |condition: &str, same: Id| {
        let condition = CompiledExpression::new(&parse(condition), &evaluator).expect("it compiles");
        let (columns, mut rows) = ([column.clone(), vec![same; column.len()]], Vec::new());
        condition.filter(&evaluator, &columns, column.len(), &mut rows).expect("it runs");
        rows
    };
    for comparator in ["<", "<=", ">", ">=", "=", "!="] {
        for (constant, id) in &literals {
            let by_values = selected(&format!("(?v0 + 0) {comparator} ({constant} + 0)"), *id);
            let by_ids = selected(&format!("?v0 {comparator} {constant}"), *id);
            assert_eq!(by_ids, by_values, "{comparator} {constant}");
            let by_column = selected(&format!("?v0 {comparator} ?v1"), *id);
            assert_eq!(by_column, by_values, "{comparator} a column of {constant}");
            let flipped = selected(&format!("({constant} + 0) {comparator} (?v0 + 0)"), *id);
            assert_eq!(
                selected(&format!("{constant} {comparator} ?v0"), *id),
                flipped,
                "{constant} {comparator}"
            );
            let by_column = selected(&format!("?v1 {comparator} ?v0"), *id);
            assert_eq!(by_column, flipped, "a column of {constant} {comparator}");
            let between = selected(&format!("?v0 {comparator} ?v1 && ?v0 > -2"), *id);
            let by_values =
                selected(&format!("(?v0 + 0) {comparator} ({constant} + 0) && (?v0 + 0) > -2"), *id);
            assert_eq!(between, by_values, "{comparator} a column of {constant}, and above -2");
        }
    }
}

/// `IN` with many constants is the disjunction of its equalities (SPARQL 1.1 §17.4.1.9), errors included.
#[test]
fn lists_of_many_constants_are_disjunctions() {
    let number = |text: &str, kind: &str| format!("'{text}'^^<http://www.w3.org/2001/XMLSchema#{kind}>");
    let mut pool: Vec<String> = [
        "<urn:a>",
        "<urn:b>",
        "<urn:not-stored>",
        "'a'",
        "'b'",
        "'a string that is longer than an id'",
        "'urn:a'",
        "''",
        "'a'@en",
        "'a'@de",
        "'a'@en-GB",
        "'b'@en",
        "'a'^^<urn:t>",
        "'b'^^<urn:t>",
        "'a'^^<urn:u>",
        "true",
        "false",
        "1",
        "2",
        "1.0",
        "1.5",
        "1e0",
        "1.5e0",
        "-0e0",
        "0",
        "0.0",
    ]
    .map(str::to_owned)
    .to_vec();
    for (text, kind) in [
        ("NaN", "double"),
        ("NaN", "float"),
        ("INF", "double"),
        ("-INF", "float"),
        ("INF", "float"),
        ("01", "integer"),
        ("x", "integer"),
        ("1", "int"),
        ("2", "long"),
        ("1.5", "float"),
        ("0.1", "float"),
        ("0.1", "double"),
        ("0.1", "decimal"),
        ("16777217", "integer"),
        ("16777216", "float"),
        ("16777217", "double"),
        ("9007199254740993", "integer"),
        ("9007199254740992", "double"),
        ("9007199254740992", "integer"),
        ("1152921573326323713", "integer"),
        ("1152921573326323712", "double"),
        ("1e300", "double"),
        ("99999999999999999999999999999999999999999999", "integer"),
        ("1e44", "double"),
        ("170141183460469231731687303715884105727", "integer"),
        ("1.701411834604692e38", "double"),
        ("0.00000000000000000000000000000000000001", "decimal"),
        ("1e-38", "double"),
        ("1e-38", "float"),
        ("2020-01-01T00:00:00Z", "dateTime"),
        ("2020-01-01T00:00:00", "dateTime"),
        ("2020-01-01T01:00:00+01:00", "dateTime"),
        ("2020-01-01", "date"),
        ("2020-01-01Z", "date"),
        ("P1D", "dayTimeDuration"),
        ("PT24H", "duration"),
    ] {
        pool.push(number(text, kind));
    }
    let mut terms = Terms::default();
    // Half of the values are stored.
    pool.iter().step_by(2).for_each(|text| _ = terms.add(term(text)));
    let computed = ComputedTerms::new();
    let evaluator = Evaluator::new(&terms, &computed, crate::common::now(), 7);
    let values: Vec<Id> =
        pool.iter().map(|text| evaluator.intern(term(text).as_ref()).expect("room")).collect();
    let columns = [
        [values.clone(), vec![Id::UNBOUND]].concat(),
        vec![evaluator.intern(term("1").as_ref()).expect("room"); values.len() + 1],
    ];
    let rows = columns[0].len();
    let run = |text: &str| {
        let condition = CompiledExpression::new(&parse(text), &evaluator).expect("it compiles");
        let (mut found, mut selected) = (Vec::new(), Vec::new());
        condition.evaluate(&evaluator, &columns, rows, &mut found).expect("it runs");
        condition.filter(&evaluator, &columns, rows, &mut selected).expect("it runs");
        (found, selected)
    };
    let mut state = 20_261_128_u64;
    let mut draw = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(state >> 33).expect("31 bits") % below
    };
    for round in 0..300 {
        // Of some kinds only, so that lists without each class occur.
        let (first, length) = (draw(pool.len()), 10 + draw(50));
        let mut list: Vec<String> =
            (0..length).map(|_| pool[(first + draw(length)) % pool.len()].clone()).collect();
        if round % 5 == 0 {
            list.push("?v1".to_owned());
        }
        if round % 7 == 0 {
            list.push("1/0".to_owned());
        }
        let item = [
            "?v0",
            "COALESCE(?v0, 1/0)",
            "IF(true, ?v0, 1)",
            "IRI(?v0)",
            "?v0 + 0",
            "STR(?v0)",
            "LCASE(?v0)",
        ][draw(7)];
        let all: Vec<String> = list.iter().map(|one| format!("{item} = {one}")).collect();
        let expected = run(&all.join(" || "));
        let list = list.join(", ");
        assert_eq!(run(&format!("{item} IN ({list})")), expected, "{item} IN ({list})");
        let not = run(&format!("!({})", all.join(" || ")));
        assert_eq!(run(&format!("{item} NOT IN ({list})")), not, "{item} NOT IN ({list})");
    }
}

/// What the ids of a row decide about a filter is what the filter finds.
#[test]
fn tests_of_ids_agree_with_filters() {
    let operators = ["=", "!=", "<", "<=", ">", ">="];
    let constants = [
        "3",
        "-1",
        "'ab'",
        "'a text longer than an id'",
        "<urn:v4>",
        "true",
        "1.0",
        "1e0",
        "'2020-01-01'^^xsd:date",
        "'05'^^xsd:integer",
        "'x'^^<urn:t>",
        "'ab'@en",
    ];
    let mut conditions: Vec<String> = CONDITIONS.iter().map(|text| (*text).to_owned()).collect();
    for operator in operators {
        conditions.push(format!("?v0 {operator} ?v1"));
        conditions.push(format!("!(?v1 {operator} ?v0)"));
        for constant in constants {
            conditions.push(format!("?v0 {operator} {constant}"));
            conditions.push(format!("!({constant} {operator} ?v0)"));
            conditions.push(format!("?v0 {operator} {constant} || ?v0 = 4"));
            conditions.push(format!("?v0 {operator} {constant} && ?v0 != 4 && ?v1 > 2"));
        }
    }
    conditions.push(format!("?v0 IN ({})", constants.join(", ")));
    conditions.push(format!("?v0 NOT IN ({})", constants.join(", ")));
    let many: Vec<String> = (0..20).map(|n| format!("<urn:v{n}>")).collect();
    conditions.push(format!("?v0 IN ({}, 'ab')", many.join(", ")));
    conditions.extend(["?v0", "!?v0", "sameTerm(?v0, ?v1)", "!sameTerm(?v0, ?v1)"].map(str::to_owned));
    let texts = ["-1", "3", "4", "'3'^^xsd:long", "'7'^^xsd:int", "0.0", "'2021-05-05'^^xsd:date", "false"];
    let mut terms = Terms::default();
    let all = constants.iter().chain(&texts).map(|text| terms.add(term(text)));
    let mut values: Vec<Id> = all.collect();
    values.push(Id::UNBOUND);
    let computed = ComputedTerms::new();
    let evaluator = Evaluator::new(&terms, &computed, crate::common::now(), 7);
    values.push(evaluator.intern(term("'computed'").as_ref()).expect("room"));
    let mut counts = [0; 3];
    for condition in &conditions {
        let expression = CompiledExpression::new(&parse(condition), &evaluator).expect("it compiles");
        let Some(tests) = expression.id_tests() else { continue };
        for a in &values {
            for b in &values {
                let outcomes: Vec<IdOutcome> = tests.iter().map(|test| outcome(test, [*a, *b])).collect();
                let mut selection = Vec::new();
                expression.filter(&evaluator, &[vec![*a], vec![*b]], 1, &mut selection).expect("it runs");
                if outcomes.contains(&IdOutcome::Rejected) {
                    counts[0] += 1;
                    assert!(selection.is_empty(), "{condition}: {a:?} {b:?}");
                } else if outcomes.contains(&IdOutcome::Undecided) {
                    counts[2] += 1;
                } else {
                    counts[1] += 1;
                    assert_eq!(selection, [0], "{condition}: {a:?} {b:?}");
                }
            }
        }
    }
    assert!(counts.iter().all(|count| *count > 5_000), "{counts:?}");
}

/// The outcome of a test; relations of two variables are left to those who run them.
fn outcome(test: &IdTest, values: [Id; 2]) -> IdOutcome {
    match test {
        IdTest::Value { variable, intervals } => {
            let at = intervals.partition_point(|(start, _)| *start <= values[*variable]);
            intervals[at - 1].1
        }
        IdTest::Pair { .. } => IdOutcome::Undecided,
    }
}
