//! Exports of other databases: folders of Kùzu, files and header files of Neo4j, and exports of its APOC.

use std::fs;
use std::path::Path;
use vervet_load::testing::MapTarget;
use vervet_load::{LoadOptions, LoadReport, Source, load, schema};
use vervet_model::{Error, ErrorKind};

fn options() -> LoadOptions<'static> {
    LoadOptions { threads: 1, ..LoadOptions::default() }
}

fn shorten(line: String) -> String {
    line.replace("http://www.w3.org/2001/XMLSchema#", "")
        .replace("<urn:vervet:", "<")
        .replace("<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>", "a")
}

fn read(sources: Vec<Source>) -> Result<(Vec<String>, LoadReport), Error> {
    let mut target = MapTarget::default();
    let report = load(sources, &options(), &mut target, &mut std::io::sink())?;
    Ok((target.lines().into_iter().map(shorten).collect(), report))
}

/// A folder with these files.
fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for (name, text) in files {
        fs::write(folder.path().join(name), text).expect("a file");
    }
    folder
}

fn of_folder(folder: &Path) -> Result<(Vec<String>, LoadReport), Error> {
    read(vec![Source::path(folder)])
}

const KUZU_SCHEMA: &str = "CREATE NODE TABLE `User` (`name` STRING,`age` INT64,`born` TIMESTAMP,`tags` STRING[],`at` STRUCT(x DOUBLE, y DOUBLE), PRIMARY KEY(`name`));
CREATE NODE TABLE `City` (`id` SERIAL,`name` STRING, PRIMARY KEY(`id`));
CREATE REL TABLE `Follows` (FROM `User` TO `User`, `since` INT64,MANY_MANY);
CREATE REL TABLE `Near` (FROM `User` TO `City`,FROM `City` TO `City`,MANY_MANY);
";

const KUZU: [(&str, &str); 8] = [
    ("schema.cypher", KUZU_SCHEMA),
    (
        "copy.cypher",
        "COPY `User` (`name`,`age`,`born`,`tags`,`at`) FROM \"User.csv\" (escape=\"\\\\\", header=true, parallel=true);
COPY `City` (`id`,`name`) FROM \"City.csv\" (header=true, parallel=true);
COPY `Follows` (`since`) FROM \"/old/place/Follows_User_User.csv\" (to='User', from='User', header=true, parallel=true);
COPY `Near` FROM \"Near_User_City.csv\" (to='City', from='User', header=true);
COPY `Near` FROM \"Near_City_City.csv\";
",
    ),
    ("index.cypher", ""),
    (
        "User.csv",
        "a.name,a.age,a.born,a.tags,a.at\n\"Ann \\\"A\\\"\",30,2020-01-02 03:04:05.5,\"[x,y]\",\"{x: 1.0, y: 2.0}\"\nBob,,,[],\n",
    ),
    ("City.csv", "a.id,a.name\n0,Wien\n"),
    ("Follows_User_User.csv", "a.name,b.name,r.since\nBob,Bob,2021\n"),
    ("Near_User_City.csv", "a.name,b.id\nBob,0\n"),
    ("Near_City_City.csv", "0,0\n"),
];

fn kuzu(changes: &[(&str, &str)]) -> tempfile::TempDir {
    let files: Vec<(&str, &str)> = KUZU
        .iter()
        .map(|(name, text)| {
            (*name, changes.iter().find(|(other, _)| other == name).map_or(*text, |(_, new)| new))
        })
        .collect();
    folder(&files)
}

