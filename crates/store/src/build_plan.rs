//! What the servers that build the partitions of a graph together agree on: which predicates there are and
//! which are split, and the classes of vertices. Each server makes a [`Survey`] of its partitions, and one of
//! them makes the [`BuildPlan`] of all surveys.

use crate::halves::ObjectCounts;
use crate::predicate_sets::{SetClasses, SetCounts, assign};
use crate::statistics::{ClassTable, TypeClasses, TypeSets};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use vervet_codec::{Damaged, Reader, write_u64};
use vervet_model::{Error, Id, Partitioning, Result, Watch};
use vervet_snapshot::ClassId;

/// The partitions of one server in numbers.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Survey {
    pub(crate) predicates: Vec<PredicateSurvey>,
    /// Types of vertices that the server owns.
    pub(crate) types: TypeSets,
    /// One more than the largest number of an edge.
    pub(crate) edge_end: u64,
}

/// One predicate at one server.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct PredicateSurvey {
    pub(crate) predicate: u64,
    /// Statements whose subject the server owns, duplicates included.
    pub(crate) added: u64,
    /// Of the objects that it owns.
    pub(crate) objects: ObjectCounts,
}

/// Counts of the whole graph.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct GraphCounts {
    /// Vertices of the dictionary.
    pub vertices: u64,
    /// Literals of the dictionary.
    pub literals: u64,
    /// `rdf:type`; [`Id::UNBOUND`] if the dictionary does not have it.
    pub type_predicate: Id,
    /// Edges that were numbered.
    pub edges: u64,
}

/// What all servers build alike. See the header of this file.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct BuildPlan {
    pub(crate) counts: GraphCounts,
    /// Predicates, the largest first, and whether they are split.
    pub(crate) predicates: Vec<(u64, bool)>,
    pub(crate) types: TypeClasses,
}

impl Survey {
    /// Appends its bytes.
    pub fn write(&self, out: &mut Vec<u8>) {
        write_u64(self.edge_end, out);
        write_u64(self.predicates.len() as u64, out);
        for one in &self.predicates {
            let ObjectCounts { entries, objects, degree_max } = one.objects;
            for number in [one.predicate, one.added, entries, objects, degree_max] {
                write_u64(number, out);
            }
        }
        write_u64(self.types.len() as u64, out);
        for (set, count) in &self.types {
            write_list(set.iter().copied(), out);
            write_u64(*count, out);
        }
    }

    /// Reads what [`Survey::write`] wrote.
    ///
    /// # Errors
    /// Damaged bytes.
    pub fn read(bytes: &[u8]) -> Result<Self, Damaged> {
        let mut reader = Reader::new(bytes);
        let mut survey = Self { edge_end: reader.u64()?, ..Self::default() };
        for _ in 0..reader.list_length()? {
            let mut number = || reader.u64();
            let (predicate, added) = (number()?, number()?);
            let objects = ObjectCounts { entries: number()?, objects: number()?, degree_max: number()? };
            survey.predicates.push(PredicateSurvey { predicate, added, objects });
        }
        for _ in 0..reader.list_length()? {
            let set = read_list(&mut reader)?;
            survey.types.insert(set, reader.u64()?);
        }
        reader.finish()?;
        Ok(survey)
    }
}

impl BuildPlan {
    /// The plan for all servers of these surveys.
    ///
    /// # Errors
    /// Internal: more vertices have types than the graph has.
    pub fn new(surveys: Vec<Survey>, counts: GraphCounts, partitioning: Partitioning) -> Result<Self> {
        let mut predicates: BTreeMap<u64, PredicateSurvey> = BTreeMap::new();
        let mut types = TypeSets::default();
        let mut edges = counts.edges;
        for survey in surveys {
            for one in survey.predicates {
                let all = predicates.entry(one.predicate).or_default();
                all.added = all.added.saturating_add(one.added);
                all.objects.entries = all.objects.entries.saturating_add(one.objects.entries);
                all.objects.objects = all.objects.objects.saturating_add(one.objects.objects);
                all.objects.degree_max = all.objects.degree_max.max(one.objects.degree_max);
            }
            for (set, count) in survey.types {
                *types.entry(set).or_default() += count;
            }
            edges = edges.max(survey.edge_end);
        }
        let typed = types.values().fold(0_u64, |sum, count| sum.saturating_add(*count));
        if typed > counts.vertices {
            return Err(Error::internal("more vertices have types than the graph has"));
        }
        let mut ranked: Vec<_> = predicates.into_iter().collect();
        ranked.sort_by_key(|(predicate, one)| (Reverse(one.added), *predicate));
        let split = |(predicate, one): (u64, PredicateSurvey)| {
            let is_type = predicate == counts.type_predicate.bits();
            (predicate, !partitioning.is_whole() && (is_type || one.objects.is_split(partitioning)))
        };
        Ok(Self {
            counts: GraphCounts { edges, ..counts },
            predicates: ranked.into_iter().map(split).collect(),
            types: TypeClasses::new(types, counts.vertices, counts.literals),
        })
    }

