//! Set semantics in the algebra: chains and alternatives between two variables become property paths.
//!
//! # Shape
//! A pass over the algebra before it is lowered. Below `DISTINCT`, below duplicate-insensitive aggregates, in
//! `ASK` and on the right of `MINUS`, the result does not depend on how often a solution occurs. There, for
//! each join:
//!
//! * A pattern with a constant predicate, a path, and a union of such parts between the same two ends is a
//!   *relation*: a set of pairs, described by a path expression.
//! * Two relations that share a variable that nothing else mentions are one: `?a :p ?m . ?m :q ?b` is `?a
//!   :p/:q ?b`, and `x?/x?` is one path instead of two.
//! * Equal branches of a union occur once.
//! * A relation to a variable that nothing else mentions is a condition on its other end. It is dropped if
//!   another relation implies it: one with the same path from the same variable, or, for a path that may be
//!   empty, any.
//!
//! A relation of some length becomes a [`Node::Path`]. The kernel of paths visits each node once for each
//! start, however many walks lead to it, and once in all if only one end is needed; the original joins
//! enumerate the walks.
//! # Invariants
//! 1. The set of solutions, restricted to the needed variables, remains the same.
//! 2. A join with a constant subject or object, a table or a parameter remains a join: exploration from a
//!    few vertices reads less than searches from all, and its estimates are better.
//! 3. A path in a graph variable remains as it is: all its statements are in one graph.
//! # Cost
//! One walk over the operators; the algebra is copied only if some part has set semantics.
//! # Source
//! Series reduction of two-terminal networks (J. Valdes, R. Tarjan, E. Lawler, STOC 1979); existence of paths
//! in time linear in the graph: A. Mendelzon, P. Wood, "Finding Regular Simple Paths in Graph Databases",
//! VLDB 1989.

use crate::lower::Planner;
use crate::scope::{expression_variables, is_stable, possible};
use crate::variable_uses::VariableUses;
use vervet_algebra::{
    Expression, Form, GraphSlot, Node, Path, PathPattern, Pattern, Query, Slot, Variable, VariableSet,
};
use vervet_model::vocab::RDF_TYPE;
use vervet_model::{Direction, Result};

/// Maximum predicate occurrences of a path that this pass makes.
const POSITIONS_MAX: usize = 200;

/// Maximum number of relations of one join; the reduction takes quadratic time.
const RELATIONS_MAX: usize = 64;

/// Minimum statements in a row of a path that replaces joins, without and with alternatives or closures.
const CHAIN_MIN: usize = 3;
const CHAIN_MIN_OF_ALTERNATIVES: usize = 2;

/// A set of pairs of nodes: those that a path connects.
#[derive(Clone)]
struct Relation {
    ends: [Slot; 2],
    path: Path,
    graph: GraphSlot,
    /// Whether a single node of the query is the relation, as [`Relation::into_node`] would write it.
    is_original: bool,
}

impl Relation {
    fn of_pattern(pattern: &Pattern) -> Option<Self> {
        let Slot::Constant(oxrdf::Term::NamedNode(predicate)) = &pattern.predicate else { return None };
        if pattern.edge.is_some() || pattern.subject == pattern.object {
            return None;
        }
        Some(Self {
            ends: [pattern.subject.clone(), pattern.object.clone()],
            path: Path::Predicate(predicate.clone()),
            graph: fixed(&pattern.graph)?,
            is_original: true,
        })
    }

    fn of_path(pattern: &PathPattern) -> Option<Self> {
        let [graph] = pattern.graphs.as_slice() else { return None };
        // A constant has an empty path to itself even if it is not in the graph.
        let variables = pattern.subject.variable().is_some() && pattern.object.variable().is_some();
        if pattern.subject == pattern.object || !variables {
            return None;
        }
        let path = normal(&pattern.path, false);
        Some(Self {
            ends: [pattern.subject.clone(), pattern.object.clone()],
            is_original: path == pattern.path,
            path,
            graph: fixed(graph)?,
        })
    }

