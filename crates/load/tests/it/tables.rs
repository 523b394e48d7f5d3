//! Tables and graph files of other programs: headers of Gephi, NetworkX, igraph, pandas and spreadsheets,
//! missing ids, labels under other keys, undirected graphs, and the notes of the report.

use vervet_load::testing::MapTarget;
use vervet_load::{LoadOptions, LoadReport, Mapping, Source, load, schema};
use vervet_model::{Error, ErrorKind};

fn sources(files: &[(&str, &str)]) -> Vec<Source> {
    files.iter().map(|(name, text)| Source::bytes(*name, text.as_bytes())).collect()
}

fn read(files: &[(&str, &str)], options: &LoadOptions<'_>) -> Result<(Vec<String>, LoadReport), Error> {
    let mut target = MapTarget::default();
    let report = load(sources(files), options, &mut target, &mut std::io::sink())?;
    let shorten = |line: String| {
        line.replace("http://www.w3.org/2001/XMLSchema#", "")
            .replace("<urn:vervet:", "<")
            .replace("<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>", "a")
    };
    Ok((target.lines().into_iter().map(shorten).collect(), report))
}

fn options() -> LoadOptions<'static> {
    LoadOptions { threads: 1, ..LoadOptions::default() }
}

/// users 38: headers of other programs, in any case, with any separator.
#[test]
fn users_38_headers_of_other_programs_are_understood() {
    let edge = ["edge:0 <key:weight> \"2\"^^<int>", "<vertex:1> <key:edge> <vertex:2>  edge:0"];
    for header in [
        "source,target,weight",
        "src,dst,weight",
        "Source;Target;weight",
        "FROM\tTo\tweight",
        "from_id|to_id|weight",
    ] {
        let separator = header.chars().find(|letter| ",;\t|".contains(*letter)).unwrap().to_string();
        let text = format!("{header}\n{}\n", ["1", "2", "2"].join(&separator));
        assert_eq!(read(&[("e.csv", &text)], &options()).unwrap().0, edge, "{header}");
        assert_eq!(read(&[("e.tsv", &text)], &options()).unwrap().0, edge, "{header}");
    }
    let (lines, _) = read(&[("v.csv", "ID;Name;Label\n1;Ann;person\n")], &options()).unwrap();
    assert_eq!(lines, ["<vertex:1> a <label:person>", "<vertex:1> <key:Name> \"Ann\""]);
    // Exact names precede similar ones, and a single end is a property.
    let (lines, _) = read(&[("v.csv", "ID,id,source\n7,1,a\n")], &options()).unwrap();
    assert_eq!(
        lines,
        ["<vertex:1> a <label:vertex>", "<vertex:1> <key:ID> \"7\"^^<int>", "<vertex:1> <key:source> \"a\""]
    );
}

/// users 38: vertices without an id column get one by name, or row numbers; otherwise the hint explains the
/// options.
#[test]
fn users_38_ids_that_are_missing_are_named_or_numbered() {
    let people = [("people.csv", "Name,Age\nAnn,31\nBob,27\n")];
    let error = read(&people, &options()).expect_err("no id");
    assert!(error.to_string().starts_with("people.csv:1: "), "{error}");
    let hint = error.hint().expect("a hint");
    assert!(
        ["--id", "Name, Age", "--row-ids", "source and target", "--print-mapping"]
            .iter()
            .all(|part| hint.contains(part)),
        "{hint}"
    );
    let named = LoadOptions { id_column: Some("name".to_owned()), ..options() };
    let (lines, _) = read(&people, &named).unwrap();
    assert_eq!(lines[..2], ["<vertex:Ann> a <label:vertex>", "<vertex:Ann> <key:Name> \"Ann\""]);
    let numbered = LoadOptions { row_ids: true, ..options() };
    let (lines, _) = read(&people, &numbered).unwrap();
    assert_eq!(lines[0], "<vertex:people:1> a <label:vertex>");
    assert_eq!(lines[3], "<vertex:people:2> a <label:vertex>");
    // The schema and the printed mapping match the load.
    let shown = schema(sources(&people), &numbered).unwrap();
    assert!(shown.to_string().contains("the id is the number of the row"), "{shown}");
    let mapping = Mapping::parse(&shown.to_mapping()).unwrap_or_else(|error| panic!("{error}"));
    let mapped = LoadOptions { mapping: Some(mapping), ..options() };
    assert_eq!(read(&people, &mapped).unwrap().0, lines, "{}", shown.to_mapping());
}

