//! Each rule of the planner on a small graph: the exact steps of the plan.

use crate::common::{Names, graph, shape, term};
use vervet_algebra::{
    Aggregate, AggregateKind, Comparator, Exists, Expression, Form, Function, Node, OrderKey, Query, Variable,
};
use vervet_testkit::MemorySnapshot;

fn people() -> MemorySnapshot {
    graph(
        "ann a Person . bob a Person . cid a Person . dan a Person . x a City . y a City .
         ann knows bob . bob knows cid . cid knows ann . ann knows cid . cid knows dan .
         ann lives x . bob lives x . cid lives y . dan lives y .
         ann name \"Ann\" . bob name \"Bob\" . x name \"Xenia\"",
    )
}

fn count(expression: Option<Expression>, distinct: bool) -> Aggregate {
    Aggregate { kind: AggregateKind::Count, expression, distinct }
}

fn counted(names: &mut Names, input: Node, aggregate: Aggregate) -> Node {
    let n = names.variable("n");
    Node::Group { input: Box::new(input), keys: Vec::new(), aggregates: vec![(n, aggregate)] }
}

fn check(query: &Query, expected: &[&str]) {
    let found = shape(query, &people());
    assert!(found == expected, "found:\n{}", found.join("\n"));
}

#[test]
fn unknown_terms_and_unused_predicates_are_empty() {
    for text in ["?s nowhere ?o . ?o knows ?t", "?s knows ghost", "?s a knows", "?s lives Person"] {
        let mut names = Names::default();
        let root = names.node(text);
        check(&names.select(&["s"], root), &["└─ empty: provably no solution"]);
    }
}

#[test]
fn classes_prove_emptiness_and_imply_types() {
    let mut names = Names::default();
    let root = names.node("?s knows ?o . ?o a City");
    check(&names.select(&["s"], root), &["└─ empty: provably no solution"]);
    let mut names = Names::default();
    let root = names.node("ann lives ?o . ?o a City");
    check(&names.select(&["o"], root), &["└─ expand :ann ─:lives→ ?o"]);
}

/// A product and its single values, before the features that multiply its row; one order of 10! is as cheap.
#[test]
fn steps_with_one_row_precede_those_that_multiply_rows() {
    let (mut text, mut query) = (String::new(), "hub feature ?f . ?f label ?fl".to_owned());
    for number in 0..8 {
        text += &format!("hub p{number} v{number} . other p{number} v{number} . ");
        query += &format!(" . hub p{number} ?v{number}");
    }
    for number in 0..20 {
        text +=
            &format!("hub feature f{number} . other feature f{number} . f{number} label \"F{number}\" . ");
    }
    text += "hub maker m . other maker m . m label \"M\"";
    query += " . hub maker ?m . ?m label ?ml";
    let mut names = Names::default();
    let root = names.node(&query);
    let all: Vec<String> = (0..8).map(|number| format!("v{number}")).collect();
    let mut columns: Vec<&str> = all.iter().map(String::as_str).collect();
    columns.extend(["f", "fl", "m", "ml"]);
    let steps = shape(&names.select(&columns, root), &graph(&text));
    let (first, last) = steps.split_at(steps.len() - 2);
    assert!(last[0].contains("─:feature→ ?f") && last[1].contains("─:label→ ?fl"), "{}", steps.join("\n"));
    assert_eq!(first.len(), 10, "{}", steps.join("\n"));
}

#[test]
fn empty_branches_and_optional_parts_are_dropped() {
    let mut names = Names::default();
    let union = Node::Union(vec![names.node("ann nowhere ?o"), names.node("ann lives ?o")]);
    let root =
        Node::LeftJoin { left: Box::new(union), right: Box::new(names.node("?o ghost ?p")), condition: None };
    check(&names.select(&["o", "p"], root), &["└─ expand :ann ─:lives→ ?o"]);
}