    /// The same relation, from the other end.
    fn reversed(self) -> Self {
        let [subject, object] = self.ends;
        Self { ends: [object, subject], path: normal(&self.path, true), is_original: false, ..self }
    }

    fn mentions(&self, variable: Variable) -> bool {
        self.ends.iter().any(|end| end.variable() == Some(variable))
    }

    /// The relation from `variable`, which is one of its ends.
    fn starting_at(self, variable: Variable) -> Self {
        if self.ends[0].variable() == Some(variable) { self } else { self.reversed() }
    }

    fn variables(&self) -> impl Iterator<Item = Variable> + '_ {
        self.ends.iter().filter_map(Slot::variable)
    }

    fn into_node(self) -> Node {
        let [subject, object] = self.ends;
        match self.path {
            Path::Predicate(predicate) => Node::Patterns(vec![Pattern {
                subject,
                predicate: Slot::Constant(predicate.into()),
                object,
                graph: self.graph,
                edge: None,
                parallel: false,
            }]),
            Path::Inverse(path) if matches!(*path, Path::Predicate(_)) => {
                let [subject, object] = [object, subject];
                Self { ends: [subject, object], path: *path, ..self }.into_node()
            }
            path => Node::Path(PathPattern { subject, path, object, graphs: vec![self.graph] }),
        }
    }
}

/// The graph, unless it is a variable.
fn fixed(graph: &GraphSlot) -> Option<GraphSlot> {
    (!matches!(graph, GraphSlot::Variable(_))).then(|| graph.clone())
}

/// The path or its inverse in normal form: inverses at predicates only, no sequence directly in a sequence,
/// no alternative directly in an alternative, and no equal alternatives.
fn normal(path: &Path, inverse: bool) -> Path {
    match path {
        Path::Predicate(_) | Path::Except(_) if inverse => Path::Inverse(Box::new(path.clone())),
        Path::Predicate(_) | Path::Except(_) => path.clone(),
        Path::Inverse(path) => normal(path, !inverse),
        Path::Sequence(parts) => {
            let parts = parts.iter().map(|part| normal(part, inverse));
            let parts: Vec<Path> = if inverse { parts.rev().collect() } else { parts.collect() };
            parts.into_iter().reduce(sequence).unwrap_or(Path::Sequence(Vec::new()))
        }
        Path::Alternative(parts) => {
            let parts = parts.iter().map(|part| normal(part, inverse));
            parts.reduce(alternative).unwrap_or(Path::Alternative(Vec::new()))
        }
        Path::ZeroOrOne(path) => Path::ZeroOrOne(Box::new(normal(path, inverse))),
        Path::ZeroOrMore(path) => Path::ZeroOrMore(Box::new(normal(path, inverse))),
        Path::OneOrMore(path) => Path::OneOrMore(Box::new(normal(path, inverse))),
    }
}

fn sequence(first: Path, then: Path) -> Path {
    let mut parts = match first {
        Path::Sequence(parts) => parts,
        path => vec![path],
    };
    match then {
        Path::Sequence(more) => parts.extend(more),
        path => parts.push(path),
    }
    Path::Sequence(parts)
}

fn alternative(one: Path, other: Path) -> Path {
    let mut parts = match one {
        Path::Alternative(parts) => parts,
        path => vec![path],
    };
    let more = match other {
        Path::Alternative(more) => more,
        path => vec![path],
    };
    for path in more {
        if !parts.contains(&path) {
            parts.push(path);
        }
    }
    if parts.len() == 1 { parts.remove(0) } else { Path::Alternative(parts) }
}

/// Whether every pair of `path` is one of `wider`: its alternatives are alternatives of `wider`.
fn implies(path: &Path, wider: &Path) -> bool {
    let alternatives = |path: &Path| match path {
        Path::Alternative(parts) => parts.clone(),
        path => vec![path.clone()],
    };
    let wider = alternatives(wider);
    alternatives(path).iter().all(|part| wider.contains(part))
}

