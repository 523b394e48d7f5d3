//! The W3C suites of the SPARQL 1.1 Protocol and the Graph Store Protocol: the manifests contain requests and
//! expectations as RDF, and the test sends them unchanged.

use crate::common::{Reply, Running};
use oxrdf::graph::CanonicalizationAlgorithm;
use oxrdf::{Graph, NamedOrBlankNode, Term, Triple};
use oxttl::TurtleParser;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use vervet::{Database, LoadOptions, NamedNode, Source};

const MF: &str = "http://www.w3.org/2001/sw/DataAccess/tests/test-manifest#";
const HT: &str = "http://www.w3.org/2011/http#";
const HTS: &str = "http://www.w3.org/2011/http-statusCodes#";
const CNT: &str = "http://www.w3.org/2011/content#";
const UT: &str = "http://www.w3.org/2009/sparql/tests/test-update#";
const RDF: &str = "http://www.w3.org/1999/02/22-rdf-syntax-ns#";
const RDFS: &str = "http://www.w3.org/2000/01/rdf-schema#";

/// The folder of the SPARQL 1.1 suites; `None`, with a message, if it is not available.
fn suites() -> Option<PathBuf> {
    let root = std::env::var_os("VERVET_TEST_DATA").map(PathBuf::from);
    let folder =
        root.map(|root| root.join("conformance/w3c-sparql/sparql/sparql11")).filter(|path| path.is_dir());
    if folder.is_none() {
        eprintln!("skipped: VERVET_TEST_DATA names no folder with conformance/w3c-sparql");
    }
    folder
}

/// A manifest as a graph.
struct Manifest(HashMap<NamedOrBlankNode, Vec<(String, Term)>>);

impl Manifest {
    fn read(file: &Path) -> Self {
        let bytes = std::fs::read(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let base = format!("file://{}", file.display());
        let mut statements: HashMap<_, Vec<_>> = HashMap::new();
        for triple in TurtleParser::new().with_base_iri(base).expect("an IRI").for_slice(&bytes) {
            let Triple { subject, predicate, object } = triple.expect("a manifest is Turtle");
            statements.entry(subject).or_default().push((predicate.into_string(), object));
        }
        Self(statements)
    }

    fn all<'a>(&'a self, subject: &Term, name: &str) -> Vec<&'a Term> {
        let subject = match subject {
            Term::NamedNode(node) => NamedOrBlankNode::from(node.clone()),
            Term::BlankNode(node) => NamedOrBlankNode::from(node.clone()),
            _ => return Vec::new(),
        };
        let all = self.0.get(&subject).into_iter().flatten();
        all.filter(|(predicate, _)| predicate == name).map(|(_, object)| object).collect()
    }

    fn one<'a>(&'a self, subject: &Term, namespace: &str, name: &str) -> Option<&'a Term> {
        self.all(subject, &format!("{namespace}{name}")).into_iter().next()
    }

    fn text(&self, subject: &Term, namespace: &str, name: &str) -> Option<String> {
        self.one(subject, namespace, name).map(|term| match term {
            Term::Literal(literal) => literal.value().to_owned(),
            Term::NamedNode(node) => node.as_str().to_owned(),
            other => panic!("{name} is {other}"),
        })
    }

    fn list(&self, list: Option<&Term>) -> Vec<Term> {
        let mut items = Vec::new();
        let mut rest = list.cloned();
        while let Some(list) = rest {
            items.extend(self.one(&list, RDF, "first").cloned());
            rest = self.one(&list, RDF, "rest").cloned();
        }
        items
    }

    fn entries(&self) -> Vec<Term> {
        let name = format!("{MF}entries");
        let mut lists = self.0.values().flatten().filter(|(predicate, _)| *predicate == name);
        self.list(lists.next().map(|(_, list)| list))
    }
}

