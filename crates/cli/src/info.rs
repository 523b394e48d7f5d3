//! `vervet info`: the contents of a database and the size of each part.

use crate::arguments::InfoArguments;
use crate::gpu;
use crate::output::{self, Outcome, Output};
use crate::table::Table;
use std::collections::BTreeMap;
use std::io::{self, Write};
use vervet::{ComponentSize, Database, Direction, Durability, Error, ErrorKind, Id, Result};
use vervet_snapshot::Snapshot;

/// The number of predicates and segments listed without `--all`.
const LISTED_MAX: usize = 30;

/// Name of the group of its parts.
const DICTIONARY: &str = "dictionary";

pub(crate) fn run(arguments: &InfoArguments) -> Outcome {
    if arguments.gpu {
        return gpu::report(arguments.json);
    }
    let unnamed = || Error::new(ErrorKind::Input, "no database is named");
    let database = Database::open(arguments.database.as_ref().ok_or_else(unnamed)?)?;
    let facts = Facts::collect(&database)?;
    let mut out = Output::standard();
    if arguments.json {
        facts.write_json(&mut out)?;
    } else {
        facts.write_text(arguments.all, &mut out)?;
    }
    out.finish()
}

/// The facts that `info` prints.
pub(crate) struct Facts {
    statements: u64,
    vertices: u64,
    /// IRIs and blank nodes of the dictionary.
    resources: u64,
    literals: u64,
    edges: u64,
    graphs: Vec<(String, u64)>,
    /// By descending frequency.
    predicates: Vec<(String, u64)>,
    constraints: Vec<String>,
    parts: Vec<ComponentSize>,
    /// The durability of commits of this process.
    durability: Option<Durability>,
}

impl Facts {
    pub(crate) fn collect(database: &Database) -> Result<Self> {
        let snapshot = database.snapshot();
        let view = snapshot.as_snapshot();
        Ok(Self {
            statements: view.statement_count(),
            vertices: snapshot.vertex_count()?,
            resources: view.vertex_count(),
            literals: view.literal_count(),
            edges: view.edge_count(),
            graphs: named(view, view.graphs())?,
            predicates: named(view, view.predicates())?,
            constraints: database.constraints().iter().map(ToString::to_string).collect(),
            parts: database.component_sizes()?,
            durability: database.durability(),
        })
    }

    pub(crate) fn statements(&self) -> u64 {
        self.statements
    }

    /// IRIs, blank nodes and literals of the dictionary.
    pub(crate) fn terms(&self) -> u64 {
        self.resources + self.literals
    }

    pub(crate) fn size_bytes(&self) -> u64 {
        self.parts.iter().map(|part| part.size_bytes).sum()
    }

    pub(crate) fn dictionary_bytes(&self) -> u64 {
        let parts = self.parts.iter().filter(|part| group(&kind(part)) == DICTIONARY);
        parts.map(|part| part.size_bytes).sum()
    }

    fn per_statement(&self, size_bytes: u64) -> String {
        format!("{:.2}", size_bytes as f64 / self.statements.max(1) as f64)
    }

    /// Sizes grouped by purpose: dictionary, edge table, adjacency by kind of array.
    fn kinds(&self) -> Vec<(String, u64)> {
        sums(self.parts.iter().map(|part| (kind(part), part.size_bytes)))
    }

    /// The size of each segment, in bytes.
    fn segments(&self) -> Vec<(String, u64)> {
        sums(self.parts.iter().filter_map(|part| Some((segment(part)?, part.size_bytes))))
    }

    /// Sizes by full name.
    fn named_parts(&self) -> Vec<(String, u64)> {
        let name = |part: &ComponentSize| match segment(part) {
            Some(segment) => format!("{segment}: {}", part.name),
            None => kind(part),
        };
        self.parts.iter().map(|part| (name(part), part.size_bytes)).collect()
    }

    pub(crate) fn write_text(&self, all: bool, out: &mut dyn Write) -> io::Result<()> {
        let mut counts = Table::new(&["what", ">count"]);
        for (what, number) in [
            ("statements", self.statements),
            ("vertices", self.vertices),
            ("IRIs and blank nodes in the dictionary", self.resources),
            ("literals in the dictionary", self.literals),
            ("edges with an identity", self.edges),
            ("named graphs", self.graphs.len() as u64),
            ("predicates", self.predicates.len() as u64),
        ] {
            counts.row([what.to_owned(), output::count(number)]);
        }
        counts.write("", out)?;
        if let Some(level) = self.durability {
            writeln!(
                out,
                "\nCommits of this process are durable at the level {}.",
                output::durability(level)
            )?;
        }

        let most = if all { usize::MAX } else { LISTED_MAX };
        for (title, list) in [("named graph", &self.graphs), ("predicate", &self.predicates)] {
            if list.is_empty() {
                continue;
            }
            writeln!(out)?;
            let mut table = Table::new(&[title, ">statements"]);
            for (name, number) in list.iter().take(most) {
                table.row([name.clone(), output::count(*number)]);
            }
            table.write("", out)?;
            more(list.len(), most, out)?;
        }

        if !self.constraints.is_empty() {
            writeln!(out)?;
            let mut table = Table::new(&["constraint"]);
            self.constraints.iter().for_each(|constraint| table.row([constraint.clone()]));
            table.write("", out)?;
        }

        writeln!(out)?;
        let mut table = Table::new(&["part", ">bytes", ">bytes/statement"]);
        let kinds = self.kinds();
        let groups = sums(kinds.iter().map(|(name, size)| (group(name).to_owned(), *size)));
        for (name, size) in groups {
            table.row([name.clone(), output::count(size), self.per_statement(size)]);
            for (kind, size) in kinds.iter().filter(|(kind, _)| group(kind) == name && *kind != name) {
                let part = kind.trim_start_matches(&name).trim_start_matches(": ");
                table.row([format!("  {part}"), output::count(*size), self.per_statement(*size)]);
            }
        }
        let size = self.size_bytes();
        table.row(["in all".to_owned(), output::count(size), self.per_statement(size)]);
        table.write("", out)?;

        let mut segments = self.segments();
        if segments.is_empty() {
            return Ok(());
        }
        segments.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        writeln!(out)?;
        let mut table = Table::new(&["segment", ">bytes", ">bytes/statement"]);
        for (segment, size) in segments.iter().take(most) {
            table.row([segment.clone(), output::count(*size), self.per_statement(*size)]);
        }
        table.write("", out)?;
        more(segments.len(), most, out)
    }