#[test]
fn counts_of_one_pattern_come_from_statistics() {
    let of = |text: &str, counted_variable: Option<&str>, distinct: bool| {
        let mut names = Names::default();
        let input = names.node(text);
        let expression = counted_variable.map(|name| Expression::Variable(names.variable(name)));
        let root = counted(&mut names, input, count(expression, distinct));
        shape(&names.select(&["n"], root), &people()).join("|")
    };
    let xsd = |n: u32| format!("└─ values ?n = \"{n}\"^^<http://www.w3.org/2001/XMLSchema#integer>");
    assert_eq!(of("?s knows ?o", None, false), xsd(5));
    assert_eq!(of("?s knows ?o", Some("s"), true), xsd(3));
    assert_eq!(of("?s knows ?o", Some("o"), true), xsd(4));
    assert_eq!(of("?s a Person", None, false), xsd(4));
    assert_eq!(of("?s nowhere ?o", None, false), xsd(0));
    assert_eq!(of("?s ?p ?o", None, false), xsd(18));
}

#[test]
fn counts_of_kinds_of_terms_come_from_statistics() {
    let call = |function, name: &str, names: &mut Names| {
        Expression::Call(function, vec![Expression::Variable(names.variable(name))])
    };
    let of = |text: &str, snapshot: &MemorySnapshot, condition: &dyn Fn(&mut Names) -> Expression| {
        let mut names = Names::default();
        let input = Box::new(names.node(text));
        let condition = condition(&mut names);
        let root = counted(&mut names, Node::Filter { input, condition }, count(None, false));
        shape(&names.select(&["n"], root), snapshot).join("|")
    };
    let xsd = |n: u32| format!("└─ values ?n = \"{n}\"^^<http://www.w3.org/2001/XMLSchema#integer>");
    let (plain, all) = (people(), "?s ?p ?o");
    let literal = |names: &mut Names| call(Function::IsLiteral, "o", names);
    let iri = |names: &mut Names| call(Function::IsIri, "o", names);
    let blank = |names: &mut Names| call(Function::IsBlank, "s", names);
    // The snapshot may have triple terms, which are not literals.
    assert!(!of(all, &plain, &literal).contains("values"));
    assert_eq!(of(all, &plain, &iri), xsd(15));
    assert_eq!(of(all, &plain, &blank), xsd(0));
    assert_eq!(of("?s lives ?o", &plain, &iri), xsd(4));
    assert_eq!(of("?s name ?o", &plain, &iri), xsd(0));
    assert_eq!(of("?s nowhere ?o", &plain, &literal), xsd(0));
    let not_iri = |names: &mut Names| Expression::Not(Box::new(call(Function::IsIri, "o", names)));
    assert_eq!(of(all, &plain, &not_iri), xsd(3));
    let either = |names: &mut Names| {
        Expression::Or(vec![call(Function::IsBlank, "o", names), call(Function::IsIri, "p", names)])
    };
    assert_eq!(of(all, &plain, &either), xsd(18));
    let both = |names: &mut Names| {
        Expression::And(vec![call(Function::IsIri, "s", names), call(Function::IsIri, "o", names)])
    };
    assert_eq!(of(all, &plain, &both), xsd(15));
    let other = |names: &mut Names| call(Function::IsNumeric, "o", names);
    assert!(!of(all, &plain, &other).contains("values"));
    let same = |names: &mut Names| call(Function::IsIri, "s", names);
    assert!(!of("?s ?p ?s", &plain, &same).contains("values"));
}

#[test]
fn paths_are_counted_by_degrees() {
    let mut names = Names::default();
    let input = names.node("?a knows ?b . ?b knows ?c");
    let root = counted(&mut names, input, count(None, false));
    check(
        &names.select(&["n"], root),
        &["├─ scan ?b ─:knows→ (count)", "├─ expand ?b ←:knows─ (count)", "└─ group ?n = count(*)"],
    );
}

#[test]
fn a_condition_that_fixes_a_variable_becomes_its_value() {
    let mut names = Names::default();
    let input = names.node("?s lives ?o . ?s knows ?t");
    let s = names.variable("s");
    let bob = Box::new(Expression::Constant(term("bob")));
    let condition = Expression::Equal(Box::new(Expression::Variable(s)), bob);
    let root = Node::Filter { input: Box::new(input), condition };
    check(
        &names.select(&["s", "o"], root),
        &["├─ values ?s = :bob", "├─ expand :bob ─:lives→ ?o", "└─ expand :bob ─:knows→ (count)"],
    );
}

