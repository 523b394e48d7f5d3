//! Random algebra over small random graphs: every plan satisfies its contract, and its execution by the
//! reference evaluator equals SPARQL's bottom-up definition, with and without each optimization.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use crate::common::algebra::{Evaluator, Solution};
use crate::common::run::Runner;
use crate::common::{Names, PREFIXES, term};
use oxrdf::{GraphName, Quad, Term};
use std::collections::BTreeMap;
use vervet_algebra::{
    Aggregate, AggregateKind, Comparator, Expression, Form, GraphSlot, Node, Pattern, Query, Slot, Variable,
};
use vervet_kernel::Control;
use vervet_model::Id;
use vervet_planner::{PlanOptions, explain, plan, validate};
use vervet_snapshot::Snapshot;
use vervet_testkit::MemorySnapshot;

/// A small linear congruential generator; the seed reproduces a failure.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[usize::try_from(self.below(from.len() as u64)).unwrap()]
    }
}

const VERTICES: [&str; 7] = ["v0", "v1", "v2", "v3", "v4", "v5", "\"text\""];
const PREDICATES: [&str; 4] = ["p", "q", "r", "a"];
const TYPES: [&str; 3] = ["A", "B", "C"];

fn random_graph(random: &mut Random) -> (MemorySnapshot, Vec<[Term; 3]>) {
    let mut triples = Vec::new();
    for _ in 0..4 + random.below(18) {
        let predicate = random.pick(&PREDICATES);
        let object = if predicate == "a" { random.pick(&TYPES) } else { random.pick(&VERTICES) };
        let triple = [term(random.pick(&VERTICES[..6])), term(predicate), term(object)];
        if !triples.contains(&triple) {
            triples.push(triple);
        }
    }
    let quads = triples.iter().map(|[s, p, o]| match (s, p) {
        (Term::NamedNode(s), Term::NamedNode(p)) => {
            Quad::new(s.clone(), p.clone(), o.clone(), GraphName::DefaultGraph)
        }
        _ => panic!("not a triple"),
    });
    (MemorySnapshot::from_quads(quads), triples)
}

/// Generates nodes over few variables, so that nodes share variables.
struct Maker<'r> {
    random: &'r mut Random,
    names: Names,
    fresh: usize,
}

