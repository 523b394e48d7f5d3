//! Full-text search functions: valid arguments and errors.

use crate::common::{Terms, term};
use vervet_algebra::{Expression, Function, Variable};
use vervet_expression::{CompiledExpression, ComputedTerms, Evaluator};

/// The value of `function` of two columns, and with the second one as a constant.
fn check(function: &Function, cases: &[(&str, &str, &str)]) {
    for (text, search, expected) in cases {
        let columns = [vec![term(text)], vec![term(search)]];
        let snapshot = Terms::new(columns.iter().flatten().cloned());
        let computed = ComputedTerms::new();
        let evaluator = Evaluator::new(&snapshot, &computed, crate::common::now(), 7);
        let ids: Vec<_> =
            columns.iter().map(|column| vec![evaluator.intern(column[0].as_ref()).expect("room")]).collect();
        for second in [Expression::Variable(Variable(1)), Expression::Constant(term(search))] {
            let call = Expression::Call(function.clone(), vec![Expression::Variable(Variable(0)), second]);
            let compiled = CompiledExpression::new(&call, &evaluator).expect("it compiles");
            let mut out = Vec::new();
            compiled.evaluate(&evaluator, &ids, 1, &mut out).expect("it runs");
            let found = evaluator.term(out[0]).expect("a term");
            let expected = (*expected != "error").then(|| term(expected));
            assert_eq!(found, expected, "{text} {search}");
        }
    }
}

#[test]
fn matches_and_score() {
    check(
        &Function::TextMatches,
        &[
            ("'a graph database'", "'graph'", "true"),
            ("'a graph database'@en", "'GRAPH data*'", "true"),
            ("'a graph database'", "'graphs'", "false"),
            ("'short'", "'short'", "true"),
            ("''", "'a'", "false"),
            ("'a'", "''", "error"),
            ("'a'", "'\"a'", "error"),
            ("'a'", "1", "error"),
            ("1", "'1'", "error"),
            ("<urn:a>", "'a'", "error"),
            ("'a'^^<urn:t>", "'a'", "error"),
        ],
    );
    check(
        &Function::TextScore,
        &[
            ("'a graph'", "'graph'", "'0.5'^^<http://www.w3.org/2001/XMLSchema#double>"),
            ("'graph'", "'graph'", "'1'^^<http://www.w3.org/2001/XMLSchema#double>"),
            ("'a graph'", "'data'", "'0'^^<http://www.w3.org/2001/XMLSchema#double>"),
            ("1", "'1'", "error"),
        ],
    );
}
