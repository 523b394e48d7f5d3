//! Bytes of plans: of steps, expressions, paths, terms.
//!
//! A full-text search, a pattern of `EXISTS` within an expression and a join have no bytes: steps with them
//! run where the query was asked ([`crate::placement`]).

use crate::task::{FIRST_ROWS_MAX, STEPS_MAX};
use crate::wire::{Input, Wire, malformed, wire_enum, wire_struct};
use oxrdf::{BaseDirection, BlankNode, Literal, NamedNode, NamedOrBlankNode, Term, Triple};
use vervet_algebra::{Aggregate, AggregateKind, Comparator, Expression, Function, OrderKey, Path, Variable};
use vervet_codec::write_varint;
use vervet_kernel::plan::{
    Access, Automaton, CandidateKeys, GraphOperand, JoinKind, Leg, Match, Move, Operand, PathGraphs,
    PathStep, Pipeline, PlanStep, SemiJoinKind, Step, StringRange,
};
use vervet_model::{Direction, Result};
use vervet_snapshot::GraphFilter;

impl Wire for Variable {
    fn write(&self, out: &mut Vec<u8>) {
        self.0.write(out);
    }

    fn read(input: &mut Input<'_>) -> Result<Self> {
        let variable = Self(u16::read(input)?);
        if input.has_column(variable.index()) {
            Ok(variable)
        } else {
            Err(malformed("a variable without a column"))
        }
    }
}

wire_enum!(Direction { 0 => Out, 1 => In });
wire_enum!(GraphFilter { 0 => Default, 1 => Any, 2 => AnyNamed, 3 => Named(name) });
wire_enum!(Operand { 0 => Variable(variable), 1 => Constant(id) });
wire_enum!(GraphOperand { 0 => Filter(filter), 1 => Variable(variable) });
wire_enum!(PathGraphs { 0 => These(graphs), 1 => Variable(variable) });
wire_enum!(JoinKind {
    0 => Inner(condition), 1 => Left(condition), 2 => Minus, 3 => Semi(condition), 4 => Anti(condition),
});
wire_enum!(SemiJoinKind { 0 => Semi, 1 => Anti, 2 => Mark(variable) });

wire_struct! {
    Access { predicate, direction, graph, parallel }
    StringRange { from, to }
    Leg { key, access }
    Match { subject, predicate, object, graph, edge, parallel, predicates_once }
    PathStep { subject, object, path, automaton, graphs, zero_length, tested }
    Automaton { moves, accepting }
    OrderKey { expression, descending }
    Aggregate { kind, expression, distinct }
    Pipeline { steps }
}

impl Wire for u8 {
    fn write(&self, out: &mut Vec<u8>) {
        out.push(*self);
    }

    fn read(input: &mut Input<'_>) -> Result<Self> {
        input.take(1).map(|bytes| bytes.first().copied().unwrap_or_default())
    }
}

impl Wire for CandidateKeys {
    fn write(&self, out: &mut Vec<u8>) {
        (self.keys.clone(), self.literals.clone()).write(out);
        (self.string_range.clone(), self.count).write(out);
    }

    fn read(input: &mut Input<'_>) -> Result<Self> {
        let (keys, literals) = Wire::read(input)?;
        let (string_range, count) = Wire::read(input)?;
        Ok(Self { keys, literals, string_range, search: None, count })
    }
}

impl Wire for Move {
    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Predicate(predicate, direction) => (false, (*predicate, *direction)).write(out),
            Self::Except(predicates, direction) => {
                true.write(out);
                predicates.write(out);
                direction.write(out);
            }
        }
    }

    fn read(input: &mut Input<'_>) -> Result<Self> {
        Ok(if bool::read(input)? {
            Self::Except(Wire::read(input)?, Wire::read(input)?)
        } else {
            Self::Predicate(Wire::read(input)?, Wire::read(input)?)
        })
    }
}

impl Wire for PlanStep {
    fn write(&self, out: &mut Vec<u8>) {
        self.step.write(out);
        self.keep.write(out);
        self.rows.write(out);
    }

    /// The query is planned again only where it was asked: there is no validity range.
    fn read(input: &mut Input<'_>) -> Result<Self> {
        Ok(Self {
            step: Wire::read(input)?,
            keep: Wire::read(input)?,
            rows: Wire::read(input)?,
            validity: None,
        })
    }
}