impl Maker<'_> {
    fn variable(&mut self) -> Variable {
        let name = self.random.pick(&["x", "y", "z", "w", "u"]);
        self.names.variable(name)
    }

    fn fresh(&mut self) -> Variable {
        self.fresh += 1;
        let name = format!("n{}", self.fresh);
        self.names.variable(&name)
    }

    fn pattern(&mut self) -> Pattern {
        let slot = |maker: &mut Self, constants: &[&str], chance: u64| {
            if maker.random.below(10) < chance {
                let name = if maker.random.below(20) == 0 { "unknown" } else { maker.random.pick(constants) };
                Slot::Constant(term(name))
            } else {
                Slot::Variable(maker.variable())
            }
        };
        let predicate = slot(self, &PREDICATES, 9);
        let is_type = predicate == Slot::Constant(term("a"));
        Pattern {
            subject: slot(self, &VERTICES[..6], 2),
            predicate,
            object: if is_type { slot(self, &TYPES, 8) } else { slot(self, &VERTICES, 2) },
            graph: GraphSlot::Default,
            edge: None,
            parallel: false,
        }
    }

    fn condition(&mut self, scope: &[Variable]) -> Expression {
        let Some(count) = u64::try_from(scope.len()).ok().filter(|count| *count > 0) else {
            return Expression::Unbound;
        };
        let mut one = || scope[usize::try_from(self.random.below(count)).unwrap()];
        let (a, b) = (one(), one());
        let variable = |variable| Box::new(Expression::Variable(variable));
        let name = if self.random.below(8) == 0 { "unknown" } else { self.random.pick(&VERTICES) };
        let constant = Box::new(Expression::Constant(term(name)));
        match self.random.below(8) {
            0 => Expression::Bound(a),
            1 => Expression::Not(Box::new(Expression::Bound(a))),
            2 => Expression::Equal(variable(a), constant),
            3 => Expression::Not(Box::new(Expression::Equal(variable(a), variable(b)))),
            4 => Expression::SameTerm(variable(a), variable(b)),
            5 => Expression::Equal(variable(a), variable(b)),
            6 => Expression::Compare(Comparator::Less, variable(a), variable(b)),
            _ => Expression::And(vec![
                Expression::Not(Box::new(Expression::Equal(variable(a), constant))),
                Expression::Or(vec![Expression::Bound(b), Expression::SameTerm(variable(a), variable(b))]),
            ]),
        }
    }

    fn node(&mut self, depth: u64) -> Node {
        let scope = |node: &Node| {
            let mut variables = Vec::new();
            node.variables(&mut variables);
            variables
        };
        let kind = if depth == 0 { self.random.below(3) } else { self.random.below(14) };
        match kind {
            0..=2 => Node::Patterns((0..1 + self.random.below(4)).map(|_| self.pattern()).collect()),
            3 | 4 => Node::Join((0..2 + self.random.below(2)).map(|_| self.node(depth - 1)).collect()),
            5 | 6 => {
                let (left, right) = (self.node(depth - 1), self.node(depth - 1));
                let mut both = scope(&left);
                both.extend(scope(&right));
                let condition = (self.random.below(2) == 0).then(|| self.condition(&both));
                Node::LeftJoin { left: Box::new(left), right: Box::new(right), condition }
            }
            7 => Node::Union((0..2 + self.random.below(2)).map(|_| self.node(depth - 1)).collect()),
            8 => Node::Minus { left: Box::new(self.node(depth - 1)), right: Box::new(self.node(depth - 1)) },
            9 | 10 => {
                let input = self.node(depth - 1);
                let condition = self.condition(&scope(&input));
                Node::Filter { input: Box::new(input), condition }
            }
            11 => {
                let input = self.node(depth - 1);
                let expression = match self.random.below(3) {
                    0 => Expression::Constant(term(self.random.pick(&VERTICES))),
                    1 => Expression::Constant(term("unknown")),
                    _ => scope(&input).first().map_or(Expression::Unbound, |one| Expression::Variable(*one)),
                };
                // Sometimes a variable in scope.
                let known = scope(&input);
                let wanted = self.variable();
                let variable = if known.contains(&wanted) { self.fresh() } else { wanted };
                Node::Extend { input: Box::new(input), variable, expression }
            }
            12 => {
                let (a, b) = (self.variable(), self.fresh());
                let rows = (0..1 + self.random.below(3))
                    .map(|_| {
                        let name =
                            if self.random.below(5) == 0 { "unknown" } else { self.random.pick(&VERTICES) };
                        vec![(self.random.below(4) > 0).then(|| term(name)), Some(term("v1"))]
                    })
                    .collect();
                Node::Values { variables: vec![a, b], rows }
            }
            _ => {
                let input = self.node(depth - 1);
                let known = scope(&input);
                let keys: Vec<_> = known.iter().copied().filter(|_| self.random.below(2) == 0).collect();
                match self.random.below(3) {
                    0 => {
                        let expression = known.first().map(|one| Expression::Variable(*one));
                        let distinct = expression.is_some() && self.random.below(2) == 0;
                        let aggregate = Aggregate { kind: AggregateKind::Count, expression, distinct };
                        let star =
                            Aggregate { kind: AggregateKind::Count, expression: None, distinct: false };
                        let aggregates = vec![(self.fresh(), aggregate), (self.fresh(), star)];
                        // Variables hidden by a sub-query have numbers of their own.
                        self.rename_hidden(Node::Group { input: Box::new(input), keys, aggregates }, &known)
                    }
                    1 => Node::Distinct(Box::new(input)),
                    _ => {
                        let node = Node::Project { input: Box::new(input), variables: keys };
                        Node::Distinct(Box::new(self.rename_hidden(node, &known)))
                    }
                }
            }
        }
    }

    /// A chain of patterns between two variables.
    fn chain(&mut self, from: Variable, to: Variable, length: u64, shape: u64) -> Node {
        let mut shape = Random(shape);
        let mut patterns = Vec::new();
        let mut here = from;
        for step in 0..length {
            let next = if step + 1 == length { to } else { self.fresh() };
            let predicate = Slot::Constant(term(shape.pick(&PREDICATES[..3])));
            let (mut subject, mut object) = (Slot::Variable(here), Slot::Variable(next));
            if shape.below(2) == 0 {
                std::mem::swap(&mut subject, &mut object);
            }
            let graph = GraphSlot::Default;
            patterns.push(Pattern { subject, predicate, object, graph, edge: None, parallel: false });
            here = next;
        }
        Node::Patterns(patterns)
    }

    /// A union of chains between two variables, some of them equal.
    fn relation(&mut self, from: Variable, to: Variable) -> Node {
        let (mut length, mut shape) = (1 + self.random.below(3), self.random.below(1 << 20));
        let mut branches = vec![self.chain(from, to, length, shape)];
        for _ in 0..self.random.below(3) {
            if self.random.below(2) == 0 {
                (length, shape) = (1 + self.random.below(3), self.random.below(1 << 20));
            }
            branches.push(self.chain(from, to, length, shape));
        }
        if branches.len() == 1 { branches.remove(0) } else { Node::Union(branches) }
    }

    /// A projection of joined relations, mostly under set semantics.
    fn relations(&mut self) -> Node {
        let mut parts = Vec::new();
        for _ in 0..1 + self.random.below(4) {
            let (from, to) = (self.variable(), self.variable());
            parts.push(self.relation(from, to));
        }
        if self.random.below(4) == 0 {
            parts.push(self.node(1));
        }
        let mut node = if parts.len() == 1 { parts.remove(0) } else { Node::Join(parts) };
        let mut known = Vec::new();
        node.variables(&mut known);
        match self.random.below(6) {
            0 => {
                let (from, to) = (self.variable(), self.fresh());
                let right = Box::new(self.relation(from, to));
                node = Node::LeftJoin { left: Box::new(node), right, condition: None };
            }
            1 => {
                let (from, to) = (self.variable(), self.fresh());
                node = Node::Minus { left: Box::new(node), right: Box::new(self.relation(from, to)) };
            }
            2 => node = Node::Filter { condition: self.condition(&known), input: Box::new(node) },
            _ => {}
        }
        let mut known = Vec::new();
        node.variables(&mut known);
        let visible: Vec<_> = known.iter().copied().filter(|_| self.random.below(4) == 0).collect();
        match self.random.below(8) {
            0 => Node::Project { input: Box::new(node), variables: visible },
            1 | 2 => {
                let of = known[usize::try_from(self.random.below(known.len() as u64)).unwrap()];
                let expression = Some(Expression::Variable(of));
                let aggregate = Aggregate { kind: AggregateKind::Count, expression, distinct: true };
                let aggregates = vec![(self.fresh(), aggregate)];
                Node::Group { input: Box::new(node), keys: visible, aggregates }
            }
            3 => {
                let input = Node::Project { input: Box::new(node), variables: visible };
                let count = Aggregate { kind: AggregateKind::Count, expression: None, distinct: false };
                let aggregates = vec![(self.fresh(), count)];
                let input = Box::new(Node::Distinct(Box::new(input)));
                Node::Group { input, keys: Vec::new(), aggregates }
            }
            _ => Node::Distinct(Box::new(Node::Project { input: Box::new(node), variables: visible })),
        }
    }

    fn rename_hidden(&mut self, node: Node, known: &[Variable]) -> Node {
        let mut visible = Vec::new();
        node.variables(&mut visible);
        let renamed: BTreeMap<Variable, Variable> =
            known.iter().filter(|v| !visible.contains(v)).map(|v| (*v, self.fresh())).collect();
        let new = |variable: &mut Variable| {
            if let Some(to) = renamed.get(variable) {
                *variable = *to;
            }
        };
        let mut node = node;
        rename(&mut node, &new);
        node
    }
}

