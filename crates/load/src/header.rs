//! Interpretation of table headers: the content of a file and the roles of its columns.
//!
//! | dialect | vertices | edges |
//! | --- | --- | --- |
//! | plain | `id,label,name,age:int` | `id,from,to,label,since` |
//! | neo4j-admin | `:ID(Person),:LABEL,name,age:int` | `:START_ID(Person),:END_ID(Person),:TYPE,since:date` |
//! | names from files (LDBC; also with the headers above) | `person_0_0.csv`: `id,name` |
//! `person_knows_person_0_0.csv`: `Person.id,Person.id,since` |
//!
//! In the plain dialect `~id`, `~label`, `~from`, `~to` are equivalent to the names without the tilde. If no
//! column has one of these names, alternatives apply, case-insensitively: `ID`, `Label`; `source` and
//! `target`, `src` and `dst` and similar pairs, if both are present.

use crate::value::{TYPES, Type};
use foldhash::HashMap as SeededMap;
use vervet_model::{Error, ErrorKind, Result};

/// The role of a column.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Role {
    /// External id of the vertex or edge; the id space separates ids of different kinds.
    Id(String),
    /// Labels of the vertex, separated by `;`; label of the edge.
    Label,
    Source(String),
    Target(String),
    /// The id of the vertex at the other end of an edge, in this id space.
    Edge {
        label: String,
        space: String,
        is_reversed: bool,
    },
    Property,
    Ignored,
}

/// A column of a table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Column {
    /// The name in the header.
    pub(crate) name: String,
    pub(crate) role: Role,
    /// Name of the property; an id column may also be a property. Empty: not a property.
    pub(crate) key: String,
    /// `None`: to be inferred from the values.
    pub(crate) kind: Option<Type>,
    /// Whether a cell holds values separated by `;`.
    pub(crate) is_array: bool,
}

impl Column {
    /// Whether the type of its values is to be inferred.
    pub(crate) fn is_untyped(&self) -> bool {
        self.kind.is_none() && !self.key.is_empty()
    }

    /// A column that is not a property.
    pub(crate) fn new(name: &str, role: Role) -> Self {
        Self { name: name.to_owned(), role, key: String::new(), kind: None, is_array: false }
    }
}

/// The interpretation of a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Table {
    pub(crate) is_edges: bool,
    /// The default label of all rows, from the file name.
    pub(crate) label: Option<String>,
    pub(crate) columns: Vec<Column>,
    /// Default roles of the first columns of a header (only in mappings).
    pub(crate) firsts: Vec<Role>,
    /// Id space in which row numbers are vertex ids.
    pub(crate) row_ids: Option<String>,
}

/// Options for the interpretation of headers.
pub(crate) struct Names<'a> {
    /// The file name without extensions.
    pub(crate) stem: &'a str,
    pub(crate) from_files: bool,
    pub(crate) id: Option<&'a str>,
    pub(crate) labels: &'a [String],
    pub(crate) default_label: Option<&'a str>,
    pub(crate) row_ids: bool,
}

/// Names of source and target columns, without `_`, `-` and blanks, in lower case. A file with both is an
/// edge file.
const SOURCES: [&str; 7] = ["from", "source", "src", "fromid", "sourceid", "srcid", "startid"];
const TARGETS: [&str; 9] = ["to", "target", "dst", "dest", "toid", "targetid", "dstid", "destid", "endid"];

impl Table {
    /// Interprets a header.
    pub(crate) fn from_header(fields: &[&str], names: &Names<'_>) -> Result<Self> {
        let mut table = if names.from_files {
            Self::named_by_file(fields, names)?
        } else {
            let mut columns = fields.iter().map(|field| column(field)).collect::<Result<Vec<_>>>()?;
            apply_role_aliases(&mut columns, names);
            let is_edges =
                columns.iter().any(|column| matches!(column.role, Role::Source(_) | Role::Target(_)));
            Self { is_edges, label: None, columns, firsts: Vec::new(), row_ids: None }
        };
        let has_id = table.columns.iter().any(|column| matches!(column.role, Role::Id(_)));
        if names.row_ids && !table.is_edges && !has_id {
            table.row_ids = Some(names.stem.to_owned());
        }
        if table.label.is_none() {
            table.label = names.default_label.map(str::to_owned);
        }
        table.check()?;
        table.check_names(|_, _| true)?;
        Ok(table)
    }

