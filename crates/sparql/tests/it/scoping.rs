//! Scoping: difficult queries with their expected algebra.
//!
//! Algebra is printed with a number after each variable, to distinguish variables of the same name; blank
//! nodes and other unnamed variables are `_` and a number.

use vervet_algebra::{Expression, Form, GraphSlot, Node, Pattern, Query, Slot, Variable};
use vervet_sparql::{ParseOptions, QueryErrorKind, parse};

const PREFIXES: &[(&str, &str)] =
    &[("", "http://e/"), ("rdf", "http://www.w3.org/1999/02/22-rdf-syntax-ns#")];

fn options() -> ParseOptions<'static> {
    ParseOptions { prefixes: PREFIXES, ..ParseOptions::default() }
}

/// Checks the algebra of `text` and the invariants of algebra.
#[track_caller]
fn check(text: &str, expected: &str) {
    let query = parse(text, &options()).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(Printer(&query).query(), expected, "{text}");
    bound(&query, &query.root);
}

#[track_caller]
fn refused(text: &str, kind: QueryErrorKind, message: &str) {
    let error = parse(text, &options()).expect_err(text);
    assert!(error.kind() == kind && error.message().contains(message), "{error}");
}

/// Checks that expressions mention only variables that their input may bind, and that no variable is bound
/// twice.
fn bound(query: &Query, node: &Node) {
    let check = |expression: &Expression, inputs: &[&Node]| {
        let mut mentioned = Vec::new();
        expression.variables(&mut mentioned);
        let mut known = query.parameters.clone();
        inputs.iter().for_each(|input| input.variables(&mut known));
        assert!(mentioned.iter().all(|variable| known.contains(variable)), "{expression:?}");
    };
    match node {
        Node::Patterns(_) | Node::Path(_) | Node::Service(_) | Node::Values { .. } => {}
        Node::Join(nodes) | Node::Union(nodes) => nodes.iter().for_each(|node| bound(query, node)),
        Node::LeftJoin { left, right, condition } => {
            condition.iter().for_each(|condition| check(condition, &[left, right]));
            bound(query, left);
            bound(query, right);
        }
        Node::Minus { left, right } => {
            bound(query, left);
            bound(query, right);
        }
        Node::Filter { input, condition } => {
            check(condition, &[input]);
            bound(query, input);
        }
        Node::Extend { input, variable, expression } => {
            check(expression, &[input]);
            let mut known = Vec::new();
            input.variables(&mut known);
            assert!(!known.contains(variable));
            bound(query, input);
        }
        Node::Group { input, aggregates, .. } => {
            aggregates.iter().flat_map(|(_, a)| &a.expression).for_each(|e| check(e, &[input]));
            bound(query, input);
        }
        Node::OrderBy { input, keys } => {
            keys.iter().for_each(|key| check(&key.expression, &[input]));
            bound(query, input);
        }
        Node::Project { input, .. }
        | Node::Distinct(input)
        | Node::Reduced(input)
        | Node::Slice { input, .. } => {
            bound(query, input);
        }
    }
}

struct Printer<'a>(&'a Query);

