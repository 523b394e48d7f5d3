//! Loader of the folders that `EXPORT DATABASE` of Kùzu and of its fork Ladybug writes. `schema.cypher`
//! defines the tables and the types of their columns; `copy.cypher` names the file of each table, the order
//! of its columns and its CSV dialect.
//!
//! A table of nodes becomes vertices with the table name as label and id space, and the primary key as id and
//! property. A table of relationships becomes edges, one file for each pair of tables.
//! # Not here
//! Sequences, macros, indexes and extensions, which have no data.

use crate::cypher::{LexemeKind, SyntaxError, Token, Tokens};
use crate::dialect::{Dialect, ListForm};
use crate::header::{Column, Role, Table};
use crate::source::{Format, Layout, Source};
use crate::value::Type;
use foldhash::HashMap as SeededMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use vervet_model::{Error, ErrorKind, Result};

/// The file with the tables.
pub(crate) const SCHEMA: &str = "schema.cypher";
/// The file with the statements that read the files.
pub(crate) const COPY: &str = "copy.cypher";

/// Maximum length of each of the two files.
const SCRIPT_BYTES_MAX: u64 = 64 << 20;

/// A table of the schema.
#[derive(Debug, PartialEq, Eq)]
struct TableDefinition {
    columns: Vec<(String, String)>,
    /// The primary key of a table of nodes.
    key: Option<String>,
    /// The tables at the ends of relationships.
    pairs: Vec<(String, String)>,
    is_edges: bool,
}

/// The files of an export, each with its columns; columns that cannot be loaded are in `notes`.
pub(crate) fn sources(folder: &Path, notes: &mut Vec<String>) -> Result<Vec<Source>> {
    for name in [SCHEMA, COPY] {
        check_is_inside(folder, &folder.join(name))?;
    }
    let schema = script(&folder.join(SCHEMA))?;
    let tables = tables(&schema).map_err(|fault| positioned(&folder.join(SCHEMA), fault))?;
    let copy = script(&folder.join(COPY))?;
    let path = folder.join(COPY);
    let mut sources = Vec::new();
    let mut tokens = Tokens::new(&copy);
    let mut statement = Vec::new();
    while tokens.statement(&mut statement).map_err(|fault| positioned(&path, fault))? {
        if !statement.first().is_some_and(|first| first.is_word("COPY")) {
            continue;
        }
        let copied =
            CopyStatement::parse(&statement, tokens.line()).map_err(|fault| positioned(&path, fault))?;
        let fault = |message: String| positioned(&path, SyntaxError { line: statement[0].line, message });
        let table = tables.get(&copied.table).ok_or_else(|| {
            fault(format!("{} is not a table of {SCHEMA}", copied.table))
                .with_hint("the two files must be of one export: export the database again")
        })?;
        // Older versions write the path of the export, which may have been moved.
        let name = copied.file.rsplit(['/', '\\']).next().unwrap_or(&copied.file);
        let file = folder.join(name);
        if !file.is_file() {
            return Err(fault(format!("there is no file {name} in the folder"))
                .with_hint("the export is incomplete: copy all of its files, or export the database again"));
        }
        check_is_inside(folder, &file)?;
        let is_csv = match Format::from_file_name(name) {
            Some(Format::Csv) => true,
            Some(Format::Parquet) => false,
            _ => {
                let message = format!("{name} is neither CSV nor Parquet");
                return Err(fault(message).with_hint("export the database as one of them"));
            }
        };
        let display_text = file.display().to_string();
        if is_csv && file.metadata().is_ok_and(|metadata| metadata.len() == 0) {
            notes.push(format!(
                "{display_text}: the file is empty, so the table {} has no rows",
                copied.table
            ));
        }
        let table = copied.table_of(table, is_csv, &mut |column, kind| {
            notes.push(format!(
                "{display_text}: column {column} is not loaded, because its type {kind} has no form in a property graph; an export \
                 as CSV (format=\"csv\") has it as text"
            ));
        });
        let table = table.map_err(fault)?;
        sources.push(Source::path(file).with_layout(Layout::Columns(Box::new((table, copied.dialect)))));
    }
    if sources.is_empty() {
        let message =
            format!("{} has no COPY statement: the export has a schema but no data", path.display());
        return Err(
            Error::new(ErrorKind::Input, message).with_hint("export the database without schema_only")
        );
    }
    Ok(sources)
}