/// Number of predicate occurrences.
fn positions(path: &Path) -> usize {
    match path {
        Path::Predicate(_) | Path::Except(_) => 1,
        Path::Inverse(path) | Path::ZeroOrOne(path) | Path::ZeroOrMore(path) | Path::OneOrMore(path) => {
            positions(path)
        }
        Path::Sequence(parts) | Path::Alternative(parts) => parts.iter().map(positions).sum(),
    }
}

/// Statements of the longest walk that repeats nothing.
fn length(path: &Path) -> usize {
    match path {
        Path::Predicate(_) | Path::Except(_) => 1,
        Path::Inverse(path) | Path::ZeroOrOne(path) | Path::ZeroOrMore(path) | Path::OneOrMore(path) => {
            length(path)
        }
        Path::Sequence(parts) => parts.iter().map(length).sum(),
        Path::Alternative(parts) => parts.iter().map(length).max().unwrap_or(0),
    }
}

/// Whether a path has alternatives or closures.
fn branches(path: &Path) -> bool {
    match path {
        Path::Predicate(_) | Path::Except(_) => false,
        Path::Inverse(path) => branches(path),
        Path::Sequence(parts) => parts.iter().any(branches),
        Path::Alternative(_) | Path::ZeroOrOne(_) | Path::ZeroOrMore(_) | Path::OneOrMore(_) => true,
    }
}

/// All variables that a part mentions, hidden ones included.
fn mentioned(node: &Node) -> VariableSet {
    let mut all = VariableSet::default();
    add_mentioned(node, &mut all);
    all
}

fn add_mentioned(node: &Node, all: &mut VariableSet) {
    match node {
        Node::Patterns(_) | Node::Path(_) | Node::Service(_) | Node::Values { .. } => {
            all.add_all(&possible(node));
        }
        Node::Extend { variable, .. } => all.insert(*variable),
        Node::Project { variables, .. } => all.extend(variables.iter().copied()),
        Node::Group { keys, aggregates, .. } => {
            all.extend(keys.iter().copied().chain(aggregates.iter().map(|(variable, _)| *variable)));
        }
        _ => {}
    }
    node.for_each_expression(&mut |expression| all.add_all(&expression_variables(expression)));
    node.for_each_child(&mut |child| add_mentioned(child, all));
}

/// Whether a node has at most `left` patterns and operators; subtracts them.
fn is_small(node: &Node, left: &mut usize) -> bool {
    let own = match node {
        Node::Patterns(patterns) => patterns.len().max(1),
        _ => 1,
    };
    let Some(rest) = left.checked_sub(own) else { return false };
    *left = rest;
    let mut small = true;
    node.for_each_child(&mut |child| small = small && is_small(child, left));
    small
}

/// Whether some operator in the node makes the part below it a set.
fn has_set(node: &Node) -> bool {
    let here = match node {
        Node::Distinct(_) | Node::Minus { .. } => true,
        Node::Group { aggregates, .. } => {
            !aggregates.is_empty() && aggregates.iter().all(|(_, one)| one.ignores_duplicates())
        }
        _ => false,
    };
    let mut any = here;
    node.for_each_child(&mut |child| any = any || has_set(child));
    any
}