impl Printer<'_> {
    fn query(&self) -> String {
        let root = self.node(&self.0.root);
        match &self.0.form {
            Form::Select(columns) => format!("select {} {root}", self.list(columns)),
            Form::Ask => format!("ask {root}"),
            Form::Construct { statements, .. } => {
                let template: Vec<_> = statements.iter().map(|pattern| self.pattern(pattern)).collect();
                format!("construct [{}] {root}", template.join(", "))
            }
            Form::Describe(slots) => {
                let slots: Vec<_> = slots.iter().map(|slot| self.slot(slot)).collect();
                format!("describe [{}] {root}", slots.join(" "))
            }
        }
    }

    fn variable(&self, variable: Variable) -> String {
        let name = &self.0.variables[variable.index()];
        format!("{}{}", if name.is_empty() { "_" } else { name }, variable.0)
    }

    fn list(&self, variables: &[Variable]) -> String {
        let all: Vec<_> = variables.iter().map(|variable| self.variable(*variable)).collect();
        format!("[{}]", all.join(" "))
    }

    fn slot(&self, slot: &Slot) -> String {
        match slot {
            Slot::Variable(variable) => self.variable(*variable),
            Slot::Constant(term) => term.to_string().replace("<http://e/", "<"),
        }
    }

    fn pattern(&self, pattern: &Pattern) -> String {
        let graph = match &pattern.graph {
            GraphSlot::Default => String::new(),
            GraphSlot::Named(iri) => format!(" in {}", iri.to_string().replace("<http://e/", "<")),
            GraphSlot::Variable(variable) => format!(" in {}", self.variable(*variable)),
            GraphSlot::Any => " in any".to_owned(),
        };
        let edge = pattern.edge.as_ref().map(|edge| format!(" as {}", self.slot(edge))).unwrap_or_default();
        let (s, p, o) =
            (self.slot(&pattern.subject), self.slot(&pattern.predicate), self.slot(&pattern.object));
        format!("{s} {p} {o}{graph}{edge}")
    }

    fn nodes(&self, nodes: &[Node]) -> String {
        nodes.iter().map(|node| self.node(node)).collect::<Vec<_>>().join(" ")
    }

    fn node(&self, node: &Node) -> String {
        match node {
            Node::Patterns(patterns) => {
                let all: Vec<_> = patterns.iter().map(|pattern| self.pattern(pattern)).collect();
                format!("{{{}}}", all.join(", "))
            }
            Node::Path(path) => {
                format!("{{{} path {}}}", self.slot(&path.subject), self.slot(&path.object))
            }
            Node::Service(service) => format!("(service {})", self.slot(&service.endpoint)),
            Node::Join(nodes) => format!("(join {})", self.nodes(nodes)),
            Node::Union(nodes) => format!("(union {})", self.nodes(nodes)),
            Node::LeftJoin { left, right, condition } => {
                let condition =
                    condition.as_ref().map(|c| format!(" {}", self.expression(c))).unwrap_or_default();
                format!("(optional {} {}{condition})", self.node(left), self.node(right))
            }
            Node::Minus { left, right } => format!("(minus {} {})", self.node(left), self.node(right)),
            Node::Filter { input, condition } => {
                format!("(filter {} {})", self.node(input), self.expression(condition))
            }
            Node::Extend { input, variable, expression } => {
                let input = self.node(input);
                format!("(extend {input} {} {})", self.variable(*variable), self.expression(expression))
            }
            Node::Values { variables, rows } => {
                format!("(values {} {} rows)", self.list(variables), rows.len())
            }
            Node::Group { input, keys, aggregates } => {
                let aggregates: Vec<_> = aggregates
                    .iter()
                    .map(|(variable, aggregate)| {
                        let of = aggregate.expression.as_ref().map_or("*".to_owned(), |e| self.expression(e));
                        let distinct = if aggregate.distinct { " distinct" } else { "" };
                        format!(" {}:{:?}{distinct} {of}", self.variable(*variable), aggregate.kind)
                    })
                    .collect();
                format!("(group {} {}{})", self.node(input), self.list(keys), aggregates.concat())
            }
            Node::Project { input, variables } => {
                format!("(project {} {})", self.node(input), self.list(variables))
            }
            Node::Distinct(input) => format!("(distinct {})", self.node(input)),
            Node::Reduced(input) => format!("(reduced {})", self.node(input)),
            Node::OrderBy { input, keys } => {
                let keys: Vec<_> = keys
                    .iter()
                    .map(|key| {
                        format!(
                            " {}{}",
                            if key.descending { "-" } else { "" },
                            self.expression(&key.expression)
                        )
                    })
                    .collect();
                format!("(order {}{})", self.node(input), keys.concat())
            }
            Node::Slice { input, start, length } => {
                format!("(slice {} {start} {length:?})", self.node(input))
            }
        }
    }

    fn expression(&self, expression: &Expression) -> String {
        match expression {
            Expression::Constant(term) => term.to_string().split("^^").next().unwrap_or_default().to_owned(),
            Expression::Variable(variable) => self.variable(*variable),
            Expression::Unbound => "unbound".to_owned(),
            Expression::Bound(variable) => format!("bound({})", self.variable(*variable)),
            other => {
                let debug = format!("{other:?}");
                let name = match other {
                    Expression::Call(function, _) => format!("{function:?}"),
                    _ => debug.split('(').next().unwrap_or_default().to_owned(),
                };
                let mut parts = Vec::new();
                other.for_each_child(&mut |child| parts.push(self.expression(child)));
                format!("{name}({})", parts.join(" "))
            }
        }
    }
}

#[test]
fn groups_are_flat() {
    check(
        "SELECT * { ?x :p ?y . { ?y :q ?z } ?z a :T }",
        "select [x0 y1 z2] {x0 <p> y1, y1 <q> z2, z2 <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <T>}",
    );
    check("SELECT ?y { ?x :p ?y }", "select [y1] {x0 <p> y1}");
    check("SELECT DISTINCT ?y { ?x :p ?y }", "select [y1] (distinct (project {x0 <p> y1} [y1]))");
    check("SELECT DISTINCT ?x ?y { ?x :p ?y }", "select [x0 y1] (distinct {x0 <p> y1})");
    check(
        "ASK { FILTER(?x) ?x :p 1 FILTER(?x > 2) }",
        "ask (filter {x0 <p> \"1\"^^<http://www.w3.org/2001/XMLSchema#integer>} And(x0 Compare(x0 \"2\")))",
    );
    check(
        "SELECT * { { ?x :p ?y } UNION { ?x :q ?y } UNION {} }",
        "select [x0 y1] (union {x0 <p> y1} {x0 <q> y1} {})",
    );
    check("SELECT * {}", "select [] {}");
}

