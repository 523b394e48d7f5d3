//! Independent evaluator of gMark's queries: set semantics over relations, without a planner.
//!
//! # Shape
//! 1. Each path becomes a [`Relation`], from the inside out.
//! 2. A variable outside the head with one conjunct becomes a condition on its neighbour (semi-join); one
//!    with two becomes a composition. Conjuncts between the same variables are intersected.
//! 3. The remaining variables are bound one after the other, those of the head first; each head tuple counts
//!    once if the rest can be bound.
//! # Not here
//! Code of Vervet's planner or kernels. Unbound columns: every part of a union binds the whole head.

use super::parse::{Conjunct, CountedPath, Path, PathQuery};
use super::relation::Relation;
use crate::digest::RowsDigest;
use rustc_hash::{FxHashMap, FxHashSet};
use std::rc::Rc;
use vervet_model::{Error, ErrorKind, Result};

/// A graph with numbered predicates.
pub struct PathGraph {
    vertices: usize,
    edges: FxHashMap<u32, Relation>,
    /// The hash of the cell of each vertex.
    cells: Vec<u64>,
    counted: CountedPath,
    /// The maximum number of head tuples.
    rows_max: u64,
}

/// Pairs of an edge by predicate.
pub type EdgesByPredicate = FxHashMap<u32, Vec<(u32, u32)>>;

impl PathGraph {
    /// A graph over `cells.len()` vertices. `cells`: the hash of the name of each; `rows_max`: an evaluation
    /// with more results fails.
    #[must_use]
    pub fn new(edges: EdgesByPredicate, cells: Vec<u64>, counted: CountedPath, rows_max: u64) -> Self {
        let vertices = cells.len();
        let edges = edges
            .into_iter()
            .map(|(predicate, pairs)| (predicate, Relation::from_pairs(vertices, pairs)))
            .collect();
        Self { vertices, edges, cells, counted, rows_max }
    }

    /// The digest of the result; of an `ASK`, that of its boolean.
    ///
    /// # Errors
    /// [`ErrorKind::MemoryLimit`] if there are more rows than the maximum; [`ErrorKind::Query`] if a part of
    /// the union does not bind the head.
    pub fn evaluate(&self, query: &PathQuery) -> Result<RowsDigest> {
        let mut tuples = FxHashSet::default();
        let mut digest = RowsDigest::default();
        // A digest has the columns in the order of their names.
        let mut columns: Vec<usize> = (0..query.head.len()).collect();
        columns.sort_by_key(|&column| &query.head[column]);
        for body in &query.bodies {
            let mut row = |tuple: &[u32]| {
                // Parts of a union may repeat tuples; one part does not.
                if query.bodies.len() == 1 || tuples.insert(tuple.to_vec()) {
                    digest.add(columns.iter().map(|&column| self.cells[tuple[column] as usize]));
                }
                if digest.rows > self.rows_max {
                    let what = format!("a result of more than {} rows is not evaluated", self.rows_max);
                    return Err(Error::new(ErrorKind::MemoryLimit, what));
                }
                Ok(!query.is_ask)
            };
            self.body(body, &query.head, &mut row)?;
        }
        if query.is_ask {
            let mut answer = RowsDigest::default();
            answer.add([crate::digest::cell_hash(if digest.rows > 0 { "true" } else { "false" })]);
            return Ok(answer);
        }
        Ok(digest)
    }

    fn body(
        &self,
        body: &[Conjunct],
        head: &[String],
        row: &mut dyn FnMut(&[u32]) -> Result<bool>,
    ) -> Result<()> {
        let mut names: Vec<&str> = head.iter().map(String::as_str).collect();
        let mut relations = FxHashMap::default();
        let mut join = Join { vertices: self.vertices, head: head.len(), ..Join::default() };
        for conjunct in body {
            let [source, target] = [&conjunct.source, &conjunct.target].map(|name| {
                names.iter().position(|known| known == name).unwrap_or_else(|| {
                    names.push(name);
                    names.len() - 1
                })
            });
            let relation = match relations.get(&conjunct.path) {
                Some(relation) => Rc::clone(relation),
                None => {
                    let relation = Rc::new(self.relation(&conjunct.path));
                    relations.insert(&conjunct.path, Rc::clone(&relation));
                    relation
                }
            };
            join.variables = names.len();
            join.add(source, target, relation);
        }
        let bound = |index: usize| join.edges.iter().any(|edge| edge.source == index || edge.target == index);
        if let Some(index) =
            (0..head.len()).find(|&index| !bound(index) && !join.domains.contains_key(&index))
        {
            return Err(Error::new(ErrorKind::Query, format!("a part does not bind ?{}", head[index])));
        }
        join.eliminate();
        join.enumerate(row)
    }