/// users 39: a default mapping is printed even for files with unknown headers; an entry that matches no file
/// is an error.
#[test]
fn users_39_every_file_has_a_mapping_to_begin_with() {
    let files = [("people.csv", "Name,Age\nAnn,31\n"), ("odd.csv", "place:shape,x\n1,2\n")];
    let printed = schema(sources(&files), &options()).unwrap().to_mapping();
    assert!(printed.contains("# A guess, since the header names neither"), "{printed}");
    let mapping = Mapping::parse(&printed).unwrap_or_else(|error| panic!("{error}\n{printed}"));
    let mapped = LoadOptions { mapping: Some(mapping), ..options() };
    let (lines, _) = read(&files, &mapped).unwrap();
    assert_eq!(lines[..2], ["<vertex:Ann> a <label:vertex>", "<vertex:Ann> <key:Age> \"31\"^^<int>"]);
    let error = read(&files[..1], &mapped).expect_err("an entry too many");
    assert!(error.kind() == ErrorKind::Input && error.message().contains("odd.csv"), "{error}");
    assert!(error.hint().is_some_and(|hint| hint.contains("people.csv")));
    assert!(schema(sources(&files[..1]), &mapped).is_err());
}

const KARATE: &str = r#"<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
  <key id="d0" for="all" attr.name="label" attr.type="string"/>
  <key id="d1" for="edge" attr.name="Edge Label" attr.type="string"/>
  <graph edgedefault="undirected">
    <node id="a"><data key="d0">person</data></node>
    <node id="b"/>
    <edge source="a" target="b"><data key="d1">knows</data></edge>
    <edge source="a" target="a"/>
    <edge source="b" target="c" directed="true"/>
  </graph>
</graphml>"#;

/// users 40: labels under keys from the options; undirected edges are counted, and optionally loaded in both
/// directions.
#[test]
fn users_40_graphml_of_networkx_and_gephi() {
    let named = LoadOptions { label_keys: vec!["label".to_owned(), "Edge Label".to_owned()], ..options() };
    let (lines, report) = read(&[("k.graphml", KARATE)], &named).unwrap();
    assert_eq!(
        lines,
        [
            "<vertex:a> a <label:person>",
            "<vertex:b> a <label:vertex>",
            "<vertex:a> <key:knows> <vertex:b>  edge:0",
            "<vertex:a> <key:edge> <vertex:a>  edge:1",
            "<vertex:b> <key:edge> <vertex:c>  edge:2",
        ]
    );
    assert_eq!((report.undirected_edges, report.missing_vertices, report.merged_vertices), (2, 1, 0));
    let both = LoadOptions { both_directions: true, ..named };
    let (lines, report) = read(&[("k.graphml", KARATE)], &both).unwrap();
    assert_eq!(report.undirected_edges, 2);
    assert!(lines.contains(&"<vertex:b> <key:knows> <vertex:a>  edge:1".to_owned()), "{lines:?}");
    assert_eq!(lines.iter().filter(|line| line.contains("edge:")).count(), 4, "{lines:?}");
    // Gephi has a direction column.
    let text = "Source,Target,Type,Weight\n1,2,Undirected,0.5\n2,3,Directed,1.5\n";
    let (lines, report) =
        read(&[("e.csv", text)], &LoadOptions { both_directions: true, ..options() }).unwrap();
    assert_eq!(report.undirected_edges, 1);
    assert!(lines.iter().any(|line| line.starts_with("<vertex:2> <key:edge> <vertex:1> ")), "{lines:?}");
    // A column may also be the label.
    let typed = LoadOptions { label_keys: vec!["type".to_owned()], ..options() };
    let (lines, _) = read(&[("e.csv", "source,target,type\n1,2,knows\n")], &typed).unwrap();
    assert_eq!(lines, ["<vertex:1> <key:knows> <vertex:2>  edge:0"]);
}

/// users 41: the report notes rows with equal ids, ends without a row, and columns that one value has made
/// text.
#[test]
fn users_41_merges_and_missing_ends_are_counted() {
    let files = [
        ("v.csv", "id,name,age\n1,Ann,31\n1,Anna,32\n2,Bob,27\n3,Eve,40\n4,Fay,unknown\n"),
        ("e.csv", "from,to\n1,2\n1,9\n8,9\n"),
    ];
    let (_, report) = read(&files, &options()).unwrap();
    assert_eq!((report.merged_vertices, report.missing_vertices), (1, 2));
    let [note] = report.notes.as_slice() else { panic!("{:?}", report.notes) };
    assert!(
        ["v.csv: column age", "\"unknown\"", "line 6", "4 values", "age:int"]
            .iter()
            .all(|part| note.contains(part)),
        "{note}"
    );
    // Vertices from before the load are not missing; additional values for a vertex are no merge.
    let more = "[[file]]\nname = 'v.csv'\nvertices = 'P'\n[[file]]\nname = 'm.csv'\nvertices = ''\n";
    let mapped = LoadOptions { mapping: Some(Mapping::parse(more).unwrap()), ..options() };
    let (_, report) = read(&[("v.csv", "id,a\n1,x\n"), ("m.csv", "id,b\n1,y\n")], &mapped).unwrap();
    assert_eq!((report.merged_vertices, report.missing_vertices, report.notes.len()), (0, 0, 0));
}

