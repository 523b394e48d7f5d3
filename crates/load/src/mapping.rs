//! Mapping files: roles of table columns, in addition to or instead of headers. docs/loading.md shows one
//! with all entries.
//!
//! The first entry whose pattern matches the file name describes a table. Unknown names are errors, with
//! line, column and a caret, so that a misspelt word is never ignored.

use crate::dialect::{Dialect, ListForm, is_pattern};
use crate::header::{Column, Role, Table};
use crate::value::{TYPES, Type};
use serde::Deserialize;
use std::fmt::Display;
use std::ops::Range;
use toml::Spanned;
use vervet_model::{Error, ErrorKind, Result};

/// A mapping: entries that describe tables by file name. See the header of this file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mapping {
    files: Vec<FileMapping>,
}

/// An entry of the mapping.
#[derive(Clone, PartialEq, Eq, Debug)]
struct FileMapping {
    pattern: String,
    table: Table,
    dialect: Dialect,
    /// Whether unlisted columns of the header are properties; otherwise they are skipped.
    rest: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MappingDocument {
    #[serde(default)]
    file: Vec<MappingEntry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MappingEntry {
    name: Spanned<String>,
    vertices: Option<Spanned<String>>,
    edges: Option<Spanned<String>>,
    space: Option<Spanned<String>>,
    from: Option<Spanned<String>>,
    to: Option<Spanned<String>>,
    header: Option<bool>,
    row_ids: Option<bool>,
    separator: Option<Spanned<String>>,
    quote: Option<Spanned<String>>,
    null: Option<OneOrMany>,
    list: Option<Spanned<String>>,
    date: Option<Spanned<String>>,
    datetime: Option<Spanned<String>>,
    rest: Option<RestPolicy>,
    #[serde(default)]
    columns: Vec<Spanned<ColumnEntry>>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

#[derive(Deserialize, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum RestPolicy {
    Property,
    Nothing,
}

#[derive(Deserialize, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum MappedRole {
    Id,
    Label,
    From,
    To,
    Property,
    Nothing,
}

/// `"name"`, `"name:type"` or a table.
#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "expected a text such as \"age:int\", or a table with `name` and some of `is`, `type`, `space`, `property`, `edge`, `to`, `reverse`"
)]
enum ColumnEntry {
    Short(String),
    Long(LongColumn),
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct LongColumn {
    name: String,
    is: Option<MappedRole>,
    #[serde(rename = "type")]
    kind: Option<String>,
    space: Option<String>,
    property: Option<String>,
    edge: Option<String>,
    to: Option<String>,
    #[serde(default)]
    reverse: bool,
}

impl Mapping {
    /// Parses a mapping file.
    ///
    /// # Errors
    /// [`ErrorKind::Input`], with line, column and a caret.
    pub fn parse(text: &str) -> Result<Self> {
        let document: MappingDocument = toml::from_str(text).map_err(|error| {
            let message = error.message().lines().next().unwrap_or_default().to_owned();
            match error.span() {
                Some(span) => fault(text, &span, message),
                None => Error::new(ErrorKind::Input, message),
            }
        })?;
        let files = document.file.into_iter().map(|entry| FileMapping::new(entry, text));
        Ok(Self { files: files.collect::<Result<_>>()? })
    }

    /// The pattern of an entry that matches none of these names.
    pub(crate) fn unused(&self, names: &[&str]) -> Option<&str> {
        let is_used = |file: &&FileMapping| !names.iter().any(|name| file.fits(name));
        self.files.iter().find(is_used).map(|file| file.pattern.as_str())
    }

    /// The first entry that matches a file name.
    fn find(&self, name: &str) -> Option<&FileMapping> {
        self.files.iter().find(|file| file.fits(name))
    }

    /// The dialect of the file with this name, if an entry matches.
    pub(crate) fn dialect(&self, name: &str) -> Option<Dialect> {
        self.find(name).map(|file| file.dialect.clone())
    }