#[test]
fn filters_are_pushed_down() {
    let mut names = Names::default();
    let left = names.node("?s a City . ?s name ?n");
    let right = names.node("?t lives ?s");
    let n = names.variable("n");
    let condition = Expression::Not(Box::new(Expression::Equal(
        Box::new(Expression::Variable(n)),
        Box::new(Expression::Constant(term("\"Xenia\""))),
    )));
    let optional = Node::LeftJoin { left: Box::new(left), right: Box::new(right), condition: None };
    let root = Node::Filter { input: Box::new(optional), condition };
    check(
        &names.select(&["s", "t"], root),
        &[
            "├─ expand :City ←rdf:type─ ?s",
            "├─ expand ?s ─:name→ ?n",
            "├─ filter !(?n = \"Xenia\")",
            "└─ optional",
            "└─ expand ?s ←:lives─ ?t",
        ],
    );
}

#[test]
fn order_below_a_slice_is_top_k() {
    let mut names = Names::default();
    let input = names.node("?s knows ?o");
    let keys = vec![OrderKey { expression: Expression::Variable(Variable(0)), descending: true }];
    let ordered = Node::OrderBy { input: Box::new(input), keys };
    let projected = Node::Project { input: Box::new(ordered), variables: vec![Variable(1)] };
    let root = Node::Slice { input: Box::new(projected), start: 2, length: Some(3) };
    let found = shape(&names.select(&["o"], root), &people());
    assert_eq!(found[1], "├─ order desc(?s) (first 5)");
    assert_eq!(found[2], "└─ slice skip 2, then 3");
}

#[test]
fn distinct_over_all_variables_of_patterns_is_free() {
    let mut names = Names::default();
    let root = Node::Distinct(Box::new(names.node("?s lives ?o")));
    assert_eq!(shape(&names.select(&["s", "o"], root), &people()).len(), 1);
}

/// 40 people, each of which knows the next ten.
fn crowd() -> MemorySnapshot {
    let pairs = (0..40).flat_map(|from| (1..=10).map(move |by| (from, (from + by) % 40)));
    let text: Vec<String> = pairs.map(|(from, to)| format!("p{from} knows p{to}")).collect();
    graph(&text.join(" . "))
}

#[test]
fn a_frontier_expands_each_vertex_once_under_set_semantics() {
    let of = |wrap: &dyn Fn(&mut Names, Node) -> Node| {
        let mut names = Names::default();
        let input = names.node("p0 knows ?a . ?a knows ?b . ?b knows ?c");
        let root = wrap(&mut names, input);
        shape(&names.select(&["c"], root), &crowd())
    };
    let project = |names: &mut Names, input: Node| {
        let variables = vec![names.variable("c")];
        Node::Project { input: Box::new(input), variables }
    };
    let walk = ["├─ expand :p0 ─:knows→ ?a", "├─ expand ?a ─:knows→ ?b"];
    let found = of(&|names, input| Node::Distinct(Box::new(project(names, input))));
    let end = ["├─ frontier ?b once", "├─ expand ?b ─:knows→ ?c", "└─ distinct ?c"];
    assert_eq!(found, [&walk[..], &end].concat());
    // Duplicates count here.
    assert_eq!(of(&|_, input| input), [&walk[..], &["└─ expand ?b ─:knows→ ?c"]].concat());
    let sliced = |names: &mut Names, input: Node| {
        let input = Node::Slice { input: Box::new(input), start: 0, length: Some(5_000) };
        Node::Distinct(Box::new(project(names, input)))
    };
    assert!(of(&sliced).iter().all(|step| !step.contains("frontier")));
    // A non-deterministic value differs for each row.
    let random = |names: &mut Names, input: Node| {
        let variable = names.variable("r");
        let expression = Expression::Call(Function::Rand, Vec::new());
        let input = Node::Extend { input: Box::new(input), variable, expression };
        let variables = vec![names.variable("c"), variable];
        Node::Distinct(Box::new(Node::Project { input: Box::new(input), variables }))
    };
    assert!(of(&random).iter().all(|step| !step.contains("frontier")));
}

