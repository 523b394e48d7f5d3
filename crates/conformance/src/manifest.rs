//! Manifests of the W3C suites: Turtle files that list tests, or further manifests.
//!
//! # Not here
//! The semantics of the test types: see `sparql` and `rdf`.

use oxrdf::vocab::{rdf, rdfs};
use oxrdf::{Graph, NamedNodeRef, NamedOrBlankNodeRef, TermRef};
use oxrdfio::{RdfFormat, RdfParser};
use std::fs;
use std::path::{Path, PathBuf};

/// The published location of the suites; IRIs of tests and files begin with it.
const BASE: &str = "https://w3c.github.io/rdf-tests/";

const ENTRIES: NamedNodeRef<'_> = mf("http://www.w3.org/2001/sw/DataAccess/tests/test-manifest#entries");
const INCLUDE: NamedNodeRef<'_> = mf("http://www.w3.org/2001/sw/DataAccess/tests/test-manifest#include");
const ACTION: NamedNodeRef<'_> = mf("http://www.w3.org/2001/sw/DataAccess/tests/test-manifest#action");
const RESULT: NamedNodeRef<'_> = mf("http://www.w3.org/2001/sw/DataAccess/tests/test-manifest#result");
const CARDINALITY: NamedNodeRef<'_> =
    mf("http://www.w3.org/2001/sw/DataAccess/tests/test-manifest#resultCardinality");
const QUERY: NamedNodeRef<'_> = mf("http://www.w3.org/2001/sw/DataAccess/tests/test-query#query");
const DATA: NamedNodeRef<'_> = mf("http://www.w3.org/2001/sw/DataAccess/tests/test-query#data");
const GRAPH_DATA: NamedNodeRef<'_> = mf("http://www.w3.org/2001/sw/DataAccess/tests/test-query#graphData");
const GRAPH: NamedNodeRef<'_> = mf("http://www.w3.org/2001/sw/DataAccess/tests/test-query#graph");
const SERVICE_DATA: NamedNodeRef<'_> =
    mf("http://www.w3.org/2001/sw/DataAccess/tests/test-query#serviceData");
const ENDPOINT: NamedNodeRef<'_> = mf("http://www.w3.org/2001/sw/DataAccess/tests/test-query#endpoint");
const REQUEST: NamedNodeRef<'_> = mf("http://www.w3.org/2009/sparql/tests/test-update#request");
const UPDATE_DATA: NamedNodeRef<'_> = mf("http://www.w3.org/2009/sparql/tests/test-update#data");
const UPDATE_GRAPH_DATA: NamedNodeRef<'_> = mf("http://www.w3.org/2009/sparql/tests/test-update#graphData");
const UPDATE_GRAPH: NamedNodeRef<'_> = mf("http://www.w3.org/2009/sparql/tests/test-update#graph");
/// The properties and values that mark a test as approved, in both vocabularies.
const APPROVALS: [[NamedNodeRef<'_>; 2]; 2] = [
    [
        mf("http://www.w3.org/2001/sw/DataAccess/tests/test-dawg#approval"),
        mf("http://www.w3.org/2001/sw/DataAccess/tests/test-dawg#Approved"),
    ],
    [mf("http://www.w3.org/ns/rdftest#approval"), mf("http://www.w3.org/ns/rdftest#Approved")],
];

const fn mf(iri: &str) -> NamedNodeRef<'_> {
    NamedNodeRef::new_unchecked(iri)
}

/// A file of a suite: its local path and its IRI.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct File {
    pub path: PathBuf,
    pub iri: String,
}

impl File {
    fn new(root: &Path, iri: &str) -> Option<Self> {
        let name = iri.strip_prefix(BASE)?.split('#').next()?;
        Some(Self { path: root.join(name), iri: iri.to_owned() })
    }

    /// The file with this IRI in the same suite.
    pub(crate) fn sibling(&self, iri: &str) -> Option<Self> {
        let (folder, name) = iri.rsplit_once('/')?;
        let is_beside = self.iri.rsplit_once('/').is_some_and(|(other, _)| other == folder);
        is_beside.then(|| Self { path: self.path.with_file_name(name), iri: iri.to_owned() })
    }

