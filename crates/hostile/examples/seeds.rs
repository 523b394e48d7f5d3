//! Seed corpus generator: seeds for the fuzzers from the suites of the W3C and of TinkerPop, and from the
//! regression cases.
//!
//! `cargo run -p vervet-hostile --example seeds -- DIRECTORY` writes one folder per entry. The suites are
//! read from `VERVET_TEST_DATA`, else from `../shared`.

use std::path::{Path, PathBuf};
use std::{env, fs, io};
use vervet_hostile::EntryPoint;

/// Maximum size of a seed: longer ones slow a fuzzer down.
const BYTES_MAX: usize = 4 << 10;

/// JSON-LD documents, which the suites lack.
const JSONLD: [&str; 8] = [
    r#"{"@context":{"@vocab":"http://example/","@base":"http://example/b"},"@id":"a","@type":"C","p":[1,2.5,true,null,"x"]}"#,
    r#"{"@context":{"p":{"@id":"http://example/p","@type":"@id","@container":"@list"}},"p":["a","_:b"]}"#,
    r#"{"@context":{"ex":"http://example/","d":{"@id":"ex:d","@type":"http://www.w3.org/2001/XMLSchema#date"}},"d":"2020-02-29"}"#,
    r#"{"@graph":[{"@id":"http://example/g","@graph":[{"@id":"_:x","http://example/p":{"@value":"v","@language":"en"}}]}]}"#,
    r#"[{"@id":"http://example/a","@reverse":{"http://example/p":{"@id":"http://example/b"}},"@index":"i"}]"#,
    r#"{"@context":{"@version":1.1,"@propagate":false,"n":"@nest","l":{"@id":"http://example/l","@container":"@language"}},"n":{"l":{"en":"a","de":["b"]}}}"#,
    r#"{"@context":[{"x":"http://example/x"},null,{"@language":"en","@direction":"ltr","x":{"@id":"http://example/x","@context":{"y":"http://example/y"},"@protected":true}}],"x":{"y":"z"}}"#,
    r#"{"@context":{"s":{"@id":"http://example/s","@container":["@graph","@id","@set"]}},"@included":[{"@id":"_:i"}],"s":{"http://example/k":{"http://example/p":{"@set":[{"@list":[[1]]}]},"j":{"@type":"@json","@value":{"a":[]}}}}}"#,
];

/// Files in every CSV dialect.
const CSV: [&str; 6] = [
    "id,label,name,age,t:datetime\n1,person;x,ann,29,2012-01-02T03:04:05.6+0000\n2,,\"b\"\"ob\",,\n",
    "id|from|to|label|weight:float\n7|1|2|knows|0.5\n|2|1||\n",
    "key:ID(P){id-type: long}\t:LABEL\tname:string\ttags:int[]\t:IGNORE\n1\ta;b\tx\t1;2\t\n",
    ":START_ID(P),:END_ID(Q),:TYPE,since:date\n1,2,knows,2020-02-29\n",
    "~id,~label,http://e/p,f:double,b:boolean\n_:b,http://e/C,1,NaN,true\nurn:x:y,a::b,007,-1e9,0\n",
    "id,n:long,m\n1,9223372036854775807,9223372036854775808\n",
];

const API: [&str; 6] = [
    "GET info\n\n",
    "GET names?kind=prefix&contains=fo\n\n",
    "GET names?kind=class&limit=3\n\n",
    "GET names?kind=predicate&contains=P&limit=0\n\n",
    "POST plan\napplication/sparql-query\nSELECT * { ?s a ?c ; <http://example/p> ?o FILTER(?o > 1) }",
    "POST plan?run=true&timeout=0.1&default-graph-uri=http://example/g1\n\nASK { ?s ?p ?o }",
];

const RAW: [&str; 5] = [
    "GET /query?query=ASK%7B%7D HTTP/1.1\r\nHost: localhost\r\nAccept: text/csv;q=0.5, */*;q=0.1\r\nAccept-Encoding: gzip\r\n\r\n",
    "POST /query HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/sparql-query\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nASK{}\r\n0\r\n\r\n",
    "OPTIONS /update HTTP/1.1\r\nHost: localhost\r\nOrigin: http://y\r\nAccess-Control-Request-Method: POST\r\nConnection: close\r\n\r\n",
    "HEAD /metrics HTTP/1.0\r\nAuthorization: Basic YTpi\r\n\r\nGET /health HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "PUT /store?default HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 30\r\nContent-Type: text/turtle; charset=utf-8\r\n\r\n<urn:a> <urn:b> \"c\"@en . # ...",
];