/// The plan of the distinct values of some variables over the join of `parts`.
fn distinct_of(names: Names, columns: &[&str], parts: Vec<Node>) -> Vec<String> {
    let mut names = names;
    let variables = columns.iter().map(|name| names.variable(name)).collect();
    let root = Node::Project { input: Box::new(Node::Join(parts)), variables };
    shape(&names.select(columns, Node::Distinct(Box::new(root))), &crowd())
}

#[test]
fn a_chain_under_set_semantics_is_a_path() {
    let chain = |names: &mut Names| names.node("?x knows ?a . ?a knows ?b . ?y knows ?b");
    let path = "(:knows/:knows/^:knows)";
    let mut names = Names::default();
    let parts = vec![chain(&mut names)];
    assert_eq!(distinct_of(names, &["x", "y"], parts), [format!("└─ path ?x {path} ?y")]);
    // An end that nothing mentions is tested.
    let mut names = Names::default();
    let parts = vec![chain(&mut names)];
    assert_eq!(distinct_of(names, &["x"], parts), [format!("└─ path ?x {path} (any)")]);
    // A variable of another part ends the chain.
    let mut names = Names::default();
    let ends = names.node("?a lives ?c");
    let parts = vec![chain(&mut names), ends];
    assert!(distinct_of(names, &["x", "y"], parts).iter().all(|step| !step.contains("path")));
    // Duplicates count under bag semantics.
    let mut names = Names::default();
    let root = chain(&mut names);
    assert!(shape(&names.select(&["x"], root), &crowd()).iter().all(|step| !step.contains("path")));
    // Exploration from a constant reads less.
    let mut names = Names::default();
    let parts = vec![chain(&mut names), names.node("p0 knows ?x")];
    assert!(distinct_of(names, &["y"], parts).iter().all(|step| !step.contains("path")));
}

#[test]
fn a_query_for_existence_has_set_semantics() {
    let mut names = Names::default();
    let root = names.node("?x knows ?a . ?a knows ?b . ?y knows ?b");
    let query = Query { form: Form::Ask, ..names.select(&[], root) };
    let found = shape(&query, &crowd());
    assert_eq!(found, ["├─ path (any) (:knows/:knows/^:knows) (any)", "└─ slice first 1"]);
}

#[test]
fn equal_branches_of_a_union_are_one_under_set_semantics() {
    let union = |names: &mut Names| {
        let branches = ["?x knows ?a . ?a knows ?y", "?x knows ?b . ?b knows ?y", "?x knows ?y"];
        Node::Union(branches.into_iter().map(|text| names.node(text)).collect())
    };
    let mut names = Names::default();
    let parts = vec![union(&mut names)];
    let found = distinct_of(names, &["x", "y"], parts);
    assert_eq!(found, ["└─ path ?x ((:knows/:knows)|:knows) ?y"]);
    let mut names = Names::default();
    let root = union(&mut names);
    let branches = shape(&names.select(&["x", "y"], root), &crowd());
    assert_eq!(branches.iter().filter(|step| step.contains("branch")).count(), 3);
    // Beside a constant the branches remain exploration.
    let mut names = Names::default();
    let parts = vec![union(&mut names), names.node("p0 knows ?x")];
    let found = distinct_of(names, &["y"], parts);
    assert_eq!(found.iter().filter(|step| step.contains("branch")).count(), 2);
}