    /// The file extension.
    pub(crate) fn extension(&self) -> &str {
        self.path.extension().and_then(|extension| extension.to_str()).unwrap_or_default()
    }

    pub(crate) fn read(&self) -> Result<Vec<u8>, String> {
        fs::read(&self.path).map_err(|error| format!("could not read {}: {error}", self.path.display()))
    }

    /// Its content as text.
    pub(crate) fn read_text(&self) -> Result<String, String> {
        String::from_utf8(self.read()?).map_err(|error| format!("{}: {error}", self.path.display()))
    }

    /// The statements of a file of this format, parsed by the library rather than by our loader.
    pub(crate) fn quads(&self, format: RdfFormat) -> Result<Vec<oxrdf::Quad>, String> {
        let parser =
            RdfParser::from_format(format).with_base_iri(&self.iri).map_err(|error| error.to_string())?;
        let quads: Result<_, _> = parser.for_slice(&self.read()?).collect();
        quads.map_err(|error| format!("could not read {}: {error}", self.path.display()))
    }

    /// The triples of a Turtle or RDF/XML file.
    pub(crate) fn graph(&self) -> Result<Graph, String> {
        let format = if self.extension() == "rdf" { RdfFormat::RdfXml } else { RdfFormat::Turtle };
        Ok(self.quads(format)?.into_iter().map(oxrdf::Triple::from).collect())
    }
}

/// The files of a dataset.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Files {
    /// Files of the default graph.
    pub data: Vec<File>,
    /// Files of named graphs, with the graph names.
    pub graph_data: Vec<(File, String)>,
}

