//! Sargable conditions on an object: prefixes, ranges, lists and full-text searches as key ranges.
//!
//! # Shape
//! `STRSTARTS(?x, "a")`, `REGEX(?x, "^a")`, `?x >= "a"`, `?x < 5`, the same of `STR(?x)`; `?x IN ("a", "b")`;
//! a full-text search of `?x`. Each condition becomes ranges of ids, since inline values preserve their order
//! in ids ([`vervet_model::Inline`]), and hence ranges of keys of the direction from object to subject.
//! Conditions on texts additionally become a range in the order of the literals of the dictionary
//! ([`Snapshot::literal_range`]) and of unordered literals ([`Snapshot::unordered_literals`]), or a look-up
//! in the word index ([`Snapshot::search`]).
//! # Invariants
//! The ranges contain every object that passes the condition, and possibly others. The condition stays in the
//! plan and is tested on the rows.
//! # Cost
//! Some 20 accesses to the key set for each bound, and two bounds in the order of literals: microseconds for
//! each such condition on a pattern. Planning lists no entries.
//! # Not here
//! Decimals and numbers in non-canonical form, which are not ordered by value: the ranges contain all keys
//! with their tag.

use crate::filter::{Conjunct, one_of};
use oxrdf::{Literal, Term};
use std::ops::Range;
use vervet_algebra::{Comparator, Expression, Function, Variable};
use vervet_kernel::Control;
use vervet_kernel::plan::{CandidateKeys, StringRange};
use vervet_model::{
    Direction, Id, Inline, Result, Tag, TextSearch, double_bounds, inline_id, integer_bounds,
    short_string_bound, vocab::EDGE_NAMESPACE,
};
use vervet_snapshot::{Segment, SegmentStatistics, Snapshot};

/// Maximum length of an inline string in bytes.
const SHORT_BYTES: usize = 7;

/// The keys of a segment that sargable conditions leave.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Seek {
    /// The keys, as ranges, literals or a search.
    pub(crate) candidates: CandidateKeys,
    /// Number of candidate keys.
    pub(crate) candidate_count: f64,
    /// Estimated selectivity of the conditions: fraction of all keys that passes.
    pub(crate) fraction: f64,
    /// Number of keys.
    pub(crate) keys: f64,
    /// Entries of a key on average.
    pub(crate) degree: f64,
    /// Number of segment look-ups: one for a listed key, one in each segment for a literal.
    pub(crate) lookups: f64,
    /// Cost of the first condition for each tested value, in ns.
    pub(crate) test: f64,
}

/// The set of values that a condition allows.
#[derive(Clone, PartialEq, Debug)]
enum SargableSet {
    /// Texts from `from` (inclusive) to `to` (exclusive, if given), in byte order.
    Text {
        from: Vec<u8>,
        to: Option<Vec<u8>>,
        /// Texts of terms of any kind (`STR`), not only of strings.
        any_kind: bool,
    },
    /// Matches of a full-text search.
    Found(TextSearch),
    /// Numbers, both ends included.
    Number { low: f64, high: f64 },
    /// Dates or date-times, by tag, both ends included.
    Time { tag: Tag, low: i64, high: i64 },
    /// One of these terms, each equal only to itself.
    OneOf(Vec<Term>),
}

/// Maximum number of predicates whose segments are read one by one.
const SEGMENTS_MAX: usize = 1024;

/// The segments whose keys are selected.
pub(crate) struct Segments<'s> {
    all: Vec<&'s dyn Segment>,
    keys: u64,
    entries: u64,
    /// Whether the set of keys is exact. Never for all predicates: later versions may add predicates while
    /// the plan is in use.
    exact: bool,
}

impl<'s> Segments<'s> {
    pub(crate) fn one(segment: &'s dyn Segment) -> Self {
        let SegmentStatistics { keys, entries, exact, .. } = *segment.statistics();
        Self { all: vec![segment], keys, entries, exact }
    }