#[test]
fn a_relation_that_another_one_implies_is_dropped_under_set_semantics() {
    // A path of three steps to `?y` implies the same path to some `?z`.
    let mut names = Names::default();
    let parts = vec![
        names.node("?x knows ?a . ?a knows ?b . ?b knows ?y"),
        names.node("?x knows ?c . ?c knows ?d . ?d knows ?z"),
    ];
    let found = distinct_of(names, &["x", "y"], parts);
    assert_eq!(found, ["└─ path ?x (:knows/:knows/:knows) ?y"]);
    // Needed ends are not implied.
    let mut names = Names::default();
    let parts = vec![
        names.node("?x knows ?a . ?a knows ?b . ?b knows ?y"),
        names.node("?x knows ?c . ?c knows ?d . ?d knows ?z"),
    ];
    let found = distinct_of(names, &["x", "y", "z"], parts);
    assert_eq!(found.iter().filter(|step| step.contains("path")).count(), 2);
}

#[test]
fn a_frontier_compares_all_live_columns() {
    let mut names = Names::default();
    let parts = vec![names.node("?x knows ?a . ?a knows ?y . p0 knows ?x . ?y lives ?c . ?y name ?n")];
    // Others live and have names, so the plan starts at the constant.
    let mut text =
        "p0 knows p1 . p1 knows p2 . p1 knows p3 . p2 knows p4 . p3 knows p4 . p4 lives c . p4 name n"
            .to_owned();
    (0..200).for_each(|other| text += &format!(" . q{other} lives c . q{other} name n"));
    let graph = graph(&text);
    let variables = ["x", "c", "n"].map(|name| names.variable(name)).to_vec();
    let root = Node::Project { input: Box::new(Node::Join(parts)), variables };
    let found = shape(&names.select(&["x", "c", "n"], Node::Distinct(Box::new(root))), &graph);
    assert!(found.iter().any(|step| step.contains("frontier ?x ?y once")), "{found:#?}");
}

#[test]
fn parts_without_a_common_variable_are_counted_once() {
    let mut names = Names::default();
    let input = names.node("?a knows ?b . ?c lives ?d . ?e name ?f . ?f is ?g");
    let root = counted(&mut names, input, count(None, false));
    let one = |i: usize| {
        let (next, city, kind) = ((i + 1) % 20, i % 5, i % 3);
        format!("p{i} knows p{next} . p{i} lives x{city} . p{i} name n{i} . n{i} is q{kind}")
    };
    let graph = graph(&(0..20).map(one).collect::<Vec<_>>().join(" . "));
    let found = shape(&names.select(&["n"], root), &graph);
    let products = found.iter().filter(|step| step.contains("product by the number of solutions")).count();
    assert_eq!(products, 2, "{found:#?}");
    // Only whether there is a solution, if duplicates are irrelevant.
    let mut names = Names::default();
    let input = names.node("?a knows ?b . ?c lives ?d");
    let project = Node::Project { input: Box::new(input), variables: vec![names.variable("a")] };
    let found = shape(&names.select(&["a"], Node::Distinct(Box::new(project))), &graph);
    assert!(found.iter().any(|step| step.contains("exists any solution")), "{found:#?}");
    // A condition on two parts needs their pairs.
    let mut names = Names::default();
    let input = Box::new(names.node("?a knows ?b . ?c lives ?d"));
    let (b, d) = (names.variable("b"), names.variable("d"));
    let [b, d] = [b, d].map(|one| Box::new(Expression::Variable(one)));
    let filter = Node::Filter { input, condition: Expression::Not(Box::new(Expression::SameTerm(b, d))) };
    let root = counted(&mut names, filter, count(None, false));
    let found = shape(&names.select(&["n"], root), &graph);
    assert!(found.iter().all(|step| !step.contains("product")), "{found:#?}");
}

#[test]
fn a_variable_that_is_always_bound_counts_as_its_solutions() {
    let mut names = Names::default();
    let input = names.node("?s knows ?o . ?o lives ?c");
    let aggregate = count(Some(Expression::Variable(names.variable("c"))), false);
    let root = counted(&mut names, input, aggregate);
    let found = shape(&names.select(&["n"], root), &people());
    assert!(found.iter().any(|step| step.contains("= count(*)")), "{found:#?}");
    // An optional part may leave it unbound.
    let mut names = Names::default();
    let (left, right) = (Box::new(names.node("?s knows ?o")), Box::new(names.node("?o lives ?c")));
    let aggregate = count(Some(Expression::Variable(names.variable("c"))), false);
    let root = counted(&mut names, Node::LeftJoin { left, right, condition: None }, aggregate);
    let found = shape(&names.select(&["n"], root), &people());
    assert!(found.iter().any(|step| step.contains("= count(?c)")), "{found:#?}");
}