#[test]
fn exports_of_kuzu_are_folders() {
    let folder = kuzu(&[]);
    let (lines, report) = of_folder(folder.path()).expect("an export");
    assert_eq!(
        lines,
        [
            "<vertex:User:Ann%20%22A%22> a <label:User>",
            "<vertex:User:Ann%20%22A%22> <key:name> \"Ann \\\"A\\\"\"",
            "<vertex:User:Ann%20%22A%22> <key:age> \"30\"^^<long>",
            "<vertex:User:Ann%20%22A%22> <key:born> \"2020-01-02T03:04:05.5\"^^<dateTime>",
            "<vertex:User:Ann%20%22A%22> <key:tags> \"x\"",
            "<vertex:User:Ann%20%22A%22> <key:tags> \"y\"",
            "<vertex:User:Ann%20%22A%22> <key:at> \"{x: 1.0, y: 2.0}\"",
            "<vertex:User:Bob> a <label:User>",
            "<vertex:User:Bob> <key:name> \"Bob\"",
            "<vertex:City:0> a <label:City>",
            "<vertex:City:0> <key:id> \"0\"^^<long>",
            "<vertex:City:0> <key:name> \"Wien\"",
            "edge:0 <key:since> \"2021\"^^<long>",
            "<vertex:User:Bob> <key:Follows> <vertex:User:Bob>  edge:0",
            "<vertex:User:Bob> <key:Near> <vertex:City:0>  edge:1",
            "<vertex:City:0> <key:Near> <vertex:City:0>  edge:2",
        ]
    );
    assert_eq!((report.missing_vertices, report.notes.len()), (0, 0), "{:?}", report.notes);
    let shown = schema(vec![Source::path(folder.path())], &options()).expect("a schema").to_string();
    assert!(shown.contains("edges, label Near") && shown.contains("source of User"), "{shown}");
}

/// A table without rows may be a file without bytes; a truncated copy of an export looks the same, so the
/// load notes it.
#[test]
fn an_empty_file_of_kuzu_is_noted() {
    let folder = kuzu(&[("City.csv", ""), ("Near_User_City.csv", ""), ("Near_City_City.csv", "")]);
    let (lines, report) = of_folder(folder.path()).expect("an export");
    assert!(!lines.iter().any(|line| line.contains("City")), "{lines:?}");
    assert_eq!(report.notes.len(), 3, "{:?}", report.notes);
    let note = &report.notes[0];
    assert!(note.contains("City.csv: the file is empty, so the table City has no rows"), "{note}");
}

#[test]
fn incomplete_exports_of_kuzu_are_errors() {
    for (name, text, says) in [
        ("copy.cypher", "", "copy.cypher has no COPY statement"),
        (
            "copy.cypher",
            "\nCOPY `Person` FROM \"a.csv\";",
            "copy.cypher:2: Person is not a table of schema.cypher",
        ),
        (
            "copy.cypher",
            "COPY City FROM \"Town.csv\";",
            "copy.cypher:1: there is no file Town.csv in the folder",
        ),
        (
            "copy.cypher",
            "COPY City FROM \"../../schema.cypher\";",
            "schema.cypher is neither CSV nor Parquet",
        ),
        ("copy.cypher", "COPY City (`id`, x) FROM \"City.csv\";", "the table City has no column x"),
        (
            "copy.cypher",
            "COPY City (`name`) FROM \"City.csv\";",
            "the columns of City lack its primary key id",
        ),
        (
            "copy.cypher",
            "COPY City FROM \"City.csv\" (delim='ab');",
            "delim=\"ab\" is not one ASCII character",
        ),
        ("copy.cypher", "COPY Near FROM \"City.csv\";", "the tables at the ends of Near are unknown"),
        ("copy.cypher", "COPY `City", "copy.cypher:1: the name in backticks is not closed"),
        ("schema.cypher", "CREATE NODE TABLE City (", "schema.cypher:1: expected )"),
        ("City.csv", "a.id\n0\n", "City.csv:1: the file has 1 columns, its table 2"),
        ("City.csv", "a.id,a.name\nx,Wien\n", "City.csv:2:1: \"x\" in column id is not a value of type long"),
    ] {
        let folder = kuzu(&[(name, text)]);
        let error = of_folder(folder.path()).expect_err(says);
        assert!(error.kind() == ErrorKind::Input && error.message().contains(says), "{error}");
        assert!(error.hint().is_some(), "{error}");
    }
    let folder = kuzu(&[]);
    fs::remove_file(folder.path().join("copy.cypher")).expect("it is there");
    let error = of_folder(folder.path()).expect_err("no copy.cypher");
    assert!(error.message().contains("has no file copy.cypher"), "{error}");
    // Hostile scripts: deep nesting, and every prefix.
    let deep = format!("CREATE NODE TABLE A (x {}", "STRUCT(".repeat(100_000));
    let folder = kuzu(&[("schema.cypher", &deep)]);
    assert_eq!(of_folder(folder.path()).expect_err("deep").kind(), ErrorKind::Input);
    for (name, text) in [KUZU[0], KUZU[1]] {
        for end in 0..text.len() {
            fs::write(folder.path().join("schema.cypher"), KUZU_SCHEMA).expect("a file");
            fs::write(folder.path().join("copy.cypher"), KUZU[1].1).expect("a file");
            fs::write(folder.path().join(name), &text[..end]).expect("a file");
            if let Err(error) = of_folder(folder.path()) {
                assert_eq!(error.kind(), ErrorKind::Input, "{end}: {error}");
            }
        }
    }
}