    /// The object-to-subject segments of all predicates; `None`: more than [`SEGMENTS_MAX`].
    pub(crate) fn objects_of_all(snapshot: &'s dyn Snapshot, control: &Control<'_>) -> Result<Option<Self>> {
        let predicates = snapshot.predicates();
        if predicates.len() > SEGMENTS_MAX {
            return Ok(None);
        }
        let mut found = Self { all: Vec::with_capacity(predicates.len()), keys: 0, entries: 0, exact: false };
        for &(predicate, _) in predicates {
            control.work(1)?;
            if let Some(segment) = snapshot.segment(predicate, Direction::In)? {
                let statistics = segment.statistics();
                found.keys = found.keys.saturating_add(statistics.keys);
                found.entries = found.entries.saturating_add(statistics.entries);
                found.all.push(segment);
            }
        }
        Ok(Some(found))
    }

    fn keys_below(&self, id: Id) -> Result<u64> {
        self.all.iter().try_fold(0_u64, |sum, segment| Ok(sum.saturating_add(segment.keys_below(id)?)))
    }
}

/// Whether a condition on the variable is sargable.
pub(crate) fn is_sought(variable: Variable, filters: &[Conjunct]) -> bool {
    filters.iter().any(|filter| sargable_set_of(&filter.expression).is_some_and(|(of, _)| of == variable))
}

/// The keys `variable` of some segments that `filters` leave; `None` if no filter is selective. Refines the
/// selectivity estimates of the filters used.
pub(crate) fn seek(
    variable: Variable,
    segments: &Segments<'_>,
    snapshot: &dyn Snapshot,
    filters: &mut [Conjunct],
    control: &Control<'_>,
) -> Result<Option<Seek>> {
    let mut sargable: Option<SargableSet> = None;
    let mut used = Vec::new();
    for (at, filter) in filters.iter().enumerate() {
        control.work(1)?;
        let Some((_, one)) = sargable_set_of(&filter.expression).filter(|(of, _)| *of == variable) else {
            continue;
        };
        sargable = match sargable {
            None => Some(one),
            Some(before) => match both(&before, one) {
                Some(both) => Some(both),
                None => {
                    sargable = Some(before);
                    continue;
                }
            },
        };
        used.push(at);
    }
    let Some(sargable) = sargable else { return Ok(None) };
    let default: f64 = used.iter().map(|at| filters[*at].selectivity).product();
    let mut found = seek_of(&sargable, default, segments, snapshot, control)?;
    found.test = used.first().map_or(0.0, |at| filters[*at].cost);
    for (position, at) in used.into_iter().enumerate() {
        filters[at].selectivity = if position == 0 { found.fraction } else { 1.0 };
    }
    Ok(Some(found))
}

/// Intersection of two conditions; `None` if they apply to values of different kinds.
fn both(a: &SargableSet, b: SargableSet) -> Option<SargableSet> {
    Some(match (a, b) {
        (
            SargableSet::Text { from, to, any_kind },
            SargableSet::Text { from: other_from, to: other_to, any_kind: other_kind },
        ) => SargableSet::Text {
            from: from.clone().max(other_from),
            to: match (to.clone(), other_to) {
                (Some(a), Some(b)) => Some(a.min(b)),
                (a, b) => a.or(b),
            },
            any_kind: *any_kind && other_kind,
        },
        (SargableSet::Number { low, high }, SargableSet::Number { low: other_low, high: other_high }) => {
            SargableSet::Number { low: low.max(other_low), high: high.min(other_high) }
        }
        (
            SargableSet::Time { tag, low, high },
            SargableSet::Time { tag: other, low: other_low, high: other_high },
        ) if *tag == other => {
            SargableSet::Time { tag: other, low: (*low).max(other_low), high: (*high).min(other_high) }
        }
        _ => return None,
    })
}