fn rename_expression(expression: &mut Expression, new: &dyn Fn(&mut Variable)) {
    match expression {
        Expression::Variable(variable) | Expression::Bound(variable) => new(variable),
        Expression::Not(one) => rename_expression(one, new),
        Expression::And(all) | Expression::Or(all) => {
            all.iter_mut().for_each(|one| rename_expression(one, new))
        }
        Expression::Equal(a, b) | Expression::SameTerm(a, b) | Expression::Compare(_, a, b) => {
            rename_expression(a, new);
            rename_expression(b, new);
        }
        _ => {}
    }
}

fn rename(node: &mut Node, new: &dyn Fn(&mut Variable)) {
    match node {
        Node::Patterns(patterns) => {
            for pattern in patterns {
                for slot in [&mut pattern.subject, &mut pattern.predicate, &mut pattern.object] {
                    if let Slot::Variable(variable) = slot {
                        new(variable);
                    }
                }
            }
        }
        Node::Path(_) | Node::Service(_) => panic!("the queries of these tests have neither"),
        Node::Join(nodes) | Node::Union(nodes) => nodes.iter_mut().for_each(|node| rename(node, new)),
        Node::LeftJoin { left, right, condition } => {
            rename(left, new);
            rename(right, new);
            condition.iter_mut().for_each(|condition| rename_expression(condition, new));
        }
        Node::Minus { left, right } => {
            rename(left, new);
            rename(right, new);
        }
        Node::Filter { input, condition } => {
            rename(input, new);
            rename_expression(condition, new);
        }
        Node::Extend { input, variable, expression } => {
            rename(input, new);
            new(variable);
            rename_expression(expression, new);
        }
        Node::Values { variables, .. } => variables.iter_mut().for_each(new),
        Node::Group { input, keys, aggregates } => {
            rename(input, new);
            keys.iter_mut().for_each(new);
            for (_, aggregate) in aggregates {
                aggregate.expression.iter_mut().for_each(|expression| rename_expression(expression, new));
            }
        }
        Node::Project { input, variables } => {
            rename(input, new);
            variables.iter_mut().for_each(new);
        }
        Node::Distinct(input) | Node::Reduced(input) => rename(input, new),
        Node::OrderBy { .. } | Node::Slice { .. } => panic!("not made here"),
    }
}