#[test]
fn a_limit_prefers_the_first_rows_to_a_table_of_all() {
    let of = |limit: Option<usize>| {
        let mut names = Names::default();
        let (y, z) = (names.variable("y"), names.variable("z"));
        let knows = vervet_algebra::Path::Predicate(oxrdf::NamedNode::new_unchecked("http://e/knows"));
        let path = Node::Path(vervet_algebra::PathPattern {
            subject: vervet_algebra::Slot::Variable(y),
            path: vervet_algebra::Path::OneOrMore(Box::new(knows)),
            object: vervet_algebra::Slot::Variable(z),
            graphs: vec![vervet_algebra::GraphSlot::Default],
        });
        let input = Box::new(Node::Join(vec![names.node("?x knows ?w . ?w knows ?y . ?x knows ?v"), path]));
        let root = match limit {
            Some(length) => Node::Slice { input, start: 0, length: Some(length) },
            None => *input,
        };
        shape(&names.select(&["x", "z"], root), &crowd())
    };
    let joins = |found: &[String]| found.iter().any(|step| step.contains("hash join"));
    let all = of(None);
    assert!(joins(&all), "{all:#?}");
    let first = of(Some(3));
    assert!(!joins(&first), "{first:#?}");
}

#[test]
fn a_subquery_with_a_group_is_joined_by_its_keys() {
    let mut names = Names::default();
    let inner = names.node("?s knows ?o");
    let (s, n) = (names.variable("s"), names.variable("n"));
    let group =
        Node::Group { input: Box::new(inner), keys: vec![s], aggregates: vec![(n, count(None, false))] };
    let root = Node::Join(vec![names.node("?s name ?l"), group]);
    check(
        &names.select(&["l", "n"], root),
        &["├─ scan ?s ─:knows→ (count)", "├─ group by ?s ?n = count(*)", "└─ expand ?s ─:name→ ?l"],
    );
}

#[test]
fn a_prefix_and_a_range_start_from_their_values() {
    let mut text = String::new();
    for at in 0..200 {
        text.push_str(&format!("v{at} name \"n{at}\" . v{at} age {at} . v{at} knows v{} . ", (at + 1) % 200));
    }
    let graph = graph(&text);
    let constant = |word| Expression::Constant(term(word));
    let mut names = Names::default();
    let input = Box::new(names.node("?s name ?n . ?s knows ?o"));
    let n = names.variable("n");
    let condition = Expression::Call(Function::StrStarts, vec![Expression::Variable(n), constant("\"n19\"")]);
    let query = names.select(&["n", "o"], Node::Filter { input, condition });
    let found = shape(&query, &graph);
    assert_eq!(found[0], "├─ seek ?n ←:name─ ?s among 11 values", "{found:#?}");
    assert!(found[1].starts_with("├─ filter") && found[2] == "└─ expand ?s ─:knows→ ?o", "{found:#?}");
    let mut names = Names::default();
    let input = Box::new(names.node("?s age ?n"));
    let n = names.variable("n");
    let compare = |comparator, word| {
        let sides = (Box::new(Expression::Variable(n)), Box::new(constant(word)));
        Expression::Compare(comparator, sides.0, sides.1)
    };
    let condition =
        Expression::And(vec![compare(Comparator::GreaterOrEqual, "12"), compare(Comparator::Less, "20")]);
    let query = names.select(&["s"], Node::Filter { input, condition });
    let found = shape(&query, &graph);
    assert_eq!(found[0], "├─ seek ?n ←:age─ ?s among 9 values", "{found:#?}");
}

