//! The queries of the load: light ones with constants from the data, heavy ones, and the expected number of
//! rows of each.
//!
//! The expected numbers are computed before the load starts, on one thread, from the same data in a database
//! embedded in this process.

use crate::Error;
use std::collections::HashMap;
use std::path::Path;
use std::time::{Duration, Instant};
use vervet::{Database, OutputFormat, QueryOptions};

/// Constants in the query texts, which are replaced by others from the data.
const DEPARTMENT: &str = "<http://www.Department0.University0.edu>";
const UNIVERSITY: &str = "<http://www.University0.edu>";

const PREFIX: &str = "PREFIX ub: <http://swat.cse.lehigh.edu/onto/univ-bench.owl#>\n";
const DEPARTMENTS: &str = "SELECT ?x { ?x a ub:Department }";
const UNIVERSITIES: &str = "SELECT DISTINCT ?x { ?d a ub:Department . ?d ub:subOrganizationOf ?x }";

/// The light mix of `vervet-bench light`: each query, its constant, and the query that selects other
/// constants.
const LIGHT: [(&str, &str, &str); 3] = [
    (include_str!("../../../bench/src/queries/q4.rq"), DEPARTMENT, DEPARTMENTS),
    (include_str!("../../../bench/src/queries/q5.rq"), DEPARTMENT, DEPARTMENTS),
    (include_str!("../../../bench/src/queries/q6.rq"), UNIVERSITY, UNIVERSITIES),
];

/// Joins, groups, orders, a path, and an export of one predicate.
const HEAVY: [(&str, &str); 10] = [
    ("q1", include_str!("../../../bench/src/queries/q1.rq")),
    ("q2", include_str!("../../../bench/src/queries/q2.rq")),
    ("q3", include_str!("../../../bench/src/queries/q3.rq")),
    ("q7", include_str!("../../../bench/src/queries/q7.rq")),
    ("group", "SELECT ?t (COUNT(?s) AS ?n) { ?s a ?t } GROUP BY ?t"),
    (
        "degrees",
        "SELECT ?c (COUNT(?s) AS ?n) { ?s ub:takesCourse ?c } GROUP BY ?c ORDER BY DESC(?n) LIMIT 50",
    ),
    ("order", "SELECT ?s ?n { ?s ub:name ?n ; ub:memberOf ?d } ORDER BY ?n ?s LIMIT 1000"),
    ("path", "SELECT ?s { ?s (ub:advisor/ub:worksFor/ub:subOrganizationOf)+ <http://www.University0.edu> }"),
    (
        "optional",
        "SELECT ?s ?e { ?s a ub:FullProfessor OPTIONAL { ?a ub:publicationAuthor ?s . ?a ub:name ?e } }",
    ),
    ("export", "SELECT ?s ?o { ?s ub:emailAddress ?o }"),
];

/// Too many rows for any timeout.
const PRODUCT: &str = "SELECT (COUNT(*) AS ?n) { ?a ub:name ?b . ?c ub:name ?d . ?e ub:name ?f \
                       FILTER(CONCAT(?b, ?d, ?f) = \"x\") }";
/// Too many rows to sort within the memory cap.
const SORTED_PRODUCT: &str = "SELECT * { ?a ub:name ?b . ?c ub:name ?d } ORDER BY DESC(?b) ?d";

/// Maximum embedded time of a query from the directory; longer queries are omitted.
const HEAVY_MAX: Duration = Duration::from_secs(20);

/// A light query.
pub(crate) struct Light {
    pub(crate) text: String,
    pub(crate) rows: u64,
}

/// A heavy query.
pub(crate) struct Heavy {
    pub(crate) name: String,
    pub(crate) text: String,
    pub(crate) path: &'static str,
    pub(crate) expected: Expected,
}

/// The expected outcome of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Expected {
    /// This number of rows.
    Rows(u64),
    /// This status, which reports a limit.
    Limit(u16),
    /// No response: the client disconnects after some time.
    Disconnect,
}

/// All queries.
pub(crate) struct Queries {
    /// For each query of the mix, one text for each constant.
    pub(crate) light: Vec<Vec<Light>>,
    pub(crate) heavy: Vec<Heavy>,
}

impl Queries {
    /// The queries for `data`, with the heavy queries of `directory` if given. Computes the expected results.
    pub(crate) fn of(data: &Path, directory: Option<&Path>) -> Result<Self, Error> {
        let database = Database::in_memory();
        database.load_file(data)?;
        let count = |text: &str, timeout: Option<Duration>| {
            let options = QueryOptions { threads: Some(1), timeout, ..QueryOptions::default() };
            database
                .write(text, &options, OutputFormat::Tsv, &mut std::io::sink())
                .map(|written| written.rows)
        };
        let mut constants: HashMap<&str, Vec<String>> = HashMap::new();
        let mut light = Vec::new();
        for (text, constant, others) in LIGHT {
            if !constants.contains_key(others) {
                constants.insert(others, iris(&database, others)?);
            }
            let mut all = Vec::new();
            for iri in &constants[others] {
                let text = text.replace(constant, iri);
                all.push(Light { rows: count(&text, None)?, text });
            }
            if all.is_empty() {
                return Err("the data have no departments of universities".into());
            }
            light.push(all);
        }
        let mut heavy = Vec::new();
        for (name, text) in HEAVY {
            let text = if text.contains("PREFIX") { text.to_owned() } else { format!("{PREFIX}{text}") };
            let expected = Expected::Rows(count(&text, None)?);
            heavy.push(Heavy { name: name.to_owned(), text, path: "/query", expected });
        }
        let mut files = Vec::new();
        directory.map_or(Ok(()), |directory| collect(directory, &mut files))?;
        for file in files {
            let text = std::fs::read_to_string(&file)?;
            let name = file.file_stem().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
            let begin = Instant::now();
            match count(&text, Some(HEAVY_MAX)) {
                Ok(rows) => {
                    heavy.push(Heavy { name, text, path: "/query", expected: Expected::Rows(rows) });
                }
                Err(error) => {
                    eprintln!("{name} is omitted after {:.1} s: {error}", begin.elapsed().as_secs_f64());
                }
            }
        }
        for (name, text, path, expected) in [
            ("endless product", PRODUCT, "/query?timeout=2", Expected::Limit(504)),
            ("sorted product", SORTED_PRODUCT, "/query", Expected::Limit(507)),
            ("product, disconnect", PRODUCT, "/query", Expected::Disconnect),
        ] {
            heavy.push(Heavy { name: name.to_owned(), text: format!("{PREFIX}{text}"), path, expected });
        }
        Ok(Self { light, heavy })
    }
}

/// The values of `?x`, as IRIs in brackets.
fn iris(database: &Database, text: &str) -> Result<Vec<String>, Error> {
    let mut out = Vec::new();
    database.write(&format!("{PREFIX}{text}"), &QueryOptions::default(), OutputFormat::Tsv, &mut out)?;
    Ok(String::from_utf8(out)?.lines().skip(1).map(str::to_owned).collect())
}

/// Appends the query files below a directory in the order of their paths, without templates.
fn collect(directory: &Path, files: &mut Vec<std::path::PathBuf>) -> Result<(), Error> {
    let mut entries = std::fs::read_dir(directory)?.collect::<Result<Vec<_>, _>>()?;
    entries.sort_by_key(std::fs::DirEntry::path);
    for path in entries.into_iter().map(|entry| entry.path()) {
        let name = path.to_string_lossy();
        if path.is_dir() {
            collect(&path, files)?;
        } else if name.ends_with(".rq") && !name.ends_with(".template.rq") {
            files.push(path);
        }
    }
    Ok(())
}