    /// Appends its bytes.
    pub fn write(&self, out: &mut Vec<u8>) {
        let GraphCounts { vertices, literals, type_predicate, edges } = self.counts;
        for number in [vertices, literals, type_predicate.bits(), edges, self.predicates.len() as u64] {
            write_u64(number, out);
        }
        for (predicate, is_split) in &self.predicates {
            write_u64(*predicate, out);
            write_u64(u64::from(*is_split), out);
        }
        write_table(&self.types.table, out);
        write_u64(self.types.of_set.len() as u64, out);
        for (set, class) in &self.types.of_set {
            write_list(set.iter().copied(), out);
            write_u64(u64::from(*class), out);
        }
    }

    /// Reads what [`BuildPlan::write`] wrote.
    ///
    /// # Errors
    /// Damaged bytes.
    pub fn read(bytes: &[u8]) -> Result<Self, Damaged> {
        let mut reader = Reader::new(bytes);
        let counts = GraphCounts {
            vertices: reader.u64()?,
            literals: reader.u64()?,
            type_predicate: Id::from_bits(reader.u64()?),
            edges: reader.u64()?,
        };
        let mut plan = Self { counts, ..Self::default() };
        for _ in 0..reader.list_length()? {
            plan.predicates.push((reader.u64()?, reader.u64()? != 0));
        }
        plan.types.table = read_table(&mut reader)?;
        for _ in 0..reader.list_length()? {
            let set = read_list(&mut reader)?;
            plan.types.of_set.insert(set, read_class(&mut reader)?);
        }
        reader.finish()?;
        Ok(plan)
    }
}

/// Vertices without types by their sets of predicates, at one server.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SetSurvey(pub(crate) SetCounts);

/// The classes of all vertices: the table, and the class of each set of predicates.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SetPlan {
    pub(crate) table: ClassTable,
    pub(crate) of_set: SetClasses,
}

impl SetSurvey {
    /// Appends its bytes.
    pub fn write(&self, out: &mut Vec<u8>) {
        for (set, count) in &self.0 {
            write_list(set.iter().copied().map(u64::from), out);
            write_u64(*count, out);
        }
    }

    /// Reads what [`SetSurvey::write`] wrote.
    ///
    /// # Errors
    /// Damaged bytes.
    pub fn read(bytes: &[u8]) -> Result<Self, Damaged> {
        let (mut reader, mut rest) = (Reader::new(bytes), bytes.len() / 8);
        let mut survey = Self::default();
        while rest > 0 {
            let set = read_ends(&mut reader)?;
            rest = rest.saturating_sub(set.len() + 2);
            survey.0.insert(set, reader.u64()?);
        }
        reader.finish()?;
        Ok(survey)
    }
}

impl SetPlan {
    /// The classes by types of `plan`, and those of the sets of all surveys.
    ///
    /// # Errors
    /// Those of `watch`; Internal: a set has predicates that are not in the plan.
    pub fn new(plan: &BuildPlan, surveys: Vec<SetSurvey>, watch: &Watch<'_>) -> Result<Self> {
        let mut counts = SetCounts::new();
        for (set, count) in surveys.into_iter().flat_map(|survey| survey.0) {
            *counts.entry(set).or_default() += count;
        }
        let ends = u32::try_from(2 * plan.predicates.len()).unwrap_or(u32::MAX);
        let untyped =
            plan.types.table.sizes.get(usize::from(ClassId::UNTYPED.0)).copied().unwrap_or_default();
        let counted = counts.values().fold(0_u64, |sum, count| sum.saturating_add(*count));
        if counted > untyped || counts.keys().flatten().any(|end| *end >= ends) {
            return Err(Error::internal("sets of predicates that the graph does not have"));
        }
        let mut table = plan.types.table.clone();
        let of_set = assign(counts, ends, &mut table, watch)?;
        Ok(Self { table, of_set })
    }

    /// Appends its bytes.
    pub fn write(&self, out: &mut Vec<u8>) {
        write_table(&self.table, out);
        write_u64(self.of_set.len() as u64, out);
        for (set, class) in &self.of_set {
            write_list(set.iter().copied().map(u64::from), out);
            write_u64(u64::from(*class), out);
        }
    }

    /// Reads what [`SetPlan::write`] wrote.
    ///
    /// # Errors
    /// Damaged bytes.
    pub fn read(bytes: &[u8]) -> Result<Self, Damaged> {
        let mut reader = Reader::new(bytes);
        let mut plan = Self { table: read_table(&mut reader)?, ..Self::default() };
        for _ in 0..reader.list_length()? {
            let set = read_ends(&mut reader)?;
            plan.of_set.insert(set, read_class(&mut reader)?);
        }
        reader.finish()?;
        Ok(plan)
    }
}