/// The variable of a sargable condition, and its allowed values.
fn sargable_set_of(condition: &Expression) -> Option<(Variable, SargableSet)> {
    match condition {
        Expression::Call(Function::StrStarts, arguments) => match arguments.as_slice() {
            [subject, Expression::Constant(Term::Literal(prefix))] => {
                let (variable, any_kind) = text_of(subject)?;
                Some((variable, with_prefix(prefix.value(), any_kind)))
            }
            _ => None,
        },
        Expression::Call(Function::TextMatches, arguments) => match arguments.as_slice() {
            [Expression::Variable(variable), Expression::Constant(Term::Literal(search))] => {
                Some((*variable, SargableSet::Found(TextSearch::parse(search.value()).ok()?)))
            }
            _ => None,
        },
        Expression::Call(Function::Regex, arguments) => {
            let (subject, pattern) = match arguments.as_slice() {
                [subject, Expression::Constant(Term::Literal(pattern))] => (subject, pattern),
                [
                    subject,
                    Expression::Constant(Term::Literal(pattern)),
                    Expression::Constant(Term::Literal(flags)),
                ] if flags.value().chars().all(|flag| flag == 's') => (subject, pattern),
                _ => return None,
            };
            let (variable, any_kind) = text_of(subject)?;
            Some((variable, with_prefix(&regex_prefix(pattern.value())?, any_kind)))
        }
        Expression::Compare(comparator, a, b) => match (&**a, &**b) {
            (subject, Expression::Constant(Term::Literal(bound))) => compared(subject, *comparator, bound),
            (Expression::Constant(Term::Literal(bound)), subject) => {
                compared(subject, comparator.flipped(), bound)
            }
            _ => None,
        },
        Expression::Equal(a, b) => match (&**a, &**b) {
            (subject, Expression::Constant(Term::Literal(value)))
            | (Expression::Constant(Term::Literal(value)), subject) => {
                let (variable, from) = compared(subject, Comparator::GreaterOrEqual, value)?;
                let (_, to) = compared(subject, Comparator::LessOrEqual, value)?;
                Some((variable, both(&from, to)?))
            }
            _ => None,
        },
        Expression::In(..) => {
            let (variable, terms) = one_of(condition)?;
            Some((variable, SargableSet::OneOf(terms.into_iter().cloned().collect())))
        }
        _ => None,
    }
}

/// The variable whose text the expression is, and whether it may be a term of any kind.
fn text_of(expression: &Expression) -> Option<(Variable, bool)> {
    match expression {
        Expression::Variable(variable) => Some((*variable, false)),
        Expression::Call(Function::Str, arguments) => match arguments.as_slice() {
            [Expression::Variable(variable)] => Some((*variable, true)),
            _ => None,
        },
        _ => None,
    }
}

fn with_prefix(prefix: &str, any_kind: bool) -> SargableSet {
    let mut end = prefix.as_bytes().to_vec();
    // The least byte string above all with this prefix; no byte of UTF-8 is 255.
    let to = end.last_mut().map(|last| *last += 1).map(|()| end);
    SargableSet::Text { from: prefix.as_bytes().to_vec(), to, any_kind }
}

/// The literal prefix of every text that `pattern` matches; `None` if there is none.
fn regex_prefix(pattern: &str) -> Option<String> {
    let rest = pattern.strip_prefix('^')?;
    if pattern.contains('|') {
        return None;
    }
    let plain = rest.find(|c: char| r"\.+*?()[]{}^$".contains(c)).unwrap_or(rest.len());
    let mut prefix = rest[..plain].to_owned();
    // The quantifier may match the last character zero times.
    if rest[plain..].starts_with(['*', '?', '{']) {
        prefix.pop();
    }
    (!prefix.is_empty()).then_some(prefix)
}