    /// The columns of a file, if an entry matches. `fields`: its first row.
    ///
    /// # Errors
    /// A listed column that the header lacks; a wrong number of columns, if there is no header.
    pub(crate) fn table(&self, name: &str, fields: &[&str]) -> Option<Result<Table>> {
        self.find(name).map(|file| file.in_order_of(fields))
    }
}

/// The file name without the directory.
pub(crate) fn base_name(name: &str) -> &str {
    name.rsplit(['/', '\\']).next().unwrap_or(name)
}

impl FileMapping {
    /// Whether the entry matches the file with this name.
    fn fits(&self, name: &str) -> bool {
        let name = base_name(name);
        let bare = [".gz", ".zst"].iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name);
        fits(&self.pattern, name) || fits(&self.pattern, bare)
    }

    fn new(entry: MappingEntry, text: &str) -> Result<Self> {
        let at = |place: &Spanned<String>, message: String| fault(text, &place.span(), message);
        let is_edges = match (&entry.vertices, &entry.edges) {
            (Some(_), None) => false,
            (None, Some(_)) => true,
            _ => {
                let message = "an entry needs either `vertices` or `edges`, with a label".to_owned();
                return Err(at(&entry.name, message));
            }
        };
        let label = entry.vertices.as_ref().or(entry.edges.as_ref()).map(|label| label.get_ref().clone());
        for (word, value, fits) in
            [("space", &entry.space, !is_edges), ("from", &entry.from, is_edges), ("to", &entry.to, is_edges)]
        {
            if let Some(value) = value
                && !fits
            {
                let kind = if is_edges { "edges" } else { "vertices" };
                return Err(at(value, format!("`{word}` has no meaning for {kind}")));
            }
        }
        let mut dialect = Dialect { has_header: entry.header.unwrap_or(true), ..Dialect::default() };
        let byte = |value: &Spanned<String>| match value.get_ref().as_bytes() {
            [byte] if byte.is_ascii() => Ok(*byte),
            _ => Err(at(value, "expected one ASCII character".to_owned())),
        };
        dialect.separator = entry.separator.as_ref().map(byte).transpose()?;
        if let Some(quote) = &entry.quote {
            dialect.quote = if quote.get_ref().is_empty() { None } else { Some(byte(quote)?) };
        }
        match entry.null {
            Some(OneOrMany::One(null)) => dialect.nulls = vec![null],
            Some(OneOrMany::Many(nulls)) => dialect.nulls = nulls,
            None => {}
        }
        if let Some(list) = &entry.list {
            dialect.list = ListForm::from_text(list.get_ref()).ok_or_else(|| {
                at(
                    list,
                    "expected a separator such as \";\", or one between brackets such as \"[,]\"".to_owned(),
                )
            })?;
        }
        for (pattern, place) in [(&entry.date, &mut dialect.date), (&entry.datetime, &mut dialect.datetime)] {
            if let Some(pattern) = pattern {
                if !is_pattern(pattern.get_ref()) {
                    let message = "a pattern has %Y %m %d %H %M %S %f (fraction) %z (zone) %%".to_owned();
                    return Err(at(pattern, message));
                }
                *place = Some(pattern.get_ref().clone());
            }
        }
        let rest = entry.rest != Some(RestPolicy::Nothing);
        let mut columns = Vec::with_capacity(entry.columns.len());
        let spaces = [&entry.space, &entry.from, &entry.to]
            .map(|space| space.as_ref().map(|space| space.get_ref().clone()).unwrap_or_default());
        for column in entry.columns {
            let span = column.span();
            let column = column_of(column.into_inner(), is_edges, &spaces);
            let column = column.map_err(|message| fault(text, &span, message))?;
            columns.push((column, span));
        }
        // By default, the first column is the id, or the first two are the ends.
        let has = |columns: &[(Column, _)], is: fn(&Role) -> bool| {
            columns.iter().any(|(column, _)| is(&column.role))
        };
        let [space, from, to] = spaces;
        let row_ids = entry.row_ids == Some(true) && !is_edges;
        let row_space = row_ids.then(|| space.clone());
        let firsts = if row_ids {
            Vec::new()
        } else if is_edges {
            let ends = has(&columns, |role| matches!(role, Role::Source(_) | Role::Target(_)));
            if ends { Vec::new() } else { vec![Role::Source(from), Role::Target(to)] }
        } else if has(&columns, |role| matches!(role, Role::Id(_))) {
            Vec::new()
        } else {
            vec![Role::Id(space)]
        };
        if !columns.is_empty() {
            for (at, role) in firsts.iter().enumerate() {
                let Some((column, _)) =
                    columns.get_mut(at).filter(|(column, _)| column.role == Role::Property)
                else {
                    let message = "too few columns: vertices need an id, edges need both ends";
                    return Err(fault(text, &entry.name.span(), message.to_owned()));
                };
                column.role = role.clone();
                column.key.clear();
            }
        }
        let table = Table {
            is_edges,
            label,
            columns: columns.iter().map(|(column, _)| column.clone()).collect(),
            firsts: if columns.is_empty() { firsts } else { Vec::new() },
            row_ids: row_space,
        };
        if !columns.is_empty() {
            table.check().map_err(|error| fault(text, &entry.name.span(), error.to_string()))?;
        }
        if columns.is_empty() && !dialect.has_header {
            let message = "a file without a header needs `columns`".to_owned();
            return Err(fault(text, &entry.name.span(), message));
        }
        Ok(Self { pattern: entry.name.into_inner(), table, dialect, rest })
    }