/// Refuses a file of an export that is a link to a file outside of its folder: an export of unknown origin
/// must not make a load read other files of the machine.
fn check_is_inside(folder: &Path, file: &Path) -> Result<()> {
    let resolve = |path: &Path| {
        path.canonicalize().map_err(|error| Error::io(format!("read {}", path.display()), &error))
    };
    let (folder, target) = (resolve(folder)?, resolve(file)?);
    if target.starts_with(&folder) {
        return Ok(());
    }
    let message = format!("{} is a link to {}, outside of its folder", file.display(), target.display());
    Err(Error::new(ErrorKind::Input, message)
        .with_hint("if the export may read this file, copy it into the folder in place of the link"))
}

fn script(path: &Path) -> Result<String> {
    let failed = |error: &std::io::Error| Error::io(format!("read {}", path.display()), error);
    let mut text = String::new();
    let file = File::open(path).map_err(|error| failed(&error))?;
    file.take(SCRIPT_BYTES_MAX + 1).read_to_string(&mut text).map_err(|error| match error.kind() {
        std::io::ErrorKind::InvalidData => {
            Error::new(ErrorKind::Input, format!("{} is not UTF-8", path.display()))
                .with_hint("the file is damaged: export the database again")
        }
        _ => failed(&error),
    })?;
    if text.len() as u64 > SCRIPT_BYTES_MAX {
        let message = format!("{} has more than {} MiB", path.display(), SCRIPT_BYTES_MAX >> 20);
        return Err(Error::new(ErrorKind::Input, message).with_hint("it is not a file of an export"));
    }
    Ok(text)
}

fn positioned(path: &Path, fault: SyntaxError) -> Error {
    Error::new(ErrorKind::Input, format!("{}:{}: {}", path.display(), fault.line, fault.message))
        .with_hint("correct the file, or export the database again")
}

/// The tokens of a statement, from left to right.
struct TokenCursor<'s, 't> {
    tokens: &'s [Token<'t>],
    /// The line of the end.
    end: u64,
}

impl<'s, 't> TokenCursor<'s, 't> {
    fn fault(&self, expected: &str) -> SyntaxError {
        match self.tokens.first() {
            Some(token) => SyntaxError {
                line: token.line,
                message: format!("expected {expected}, found {}", token.display_text()),
            },
            None => SyntaxError { line: self.end, message: format!("expected {expected}, found the end") },
        }
    }

    fn take(&mut self) -> Option<&'s Token<'t>> {
        let (first, rest) = self.tokens.split_first()?;
        self.tokens = rest;
        Some(first)
    }

    fn word(&mut self, word: &str) -> bool {
        let is_next = self.tokens.first().is_some_and(|token| token.is_word(word));
        if is_next {
            self.take();
        }
        is_next
    }

    fn symbol(&mut self, symbol: char) -> bool {
        let is_next = self.tokens.first().is_some_and(|token| token.is_symbol(symbol));
        if is_next {
            self.take();
        }
        is_next
    }

    fn name(&mut self, what: &str) -> Result<String, SyntaxError> {
        match self.tokens.first().and_then(Token::name) {
            Some(name) => {
                let name = name.to_owned();
                self.take();
                Ok(name)
            }
            None => Err(self.fault(what)),
        }
    }

    /// The tokens up to the next comma or to the bracket that closes this list, nested ones excluded.
    fn item(&mut self) -> &'s [Token<'t>] {
        let mut depth = 0_usize;
        let end = self.tokens.iter().position(|token| {
            match token.kind {
                LexemeKind::Symbol('(' | '[' | '{') => depth += 1,
                LexemeKind::Symbol(')') if depth == 0 => return true,
                LexemeKind::Symbol(')' | ']' | '}') => depth = depth.saturating_sub(1),
                LexemeKind::Symbol(',') => return depth == 0,
                _ => {}
            }
            false
        });
        let (item, rest) = self.tokens.split_at(end.unwrap_or(self.tokens.len()));
        self.tokens = rest;
        item
    }

    /// The items of a list in parentheses.
    fn list(&mut self) -> Result<Vec<&'s [Token<'t>]>, SyntaxError> {
        if !self.symbol('(') {
            return Err(self.fault("("));
        }
        let mut items = Vec::new();
        loop {
            items.push(self.item());
            if self.symbol(')') {
                return Ok(items);
            }
            if !self.symbol(',') {
                return Err(self.fault(")"));
            }
        }
    }
}