fn sorted(
    solutions: impl IntoIterator<Item = (Solution, u64)>,
    result: &[Variable],
) -> BTreeMap<Solution, u64> {
    let mut all = BTreeMap::new();
    for (mut solution, count) in solutions {
        solution.retain(|variable, _| result.contains(variable));
        *all.entry(solution).or_default() += count;
    }
    all
}

fn compare(seed: u64) {
    compare_made(seed, &|maker, depth| maker.node(depth));
}

fn compare_made(seed: u64, make: &dyn Fn(&mut Maker<'_>, u64) -> Node) {
    let random = &mut Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
    let (snapshot, triples) = random_graph(random);
    let triples: Vec<[Id; 3]> = triples
        .iter()
        .map(|triple| triple.each_ref().map(|term| snapshot.lookup(term.as_ref()).unwrap().unwrap()))
        .collect();
    let depth = random.below(4);
    let mut maker = Maker { random, names: Names::default(), fresh: 0 };
    let root = make(&mut maker, depth);
    let mut result = Vec::new();
    root.variables(&mut result);
    result.retain(|_| maker.random.below(3) > 0);
    let query =
        Query { form: Form::Select(result.clone()), root, variables: maker.names.0, parameters: Vec::new() };
    let all = Evaluator { snapshot: &snapshot, triples: &triples }.evaluate(&query.root);
    if all.len() > 20_000 {
        return;
    }
    let expected = sorted(all.into_iter().map(|solution| (solution, 1)), &result);
    let full = PlanOptions::default();
    for options in [
        full.clone(),
        PlanOptions { reorder: false, known_counts: false, ..full.clone() },
        PlanOptions { intersect: false, ..full.clone() },
        PlanOptions { inference: false, beam: Some(1), ..full.clone() },
        PlanOptions { compare_from_cost: 0.0, ..full.clone() },
        PlanOptions { compare_from_rows: 0.0, compare_from_cost: 0.0, ..full.clone() },
        full.clone().eager(false),
        full.clone().eager(true),
        PlanOptions { compare_from_rows: 0.0, compare_from_cost: 0.0, seeded: f64::INFINITY, ..full },
    ] {
        let plan = plan(&query, &snapshot, &options, &Control::default()).unwrap();
        let text = || format!("seed {seed}\n{query:#?}\n{}", explain(&plan, &snapshot, &PREFIXES));
        validate(&plan).unwrap_or_else(|error| panic!("{error}\n{}", text()));
        let found = sorted(Runner::new(&plan, &snapshot, &triples).run(&plan), &result);
        let found: BTreeMap<Solution, u64> = found
            .into_iter()
            .map(|(solution, count)| {
                let real = |id: Id| match id.tag() {
                    vervet_model::Tag::Computed => Runner::new(&plan, &snapshot, &triples)
                        .computed
                        .get(usize::try_from(id.payload()).unwrap())
                        .copied()
                        .unwrap_or(id),
                    _ => id,
                };
                (solution.into_iter().map(|(variable, id)| (variable, real(id))).collect(), count)
            })
            .collect();
        assert!(found == expected, "expected {expected:?}\nfound {found:?}\n{}", text());
    }
}

/// Regression: if rows bind all variables of an implied type and no other pattern connects with them, the
/// plan omitted the other patterns, which have no connected order.
#[test]
fn patterns_beside_an_implied_type_are_not_lost() {
    [206_457, 220_441].into_iter().for_each(compare);
}

/// Chains, alternatives and redundant parts below `DISTINCT`, whose plans have paths and frontiers.
#[test]
fn random_relations_agree_with_the_reference_semantics() {
    let count =
        std::env::var("VERVET_RANDOM_CASES").ok().and_then(|count| count.parse().ok()).unwrap_or(1_500);
    let start = std::env::var("VERVET_RANDOM_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    (start..start + count).for_each(|seed| compare_made(seed, &|maker, _| maker.relations()));
}

#[test]
fn random_queries_agree_with_the_reference_semantics() {
    let count =
        std::env::var("VERVET_RANDOM_CASES").ok().and_then(|count| count.parse().ok()).unwrap_or(3_000);
    let start = std::env::var("VERVET_RANDOM_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    (start..start + count).for_each(compare);
}