    /// The table with its columns in file order.
    fn in_order_of(&self, fields: &[&str]) -> Result<Table> {
        let bad = |message: String| {
            Err(Error::new(ErrorKind::Input, message).with_hint("change the entry of the mapping file"))
        };
        if !self.dialect.has_header {
            if fields.len() != self.table.columns.len() {
                let listed = self.table.columns.len();
                return bad(format!("the file has {} columns, its mapping {listed}", fields.len()));
            }
            return Ok(self.table.clone());
        }
        let mut listed = self.table.columns.clone();
        let mut columns = Vec::with_capacity(fields.len());
        for (at, &field) in fields.iter().enumerate() {
            let field = field.trim();
            let found = listed.iter().position(|column| column.name == field);
            columns.push(match (found, self.table.firsts.get(at)) {
                (Some(place), _) => listed.remove(place),
                (None, Some(role)) => Column::new(field, role.clone()),
                (None, None) if self.rest => {
                    Column { key: field.to_owned(), ..Column::new(field, Role::Property) }
                }
                (None, None) => Column::new(field, Role::Ignored),
            });
        }
        if let Some(column) = listed.first() {
            return bad(format!("the header has no column {}, which its mapping lists", column.name));
        }
        let table = Table { columns, firsts: Vec::new(), ..self.table.clone() };
        table.check()?;
        // Different columns may be values of one property, but a name must denote one column.
        table.check_names(|one, other| one.name == other.name)?;
        Ok(table)
    }
}

/// The role of a column; `spaces`: of ids, of sources, of targets.
fn column_of(
    entry: ColumnEntry,
    is_edges: bool,
    spaces: &[String; 3],
) -> std::result::Result<Column, String> {
    let entry = match entry {
        ColumnEntry::Long(column) => column,
        ColumnEntry::Short(text) => match text.rsplit_once(':') {
            Some((name, kind)) if !name.is_empty() => {
                LongColumn { name: name.to_owned(), kind: Some(kind.to_owned()), ..LongColumn::default() }
            }
            _ => LongColumn { name: text, ..LongColumn::default() },
        },
    };
    if entry.name.is_empty() {
        return Err("a column needs a name".to_owned());
    }
    let (kind, is_array) = match entry.kind.as_deref() {
        None => (None, false),
        Some(name) => {
            let (name, is_array) = name.strip_suffix("[]").map_or((name, false), |name| (name, true));
            let kind =
                Type::from_name(name).ok_or_else(|| format!("{name} is not a type; types are {TYPES}"))?;
            (Some(kind), is_array)
        }
    };
    let space = |default: &String| entry.space.clone().unwrap_or_else(|| default.clone());
    let [id, from, to] = spaces;
    let only = |is: &str, fits: bool| match fits {
        true => Ok(()),
        false => Err(format!("a column of {} cannot be {is}", if is_edges { "edges" } else { "vertices" })),
    };
    if let Some(label) = entry.edge {
        only("an edge", !is_edges)?;
        if entry.is.is_some() || entry.property.is_some() {
            return Err("a column with `edge` cannot have `is` or `property`".to_owned());
        }
        let role = Role::Edge { label, space: entry.to.unwrap_or_default(), is_reversed: entry.reverse };
        return Ok(Column { is_array, ..Column::new(&entry.name, role) });
    }
    if entry.to.is_some() || entry.reverse {
        return Err("`to` and `reverse` require `edge`".to_owned());
    }
    let role = match entry.is.unwrap_or(MappedRole::Property) {
        MappedRole::Id => Role::Id(space(id)),
        MappedRole::Label => Role::Label,
        MappedRole::From => only("`from`", is_edges).map(|()| Role::Source(space(from)))?,
        MappedRole::To => only("`to`", is_edges).map(|()| Role::Target(space(to)))?,
        MappedRole::Property => Role::Property,
        MappedRole::Nothing => Role::Ignored,
    };
    if entry.space.is_some() && !matches!(role, Role::Id(_) | Role::Source(_) | Role::Target(_)) {
        return Err("`space` requires a column of ids".to_owned());
    }
    let key = match (&role, entry.property) {
        (_, Some(property)) => property,
        (Role::Property, None) => entry.name.clone(),
        _ => String::new(),
    };
    Ok(Column { key, kind, is_array, ..Column::new(&entry.name, role) })
}