    /// The tables of a file of APOC, whose rows are vertices or edges:
    /// `_id,_labels,name,_start,_end,_type,since`. The first one is that of the vertices. `None`: another
    /// header.
    pub(crate) fn of_apoc(fields: &[&str]) -> Option<Result<[Self; 2]>> {
        let ends = fields.windows(3).position(|fields| fields == ["_start", "_end", "_type"])?;
        if !fields.starts_with(&["_id", "_labels"]) {
            return None;
        }
        let table = |is_edges: bool| {
            let column = |(at, field): (usize, &&str)| {
                let role = match (at, is_edges) {
                    (0, _) => Role::Id(String::new()),
                    (1, false) => Role::Label,
                    (at, true) if at == ends => Role::Source(String::new()),
                    (at, true) if at == ends + 1 => Role::Target(String::new()),
                    (at, true) if at == ends + 2 => Role::Label,
                    (at, _) if (at < ends) != is_edges && at != 1 && !(ends..ends + 3).contains(&at) => {
                        return Column { key: (*field).to_owned(), ..Column::new(field, Role::Property) };
                    }
                    _ => Role::Ignored,
                };
                Column::new(field, role)
            };
            let columns = fields.iter().enumerate().map(column).collect();
            let table = Self { is_edges, label: None, columns, firsts: Vec::new(), row_ids: None };
            table.check_names(|_, _| true).map(|()| table)
        };
        Some(table(false).and_then(|vertices| Ok([vertices, table(true)?])))
    }

    /// A default for a header without an interpretation, to be edited: vertices with the id in the first
    /// column.
    pub(crate) fn guess(fields: &[&str]) -> Self {
        let column = |(at, field): (usize, &&str)| match at {
            0 => Column::new(field.trim(), Role::Id(String::new())),
            _ => Column { key: field.trim().to_owned(), ..Column::new(field.trim(), Role::Property) },
        };
        let columns = fields.iter().enumerate().map(column).collect();
        Self { is_edges: false, label: None, columns, firsts: Vec::new(), row_ids: None }
    }

    /// The table for a file with this number of fields in a row; 0: the file is empty.
    pub(crate) fn positional(&self, fields: usize) -> Result<Self> {
        if fields == 0 || fields == self.columns.len() {
            return Ok(self.clone());
        }
        let message = format!("the file has {fields} columns, its table {}", self.columns.len());
        Err(Error::new(ErrorKind::Input, message)
            .with_hint("the file must be of the same export as its schema"))
    }