impl Planner<'_> {
    /// The algebra in which relations under set semantics are paths, if there are any; see the header.
    ///
    /// # Errors
    /// Limits of the query.
    pub(crate) fn with_set_paths(
        &mut self,
        root: &Node,
        query: &Query,
        needed: &VariableSet,
    ) -> Result<Option<Node>> {
        let ask = query.form == Form::Ask;
        if !self.options.frontiers || !self.options.reorder || !(ask || has_set(root)) || !is_stable(root) {
            return Ok(None);
        }
        if self.options.joined == f64::INFINITY && self.is_spread()? {
            return Ok(None);
        }
        let with_paths = self.as_set(root.clone(), needed, ask)?;
        Ok((with_paths != *root).then_some(with_paths))
    }

    /// Whether the graph is spread over servers.
    pub(crate) fn is_spread(&self) -> Result<bool> {
        let Some((predicate, _)) = self.snapshot.predicates().first() else { return Ok(false) };
        let segment = self.snapshot.segment(*predicate, Direction::Out)?;
        Ok(segment.is_some_and(|segment| segment.is_remote(None)))
    }

    /// Rewrites `node`, of which the result needs only some variables; `set`: and of them only the set.
    fn as_set(&self, node: Node, needed: &VariableSet, set: bool) -> Result<Node> {
        self.control.work(1 << 8)?;
        let with = |expression: &Expression| needed.clone().union(&expression_variables(expression));
        Ok(match node {
            node @ (Node::Patterns(_) | Node::Join(_)) if set => self.reduced_join(node, needed)?,
            Node::Join(nodes) => Node::Join(self.each_part(nodes, needed, false)?),
            Node::Union(nodes) => self.reduced_union(nodes, needed, set)?,
            Node::Filter { input, condition } => {
                let needed = with(&condition);
                Node::Filter { input: Box::new(self.as_set(*input, &needed, set)?), condition }
            }
            Node::Extend { input, variable, expression } => {
                let needed = with(&expression);
                Node::Extend { input: Box::new(self.as_set(*input, &needed, set)?), variable, expression }
            }
            Node::LeftJoin { left, right, condition } => {
                let both = condition.as_ref().map_or_else(|| needed.clone(), with);
                let of_left = both.clone().union(&mentioned(&right));
                let of_right = both.union(&possible(&left));
                Node::LeftJoin {
                    left: Box::new(self.as_set(*left, &of_left, set)?),
                    right: Box::new(self.as_set(*right, &of_right, set)?),
                    condition,
                }
            }
            Node::Minus { left, right } => {
                let of_left = needed.clone().union(&mentioned(&right));
                let of_right = possible(&left);
                Node::Minus {
                    left: Box::new(self.as_set(*left, &of_left, set)?),
                    right: Box::new(self.as_set(*right, &of_right, true)?),
                }
            }
            Node::Project { input, variables } => {
                let visible: VariableSet = variables.iter().copied().collect();
                // A projection hides the others, and keeps all of its own for the operators above it.
                Node::Project { input: Box::new(self.as_set(*input, &visible, set)?), variables }
            }
            Node::Distinct(input) => {
                let visible = possible(&input);
                Node::Distinct(Box::new(self.as_set(*input, &visible, true)?))
            }
            Node::Reduced(input) => Node::Reduced(Box::new(self.as_set(*input, needed, set)?)),
            Node::OrderBy { input, keys } => {
                let of_keys = keys
                    .iter()
                    .fold(needed.clone(), |all, key| all.union(&expression_variables(&key.expression)));
                Node::OrderBy { input: Box::new(self.as_set(*input, &of_keys, set)?), keys }
            }
            Node::Slice { input, start, length } => {
                Node::Slice { input: Box::new(self.as_set(*input, needed, false)?), start, length }
            }
            Node::Group { input, keys, aggregates } => {
                let of_keys: VariableSet = keys.iter().copied().collect();
                let of_group = aggregates.iter().fold(of_keys, |all, (_, one)| match &one.expression {
                    Some(expression) => all.union(&expression_variables(expression)),
                    None => all.union(&possible(&input)),
                });
                let set = aggregates.iter().all(|(_, one)| one.ignores_duplicates());
                Node::Group { input: Box::new(self.as_set(*input, &of_group, set)?), keys, aggregates }
            }
            node @ (Node::Patterns(_) | Node::Path(_) | Node::Service(_) | Node::Values { .. }) => node,
        })
    }

    /// Rewrites each part of a join, which needs the variables of all others.
    fn each_part(&self, nodes: Vec<Node>, needed: &VariableSet, set: bool) -> Result<Vec<Node>> {
        let all: Vec<VariableSet> = nodes.iter().map(mentioned).collect();
        let mut others = VariableUses::default();
        all.iter().for_each(|of_node| others.add(of_node.iter()));
        let mut parts = Vec::with_capacity(nodes.len());
        for (node, own) in nodes.into_iter().zip(&all) {
            others.remove(own.iter());
            parts.push(self.as_set(node, &needed.clone().union(others.set()), set)?);
            others.add(own.iter());
        }
        Ok(parts)
    }

    /// Rewrites a union; equal branches of a set occur once.
    fn reduced_union(&self, nodes: Vec<Node>, needed: &VariableSet, set: bool) -> Result<Node> {
        let mut kept = Vec::with_capacity(nodes.len());
        let mut relations: Vec<Relation> = Vec::new();
        for node in nodes {
            if set {
                if let Some(relation) = self.relation(&node, needed)? {
                    let same = |one: &Relation| {
                        one.graph == relation.graph && one.ends == relation.ends && one.path == relation.path
                    };
                    if relations.iter().any(same) {
                        continue;
                    }
                    relations.push(relation);
                } else if kept.contains(&node) {
                    continue;
                }
            }
            kept.push(node);
        }
        let mut branches = Vec::with_capacity(kept.len());
        for node in kept {
            branches.push(self.as_set(node, needed, set)?);
        }
        Ok(if branches.len() == 1 { branches.remove(0) } else { Node::Union(branches) })
    }

    /// Rewrites a join under set semantics.
    fn reduced_join(&self, node: Node, needed: &VariableSet) -> Result<Node> {
        let mut flat = Vec::new();
        flatten(node, &mut flat);
        if flat.len() > RELATIONS_MAX || flat.iter().any(|node| self.is_anchored(node)) {
            return self.original_join(flat, needed);
        }
        let all: Vec<VariableSet> = flat.iter().map(mentioned).collect();
        let mut others = VariableUses::default();
        all.iter().for_each(|of_node| others.add(of_node.iter()));
        let (mut relations, mut rest) = (Vec::with_capacity(flat.len()), Vec::new());
        let mut kept = needed.clone();
        for (node, own) in flat.iter().zip(&all) {
            others.remove(own.iter());
            match self.relation(node, &needed.clone().union(others.set()))? {
                Some(relation) => relations.push(relation),
                None => {
                    kept.add_all(own);
                    rest.push(node.clone());
                }
            }
            others.add(own.iter());
        }
        reduce(&mut relations, &kept);
        let is_long = |relation: &Relation| {
            let least = if branches(&relation.path) { CHAIN_MIN_OF_ALTERNATIVES } else { CHAIN_MIN };
            !relation.is_original && length(&relation.path) >= least
        };
        if !relations.iter().any(is_long) {
            return self.original_join(flat, needed);
        }
        let mut of_relations = VariableSet::default();
        relations.iter().for_each(|relation| of_relations.extend(relation.variables()));
        let needed = kept.union(&of_relations);
        let mut nodes = self.each_part(rest, &needed, true)?;
        nodes.extend(relations.into_iter().map(Relation::into_node));
        Ok(if nodes.len() == 1 { nodes.remove(0) } else { Node::Join(nodes) })
    }

    /// A join whose parts are rewritten on their own.
    fn original_join(&self, flat: Vec<Node>, needed: &VariableSet) -> Result<Node> {
        let mut nodes = Vec::with_capacity(flat.len());
        let mut patterns = Vec::new();
        for node in self.each_part_unless_patterns(flat, needed)? {
            match node {
                Node::Patterns(mut more) => patterns.append(&mut more),
                node => nodes.push(node),
            }
        }
        if !patterns.is_empty() || nodes.is_empty() {
            nodes.insert(0, Node::Patterns(patterns));
        }
        Ok(if nodes.len() == 1 { nodes.remove(0) } else { Node::Join(nodes) })
    }

    fn each_part_unless_patterns(&self, flat: Vec<Node>, needed: &VariableSet) -> Result<Vec<Node>> {
        let (patterns, others): (Vec<_>, Vec<_>) =
            flat.into_iter().partition(|node| matches!(node, Node::Patterns(_)));
        let of_patterns = patterns.iter().fold(needed.clone(), |all, node| all.union(&possible(node)));
        let mut nodes = patterns;
        nodes.extend(self.each_part(others, &of_patterns, true)?);
        Ok(nodes)
    }

    /// The relation that a node is, if it is one; only `needed` variables may be its ends.
    fn relation(&self, node: &Node, needed: &VariableSet) -> Result<Option<Relation>> {
        self.control.work(1 << 6)?;
        // A larger node would be too long for a path, and its parts are tried again on their own.
        let mut left = POSITIONS_MAX;
        if !is_small(node, &mut left) {
            return Ok(None);
        }
        Ok(match node {
            Node::Path(pattern) => Relation::of_path(pattern),
            Node::Patterns(_) | Node::Join(_) => {
                let mut flat = Vec::new();
                flatten(node.clone(), &mut flat);
                if flat.len() > RELATIONS_MAX {
                    return Ok(None);
                }
                let all: Vec<VariableSet> = flat.iter().map(mentioned).collect();
                let mut others = VariableUses::default();
                all.iter().for_each(|of_node| others.add(of_node.iter()));
                let mut relations = Vec::with_capacity(flat.len());
                for (part, own) in flat.iter().zip(&all) {
                    others.remove(own.iter());
                    let found = match part {
                        Node::Patterns(patterns) => match patterns.as_slice() {
                            [pattern] => Relation::of_pattern(pattern),
                            _ => None,
                        },
                        part => self.relation(part, &needed.clone().union(others.set()))?,
                    };
                    let Some(relation) = found else { return Ok(None) };
                    relations.push(relation);
                    others.add(own.iter());
                }
                if relations.len() > 1 {
                    merge_chains(&mut relations, needed);
                }
                if relations.len() == 1 { relations.pop() } else { None }
            }
            Node::Union(nodes) => {
                let mut whole: Option<Relation> = None;
                for node in nodes {
                    let Some(relation) = self.relation(node, needed)? else { return Ok(None) };
                    whole = Some(match whole {
                        None => relation,
                        Some(first) => {
                            let [subject, object] = &relation.ends;
                            let relation = match () {
                                () if relation.ends == first.ends => relation,
                                () if first.ends[0] == *object && first.ends[1] == *subject => {
                                    relation.reversed()
                                }
                                () => return Ok(None),
                            };
                            if relation.graph != first.graph {
                                return Ok(None);
                            }
                            let path = alternative(first.path, relation.path);
                            Relation { path, is_original: false, ..first }
                        }
                    });
                }
                whole
            }
            _ => None,
        }
        .filter(|relation| positions(&relation.path) <= POSITIONS_MAX))
    }

    /// Whether a part starts from few nodes: a constant other than a type, a table or a parameter.
    fn is_anchored(&self, node: &Node) -> bool {
        let is_anchor = |slot: &Slot| match slot {
            Slot::Constant(_) => true,
            Slot::Variable(variable) => self.parameters.contains(*variable),
        };
        match node {
            Node::Patterns(patterns) => patterns.iter().any(|pattern| {
                let is_type = matches!(&pattern.predicate, Slot::Constant(oxrdf::Term::NamedNode(name)) if name.as_str() == RDF_TYPE);
                is_anchor(&pattern.subject) || is_anchor(&pattern.object) && !is_type
            }),
            Node::Path(path) => is_anchor(&path.subject) || is_anchor(&path.object),
            Node::Values { .. } | Node::Service(_) => true,
            Node::Extend { expression: Expression::Constant(_), .. } => true,
            node => {
                let mut any = false;
                node.for_each_child(&mut |child| any = any || self.is_anchored(child));
                any
            }
        }
    }
}