#[test]
fn a_filter_sees_its_own_group_only() {
    check(
        "SELECT * { ?x :p ?y { ?x :q ?z FILTER(?y = ?z) } }",
        "select [x0 y1 z2] (join {x0 <p> y1} (filter {x0 <q> z2} Equal(unbound z2)))",
    );
    check(
        "SELECT * { ?x :p ?y { ?x :q ?z FILTER(BOUND(?y)) } }",
        "select [x0 y1 z2] (join {x0 <p> y1} (filter {x0 <q> z2} \"false\"))",
    );
    check("SELECT * { ?x :p ?y FILTER(BOUND(?w)) }", "select [x0 y1] (filter {x0 <p> y1} \"false\")");
}

#[test]
fn the_filter_of_an_optional_sees_both_sides() {
    check(
        "SELECT * { ?x :p ?y OPTIONAL { ?x :q ?z FILTER(?y = ?z && ?w) } }",
        "select [x0 y1 z2] (optional {x0 <p> y1} {x0 <q> z2} And(Equal(y1 z2) unbound))",
    );
    // One group deeper it is an ordinary filter.
    check(
        "SELECT * { ?x :p ?y OPTIONAL { { ?x :q ?z FILTER(?y = ?z) } } }",
        "select [x0 y1 z2] (optional {x0 <p> y1} (filter {x0 <q> z2} Equal(unbound z2)))",
    );
    check(
        "SELECT * { OPTIONAL { ?x :p ?y } ?x :q ?z }",
        "select [x0 y1 z2] (join (optional {} {x0 <p> y1}) {x0 <q> z2})",
    );
}

#[test]
fn a_sub_query_hides_variables_it_does_not_project() {
    check(
        "SELECT * { ?x :p ?y { SELECT ?x { ?x :q ?y } } }",
        "select [x0 y1] (join {x0 <p> y1} (project {x0 <q> y3} [x0]))",
    );
    check(
        "SELECT * { { SELECT ?x (?y AS ?z) { ?x :q ?y } } ?z :p ?y }",
        "select [x3 z4 y5] (join (project (extend {x3 <q> y1} z4 y1) [x3 z4]) {z4 <p> y5})",
    );
    check("SELECT * { { SELECT * { ?x :q ?y } } ?x :p ?y }", "select [x0 y1] {x0 <q> y1, x0 <p> y1}");
    check(
        "SELECT ?x { { SELECT ?x { ?x :q ?y } ORDER BY ?y LIMIT 2 } }",
        "select [x2] (slice (project (order {x2 <q> y1} y1) [x2]) 0 Some(2))",
    );
}

#[test]
fn minus_shares_only_variables_bound_on_its_left() {
    check(
        "SELECT * { ?x :p ?y MINUS { ?x :q ?z } ?x :r ?z }",
        "select [x0 y1 z4] (join (minus {x0 <p> y1} {x0 <q> z3}) {x0 <r> z4})",
    );
    check(
        "SELECT * { ?x :p ?y MINUS { ?v :q ?w FILTER(?y) } }",
        "select [x0 y1] (minus {x0 <p> y1} (filter {v2 <q> w3} unbound))",
    );
    check(
        "SELECT * { ?x :p ?y { ?x :q ?v MINUS { ?x :r ?y } } }",
        "select [x0 y1 v2] (join {x0 <p> y1} (minus {x0 <q> v2} {x0 <r> y4}))",
    );
}

#[test]
fn blank_nodes_are_variables_of_their_pattern() {
    check(
        "SELECT * { _:a :p _:a . FILTER(true) _:a :q [ :r () ] }",
        "select [] (filter {_0 <p> _0, _1 <r> <http://www.w3.org/1999/02/22-rdf-syntax-ns#nil>, _0 <q> _1} \"true\")",
    );
    check("SELECT * { ?x :p/^:q ?y }", "select [x0 y1] {x0 <p> _2, y1 <q> _2}");
    check(
        "SELECT * { ?x (:p|^:q)/:r ?y }",
        "select [x0 y1] (join {_2 <r> y1} (union {x0 <p> _2} {_2 <q> x0}))",
    );
    check("CONSTRUCT { _:a :p ?x . ?nothing :p ?x } { _:a :q ?x }", "construct [_4 <p> x1] {_3 <q> x1}");
    check("CONSTRUCT WHERE { _:a :p [] }", "construct [_2 <p> _3] {_0 <p> _1}");
    refused("SELECT * { _:a :p 1 { _:a :q 2 } }", QueryErrorKind::Syntax, "already used");
    refused("SELECT * { _:a :p 1 OPTIONAL { ?x ?y 2 } _:a :q 2 }", QueryErrorKind::Syntax, "already used");
}

