//! `Schema`: the content of files as a load would interpret it, from names, headers and values, for display
//! and as a mapping file.

use crate::dialect::Dialect;
use crate::header::{Column, Role, Table};
use crate::options::LoadOptions;
use crate::property::{EDGE_LABEL, VERTEX_LABEL};
use crate::source::{Format, Source};
use crate::table::{Interpretation, interpret};
use crate::value::Type;
use foldhash::HashMap as SeededMap;
use std::fmt::{self, Display, Formatter, Write};
use vervet_model::Result;

/// The content of the files of a load. [`Display`] prints it as tables.
#[derive(Clone, Debug)]
pub struct Schema {
    files: Vec<FileSchema>,
}

#[derive(Clone, Debug)]
struct FileSchema {
    name: String,
    format: Format,
    /// The table of a tabular file.
    table: Option<Interpretation>,
}

/// Interprets the files of a load without loading them. Tables are read once to infer types that their
/// headers lack. If a load could not interpret a header, the schema contains a default and the reason.
///
/// # Errors
/// As for [`load`](crate::load), for names and headers.
pub fn schema(sources: Vec<Source>, options: &LoadOptions<'_>) -> Result<Schema> {
    let mut sources = crate::folder::expand(sources, options.format.is_some(), &mut Vec::new())?;
    crate::check_mapping(&sources, options)?;
    let mut known = SeededMap::default();
    let mut files = Vec::with_capacity(sources.len());
    for source in &mut sources {
        let format = crate::format(source, options)?;
        let table = match format {
            Format::Csv => {
                Some(interpret(source, options, &mut known, true)?).filter(|table| table.edges.is_none())
            }
            #[cfg(feature = "parquet")]
            Format::Parquet => Some(crate::parquet::interpret(source, options)?),
            #[cfg(not(feature = "parquet"))]
            Format::Parquet => return Err(crate::without_parquet(source)),
            _ => None,
        };
        files.push(FileSchema { name: source.name().to_owned(), format, table });
    }
    Ok(Schema { files })
}

impl Schema {
    /// The schema as a mapping file, to be edited.
    #[must_use]
    pub fn to_mapping(&self) -> String {
        let mut text =
            String::from("# What the columns of each file are; docs/loading.md has all entries.\n");
        for file in &self.files {
            let name = file.name.rsplit(['/', '\\']).next().unwrap_or(&file.name);
            match &file.table {
                Some(understood) => entry(name, understood, &mut text),
                None => {
                    let _ = writeln!(text, "\n# {name}: {}", described(file.format));
                }
            }
        }
        text
    }
}

/// The description of a self-describing file.
fn described(format: Format) -> &'static str {
    match format {
        Format::GraphMl => "a property graph in GraphML, which declares its keys",
        Format::GraphSon | Format::GraphSon2 => {
            "a property graph in GraphSON, whose values declare their types"
        }
        Format::Csv => "a property graph in CSV of APOC, whose rows are vertices or edges",
        Format::ApocJson => "a property graph in JSON of APOC, whose values declare their types",
        _ => "statements of RDF",
    }
}

fn type_name(column: &Column) -> String {
    let kind = column.kind.unwrap_or(Type::String).name();
    format!("{kind}{}", if column.is_array { "[]" } else { "" })
}

fn label(table: &Table) -> &str {
    let default = if table.is_edges { EDGE_LABEL } else { VERTEX_LABEL };
    table.label.as_deref().unwrap_or(default)
}

impl Display for Schema {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for file in &self.files {
            let Some(Interpretation { table, dialect, notes, guessed, .. }) = &file.table else {
                writeln!(f, "{}: {}", file.name, described(file.format))?;
                continue;
            };
            if let Some(error) = guessed {
                writeln!(f, "{}: a load would fail: {error}; this is a guess", file.name)?;
            }
            let kind = if table.is_edges { "edges" } else { "vertices" };
            write!(f, "{}: {kind}, label ", file.name)?;
            match (table.columns.iter().any(|column| column.role == Role::Label), label(table)) {
                (true, default) => write!(f, "from a column, else {default}")?,
                (false, "") => write!(f, "none (additional values for vertices of other files)")?,
                (false, label) => write!(f, "{label}")?,
            }
            write!(f, "; {} columns", table.columns.len())?;
            match dialect.separator {
                Some(separator) => writeln!(f, " with {:?} between them", char::from(separator))?,
                None => writeln!(f)?,
            }
            let rows: Vec<[String; 3]> = table.columns.iter().map(row).collect();
            let head = ["column", "is", "type"].map(str::to_owned);
            let width = |at: usize| {
                rows.iter().chain([&head]).map(|row| row[at].chars().count()).max().unwrap_or_default()
            };
            let widths = [width(0), width(1)];
            for [name, is, kind] in std::iter::once(&head).chain(&rows) {
                let line = format!("  {name:0$}  {is:1$}  {kind}", widths[0], widths[1]);
                writeln!(f, "{}", line.trim_end())?;
            }
            if table.row_ids.is_some() {
                writeln!(f, "  the id is the number of the row")?;
            }
            for note in notes {
                writeln!(f, "  note: {note}")?;
            }
        }
        Ok(())
    }
}

