//! `io()`: a graph written to a file and read back is the same graph, and no file outside the allowed folder
//! is touched.

use std::fs;
use vervet::gremlin::Value;
use vervet::{Database, Error, ErrorKind, GremlinOptions, Result};

/// TinkerPop's toy graph in short, with texts that XML has to escape.
const GRAPH: &str = r#"g.addV("person").property(T.id, 1).property("name", "marko <&> \"ä\"\r\n").property("age", 29).as("a").
    addV("person").property(T.id, "two").property("name", "vadas").property("tall", true).property("age", 27).as("b").
    addV("software").property(T.id, 3).property("size", 1.5).property("count", 5000000000L).property("old", 2.5f).as("c").
    addE("knows").from("a").to("b").property(T.id, 7).property("weight", 0.5).property("age", 1L).
    addE("created").from("a").to("c").property(T.id, 8).property("weight", 0.4).
    addE("created").from("b").to("b").property(T.id, "loop")"#;

/// All elements of a graph as texts, in a fixed order.
fn all(database: &Database) -> Result<Vec<String>> {
    let mut all = Vec::new();
    for text in ["g.V().elementMap()", "g.E().elementMap()"] {
        let values = database.gremlin(text)?.into_values()?;
        all.extend(values.iter().map(Value::to_string));
    }
    all.sort_unstable();
    Ok(all)
}

fn in_folder(folder: &tempfile::TempDir) -> GremlinOptions {
    GremlinOptions { files: Some(folder.path().to_owned()), ..GremlinOptions::default() }
}

#[test]
fn what_is_written_is_read() -> Result<()> {
    let folder = tempfile::tempdir().map_err(|error| Error::io("make a folder", &error))?;
    let options = in_folder(&folder);
    let database = Database::in_memory();
    database.gremlin(GRAPH)?;
    for (file, write) in [
        ("graph.json", "g.io('graph.json').write()"),
        ("graph.xml", "g.io('graph.xml').write().iterate()"),
        ("graph.txt", "g.io('graph.txt').with(IO.writer, IO.graphml).write()"),
    ] {
        assert!(database.gremlin_with(write, &options)?.is_empty());
        let copy = Database::in_memory();
        let reader = if file.ends_with("txt") { ".with(IO.reader, IO.graphml)" } else { "" };
        let read = format!("g.io('{file}'){reader}.read()");
        assert!(copy.gremlin_with(&read, &options)?.is_empty());
        assert_eq!(all(&copy)?, all(&database)?, "{file}");
        // Elements cannot be added twice, and a failed read leaves no changes.
        let error = copy.gremlin_with(&read, &options).expect_err("they are there");
        assert_eq!(error.kind(), ErrorKind::Input, "{error}");
        assert_eq!(all(&copy)?, all(&database)?, "{file}");
        // In a transaction, the read is part of it.
        copy.gremlin("g.V().drop()")?;
        let mut transaction = copy.begin()?;
        transaction.gremlin_with(&read, &options)?;
        assert_eq!(transaction.gremlin("g.E().count()")?.into_values()?, [Value::Long(3)]);
        drop(transaction);
        assert!(all(&copy)?.is_empty());
    }
    // No partial files are left.
    let files = fs::read_dir(folder.path()).map_err(|error| Error::io("list a folder", &error))?;
    assert_eq!(files.count(), 3);
    Ok(())
}

#[test]
fn several_values_and_their_properties_need_graphson() -> Result<()> {
    let folder = tempfile::tempdir().map_err(|error| Error::io("make a folder", &error))?;
    let options = in_folder(&folder);
    let database = Database::in_memory();
    database.gremlin(
        "g.addV('person').property(list, 'place', 'Rome', 'since', 2001).property(list, 'place', 'Oslo')",
    )?;
    let error = database.gremlin_with("g.io('a.xml').write()", &options).expect_err("GraphML cannot say it");
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    assert!(!folder.path().join("a.xml").exists());
    database.gremlin_with("g.io('a.json').write()", &options)?;
    let copy = Database::in_memory();
    copy.gremlin_with("g.io('a.json').read()", &options)?;
    let read = copy.gremlin("g.V().properties('place').has('since', 2001).value()")?.into_values()?;
    assert_eq!(read, [Value::text("Rome")]);
    assert_eq!(copy.gremlin("g.V().values('place').count()")?.into_values()?, [Value::Long(2)]);
    Ok(())
}

#[test]
fn files_are_off_and_stay_in_their_folder() -> Result<()> {
    let folder = tempfile::tempdir().map_err(|error| Error::io("make a folder", &error))?;
    let options = in_folder(&folder);
    let database = Database::in_memory();
    for text in ["g.io('a.json').read()", "g.io('a.json').write()"] {
        let error = database.gremlin(text).expect_err("no folder is allowed");
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    }
    for (text, kind) in [
        ("g.io('a.json').read()", ErrorKind::Input),
        ("g.io('../a.json').read()", ErrorKind::Input),
        ("g.io('/etc/a.json').write()", ErrorKind::Input),
        ("g.io('a.kryo').read()", ErrorKind::Unsupported),
        ("g.io('a.what').read()", ErrorKind::Query),
        ("g.withStrategies(ReadOnlyStrategy).io('a.json').read()", ErrorKind::Query),
    ] {
        let error = database.gremlin_with(text, &options).expect_err(text);
        assert_eq!(error.kind(), kind, "{text}: {error}");
    }
    for (name, content) in [("bad.json", "{\"id\": 1, \"label\""), ("bad.xml", "<graphml><graph><node/>")] {
        fs::write(folder.path().join(name), content).map_err(|error| Error::io("write a file", &error))?;
        let text = format!("g.io('{name}').read()");
        let error = database.gremlin_with(&text, &options).expect_err("it is cut off");
        assert_eq!(error.kind(), ErrorKind::Input, "{error}");
    }
    assert!(all(&database)?.is_empty());
    Ok(())
}
