//! `.schema`: the classes and predicates of a database, with their numbers.

use crate::line_editor::short;
use crate::output::{Outcome, count};
use crate::table::Table;
use oxrdf::Term;
use std::cmp::Reverse;
use std::io::Write;
use vervet::{Database, Direction, Id};
use vervet_snapshot::{EntryFilter, GraphFilter};

/// The maximum number of classes and of predicates listed.
const LISTED_MAX: usize = 1000;

/// The classes and the predicates of a database, most frequent first.
pub(crate) struct Schema {
    /// Names, and numbers of vertices.
    pub classes: Vec<(Term, u64)>,
    /// Names, and numbers of statements.
    pub predicates: Vec<(Term, u64)>,
}

impl Schema {
    /// # Errors
    /// Damaged data.
    pub(crate) fn read(database: &Database) -> vervet::Result<Self> {
        let snapshot = database.snapshot();
        let view = snapshot.as_snapshot();
        let mut scratch = String::new();
        let mut term = |id: Id| -> vervet::Result<Term> {
            let mut term = None;
            view.read_term(id, &mut scratch, &mut |parts| term = Some(parts.to_term()))?;
            term.ok_or_else(|| vervet::Error::internal("a name has no term"))
        };
        let mut schema = Self { classes: Vec::new(), predicates: Vec::new() };
        if let Some(types) = view.type_predicate()
            && let Some(segment) = view.segment(types, Direction::In)?
        {
            let (mut ids, mut degrees) = (Vec::new(), Vec::new());
            segment.keys(Id::UNBOUND, LISTED_MAX, &mut ids)?;
            let anywhere = EntryFilter { graph: GraphFilter::Any, parallel: false };
            segment.degrees(&ids, anywhere, &mut degrees)?;
            for (id, degree) in ids.iter().zip(&degrees) {
                if *degree > 0 {
                    schema.classes.push((term(*id)?, *degree));
                }
            }
        }
        for (id, statements) in view.predicates().iter().take(LISTED_MAX) {
            schema.predicates.push((term(*id)?, *statements));
        }
        for list in [&mut schema.classes, &mut schema.predicates] {
            list.sort_by_cached_key(|(term, number)| (Reverse(*number), name(term)));
        }
        Ok(schema)
    }
}

/// A term with a well-known prefix, if it has one.
pub(crate) fn name(term: &Term) -> String {
    short(&term.to_string())
}

/// Writes the classes with their vertices and the predicates with their statements, most frequent first.
pub(crate) fn write(database: &Database, out: &mut dyn Write) -> Outcome {
    let schema = Schema::read(database)?;
    let mut is_first = true;
    for (headers, list) in
        [(["class", ">vertices"], schema.classes), (["predicate", ">statements"], schema.predicates)]
    {
        if list.is_empty() {
            continue;
        }
        if !std::mem::take(&mut is_first) {
            writeln!(out)?;
        }
        let mut table = Table::new(&headers);
        list.into_iter().for_each(|(term, number)| table.row([name(&term), count(number)]));
        table.write("", out)?;
    }
    Ok(())
}