fn compared(
    subject: &Expression,
    comparator: Comparator,
    bound: &Literal,
) -> Option<(Variable, SargableSet)> {
    let (variable, any_kind) = text_of(subject)?;
    let below = matches!(comparator, Comparator::Less | Comparator::LessOrEqual);
    if bound.language().is_some() {
        return None;
    }
    if any_kind || bound.datatype() == oxrdf::vocab::xsd::STRING {
        if bound.datatype() != oxrdf::vocab::xsd::STRING {
            return None;
        }
        let mut text = bound.value().as_bytes().to_vec();
        let sargable = if below {
            // The immediate successor of a text is the text with a zero byte appended.
            text.push(0);
            SargableSet::Text { from: Vec::new(), to: Some(text), any_kind }
        } else {
            SargableSet::Text { from: text, to: None, any_kind }
        };
        return Some((variable, sargable));
    }
    let number = |value: f64| {
        // The conversion to double may round either side.
        let exact = value.fract() == 0.0 && value.abs() < f64::from(1_u32 << 31);
        let (low, high) = if exact { (value, value) } else { (value.next_down(), value.next_up()) };
        let (low, high) = if below { (f64::NEG_INFINITY, high) } else { (low, f64::INFINITY) };
        (!value.is_nan()).then_some(SargableSet::Number { low, high })
    };
    let time = |tag, value| {
        let (low, high) = if below { (i64::MIN, value) } else { (value, i64::MAX) };
        Some(SargableSet::Time { tag, low, high })
    };
    let inside = Inline::from_id(inline_id(bound.value(), bound.datatype().as_str())?)?;
    let sargable = match inside {
        #[expect(clippy::cast_precision_loss, reason = "bounds are widened where this rounds")]
        Inline::Integer(value) | Inline::Long(value) => number(value as f64),
        Inline::Int(value) => number(f64::from(value)),
        #[expect(clippy::cast_precision_loss, reason = "bounds are widened where this rounds")]
        Inline::Decimal { mantissa, scale } => {
            let value = mantissa as f64 / 10_f64.powi(i32::from(scale));
            // Division rounds once more, so widening by one step is not enough.
            let slack = value.abs() * 1e-14;
            if below {
                Some(SargableSet::Number { low: f64::NEG_INFINITY, high: value + slack })
            } else {
                Some(SargableSet::Number { low: value - slack, high: f64::INFINITY })
            }
        }
        Inline::Double(value) => number(value),
        Inline::DateTime(ms) => time(Tag::DateTime, ms),
        Inline::Date(days) => time(Tag::Date, days),
        Inline::ShortString { .. } | Inline::Boolean(_) => None,
    };
    Some((variable, sargable?))
}

/// Builder of the selected key ranges.
struct KeyRangeBuilder<'s, 'c> {
    segments: &'s Segments<'s>,
    snapshot: &'s dyn Snapshot,
    control: &'s Control<'c>,
    /// Ranges of ids, both ends included.
    ranges: Vec<(Id, Id)>,
    /// Number of keys that certainly pass, by their order.
    sure: u64,
    /// Number of keys that may pass.
    unsure: u64,
    /// Number of keys in `ranges`.
    count: u64,
    /// See [`CandidateKeys`].
    literals: Range<u64>,
    string_range: Option<StringRange>,
    search: Option<TextSearch>,
    /// Number of literals found by `string_range` or `search` outside of `literals`.
    later: u64,
}

/// The range of all ids with a tag.
fn whole(tag: Tag) -> (Id, Id) {
    (Id::new(tag, 0), Id::new(tag, Id::PAYLOAD_MAX))
}

impl KeyRangeBuilder<'_, '_> {
    /// Number of keys between two ids, both included.
    fn between(&self, (first, last): (Id, Id)) -> Result<u64> {
        let start = self.segments.keys_below(first)?;
        let end = match last.bits().checked_add(1) {
            Some(next) => self.segments.keys_below(Id::from_bits(next))?,
            None => self.segments.keys,
        };
        Ok(end.saturating_sub(start))
    }

