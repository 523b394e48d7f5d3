//! Planning of basic graph patterns: constant look-up, class inference, join-order search, steps.

use crate::atom::{Atom, PredicateSegments, variable_of};
use crate::classes::ClassSet;
use crate::corrections::{bound_of, key_of_atom, key_of_context};
use crate::domain::{Domains, infer};
use crate::filter::Conjunct;
use crate::join_state::{Action, JoinOrderSearch, OrderedAction, bind};
use crate::key_joins::{BoundEnds, EndShare, Ends, classes_tell_of};
use crate::lower::{NODE_WORK, Planner};
use crate::partial_plan::PartialPlan;
use crate::seek::{Segments, is_sought, seek};
use crate::variable_uses::VariableUses;
use std::rc::Rc;
use vervet_algebra::{GraphSlot, Pattern, Slot, Variable, VariableSet};
use vervet_kernel::plan::{Access, GraphOperand, Leg, Match, Operand, Step};
use vervet_model::{Direction, Id, Result, Tag};
use vervet_snapshot::{EntryFilter, GraphFilter};

/// Maximum number of predicates in which the degree of a constant is read for a pattern with a variable
/// predicate.
const PREDICATES_READ_MAX: usize = 64;

impl<'a> Planner<'a> {
    /// Joins `partial` with `patterns`; `false`: the cost reaches `limit`, and `partial` is invalid.
    pub(crate) fn lower_patterns(
        &mut self,
        patterns: &[&Pattern],
        partial: &mut PartialPlan,
        needed: &VariableSet,
        filters: Vec<Conjunct>,
        limit: Option<f64>,
    ) -> Result<bool> {
        if partial.empty {
            return Ok(true);
        }
        // `EXISTS` conditions are planned after the join, when all of its variables are bound.
        let (with_patterns, mut filters): (Vec<_>, Vec<_>) =
            filters.into_iter().partition(|filter| filter.has_exists);
        let needed = &with_patterns.iter().fold(needed.clone(), |set, filter| set.union(&filter.variables));
        let variables: VariableSet = patterns.iter().flat_map(|pattern| pattern.variables()).collect();
        if !self.bind_constants(&variables, partial, &mut filters)? {
            partial.make_empty();
            return Ok(true);
        }
        let mut after = VariableUses::default();
        if patterns.len() > JoinOrderSearch::ATOMS_MAX {
            patterns.iter().for_each(|pattern| after.add(pattern.variables()));
        }
        for chunk in patterns.chunks(JoinOrderSearch::ATOMS_MAX) {
            self.control.work(NODE_WORK)?;
            if patterns.len() > JoinOrderSearch::ATOMS_MAX {
                chunk.iter().for_each(|pattern| after.remove(pattern.variables()));
            }
            let needed = needed.clone().union(after.set());
            let mut atoms = Vec::with_capacity(chunk.len());
            for pattern in chunk {
                match self.resolve(pattern, partial, chunk.len() > 1)? {
                    Some(atom) => atoms.push(atom),
                    None => {
                        partial.make_empty();
                        return Ok(true);
                    }
                }
            }
            let mut domains: Domains = std::mem::take(&mut partial.domains);
            if self.options.inference && !infer(&mut atoms, &mut domains) {
                partial.make_empty();
                return Ok(true);
            }
            partial.domains = domains;
            self.read_neighbours(&mut atoms)?;
            self.seek(&mut atoms, partial, &mut filters)?;
            if self.options.inference && self.options.reorder {
                self.imply(&mut atoms, partial, &mut filters)?;
            }
            if !self.search(&atoms, partial, &needed, &mut filters, limit)? {
                return Ok(false);
            }
        }
        // No variable occurs in implied patterns only, so all variables are bound here.
        partial.possible.add_all(&variables);
        partial.certain.add_all(&variables);
        self.apply(filters, partial)?;
        self.apply(with_patterns, partial)?;
        Ok(true)
    }