    fn relation(&self, path: &Path) -> Relation {
        match path {
            Path::Step { predicate, inverse } => match self.edges.get(predicate) {
                Some(edges) if *inverse => edges.inverted(),
                Some(edges) => edges.clone(),
                None => Relation::from_pairs(self.vertices, Vec::new()),
            },
            Path::Sequence(steps) => self.fold(steps, Relation::then),
            Path::Alternative(branches) => {
                let mut distinct: Vec<Path> = Vec::new();
                for branch in branches {
                    if !distinct.contains(branch) {
                        distinct.push(branch.clone());
                    }
                }
                self.fold(&distinct, Relation::union)
            }
            Path::Counted(path) => {
                let once = self.relation(path);
                match self.counted {
                    CountedPath::Star => once.closure(),
                    CountedPath::Three => {
                        let optional = once.union(&Relation::identity(self.vertices));
                        optional.then(&optional).then(&optional)
                    }
                }
            }
        }
    }

    fn fold(&self, paths: &[Path], combine: impl Fn(&Relation, &Relation) -> Relation) -> Relation {
        let mut relations = paths.iter().map(|path| self.relation(path));
        let first = relations.next().unwrap_or_else(|| Relation::identity(self.vertices));
        relations.fold(first, |all, next| combine(&all, &next))
    }
}

/// A condition on two variables.
#[derive(Clone)]
struct Edge {
    source: usize,
    target: usize,
    relation: Rc<Relation>,
}

impl Edge {
    fn touches(&self, variable: usize) -> bool {
        self.source == variable || self.target == variable
    }

    /// The relation from `variable` to the other end, and that end.
    fn from(&self, variable: usize) -> (Rc<Relation>, usize) {
        if self.source == variable {
            (Rc::clone(&self.relation), self.target)
        } else {
            (Rc::new(self.relation.inverted()), self.source)
        }
    }
}

/// A conjunction of binary relations. Variables are numbers, those of the head first.
#[derive(Default)]
struct Join {
    vertices: usize,
    variables: usize,
    head: usize,
    edges: Vec<Edge>,
    /// Possible values of variables; a missing variable may have any.
    domains: FxHashMap<usize, Vec<bool>>,
    /// A variable that is gone had no value.
    is_empty: bool,
}

impl Join {
    /// Adds a condition; at most one for each pair of variables remains.
    fn add(&mut self, source: usize, target: usize, relation: Rc<Relation>) {
        if source == target {
            self.limit(source, |vertex| relation.contains(vertex, vertex));
            return;
        }
        let same = self.edges.iter_mut().find(|edge| edge.touches(source) && edge.touches(target));
        match same {
            Some(edge) if edge.source == source => {
                edge.relation = Rc::new(edge.relation.intersection(&relation));
            }
            Some(edge) => edge.relation = Rc::new(edge.relation.intersection(&relation.inverted())),
            None => self.edges.push(Edge { source, target, relation }),
        }
    }

    /// Keeps only the values of `variable` that satisfy `condition`; returns whether a value is gone.
    fn limit(&mut self, variable: usize, condition: impl Fn(u32) -> bool) -> bool {
        let vertices = self.vertices;
        let domain = self.domains.entry(variable).or_insert_with(|| vec![true; vertices]);
        let mut changed = false;
        for (vertex, is_in) in (0..).zip(domain.iter_mut()) {
            if *is_in && !condition(vertex) {
                *is_in = false;
                changed = true;
            }
        }
        changed
    }

    fn allows(&self, variable: usize, vertex: u32) -> bool {
        self.domains.get(&variable).is_none_or(|domain| domain[vertex as usize])
    }

    /// Removes values without a partner from the domains of both ends of each condition, until nothing
    /// changes.
    fn reduce(&mut self) {
        loop {
            let mut changed = false;
            for index in 0..self.edges.len() {
                let edge = self.edges[index].clone();
                let kept = edge.relation.restricted(
                    |vertex| self.allows(edge.source, vertex),
                    |vertex| self.allows(edge.target, vertex),
                );
                changed |= kept.pair_count() != edge.relation.pair_count();
                let has_source = kept.has_source();
                let kept = Rc::new(kept);
                // A value that is gone here may be in conditions that were restricted before.
                changed |= self.limit(edge.source, |vertex| !kept.targets(vertex).is_empty());
                changed |= self.limit(edge.target, |vertex| has_source[vertex as usize]);
                self.edges[index].relation = kept;
            }
            if !changed {
                return;
            }
        }
    }

