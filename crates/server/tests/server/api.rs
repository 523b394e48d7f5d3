//! The API of the console, health and metrics.

use crate::common::{Running, people};
use serde_json::json;
use vervet_server::ServerOptions;

#[test]
fn names_are_found_by_substring() {
    let server = Running::start(&people(), |_| ());
    let names = |parameters: &str| server.get(&format!("/api/names?{parameters}"), &[]).expect(200).json();
    let classes = names("kind=class");
    assert_eq!(classes["names"][0]["iri"], "http://example.org/Person");
    assert_eq!(classes["names"][0]["count"], 3);
    let predicates = names("kind=predicate&contains=KNO");
    assert_eq!(predicates["names"].as_array().unwrap().len(), 1);
    assert_eq!(predicates["names"][0]["iri"], "http://example.org/knows");
    let label = names("kind=predicate&contains=rdf:ty");
    assert_eq!(label["names"][0]["label"], "rdf:type");
    let prefixes = names("kind=prefix&contains=foaf");
    assert_eq!(prefixes["names"][0]["prefix"], "foaf");
    assert_eq!(names("kind=predicate&limit=1")["names"].as_array().unwrap().len(), 1);
    server.get("/api/names", &[]).expect(400);
    server.get("/api/names?kind=class&limit=x", &[]).expect(400);
    server.get("/api/nothing", &[]).expect(404);
    server.send("POST", "/api/info", &[], b"").expect(405);
}

#[test]
fn plans_are_explained_and_profiled() {
    let server = Running::start(&people(), |_| ());
    let query = b"SELECT * { ?a <http://example.org/knows> ?b . ?b a ?c }";
    let plan = server.send("POST", "/api/plan", &[], query).expect(200).json();
    assert!(plan["text"].as_str().unwrap().contains("plan for ?a ?b ?c"), "{plan}");
    let first = &plan["steps"][0];
    assert!(first["operator"].is_string() && first["estimated_rows"].is_number(), "{first}");
    assert_eq!((&first["rows"], &first["parent"], &first["id"]), (&json!(null), &json!(null), &json!(0)));
    let run = server.send("POST", "/api/plan?run=true", &[], query).expect(200).json();
    assert!(run["text"].as_str().unwrap().contains("time"), "{run}");
    assert!(run["steps"][0]["rows"].is_u64() && run["steps"][0]["nanoseconds"].is_u64(), "{run}");
    let nested = b"SELECT * { ?a a ?c OPTIONAL { ?a <http://example.org/knows> ?b } }";
    let nested = server.send("POST", "/api/plan", &[], nested).expect(200).json();
    assert!(nested["steps"].as_array().unwrap().iter().any(|step| step["parent"].is_u64()), "{nested}");
    let wrong = server.send("POST", "/api/plan", &["Accept: application/json"], b"SELECT").expect(400).json();
    assert_eq!(wrong["error"]["kind"], "query");
}