#[test]
fn folders_load_their_files() {
    let text = "id,label\n1,a\n";
    let folder = folder(&[
        ("b.csv", text),
        ("a.nt", "<urn:a> <urn:b> <urn:c> .\n"),
        ("README", "text"),
        (".x.csv", ""),
    ]);
    let (lines, report) = of_folder(folder.path()).expect("files");
    assert_eq!(lines, ["<urn:a> <urn:b> <urn:c>", "<vertex:1> a <label:a>"]);
    assert_eq!(report.notes.len(), 1);
    assert!(
        report.notes[0].ends_with("not read, since the format is unknown: .x.csv, README"),
        "{:?}",
        report.notes
    );
    let empty = tempfile::tempdir().expect("a temporary folder");
    let error = of_folder(empty.path()).expect_err("nothing");
    assert!(error.message().contains("has no file of a known format"), "{error}");
    assert!(error.hint().is_some_and(|hint| hint.contains("schema.cypher")), "{error}");
    let error = of_text("all.cypher", "CREATE (:A);").expect_err("a script");
    assert!(error.hint().is_some_and(|hint| hint.contains("apoc.export.json.all")), "{error:?}");
}

#[test]
fn headers_of_neo4j_may_be_files() {
    let files = [
        ("actors-header.csv", "id:ID(Actor){id-type: long};name;:LABEL\n"),
        ("actors.csv", "1;Keanu;Actor|Person\n"),
        ("actors-part1.csv", "2;Carrie;Actor\n"),
        ("actors-part1-header.csv.txt", ""),
        ("roles-header.csv", ":START_ID(Actor),role,:END_ID(Movie),:TYPE\n"),
        ("roles.csv", "1,Neo,7,ACTED_IN\n"),
        (
            "movies.csv",
            "movieId:ID(Movie),length:duration,first:localdatetime,at:localtime,place:point,:LABEL\n7,P1DT2H,2015-06-24T12:50:35.556,12:50:35.556,\"{latitude: 1.0, longitude: 2.0}\",Movie\n",
        ),
    ];
    let folder = folder(&files);
    let (lines, report) = of_folder(folder.path()).expect("an import");
    assert_eq!(
        lines,
        [
            "<vertex:Actor:2> a <label:Actor>",
            "<vertex:Actor:2> <key:id> \"2\"^^<int>",
            "<vertex:Actor:2> <key:name> \"Carrie\"",
            "<vertex:Actor:1> a <label:Actor|Person>".replace("Actor|Person", "Actor%7CPerson").as_str(),
            "<vertex:Actor:1> <key:id> \"1\"^^<int>",
            "<vertex:Actor:1> <key:name> \"Keanu\"",
            "<vertex:Movie:7> a <label:Movie>",
            "<vertex:Movie:7> <key:movieId> \"7\"^^<int>",
            "<vertex:Movie:7> <key:length> \"P1DT2H\"^^<duration>",
            "<vertex:Movie:7> <key:first> \"2015-06-24T12:50:35.556\"^^<dateTime>",
            "<vertex:Movie:7> <key:at> \"12:50:35.556\"^^<time>",
            "<vertex:Movie:7> <key:place> \"{latitude: 1.0, longitude: 2.0}\"",
            "edge:0 <key:role> \"Neo\"",
            "<vertex:Actor:1> <key:ACTED_IN> <vertex:Movie:7>  edge:0",
        ]
    );
    assert_eq!(report.missing_vertices, 0);
    fs::write(folder.path().join("roles.csv"), "1,Neo,7\n").expect("a file");
    let error = of_folder(folder.path()).expect_err("short");
    assert!(error.message().contains("roles.csv:1: the row has 3 fields, its header in "), "{error}");
    fs::remove_file(folder.path().join("roles.csv")).expect("it is there");
    let error = of_folder(folder.path()).expect_err("no rows");
    assert!(error.message().contains("roles-header.csv: there is no file for this header"), "{error}");
    assert!(error.hint().is_some_and(|hint| hint.contains("roles.csv")), "{error}");
}