/// The parts of nested joins, each pattern on its own.
fn flatten(node: Node, out: &mut Vec<Node>) {
    match node {
        Node::Join(nodes) => nodes.into_iter().for_each(|node| flatten(node, out)),
        Node::Patterns(patterns) => {
            out.extend(patterns.into_iter().map(|pattern| Node::Patterns(vec![pattern])));
        }
        node => out.push(node),
    }
}

/// Merges relations in series and drops implied ones, until neither is possible.
fn reduce(relations: &mut Vec<Relation>, needed: &VariableSet) {
    loop {
        let before = relations.len();
        merge_chains(relations, needed);
        drop_implied(relations, needed);
        if relations.len() == before {
            return;
        }
    }
}

/// Merges relations that share a variable that nothing else needs.
fn merge_chains(relations: &mut Vec<Relation>, needed: &VariableSet) {
    'merges: loop {
        for first in 0..relations.len() {
            for variable in relations[first].variables().collect::<Vec<_>>() {
                if needed.contains(variable) {
                    continue;
                }
                let mut others = (0..relations.len())
                    .filter(|other| *other != first && relations[*other].mentions(variable));
                let (Some(second), None) = (others.next(), others.next()) else { continue };
                let (one, other) = (&relations[first], &relations[second]);
                let end = |relation: &Relation| relation.clone().starting_at(variable);
                let (left, right) = (end(one).reversed(), end(other));
                let is_loop = left.ends[0] == right.ends[1];
                let size = positions(&left.path) + positions(&right.path);
                let has_constant = left.variables().count() + right.variables().count() < 4;
                if is_loop || has_constant || left.graph != right.graph || size > POSITIONS_MAX {
                    continue;
                }
                let [subject, _] = left.ends;
                let [_, object] = right.ends;
                let path = sequence(left.path, right.path);
                relations[first] =
                    Relation { ends: [subject, object], path, graph: left.graph, is_original: false };
                relations.remove(second);
                continue 'merges;
            }
        }
        return;
    }
}

