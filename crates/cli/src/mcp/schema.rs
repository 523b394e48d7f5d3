//! The tool `schema`: labels and predicates with their numbers, and an example of each predicate.

use super::cells::short_cell;
use super::excerpt::Excerpt;
use crate::output::{Outcome, count};
use crate::schema::{Schema, name};
use crate::table::Table;
use oxrdf::Term;
use std::io::Write;
use vervet::{Database, QueryOptions};

/// The maximum number of labels and of predicates listed: more would fill the context of a model.
const LISTED_MAX: usize = 200;

/// The maximum length of an example, in characters.
const EXAMPLE_CHARACTERS_MAX: usize = 60;

/// One statement of a predicate, with a class of its subject and of its object.
const EXAMPLE: &str = "SELECT ?from ?value ?to { ?s ?predicate ?value \
                       OPTIONAL { ?s a ?from } OPTIONAL { ?value a ?to } } LIMIT 1";

/// Writes the schema. `options` has the limits of the call.
pub(crate) fn write(database: &Database, options: &QueryOptions, out: &mut Excerpt) -> Outcome {
    let mut schema = Schema::read(database)?;
    let hidden = [&mut schema.classes, &mut schema.predicates].map(|list| {
        let hidden = list.len().saturating_sub(LISTED_MAX);
        list.truncate(LISTED_MAX);
        hidden
    });
    if schema.predicates.is_empty() {
        writeln!(out, "The database is empty.")?;
        return Ok(());
    }
    let mut table = Table::new(&["label or class", ">vertices"]);
    for (class, number) in &schema.classes {
        table.row([name(class), count(*number)]);
    }
    if !schema.classes.is_empty() {
        table.write("", out)?;
        writeln!(out)?;
    }
    let mut table = Table::new(&["predicate", ">statements", "of", "example value", "of"]);
    for (predicate, number) in &schema.predicates {
        let options = options.clone().with_parameter("predicate", predicate.clone());
        let solutions = database.query_with(EXAMPLE, &options)?.into_solutions();
        let mut row = vec![name(predicate), count(*number)];
        for column in ["from", "value", "to"] {
            let first = solutions.as_ref().and_then(|solutions| solutions.rows().next());
            let term = first.map(|row| row.get(column)).transpose()?.flatten();
            row.push(term.as_ref().map_or_else(String::new, example));
        }
        table.row(row);
    }
    table.write("", out)?;
    for (list, hidden) in ["labels or classes", "predicates"].iter().zip(hidden) {
        if hidden > 0 {
            writeln!(out, "and {} more {list}, which are less frequent", count(hidden as u64))?;
        }
    }
    for constraint in database.constraints() {
        writeln!(out, "constraint: {constraint}")?;
    }
    Ok(())
}

fn example(term: &Term) -> String {
    let text = short_cell(&term.to_string());
    match text.char_indices().nth(EXAMPLE_CHARACTERS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}