    /// Replaces variables outside the head by conditions on others, where they have at most two.
    fn eliminate(&mut self) {
        self.reduce();
        let degree =
            |join: &Self, variable: usize| join.edges.iter().filter(|edge| edge.touches(variable)).count();
        let mut left: Vec<usize> = (self.head..self.variables).collect();
        while let Some(&variable) = left.iter().min_by_key(|&&variable| degree(self, variable)) {
            if degree(self, variable) > 2 {
                break;
            }
            left.retain(|&other| other != variable);
            let (gone, kept) = std::mem::take(&mut self.edges)
                .into_iter()
                .partition::<Vec<_>, _>(|edge| edge.touches(variable));
            self.edges = kept;
            // The domains say already which values have a partner.
            if let [one, other] = gone.as_slice() {
                let (from_one, start) = one.from(variable);
                let (to_other, end) = other.from(variable);
                self.add(start, end, Rc::new(from_one.inverted().then(&to_other)));
                self.reduce();
            }
            let domain = self.domains.remove(&variable);
            self.is_empty |= domain.is_some_and(|domain| !domain.contains(&true));
        }
    }

    /// Binds the variables one after the other and passes each head tuple to `row` once, until it returns
    /// false.
    fn enumerate(&self, row: &mut dyn FnMut(&[u32]) -> Result<bool>) -> Result<()> {
        if self.is_empty {
            return Ok(());
        }
        let order = self.order();
        let steps: Vec<Step> = order
            .iter()
            .enumerate()
            .map(|(at, &variable)| {
                let bound = &order[..at];
                let conditions = self.edges.iter().filter(|edge| edge.touches(variable));
                let conditions = conditions.filter_map(|edge| {
                    let other = if edge.source == variable { edge.target } else { edge.source };
                    bound.contains(&other).then(|| (other, edge.from(other).0))
                });
                let any = (0..u32::try_from(self.vertices).unwrap_or(u32::MAX))
                    .filter(|&vertex| self.allows(variable, vertex));
                Step { variable, conditions: conditions.collect(), any: any.collect() }
            })
            .collect();
        let mut values = vec![0; self.variables];
        self.bind(&steps, &mut values, row).map(drop)
    }

    /// The variables that are left: those of the head first, each next to an earlier one if possible.
    fn order(&self) -> Vec<usize> {
        let mut left: Vec<usize> = (0..self.variables)
            .filter(|&variable| variable < self.head || self.edges.iter().any(|edge| edge.touches(variable)))
            .collect();
        let mut order: Vec<usize> = Vec::new();
        while !left.is_empty() {
            let is_next_to_bound = |variable: usize| {
                self.edges
                    .iter()
                    .any(|edge| edge.touches(variable) && order.iter().any(|&bound| edge.touches(bound)))
            };
            let rank = |&&variable: &&usize| (variable >= self.head, !is_next_to_bound(variable));
            let Some(&next) = left.iter().min_by_key(rank) else { break };
            order.push(next);
            left.retain(|&variable| variable != next);
        }
        order
    }

    /// Whether to go on.
    fn bind(
        &self,
        steps: &[Step],
        values: &mut [u32],
        row: &mut dyn FnMut(&[u32]) -> Result<bool>,
    ) -> Result<bool> {
        let Some((step, rest)) = steps.split_first() else { return row(&values[..self.head]) };
        if step.variable >= self.head {
            // The head is complete: one binding of the rest is enough.
            let mut found = false;
            self.bind_rest(steps, values, &mut found);
            return if found { row(&values[..self.head]) } else { Ok(true) };
        }
        let mut go_on = true;
        step.values(values, |vertex, values| {
            values[step.variable] = vertex;
            go_on = self.bind(rest, values, row)?;
            Ok(go_on)
        })?;
        Ok(go_on)
    }

    fn bind_rest(&self, steps: &[Step], values: &mut [u32], found: &mut bool) {
        let Some((step, rest)) = steps.split_first() else {
            *found = true;
            return;
        };
        let each = |vertex, values: &mut [u32]| {
            values[step.variable] = vertex;
            self.bind_rest(rest, values, found);
            Ok(!*found)
        };
        // The closure never fails.
        step.values(values, each).unwrap_or_default();
    }
}