    /// Derives a seek for each pattern whose object has sargable conditions.
    fn seek(&self, atoms: &mut [Atom<'a>], partial: &PartialPlan, filters: &mut [Conjunct]) -> Result<()> {
        if !self.options.seek || filters.is_empty() {
            return Ok(());
        }
        for atom in atoms.iter_mut().filter(|atom| !atom.implied) {
            let (Some(subject), Some(object)) = (variable_of(atom.subject), variable_of(atom.object)) else {
                continue;
            };
            if partial.possible.contains(object) || !is_sought(object, filters) {
                continue;
            }
            let segments = match (&atom.general, atom.side(Direction::In)) {
                (None, Some(side)) => Some(Segments::one(side.segment)),
                // A match finds the entries from the bound subject.
                (Some(_), _) if partial.certain.contains(subject) => None,
                (Some(_), Some(side)) => Some(Segments::one(side.segment)),
                (Some(_), None) => Segments::objects_of_all(self.snapshot, self.control)?,
                (None, None) => None,
            };
            if let Some(segments) = segments {
                atom.seek = seek(object, &segments, self.snapshot, filters, self.control)?;
            }
        }
        Ok(())
    }

    /// Turns equality conditions with a constant into tables of one row; `false`: the join is provably empty.
    fn bind_constants(
        &mut self,
        variables: &VariableSet,
        partial: &mut PartialPlan,
        filters: &mut Vec<Conjunct>,
    ) -> Result<bool> {
        let mut left = Vec::with_capacity(filters.len());
        for filter in std::mem::take(filters) {
            self.control.work(1)?;
            match filter.as_binding() {
                Some((variable, term))
                    if variables.contains(variable) && !partial.possible.contains(variable) =>
                {
                    // A pattern binds only terms of the graph.
                    let Some(id) = self.snapshot.lookup(term.as_ref())? else { return Ok(false) };
                    self.push_values(vec![variable], vec![vec![id]], partial);
                }
                _ => left.push(filter),
            }
        }
        *filters = left;
        Ok(true)
    }

    /// Resolves a pattern to ids; `None`: provably no statement matches. `is_joined`: there are other
    /// patterns, so a better estimate may lead to a better order.
    fn resolve(
        &mut self,
        pattern: &Pattern,
        partial: &PartialPlan,
        is_joined: bool,
    ) -> Result<Option<Atom<'a>>> {
        let Some(general) = self.resolve_terms(pattern, partial)? else { return Ok(None) };
        let Match { subject, predicate, object, graph, edge, .. } = general;
        let variables: VariableSet =
            pattern.variables().filter(|variable| !is_fixed(*variable, &general)).collect();
        let mut atom = Atom {
            subject,
            object,
            predicate: Id::UNBOUND,
            graph: GraphFilter::Default,
            parallel: pattern.parallel,
            sides: None,
            degrees: [None, None],
            constant_classes: [ClassSet::ALL; 2],
            listed: [None, None],
            in_doubt: [subject, object].map(|end| {
                variable_of(end)
                    .is_some_and(|one| partial.possible.contains(one) && !partial.certain.contains(one))
            }),
            general: Some((general, self.snapshot.statement_count() as f64)),
            edge: None,
            types: None,
            counts_once: false,
            seek: None,
            implied: false,
            variables,
        };
        let Operand::Constant(predicate) = predicate else {
            if is_joined {
                self.read_degrees_of_all(&mut atom)?;
            }
            return Ok(Some(atom));
        };
        atom.predicate = predicate;
        atom.sides = Some(self.segments_of(predicate)?);
        let Some(entries) = atom.statistics().map(|statistics| statistics.entries).next() else {
            return Ok(None);
        };
        atom.general = Some((general, entries as f64));
        let GraphOperand::Filter(graph) = graph else { return Ok(Some(atom)) };
        atom.graph = graph;
        if !read_degrees(&mut atom, edge.is_some())? {
            return Ok(None);
        }
        let repeats = variable_of(subject).is_some() && subject == object;
        let in_doubt = [Some(subject), Some(object), edge]
            .into_iter()
            .flatten()
            .filter_map(variable_of)
            .any(|variable| partial.possible.contains(variable) && !partial.certain.contains(variable));
        if repeats || in_doubt {
            return Ok(Some(atom));
        }
        if let Some(edge) = edge {
            atom.edge = variable_of(edge).filter(|_| edge != subject && edge != object);
            return Ok(Some(atom));
        }
        self.specialize(&mut atom);
        if is_joined {
            self.read_constant_classes(&mut atom)?;
        }
        Ok(Some(atom))
    }