impl Files {
    /// The files that a node of a manifest names, in the vocabulary of queries or of updates.
    fn of(root: &Path, graph: &Graph, node: NamedOrBlankNodeRef<'_>, update: bool) -> Self {
        let [data, graph_data, file_of] = match update {
            true => [UPDATE_DATA, UPDATE_GRAPH_DATA, UPDATE_GRAPH],
            false => [DATA, GRAPH_DATA, GRAPH],
        };
        let file = |term: TermRef<'_>| file(root, term);
        let named = |term: TermRef<'_>| {
            if let Some(file) = file(term) {
                return Some((file.clone(), file.iri));
            }
            let named = subject(term)?;
            let file = graph.object_for_subject_predicate(named, file_of).and_then(file)?;
            match graph.object_for_subject_predicate(named, rdfs::LABEL) {
                Some(TermRef::Literal(label)) => Some((file, label.value().to_owned())),
                _ => Some((file.clone(), file.iri)),
            }
        };
        Self {
            data: graph.objects_for_subject_predicate(node, data).filter_map(file).collect(),
            graph_data: graph.objects_for_subject_predicate(node, graph_data).filter_map(named).collect(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.data.is_empty() && self.graph_data.is_empty()
    }
}

/// One test.
#[derive(Clone, Debug)]
pub(crate) struct Test {
    /// The end of its IRI.
    pub name: String,
    /// The end of the IRI of its type, such as `QueryEvaluationTest`.
    pub kind: String,
    /// Its folder, such as `sparql11/aggregates`.
    pub folder: String,
    /// Whether a working group has approved it.
    pub approved: bool,
    /// The query, the update or the document to run.
    pub action: Option<File>,
    /// Its input data.
    pub input: Files,
    /// Other endpoints, with their data.
    pub services: Vec<(String, File)>,
    /// The expected result.
    pub result: Option<File>,
    /// The expected dataset after an update.
    pub output: Files,
    /// Whether the multiplicity of rows is open (`REDUCED`).
    pub lax: bool,
}

impl Test {
    /// The category in the report: its folder; unapproved tests have categories of their own.
    pub(crate) fn category(&self) -> String {
        if self.approved { self.folder.clone() } else { format!("unapproved {}", self.folder) }
    }
}

/// All tests of the manifest `name` below `root`, and of the manifests that it includes.
///
/// # Errors
/// Missing or malformed manifests.
pub(crate) fn tests(root: &Path, name: &str) -> Result<Vec<Test>, String> {
    let mut tests = Vec::new();
    let mut ahead = vec![format!("{BASE}{name}")];
    while let Some(iri) = ahead.pop() {
        let file = File::new(root, &iri).ok_or_else(|| format!("{iri} is not in this suite"))?;
        let graph = file.graph()?;
        for included in listed(&graph, INCLUDE) {
            if let TermRef::NamedNode(node) = included {
                ahead.push(node.as_str().to_owned());
            }
        }
        let folder = iri.strip_prefix(BASE).unwrap_or(&iri).trim_end_matches("/manifest.ttl");
        let folder = folder.split_once('/').map_or(folder, |(_, rest)| rest);
        for entry in listed(&graph, ENTRIES) {
            if let TermRef::NamedNode(node) = entry {
                tests.push(test(root, &graph, folder, node));
            }
        }
    }
    Ok(tests)
}

/// The members of all lists that are values of `predicate`.
fn listed<'a>(graph: &'a Graph, predicate: NamedNodeRef<'_>) -> Vec<TermRef<'a>> {
    let mut members = Vec::new();
    for triple in graph.triples_for_predicate(predicate) {
        let mut rest = Some(triple.object);
        while let Some(list) = rest.and_then(subject) {
            members.extend(graph.object_for_subject_predicate(list, rdf::FIRST));
            rest = graph.object_for_subject_predicate(list, rdf::REST);
        }
    }
    members
}

fn subject(term: TermRef<'_>) -> Option<NamedOrBlankNodeRef<'_>> {
    match term {
        TermRef::NamedNode(node) => Some(node.into()),
        TermRef::BlankNode(node) => Some(node.into()),
        _ => None,
    }
}

fn test(root: &Path, graph: &Graph, folder: &str, id: NamedNodeRef<'_>) -> Test {
    let object = |predicate| graph.object_for_subject_predicate(id, predicate);
    let mut test = Test {
        name: tail(id.as_str()).to_owned(),
        kind: String::new(),
        folder: folder.to_owned(),
        approved: APPROVALS.iter().any(|[says, yes]| object(*says) == Some(TermRef::NamedNode(*yes))),
        action: None,
        input: Files::default(),
        services: Vec::new(),
        result: object(RESULT).and_then(|term| file(root, term)),
        output: Files::default(),
        lax: object(CARDINALITY).is_some(),
    };
    if let Some(TermRef::NamedNode(kind)) = object(rdf::TYPE) {
        tail(kind.as_str()).clone_into(&mut test.kind);
    }
    match object(ACTION) {
        Some(TermRef::BlankNode(action)) => {
            let request = graph.object_for_subject_predicate(action, REQUEST);
            let query = graph.object_for_subject_predicate(action, QUERY);
            test.action = request.or(query).and_then(|term| file(root, term));
            test.input = Files::of(root, graph, action.into(), request.is_some());
            for service in graph.objects_for_subject_predicate(action, SERVICE_DATA) {
                let TermRef::BlankNode(service) = service else { continue };
                let endpoint = graph.object_for_subject_predicate(service, ENDPOINT);
                let data =
                    graph.object_for_subject_predicate(service, DATA).and_then(|term| file(root, term));
                if let (Some(TermRef::NamedNode(endpoint)), Some(data)) = (endpoint, data) {
                    test.services.push((endpoint.as_str().to_owned(), data));
                }
            }
        }
        Some(action) => test.action = file(root, action),
        None => {}
    }
    if let Some(TermRef::BlankNode(result)) = object(RESULT) {
        test.output = Files::of(root, graph, result.into(), true);
    }
    test
}

fn file(root: &Path, term: TermRef<'_>) -> Option<File> {
    match term {
        TermRef::NamedNode(node) => File::new(root, node.as_str()),
        _ => None,
    }
}

fn tail(iri: &str) -> &str {
    iri.rsplit(['#', '/']).next().unwrap_or(iri)
}
