//! The W3C's tests of queries in SPARQL 1.0, 1.1 and 1.2 (unapproved drafts): syntax, and answers in every
//! result format.
//!
//! Answers are written by our result writers, in the format of the expected file, and read back by another
//! library, so a test covers the writer too. `SELECT` is compared as a bag (in order where the query has
//! `ORDER BY` or the expected rows are numbered), with one renaming of blank nodes over the whole result, and
//! graphs up to isomorphism. Terms must be identical, lexical forms included; but where a query computes (or
//! the expected file is TSV, which leaves the form of numbers open), decimals, floats and doubles may be
//! written differently: the files differ among themselves on `2`, `2.0` and `2.0E0`.
//!
//! Updates run on the reference snapshot (see `update`).
//!
//! # Not here
//! Entailment, protocols: counted as not run.

use crate::compare::{Row, isomorphic, same_rows};
use crate::manifest::{File, Test, tests};
use crate::report::Outcome;
use crate::test_failure::{TestFailure, action};
use crate::{Report, guarded, update};
use oxrdf::vocab::{rdf, xsd};
use oxrdf::{
    Dataset, Graph, GraphName, Literal, NamedNode, NamedNodeRef, NamedOrBlankNodeRef, Quad, Term, TermRef,
    Triple,
};
use oxrdfio::{RdfFormat, RdfParser};
use oxsdatatypes::{Decimal, Double};
use sparesults::{QueryResultsFormat, QueryResultsParser, ReaderQueryResultsParserOutput};
use spargebra::{Query, SparqlParser};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use vervet::{
    Answer, Database, Environment, Error, ErrorKind, Format, LoadOptions, OutputFormat, QueryOptions,
    ServiceAnswer, ServiceClient, Services, Source,
};
use vervet_algebra::Node;

const MANIFESTS: [&str; 3] =
    ["sparql/sparql10/manifest.ttl", "sparql/sparql11/manifest-all.ttl", "sparql/sparql12/manifest.ttl"];

/// Folders of other specifications.
const LATER: [&str; 1] = ["sparql11/entailment"];

/// The location of databases, in a simulated environment.
const DIRECTORY: &str = "/database";

const RESULT_SET: NamedNodeRef<'_> = rs("http://www.w3.org/2001/sw/DataAccess/tests/result-set#ResultSet");
const RESULT_VARIABLE: NamedNodeRef<'_> =
    rs("http://www.w3.org/2001/sw/DataAccess/tests/result-set#resultVariable");
const SOLUTION: NamedNodeRef<'_> = rs("http://www.w3.org/2001/sw/DataAccess/tests/result-set#solution");
const BINDING: NamedNodeRef<'_> = rs("http://www.w3.org/2001/sw/DataAccess/tests/result-set#binding");
const VARIABLE: NamedNodeRef<'_> = rs("http://www.w3.org/2001/sw/DataAccess/tests/result-set#variable");
const VALUE: NamedNodeRef<'_> = rs("http://www.w3.org/2001/sw/DataAccess/tests/result-set#value");
const INDEX: NamedNodeRef<'_> = rs("http://www.w3.org/2001/sw/DataAccess/tests/result-set#index");
const BOOLEAN: NamedNodeRef<'_> = rs("http://www.w3.org/2001/sw/DataAccess/tests/result-set#boolean");

const fn rs(iri: &str) -> NamedNodeRef<'_> {
    NamedNodeRef::new_unchecked(iri)
}

/// Runs the suite below `root` (the folder with `sparql`).
///
/// # Errors
/// Missing or malformed manifests.
pub fn run(root: &Path, report: &mut Report) -> Result<(), String> {
    for manifest in MANIFESTS {
        for test in tests(root, manifest)? {
            report.add_outcome(&test.category(), &test.name, outcome(&test));
        }
    }
    Ok(())
}