/// Sends all requests of a test; an error describes the mismatch.
fn run(manifest: &Manifest, test: &Term, folder: &Path, prefix: &str, endpoint: &str) -> Result<(), String> {
    let database = Database::in_memory();
    for data in manifest.all(test, &format!("{UT}graphData")) {
        let file = manifest.text(data, UT, "graph").ok_or("data without a file")?;
        let file = folder.join(file.rsplit('/').next().unwrap_or_default());
        let name = manifest.text(data, RDFS, "label").ok_or("data without a name")?;
        let options = LoadOptions { graph: NamedNode::new(name).ok(), ..LoadOptions::default() };
        database.load(vec![Source::path(file)], &options).map_err(|error| error.to_string())?;
    }
    let action = manifest.one(test, MF, "action").ok_or("no action")?;
    let authority =
        manifest.text(action, HT, "connectionAuthority").unwrap_or_else(|| "localhost".to_owned());
    let name = authority.split(':').next().unwrap_or_default().to_owned();
    let server = Running::start(&database, |options| options.hosts.push(name));
    let mut location = String::new();
    for (number, request) in manifest.list(manifest.one(action, HT, "requests")).iter().enumerate() {
        let fail = |what: String| format!("request {number}: {what}");
        let method = manifest.text(request, HT, "methodName").ok_or("no method")?;
        let path = manifest.text(request, HT, "absolutePath").ok_or("no path")?;
        let path = path.replacen(prefix, endpoint, 1).replace("$LOCATION$", &location);
        let mut headers = vec![format!("Host: {authority}")];
        for header in manifest.list(manifest.one(request, HT, "headers")) {
            let part = |name| manifest.text(&header, HT, name).unwrap_or_default();
            headers.push(format!("{}: {}", part("fieldName"), part("fieldValue")));
        }
        let headers: Vec<&str> = headers.iter().map(String::as_str).collect();
        let body = manifest.one(request, HT, "body").map_or(Vec::new(), |body| {
            let text = manifest.text(body, CNT, "chars").unwrap_or_default();
            match manifest.text(body, CNT, "characterEncoding").as_deref() {
                Some("UTF-16") => text.encode_utf16().flat_map(u16::to_be_bytes).collect(),
                // Line ends of multipart bodies are written as CR and LF in the manifest.
                _ => text.into_bytes(),
            }
        });
        let reply = server.send(&method, &path, &headers, &body);
        let expected = manifest.one(request, HT, "resp").ok_or("no response")?;
        if manifest.text(expected, MF, "expectedLocation").is_some() {
            location = reply.header("location").ok_or_else(|| fail("no Location".to_owned()))?.to_owned();
        }
        check(manifest, expected, &reply).map_err(|what| {
            fail(format!("{method} {path}: {what}\n{}", String::from_utf8_lossy(&reply.body)))
        })?;
    }
    Ok(())
}

fn check(manifest: &Manifest, expected: &Term, reply: &Reply) -> Result<(), String> {
    let statuses = manifest.all(expected, &format!("{MF}expectedStatus"));
    let fits = |status: &&Term| {
        let Term::NamedNode(status) = status else { return false };
        match status.as_str().strip_prefix(HTS) {
            Some("StatusCode2xx") => reply.status / 100 == 2,
            Some("StatusCode3xx") => reply.status / 100 == 3,
            Some("StatusCode4xx") => reply.status / 100 == 4,
            Some("OK") => reply.status == 200,
            Some("Created") => reply.status == 201,
            Some("NoContent") => reply.status == 204,
            Some("NotFound") => reply.status == 404,
            other => panic!("the status {other:?} is new"),
        }
    };
    if !reply.whole || !statuses.iter().any(fits) {
        return Err(format!("status {} is none of {statuses:?}", reply.status));
    }
    match manifest.text(expected, MF, "expectedFormat").as_deref() {
        Some("boolean" | "tabular")
            if !reply.content_type().starts_with("application/sparql-results+json") =>
        {
            return Err(format!("not a result: {}", reply.content_type()));
        }
        Some("RDF") if !reply.content_type().starts_with("text/turtle") => {
            return Err(format!("not RDF: {}", reply.content_type()));
        }
        Some("tabular") if reply.json()["results"]["bindings"].as_array().is_none() => {
            return Err("no rows".to_owned());
        }
        Some("boolean" | "tabular" | "RDF") | None => {}
        Some(other) => panic!("the format {other} is new"),
    }
    if let Some(boolean) = manifest.text(expected, MF, "expectedBoolean")
        && reply.json()["boolean"] != serde_json::Value::Bool(boolean == "true")
    {
        return Err(format!("the answer is not {boolean}"));
    }
    for header in manifest.list(manifest.one(expected, HT, "headers")) {
        let name = manifest.text(&header, HT, "fieldName").unwrap_or_default();
        let value = manifest.text(&header, HT, "fieldValue").unwrap_or_default();
        if reply.header(&name).map(str::to_lowercase) != Some(value.to_lowercase()) {
            return Err(format!("{name} is {:?}, not {value}", reply.header(&name)));
        }
    }
    if let Some(body) = manifest.one(expected, HT, "body")
        && let Some(text) = manifest.text(body, CNT, "chars")
        && graph(&text) != graph(&reply.text())
    {
        return Err(format!("not the graph {text}"));
    }
    Ok(())
}