const APOC_LINES: &str = r#"{"type":"node","id":"0","labels":["User","Admin"],"properties":{"age":42,"name":"Adam","kids":["Sam","Anna"],"place":{"crs":"wgs-84","height":null},"rate":1.5,"gone":null}}
{"type":"node","id":"1","labels":["User"],"properties":{"male":true}}

{"id":"5","type":"relationship","label":"KNOWS","properties":{"since":1993},"start":{"id":"0","labels":["User"]},"end":{"id":"1","labels":["User"]}}
"#;

fn apoc_graph() -> [&'static str; 13] {
    [
        "<vertex:0> a <label:User>",
        "<vertex:0> a <label:Admin>",
        "<vertex:0> <key:age> \"42\"^^<long>",
        "<vertex:0> <key:kids> \"Sam\"",
        "<vertex:0> <key:kids> \"Anna\"",
        "<vertex:0> <key:name> \"Adam\"",
        "<vertex:0> <key:place> \"{\\\"crs\\\":\\\"wgs-84\\\",\\\"height\\\":null}\"",
        "<vertex:0> <key:rate> \"1.5E0\"^^<double>",
        "<vertex:1> a <label:User>",
        "<vertex:1> <key:male> \"true\"^^<boolean>",
        "<vertex:0> <key:KNOWS> <vertex:1>  edge:0",
        "edge:0 <id> \"5\"",
        "edge:0 <key:since> \"1993\"^^<long>",
    ]
}

fn of_text(name: &str, text: &str) -> Result<(Vec<String>, LoadReport), Error> {
    read(vec![Source::bytes(name, text.as_bytes())])
}

#[test]
fn json_of_apoc_has_four_forms() {
    let mut expected = apoc_graph();
    expected.sort_unstable();
    let elements: Vec<&str> = APOC_LINES.lines().filter(|line| !line.is_empty()).collect();
    let [one, two, edge] = elements.as_slice() else { panic!("three elements") };
    for (name, text) in [
        ("all.json", APOC_LINES.to_owned()),
        ("all.jsonl", APOC_LINES.replace("\":", "\" : ")),
        ("all.json", format!("[{one},\n{two},{edge}]")),
        ("all.json", format!("{{\"nodes\":[{one},{two}],\"rels\":[{edge}]}}")),
        ("all.json", format!("{{\"nodes\":{{\"0\":{one},\"1\":{two}}},\"rels\":{{\"5\":{edge}}}}}")),
    ] {
        let (mut lines, report) = of_text(name, &text).unwrap_or_else(|error| panic!("{text}: {error}"));
        lines.sort_unstable();
        assert_eq!(lines, expected, "{text}");
        assert_eq!(report.missing_vertices, 0);
    }
}

#[test]
fn malformed_json_of_apoc_has_a_position() {
    let node = "{\"type\":\"node\",\"id\":\"0\"}\n";
    for (line, says) in [
        ("{\"type\":\"node\"}", "x.json:2: the node has no id"),
        ("{\"type\":\"path\",\"id\":1}", "x.json:2: the type \"path\" is neither node nor relationship"),
        (
            "{\"type\":\"relationship\",\"start\":{\"id\":\"0\"},\"end\":{\"id\":\"0\"}}",
            "x.json:2: the relationship has no label",
        ),
        (
            "{\"type\":\"relationship\",\"label\":\"a\",\"start\":{\"id\":\"0\"}}",
            "x.json:2: the relationship has no end",
        ),
        ("{\"type\":\"node\",\"id\":", "x.json:2:"),
        ("nothing", "x.json:2:"),
    ] {
        let text = format!("{node}{line}\n{node}");
        let error = of_text("x.json", &text).expect_err(line);
        assert!(error.kind() == ErrorKind::Input && error.message().starts_with(says), "{error}");
        let skipping = LoadOptions { skip_errors: true, ..options() };
        let source = vec![Source::bytes("x.json", text.as_bytes())];
        let report = load(source, &skipping, &mut MapTarget::default(), &mut std::io::sink()).expect("skips");
        assert_eq!((report.skipped, report.merged_vertices), (1, 1), "{line}");
    }
    let deep =
        format!("{node}{{\"type\":\"node\",\"id\":\"1\",\"properties\":{{\"a\":{}", "[".repeat(100_000));
    assert!(of_text("x.json", &deep).expect_err("deep").message().starts_with("x.json:2:"));
    // Every prefix of every form is a graph or an error.
    let whole = format!("{{\"nodes\":[{}],\"rels\":[]}}", node.trim());
    for text in [APOC_LINES, whole.as_str()] {
        for end in 0..text.len() {
            if let Err(error) = of_text("x.jsonl", &text[..end]) {
                assert_eq!(error.kind(), ErrorKind::Input, "{end}: {error}");
            }
        }
    }
}