/// Drops relations that others imply.
fn drop_implied(relations: &mut Vec<Relation>, needed: &VariableSet) {
    let mut at = 0;
    while at < relations.len() {
        if is_implied(at, relations, needed) {
            relations.remove(at);
        } else {
            at += 1;
        }
    }
}

fn is_implied(at: usize, relations: &[Relation], needed: &VariableSet) -> bool {
    let relation = &relations[at];
    let others = || relations.iter().enumerate().filter(|(other, _)| *other != at).map(|(_, one)| one);
    // A relation between the same ends.
    let same_ends = |other: &Relation| {
        other.graph == relation.graph
            && (other.ends == relation.ends && implies(&other.path, &relation.path)
                || other.ends[0] == relation.ends[1]
                    && other.ends[1] == relation.ends[0]
                    && implies(&normal(&other.path, true), &relation.path))
    };
    if others().any(same_ends) {
        return true;
    }
    relation.variables().any(|dead| {
        if needed.contains(dead) || others().any(|other| other.mentions(dead)) {
            return false;
        }
        let from_live = relation.clone().starting_at(dead).reversed();
        let Some(live) = from_live.ends[0].variable() else { return false };
        let mut of_live = others().filter(|other| other.mentions(live) && other.graph == relation.graph);
        // The ends of a relation are nodes of its graph, each of which has an empty path.
        if from_live.path.is_nullable() {
            return of_live.next().is_some();
        }
        of_live.any(|other| implies(&other.clone().starting_at(live).path, &from_live.path))
    })
}