/// The tables of a schema by name.
fn tables(schema: &str) -> Result<SeededMap<String, TableDefinition>, SyntaxError> {
    let mut tables = SeededMap::default();
    let mut tokens = Tokens::new(schema);
    let mut statement = Vec::new();
    while tokens.statement(&mut statement)? {
        let mut cursor = TokenCursor { tokens: &statement, end: tokens.line() };
        if !cursor.word("CREATE") {
            continue;
        }
        let is_edges = match (cursor.word("NODE"), cursor.word("REL")) {
            (true, _) => false,
            (_, true) => true,
            _ => continue,
        };
        if !cursor.word("TABLE") {
            return Err(cursor.fault("TABLE"));
        }
        cursor.word("GROUP");
        if cursor.word("IF") {
            cursor.word("NOT");
            cursor.word("EXISTS");
        }
        let name = cursor.name("the name of a table")?;
        let mut table = TableDefinition { columns: Vec::new(), key: None, pairs: Vec::new(), is_edges };
        for item in cursor.list()? {
            table.add(TokenCursor { tokens: item, end: cursor.end })?;
        }
        if !is_edges && table.key.is_none() {
            let message = format!("the table {name} has no primary key");
            return Err(SyntaxError { line: statement[0].line, message });
        }
        tables.insert(name, table);
    }
    Ok(tables)
}

impl TableDefinition {
    /// Adds an item of the definition: a column, the primary key, a pair of tables, or a multiplicity.
    fn add(&mut self, mut item: TokenCursor<'_, '_>) -> Result<(), SyntaxError> {
        let is_next = |word: &str| item.tokens.get(1).is_some_and(|token| token.is_word(word));
        if is_next("KEY") && item.word("PRIMARY") {
            item.word("KEY");
            self.key = Some(match item.list()?.as_slice() {
                [[key]] => key.name().map(str::to_owned).ok_or_else(|| item.fault("a column"))?,
                _ => return Err(item.fault("one column as primary key")),
            });
            return Ok(());
        }
        if self.is_edges && item.tokens.len() >= 4 && item.word("FROM") {
            let from = item.name("the name of a table")?;
            if !item.word("TO") {
                return Err(item.fault("TO"));
            }
            self.pairs.push((from, item.name("the name of a table")?));
            return Ok(());
        }
        // Nothing, or a multiplicity such as MANY_MANY.
        if item.tokens.len() < 2 {
            return Ok(());
        }
        let name = item.name("the name of a column")?;
        let mut kind = String::new();
        while let Some(token) = item.take() {
            if token.is_word("PRIMARY") {
                self.key = Some(name.clone());
            }
            if ["PRIMARY", "DEFAULT", "NOT"].iter().any(|word| token.is_word(word)) {
                break;
            }
            if token.name().is_some() && kind.ends_with(|last: char| last.is_alphanumeric() || last == '`') {
                kind.push(' ');
            }
            kind.push_str(&token.display_text());
        }
        self.columns.push((name, kind));
        Ok(())
    }
}

/// A COPY statement.
struct CopyStatement {
    table: String,
    columns: Option<Vec<String>>,
    file: String,
    ends: [Option<String>; 2],
    dialect: Dialect,
}

