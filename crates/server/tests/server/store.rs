//! The Graph Store Protocol, beyond the W3C suite.

use crate::common::{Running, people};
use vervet::Database;

const TURTLE: &str = "Content-Type: text/turtle";

#[test]
fn graphs_support_put_post_get_and_delete() {
    let server = Running::start(&Database::in_memory(), |_| ());
    let path = "/store?graph=urn%3Ag";
    server.get(path, &[]).expect(404);
    server.send("HEAD", path, &[], b"").expect(404);
    server.send("DELETE", path, &[], b"").expect(404);
    server.send("PUT", path, &[TURTLE], b"<urn:a> <urn:p> 1 .").expect(201);
    server.send("POST", path, &[TURTLE], b"<urn:b> <urn:p> 2 .").expect(204);
    let lines = |path: &str| {
        let text = server.get(path, &["Accept: application/n-triples"]).expect(200).text();
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    assert_eq!(lines(path).len(), 2);
    server.send("PUT", path, &[TURTLE], b"<rel> <urn:p> 3 .").expect(204);
    assert_eq!(lines(path).len(), 1, "{:?}", lines(path));
    assert!(lines("/store?default").is_empty());
    server
        .send(
            "PUT",
            "/store?default",
            &["Content-Type: application/n-triples"],
            b"<urn:d> <urn:p> <urn:e> .\n",
        )
        .expect(204);
    assert_eq!(lines("/store?default"), ["<urn:d> <urn:p> <urn:e> ."]);
    let whole = server.get("/store", &["Accept: application/n-quads"]).expect(200).text();
    assert_eq!(whole.lines().count(), 2, "{whole}");
    assert!(whole.contains("<urn:g>"), "{whole}");
    server.send("DELETE", path, &[], b"").expect(204);
    server.get(path, &[]).expect(404);
    server.send("DELETE", "/store?default", &[], b"").expect(204);
    assert!(lines("/store?default").is_empty());
}

#[test]
fn a_direct_graph_name_is_url_and_base() {
    let server =
        Running::start(&Database::in_memory(), |options| options.hosts.push("example.org".to_owned()));
    let host = "Host: example.org";
    server.send("PUT", "/store/people/1", &[host, TURTLE], b"<#ann> <urn:p> 1 .").expect(201);
    let direct = server.get("/store/people/1", &[host, "Accept: application/n-triples"]).expect(200).text();
    assert!(direct.starts_with("<http://example.org/store/people/1#ann> "), "{direct}");
    let path = "/store?graph=http%3A%2F%2Fexample.org%2Fstore%2Fpeople%2F1";
    let indirect = server.get(path, &["Accept: application/n-triples"]).expect(200).text();
    assert_eq!(direct, indirect);
}

#[test]
fn every_format_round_trips() {
    let server = Running::start(&Database::in_memory(), |_| ());
    let begin = "<urn:a> <http://example.org/p> \"x\"@en .\n<urn:a> <http://example.org/q> <urn:b> .\n";
    server
        .send("PUT", "/store?graph=urn:0", &["Content-Type: application/n-triples"], begin.as_bytes())
        .expect(201);
    let types = ["text/turtle", "application/rdf+xml", "application/ld+json", "application/n-triples"];
    for (number, name) in types.into_iter().enumerate() {
        let accept = format!("Accept: {name}");
        let document = server.get(&format!("/store?graph=urn:{number}"), &[&accept]).expect(200);
        let (path, kind) = (format!("/store?graph=urn:{}", number + 1), format!("Content-Type: {name}"));
        server.send("PUT", &path, &[&kind], &document.body).expect(201);
    }
    let last = server.get("/store?graph=urn:4", &["Accept: application/n-triples"]).expect(200).text();
    let sorted = |text: &str| {
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    assert_eq!(sorted(&last), sorted(begin));
    let quads = server.get("/store", &["Accept: application/trig"]).expect(200);
    server.send("POST", "/store", &["Content-Type: application/trig"], &quads.body).expect(204);
    let nquads = "<urn:x> <urn:y> <urn:z> <urn:new> .\n";
    server.send("POST", "/store", &["Content-Type: application/n-quads"], nquads.as_bytes()).expect(204);
    server.get("/store?graph=urn:new", &[]).expect(200);
}

#[test]
fn a_broken_document_changes_nothing() {
    let server = Running::start(&people(), |_| ());
    let path = "/store?graph=http%3A%2F%2Fexample.org%2Fwork";
    let before = server.get(path, &["Accept: application/n-triples"]).expect(200).body;
    let reply =
        server.send("PUT", path, &[TURTLE], b"<urn:a> <urn:b> 1 .\n<urn:a> <urn:b> 1 2 .").expect(400);
    assert!(reply.text().contains("body.ttl:2"), "{}", reply.text());
    let body = "--x\r\nContent-Type: text/turtle\r\n\r\n<urn:a> <urn:b> 1 .\r\n--x\r\n\
                Content-Type: text/turtle\r\n\r\noops\r\n--x--\r\n";
    let kind = "Content-Type: multipart/form-data; boundary=x";
    server.send("POST", path, &[kind], body.as_bytes()).expect(400);
    server.send("POST", path, &[kind], b"--x\r\n").expect(400);
    assert_eq!(server.get(path, &["Accept: application/n-triples"]).expect(200).body, before);
}

#[test]
fn file_extensions_determine_formats_in_forms() {
    let server = Running::start(&Database::in_memory(), |_| ());
    let body = "--x\r\nContent-Disposition: form-data; name=\"f\"; filename=\"a.nt\"\r\n\
                Content-Type: application/octet-stream\r\n\r\n<urn:a> <urn:b> <urn:c> .\n\r\n--x\r\n\
                Content-Disposition: form-data; name=\"g\"; filename=\"b.ttl\"\r\n\r\n<urn:a> <urn:b> 2 .\r\n--x--\r\n";
    let kind = "Content-Type: multipart/form-data; boundary=x";
    server.send("POST", "/store?graph=urn:g", &[kind], body.as_bytes()).expect(201);
    let text = server.get("/store?graph=urn:g", &["Accept: application/n-triples"]).expect(200).text();
    assert_eq!(text.lines().count(), 2, "{text}");
}

#[test]
fn invalid_store_requests_are_refused() {
    let server = Running::start(&people(), |_| ());
    for (status, method, path, headers) in [
        (400, "GET", "/store?graph=relative", &[][..]),
        (400, "GET", "/store?graph=urn:a&default", &[]),
        (400, "GET", "/store?graph=urn:a&graph=urn:b", &[]),
        (400, "GET", "/store/name?default", &[]),
        (400, "PUT", "/store", &[TURTLE]),
        (400, "DELETE", "/store", &[]),
        (400, "PUT", "/store?graph=urn:a", &["Content-Type: application/n-quads"]),
        (400, "POST", "/store?graph=urn:a", &["Content-Type: multipart/form-data"]),
        (405, "PATCH", "/store?default", &[]),
        (406, "GET", "/store?default", &["Accept: text/html"]),
        (415, "PUT", "/store?default", &[]),
        (415, "PUT", "/store?default", &["Content-Type: text/html"]),
        (415, "PUT", "/store?default", &["Content-Type: text/turtle; charset=latin-1"]),
    ] {
        let reply = server.send(method, path, headers, b"");
        assert_eq!(reply.status, status, "{method} {path} {headers:?}: {}", reply.text());
    }
}

/// Each request is a transaction: concurrent additions to one graph are not lost.
#[test]
fn concurrent_posts_to_one_graph_all_apply() {
    let server = Running::start(&Database::in_memory(), |_| ());
    std::thread::scope(|scope| {
        for client in 0..4 {
            let server = &server;
            scope.spawn(move || {
                for n in 0..10 {
                    let body = format!("<urn:{client}> <urn:n> {n} .");
                    let reply = server.send("POST", "/store?graph=urn:g", &[TURTLE], body.as_bytes());
                    assert!(matches!(reply.status, 201 | 204), "{}", reply.text());
                }
            });
        }
    });
    let text = server.get("/store?graph=urn:g", &["Accept: application/n-triples"]).expect(200).text();
    assert_eq!(text.lines().count(), 40);
}

fn form(parts: &[(&str, &str)]) -> Vec<u8> {
    let mut body = String::new();
    for (name, content) in parts {
        body += &format!(
            "--x\r\nContent-Disposition: form-data; name=\"f\"; filename=\"{name}\"\r\n\r\n{content}\r\n"
        );
    }
    (body + "--x--\r\n").into_bytes()
}

const FORM: &str = "Content-Type: multipart/form-data; boundary=x";

/// users 28: property graphs are loaded into a running server, together and atomically.
#[test]
fn users_28_property_graphs_are_loaded_over_http() {
    let database = Database::in_memory();
    let server = Running::start(&database, |_| ());
    let count = |query: &str| -> String {
        let body = format!("{{\"gremlin\": \"{query}\"}}");
        let headers = ["Content-Type: application/json", "Accept: application/json"];
        let reply = server.send("POST", "/gremlin", &headers, body.as_bytes()).expect(200).json();
        reply["result"]["data"][0].to_string()
    };
    let people = "id:ID,:LABEL,name,age:int\n1,person,ann,30\n2,person,bob,40\n";
    let knows = ":START_ID,:END_ID,:TYPE,since:int\n1,2,knows,2020\n";
    let done =
        server.send("POST", "/load", &[FORM], &form(&[("C:\\\\people.csv", people), ("knows.csv", knows)]));
    assert!(done.expect(200).json()["statements"].as_u64().is_some_and(|count| count > 5));
    assert_eq!((count("g.V().count()"), count("g.E().count()")), ("2".to_owned(), "1".to_owned()));
    assert_eq!(count("g.V().has('name','ann').out('knows').values('age')"), "40");
    // A request with one malformed file stores nothing.
    let wrong = "id:ID,:LABEL,name,age:int\n3,person,eve,old\n";
    let both = form(&[("more.csv", "id:ID,:LABEL\n4,person\n"), ("wrong.csv", wrong)]);
    let error = server.send("POST", "/load", &[FORM, "Accept: application/json"], &both).expect(400).json();
    assert!(error["error"]["message"].as_str().is_some_and(|text| text.contains("wrong.csv")), "{error}");
    assert!(!error.to_string().contains("--skip-errors"), "{error}");
    assert_eq!(count("g.V().count()"), "2");
    // A server accepts what another one has exported.
    let mut graphson = Vec::new();
    database.export(vervet::Format::GraphSon, &mut graphson).expect("it is written");
    let mut graphml = Vec::new();
    database.export(vervet::Format::GraphMl, &mut graphml).expect("it is written");
    for (kind, document) in
        [("application/vnd.gremlin-v3.0+json", &graphson), ("application/graphml+xml", &graphml)]
    {
        let other = Running::start(&Database::in_memory(), |_| ());
        other.send("POST", "/load", &[&format!("Content-Type: {kind}")], document).expect(200);
        let query = "SELECT (COUNT(*) AS ?n) { ?s <urn:vervet:key:name> ?o }";
        assert_eq!(other.query(query, &["Accept: text/csv"]).expect(200).text(), "n\r\n2\r\n", "{kind}");
    }
    // Columns without type annotations in their headers.
    let mapping =
        "[[file]]\nname = \"towns.csv\"\nvertices = \"town\"\ncolumns = [{ name = \"code\", is = \"id\" }]\n";
    let towns = form(&[("towns.csv", "code,size\nVIE,2\n"), ("mapping.toml", mapping)]);
    let reply = server.send("POST", "/load", &[FORM], &towns);
    assert_eq!(reply.status, 200, "{}", reply.text());
    assert_eq!(count("g.V().hasLabel('town').count()"), "1");
}

/// The response has the notes of a load, and an unknown parameter is an error.
#[test]
fn loads_answer_with_their_notes() {
    let server = Running::start(&Database::in_memory(), |_| ());
    let people = "id,label,age\n1,person,30\n2,person,old\n2,person,41\n";
    let files = form(&[("people.csv", people), ("knows.csv", "from,to\n1,3\n")]);
    let reply = server.send("POST", "/load", &[FORM], &files).expect(200).json();
    assert_eq!((reply["merged_vertices"].as_u64(), reply["missing_vertices"].as_u64()), (Some(1), Some(1)));
    assert_eq!(reply["undirected_edges"].as_u64(), Some(0));
    let note = reply["notes"][0].as_str().unwrap_or_default();
    assert!(
        note.starts_with("people.csv: column age holds texts") && note.contains("\"old\" in line 3"),
        "{reply}"
    );
    let notes: Vec<&str> =
        reply["notes"].as_array().unwrap().iter().filter_map(|note| note.as_str()).collect();
    assert!(
        notes[1].starts_with("1 vertex has an id") && notes[2].starts_with("1 vertex is named"),
        "{reply}"
    );
    let csv = ["Content-Type: text/csv", "Accept: application/json"];
    // Hints are for clients, not for the command line.
    for (body, message, hint) in [
        ("", "body.csv:1: the file is empty: it has no header", "its first line must name the columns"),
        (
            "age,size\n1,2\n",
            "body.csv:1: the header names neither",
            "say which column is the id with id=COLUMN (there are age, size), or number the rows with row-ids=true",
        ),
        ("age,size\n1,2\n", "body.csv:1: the header names neither", "a part called mapping.toml"),
    ] {
        let error = server.send("POST", "/load", &csv, body.as_bytes()).expect(400).json();
        assert!(error["error"]["message"].as_str().unwrap().starts_with(message), "{error}");
        assert!(error["error"]["hint"].as_str().unwrap().contains(hint), "{error}");
    }
    let script = form(&[("schema.cypher", "CREATE NODE TABLE A(x INT64, PRIMARY KEY(x));")]);
    let error = server.send("POST", "/load", &[FORM, csv[1]], &script).expect(415).json();
    assert!(error["error"]["message"].as_str().unwrap().contains("schema.cypher is a script"), "{error}");
    assert!(error["error"]["hint"].as_str().unwrap().contains("mapping.toml"), "{error}");
    for (query, name, hint) in [
        ("grph=http%3A%2F%2Fa%2Fg", "unknown parameter \"grph\"", "did you mean graph?"),
        ("names_from_files=true", "unknown parameter \"names_from_files\"", "did you mean names-from-files?"),
        (
            "timeout=5&what",
            "unknown parameter \"what\"",
            "the parameters are graph, names-from-files, id, row-ids, label, default-label, both-directions, timeout",
        ),
    ] {
        let url = format!("/load?{query}");
        let error = server.send("POST", &url, &csv, b"id:ID,:LABEL\n1,person\n").expect(400).json();
        assert_eq!(error["error"]["message"], name, "{error}");
        assert_eq!(error["error"]["hint"], hint, "{error}");
    }
}

/// Parameters are the options of `vervet load` for tables, and the response tells what is new from what the
/// files repeat.
#[test]
fn parameters_of_a_load_describe_its_tables() {
    let database = Database::in_memory();
    let server = Running::start(&database, |_| ());
    let csv = ["Content-Type: text/csv", "Accept: application/json"];
    let people = b"pid,name\n1,Ann\n1,Ann\n";
    let reply = server.send("POST", "/load?id=pid&default-label=Person", &csv, people).expect(200).json();
    // The label, `pid` and `name`; the second row repeats them.
    assert_eq!((reply["statements"].as_u64(), reply["added"].as_u64()), (Some(6), Some(3)), "{reply}");
    let reply = server.send("POST", "/load?id=pid&default-label=Person", &csv, people).expect(200).json();
    assert_eq!((reply["statements"].as_u64(), reply["added"].as_u64()), (Some(6), Some(0)), "{reply}");
    let ask = "ASK { <urn:vervet:vertex:1> a <urn:vervet:label:Person> ; <urn:vervet:key:pid> ?n }";
    assert!(server.query(ask, &["Accept: application/json"]).expect(200).text().contains("true"));
    let edges = b"from,to,Type\n1,2,Undirected\n";
    let reply = server.send("POST", "/load?both-directions=true&label=x", &csv, edges).expect(200).json();
    assert!(
        reply["notes"].to_string().contains("1 undirected edge was loaded in both directions"),
        "{reply}"
    );
    server.send("POST", "/load?row-ids=true", &csv, b"name\nBob\n").expect(200);
    for wrong in ["id=a&row-ids=true", "row-ids=1", "id=a&id=b", "default-label="] {
        server.send("POST", &format!("/load?{wrong}"), &csv, people).expect(400);
    }
}

/// users 28: roles and limits apply to loads too.
#[test]
fn users_28_loads_have_roles_and_limits() {
    let server = Running::start(&Database::in_memory(), |options| {
        options.users = crate::users::users();
        options.limits.document_bytes = 10_000;
    });
    let csv = "Content-Type: text/csv";
    let reader = crate::users::basic("reader", "let me in");
    let writer = "Authorization: Bearer s3cret";
    let vertex = b"id:ID,:LABEL\n1,person\n";
    server.send("POST", "/load", &[csv], vertex).expect(401);
    server.send("POST", "/load", &[csv, &reader], vertex).expect(403);
    server.send("POST", "/load", &[csv, writer, "Origin: https://evil.example"], vertex).expect(403);
    server.send("POST", "/load", &[csv, writer], vertex).expect(200);
    server.send("PUT", "/load", &[csv, writer], vertex).expect(405);
    server.send("GET", "/load", &[writer], b"").expect(405);
    server.send("POST", "/load", &[writer], vertex).expect(415);
    server.send("POST", "/load", &["Content-Type: image/png", writer], vertex).expect(415);
    server.send("POST", "/load", &[FORM, writer], b"--x--").expect(400);
    server.send("POST", "/load", &[FORM, writer], &form(&[("a.exe", "x")])).expect(415);
    server.send("POST", "/load?names-from-files=maybe", &[csv, writer], vertex).expect(400);
    server.send("POST", "/load", &[csv, writer], &vec![b'x'; 10_001]).expect(413);
    server
        .send("POST", "/load", &["Content-Type: application/vnd.apache.parquet", writer], b"PAR1")
        .expect(400);
    // A decompression bomb.
    for magic in [&b"\x1f\x8b\x08"[..], b"\x28\xb5\x2f\xfd"] {
        server.send("POST", "/load", &[csv, writer], magic).expect(415);
        server.send("PUT", "/store?default", &["Content-Type: text/turtle", writer], magic).expect(415);
    }
    let read_only = Running::start(&Database::in_memory(), |options| options.read_only = true);
    read_only.send("POST", "/load", &[csv], vertex).expect(403);
}
