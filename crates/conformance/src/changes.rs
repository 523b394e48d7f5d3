//! The graph of a case with changes in a cluster: statements that the servers' files have and the graph has
//! not, and the other way round.
//!
//! # Shape
//! Before the files of the servers are made, some statements are removed from the graph and others, of known
//! and new terms, are added; the writer of the cluster then takes all of this back. So the graph is that of
//! the case, read through changes in many of its segments. Statements of blank nodes and those with edges
//! stay.

use vervet::{Database, OutputFormat, QueryOptions};
use vervet_testkit::Random;

/// Of so many statements one is removed and put back; at most this many are.
const REMOVED_OF: u64 = 4;
const REMOVED_MAX: usize = 400;

/// Updates that are undone in the cluster.
pub(crate) struct Changes {
    /// Before the files are made.
    before: String,
    /// Takes them back.
    back: String,
}

/// Statements without blank nodes and edges, as rows of graph, subject, predicate and object.
const STATEMENTS: &str = "SELECT ?g ?s ?p ?o { { ?s ?p ?o } UNION { GRAPH ?g { ?s ?p ?o } } \
     FILTER(ISIRI(?s) && !ISBLANK(?o) && !ISTRIPLE(?o)) FILTER(!STRSTARTS(STR(?s), \"urn:vervet:edge:\")) \
     FILTER(!ISIRI(?o) || !STRSTARTS(STR(?o), \"urn:vervet:edge:\")) FILTER NOT EXISTS { ?s ?p ?o ~ ?e } }";

impl Changes {
    /// Changes of this graph, from a seed that is its number of statements.
    pub(crate) fn of(database: &Database) -> vervet::Result<Self> {
        let mut random = Random(database.snapshot().statement_count().wrapping_mul(0x9E37_79B9) | 1);
        let mut bytes = Vec::new();
        database.write(STATEMENTS, &QueryOptions::default(), OutputFormat::Tsv, &mut bytes)?;
        let text = String::from_utf8_lossy(&bytes);
        let mut removed = String::new();
        let (mut predicates, mut subjects) = (Vec::new(), Vec::new());
        let mut count = 0;
        for line in text.lines().skip(1) {
            let cells: Vec<&str> = line.split('\t').collect();
            let [graph, subject, predicate, object] = cells[..] else { continue };
            if predicates.len() < 40 && random.one_in(3) {
                predicates.push(predicate);
                subjects.push(subject);
            }
            if count < REMOVED_MAX && random.one_in(REMOVED_OF) {
                removed.push_str(&statement(graph, subject, predicate, object));
                count += 1;
            }
        }
        let mut added = String::new();
        for number in 0..20 {
            let predicate = match predicates.is_empty() {
                true => "<urn:change:p>",
                false => random.pick(&predicates),
            };
            let subject = match subjects.is_empty() || random.one_in(2) {
                true => format!("<urn:change:{number}>"),
                false => random.pick(&subjects).to_owned(),
            };
            added.push_str(&statement("", &subject, predicate, &format!("<urn:change:o{}>", number % 3)));
        }
        // New terms that no statement has in the end, and that queries must not see.
        let update = |kind: &str, data: &str| match data.is_empty() {
            true => String::new(),
            false => format!("{kind} DATA {{\n{data}}}"),
        };
        let joined = |one: String, other: String| match one.is_empty() {
            true => other,
            false => format!("{one} ;\n{other}"),
        };
        let extra = "<urn:change:late> <urn:change:later> \"a text of the changes alone\" .\n";
        let before = joined(update("DELETE", &removed), update("INSERT", &added));
        let back = joined(
            update("INSERT", &format!("{removed}{extra}")),
            update("DELETE", &format!("{added}{extra}")),
        );
        Ok(Self { before, back })
    }

    /// Changes the graph whose files are made.
    pub(crate) fn make(&self, database: &Database) -> vervet::Result<()> {
        database.update(&self.before).map(drop)
    }

    /// Takes the changes back.
    pub(crate) fn take_back(&self, database: &Database) -> vervet::Result<()> {
        database.update(&self.back).map(drop)
    }
}

fn statement(graph: &str, subject: &str, predicate: &str, object: &str) -> String {
    match graph.is_empty() {
        true => format!("{subject} {predicate} {object} .\n"),
        false => format!("GRAPH {graph} {{ {subject} {predicate} {object} }}\n"),
    }
}
