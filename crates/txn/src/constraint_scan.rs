//! Full scan of a graph for constraint violations: when a constraint is added, and after a bulk load.
//!
//! # Cost
//! `required` and `single`: the degrees of the vertices of the class, which are listed (8 bytes each).
//! `unique`: the degrees of all values of the first property, and the vertices of each value that has
//! several.

use crate::constraint::ConstraintKind;
use crate::constraints::{Constraints, Reader, Rule, Violation, select_rows};
use vervet_model::{Direction, Error, ErrorKind, Id, Result, Watch};
use vervet_snapshot::{EntryFilter, Snapshot};

/// Maximum number of violations named in a message.
const NAMED_MAX: usize = 3;
/// Number of keys of one batch.
const CHUNK: usize = 1 << 12;

impl Constraints {
    /// Checks that the whole graph satisfies all rules.
    ///
    /// # Errors
    /// [`ErrorKind::Constraint`] with the first violations of a rule. Damaged data. Errors of `watch`.
    pub(crate) fn check_all(&self, snapshot: &dyn Snapshot, watch: &Watch<'_>) -> Result<()> {
        for rule in self.rules() {
            let violations = violations(rule, self.type_id(), snapshot, watch)?;
            if violations.is_empty() {
                continue;
            }
            let mut texts = Vec::new();
            for violation in violations.iter().take(NAMED_MAX) {
                texts.push(violation.text(rule, snapshot)?);
            }
            if violations.len() > NAMED_MAX {
                texts.push("…".to_owned());
            }
            let message = format!("the constraint {} does not hold: {}", rule.constraint, texts.join("; "));
            return Err(Error::new(ErrorKind::Constraint, message).with_hint("correct these first"));
        }
        Ok(())
    }
}

/// The first violations of a rule, one more than are named.
fn violations(
    rule: &Rule,
    type_id: Id,
    snapshot: &dyn Snapshot,
    watch: &Watch<'_>,
) -> Result<Vec<Violation>> {
    let mut found = Vec::new();
    let (Some(types), Some(property)) = (snapshot.segment(type_id, Direction::In)?, rule.properties.first())
    else {
        return Ok(found);
    };
    if rule.constraint.kind() == ConstraintKind::Unique {
        duplicates(rule, *property, type_id, (snapshot, watch), &mut found)?;
        return Ok(found);
    }
    let mut members = Vec::new();
    types.neighbours(rule.class, EntryFilter::ANY_GRAPH, &mut members)?;
    let required = rule.constraint.kind() == ConstraintKind::Required;
    let Some(segment) = snapshot.segment(*property, Direction::Out)? else {
        if required {
            let all = members.iter().take(NAMED_MAX + 1);
            found.extend(all.map(|vertex| Violation { vertices: vec![*vertex], values: Vec::new() }));
        }
        return Ok(found);
    };
    let mut degrees = Vec::new();
    for members in members.chunks(CHUNK) {
        watch.check()?;
        degrees.clear();
        segment.degrees(members, EntryFilter::ANY_GRAPH, &mut degrees)?;
        for (vertex, degree) in members.iter().zip(&degrees) {
            let mut values = Vec::new();
            if *degree > 1 && !required {
                segment.neighbours(*vertex, EntryFilter::ANY_GRAPH, &mut values)?;
                values.dedup();
                values.truncate(2);
            }
            if values.len() > 1 || required && *degree == 0 {
                found.push(Violation { vertices: vec![*vertex], values });
                if found.len() > NAMED_MAX {
                    return Ok(found);
                }
            }
        }
    }
    Ok(found)
}

/// Vertices of the rule's class with the same values of all its properties, of which `property` is the first.
fn duplicates(
    rule: &Rule,
    property: Id,
    type_id: Id,
    (snapshot, watch): (&dyn Snapshot, &Watch<'_>),
    found: &mut Vec<Violation>,
) -> Result<()> {
    let Some(segment) = snapshot.segment(property, Direction::In)? else { return Ok(()) };
    let mut reader = Reader { snapshot, reads: None, type_id };
    let (mut keys, mut degrees, mut vertices) = (Vec::new(), Vec::new(), Vec::new());
    let mut next = Some(Id::UNBOUND);
    while let Some(from) = next {
        watch.check()?;
        keys.clear();
        degrees.clear();
        next = segment.keys(from, CHUNK, &mut keys)?;
        segment.degrees(&keys, EntryFilter::ANY_GRAPH, &mut degrees)?;
        for (value, _) in keys.iter().zip(&degrees).filter(|(_, degree)| **degree > 1) {
            watch.check()?;
            vertices.clear();
            segment.neighbours(*value, EntryFilter::ANY_GRAPH, &mut vertices)?;
            vertices.dedup();
            let members = select_rows(&vertices, &reader.members(&vertices, rule.class)?);
            // The values of the other properties, with the vertex that has them.
            let mut rows: Vec<(Vec<Id>, Id)> = members.iter().map(|member| (vec![*value], *member)).collect();
            for other in rule.properties.get(1..).unwrap_or_default() {
                let Some(others) = snapshot.segment(*other, Direction::Out)? else { return Ok(()) };
                let mut longer = Vec::with_capacity(rows.len());
                for (values, member) in &rows {
                    let mut more = Vec::new();
                    others.neighbours(*member, EntryFilter::ANY_GRAPH, &mut more)?;
                    more.dedup();
                    longer.extend(more.iter().map(|one| ([values.as_slice(), &[*one]].concat(), *member)));
                }
                rows = longer;
            }
            rows.sort_unstable();
            for pair in rows.windows(2) {
                if let [(values, one), (same, two)] = pair
                    && values == same
                {
                    found.push(Violation { vertices: vec![*one, *two], values: values.clone() });
                    if found.len() > NAMED_MAX {
                        return Ok(());
                    }
                }
            }
        }
    }
    Ok(())
}