    fn of_tag(&self, tag: Tag) -> Result<u64> {
        self.between(whole(tag))
    }

    /// Adds a range of ids unless it is certainly empty; returns its number of keys.
    fn add(&mut self, range: (Id, Id)) -> Result<u64> {
        let count = self.between(range)?;
        if range.0 <= range.1 && (count > 0 || !self.segments.exact) {
            self.ranges.push(range);
        }
        self.count += count;
        Ok(count)
    }

    fn add_tag(&mut self, tag: Tag) -> Result<()> {
        self.unsure += self.add(whole(tag))?;
        Ok(())
    }

    fn add_bounds(&mut self, bounds: Option<(Id, Id)>) -> Result<()> {
        if let Some(range) = bounds {
            self.sure += self.add(range)?;
        }
        Ok(())
    }

    /// Adds the matches of a full-text search.
    fn add_found(&mut self, wanted: &TextSearch) -> Result<()> {
        let control = self.control;
        let stored = self.of_tag(Tag::Literal)?;
        match self.snapshot.search_count(wanted, &mut |ids| control.work(ids))? {
            // A hit in another predicate costs a key look-up; scanning all keys instead tests their words.
            Some(count) if count <= stored.saturating_mul(2) || stored == 0 => {
                self.sure += count.min(stored);
                self.later = count;
                self.search = Some(wanted.clone());
            }
            _ => self.add_tag(Tag::Literal)?,
        }
        if wanted.may_find(SHORT_BYTES) {
            self.add_tag(Tag::ShortString)?;
        }
        Ok(())
    }

    /// Adds the strings from `from` up to `to`.
    fn add_strings(&mut self, from: &[u8], to: Option<&[u8]>) -> Result<()> {
        let stored = self.of_tag(Tag::Literal)?;
        let in_order = match stored {
            0 if self.segments.exact => Some((0..0, 0)),
            _ => match self.snapshot.literal_range(from, to)? {
                Some(range) => Some((range, self.snapshot.unordered_literal_count(from, to)?)),
                None => None,
            },
        };
        match in_order {
            // A literal of another predicate costs a key look-up; scanning all keys instead reads texts out
            // of range.
            Some((range, count)) if range.end - range.start + count <= stored.saturating_mul(2) => {
                self.sure += (range.end - range.start + count).min(stored);
                (self.literals, self.later) = (range, count);
                self.string_range = Some(StringRange { from: from.to_vec(), to: to.map(<[u8]>::to_vec) });
            }
            _ => self.add_tag(Tag::Literal)?,
        }
        let first = short_string_bound(from);
        let end = match to {
            Some(to) => short_string_bound(to),
            None => Id::new(Tag::ShortString, Id::PAYLOAD_MAX),
        };
        // The end is exclusive; if it is the least id of its tag, the range is empty.
        self.add_bounds(Some((first, Id::from_bits(end.bits() - 1))))
    }

    /// Adds terms other than strings whose texts may be in the range: texts of vertices and values have no
    /// order by id.
    fn add_other_texts(&mut self, from: &[u8], to: Option<&[u8]>) -> Result<()> {
        let tags = [
            Tag::Vertex,
            Tag::Integer,
            Tag::Decimal,
            Tag::Double,
            Tag::Boolean,
            Tag::DateTime,
            Tag::Date,
            Tag::Int,
            Tag::Long,
        ];
        tags.into_iter().try_for_each(|tag| self.add_tag(tag))?;
        let edges = EDGE_NAMESPACE.as_bytes();
        let shared = edges.len().min(from.len());
        if edges[..shared] >= from[..shared] && to.is_none_or(|to| edges < to) {
            self.add_tag(Tag::Edge)?;
        }
        Ok(())
    }