impl Wire for Step {
    fn write(&self, out: &mut Vec<u8>) {
        let mut put = |number: u64, fields: &[&dyn Written]| {
            write_varint(number, out);
            fields.iter().for_each(|field| field.put(out));
        };
        match self {
            Self::Empty => put(0, &[]),
            Self::Scan { access, key, neighbour } => put(1, &[access, key, neighbour]),
            Self::Seek { access, key, neighbour, candidates } => {
                put(2, &[access, key, neighbour, candidates]);
            }
            Self::Expand { key, access, neighbour, edge } => put(3, &[key, access, neighbour, edge]),
            Self::Check { key, access, neighbour } => put(4, &[key, access, neighbour]),
            Self::Intersect { target, legs, count_only } => put(5, &[target, legs, count_only]),
            Self::Match(pattern) => put(6, &[pattern]),
            Self::SeekMatch { pattern, candidates } => put(7, &[pattern, candidates]),
            Self::Filter(condition) => put(8, &[condition]),
            Self::Extend { variable, expression } => put(9, &[variable, expression]),
            Self::Values { variables, rows } => put(10, &[variables, rows]),
            Self::Optional { inner, row } => put(11, &[inner, row]),
            Self::Seeded { inner, seed, on, adds } => put(12, &[inner, seed, on, adds]),
            Self::Path(path) => put(13, &[path]),
            Self::Exists { inner, row, semi_join_kind } => put(14, &[inner, row, semi_join_kind]),
            Self::Union { branches } => put(15, &[branches]),
            Self::Frontier { variables } => put(16, &[variables]),
            Self::Order { keys, limit } => put(17, &[keys, limit]),
            Self::Group { keys, aggregates } => put(18, &[keys, aggregates]),
            // The rows of the right side are in the job; its steps are only counted.
            Self::Join { right, kind, on, compatible, adds } => {
                put(19, &[&right.number_steps(), kind, on, compatible, adds]);
            }
            Self::Distinct { .. } | Self::Slice { .. } => put(UNKNOWN, &[]),
        }
    }

    fn read(input: &mut Input<'_>) -> Result<Self> {
        input.nested(|input| {
            Ok(match input.number()? {
                0 => Self::Empty,
                1 => Self::Scan {
                    access: Wire::read(input)?,
                    key: Wire::read(input)?,
                    neighbour: Wire::read(input)?,
                },
                2 => Self::Seek {
                    access: Wire::read(input)?,
                    key: Wire::read(input)?,
                    neighbour: Wire::read(input)?,
                    candidates: Wire::read(input)?,
                },
                3 => Self::Expand {
                    key: Wire::read(input)?,
                    access: Wire::read(input)?,
                    neighbour: Wire::read(input)?,
                    edge: Wire::read(input)?,
                },
                4 => Self::Check {
                    key: Wire::read(input)?,
                    access: Wire::read(input)?,
                    neighbour: Wire::read(input)?,
                },
                5 => Self::Intersect {
                    target: Wire::read(input)?,
                    legs: Wire::read(input)?,
                    count_only: Wire::read(input)?,
                },
                6 => Self::Match(Wire::read(input)?),
                7 => Self::SeekMatch { pattern: Wire::read(input)?, candidates: Wire::read(input)? },
                8 => Self::Filter(Wire::read(input)?),
                9 => Self::Extend { variable: Wire::read(input)?, expression: Wire::read(input)? },
                10 => Self::Values { variables: Wire::read(input)?, rows: Wire::read(input)? },
                11 => Self::Optional { inner: Wire::read(input)?, row: Wire::read(input)? },
                12 => Self::Seeded {
                    inner: Wire::read(input)?,
                    seed: Wire::read(input)?,
                    on: Wire::read(input)?,
                    adds: Wire::read(input)?,
                },
                13 => Self::Path(Wire::read(input)?),
                14 => Self::Exists {
                    inner: Wire::read(input)?,
                    row: Wire::read(input)?,
                    semi_join_kind: Wire::read(input)?,
                },
                15 => Self::Union { branches: Wire::read(input)? },
                16 => Self::Frontier { variables: Wire::read(input)? },
                17 => {
                    let (keys, limit): (_, Option<usize>) = Wire::read(input)?;
                    if limit.is_none_or(|limit| limit > FIRST_ROWS_MAX) {
                        return Err(malformed("an order of all rows"));
                    }
                    Self::Order { keys, limit }
                }
                19 => {
                    let count = usize::read(input)?;
                    if count > STEPS_MAX {
                        return Err(malformed("too many steps"));
                    }
                    let right = uncounted(count);
                    let (kind, on) = Wire::read(input)?;
                    let (compatible, adds): (Vec<Variable>, Vec<Variable>) = Wire::read(input)?;
                    if compatible.len() > COMPATIBLE_MAX {
                        return Err(malformed("a join of too many variables that may be unbound"));
                    }
                    Self::Join { right, kind, on, compatible, adds }
                }
                18 => Self::Group { keys: Wire::read(input)?, aggregates: Wire::read(input)? },
                _ => return Err(malformed("an unknown step")),
            })
        })
    }
}