    /// The ids and variables of a pattern; `None`: a constant is not in the dictionary.
    fn resolve_terms(&self, pattern: &Pattern, partial: &PartialPlan) -> Result<Option<Match>> {
        let snapshot = self.snapshot;
        let operand = |slot: &Slot| -> Result<Option<Operand>> {
            Ok(match slot {
                Slot::Constant(term) => snapshot.lookup(term.as_ref())?.map(Operand::Constant),
                Slot::Variable(variable) => match partial.constant(*variable) {
                    Some(id) if partial.certain.contains(*variable) => {
                        (id.tag() != Tag::Computed).then_some(Operand::Constant(id))
                    }
                    _ => Some(Operand::Variable(*variable)),
                },
            })
        };
        let (Some(subject), Some(predicate), Some(object)) =
            (operand(&pattern.subject)?, operand(&pattern.predicate)?, operand(&pattern.object)?)
        else {
            return Ok(None);
        };
        let edge = match &pattern.edge {
            None => None,
            Some(slot) => match operand(slot)? {
                None => return Ok(None),
                some => some,
            },
        };
        let graph = match &pattern.graph {
            GraphSlot::Default => GraphOperand::Filter(GraphFilter::Default),
            GraphSlot::Any => GraphOperand::Filter(GraphFilter::Any),
            GraphSlot::Variable(variable) => GraphOperand::Variable(*variable),
            GraphSlot::Named(name) => match snapshot.lookup(name.as_ref().into())? {
                None => return Ok(None),
                Some(id) => GraphOperand::Filter(GraphFilter::Named(id)),
            },
        };
        let parallel = pattern.parallel;
        Ok(Some(Match { subject, predicate, object, graph, edge, parallel, predicates_once: false }))
    }