/// Two comparisons of ids cost less than an expansion to a text restricted to two values, so they come first
/// and reduce the rows to expand.
#[test]
fn id_conditions_precede_expansions() {
    let mut text = String::new();
    for at in 0..200 {
        text.push_str(&format!(
            "v{at} of p{} . v{at} age {at} . v{at} lives c{} . c{} name \"place_{}\" . ",
            at % 10,
            at % 150,
            at % 150,
            at % 150
        ));
    }
    let graph = graph(&text);
    let constant = |word: &str| Expression::Constant(term(word));
    let mut names = Names::default();
    let input = Box::new(names.node("?s of p1 . ?s lives ?c . ?c name ?n . ?s age ?a"));
    let (age, name) = (names.variable("a"), names.variable("n"));
    let compare = |comparator, word| {
        Expression::Compare(comparator, Box::new(Expression::Variable(age)), Box::new(constant(word)))
    };
    let places = ["place_3", "place_4"].map(|place| Expression::Constant(oxrdf::Literal::from(place).into()));
    let condition = Expression::And(vec![
        Expression::In(Box::new(Expression::Variable(name)), places.to_vec()),
        compare(Comparator::GreaterOrEqual, "10"),
        compare(Comparator::Less, "60"),
    ]);
    let found = shape(&names.select(&["s"], Node::Filter { input, condition }), &graph);
    println!("{found:#?}");
    let order: Vec<_> = found.iter().map(|step| step.split_whitespace().nth(1).unwrap_or_default()).collect();
    assert_eq!(order, ["expand", "expand", "filter", "expand", "filter", "expand", "filter"], "{found:#?}");
    // Two of 150 places have these names, so rows with other places are dropped first.
    assert_eq!(found[1], "├─ expand ?s ─:lives→ ?c", "{found:#?}");
    assert_eq!(found[2], "├─ filter ?c in (:c3, :c4)", "{found:#?}");
}

#[test]
fn dense_cycles_are_intersected() {
    let mut text = String::new();
    for a in 0..40 {
        for step in [1, 2, 3, 5, 8, 13, 21, 34] {
            text.push_str(&format!("v{a} p v{} . ", (a + step) % 40));
        }
    }
    let graph = graph(&text);
    let mut names = Names::default();
    let input = names.node("?a p ?b . ?b p ?c . ?a p ?c");
    let root = counted(&mut names, input, count(None, false));
    let found = shape(&names.select(&["n"], root), &graph);
    assert!(found[1].starts_with("├─ intersect (count) in"), "{found:?}");
}

#[test]
fn an_ask_stops_at_the_first_solution() {
    let mut names = Names::default();
    let root = names.node("?s knows ?o");
    let query = Query { form: Form::Ask, root, variables: names.0, parameters: Vec::new() };
    check(&query, &["├─ scan ?s ─:knows→ (count)", "└─ slice first 1"]);
}

/// `ASK` starts with the branch that has its first row soonest; `SELECT` keeps the order of the text.
#[test]
fn an_ask_starts_with_the_cheapest_branch() {
    let branches = |form: Option<Form>| {
        let mut names = Names::default();
        let branches = ["?x knows ?y . ?y lives ?c . ?c name ?n", "?x name ?n"];
        let union = Node::Union(branches.into_iter().map(|text| names.node(text)).collect());
        let query = names.select(&["n"], union);
        shape(&Query { form: form.unwrap_or(query.form), ..query }, &people())
    };
    let (asked, selected) = (branches(Some(Form::Ask)), branches(None));
    let knows = |found: &[String]| found.iter().position(|step| step.contains(":knows"));
    let short =
        |found: &[String]| found.iter().position(|step| step.contains("scan") && step.contains("(count)"));
    assert!(short(&asked) < knows(&asked), "{}", asked.join("\n"));
    assert!(knows(&selected) < short(&selected), "{}", selected.join("\n"));
}

#[test]
fn parameters_are_bound_from_the_start() {
    let mut names = Names::default();
    let root = names.node("?s knows ?o . ?o lives ?c");
    let s = names.variable("s");
    let mut query = names.select(&["c"], root);
    query.parameters = vec![s];
    check(&query, &["├─ expand ?s ─:knows→ ?o", "└─ expand ?o ─:lives→ ?c"]);
}