#[test]
fn grouping_hides_all_but_keys() {
    check(
        "SELECT ?y (COUNT(?x) AS ?n) { ?x :p ?y } GROUP BY ?y HAVING (COUNT(?x) > 1)",
        "select [y1 n3] (extend (filter (group {x0 <p> y1} [y1] _2:Count x0) Compare(_2 \"1\")) n3 _2)",
    );
    check(
        "SELECT (COUNT(*) AS ?x) { ?x :p ?y }",
        "select [x3] (extend (group {x0 <p> y1} [] _2:Count *) x3 _2)",
    );
    check(
        "SELECT (COUNT(DISTINCT ?x) + 1 AS ?n) (?n * 2 AS ?m) { ?x :p ?y }",
        "select [n3 m4] (extend (extend (group {x0 <p> y1} [] _2:Count distinct x0) n3 Add(_2 \"1\")) m4 Multiply(n3 \"2\"))",
    );
    check(
        "SELECT ?k { ?x :p ?y } GROUP BY (STR(?x) AS ?k) ORDER BY MAX(?y) ?x",
        "select [k2] (order (group (extend {x0 <p> y1} k2 Str(x0)) [k2] _3:Max y1) _3)",
    );
    check(
        "SELECT ?y { ?x :p ?y } GROUP BY ?y VALUES ?x { 1 }",
        "select [y1] (join (group {x0 <p> y1} [y1]) (values [x2] 1 rows))",
    );
    refused(
        "SELECT ?x (COUNT(*) AS ?n) { ?x :p ?y } GROUP BY ?y",
        QueryErrorKind::Syntax,
        "?x has no single value",
    );
    refused("SELECT (?x + COUNT(*) AS ?n) { ?x :p ?y }", QueryErrorKind::Syntax, "?x has no single value");
    refused("SELECT * { ?x :p ?y } GROUP BY ?x", QueryErrorKind::Syntax, "SELECT *");
    refused("SELECT * { FILTER(COUNT(*) > 1) }", QueryErrorKind::Syntax, "is not allowed here");
}

#[test]
fn a_value_is_given_once() {
    check(
        "SELECT * { ?x :p ?y BIND(?y + ?w AS ?z) ?x :q ?z }",
        "select [x0 y1 z3] (join (extend {x0 <p> y1} z3 Add(y1 unbound)) {x0 <q> z3})",
    );
    refused("SELECT * { ?x :p ?y BIND(1 AS ?y) }", QueryErrorKind::Syntax, "second value");
    refused("SELECT (1 AS ?x) { ?x :p ?y }", QueryErrorKind::Syntax, "already has a value");
    refused("SELECT ?x ?x { ?x :p ?y }", QueryErrorKind::Syntax, "already a column");
}

#[test]
fn graphs() {
    check(
        "SELECT * { GRAPH :g { ?x :p ?y { ?y :q ?z } } }",
        "select [x0 y1 z2] {x0 <p> y1 in <g>, y1 <q> z2 in <g>}",
    );
    check(
        "SELECT * { GRAPH ?g { ?x :p True } }",
        "select [g0 x2] {x2 <p> \"true\"^^<http://www.w3.org/2001/XMLSchema#boolean> in g0}",
    );
    check("SELECT * { GRAPH ?g { ?x :p ?y } ?y :q ?g }", "select [g0 x2 y3] {x2 <p> y3 in g0, y3 <q> g0}");
    check("SELECT * { GRAPH ?g {} }", "select [g0] (distinct (project {_2 _3 _4 in g0} [g0]))");
    check("SELECT * { GRAPH :g {} }", "select [] (slice (project {_0 _1 _2 in <g>} []) 0 Some(1))");
    check(
        "SELECT * { GRAPH ?g { VALUES ?x { 1 } } }",
        "select [g0 x2] (join (distinct (project {_3 _4 _5 in g0} [g0])) (values [x2] 1 rows))",
    );
    check(
        "SELECT * { GRAPH ?g { FILTER(BOUND(?g)) } }",
        "select [g0] (filter (distinct (project {_2 _3 _4 in g0} [g0])) \"false\")",
    );
    check(
        "SELECT * { GRAPH ?g { { SELECT ?x { ?x :p ?y } } } }",
        "select [g0 x4] (project {x4 <p> y3 in g0} [x4 g0])",
    );
    check(
        "SELECT * { GRAPH ?g { { SELECT ?x (COUNT(*) AS ?n) { ?x :p ?y } GROUP BY ?x } } }",
        "select [g0 x6 n7] (project (extend (group {x6 <p> y3 in g0} [x6 g0] _4:Count *) n7 _4) [x6 n7 g0])",
    );
    check(
        "SELECT * { GRAPH ?g { ?x :p ?y MINUS { ?x :q ?z } } }",
        "select [g0 x2 y3] (minus {x2 <p> y3 in g0} {x2 <q> z5 in g0})",
    );
    check("SELECT * { GRAPH ?g { ?x :p ?y MINUS { ?v :q ?z } } }", "select [g0 x2 y3] {x2 <p> y3 in g0}");
    refused(
        "SELECT * { GRAPH ?g { { SELECT ?x { ?x :p ?y } LIMIT 1 } } }",
        QueryErrorKind::Unsupported,
        "not supported yet",
    );
}