    pub(crate) fn check(&self) -> Result<()> {
        if self.columns.is_empty() {
            return Err(Error::new(ErrorKind::Input, "the file is empty: it has no header")
                .with_hint("its first line must name the columns, such as id,label,name or from,to,label"));
        }
        let count = |is: fn(&Role) -> bool| self.columns.iter().filter(|column| is(&column.role)).count();
        let ids = count(|role| matches!(role, Role::Id(_)));
        let sources = count(|role| matches!(role, Role::Source(_)));
        let targets = count(|role| matches!(role, Role::Target(_)));
        let labels = count(|role| *role == Role::Label);
        if self.is_edges && (sources, targets) != (1, 1) {
            let names = |is: fn(&Role) -> bool| {
                let names = self.columns.iter().filter(|column| is(&column.role)).take(8);
                match names.map(|column| column.name.as_str()).collect::<Vec<_>>().join(", ") {
                    names if names.is_empty() => "none".to_owned(),
                    names => names,
                }
            };
            let message = format!(
                "the header of an edge file needs one column for the source (there is {}) and one for the target (there is {})",
                names(|role| matches!(role, Role::Source(_))),
                names(|role| matches!(role, Role::Target(_))),
            );
            return Err(Error::new(ErrorKind::Input, message).with_hint(
                "name them from and to (or source and target, src and dst), or define them in a mapping file",
            ));
        }
        if !self.is_edges && ids == 0 && self.row_ids.is_none() {
            let names: Vec<&str> = self.columns.iter().take(8).map(|column| column.name.as_str()).collect();
            let more = if self.columns.len() > names.len() { ", …" } else { "" };
            let message = "the header names neither the id of vertices nor source and target of edges";
            return Err(Error::new(ErrorKind::Input, message).with_hint(format!(
                "vertices: say which column is the id with --id (there are {}{more}), or number the rows with --row-ids; \
                 edges: name two columns source and target, or from and to; \
                 anything else: --print-mapping writes a mapping file to edit",
                names.join(", ")
            )));
        }
        if ids > 1 || labels > 1 {
            let same = |role: &Role| match ids > 1 {
                true => matches!(role, Role::Id(_)),
                false => *role == Role::Label,
            };
            let mut columns = (1..).zip(&self.columns).filter(|(_, column)| same(&column.role));
            let mut next =
                || columns.next().map_or((0, ""), |(number, column)| (number, column.name.as_str()));
            let ((first, name), (second, other)) = (next(), next());
            let what = if ids > 1 { "the id" } else { "the label" };
            return Err(header_error(&format!(
                "columns {first} ({name}) and {second} ({other}) are both {what}"
            )));
        }
        Ok(())
    }

    /// # Errors
    /// [`ErrorKind::Input`]: two columns are the same property, and `is_fault` holds for them.
    pub(crate) fn check_names(&self, is_fault: impl Fn(&Column, &Column) -> bool) -> Result<()> {
        let mut seen: SeededMap<&str, (usize, &Column)> = SeededMap::default();
        for (number, column) in (1..).zip(&self.columns).filter(|(_, column)| !column.key.is_empty()) {
            if let Some((first, other)) = seen.insert(&column.key, (number, column))
                && is_fault(other, column)
            {
                let name = &column.key;
                let message = format!("columns {first} and {number} of the header are both called {name}");
                let hint = "rename one of them, or write :IGNORE behind the name of the one to ignore";
                return Err(Error::new(ErrorKind::Input, message).with_hint(hint));
            }
        }
        Ok(())
    }