fn row(column: &Column) -> [String; 3] {
    let of = |what: &str, space: &str| match space {
        "" => what.to_owned(),
        space => format!("{what} of {space}"),
    };
    let mut is = match &column.role {
        Role::Id(space) => of("id", space),
        Role::Label => "label".to_owned(),
        Role::Source(space) => of("source", space),
        Role::Target(space) => of("target", space),
        Role::Property => String::new(),
        Role::Ignored => "nothing".to_owned(),
        Role::Edge { label, space, is_reversed } => {
            let end = of(if *is_reversed { "from an id" } else { "to an id" }, space);
            format!("edge {label} {end}")
        }
    };
    if !column.key.is_empty() {
        let and = if is.is_empty() { "" } else { ", " };
        let _ = write!(is, "{and}property {}", column.key);
    }
    let kind = if column.key.is_empty() { String::new() } else { type_name(column) };
    [column.name.clone(), is, kind]
}

fn entry(name: &str, Interpretation { table, dialect, guessed, .. }: &Interpretation, text: &mut String) {
    let default = Dialect::default();
    let kind = if table.is_edges { "edges" } else { "vertices" };
    text.push('\n');
    if let Some(error) = guessed {
        let _ = writeln!(text, "# A guess, since {error}: change what is wrong.");
    }
    let _ = writeln!(text, "[[file]]\nname = {}\n{kind} = {}", quoted(name), quoted(label(table)));
    if let Some(space) = &table.row_ids {
        let _ = writeln!(text, "space = {}\nrow_ids = true", quoted(space));
    }
    if let Some(separator) = dialect.separator {
        let _ = writeln!(text, "separator = {}", quoted(&char::from(separator).to_string()));
    }
    if dialect.quote != default.quote {
        let quote = dialect.quote.map(|quote| char::from(quote).to_string()).unwrap_or_default();
        let _ = writeln!(text, "quote = {}", quoted(&quote));
    }
    if !dialect.has_header {
        text.push_str("header = false\n");
    }
    if dialect.nulls != default.nulls {
        let nulls: Vec<String> = dialect.nulls.iter().map(|null| quoted(null)).collect();
        let _ = writeln!(text, "null = [{}]", nulls.join(", "));
    }
    if dialect.list != default.list {
        let list = [dialect.list.open, Some(dialect.list.separator), dialect.list.close];
        let _ = writeln!(text, "list = {}", quoted(&list.into_iter().flatten().collect::<String>()));
    }
    for (word, pattern) in [("date", &dialect.date), ("datetime", &dialect.datetime)] {
        if let Some(pattern) = pattern {
            let _ = writeln!(text, "{word} = {}", quoted(pattern));
        }
    }
    text.push_str("columns = [\n");
    for column in &table.columns {
        let _ = write!(text, "  {{ name = {}", quoted(&column.name));
        let (is, space) = match &column.role {
            Role::Id(space) => ("id", space.as_str()),
            Role::Label => ("label", ""),
            Role::Source(space) => ("from", space.as_str()),
            Role::Target(space) => ("to", space.as_str()),
            Role::Ignored => ("nothing", ""),
            Role::Property | Role::Edge { .. } => ("", ""),
        };
        for (word, value) in [("is", is), ("space", space)] {
            if !value.is_empty() {
                let _ = write!(text, ", {word} = {}", quoted(value));
            }
        }
        if let Role::Edge { label, space, is_reversed } = &column.role {
            let _ = write!(text, ", edge = {}, to = {}", quoted(label), quoted(space));
            text.push_str(if *is_reversed { ", reverse = true" } else { "" });
            if column.is_array {
                text.push_str(", type = \"string[]\"");
            }
        }
        if !column.key.is_empty() {
            let _ = write!(text, ", type = {}", quoted(&type_name(column)));
            if column.role != Role::Property || column.key != column.name {
                let _ = write!(text, ", property = {}", quoted(&column.key));
            }
        }
        text.push_str(" },\n");
    }
    text.push_str("]\n");
}

/// A basic string of TOML.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for character in text.chars() {
        match character {
            '"' | '\\' => {
                quoted.push('\\');
                quoted.push(character);
            }
            character if character.is_control() => {
                let _ = write!(quoted, "\\u{:04X}", u32::from(character));
            }
            character => quoted.push(character),
        }
    }
    quoted.push('"');
    quoted
}