/// Within `GRAPH ?g`, `?g` is an ordinary variable, which is joined with the name of the graph afterwards.
#[test]
fn graphs_are_joined_with_their_names() {
    check("SELECT * { GRAPH ?g { ?g :p ?y } }", "select [g0 y2] {g0 <p> y2 in g0}");
    check(
        "SELECT * { GRAPH ?g { ?g :p ?y OPTIONAL { ?y :q ?g FILTER(BOUND(?g)) } } }",
        "select [g0 y2] (optional {g0 <p> y2 in g0} {y2 <q> g0 in g0} bound(g0))",
    );
    // The optional part is evaluated without the name.
    check(
        "SELECT * { GRAPH ?g { ?x :p ?y OPTIONAL { ?x :q ?g } } }",
        "select [g0 x2 y3] (filter (optional {x2 <p> y3 in g0} {x2 <q> _4 in g0}) \
         Or(Not(bound(_4)) SameTerm(_4 g0)))",
    );
    check(
        "SELECT * { GRAPH ?g { BIND(1 AS ?g) } }",
        "select [g0] (filter (join (distinct (project {_2 _3 _4 in _1} [_1])) (extend {} g0 \"1\")) \
         SameTerm(g0 _1))",
    );
    check(
        "SELECT * { GRAPH ?g { ?x :p ?y OPTIONAL { ?x :q ?z } MINUS { ?v :q ?z } } }",
        "select [g0 x2 y3 z4] (filter (optional (optional {x2 <p> y3 in g0} {x2 <q> z4 in g0}) \
         (extend {_7 <q> _8 in g0} _9 \"true\") And(Or(Not(bound(z4)) SameTerm(z4 _8)) bound(z4))) Not(bound(_9)))",
    );
    check(
        "SELECT * { GRAPH ?g { { SELECT (COUNT(*) AS ?n) (SUM(?y) AS ?s) (MIN(?y) AS ?m) { ?x :p ?y } } } }",
        "select [g0 n15 s16 m17] (project (extend (extend (extend (extend (extend (optional \
         (distinct (project {_10 _11 _12 in g0} [g0])) (group {x2 <p> y3 in g0} [g0] _13:Count * _14:Sum y3 _8:Min y3)) \
         _4 If(bound(_13) _13 \"0\")) _6 If(bound(_13) _14 \"0\")) n15 _4) s16 _6) m17 _8) [n15 s16 m17 g0])",
    );
    check(
        "SELECT * { GRAPH ?g { { ?g :p ?y } UNION { ?x :p ?y } FILTER(BOUND(?g)) } }",
        "select [g0 y2 x3] (filter (union {_4 <p> y2 in g0} {x3 <p> y2 in g0}) \
         And(bound(_4) Or(Not(bound(_4)) SameTerm(_4 g0))))",
    );
    // A value of the row replaces the name everywhere in the pattern.
    check(
        "SELECT * { ?g :r ?z FILTER EXISTS { GRAPH ?g { ?x :p ?y OPTIONAL { ?x :q ?g } } } }",
        "select [g0 z1] (filter {g0 <r> z1} Exists())",
    );
    refused(
        "SELECT * { OPTIONAL { ?g :r ?z } FILTER EXISTS { GRAPH ?g { ?x :p ?y OPTIONAL { ?x :q ?g } } } }",
        QueryErrorKind::Unsupported,
        "rows may or may not bind it",
    );
}

#[test]
fn reifiers_are_edges() {
    let edge = "select [x0 y1 e2 v3] {x0 <p> y1 as e2, e2 <q> v3}";
    check("SELECT * { ?x :p ?y ~ ?e {| :q ?v |} }", edge);
    check("SELECT * { << ?x :p ?y ~ ?e >> :q ?v }", edge);
    check("SELECT * { ?e rdf:reifies <<( ?x :p ?y )>> . ?x :p ?y }", "select [e0 x1 y2] {x1 <p> y2 as e0}");
    check("SELECT * { ?x :p ?y {| :q ?v |} }", "select [x0 y1 v3] {x0 <p> y1 as _2, _2 <q> v3}");
    check(
        "SELECT * { << << ?x :p ?y >> :q ?z >> :r 1 . }",
        "select [x0 y1 z3] {x0 <p> y1 as _2, _2 <q> z3 as _4, _4 <r> \"1\"^^<http://www.w3.org/2001/XMLSchema#integer>}",
    );
}