#[test]
fn graphml_of_apoc_has_labels_and_lists() {
    let text = r#"<?xml version="1.0" encoding="UTF-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
<key id="born" for="node" attr.name="born" attr.type="long"/>
<key id="labels" for="node" attr.name="labels" attr.type="string"/>
<key id="roles" for="edge" attr.name="roles" attr.type="string" attr.list="string"/>
<key id="label" for="edge" attr.name="label" attr.type="string"/>
<key id="w" for="edge" attr.name="w" attr.type="double"/>
<graph id="G" edgedefault="directed">
<node id="n0" labels=":Person:Actor"><data key="labels">:Person:Actor</data><data key="born">1964</data></node>
<node id="n1" labels=":Movie"><data key="labels">:Movie</data></node>
<edge id="e0" source="n0" target="n1" label="ACTED_IN"><data key="label">ACTED_IN</data><data key="roles">["Neo","a \"b\""]</data><data key="w">nan</data></edge>
</graph>
</graphml>"#;
    let (lines, report) = of_text("x.graphml", text).expect("an export");
    assert_eq!(
        lines,
        [
            "<vertex:n0> a <label:Person>",
            "<vertex:n0> a <label:Actor>",
            "<vertex:n0> <key:born> \"1964\"^^<long>",
            "<vertex:n1> a <label:Movie>",
            "edge:0 <id> \"e0\"",
            "edge:0 <key:roles> \"Neo\"",
            "edge:0 <key:roles> \"a \\\"b\\\"\"",
            "edge:0 <key:w> \"NaN\"^^<double>",
            "<vertex:n0> <key:ACTED_IN> <vertex:n1>  edge:0",
        ]
    );
    assert_eq!(report.notes.len(), 0, "{:?}", report.notes);
    let error = of_text("x.graphml", &text.replace("[\"Neo\"", "(\"Neo\"")).expect_err("no list");
    assert!(
        error.message().starts_with("x.graphml:11:")
            && error.message().contains("of key roles is not a list"),
        "{error}"
    );
    let (lines, report) = of_text("x.graphml", &text.replace(" attr.type=\"long\"", "")).expect("untyped");
    assert!(lines.contains(&"<vertex:n0> <key:born> \"1964\"".to_owned()), "{lines:?}");
    let [note] = report.notes.as_slice() else { panic!("{:?}", report.notes) };
    assert!(
        note.starts_with("x.graphml: the key born declares no type") && note.contains("useTypes"),
        "{note}"
    );
    // A label that differs from the attribute is a property.
    let (lines, _) = of_text("x.graphml", &text.replace(">ACTED_IN<", ">acted<")).expect("a property");
    assert!(lines.contains(&"edge:0 <key:label> \"acted\"".to_owned()), "{lines:?}");
}