    fn write_json(&self, out: &mut dyn Write) -> io::Result<()> {
        let objects = |list: &[(String, u64)], names: [&str; 2]| -> String {
            let objects = list.iter().map(|(name, number)| {
                format!("{{{}:{},{}:{number}}}", quoted(names[0]), quoted(name), quoted(names[1]))
            });
            format!("[{}]", objects.collect::<Vec<_>>().join(","))
        };
        let size = self.size_bytes();
        writeln!(
            out,
            "{{\"statements\":{},\"vertices\":{},\"resources\":{},\"literals\":{},\"edges\":{},\"graphs\":{},\"predicates\":{},\
             \"constraints\":[{}],\"durability\":{},\"size_bytes\":{size},\"bytes_per_statement\":{},\"kinds\":{},\"parts\":{}}}",
            self.statements,
            self.vertices,
            self.resources,
            self.literals,
            self.edges,
            objects(&self.graphs, ["iri", "statements"]),
            objects(&self.predicates, ["iri", "statements"]),
            self.constraints.iter().map(|text| quoted(text)).collect::<Vec<_>>().join(","),
            self.durability.map_or("null".to_owned(), |level| quoted(&output::durability(level))),
            self.per_statement(size),
            objects(&self.kinds(), ["name", "size_bytes"]),
            objects(&self.named_parts(), ["name", "size_bytes"]),
        )
    }
}

/// The terms of ids with their numbers, in descending order.
fn named(view: &dyn Snapshot, list: &[(Id, u64)]) -> Result<Vec<(String, u64)>> {
    let mut named = Vec::with_capacity(list.len());
    let mut scratch = String::new();
    for &(id, number) in list {
        let mut name = String::new();
        view.read_term(id, &mut scratch, &mut |parts| name = parts.to_term().to_string())?;
        let iri = name.strip_prefix('<').and_then(|name| name.strip_suffix('>')).unwrap_or(&name);
        named.push((iri.to_owned(), number));
    }
    named.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    Ok(named)
}

/// `PREDICATE out` or `PREDICATE in`.
fn segment(part: &ComponentSize) -> Option<String> {
    let (predicate, direction) = part.segment.as_ref()?;
    Some(format!("{predicate} {}", direction_name(*direction)))
}

fn kind(part: &ComponentSize) -> String {
    match &part.segment {
        Some((_, direction)) => format!("adjacency {}: {}", direction_name(*direction), part.name),
        None if part.name == "edge table" => part.name.to_owned(),
        None => format!("{DICTIONARY}: {}", part.name),
    }
}

/// The group of a kind: `dictionary` for `dictionary: templates`.
fn group(kind: &str) -> &str {
    kind.split(": ").next().unwrap_or(kind)
}

fn direction_name(direction: Direction) -> &'static str {
    match direction {
        Direction::Out => "out",
        Direction::In => "in",
    }
}

/// Sums by name, in alphabetical order.
fn sums(list: impl Iterator<Item = (String, u64)>) -> Vec<(String, u64)> {
    let mut sums: BTreeMap<String, u64> = BTreeMap::new();
    for (name, size) in list {
        *sums.entry(name).or_default() += size;
    }
    sums.into_iter().collect()
}

fn more(length: usize, most: usize, out: &mut dyn Write) -> io::Result<()> {
    if length > most {
        writeln!(out, "… and {} more (--all lists them)", output::count((length - most) as u64))?;
    }
    Ok(())
}

/// A JSON string.
fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            c if u32::from(c) < 0x20 => quoted.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_put_together_by_kind() {
        let part = |segment, name| ComponentSize { segment, name, size_bytes: 1 };
        let knows = part(Some(("http://a/knows".to_owned(), Direction::Out)), "keys");
        assert_eq!(kind(&knows), "adjacency out: keys");
        assert_eq!(segment(&knows).as_deref(), Some("http://a/knows out"));
        assert_eq!(kind(&part(None, "vertex records")), "dictionary: vertex records");
        assert_eq!(kind(&part(None, "edge table")), "edge table");
        assert_eq!(quoted("a\"b\\\n"), "\"a\\\"b\\\\\\u000a\"");
    }
}