#[test]
fn triple_terms_are_matched_by_their_parts() {
    check("SELECT * { ?e :says <<( :a :p 'x' )>> }", "select [e0] {e0 <says> <<( <a> <p> \"x\" )>>}");
    for text in [
        "SELECT * { ?e :says <<( ?x :p ?y )>> . ?x :q 1 }",
        "SELECT * { ?e :says <<( ?x :p <<( ?e ?x ?y )>> )>> }",
        "SELECT * { ?e :p* <<( ?x :p 1 )>> }",
        "SELECT * { <<( ?x :p 1 )>> ?p ?y }",
        "CONSTRUCT { ?e :says <<( ?x :p _:b )>> ~ :r } WHERE { ?e :says ?x }",
    ] {
        let query = parse(text, &options()).unwrap_or_else(|error| panic!("{text}: {error}"));
        bound(&query, &query.root);
    }
    for text in [
        "SELECT * { ?e :says <<( ?x :p ( 1 ) )>> }",
        "SELECT * { ?e :says <<( ?x :p* 1 )>> }",
        "SELECT * { ?e :says <<( << :a :b :c >> :p 1 )>> }",
        "SELECT * { BIND(<<( _:b :p 1 )>> AS ?t) }",
        "SELECT * { VALUES ?t { <<( ?x :p 1 )>> } }",
    ] {
        refused(text, QueryErrorKind::Syntax, "");
    }
}

#[test]
fn parameters_are_in_scope_everywhere() {
    let options = ParseOptions { parameters: &["who"], ..options() };
    let text = "SELECT * { ?x :p ?y { SELECT ?x { ?x :q $who } } { ?x :r ?z FILTER(?z = ?who) } }";
    let query = parse(text, &options).expect("valid");
    assert_eq!(query.parameters, [Variable(0)]);
    assert_eq!(
        Printer(&query).node(&query.root),
        "(join {x1 <p> y2} (project {x1 <q> who0} [x1]) (filter {x1 <r> z4} Equal(z4 who0)))"
    );
    let error = parse("SELECT * { ?x :p ?wo }", &options).expect_err("not mentioned");
    assert_eq!(error.hint(), Some("did you mean ?wo?"));
}

#[test]
fn error_positions() {
    for (text, place, message, hint) in [
        ("SELECT * { ?x fof:name ?n }", (1, 15), "the prefix fof: is not declared", "did you mean foaf:?"),
        (
            "SELECT * { ?x foaf:name ?n }",
            (1, 15),
            "the prefix foaf: is not declared",
            "add PREFIX foaf: <http://xmlns",
        ),
        (
            "PREFIX ub: <http://u/>\nSELECT * {\n  ?x un:name ?n }",
            (3, 6),
            "the prefix un: is not declared",
            "did you mean ub:?",
        ),
        (
            "SELECT * { ?x :p ?n FILTER(STRLEM(?n)) }",
            (1, 28),
            "there is no function STRLEM",
            "did you mean STRLEN?",
        ),
        ("SELECT * { ?x :p ?n FLTER(?n) }", (1, 21), "but found FLTER", "did you mean FILTER?"),
        ("SELCT * { ?x :p ?n }", (1, 1), "expected SELECT, ASK", "did you mean SELECT?"),
        ("SELECT * { ?x :p ?n", (1, 20), "the query ends", ""),
        ("SELECT * { ?x :p \"a }", (1, 18), "does not end", "three quotation marks"),
        ("SELECT * { ?x :p ?n FILTER(SUBSTR(?n)) }", (1, 28), "takes 2 to 3 arguments, but has 1", ""),
        (
            "SELECT * { FILTER(<http://www.w3.org/2001/XMLSchema#integr>(1)) }",
            (1, 19),
            "there is no function",
            "xsd:integer",
        ),
        ("SELECT * { ?x !(:p|) ?n }", (1, 20), "expected a predicate", ""),
        ("SELECT * { ?x :p ?n FILTER NOT EXISTS ?n }", (1, 39), "expected {", ""),
        ("SELECT * { ?x :p ?n FILTER EXISTS { ?n :p } }", (1, 43), "expected a variable or a term", ""),
        ("SELECT * { ?x :p ?n FILTER EXISTS { ?n :p ?x }", (1, 47), "the query ends", ""),
        ("SELECT * FROM ?g {}", (1, 15), "expected an IRI", ""),
        ("SELECT * { <x> :p 1 }", (1, 12), "not a valid IRI", "BASE"),
        ("PREFIX h: <http://h> SELECT * { h:a:b :p 1 }", (1, 33), "not a valid IRI", ""),
        ("PREFIX h: <http://h:8> SELECT * { h:a :p 1 }", (1, 35), "not a valid IRI", ""),
        ("PREFIX h: <http://[::1]> SELECT * { h:a :p 1 }", (1, 37), "not a valid IRI", ""),
        (
            "INSERT DATA { :a :b :c }",
            (1, 1),
            "this is an update, not a query",
            "run it as one: `vervet update`, `Database::update`, or over HTTP POST /update",
        ),
        ("SELECT * { ?x :p ?y FILTER(?x<?y&&?y>?x) }", (1, 30), "but found <?y&&?y>", "space after <"),
        ("SELECT * { ?x :p 1 } LIMIT -1", (1, 28), "expected a whole number", ""),
    ] {
        let error = parse(text, &options()).expect_err(text);
        assert_eq!((error.line(), error.column()), place, "{error}");
        assert!(error.message().contains(message), "{error}");
        assert!(error.hint().unwrap_or_default().contains(hint), "{error} {:?}", error.hint());
    }
}