/// Binds one variable.
struct Step {
    variable: usize,
    /// Relations from variables that are bound before.
    conditions: Vec<(usize, Rc<Relation>)>,
    /// All its values.
    any: Vec<u32>,
}

impl Step {
    /// Passes each possible value to `each`, until it returns false.
    fn values(
        &self,
        values: &mut [u32],
        mut each: impl FnMut(u32, &mut [u32]) -> Result<bool>,
    ) -> Result<()> {
        let sets: Vec<&[u32]> =
            self.conditions.iter().map(|(other, relation)| relation.targets(values[*other])).collect();
        let least = sets.iter().copied().min_by_key(|set| set.len()).unwrap_or(&self.any);
        for &vertex in least {
            // One set contains only values of the domain, since the conditions are reduced.
            let fits = sets.len() < 2 || sets.iter().all(|set| set.binary_search(&vertex).is_ok());
            if fits && !each(vertex, values)? {
                break;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::parse::parse;
    use super::*;

    fn digest(tuples: &[&[u64]]) -> RowsDigest {
        let mut digest = RowsDigest::default();
        tuples.iter().for_each(|tuple| digest.add(tuple.iter().copied()));
        digest
    }

    fn graph(counted: CountedPath) -> PathGraph {
        // A chain 0 → 1 → 2 → 3 → 4 of :p0, and 5 → 1, 5 → 3 of :p1.
        let edges =
            [(0, vec![(0, 1), (1, 2), (2, 3), (3, 4)]), (1, vec![(5, 1), (5, 3)])].into_iter().collect();
        PathGraph::new(edges, (0..6).collect(), counted, 100)
    }

    #[test]
    fn conjunctions_unions_and_closures() {
        let answer = |text: &str, counted| graph(counted).evaluate(&parse(text).unwrap()).unwrap();
        let star = |text| answer(text, CountedPath::Star);
        assert_eq!(star("SELECT DISTINCT ?x { { ?x (:p0/:p0) ?y . ?y (:p0/:p0) ?z } }"), digest(&[&[0]]));
        assert_eq!(
            star("SELECT DISTINCT ?x ?z { { ?x (:p1) ?y . ?y (:p0) ?z } }"),
            digest(&[&[5, 2], &[5, 4]])
        );
        // Three conjuncts share a variable outside the head.
        let text = "SELECT DISTINCT ?a ?b ?c { { ?x (:p0) ?a . ?x (^:p1) ?b . ?x (^:p0) ?c } }";
        assert_eq!(star(text), digest(&[&[2, 5, 0], &[4, 5, 2]]));
        let text = "SELECT DISTINCT ?x { { ?x (:p1) ?y } UNION { ?x (:p1|:p0) ?y . ?y (:p0) ?z } UNION { } }";
        assert_eq!(star(text), digest(&[&[5], &[0], &[1], &[2]]));
        let text = "SELECT DISTINCT ?x ?y { { ?x (:p0){,3} ?y } }";
        // Of 6 + 4 + 3 + 2 + 1 pairs one has a distance of four.
        assert_eq!((star(text).rows, answer(text, CountedPath::Three).rows), (16, 15));
        let text = "SELECT DISTINCT ?x { { ?x (:p0/:p0) ?y . ?x (:p0) ?y } }";
        assert_eq!(star(text), RowsDigest::default());
        let booleans = ["ASK { { ?x (:p1/:p1) ?y } }", "ASK { { ?x (:p1/:p0) ?y } }"].map(star);
        assert_eq!(booleans.map(|boolean| boolean.rows), [1, 1]);
        assert_ne!(booleans[0], booleans[1]);
        // The last conjunct excludes values of ?y after the first one was restricted, and changes nothing
        // else.
        let text = "SELECT DISTINCT ?x ?y { { ?x (:p0) ?y . ?y (^:p1) ?z } }";
        assert_eq!(star(text), digest(&[&[0, 1], &[2, 3]]));
        // A product.
        let product = star("SELECT DISTINCT ?x ?a { { ?x (:p1) ?y . ?a (:p0) ?b } }");
        assert_eq!(product, digest(&[&[0, 5], &[1, 5], &[2, 5], &[3, 5]]), "?a is before ?x");
        let unbound = parse("SELECT DISTINCT ?q { { ?x (:p1) ?y } }").unwrap();
        assert!(graph(CountedPath::Star).evaluate(&unbound).is_err());
    }
}