/// Friends of a person in both directions, and their messages: the plan starts from the friends unless the
/// messages are rarer.
#[test]
fn expansions_start_at_bound_variables_unless_the_other_end_is_rarer() {
    let mut text = String::new();
    for friend in 0..40 {
        text += &format!("hub knows f{friend} . f{} knows hub . ", friend + 40);
        for message in 0..20 {
            let of = format!("m{friend}_{message}");
            text += &format!("{of} by f{friend} . {of} about common . ");
        }
    }
    let graph = graph(&(text + "m7_7 about rare . "));
    let plan_of = |topic: &str| {
        let mut names = Names::default();
        let hub = names.variable("hub");
        let both = Node::Union(vec![names.node("?hub knows ?f"), names.node("?f knows ?hub")]);
        let table = Node::Values { variables: vec![hub], rows: vec![vec![Some(term("hub"))]] };
        let patterns = names.node(&format!("?m by ?f . ?m about {topic}"));
        shape(&names.select(&["m"], Node::Join(vec![table, both, patterns])), &graph)
    };
    let common = plan_of("common");
    let first: Vec<&str> =
        common.iter().take(2).map(|line| line.trim_start_matches(['├', '─', ' '])).collect();
    assert_eq!(first, ["values ?hub = :hub", "union"], "{common:#?}");
    assert!(common.iter().any(|line| line.contains("expand ?f ←:by─ ?m")), "{common:#?}");
    let rare = plan_of("rare");
    assert!(rare.iter().any(|line| line.contains("expand :rare ←:about─ ?m")), "{rare:#?}");
}

/// Messages of friends about a topic, as an `EXISTS` condition: the plan starts from a rare topic, each
/// message once, and tests each message of the friends otherwise.
#[test]
fn the_most_selective_condition_comes_first() {
    let mut text = String::new();
    for friend in 0..40 {
        for message in 0..20 {
            let of = format!("m{friend}_{message}");
            text += &format!("{of} by f{friend} . {of} about common . ");
        }
    }
    text += "hub knows f1 . hub knows f7 . hub knows f9 . ";
    let graph = graph(&(text + "m7_7 about rare . "));
    let plan_of = |topic: &str, negated: bool| {
        let mut names = Names::default();
        let input = names.node("hub knows ?f . ?m by ?f");
        let m = names.variable("m");
        let exists = Exists { pattern: names.node(&format!("?m about {topic}")), outer: vec![m] };
        let exists = Expression::Exists(Box::new(exists));
        let condition = if negated { Expression::Not(Box::new(exists)) } else { exists };
        shape(&names.select(&["m"], Node::Filter { input: Box::new(input), condition }), &graph)
    };
    let rare = plan_of("rare", false);
    assert!(rare[0].contains("expand :rare ←:about─ ?m"), "{rare:#?}");
    assert!(!rare.iter().any(|line| line.contains("exists")), "{rare:#?}");
    for (topic, negated) in [("common", false), ("rare", true)] {
        let plan = plan_of(topic, negated);
        assert!(plan[0].contains("expand :hub ─:knows→ ?f"), "{plan:#?}");
    }
}

/// Every level can be planned as an exploration or separately: without a bound there are 2^30 plans.
#[test]
fn deep_nesting_is_planned_in_reasonable_time() {
    let mut text = String::new();
    for at in 0..3_000 {
        text.push_str(&format!("v{at} p v{} . ", (at + 7) % 3_000));
    }
    let graph = graph(&text);
    for union in [false, true] {
        let mut names = Names::default();
        let mut root = names.node("?a p ?b");
        for _ in 0..30 {
            let left = Box::new(names.node("?a p ?b"));
            root = if union {
                Node::Join(vec![Node::Union(vec![*left, root]), names.node("?b p ?c")])
            } else {
                Node::LeftJoin { left, right: Box::new(root), condition: None }
            };
        }
        let start = std::time::Instant::now();
        shape(&names.select(&["a", "b"], root), &graph);
        assert!(start.elapsed().as_secs() < 5, "{:?}", start.elapsed());
    }
}