#[test]
fn csv_of_apoc_has_vertices_and_edges() {
    let text = concat!(
        "\"_id\",\"_labels\",\"born\",\"tags\",\"title\",\"_start\",\"_end\",\"_type\",\"roles\",\"n\"\n",
        "\"188\",\":Movie:Film\",\"\",\"[\"\"a;b\"\",\"\"c\"\"]\",\"[The] Matrix\",,,,,\n",
        "\"189\",\":Person\",\"1964\",\"\",\"\",,,,,\n",
        ",,,,,\"189\",\"188\",\"ACTED_IN\",\"[1,2]\",\"7\"\n",
    );
    let (lines, report) = of_text("all.csv", text).expect("an export");
    assert_eq!(
        lines,
        [
            "<vertex:188> a <label:Movie>",
            "<vertex:188> a <label:Film>",
            "<vertex:188> <key:tags> \"a;b\"",
            "<vertex:188> <key:tags> \"c\"",
            "<vertex:188> <key:title> \"[The] Matrix\"",
            "<vertex:189> a <label:Person>",
            "<vertex:189> <key:born> \"1964\"^^<int>",
            "edge:0 <key:roles> \"1\"^^<long>",
            "edge:0 <key:roles> \"2\"^^<long>",
            "edge:0 <key:n> \"7\"^^<int>",
            "<vertex:189> <key:ACTED_IN> <vertex:188>  edge:0",
        ]
    );
    assert_eq!((report.missing_vertices, report.notes.len()), (0, 0), "{:?}", report.notes);
    let shown = schema(vec![Source::bytes("all.csv", text.as_bytes())], &options()).expect("a schema");
    assert!(shown.to_string().contains("CSV of APOC"), "{shown}");
    for (old, new, says) in [
        ("\"189\",\"188\",", "\"189\",\"\",", "all.csv:4:1: the edge lacks its source or its target"),
        ("\"189\",\":Person", "\"\",\":Person", "all.csv:3:1: the vertex lacks its id"),
        ("\"tags\",", "\"born\",", "all.csv:1: columns 3 and 4 of the header are both called born"),
    ] {
        let error = of_text("all.csv", &text.replace(old, new)).expect_err(says);
        assert!(error.message().starts_with(says), "{error}");
    }
}

#[cfg(feature = "parquet")]
#[test]
fn exports_of_kuzu_may_be_parquet() {
    let header = include_str!("../parquet/tag_0_0.csv").lines().next().unwrap_or_default();
    let columns: Vec<&str> = header.split('|').collect();
    let defined: Vec<String> = columns[1..].iter().map(|column| format!("`{column}` STRING")).collect();
    let schema = format!("CREATE NODE TABLE Tag (`key` INT64,{}, PRIMARY KEY(`key`));", defined.join(","));
    let copy = "COPY `Tag` FROM \"tag_0_0.parquet\" ;\n";
    let folder = folder(&[("schema.cypher", &schema), ("copy.cypher", copy)]);
    fs::write(folder.path().join("tag_0_0.parquet"), include_bytes!("../parquet/tag_0_0.parquet"))
        .expect("a file");
    let (lines, report) = of_folder(folder.path()).expect("an export");
    // The schema names the columns, by their order; the file has their types.
    assert!(lines[0].starts_with("<vertex:Tag:") && lines[0].ends_with(" a <label:Tag>"), "{lines:?}");
    assert!(lines[1].ends_with("<key:key> \"0\"^^<int>"), "{lines:?}");
    assert_eq!(report.notes.len(), 0, "{:?}", report.notes);
    let text = schema.replace("`key` INT64,", "");
    fs::write(folder.path().join("schema.cypher"), text.replace("`key`", "name")).expect("a file");
    let error = of_folder(folder.path()).expect_err("too few columns");
    assert!(error.message().contains("columns, its table"), "{error}");
}

/// A link out of the folder of an export is refused; one within the folder is not.
#[cfg(unix)]
#[test]
fn links_out_of_an_export_are_refused() {
    use std::os::unix::fs::symlink;
    for name in ["City.csv", "schema.cypher"] {
        let (export, other) = (folder(&KUZU), folder(&[]));
        let (file, outside) = (export.path().join(name), other.path().join(name));
        fs::rename(&file, &outside).expect("a file");
        symlink(&outside, &file).expect("a link");
        let error = of_folder(export.path()).expect_err(name);
        assert_eq!(error.kind(), ErrorKind::Input);
        assert!(
            error.message().contains(name) && error.message().contains("outside of its folder"),
            "{error}"
        );
        assert!(error.hint().is_some_and(|hint| hint.contains("copy it into the folder")));
        fs::remove_file(&file).expect("a link");
        fs::rename(&outside, export.path().join("inside")).expect("a file");
        symlink("inside", &file).expect("a link");
        of_folder(export.path()).expect(name);
    }
}