    /// Adds the numbers of a range, both ends included.
    fn add_numbers(&mut self, low: f64, high: f64) -> Result<()> {
        #[expect(clippy::cast_possible_truncation, reason = "saturates, and ids hold less anyway")]
        let integers = (low.ceil() as i64, high.floor() as i64);
        for tag in [Tag::Integer, Tag::Int, Tag::Long] {
            self.add_bounds(integer_bounds(tag, integers.0, integers.1))?;
        }
        self.add_bounds(double_bounds(low, high))?;
        self.add_tag(Tag::Decimal)?;
        self.add_tag(Tag::Literal)
    }

    fn add_terms(&mut self, terms: &[Term]) -> Result<()> {
        self.control.grow((terms.len() * (size_of::<Term>() + size_of::<(Id, Id)>())) as u64)?;
        for term in terms {
            // Dictionary look-ups and binary searches.
            self.control.work(16)?;
            self.add_bounds(self.snapshot.lookup(term.as_ref())?.map(|id| (id, id)))?;
        }
        Ok(())
    }

    /// The seek. `default`: fraction of uncertain values that passes.
    fn finish(self, default: f64) -> Seek {
        let Self { segments, mut ranges, sure, unsure, count, literals, string_range, search, later, .. } =
            self;
        ranges.sort_unstable();
        ranges.dedup();
        let listed = (literals.end - literals.start).saturating_add(later);
        let lookups = count as f64 + listed as f64 * segments.all.len() as f64;
        let count = count.saturating_add(listed);
        let candidate_count = count as f64;
        let passing = sure as f64 + unsure as f64 * default;
        let fraction = (passing / segments.keys.max(1) as f64).clamp(1e-9, 1.0);
        let candidates = CandidateKeys { keys: ranges, literals, string_range, search, count };
        let keys = segments.keys as f64;
        let degree = segments.entries as f64 / keys.max(1.0);
        Seek { candidates, candidate_count, fraction, keys, degree, lookups, test: 0.0 }
    }
}

/// Selects the keys that `sargable` may contain. `default`: fraction of values that passes, if unknown.
fn seek_of(
    sargable: &SargableSet,
    default: f64,
    segments: &Segments<'_>,
    snapshot: &dyn Snapshot,
    control: &Control<'_>,
) -> Result<Seek> {
    let mut chosen = KeyRangeBuilder {
        segments,
        snapshot,
        control,
        ranges: Vec::new(),
        sure: 0,
        unsure: 0,
        count: 0,
        literals: 0..0,
        string_range: None,
        search: None,
        later: 0,
    };
    match sargable {
        SargableSet::Found(wanted) => chosen.add_found(wanted)?,
        SargableSet::Text { from, to, any_kind } => {
            chosen.add_strings(from, to.as_deref())?;
            if *any_kind {
                chosen.add_other_texts(from, to.as_deref())?;
            }
        }
        SargableSet::Number { low, high } => chosen.add_numbers(*low, *high)?,
        SargableSet::OneOf(terms) => chosen.add_terms(terms)?,
        SargableSet::Time { tag, low, high } => {
            chosen.add_bounds(integer_bounds(*tag, *low, *high))?;
            chosen.add_tag(Tag::Literal)?;
        }
    }
    Ok(chosen.finish(default))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_of_patterns() {
        let cases = [
            ("^abc", Some("abc")),
            ("^abc$", Some("abc")),
            ("^abc*", Some("ab")),
            ("^abc?d", Some("ab")),
            ("^abc{0,1}", Some("ab")),
            ("^abc+", Some("abc")),
            ("^é日*", Some("é")),
            ("^a.c", Some("a")),
            ("^a\\.c", Some("a")),
            ("^ab|cd", None),
            ("^(ab)", None),
            ("^a*", None),
            ("^", None),
            ("abc", None),
        ];
        for (pattern, prefix) in cases {
            assert_eq!(regex_prefix(pattern).as_deref(), prefix, "{pattern}");
        }
    }
}