    /// Both segments of a predicate, cached.
    pub(crate) fn segments_of(&mut self, predicate: Id) -> Result<Rc<PredicateSegments<'a>>> {
        if let Some(sides) = self.sides.get(&predicate) {
            return Ok(Rc::clone(sides));
        }
        let sides = Rc::new(PredicateSegments::new(predicate, self.snapshot)?);
        self.sides.insert(predicate, Rc::clone(&sides));
        Ok(sides)
    }

    /// The ends that have bound variables of these atoms, with their segments.
    fn bound_ends(&mut self, atoms: &[Atom<'a>], ends: &Ends) -> Result<Vec<BoundEnds<'a>>> {
        let mut bound = Vec::new();
        if classes_tell_of(atoms) {
            return Ok(bound);
        }
        for (variable, shares) in ends {
            if atoms.iter().any(|atom| atom.variables.contains(*variable)) {
                bound.push((*variable, self.segments_of_ends(shares)?));
            }
        }
        Ok(bound)
    }

    /// Ends with their segments.
    pub(crate) fn segments_of_ends(
        &mut self,
        shares: &[EndShare],
    ) -> Result<Vec<(Rc<PredicateSegments<'a>>, Direction, f64)>> {
        let one = |end: &EndShare| Ok((self.segments_of(end.predicate)?, end.direction, end.share));
        shares.iter().map(one).collect()
    }

    /// Turns an atom of general form, with a constant predicate and a graph filter, into one that expansions,
    /// checks and intersections can join; sets the classes of a type pattern.
    fn specialize(&self, atom: &mut Atom<'a>) {
        atom.general = None;
        let has_named = atom.statistics().any(|statistics| statistics.has_named_graphs);
        let has_parallel = atom.statistics().any(|statistics| statistics.has_parallel);
        let many_graphs = matches!(atom.graph, GraphFilter::Any | GraphFilter::AnyNamed) && has_named;
        atom.counts_once = !(many_graphs || atom.parallel && has_parallel);
        if let (Operand::Constant(of), true) =
            (atom.object, self.snapshot.type_predicate() == Some(atom.predicate))
            && matches!(atom.graph, GraphFilter::Default | GraphFilter::Any)
            && (!has_named || atom.graph == GraphFilter::Default)
        {
            let classes: ClassSet = self.snapshot.classes_of_type(of).iter().copied().collect();
            atom.types = Some(classes);
        }
    }

    /// Reads the number of statements with the constant ends of a pattern over all predicates, if they are
    /// few.
    fn read_degrees_of_all(&self, atom: &mut Atom<'a>) -> Result<()> {
        if self.snapshot.predicates().len() > PREDICATES_READ_MAX {
            return Ok(());
        }
        for direction in Direction::BOTH {
            let Operand::Constant(key) = atom.ends(direction).0 else { continue };
            let (mut sum, mut degree) = (0, Vec::with_capacity(1));
            for (predicate, _) in self.snapshot.predicates() {
                let Some(segment) = self.snapshot.segment(*predicate, direction)? else { continue };
                if !segment.statistics().exact {
                    return Ok(());
                }
                degree.clear();
                segment.degrees(&[key], EntryFilter::ALL, &mut degree)?;
                sum += degree.first().copied().unwrap_or_default();
            }
            atom.degrees[direction as usize] = Some(sum as f64);
        }
        Ok(())
    }

    /// Reads the types of the constant ends of an atom between several classes.
    fn read_constant_classes(&mut self, atom: &mut Atom<'a>) -> Result<()> {
        let Some(types) = self.snapshot.type_predicate().filter(|_| atom.types.is_none()) else {
            return Ok(());
        };
        for direction in Direction::BOTH {
            let (Operand::Constant(key), Some(side)) = (atom.ends(direction).0, atom.side(direction)) else {
                continue;
            };
            if key.tag() != Tag::Vertex || side.statistics.keys_of_class.len() < 2 {
                continue;
            }
            if let Some(known) = self.classes_of_constants.get(&key) {
                atom.constant_classes[direction as usize] = *known;
                continue;
            }
            let segments = self.segments_of(types)?;
            // A read of a changed segment could make a transaction depend on it.
            let Some(side) = segments.side(Direction::Out).filter(|side| side.statistics.exact) else {
                continue;
            };
            let mut of_key = Vec::new();
            side.segment.neighbours(key, EntryFilter::ALL, &mut of_key)?;
            let mut classes = ClassSet::ALL;
            for type_id in of_key {
                let of_type = self.snapshot.classes_of_type(type_id).iter().copied().collect();
                classes = classes.intersection(&of_type);
            }
            self.classes_of_constants.insert(key, classes);
            atom.constant_classes[direction as usize] = classes;
        }
        Ok(())
    }

    /// Searches a join order and adds its steps; removes the applied conditions from `filters`. `false`: the
    /// cost of every order reaches `limit`.
    fn search(
        &mut self,
        atoms: &[Atom<'a>],
        partial: &mut PartialPlan,
        needed: &VariableSet,
        filters: &mut Vec<Conjunct>,
        limit: Option<f64>,
    ) -> Result<bool> {
        let ends = self.bound_ends(atoms, &partial.ends)?;
        let context =
            key_of_context(atoms.iter().flat_map(|atom| bound_of(&atom.variables, &partial.certain)));
        let search = JoinOrderSearch {
            atoms,
            uses: JoinOrderSearch::uses_of(atoms, filters, needed),
            filters,
            ends,
            runs: &partial.runs,
            beam: match (self.options.beam, atoms.len()) {
                (Some(beam), _) => beam.max(1),
                (None, ..=8) => 32,
                (None, 9..=12) => 16,
                (None, 13..=24) => 4,
                _ => 1,
            },
            intersect: self.options.intersect,
            reorder: self.options.reorder,
            frontiers: self.set && self.stable && !partial.by_row,
            mandatory: JoinOrderSearch::mandatory_of(atoms),
            limit: limit.map(|limit| limit - partial.cost),
            corrections: self.options.corrections.of_atoms(context, atoms),
        };
        // The search treats possibly bound variables as unbound: only general patterns contain them.
        let Some((path, classes)) =
            search.run(partial.certain.clone(), partial.rows, &partial.classes, self.control)?
        else {
            return Ok(false);
        };
        partial.classes = classes;
        add_ends(atoms, &mut partial.ends);
        let before = partial.cost;
        let first_key = self.joined.len();
        self.joined.push(context);
        let mut waiting: Vec<Option<Conjunct>> = filters.drain(..).map(Some).collect();
        let mut bound = partial.certain.clone();
        for OrderedAction { action, step_rows: rows_after, rows: rows_next, cost } in path {
            self.control.work(waiting.len() + 1)?;
            let step = step_of(atoms, &action);
            bind(atoms, &action, &mut bound);
            let mut ready: Vec<Conjunct> = waiting
                .iter_mut()
                .filter(|filter| filter.as_ref().is_some_and(|filter| filter.variables.is_subset(&bound)))
                .filter_map(Option::take)
                .collect();
            let passed: f64 = ready.iter().map(|filter| filter.selectivity).product();
            let rows = match action {
                Action::Seek(at) => {
                    let atom = &atoms[usize::from(at)];
                    atom.seek
                        .as_ref()
                        .map_or(rows_after, |seek| seek.candidate_count * seek.degree * partial.rows)
                }
                _ => rows_after / passed.max(1e-9),
            };
            let joined = self.joined_with(first_key, atoms, &action);
            partial.push_join_step(step, rows, self.options.unexpected_rows, joined);
            if let (Action::Seek(_), Some(first)) = (action, ready.first_mut()) {
                // The seek has applied this selectivity already.
                first.selectivity *= rows_after / (rows * passed).max(1e-9);
            }
            self.apply(ready, partial)?;
            partial.rows = rows_next;
            partial.cost = before + cost;
        }
        partial.possible.add_all(&bound);
        partial.certain = bound;
        filters.extend(waiting.into_iter().flatten());
        Ok(true)
    }

    /// The keys since `first_key`, with those of the atoms that `action` joins.
    fn joined_with(&mut self, first_key: usize, atoms: &[Atom<'_>], action: &Action) -> Option<(u32, u32)> {
        let mut add = |at: usize| {
            if let Some(atom) = atoms.get(at).filter(|atom| !atom.implied) {
                self.joined.push(key_of_atom(atom));
            }
        };
        match action {
            Action::Start => {}
            Action::Scan(at, _)
            | Action::Seek(at)
            | Action::Expand(at, _)
            | Action::Check(at, _)
            | Action::Match(at) => add(usize::from(*at)),
            Action::Intersect(_, legs) => legs.iter().for_each(|(at, _)| add(at)),
        }
        self.joined_since(first_key)
    }

    /// The range of the keys since `first_key`; `None`: there is no search, so no other order.
    pub(crate) fn joined_since(&self, first_key: usize) -> Option<(u32, u32)> {
        let start = u32::try_from(first_key).ok().filter(|_| self.options.reorder)?;
        Some((start, u32::try_from(self.joined.len()).ok()?))
    }
}

/// Adds the ends that the atoms are for their variables. Of several ends the one with the fewest values
/// remains.
fn add_ends(atoms: &[Atom<'_>], ends: &mut Ends) {
    let mut fewest: Vec<(Variable, u64, EndShare)> = Vec::new();
    for atom in atoms.iter().filter(|atom| atom.types.is_none() && atom.predicate != Id::UNBOUND) {
        for direction in Direction::BOTH {
            let (Some(variable), Some(side)) = (variable_of(atom.ends(direction).0), atom.side(direction))
            else {
                continue;
            };
            let end = EndShare { predicate: atom.predicate, direction, share: 1.0 };
            let keys = side.statistics.keys;
            match fewest.iter_mut().find(|(of, ..)| *of == variable) {
                Some(known) if keys < known.1 => (known.1, known.2) = (keys, end),
                Some(_) => {}
                None => fewest.push((variable, keys, end)),
            }
        }
    }
    for (variable, _, end) in fewest {
        ends.retain(|(of, _)| *of != variable);
        ends.push((variable, Rc::from([end])));
    }
}

/// Whether constants have replaced all occurrences of the variable in this pattern.
fn is_fixed(variable: Variable, pattern: &Match) -> bool {
    let is = |operand: Operand| operand == Operand::Variable(variable);
    !is(pattern.subject)
        && !is(pattern.predicate)
        && !is(pattern.object)
        && !pattern.edge.is_some_and(is)
        && pattern.graph != GraphOperand::Variable(variable)
}

fn step_of(atoms: &[Atom<'_>], action: &Action) -> Step {
    let access = |at: usize, direction: Direction| -> (Operand, Access, Operand) {
        let (key, neighbour) = atoms[at].ends(direction);
        (key, atoms[at].access(direction), neighbour)
    };
    let general = |at: u8| Step::Match(atoms[usize::from(at)].to_match());
    match *action {
        Action::Start => Step::Empty,
        Action::Scan(at, direction) => match access(usize::from(at), direction) {
            (Operand::Variable(key), access, neighbour) => {
                Step::Scan { access, key, neighbour: variable_of(neighbour) }
            }
            (Operand::Constant(_), ..) => general(at),
        },
        Action::Seek(at) if atoms[usize::from(at)].general.is_some() => match &atoms[usize::from(at)].seek {
            Some(seek) => Step::SeekMatch {
                pattern: atoms[usize::from(at)].to_match(),
                candidates: seek.candidates.clone(),
            },
            None => general(at),
        },
        Action::Seek(at) => match (access(usize::from(at), Direction::In), &atoms[usize::from(at)].seek) {
            ((Operand::Variable(key), access, neighbour), Some(seek)) => {
                let neighbour = variable_of(neighbour);
                Step::Seek { access, key, neighbour, candidates: seek.candidates.clone() }
            }
            _ => general(at),
        },
        Action::Expand(at, direction) => {
            let (key, access, neighbour) = access(usize::from(at), direction);
            Step::Expand { key, access, neighbour: variable_of(neighbour), edge: atoms[usize::from(at)].edge }
        }
        Action::Check(at, direction) => {
            let (key, access, neighbour) = access(usize::from(at), direction);
            Step::Check { key, access, neighbour }
        }
        Action::Intersect(target, legs) => Step::Intersect {
            target,
            legs: legs
                .iter()
                .map(|(at, direction)| {
                    let (key, access, _) = access(at, direction);
                    Leg { key, access }
                })
                .collect(),
            count_only: false,
        },
        Action::Match(at) => general(at),
    }
}

/// Reads the degrees of the constant ends of an atom; `false`: one is provably 0, so no entry matches.
fn read_degrees(atom: &mut Atom<'_>, has_edge: bool) -> Result<bool> {
    let filter = EntryFilter { graph: atom.graph, parallel: atom.parallel };
    let mut degree = Vec::with_capacity(1);
    for direction in Direction::BOTH {
        if let (Operand::Constant(key), Some(side)) = (atom.ends(direction).0, atom.side(direction)) {
            degree.clear();
            side.segment.degrees(&[key], filter, &mut degree)?;
            let degree = degree.first().copied().unwrap_or_default();
            if degree == 0 && !has_edge && side.statistics.exact {
                return Ok(false);
            }
            atom.degrees[direction as usize] = Some(degree as f64);
        }
    }
    Ok(true)
}