fn graph(text: &str) -> Graph {
    let triples = TurtleParser::new().for_slice(text.as_bytes());
    let mut graph: Graph = triples.map(|triple| triple.expect("Turtle")).collect();
    graph.canonicalize(CanonicalizationAlgorithm::Unstable);
    graph
}

/// Runs all tests of a manifest, of which there are `count`; those in `without` must fail.
fn suite(file: &str, count: usize, prefix: &str, endpoint: &str, without: &[&str]) {
    let Some(folder) = suites() else { return };
    let file = folder.join(file);
    let manifest = Manifest::read(&file);
    let tests = manifest.entries();
    let mut failures = Vec::new();
    for test in &tests {
        let Term::NamedNode(name) = test else { panic!("a test has a name") };
        let name = name.as_str().rsplit('#').next().unwrap_or_default();
        let done = run(&manifest, test, file.parent().expect("a folder"), prefix, endpoint);
        match (done, without.contains(&name)) {
            (Err(what), false) => failures.push(format!("{name}: {what}")),
            (Ok(()), true) => failures.push(format!("{name} passes: strike it off the list")),
            _ => {}
        }
    }
    assert!(failures.is_empty(), "{} of {}:\n{}", failures.len(), tests.len(), failures.join("\n"));
    assert_eq!(tests.len(), count, "the suite has another number of tests");
    eprintln!("{}: {} of {count} tests pass", file.display(), count - without.len());
}

#[test]
fn sparql_protocol() {
    // Missing features of the query language itself.
    let database = Database::in_memory();
    let mut without = Vec::new();
    if database.query("ASK { FILTER NOT EXISTS { ?s ?p ?o } }").is_err() {
        without.extend([
            "update_dataset_default_graphs",
            "update_dataset_named_graphs",
            "update_dataset_full",
        ]);
    }
    if database.query("ASK FROM <urn:g> { ?s ?p ?o }").is_err() {
        without.push("query_multiple_dataset");
    }
    suite("protocol/manifest.ttl", 34, "/sparql/", "/sparql", &without);
}

#[test]
fn graph_store_protocol_indirect() {
    suite("graph-store-protocol/manifest-indirect.ttl", 9, "/gsp", "/store", &[]);
}

#[test]
fn graph_store_protocol_direct() {
    suite("graph-store-protocol/manifest-direct.ttl", 4, "/gsp", "/store", &[]);
}

/// The three tests of the service description, which are prose in their manifest.
#[test]
fn service_description() {
    let server =
        Running::start(&Database::in_memory(), |options| options.hosts.push("example.org".to_owned()));
    for path in ["/query", "/sparql", "/sparql/"] {
        let reply = server.get(path, &["Host: example.org"]).expect(200);
        let graph = graph(&reply.text());
        let sd = |name: &str| format!("http://www.w3.org/ns/sparql-service-description#{name}");
        let endpoints: Vec<String> = graph
            .iter()
            .filter(|triple| triple.predicate.as_str() == sd("endpoint"))
            .map(|triple| triple.object.to_string())
            .collect();
        assert_eq!(endpoints, [format!("<http://example.org{path}>")], "has-endpoint-triple");
        let languages: Vec<String> = graph
            .iter()
            .filter(|triple| triple.predicate.as_str() == sd("supportedLanguage"))
            .map(|triple| triple.object.to_string())
            .collect();
        assert_eq!(languages.len(), if path == "/query" { 1 } else { 2 }, "conforms-to-schema");
    }
    for (accept, expected) in [
        ("application/rdf+xml", "application/rdf+xml"),
        ("application/n-triples", "application/n-triples"),
        ("application/ld+json", "application/ld+json"),
    ] {
        let reply = server.get("/query", &[&format!("Accept: {accept}")]).expect(200);
        assert_eq!(reply.content_type(), expected, "returns-rdf");
    }
}
