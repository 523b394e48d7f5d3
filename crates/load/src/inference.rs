//! Type inference: the narrowest type that holds all values of a column without a type.
//!
//! A column becomes text because of one value that is neither a number nor a boolean. If such values are
//! fewer than the others, a note names the first of them.
//! # Cost
//! One pass over the file.

use crate::apoc;
use crate::csv_rows::{CsvRows, failure, row_error};
use crate::dialect::Dialect;
use crate::header::Column;
use crate::options::LoadOptions;
use crate::value::Type;
use csv::StringRecord;
use std::sync::atomic::Ordering;
use vervet_model::{Error, ErrorKind, Result};

/// Rows between two checks of cancellation.
const ROWS_BETWEEN_LOOKS: u64 = 1 << 12;
/// Maximum length of a value in a note.
const NOTED_CHARACTERS_MAX: usize = 40;

/// Kinds of values; a column with several of them holds texts.
const CLASSES: usize = 3;

/// The values of a column so far, by class: texts, booleans, numbers.
#[derive(Default)]
struct Values {
    classes: [Class; CLASSES],
    /// Lists in JSON, and the narrowest type of their items.
    lists: u64,
    items: Option<Type>,
}

#[derive(Default)]
struct Class {
    count: u64,
    /// The narrowest type.
    kind: Option<Type>,
    /// Line and start of the first value.
    first: Option<(u64, String)>,
}

impl Values {
    fn add(&mut self, cell: &str, line: u64) {
        let found = Type::infer(cell.trim());
        let class = &mut self.classes[match found {
            Type::String => 0,
            Type::Boolean => 1,
            _ => 2,
        }];
        class.count += 1;
        class.kind = Some(class.kind.map_or(found, |kind| kind.join(found)));
        if class.first.is_none() {
            class.first = Some((line, cell.chars().take(NOTED_CHARACTERS_MAX).collect()));
        }
    }

    /// Counts a cell that is a list in JSON.
    fn add_list(&mut self, cell: &str) -> bool {
        let items = Some(cell).filter(|cell| cell.starts_with('[')).and_then(apoc::list);
        let Some(items) = items else { return false };
        self.lists += 1;
        self.items = items.into_iter().map(|(kind, _)| kind).chain(self.items).reduce(Type::join);
        true
    }

    /// The narrowest type of all values.
    fn kind(&self) -> Type {
        self.classes.iter().filter_map(|class| class.kind).reduce(Type::join).unwrap_or(Type::String)
    }

    /// The note on a column that holds texts because of the minority of its values.
    fn note(&self, name: &str, column: &Column) -> Option<String> {
        let main = self.classes[1..].iter().max_by_key(|class| class.count)?;
        let others = || self.classes.iter().filter(|class| !std::ptr::eq(*class, main));
        let bad: u64 = others().map(|class| class.count).sum();
        let (line, cell) = others().filter_map(|class| class.first.as_ref()).min_by_key(|(line, _)| *line)?;
        let kind = main.kind.filter(|_| bad < main.count)?.name();
        let (are, first) = if bad == 1 { ("1 value is", "") } else { ("values are", ", first") };
        let are = if bad == 1 { are.to_owned() } else { format!("{bad} {are}") };
        Some(format!(
            "{name}: column {} holds texts, because {are} not of type {kind}{first} {cell:?} in line {line}; the other {} \
             values are; correct the file or leave such cells empty; {}:{kind} in the header makes them errors",
            column.name, main.count, column.key
        ))
    }
}

/// Infers the types of columns; returns notes on columns that hold texts because of few values. Malformed
/// rows are skipped; the second pass reports them.
pub(crate) fn infer(
    columns: &mut [Column],
    rows: &mut CsvRows,
    (name, options): (&str, &LoadOptions<'_>),
    dialect: &Dialect,
) -> Result<Vec<String>> {
    let mut values: Vec<Values> = Vec::new();
    values.resize_with(columns.len(), Values::default);
    let mut record = StringRecord::new();
    for count in 0_u64.. {
        // Relaxed: the flag synchronizes no other memory.
        if count.is_multiple_of(ROWS_BETWEEN_LOOKS)
            && options.cancelled.is_some_and(|cancelled| cancelled.load(Ordering::Relaxed))
        {
            return Err(Error::new(ErrorKind::Cancelled, "the load was cancelled"));
        }
        match rows.read(&mut record) {
            Ok(None) => break,
            Ok(Some(row)) if row.misquoted.is_some() => {}
            Ok(Some(row)) => {
                for ((column, values), cell) in columns.iter().zip(&mut values).zip(&record) {
                    if column.is_untyped()
                        && !dialect.is_null(cell)
                        && !(dialect.has_json_lists && values.add_list(cell))
                    {
                        values.add(cell, row.line);
                    }
                }
            }
            Err((error, line)) if row_error(&error, line).is_some() => {}
            Err((error, line)) => return Err(failure(name, error, line)),
        }
    }
    let mut notes = Vec::new();
    for (column, values) in columns.iter_mut().zip(values) {
        let has_others = values.classes.iter().any(|class| class.count > 0);
        if column.kind.is_none() && values.lists > 0 {
            column.is_array = !has_others;
            let items = values.items.filter(|_| !has_others);
            column.kind = Some(items.unwrap_or(Type::String));
        } else if column.kind.is_none() {
            let kind = values.kind();
            if kind == Type::String && column.is_untyped() {
                notes.extend(values.note(name, column));
            }
            column.kind = Some(kind);
        }
    }
    Ok(notes)
}