/// users 13 and 14: what SQL, Cypher and programming languages write has a hint, with the caret on the cause.
#[test]
fn users_14_known_mistakes_have_the_right_hint() {
    for (text, column, message, hint) in [
        ("SELECT * { ?x :p ?n FILTER(?n == 1) }", 32, "but found =", "did you mean =?"),
        ("SELECT * { ?x :p ?n FILTER(?n <> 1) }", 31, "but found <>", "did you mean !=?"),
        ("SELECT * { ?x :p ?n FILTER(?n = 1 and ?x = 2) }", 35, "but found and", "did you mean &&?"),
        ("SELECT * { ?x :p ?n FILTER(?n = 1 OR ?x = 2) }", 35, "but found OR", "did you mean ||?"),
        ("SELECT * { ?x :p ?n FILTER(?n LIKE 'a%') }", 31, "but found LIKE", "REGEX, CONTAINS"),
        ("SELECT * { ?x :p ?n FILTER(?n IS NULL) }", 31, "but found IS", "BOUND(?x)"),
        ("SELECT * { ?x :p ?n FILTER(UPPER(?n) = 'A') }", 28, "no function UPPER", "did you mean UCASE?"),
        ("SELECT * { ?x :p ?n FILTER(length(?n) = 1) }", 28, "no function length", "did you mean STRLEN?"),
        ("SELECT * { ?x :p ?n FILTER ?n = 1 }", 28, "but found ?n", "put the condition in parentheses"),
        ("SELECT * { ?x :p ?n FILTER NOTEXISTS { ?n :q ?x } }", 28, "found NOTEXISTS", "NOT EXISTS?"),
        ("SELECT COUNT(?n) { ?x :p ?n }", 8, "but found COUNT", "write (COUNT(?n) AS ?name)"),
        ("SELECT ?x COUNT(?n) { ?x :p ?n }", 11, "but found COUNT", "write (COUNT(?n) AS ?name)"),
        ("SELECT (COUNT(?n)) { ?x :p ?n }", 18, "expected AS", "write (COUNT(?n) AS ?name)"),
        ("SELECT (COUNT(?n AS ?m) { ?x :p ?n }", 18, "expected ), but found AS", "close the function"),
        ("SELECT n { ?x :p ?n }", 8, "but found n", "did you mean ?n?"),
        ("SELECT ?x WHRE { ?x :p ?n }", 11, "but found WHRE", "did you mean WHERE?"),
        ("SELECT ?x, ?n { ?x :p ?n }", 10, "but found ,", "no commas"),
        ("SELECT * FROM airports WHERE { ?x :p ?n }", 15, "but found airports", "not a table"),
        (
            "SELECT ?x (COUNT(?n) AS ?m) { ?x :p ?n } GROUPBY ?x",
            42,
            "found GROUPBY",
            "did you mean GROUP BY?",
        ),
        (
            "SELECT ?x (COUNT(?n) AS ?m) { ?x :p ?n } ORDER BY ?m GROUP BY ?x",
            54,
            "but found GROUP",
            "the clauses of a query are",
        ),
        ("SELECT * { ?x :p ?n } LIMIT 3 ORDER BY ?n", 31, "but found ORDER", "the clauses of a query are"),
        ("SELECT * { ?x :p ?n } ORDER BY ?n DESC LIMIT 3", 40, "but found LIMIT", "write ORDER BY DESC(?x)"),
        ("SELECT * { ?x :p “a” }", 18, "unexpected character", "straight quotation marks"),
        ("SELECT * {\u{a0}?x :p 1 }", 11, "unexpected character", "looks like a space"),
        ("SELECT * { ?x <not an iri> ?n }", 15, "but found <", "contains no spaces"),
        ("SELECT * { ?x :p ?n ", 21, "the query ends", "the { in line 1, column 10 is not closed"),
        ("SELECT * { { ?x :p ?n } FILTER(1", 33, "the query ends", "the ( in line 1, column 31"),
        ("SELECT * { ?x :p ?n } LIMIT 1;", 30, "but found ;", "does not end with ;"),
        ("MATCH (n) RETURN n", 1, "but found MATCH", "looks like Cypher"),
        (
            "SELECT * { ?x :p ?n FILTER(<urn:vervet:text:matchs>(?n, 'a')) }",
            28,
            "there is no function",
            "did you mean <urn:vervet:text:matches>?",
        ),
    ] {
        let error = parse(text, &options()).expect_err(text);
        assert_eq!((error.line(), error.column()), (1, column), "{error}");
        assert!(error.message().contains(message), "{error}");
        assert!(error.hint().unwrap_or_default().contains(hint), "{error} {:?}", error.hint());
    }
    // What looks alike is valid.
    for text in [
        "SELECT (COUNT(?n) AS ?m) { ?x :p ?n FILTER(EXISTS { SELECT (1 AS ?one) {} }) }",
        "SELECT (EXISTS { BIND(1 AS ?one) } AS ?m) { ?x :p ?n }",
        "SELECT * { ?x :p ?n FILTER(<urn:other:matchs>(?n, 'a')) }",
    ] {
        parse(text, &options()).unwrap_or_else(|error| panic!("{error}"));
    }
}