fn main() -> io::Result<()> {
    let Some(target) = env::args().nth(1).map(PathBuf::from) else {
        eprintln!("usage: seeds DIRECTORY");
        std::process::exit(2);
    };
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let data = env::var_os("VERVET_TEST_DATA").map_or_else(|| root.join("../../../shared"), PathBuf::from);
    let mut files = Vec::new();
    collect(&data.join("conformance"), &mut files);
    if files.is_empty() {
        eprintln!("no suites in {}: only built-in seeds (set VERVET_TEST_DATA)", data.display());
    }
    traversals(&data.join("conformance/tinkerpop/features"), &mut files);
    files.sort();
    for (name, _) in EntryPoint::ALL {
        let folder = target.join(name);
        fs::create_dir_all(&folder)?;
        let mut seeds = built_in(name);
        for (number, (extension, text)) in files.iter().enumerate() {
            seeds.extend(seed(name, number, extension, text));
        }
        let mut kept = Vec::new();
        if name == "parquet" {
            collect_bytes(&root.join("../load/tests/parquet"), &mut kept);
            kept.retain(|file| file.starts_with(b"PAR1"));
        }
        collect_bytes(&root.join("cases").join(name), &mut kept);
        seeds.extend(kept);
        for (number, seed) in seeds.iter().enumerate() {
            fs::write(folder.join(format!("seed-{number:04}")), seed)?;
        }
        println!("{name}: {} seeds", seeds.len());
    }
    Ok(())
}

/// The seed that a suite file yields for an entry.
fn seed(entry: &str, number: usize, extension: &str, text: &[u8]) -> Option<Vec<u8>> {
    let with = |head: &str| Some([head.as_bytes(), text].concat());
    let accept = ["*/*", "text/csv", "application/sparql-results+xml", "text/turtle, application/json;q=0.5"];
    let accept = accept[number / 3 % accept.len()];
    match (entry, extension) {
        ("query", "rq") | ("update", "ru") => with(""),
        ("ntriples", "nt") | ("nquads", "nt" | "nq") | ("turtle", "nt" | "ttl") => with(""),
        ("trig", "ttl" | "trig") | ("rdfxml", "rdf") => with(""),
        ("gremlin", "traversal") | ("graphml", "xml") | ("graphson_file" | "graphson", "json") => with(""),
        ("graphbinary", "gbin") => with(""),
        ("http_query", "rq") => {
            let first =
                ["G", "F&default-graph-uri=http://example/g1", "D&named-graph-uri=urn%3Aa&timeout=0.2"];
            with(&format!("{}\n{accept}\n", first[number % 3]))
        }
        ("http_update", "ru") => {
            let first = ["F", "D", "F&using-graph-uri=http://example/g1", "D&using-named-graph-uri=urn:g"];
            with(&format!("{}\n{accept}\n", first[number % 4]))
        }
        ("http_store", _) => {
            let kind = match extension {
                "nt" => "application/n-triples",
                "nq" => "application/n-quads",
                "ttl" => "text/turtle",
                "trig" => "application/trig",
                "rdf" => "application/rdf+xml",
                _ => return None,
            };
            let first = ["PUT ?default", "POST ", "PUT ?graph=urn:g", "POST /name"];
            // A sample of each kind: all would be thousands.
            number.is_multiple_of(8).then(|| with(&format!("{}\n{kind}\n", first[number / 8 % 4]))).flatten()
        }
        _ => None,
    }
}

fn built_in(entry: &str) -> Vec<Vec<u8>> {
    let texts: Vec<String> = match entry {
        "jsonld" => JSONLD.map(str::to_owned).to_vec(),
        "csv" => CSV.map(str::to_owned).to_vec(),
        "http_api" => API.map(str::to_owned).to_vec(),
        "http_raw" => RAW.map(str::to_owned).to_vec(),
        "http_store" => {
            let jsonld = JSONLD.map(|text| format!("PUT ?default\napplication/ld+json\n{text}"));
            let others = [
                "GET ?default\n\n",
                "GET ?graph=http://example/g1\n\n",
                "GET \n\n",
                "HEAD /none\n\n",
                "DELETE ?graph=http://example/g2\n\n",
                "POST ?default\nmultipart/form-data; boundary=x\n--x\r\nContent-Disposition: form-data; name=\"f\"; \
                 filename=\"a.ttl\"\r\n\r\n<urn:a> <urn:b> 1 .\r\n--x--\r\n",
            ];
            jsonld.into_iter().chain(others.map(str::to_owned)).collect()
        }
        _ => Vec::new(),
    };
    texts.into_iter().map(String::into_bytes).collect()
}

/// Extensions and contents of the files below a folder, up to the maximum size.
fn collect(folder: &Path, files: &mut Vec<(String, Vec<u8>)>) {
    for path in paths(folder) {
        if path.is_dir() {
            collect(&path, files);
        } else if let Some(extension) = path.extension().and_then(|extension| extension.to_str())
            && let Ok(text) = fs::read(&path)
            && text.len() <= BYTES_MAX
        {
            files.push((extension.to_owned(), text));
        }
    }
}

/// The traversals of the feature files below a folder.
fn traversals(folder: &Path, files: &mut Vec<(String, Vec<u8>)>) {
    for path in paths(folder) {
        if path.is_dir() {
            traversals(&path, files);
        } else if let Ok(text) = fs::read_to_string(&path) {
            for part in text.split("the traversal of").skip(1) {
                if let Some(traversal) = part.split("\"\"\"").nth(1) {
                    let lines: Vec<&str> = traversal.lines().map(str::trim).collect();
                    files.push(("traversal".to_owned(), lines.concat().into_bytes()));
                }
            }
        }
    }
}

fn collect_bytes(folder: &Path, kept: &mut Vec<Vec<u8>>) {
    kept.extend(paths(folder).iter().filter_map(|path| fs::read(path).ok()));
}

fn paths(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.sort();
    paths
}