    fn named_by_file(fields: &[&str], names: &Names<'_>) -> Result<Self> {
        let words = words(names.stem);
        let label = |word: &str| match word.to_ascii_lowercase().as_str() {
            "tagclass" => "TagClass".to_owned(),
            _ => {
                let mut letters = word.chars();
                let first = letters.next().map(|letter| letter.to_ascii_uppercase());
                first.into_iter().chain(letters).collect()
            }
        };
        if fields.iter().any(|field| [":ID", ":START_ID", ":END_ID"].iter().any(|mark| field.contains(mark)))
        {
            let columns = fields.iter().map(|field| column(field)).collect::<Result<Vec<_>>>()?;
            let is_edges =
                columns.iter().any(|column| matches!(column.role, Role::Source(_) | Role::Target(_)));
            let label = match words.as_slice() {
                [word] if !is_edges => Some(label(word)),
                [_, relation, _] if is_edges => Some((*relation).to_owned()),
                _ => None,
            };
            return Ok(Self { is_edges, label, columns, firsts: Vec::new(), row_ids: None });
        }
        let id_of = |field: &str| field.strip_suffix(".id").map(str::to_owned);
        let properties = |from: usize| {
            fields[from.min(fields.len())..]
                .iter()
                .map(|field| ldbc_property(field, &words))
                .collect::<Result<Vec<_>>>()
        };
        let special = |name: &str, role| Column { kind: Some(Type::String), ..Column::new(name, role) };
        match fields {
            ["id", ..] if words.len() == 1 => {
                let label = label(words[0]);
                let id = Column { key: "id".to_owned(), ..Column::new("id", Role::Id(label.clone())) };
                let columns = std::iter::once(id).chain(properties(1)?).collect();
                Ok(Self { is_edges: false, label: Some(label), columns, firsts: Vec::new(), row_ids: None })
            }
            [source, target, ..] => match (id_of(source), id_of(target), words.as_slice()) {
                (Some(from), Some(to), [_, relation, _]) => {
                    let ends = [special(source, Role::Source(from)), special(target, Role::Target(to))];
                    let columns = ends.into_iter().chain(properties(2)?).collect();
                    let label = Some((*relation).to_owned());
                    Ok(Self { is_edges: true, label, columns, firsts: Vec::new(), row_ids: None })
                }
                // Additional values for vertices of another file: no label.
                (Some(space), None, _) => {
                    let id = special(source, Role::Id(space));
                    let columns = std::iter::once(id).chain(properties(1)?).collect();
                    Ok(Self {
                        is_edges: false,
                        label: Some(String::new()),
                        columns,
                        firsts: Vec::new(),
                        row_ids: None,
                    })
                }
                _ => Self::plain_named_by_file(fields, names, label),
            },
            _ => Self::plain_named_by_file(fields, names, label),
        }
    }

    /// A header in the plain dialect, with the labels and id spaces of the file name.
    fn plain_named_by_file(
        fields: &[&str],
        names: &Names<'_>,
        label: impl Fn(&str) -> String,
    ) -> Result<Self> {
        let mut columns = fields.iter().map(|field| column(field)).collect::<Result<Vec<_>>>()?;
        apply_role_aliases(&mut columns, names);
        let is_end = |column: &Column| matches!(column.role, Role::Source(_) | Role::Target(_));
        let is_edges = columns.iter().any(is_end);
        let words = words(names.stem);
        let (name, spaces) = match words.as_slice() {
            [source, relation, target] if is_edges => {
                ((*relation).to_owned(), [*source, *target].map(&label))
            }
            _ if is_edges => {
                let message = "the file name does not give the relation and the kinds of vertices";
                return Err(Error::new(ErrorKind::Input, message).with_hint(
                    "name the file as person_knows_person.csv, or load it in a load of its own without \
                     --names-from-files, with --default-label for the relation",
                ));
            }
            _ => {
                let name = label(&words.join("_"));
                (name.clone(), [name, String::new()])
            }
        };
        let mut has_id = false;
        for column in &mut columns {
            match &mut column.role {
                Role::Id(space) if !is_edges => {
                    has_id = true;
                    space.clone_from(&spaces[0]);
                    if column.key.is_empty() {
                        column.key.clone_from(&column.name);
                    }
                }
                Role::Source(space) => space.clone_from(&spaces[0]),
                Role::Target(space) => space.clone_from(&spaces[1]),
                _ => {}
            }
        }
        if !is_edges && !has_id {
            return Err(header_error("the header and the file name define neither vertices nor edges"));
        }
        Ok(Self { is_edges, label: Some(name), columns, firsts: Vec::new(), row_ids: None })
    }
}

/// The words of a file name without trailing numbers: `person_knows_person_0_0` has three.
pub(crate) fn words(stem: &str) -> Vec<&str> {
    let mut words: Vec<&str> = stem.split('_').collect();
    while words.len() > 1 && words.last().is_some_and(|word| word.bytes().all(|byte| byte.is_ascii_digit())) {
        words.pop();
    }
    words
}

/// A property column of LDBC files, where a person has lists of languages and addresses.
fn ldbc_property(field: &str, words: &[&str]) -> Result<Column> {
    let mut column = property(field)?;
    column.is_array |= words.len() == 1
        && words[0].eq_ignore_ascii_case("person")
        && matches!(field, "language" | "email" | "speaks" | "emails");
    Ok(column)
}