/// Maximum number of variables of a join that may be unbound: a row has a bit for each.
const COMPATIBLE_MAX: usize = 64;

/// The right side of a join whose rows are in the job: as many steps, so that steps keep their numbers.
pub(crate) fn uncounted(steps: usize) -> Pipeline {
    let empty = PlanStep { step: Step::Empty, keep: Vec::new(), rows: 0.0, validity: None };
    Pipeline { steps: vec![empty; steps] }
}

/// What has no bytes; reading refuses it.
const UNKNOWN: u64 = u64::MAX;

/// [`Wire::write`] for values of different types in one list.
trait Written {
    fn put(&self, out: &mut Vec<u8>);
}

impl<T: Wire> Written for T {
    fn put(&self, out: &mut Vec<u8>) {
        self.write(out);
    }
}

wire_enum!(Comparator { 0 => Less, 1 => LessOrEqual, 2 => Greater, 3 => GreaterOrEqual });
wire_enum!(AggregateKind {
    0 => Count, 1 => Sum, 2 => Avg, 3 => Min, 4 => Max, 5 => Sample, 6 => GroupConcat { separator },
});
wire_enum!(Path {
    0 => Predicate(name), 1 => Except(names), 2 => Inverse(path), 3 => Sequence(paths), 4 => Alternative(paths),
    5 => ZeroOrOne(path), 6 => ZeroOrMore(path), 7 => OneOrMore(path),
});

impl Wire for Expression {
    fn write(&self, out: &mut Vec<u8>) {
        let mut put = |number: u64, fields: &[&dyn Written]| {
            write_varint(number, out);
            fields.iter().for_each(|field| field.put(out));
        };
        match self {
            Self::Constant(term) => put(0, &[term]),
            Self::Variable(variable) => put(1, &[variable]),
            Self::Unbound => put(2, &[]),
            Self::Bound(variable) => put(3, &[variable]),
            Self::Or(all) => put(4, &[all]),
            Self::And(all) => put(5, &[all]),
            Self::Not(a) => put(6, &[a]),
            Self::Equal(a, b) => put(7, &[a, b]),
            Self::SameTerm(a, b) => put(8, &[a, b]),
            Self::Compare(comparator, a, b) => put(9, &[comparator, a, b]),
            Self::In(a, all) => put(10, &[a, all]),
            Self::Add(a, b) => put(11, &[a, b]),
            Self::Subtract(a, b) => put(12, &[a, b]),
            Self::Multiply(a, b) => put(13, &[a, b]),
            Self::Divide(a, b) => put(14, &[a, b]),
            Self::Plus(a) => put(15, &[a]),
            Self::Minus(a) => put(16, &[a]),
            Self::If(a, b, c) => put(17, &[a, b, c]),
            Self::Coalesce(all) => put(18, &[all]),
            Self::Call(function, all) => put(19, &[function, all]),
            Self::Exists(_) => put(UNKNOWN, &[]),
        }
    }