#[test]
fn the_server_says_what_it_has_and_does() {
    let server = Running::start(&people(), |_| ());
    let info = server.get("/api/info", &[]).expect(200).json();
    assert_eq!((info["statements"].as_u64(), info["graphs"].as_u64()), (Some(7), Some(1)));
    assert_eq!(info["read_only"], false);
    assert_eq!(server.get("/health", &[]).expect(200).text(), "ok\n");
    server.query("SELECT * { ?s ?p ?o }", &[]).expect(200);
    server.query("oops", &[]).expect(400);
    server.update("INSERT DATA { <urn:a> <urn:b> 1 }", &[]).expect(204);
    for (name, value) in [
        ("vervet_requests_total{kind=\"query\",status=\"200\"}", 1.0),
        ("vervet_requests_total{kind=\"query\",status=\"400\"}", 1.0),
        ("vervet_requests_total{kind=\"update\",status=\"204\"}", 1.0),
        ("vervet_request_seconds_count{kind=\"query\"}", 2.0),
        ("vervet_request_seconds_bucket{le=\"+Inf\",kind=\"query\"}", 2.0),
        ("vervet_rows_out_total", 5.0),
        ("vervet_statements", 8.0),
        ("vervet_requests_running", 0.0),
        ("vervet_connections", 1.0),
        ("vervet_writable", 1.0),
        ("vervet_plan_cache_misses_total", 2.0),
        ("vervet_logins_failed_total", 0.0),
    ] {
        server.wait_for(name, value);
    }
    assert!(server.metric("vervet_bytes_out_total") > 100.0);
    assert!(server.metric("vervet_transactions_committed_total") >= 1.0);
    let reply = server.get("/metrics", &[]).expect(200);
    assert!(reply.content_type().starts_with("application/openmetrics-text"));
    let text = reply.text();
    assert!(text.ends_with("# EOF\n"), "{text}");
    assert!(text.contains("vervet_build_info{version="), "{text}");
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let (name, value) = line.rsplit_once(' ').expect("a name and a value");
        assert!(value.parse::<f64>().is_ok() && name.starts_with(['v', 'p']), "{line}");
        let family = name.split('{').next().unwrap().trim_end_matches("_bucket").trim_end_matches("_sum");
        let family =
            ["_count", "_total", "_info"].iter().fold(family, |name, part| name.trim_end_matches(part));
        assert!(text.contains(&format!("# TYPE {family} ")), "{family} has no type");
    }
}

#[test]
fn the_console_is_in_the_binary() {
    let server = Running::start(&people(), |_| ());
    let page = server.get("/", &[]).expect(200);
    assert!(page.content_type().starts_with("text/html"));
    assert!(page.text().contains("Vervet"));
    assert!(page.header("content-security-policy").is_some());
    let tag = format!("If-None-Match: {}", page.header("etag").unwrap());
    server.get("/", &[&tag]).expect(304);
    let script =
        page.text().split("src=\"").nth(1).and_then(|rest| rest.split('"').next().map(str::to_owned));
    let script = script.expect("the page has a script").trim_start_matches('.').to_owned();
    let plain = server.get(&script, &[]).expect(200);
    assert!(plain.content_type().starts_with("text/javascript"));
    let compressed = server.get(&script, &["Accept-Encoding: gzip"]).expect(200);
    assert_eq!(compressed.header("content-encoding"), Some("gzip"));
    assert_eq!(compressed.text(), plain.text());
    server.send("POST", "/", &[], b"").expect(405);
}

/// Saved queries of the server reach the console as they are in the file; a reload replaces them.
#[test]
fn saved_queries_are_served() {
    let folder = tempfile::tempdir().unwrap();
    let (config, queries) = (folder.path().join("config.toml"), folder.path().join("queries.toml"));
    std::fs::write(&config, "bind = '127.0.0.1:0'\nqueries = 'queries.toml'\n").unwrap();
    let text = "title = 'Tour'\n[[queries]]\nname = 'walk'\nlanguage = 'gremlin'\ntext = 'g.V()'\nview = 'picture'\n";
    std::fs::write(&queries, text).unwrap();
    let options = ServerOptions::from_file(&config).unwrap();
    let server = Running::start(&people(), |into| into.queries = options.queries.clone());
    let list = || server.get("/api/saved-queries", &[]).expect(200).json();
    let walk = json!({ "name": "walk", "language": "gremlin", "text": "g.V()", "view": "picture" });
    assert_eq!(list(), json!({ "title": "Tour", "queries": [walk] }));
    server.send("POST", "/api/saved-queries", &[], b"{}").expect(405);

    std::fs::write(&queries, "queries = []\n").unwrap();
    server.reloader.reload(ServerOptions::from_file(&config).unwrap()).unwrap();
    assert_eq!(list(), json!({ "queries": [] }));
    std::fs::write(&queries, "queries = 1\n").unwrap();
    let error = ServerOptions::from_file(&config).unwrap_err();
    assert!(error.message().contains("queries.toml"), "{error}");
}