fn outcome(test: &Test) -> Outcome {
    if LATER.contains(&test.folder.as_str()) {
        return Outcome::NotRun;
    }
    let result = guarded(|| match test.kind.as_str() {
        "PositiveUpdateSyntaxTest" | "PositiveUpdateSyntaxTest11" => update::positive(test),
        "NegativeUpdateSyntaxTest" | "NegativeUpdateSyntaxTest11" => update::negative(test),
        // A suite of updates uses the type names of negative query tests.
        "NegativeSyntaxTest" | "NegativeSyntaxTest11" if is_update(test) => update::negative(test),
        "UpdateEvaluationTest" => update::evaluation(test),
        "PositiveSyntaxTest" | "PositiveSyntaxTest11" => positive(test),
        "NegativeSyntaxTest" | "NegativeSyntaxTest11" => negative(test),
        "QueryEvaluationTest" | "CSVResultFormatTest" => evaluation(test),
        _ => Err(TestFailure::NotRun),
    });
    match result {
        Ok(()) => Outcome::Passed,
        Err(TestFailure::NotRun) => Outcome::NotRun,
        Err(TestFailure::Unsupported(reason)) => Outcome::Unsupported(reason),
        Err(TestFailure::Failed(reason)) => Outcome::Failed(reason),
    }
}

fn is_update(test: &Test) -> bool {
    test.action.as_ref().is_some_and(|file| file.extension() == "ru")
}

fn options(file: &File) -> QueryOptions {
    QueryOptions { base_iri: Some(file.iri.clone()), ..QueryOptions::default() }
}

fn positive(test: &Test) -> Result<(), TestFailure> {
    let (file, text) = action(test)?;
    Database::in_memory().prepare_with(&text, &options(file))?;
    Ok(())
}