/// The patterns of `EXISTS` in a query, outermost first, with their outer variables.
fn exists_of(text: &str) -> Vec<Vec<String>> {
    fn visit(query: &Query, node: &Node, found: &mut Vec<Vec<String>>) {
        fn of_expression(query: &Query, expression: &Expression, found: &mut Vec<Vec<String>>) {
            if let Expression::Exists(exists) = expression {
                found.push(exists.outer.iter().map(|v| query.variables[v.index()].clone()).collect());
                visit(query, &exists.pattern, found);
            }
            expression.for_each_child(&mut |child| of_expression(query, child, found));
        }
        node.for_each_expression(&mut |expression| of_expression(query, expression, found));
        node.for_each_child(&mut |child| visit(query, child, found));
    }
    let query = parse(text, &options()).unwrap_or_else(|error| panic!("{text}: {error}"));
    bound(&query, &query.root);
    let mut found = Vec::new();
    visit(&query, &query.root, &mut found);
    found
}

/// A name in `EXISTS` refers to the outer row if the row may bind it, for any position of the filter in its
/// group.
#[test]
fn exists_sees_variables_of_its_group() {
    for (text, expected) in [
        ("SELECT * { FILTER EXISTS { ?x :q ?y } ?x :p ?z }", vec![vec!["x"]]),
        // Only another group binds `?y`.
        ("SELECT * { { ?x :p ?z FILTER EXISTS { ?x :q ?y } } ?y :p ?z }", vec![vec!["x"]]),
        // Also in a nested condition.
        ("SELECT * { ?x :p ?z FILTER EXISTS { ?x :q ?y FILTER(?y < ?z) } }", vec![vec!["x", "z"]]),
        ("SELECT * { ?x :p ?z OPTIONAL { ?z :p ?w FILTER NOT EXISTS { ?w :p ?x } } }", vec![vec!["w", "x"]]),
        ("SELECT * { ?x :p ?z BIND(EXISTS { ?z :p ?q } AS ?b) ?q :p ?b }", vec![vec!["z"]]),
        (
            "SELECT * { ?x :p ?z FILTER EXISTS { ?z :p ?y FILTER EXISTS { ?y :p ?x } } }",
            vec![vec!["z", "x"], vec!["y", "x"]],
        ),
        // A sub-query has its own scope.
        ("SELECT * { ?x :p ?z FILTER EXISTS { SELECT ?q { ?q :p ?x } } }", vec![vec![]]),
        ("SELECT ?x { ?x :p ?z } GROUP BY ?x HAVING (EXISTS { ?x :p ?z })", vec![vec!["x"]]),
        (
            "SELECT (COUNT(*) AS ?n) { ?x :p ?z } HAVING (SUM(IF(EXISTS { ?x :p ?z }, 1, 0)) > 1)",
            vec![vec!["x", "z"]],
        ),
        ("SELECT * { ?x :p ?z } ORDER BY (EXISTS { ?x :q ?y })", vec![vec!["x"]]),
    ] {
        let mut found = exists_of(text);
        // In order of appearance in the text, which differs from that in the algebra.
        found.iter_mut().for_each(|names| names.sort());
        let mut expected: Vec<Vec<String>> =
            expected.into_iter().map(|names| names.into_iter().map(str::to_owned).collect()).collect();
        expected.iter_mut().for_each(|names| names.sort());
        assert_eq!(found, expected, "{text}");
    }
}