impl CopyStatement {
    fn parse(statement: &[Token<'_>], end: u64) -> Result<Self, SyntaxError> {
        let mut cursor = TokenCursor { tokens: statement, end };
        cursor.word("COPY");
        let table = cursor.name("the name of a table")?;
        let mut columns = None;
        if cursor.tokens.first().is_some_and(|token| token.is_symbol('(')) {
            let names = cursor.list()?.into_iter().filter(|item| !item.is_empty());
            let names = names.map(|item| TokenCursor { tokens: item, end }.name("the name of a column"));
            columns = Some(names.collect::<Result<Vec<_>, _>>()?);
        }
        if !cursor.word("FROM") {
            return Err(cursor.fault("FROM"));
        }
        let Some(LexemeKind::Text(file)) = cursor.tokens.first().map(|token| token.kind.clone()) else {
            return Err(cursor.fault("the name of one file"));
        };
        cursor.take();
        let mut copied = Self {
            table,
            columns,
            file: file.into_owned(),
            ends: [None, None],
            dialect: Dialect {
                separator: Some(b','),
                has_header: false,
                list: ListForm { open: Some('['), separator: ',', close: Some(']') },
                ..Dialect::default()
            },
        };
        if !cursor.tokens.is_empty() {
            for option in cursor.list()? {
                copied.option(TokenCursor { tokens: option, end })?;
            }
        }
        if copied.dialect.escape == copied.dialect.quote {
            copied.dialect.escape = None;
        }
        Ok(copied)
    }

    fn option(&mut self, mut option: TokenCursor<'_, '_>) -> Result<(), SyntaxError> {
        if option.tokens.is_empty() {
            return Ok(());
        }
        let name = option.name("an option")?.to_ascii_lowercase();
        if !option.symbol('=') {
            return Err(option.fault("="));
        }
        let value = option.take().ok_or_else(|| option.fault("a value"))?;
        let text = match &value.kind {
            LexemeKind::Text(text) => text.as_ref(),
            LexemeKind::Word(text) | LexemeKind::Number(text) => text,
            _ => "",
        };
        let wrong = |what: &str| SyntaxError {
            line: value.line,
            message: format!("{name}={} is not {what}", value.display_text()),
        };
        // Some versions write the backslash of an escape twice.
        let character = || match text.as_bytes() {
            [byte] | [b'\\', byte] if byte.is_ascii() => Ok(*byte),
            _ => Err(wrong("one ASCII character")),
        };
        match name.as_str() {
            "header" => match text.to_ascii_lowercase().as_str() {
                "true" => self.dialect.has_header = true,
                "false" => self.dialect.has_header = false,
                _ => return Err(wrong("true or false")),
            },
            "delim" | "delimiter" => {
                self.dialect.separator = Some(if text == "\\t" { b'\t' } else { character()? });
            }
            "quote" => self.dialect.quote = Some(character()?),
            "escape" => self.dialect.escape = Some(character()?),
            "from" => self.ends[0] = Some(text.to_owned()),
            "to" => self.ends[1] = Some(text.to_owned()),
            // Options of the reader, such as `parallel`.
            _ => {}
        }
        Ok(())
    }

    /// The columns of the file. `refuse` receives the columns that are not loaded, with their types.
    fn table_of(
        &self,
        declared: &TableDefinition,
        is_csv: bool,
        refuse: &mut dyn FnMut(&str, &str),
    ) -> Result<Table, String> {
        let name = &self.table;
        let mut columns = Vec::new();
        if declared.is_edges {
            let (from, to) = match (&self.ends, declared.pairs.as_slice()) {
                ([Some(from), Some(to)], _) => (from.clone(), to.clone()),
                (_, [(from, to)]) => (from.clone(), to.clone()),
                // Older versions name the tables in the name of the file alone.
                (_, pairs) => {
                    let stem = self.file.rsplit(['/', '\\']).next().unwrap_or(&self.file);
                    let stem = stem.rsplit_once('.').map_or(stem, |(stem, _)| stem);
                    let fits = |(from, to): &&(String, String)| stem == format!("{name}_{from}_{to}");
                    let pair = pairs.iter().find(fits).ok_or_else(|| {
                        format!(
                            "the tables at the ends of {name} are unknown: the statement has no from and to"
                        )
                    })?;
                    pair.clone()
                }
            };
            columns.push(Column { kind: Some(Type::String), ..Column::new("from", Role::Source(from)) });
            columns.push(Column { kind: Some(Type::String), ..Column::new("to", Role::Target(to)) });
        }
        let all = || declared.columns.iter().map(|(column, _)| column.clone()).collect();
        for column in self.columns.clone().unwrap_or_else(all) {
            let kind = declared.columns.iter().find(|(other, _)| *other == column).map(|(_, kind)| kind);
            let kind = kind.ok_or_else(|| format!("the table {name} has no column {column} in {SCHEMA}"))?;
            let is_key = declared.key.as_ref() == Some(&column);
            let role = if is_key { Role::Id(name.clone()) } else { Role::Property };
            columns.push(match (type_of(kind), is_csv) {
                (Some((kind, is_array)), true) => {
                    Column { key: column.clone(), kind: Some(kind), is_array, ..Column::new(&column, role) }
                }
                // Parquet has types of its own.
                (Some(_), false) => Column { key: column.clone(), ..Column::new(&column, role) },
                (None, true) => {
                    Column { key: column.clone(), kind: Some(Type::String), ..Column::new(&column, role) }
                }
                (None, false) => {
                    refuse(&column, kind);
                    Column::new(&column, Role::Ignored)
                }
            });
        }
        let table = Table {
            is_edges: declared.is_edges,
            label: Some(name.clone()),
            columns,
            firsts: Vec::new(),
            row_ids: None,
        };
        if table.check().is_err() {
            let key = declared.key.as_deref().unwrap_or("");
            return Err(format!("the columns of {name} lack its primary key {key}"));
        }
        Ok(table)
    }
}

/// The type of a column, and whether it is a list; `None`: a type without a form in a property graph, whose
/// values are texts in CSV.
fn type_of(kind: &str) -> Option<(Type, bool)> {
    let (element, is_array) = match kind.strip_suffix(']').and_then(|kind| kind.rsplit_once('[')) {
        Some((element, _)) => (element, true),
        None => (kind, false),
    };
    let base = element.split('(').next().unwrap_or(element).to_ascii_uppercase();
    let kind = match base.as_str() {
        "BOOL" | "BOOLEAN" => Type::Boolean,
        "INT8" | "INT16" | "INT32" | "INT" | "UINT8" | "UINT16" => Type::Int,
        "INT64" | "SERIAL" | "UINT32" => Type::Long,
        "UINT64" | "INT128" | "UINT128" => Type::BigInteger,
        "FLOAT" => Type::Float,
        "DOUBLE" => Type::Double,
        "DECIMAL" => Type::Decimal,
        "STRING" | "JSON" => Type::String,
        "UUID" => Type::Uuid,
        "DATE" => Type::Date,
        "TIMESTAMP" | "TIMESTAMP_NS" | "TIMESTAMP_MS" | "TIMESTAMP_SEC" | "TIMESTAMP_TZ" => Type::DateTime,
        _ => return None,
    };
    // A fixed number of digits is the only argument of a type.
    (element.contains('(') <= (kind == Type::Decimal)).then_some((kind, is_array))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kuzu_types_are_mapped() {
        for (kind, expected) in [
            ("INT64", Some((Type::Long, false))),
            ("STRING[]", Some((Type::String, true))),
            ("DOUBLE[256]", Some((Type::Double, true))),
            ("DECIMAL(18,3)", Some((Type::Decimal, false))),
            ("INT64[][]", None),
            ("STRUCT(a INT64,b STRING)", None),
            ("MAP(STRING,INT64)", None),
            ("INTERVAL", None),
            ("]", None),
            ("", None),
        ] {
            assert_eq!(type_of(kind), expected, "{kind}");
        }
    }

    #[test]
    fn schemas_are_read() {
        let text = "LOAD EXTENSION json;\nCREATE NODE TABLE `A b` (`id` INT64 DEFAULT nextval('s'),`l` STRUCT(x INT64, y STRING[]), PRIMARY KEY(`id`));\n\
                    CREATE REL TABLE R (FROM `A b` TO `A b`,FROM `A b` TO C, `from` STRING,MANY_MANY);\nCREATE NODE TABLE C(k STRING PRIMARY KEY);\nCREATE MACRO m(x) AS x + 1;";
        let tables = tables(text).unwrap();
        let node = &tables["A b"];
        assert_eq!(node.key.as_deref(), Some("id"));
        assert_eq!(node.columns[0], ("id".to_owned(), "INT64".to_owned()));
        assert_eq!(node.columns[1].1, "STRUCT(x INT64,y STRING[])");
        assert_eq!(tables["R"].pairs.len(), 2);
        assert_eq!(tables["R"].columns, [("from".to_owned(), "STRING".to_owned())]);
        assert_eq!(tables["C"].key.as_deref(), Some("k"));
        for (text, line) in [
            ("\nCREATE NODE TABLE A(x INT64);", 2),
            ("CREATE NODE TABLE A(x INT64", 1),
            ("CREATE NODE x", 1),
            ("CREATE REL TABLE R (FROM A\nB C D);", 2),
            ("CREATE NODE TABLE A (PRIMARY KEY(a, b));", 1),
        ] {
            assert_eq!(super::tables(text).expect_err(text).line, line, "{text}");
        }
    }
}