fn negative(test: &Test) -> Result<(), TestFailure> {
    let (file, text) = action(test)?;
    match Database::in_memory().prepare_with(&text, &options(file)) {
        Ok(_) => Err(TestFailure::Failed(format!("the query is accepted:\n{text}"))),
        Err(error) if error.kind() == ErrorKind::Query => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// [`answer`] on an in-memory database, on one whose statements were all inserted by a transaction, and on
/// one that was reopened from the files written by loads.
fn evaluation(test: &Test) -> Result<(), TestFailure> {
    let base = loaded(test, crate::partitions::database(&test.name))?;
    let base = crate::cluster::spread(base).map_err(TestFailure::Failed)?;
    answer(test, &base)?;
    if base.is_spread() {
        return Ok(());
    }
    if let Some(delta) = inserted(&base)? {
        answer(test, &delta).map_err(|failure| match failure {
            TestFailure::Failed(reason) => TestFailure::Failed(format!("only when inserted: {reason}")),
            other => other,
        })?;
    }
    let environment = Environment::simulated(1);
    loaded(test, Database::open_or_create_in(environment.clone(), DIRECTORY)?)?;
    let reopened = match Database::open_in(environment, DIRECTORY) {
        Err(error) if error.kind() == ErrorKind::Input && test.input.is_empty() => {
            // Nothing was loaded, so there are no files.
            return Ok(());
        }
        reopened => reopened?,
    };
    answer(test, &reopened).map_err(|failure| match failure {
        TestFailure::Failed(reason) => TestFailure::Failed(format!("only after opening it again: {reason}")),
        other => other,
    })
}

/// The database with the data of a test.
fn loaded(test: &Test, database: Database) -> Result<Database, TestFailure> {
    for data in &test.input.data {
        load(&database, data, None)?;
    }
    for (data, name) in &test.input.graph_data {
        load(&database, data, Some(name))?;
    }
    if test.input.is_empty() {
        // The query itself names the files of its graphs.
        for name in graphs_of_query(test)? {
            if let Some(file) = test.action.as_ref().and_then(|file| file.sibling(&name)) {
                load(&database, &file, Some(&name))?;
            }
        }
    }
    Ok(database)
}

/// The graphs in the `FROM` and `FROM NAMED` clauses of the query, as parsed by the other library; none if it
/// fails.
fn graphs_of_query(test: &Test) -> Result<Vec<String>, TestFailure> {
    let (file, text) = action(test)?;
    let Ok(parser) = SparqlParser::new().with_base_iri(&file.iri) else { return Ok(Vec::new()) };
    let Ok(query) = parser.parse_query(&text) else { return Ok(Vec::new()) };
    let mut names = Vec::new();
    if let Query::Select { dataset: Some(dataset), .. }
    | Query::Construct { dataset: Some(dataset), .. }
    | Query::Describe { dataset: Some(dataset), .. }
    | Query::Ask { dataset: Some(dataset), .. } = query
    {
        for name in dataset.default.iter().chain(dataset.named.iter().flatten()) {
            if !names.iter().any(|other| other == name.as_str()) {
                names.push(name.as_str().to_owned());
            }
        }
    }
    Ok(names)
}

/// A database with the same statements, all inserted by one transaction; `None` if statements have
/// identities, which cannot be inserted one by one.
fn inserted(base: &Database) -> Result<Option<Database>, TestFailure> {
    let mut text = Vec::new();
    base.export(Format::NQuads, &mut text)?;
    let parser = RdfParser::from_format(RdfFormat::NQuads);
    let quads: Result<Vec<Quad>, _> = parser.for_slice(&text).collect();
    let quads = quads.map_err(|error| error.to_string())?;
    if quads.iter().any(|quad| quad.predicate == rdf::REIFIES) {
        return Ok(None);
    }
    let database = Database::in_memory();
    let mut transaction = database.begin()?;
    transaction.insert_all(quads.iter().map(Quad::as_ref))?;
    transaction.commit()?;
    Ok(Some(database))
}

/// The endpoints of a test, each a database that may query the others.
fn endpoints(test: &Test) -> Result<Option<Services>, TestFailure> {
    if test.services.is_empty() {
        return Ok(None);
    }
    let mut databases = Vec::new();
    for (endpoint, data) in &test.services {
        let database = crate::partitions::database(&test.name);
        load(&database, data, None)?;
        databases.push((endpoint.clone(), database));
    }
    Ok(Some(services(Endpoints(databases))))
}

fn services(endpoints: Endpoints) -> Services {
    let names = endpoints.0.iter().map(|(endpoint, _)| endpoint.clone()).collect();
    Services { endpoints: names, client: Arc::new(endpoints) }
}

/// Databases as endpoints.
#[derive(Clone, Debug)]
struct Endpoints(Vec<(String, Database)>);

impl ServiceClient for Endpoints {
    fn ask(&self, endpoint: &str, query: &str, _: Option<Duration>) -> vervet::Result<ServiceAnswer> {
        let known = self.0.iter().find(|(other, _)| other == endpoint);
        let (_, database) = known.ok_or_else(|| Error::new(ErrorKind::Input, "no such endpoint"))?;
        let options = QueryOptions { services: Some(services(self.clone())), ..QueryOptions::default() };
        let mut body = Vec::new();
        database.write(query, &options, OutputFormat::Json, &mut body)?;
        Ok(ServiceAnswer { media_type: "application/sparql-results+json".to_owned(), body })
    }
}

/// Runs the query of a test on one and on several threads and compares its answers.
fn answer(test: &Test, database: &Database) -> Result<(), TestFailure> {
    let (file, text) = action(test)?;
    for (threads, heavy_from) in crate::CONFIGURATIONS {
        for optimize in [true, false] {
            let services = endpoints(test)?;
            let options =
                QueryOptions { heavy_from, optimize, services, ..options(file).with_threads(threads) };
            answer_with(test, database, &text, &options).map_err(|failure| match failure {
                TestFailure::Failed(what) => {
                    let planned = if optimize { "" } else { ", without the optimizer" };
                    TestFailure::Failed(format!("on {threads} threads{planned}: {what}"))
                }
                other => other,
            })?;
        }
    }
    Ok(())
}

fn answer_with(
    test: &Test,
    database: &Database,
    text: &str,
    options: &QueryOptions,
) -> Result<(), TestFailure> {
    let expected_file = test.result.as_ref().ok_or_else(|| "the test has no result".to_owned())?;
    // First, so that an unsupported feature is reported as such.
    let prepared = database.prepare_with(text, options)?;
    let describe = |what: String| TestFailure::Failed(format!("{what}\n{}", text.trim()));
    if expected_file.extension() == "csv" {
        let mut csv = Vec::new();
        prepared.write_with(options, OutputFormat::Csv, &mut csv)?;
        let (ours, theirs) = (csv_rows(&csv)?, csv_rows(&expected_file.read()?)?);
        return match same_rows(&ours, &theirs, false)? {
            true => Ok(()),
            false => Err(describe(format!("the CSV is\n{}", String::from_utf8_lossy(&csv)))),
        };
    }
    let (format, expected) = expected(expected_file)?;
    let actual = if prepared.is_graph() {
        match prepared.run_with(options)? {
            Answer::Graph(triples) => Results::Graph(triples),
            _ => return Err(TestFailure::Failed("the answer of this query is not a graph".to_owned())),
        }
    } else {
        let mut written = Vec::new();
        let ours = match format {
            QueryResultsFormat::Xml => OutputFormat::Xml,
            QueryResultsFormat::Tsv => OutputFormat::Tsv,
            _ => OutputFormat::Json,
        };
        prepared.write_with(options, ours, &mut written)?;
        read(&written, format).map_err(|error| {
            format!("the output cannot be parsed: {error}\n{}", String::from_utf8_lossy(&written))
        })?
    };
    let root = &prepared.query().root;
    let mode = ComparisonMode {
        ordered: is_ordered(root),
        lax: test.lax,
        by_value: computes(root) || format == QueryResultsFormat::Tsv,
    };
    if same(&expected, &actual, &mode)? {
        return Ok(());
    }
    Err(describe(format!("expected {}\nfound    {}", expected.show(), actual.show())))
}

/// Loads a file into the default graph, or into the graph with this name.
fn load(database: &Database, file: &File, graph: Option<&str>) -> Result<(), TestFailure> {
    let graph = match graph {
        Some(name) => Some(NamedNode::new(name).map_err(|error| format!("{name}: {error}"))?),
        None => None,
    };
    let options =
        LoadOptions { graph, base_iri: Some(file.iri.clone()), threads: 1, ..LoadOptions::default() };
    database.load(vec![Source::path(&file.path)], &options)?;
    Ok(())
}

/// The result of a query.
#[derive(Debug)]
enum Results {
    Boolean(bool),
    Rows {
        /// In alphabetical order, like the cells.
        variables: Vec<String>,
        rows: Vec<Row>,
        /// Whether the rows are numbered, so that their order counts.
        ordered: bool,
    },
    Graph(Vec<Triple>),
}

impl Results {
    /// A readable form.
    fn show(&self) -> String {
        match self {
            Self::Boolean(value) => value.to_string(),
            Self::Rows { variables, rows, .. } => {
                let mut text = format!("{} rows: {}", rows.len(), variables.join(" "));
                for row in rows {
                    let cells: Vec<_> = row
                        .iter()
                        .map(|cell| cell.as_ref().map_or("-".to_owned(), ToString::to_string))
                        .collect();
                    text.push_str("\n    ");
                    text.push_str(&cells.join(" "));
                }
                text
            }
            Self::Graph(triples) => {
                let lines: Vec<_> = triples.iter().map(|triple| format!("\n    {triple} .")).collect();
                format!("{} triples:{}", triples.len(), lines.concat())
            }
        }
    }
}

/// The comparison mode of results.
struct ComparisonMode {
    /// The query defines the order of rows.
    ordered: bool,
    /// The query leaves the multiplicity of rows open.
    lax: bool,
    /// Numbers are compared by value.
    by_value: bool,
}

/// Whether the rows have a defined order.
fn is_ordered(node: &Node) -> bool {
    match node {
        Node::OrderBy { .. } => true,
        Node::Project { input, .. }
        | Node::Slice { input, .. }
        | Node::Distinct(input)
        | Node::Reduced(input) => is_ordered(input),
        _ => false,
    }
}

/// Whether the query computes values.
fn computes(node: &Node) -> bool {
    match node {
        Node::Extend { .. } | Node::Group { .. } => true,
        Node::Patterns(_) | Node::Path(_) | Node::Service(_) | Node::Values { .. } => false,
        Node::Join(nodes) | Node::Union(nodes) => nodes.iter().any(computes),
        Node::LeftJoin { left, right, .. } | Node::Minus { left, right } => computes(left) || computes(right),
        Node::Filter { input, .. }
        | Node::Project { input, .. }
        | Node::OrderBy { input, .. }
        | Node::Slice { input, .. }
        | Node::Distinct(input)
        | Node::Reduced(input) => computes(input),
    }
}

/// The rows with decimals, floats and doubles in a uniform spelling.
fn respelled(rows: &[Row]) -> Vec<Row> {
    let respell = |term: &Term| match term {
        Term::Literal(literal) => {
            let (text, datatype) = (literal.value(), literal.datatype());
            let text = if datatype == xsd::DECIMAL {
                text.parse::<Decimal>().map(|value| value.to_string()).ok()
            } else if datatype == xsd::DOUBLE || datatype == xsd::FLOAT {
                text.parse::<Double>().map(|value| value.to_string()).ok()
            } else {
                None
            };
            match text {
                Some(text) => Literal::new_typed_literal(text, datatype).into(),
                None => term.clone(),
            }
        }
        _ => term.clone(),
    };
    rows.iter().map(|row| row.iter().map(|cell| cell.as_ref().map(respell)).collect()).collect()
}

fn same(expected: &Results, actual: &Results, mode: &ComparisonMode) -> Result<bool, String> {
    Ok(match (expected, actual) {
        (Results::Boolean(expected), Results::Boolean(actual)) => expected == actual,
        (
            Results::Rows { variables: expected_names, rows: expected, ordered },
            Results::Rows { variables, rows, .. },
        ) => {
            if expected_names != variables {
                return Ok(false);
            }
            if mode.lax {
                // Each solution at least once; the file does not specify the maximum multiplicity.
                return same_rows(&distinct(expected), &distinct(rows), false);
            }
            let ordered = mode.ordered || *ordered;
            same_rows(expected, rows, ordered)?
                || (mode.by_value && same_rows(&respelled(expected), &respelled(rows), ordered)?)
        }
        (Results::Graph(expected), Results::Graph(actual)) => {
            let dataset = |triples: &[Triple]| -> Dataset {
                triples.iter().map(|triple| triple.clone().in_graph(GraphName::DefaultGraph)).collect()
            };
            isomorphic(dataset(expected), dataset(actual))
        }
        _ => false,
    })
}

fn distinct(rows: &[Row]) -> Vec<Row> {
    let mut list: Vec<Row> = Vec::new();
    for row in rows {
        if !list.contains(row) {
            list.push(row.clone());
        }
    }
    list
}

/// The expected result, and the output format for ours.
fn expected(file: &File) -> Result<(QueryResultsFormat, Results), String> {
    let format = match file.extension() {
        "srx" => QueryResultsFormat::Xml,
        "srj" => QueryResultsFormat::Json,
        "tsv" => QueryResultsFormat::Tsv,
        _ => return Ok((QueryResultsFormat::Json, of_graph(&file.graph()?)?)),
    };
    Ok((format, read(&file.read()?, format)?))
}

fn read(bytes: &[u8], format: QueryResultsFormat) -> Result<Results, String> {
    let parsed =
        QueryResultsParser::from_format(format).for_reader(bytes).map_err(|error| error.to_string())?;
    let solutions = match parsed {
        ReaderQueryResultsParserOutput::Boolean(value) => return Ok(Results::Boolean(value)),
        ReaderQueryResultsParserOutput::Solutions(solutions) => solutions,
    };
    let names: BTreeSet<String> =
        solutions.variables().iter().map(|variable| variable.as_str().to_owned()).collect();
    let variables: Vec<String> = names.into_iter().collect();
    let mut rows = Vec::new();
    for solution in solutions {
        let solution = solution.map_err(|error| error.to_string())?;
        rows.push(variables.iter().map(|name| solution.get(name.as_str()).cloned()).collect());
    }
    Ok(Results::Rows { variables, rows, ordered: false })
}

/// A result in the vocabulary `rs:`, or a graph that is the result itself.
fn of_graph(graph: &Graph) -> Result<Results, String> {
    let Some(set) = graph.subject_for_predicate_object(rdf::TYPE, RESULT_SET) else {
        return Ok(Results::Graph(graph.iter().map(Triple::from).collect()));
    };
    if let Some(TermRef::Literal(value)) = graph.object_for_subject_predicate(set, BOOLEAN) {
        return Ok(Results::Boolean(value.value() == "true"));
    }
    let names: BTreeSet<String> = graph
        .objects_for_subject_predicate(set, RESULT_VARIABLE)
        .filter_map(|term| match term {
            TermRef::Literal(name) => Some(name.value().to_owned()),
            _ => None,
        })
        .collect();
    let variables: Vec<String> = names.into_iter().collect();
    let mut numbered: Vec<(i64, Row)> = Vec::new();
    let mut ordered = false;
    for solution in graph.objects_for_subject_predicate(set, SOLUTION) {
        let solution = subject(solution)?;
        let mut row = vec![None; variables.len()];
        for binding in graph.objects_for_subject_predicate(solution, BINDING) {
            let binding = subject(binding)?;
            let variable = graph.object_for_subject_predicate(binding, VARIABLE);
            let value = graph.object_for_subject_predicate(binding, VALUE);
            let (Some(TermRef::Literal(variable)), Some(value)) = (variable, value) else {
                return Err("a binding of the expected result is not whole".to_owned());
            };
            let column = variables.iter().position(|name| name == variable.value());
            row[column.ok_or("a binding of the expected result has an unknown variable")?] =
                Some(value.into_owned());
        }
        let index = match graph.object_for_subject_predicate(solution, INDEX) {
            Some(TermRef::Literal(index)) if index.datatype() == xsd::INTEGER => index.value().parse().ok(),
            _ => None,
        };
        ordered |= index.is_some();
        numbered.push((index.unwrap_or(0), row));
    }
    numbered.sort_by_key(|(index, _)| *index);
    Ok(Results::Rows { variables, rows: numbered.into_iter().map(|(_, row)| row).collect(), ordered })
}

fn subject(term: TermRef<'_>) -> Result<NamedOrBlankNodeRef<'_>, String> {
    match term {
        TermRef::NamedNode(node) => Ok(node.into()),
        TermRef::BlankNode(node) => Ok(node.into()),
        other => Err(format!("{other} has no properties")),
    }
}

/// The lines of a CSV file, the header included. CSV does not record the kind of terms, so only cells that
/// look like blank nodes may be renamed.
fn csv_rows(bytes: &[u8]) -> Result<Vec<Row>, String> {
    let mut reader = csv::ReaderBuilder::new().has_headers(false).from_reader(bytes);
    let cell = |text: &str| match text.strip_prefix("_:") {
        Some(label) => oxrdf::BlankNode::new_unchecked(label).into(),
        None => Literal::from(text).into(),
    };
    (reader.records())
        .map(|record| {
            let record = record.map_err(|error| error.to_string())?;
            Ok(record.iter().map(|text| Some(cell(text))).collect())
        })
        .collect()
}