fn write_list(numbers: impl ExactSizeIterator<Item = u64>, out: &mut Vec<u8>) {
    write_u64(numbers.len() as u64, out);
    numbers.for_each(|number| write_u64(number, out));
}

fn read_list(reader: &mut Reader<'_>) -> Result<Vec<u64>, Damaged> {
    (0..reader.list_length()?).map(|_| reader.u64()).collect()
}

fn read_ends(reader: &mut Reader<'_>) -> Result<Vec<u32>, Damaged> {
    let end = |number| u32::try_from(number).map_err(|_| Damaged("a number of a predicate is too large"));
    (0..reader.list_length()?).map(|_| end(reader.u64()?)).collect()
}

fn read_class(reader: &mut Reader<'_>) -> Result<u8, Damaged> {
    u8::try_from(reader.u64()?).map_err(|_| Damaged("class number too large"))
}

fn write_table(table: &ClassTable, out: &mut Vec<u8>) {
    write_list(table.sizes.iter().copied(), out);
    write_u64(table.of_type.len() as u64, out);
    for (type_id, classes) in &table.of_type {
        write_u64(*type_id, out);
        write_list(classes.iter().map(|class| u64::from(class.0)), out);
    }
}

fn read_table(reader: &mut Reader<'_>) -> Result<ClassTable, Damaged> {
    let mut table = ClassTable { sizes: read_list(reader)?, ..ClassTable::default() };
    if table.sizes.len() > ClassId::COUNT_MAX {
        return Err(Damaged("too many classes"));
    }
    for _ in 0..reader.list_length()? {
        let type_id = reader.u64()?;
        let class =
            |number| u16::try_from(number).ok().filter(|class| usize::from(*class) < ClassId::COUNT_MAX);
        let classes = (0..reader.list_length()?)
            .map(|_| class(reader.u64()?).map(ClassId).ok_or(Damaged("class number too large")))
            .collect::<Result<_, _>>()?;
        table.of_type.insert(type_id, classes);
    }
    Ok(table)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_and_surveys_are_their_bytes() {
        let predicate = |predicate, added, degree_max| PredicateSurvey {
            predicate,
            added,
            objects: ObjectCounts { entries: added, objects: 3, degree_max },
        };
        let survey = Survey {
            predicates: vec![predicate(Id::vertex(1).bits(), 700, 90), predicate(Id::vertex(2).bits(), 5, 1)],
            types: [(vec![4, 5], 10), (vec![6], 20)].into_iter().collect(),
            edge_end: 9,
        };
        let mut bytes = Vec::new();
        survey.write(&mut bytes);
        assert_eq!(Survey::read(&bytes).expect("whole"), survey);
        let counts = GraphCounts { vertices: 100, literals: 7, type_predicate: Id::vertex(2), edges: 3 };
        let partitioning = Partitioning::new(4).expect("a power of two");
        let plan = BuildPlan::new(vec![survey.clone(), survey], counts, partitioning).expect("a plan");
        assert_eq!(plan.predicates, [(Id::vertex(1).bits(), true), (Id::vertex(2).bits(), true)]);
        assert_eq!((plan.counts.edges, &plan.types.table.sizes[..]), (9, &[40, 7, 0, 40, 20][..]));
        let mut bytes = Vec::new();
        plan.write(&mut bytes);
        assert_eq!(BuildPlan::read(&bytes).expect("whole"), plan);
        let sets = SetSurvey([(vec![0, 3], 8), (vec![1], 9)].into_iter().collect());
        let mut of_sets = Vec::new();
        sets.write(&mut of_sets);
        assert_eq!(SetSurvey::read(&of_sets).expect("whole"), sets);
        let set_plan = SetPlan::new(&plan, vec![sets.clone(), sets], &Watch::new("test")).expect("a plan");
        assert_eq!(set_plan.table.sizes.iter().sum::<u64>(), 107);
        let mut of_plan = Vec::new();
        set_plan.write(&mut of_plan);
        assert_eq!(SetPlan::read(&of_plan).expect("whole"), set_plan);
        let foreign = SetSurvey([(vec![4], 1)].into_iter().collect());
        assert!(SetPlan::new(&plan, vec![foreign], &Watch::new("test")).is_err());
        for bytes in [bytes, of_sets, of_plan] {
            for end in 0..bytes.len() {
                _ = (Survey::read(&bytes[..end]), BuildPlan::read(&bytes[..end]));
                _ = (SetSurvey::read(&bytes[..end]), SetPlan::read(&bytes[..end]));
            }
        }
    }
}
