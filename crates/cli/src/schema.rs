//! `.schema`: the classes and predicates of a database, with their numbers.

use crate::line_editor::short;
use crate::output::{Outcome, count};
use crate::table::Table;
use std::io::Write;
use vervet::{Database, Direction, Id};
use vervet_snapshot::{EntryFilter, GraphFilter};

/// The maximum number of classes and of predicates listed.
const LISTED_MAX: usize = 1000;

/// Writes the classes with their vertices and the predicates with their statements, most frequent first.
pub(crate) fn write(database: &Database, out: &mut dyn Write) -> Outcome {
    let snapshot = database.snapshot();
    let view = snapshot.as_snapshot();
    let mut scratch = String::new();
    let mut name = |id: Id| -> vervet::Result<String> {
        let mut name = String::new();
        view.read_term(id, &mut scratch, &mut |parts| name = short(&parts.to_term().to_string()))?;
        Ok(name)
    };
    let mut classes: Vec<(String, u64)> = Vec::new();
    if let Some(types) = view.type_predicate()
        && let Some(segment) = view.segment(types, Direction::In)?
    {
        let (mut ids, mut degrees) = (Vec::new(), Vec::new());
        segment.keys(Id::UNBOUND, LISTED_MAX, &mut ids)?;
        let anywhere = EntryFilter { graph: GraphFilter::Any, parallel: false };
        segment.degrees(&ids, anywhere, &mut degrees)?;
        for (id, degree) in ids.iter().zip(&degrees) {
            if *degree > 0 {
                classes.push((name(*id)?, *degree));
            }
        }
    }
    let mut predicates: Vec<(String, u64)> = Vec::new();
    for (id, statements) in view.predicates().iter().take(LISTED_MAX) {
        predicates.push((name(*id)?, *statements));
    }
    let mut is_first = true;
    for (headers, mut list) in [(["class", ">vertices"], classes), (["predicate", ">statements"], predicates)]
    {
        if list.is_empty() {
            continue;
        }
        if !std::mem::take(&mut is_first) {
            writeln!(out)?;
        }
        list.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        let mut table = Table::new(&headers);
        list.into_iter().for_each(|(name, number)| table.row([name, count(number)]));
        table.write("", out)?;
    }
    Ok(())
}