/// Assigns roles to columns with common alternative names, if no column has those roles.
fn apply_role_aliases(columns: &mut [Column], names: &Names<'_>) {
    let is_free =
        |column: &Column| column.role == Role::Property && column.kind.is_none() && !column.is_array;
    let simple = |name: &str| -> String {
        let letters = name.chars().filter(|letter| !matches!(letter, '_' | '-' | ' ' | '~'));
        letters.flat_map(char::to_lowercase).collect()
    };
    let find = |columns: &[Column], known: &dyn Fn(&str) -> bool| {
        columns.iter().position(|column| is_free(column) && known(&column.name))
    };
    let has = |columns: &[Column], is: fn(&Role) -> bool| columns.iter().position(|column| is(&column.role));
    let adopt = |columns: &mut [Column], at: Option<usize>, role: Role| {
        if let Some(column) = at.and_then(|at| columns.get_mut(at)) {
            *column = Column::new(&column.name, role);
        }
    };
    let source = has(columns, |role| matches!(role, Role::Source(_)));
    let target = has(columns, |role| matches!(role, Role::Target(_)));
    let new_source = find(columns, &|name| SOURCES.contains(&simple(name).as_str()));
    let new_target = find(columns, &|name| TARGETS.contains(&simple(name).as_str()));
    if source.or(new_source).is_some() && target.or(new_target).is_some() {
        adopt(columns, new_source.filter(|_| source.is_none()), Role::Source(String::new()));
        adopt(columns, new_target.filter(|_| target.is_none()), Role::Target(String::new()));
    }
    if has(columns, |role| *role == Role::Label).is_none() {
        let named = |name: &str| names.labels.iter().any(|label| label.eq_ignore_ascii_case(name));
        let label =
            find(columns, &named).or_else(|| find(columns, &|name| name.eq_ignore_ascii_case("label")));
        adopt(columns, label, Role::Label);
    }
    if has(columns, |role| matches!(role, Role::Id(_))).is_none() {
        let named = |name: &str| names.id.is_some_and(|id| id.eq_ignore_ascii_case(name));
        let is_named = find(columns, &named);
        let id = is_named.or_else(|| find(columns, &|name| name.eq_ignore_ascii_case("id")));
        if let Some(column) = id.and_then(|at| columns.get_mut(at)) {
            // A column with a custom name is also a property.
            let key = if is_named.is_some() { column.key.clone() } else { String::new() };
            *column = Column { key, ..Column::new(&column.name, Role::Id(String::new())) };
        }
    }
}

fn header_error(message: &str) -> Error {
    Error::new(ErrorKind::Input, message)
        .with_hint("write a header such as id,label,name or :ID,:LABEL,name; docs/loading.md lists the forms")
}

/// Interprets a column of the plain or neo4j dialect.
fn column(field: &str) -> Result<Column> {
    let field = field.trim();
    let name = field;
    let special = |role: Role, key: &str| Column { key: key.to_owned(), ..Column::new(name, role) };
    match field.strip_prefix('~').unwrap_or(field) {
        "id" => return Ok(special(Role::Id(String::new()), "")),
        "label" => return Ok(special(Role::Label, "")),
        "from" => return Ok(special(Role::Source(String::new()), "")),
        "to" => return Ok(special(Role::Target(String::new()), "")),
        _ => {}
    }
    // Options such as {id-type: long} are ignored.
    let field = field.split_once('{').map_or(field, |(start, _)| start.trim_end());
    let (key, kind) = field.rsplit_once(':').unwrap_or((field, ""));
    let (kind, space) = match kind.strip_suffix(')').and_then(|kind| kind.split_once('(')) {
        Some((kind, space)) => (kind, space.to_owned()),
        None => (kind, String::new()),
    };
    Ok(match kind {
        "ID" => special(Role::Id(space), key),
        "START_ID" => special(Role::Source(space), ""),
        "END_ID" => special(Role::Target(space), ""),
        "LABEL" | "TYPE" => special(Role::Label, ""),
        "IGNORE" => special(Role::Ignored, ""),
        _ => return Ok(Column { name: name.to_owned(), ..property(field)? }),
    })
}