    fn read(input: &mut Input<'_>) -> Result<Self> {
        input.nested(|input| {
            Ok(match input.number()? {
                0 => Self::Constant(Wire::read(input)?),
                1 => Self::Variable(Wire::read(input)?),
                2 => Self::Unbound,
                3 => Self::Bound(Wire::read(input)?),
                4 => Self::Or(Wire::read(input)?),
                5 => Self::And(Wire::read(input)?),
                6 => Self::Not(Wire::read(input)?),
                7 => Self::Equal(Wire::read(input)?, Wire::read(input)?),
                8 => Self::SameTerm(Wire::read(input)?, Wire::read(input)?),
                9 => Self::Compare(Wire::read(input)?, Wire::read(input)?, Wire::read(input)?),
                10 => Self::In(Wire::read(input)?, Wire::read(input)?),
                11 => Self::Add(Wire::read(input)?, Wire::read(input)?),
                12 => Self::Subtract(Wire::read(input)?, Wire::read(input)?),
                13 => Self::Multiply(Wire::read(input)?, Wire::read(input)?),
                14 => Self::Divide(Wire::read(input)?, Wire::read(input)?),
                15 => Self::Plus(Wire::read(input)?),
                16 => Self::Minus(Wire::read(input)?),
                17 => Self::If(Wire::read(input)?, Wire::read(input)?, Wire::read(input)?),
                18 => Self::Coalesce(Wire::read(input)?),
                19 => Self::Call(Wire::read(input)?, Wire::read(input)?),
                _ => return Err(malformed("an unknown expression")),
            })
        })
    }
}

wire_enum!(Function {
    0 => Str, 1 => Lang, 2 => LangMatches, 3 => Datatype, 4 => Iri { base }, 5 => BNode, 6 => Rand, 7 => Abs, 8 => Ceil,
    9 => Floor, 10 => Round, 11 => Concat, 12 => SubStr, 13 => StrLen, 14 => Replace, 15 => UCase, 16 => LCase,
    17 => EncodeForUri, 18 => Contains, 19 => StrStarts, 20 => StrEnds, 21 => StrBefore, 22 => StrAfter, 23 => Year,
    24 => Month, 25 => Day, 26 => Hours, 27 => Minutes, 28 => Seconds, 29 => Timezone, 30 => Tz, 31 => Now, 32 => Uuid,
    33 => StrUuid, 34 => Md5, 35 => Sha1, 36 => Sha256, 37 => Sha384, 38 => Sha512, 39 => StrLang, 40 => LangDir,
    41 => HasLang, 42 => HasLangDir, 43 => StrLangDir, 44 => IsTriple, 45 => Triple, 46 => Subject, 47 => Predicate,
    48 => Object, 49 => StrDt, 50 => IsIri, 51 => IsBlank, 52 => IsLiteral, 53 => IsNumeric, 54 => Regex,
    55 => EqualityKey, 56 => TextMatches, 57 => TextScore, 58 => Cast(name), 59 => Unknown(name),
});

impl Wire for NamedNode {
    fn write(&self, out: &mut Vec<u8>) {
        self.as_str().to_owned().write(out);
    }

    fn read(input: &mut Input<'_>) -> Result<Self> {
        String::read(input).map(Self::new_unchecked)
    }
}

impl Wire for BlankNode {
    fn write(&self, out: &mut Vec<u8>) {
        self.as_str().to_owned().write(out);
    }

    fn read(input: &mut Input<'_>) -> Result<Self> {
        Self::new(String::read(input)?).map_err(|_| malformed("a label of a blank node is none"))
    }
}

wire_enum!(NamedOrBlankNode { 0 => NamedNode(name), 1 => BlankNode(label) });
wire_enum!(Term { 0 => NamedNode(name), 1 => BlankNode(label), 2 => Literal(literal), 3 => Triple(triple) });
wire_enum!(BaseDirection { 0 => Ltr, 1 => Rtl });
wire_struct! { Triple { subject, predicate, object } }

impl Wire for Literal {
    fn write(&self, out: &mut Vec<u8>) {
        self.value().to_owned().write(out);
        self.language().map(str::to_owned).write(out);
        self.direction().write(out);
        if self.language().is_none() {
            self.datatype().into_owned().write(out);
        }
    }

    fn read(input: &mut Input<'_>) -> Result<Self> {
        let value = String::read(input)?;
        let language: Option<String> = Wire::read(input)?;
        let direction: Option<BaseDirection> = Wire::read(input)?;
        Ok(match (language, direction) {
            (Some(language), Some(direction)) => {
                Self::new_directional_language_tagged_literal_unchecked(value, language, direction)
            }
            (Some(language), None) => Self::new_language_tagged_literal_unchecked(value, language),
            (None, _) => Self::new_typed_literal(value, NamedNode::read(input)?),
        })
    }
}