/// Whether a name matches a pattern in which `*` is any sequence of characters. The time is at most
/// proportional to the product of their lengths.
fn fits(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| name.strip_prefix(first)) else { return false };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else { return rest.is_empty() };
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

/// An error with its position, in the form of TOML's own errors.
fn fault(text: &str, span: &Range<usize>, message: impl Display) -> Error {
    let start = span.start.min(text.len());
    let before = text.get(..start).unwrap_or(text);
    let number = before.matches('\n').count() + 1;
    let begin = before.rfind('\n').map_or(0, |at| at + 1);
    let line = text[begin..].lines().next().unwrap_or_default();
    let column = before[begin..].chars().count();
    let marked =
        text.get(start..span.end.min(begin + line.len())).map_or(1, |part| part.chars().count().max(1));
    let margin = " ".repeat(number.to_string().len());
    let (blanks, carets) = (" ".repeat(column), "^".repeat(marked));
    Error::new(
        ErrorKind::Input,
        format!(
            "{message} (line {number}, column {})\n{number} | {line}\n{margin} | {blanks}{carets}",
            column + 1
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_have_wildcards() {
        for (pattern, name, expected) in [
            ("a.csv", "a.csv", true),
            ("a.csv", "b.csv", false),
            ("*", "", true),
            ("a*", "abc", true),
            ("*_knows_*.csv", "person_knows_person_0.csv", true),
            ("*_knows_*.csv", "person_likes_post.csv", false),
            ("a*a", "a", false),
            ("a*b*b", "ab", false),
        ] {
            assert_eq!(fits(pattern, name), expected, "{pattern} {name}");
        }
    }

    #[test]
    fn mapping_errors_have_positions() {
        for (text, line, part) in [
            ("[[file]]\nname = 'x'\nvertice = 'a'", "3", "unknown field `vertice`"),
            ("[[file]]\nname = 'x'", "2", "either `vertices` or `edges`"),
            ("[[file]]\nname = 'x'\nvertices = 'a'\nseparator = 'ab'", "4", "one ASCII character"),
            ("[[file]]\nname = 'x'\nedges = 'a'\ncolumns = ['a', 'b', 'c:point']", "4", "not a type"),
            ("[[file]]\nname = 'x'\nedges = 'a'\ncolumns = ['a']", "2", "too few columns"),
            ("[[file]]\nname = 'x'\nvertices = 'a'\ndate = '%y'", "4", "a pattern has"),
            ("[[file]]\nname = 'x'\nvertices = 'a'\nheader = false", "2", "needs `columns`"),
            ("[[file]]\nname = 'x'\nvertices = 'a'\nfrom = 'b'", "4", "has no meaning for vertices"),
            (
                "[[file]]\nname = 'x'\nvertices = 'a'\ncolumns = [{ name = 'a', iz = 'id' }]",
                "4",
                "expected a text",
            ),
            ("[[file]\n", "1", ""),
        ] {
            let message = Mapping::parse(text).expect_err(text).to_string();
            assert!(message.contains(&format!("(line {line}, ")) && message.contains(part), "{message}");
            assert!(message.contains('^'), "{message}");
        }
    }
}