/// A property column: `name`, `name:type`, `name:type[]`.
fn property(field: &str) -> Result<Column> {
    let (key, kind) = match field.rsplit_once(':') {
        Some((key, kind)) if !key.is_empty() => (key, Some(kind)),
        _ => (field, None),
    };
    let (kind, is_array) =
        match kind.map(|kind| kind.strip_suffix("[]").map_or((kind, false), |kind| (kind, true))) {
            Some((kind, is_array)) => (Some(kind), is_array),
            None => (None, false),
        };
    let kind = match kind {
        None => None,
        // Points of Neo4j remain texts.
        Some(name) if name.eq_ignore_ascii_case("point") => Some(Type::String),
        Some(name) => Some(Type::from_name(name).ok_or_else(|| {
            Error::new(ErrorKind::Unsupported, format!("column {key} has the unknown type {name}"))
                .with_hint(format!("types are {TYPES}"))
        })?),
    };
    if key.is_empty() {
        return Err(header_error("a column has no name"));
    }
    Ok(Column { key: key.to_owned(), kind, is_array, ..Column::new(field, Role::Property) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names_of(stem: &str, from_files: bool) -> Names<'_> {
        Names { stem, from_files, id: None, labels: &[], default_label: None, row_ids: false }
    }

    fn roles(
        header: &str,
        stem: &str,
        names_from_files: bool,
    ) -> (bool, Option<String>, Vec<(Role, String)>) {
        let fields: Vec<&str> = header.split('|').collect();
        let table = Table::from_header(&fields, &names_of(stem, names_from_files)).unwrap();
        (table.is_edges, table.label, table.columns.into_iter().map(|c| (c.role, c.key)).collect())
    }

    #[test]
    fn every_dialect_is_understood() {
        let s = str::to_owned;
        let (edges, _, columns) = roles("id|from|to|label|dist", "x", false);
        assert!(edges);
        assert_eq!(columns[4], (Role::Property, s("dist")));
        let (edges, _, columns) =
            roles("key:ID(P){id-type: long}|:LABEL|name:string|tags:string[]|:IGNORE", "x", false);
        assert!(!edges);
        assert_eq!(columns[0], (Role::Id(s("P")), s("key")));
        assert_eq!(columns[4].0, Role::Ignored);
        let (_, _, columns) = roles(":START_ID(P)|:END_ID(Q)|:TYPE|since:date", "x", false);
        assert_eq!(columns[1].0, Role::Target(s("Q")));
        let (edges, label, columns) = roles("Person.id|Tag.id|at", "person_hasInterest_tag_0_0", true);
        assert_eq!((edges, label), (true, Some(s("hasInterest"))));
        assert_eq!(columns[0].0, Role::Source(s("Person")));
        let (edges, label, columns) = roles("Person.id|email", "person_email_emailaddress_0_0", true);
        assert_eq!((edges, label), (false, Some(String::new())));
        assert_eq!(columns[1], (Role::Property, s("email")));
        assert_eq!(roles("id|name", "tagclass_0_0", true).1, Some(s("TagClass")));
    }

    #[test]
    fn headers_without_roles_are_refused() {
        for header in
            [&["name", "age"][..], &["id", "id"], &["from", "label"], &["id", "x:shape"], &["id", ""], &[]]
        {
            assert!(Table::from_header(header, &names_of("x", false)).is_err(), "{header:?}");
            assert!(
                Table::from_header(header, &names_of("", true)).is_err() || header[0] == "id",
                "{header:?}"
            );
        }
    }
}