/// users 42: errors of libraries in plain words, with appropriate hints.
#[test]
fn users_42_errors_of_documents_say_what_to_do() {
    for (name, text, says, hint) in [
        ("a.ttl", "<urn:a> <urn:b> \"open .\n", "the file ends inside", "closing quote"),
        ("a.ttl", "<a> <urn:b> <urn:c> .\n", "relative IRI", "--base"),
        ("a.ttl", "<urn:a> <urn:b> \"x\"@engl!sh .\n", "a.ttl:1:", "language tags"),
        ("node-link.json", "{\"directed\": false, \"nodes\": []}", "node-link.json:1:", "GraphSON"),
    ] {
        let error = read(&[(name, text)], &options()).expect_err(text);
        assert!(error.message().contains(says), "{error}");
        assert!(error.hint().is_some_and(|given| given.contains(hint)), "{error}: {:?}", error.hint());
    }
}

#[test]
fn quotes_that_swallow_rows_are_errors() {
    for (text, line) in [
        ("id,name\n1,Ann\n2,\"Bob\n3,Eve\n4,\"Dan\n5,Flo\n", 3),
        ("id,name\n1,\"Zoe\n2,Max\n", 2),
        // The separator is detected.
        ("id;name\r\n1;\"Zoe\r\n2;Max\r\n", 2),
    ] {
        let error = read(&[("people.csv", text)], &options()).expect_err(text);
        let says = format!("people.csv:{line}: the quoted field that begins in line {line} is not closed");
        assert_eq!(error.message(), says);
        assert!(error.hint().is_some_and(|hint| hint.contains("close the quote")), "{error}");
    }
    read(&[("people.csv", "id,name\n1,\"two\nlines\"\n2,\"a \"\"b\"\"\"\n")], &options()).unwrap();
}

/// The options give a label to rows of a file that has none; labels of the file take precedence.
#[test]
fn a_default_label_is_that_of_rows_without_one() {
    let labeled = LoadOptions { default_label: Some("Person".to_owned()), ..options() };
    let (lines, _) = read(&[("v.csv", "id,age\n1,2\n")], &labeled).unwrap();
    assert_eq!(lines, ["<vertex:1> a <label:Person>", "<vertex:1> <key:age> \"2\"^^<int>"]);
    let (lines, _) = read(&[("v.csv", "id,label\n1,\n2,Cat\n")], &labeled).unwrap();
    assert_eq!(lines, ["<vertex:1> a <label:Person>", "<vertex:2> a <label:Cat>"]);
    let (lines, _) = read(&[("e.csv", "from,to\n1,2\n")], &labeled).unwrap();
    assert_eq!(lines, ["<vertex:1> <key:Person> <vertex:2>  edge:0"]);
    let shown = schema(sources(&[("v.csv", "id,age\n1,2\n")]), &labeled).unwrap().to_string();
    assert!(shown.contains("vertices, label Person"), "{shown}");
}

/// With names from files, headers of the plain dialect have their roles, other names of the columns and the
/// options for them included; the file name gives labels and id spaces.
#[test]
fn names_from_files_go_with_plain_headers() {
    let named = LoadOptions { names_from_files: true, id_column: Some("pid".to_owned()), ..options() };
    let files = [
        ("person.csv", "name,pid\n\"Ann, \"\"A\"\"\",1\n"),
        ("blog_post_0.csv", "ID,title\n7,x\n"),
        ("person_likes_blog_0_0.csv", "Source,since,Target\n1,5,7\n"),
    ];
    let (lines, report) = read(&files, &named).unwrap();
    assert_eq!(
        lines,
        [
            "<vertex:Person:1> a <label:Person>",
            "<vertex:Person:1> <key:name> \"Ann, \\\"A\\\"\"",
            "<vertex:Person:1> <key:pid> \"1\"^^<int>",
            "<vertex:Blog_post:7> a <label:Blog_post>",
            "<vertex:Blog_post:7> <key:ID> \"7\"^^<int>",
            "<vertex:Blog_post:7> <key:title> \"x\"",
            "edge:0 <key:since> \"5\"^^<int>",
            "<vertex:Person:1> <key:likes> <vertex:Blog:7>  edge:0",
        ]
    );
    assert_eq!(report.missing_vertices, 1);
    let error = read(&[("knows.csv", "from,to\n1,2\n")], &named).expect_err("no kinds of vertices");
    assert!(error.to_string().contains("the file name does not give"), "{error}");
    assert!(error.hint().is_some_and(|hint| hint.contains("--default-label")), "{error:?}");
    let error = read(&[("person.csv", "name,age\nAnn,2\n")], &named).expect_err("no id");
    assert!(error.to_string().contains("neither vertices nor edges"), "{error}");
}
