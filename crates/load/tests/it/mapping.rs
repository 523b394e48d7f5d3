//! Mapping files: column roles without headers; schemas, and printed mappings that load the same.

use std::path::PathBuf;
use vervet_load::testing::MapTarget;
use vervet_load::{LoadOptions, Mapping, Source, load, schema};
use vervet_model::Error;

fn load_texts(texts: &[(&str, &str)], options: &LoadOptions<'_>) -> Result<Vec<String>, Error> {
    let mut target = MapTarget::default();
    load(sources(texts), options, &mut target, &mut std::io::sink())?;
    let shorten = |line: String| {
        line.replace("http://www.w3.org/2001/XMLSchema#", "")
            .replace("<urn:vervet:", "<")
            .replace("<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>", "a")
    };
    Ok(target.lines().into_iter().map(shorten).collect())
}

fn sources(texts: &[(&str, &str)]) -> Vec<Source> {
    texts.iter().map(|(name, text)| Source::bytes(*name, text.as_bytes())).collect()
}

fn mapped(mapping: &str) -> LoadOptions<'static> {
    let mapping = Mapping::parse(mapping).unwrap_or_else(|error| panic!("{error}"));
    LoadOptions { threads: 1, mapping: Some(mapping), ..LoadOptions::default() }
}

/// Kùzu's `COPY` convention: the first column is the key, the first two are the ends.
#[test]
fn tables_without_headers_are_read() {
    let mapping = r#"
        [[file]]
        name = "user.csv"
        vertices = "User"
        space = "User"
        header = false
        list = "[,]"
        columns = ["name", "age:int", "tags:string[]"]

        [[file]]
        name = "follows*.csv"
        edges = "follows"
        from = "User"
        to = "User"
        header = false
        null = ["", "NULL"]
        columns = ["from", "to", "since:int"]
    "#;
    let user = "Adam,30,\"[a, b]\"\nZhang,50,[]\n";
    let lines = load_texts(
        &[("dir/user.csv", user), ("follows.csv", "Adam,Zhang,2022\nZhang,Adam,NULL\n")],
        &mapped(mapping),
    );
    assert_eq!(
        lines.expect("it loads"),
        [
            "<vertex:User:Adam> a <label:User>",
            "<vertex:User:Adam> <key:age> \"30\"^^<int>",
            "<vertex:User:Adam> <key:tags> \"a\"",
            "<vertex:User:Adam> <key:tags> \"b\"",
            "<vertex:User:Zhang> a <label:User>",
            "<vertex:User:Zhang> <key:age> \"50\"^^<int>",
            "edge:0 <key:since> \"2022\"^^<int>",
            "<vertex:User:Adam> <key:follows> <vertex:User:Zhang>  edge:0",
            "<vertex:User:Zhang> <key:follows> <vertex:User:Adam>  edge:1",
        ]
    );
}

/// Foreign keys as edges, in either direction, several in a cell; dates by patterns; ignored columns.
#[test]
fn columns_can_be_edges() {
    let mapping = r#"
        [[file]]
        name = "forum.csv"
        vertices = "Forum"
        separator = "|"
        quote = ""
        datetime = "%d.%m.%Y %H:%M"
        rest = "nothing"
        columns = [
          { name = "id", is = "id", space = "Forum", type = "long", property = "id" },
          { name = "moderator", edge = "hasModerator", to = "Person" },
          { name = "posts", edge = "containerOf", to = "Post", reverse = true, type = "string[]" },
          { name = "made", type = "datetime", property = "creationDate" },
        ]
    "#;
    let forum = "made|id|x|title|moderator|posts\n01.02.2012 03:04|7|y|\"a|5|8;9\n02.02.2012 00:00|8|y|b||\n";
    assert_eq!(
        load_texts(&[("forum.csv", forum)], &mapped(mapping)).expect("it loads"),
        [
            "<vertex:Forum:7> a <label:Forum>",
            "<vertex:Forum:7> <key:creationDate> \"2012-02-01T03:04:00\"^^<dateTime>",
            "<vertex:Forum:7> <key:id> \"7\"^^<long>",
            "<vertex:Forum:8> a <label:Forum>",
            "<vertex:Forum:8> <key:creationDate> \"2012-02-02T00:00:00\"^^<dateTime>",
            "<vertex:Forum:8> <key:id> \"8\"^^<long>",
            "<vertex:Forum:7> <key:hasModerator> <vertex:Person:5>  edge:0",
            "<vertex:Post:8> <key:containerOf> <vertex:Forum:7>  edge:1",
            "<vertex:Post:9> <key:containerOf> <vertex:Forum:7>  edge:2",
        ]
    );
    let check = |text: &str, part: &str| {
        let error = load_texts(&[("forum.csv", text)], &mapped(mapping)).expect_err(part).to_string();
        assert!(error.starts_with("forum.csv:") && error.contains(part), "{error}");
    };
    check("id|made\n", "the header has no column moderator");
    check(
        "made|id|moderator|posts\n2012-01-01|7||\n",
        "\"2012-01-01\" in column creationDate is not a value of type datetime",
    );
    check("made|id|moderator|posts\n|||\n", "the vertex lacks its id");
}

const FILES: [(&str, &str); 4] = [
    ("a.csv", "id,label,name,age,tags:string[]\n1,person,ann,3,a;b\n2,,\"b,c\",,\n"),
    ("b.csv", ":START_ID(P)|:END_ID(Q)|:TYPE|since:date|x\n1|2|knows|2020-02-29|1.5\n"),
    ("c.csv", "key:ID(P){id-type: long}\t:LABEL\tn:long\t:IGNORE\n1\ta;b\t7\tz\n"),
    ("d.ttl", "<urn:a> <urn:b> 1 ."),
];

#[test]
fn the_schema_is_shown() {
    let shown = schema(sources(&FILES), &LoadOptions::default()).expect("it is understood").to_string();
    let expected = "\
a.csv: vertices, label from a column, else vertex; 5 columns with ',' between them
  column         is             type
  id             id
  label          label
  name           property name  string
  age            property age   int
  tags:string[]  property tags  string[]
b.csv: edges, label from a column, else edge; 5 columns with '|' between them
  column        is              type
  :START_ID(P)  source of P
  :END_ID(Q)    target of Q
  :TYPE         label
  since:date    property since  date
  x             property x      double
c.csv: vertices, label from a column, else vertex; 4 columns with '\\t' between them
  column                    is                     type
  key:ID(P){id-type: long}  id of P, property key  int
  :LABEL                    label
  n:long                    property n             long
  :IGNORE                   nothing
d.ttl: statements of RDF
";
    assert_eq!(shown, expected);
}

/// A printed mapping loads the same as the headers do.
#[test]
fn a_printed_mapping_loads_the_same() {
    let ldbc = [
        ("person_0_0.csv", "id|firstName|language\n933|\"A|en;de\n"),
        (
            "person_knows_person_0_0.csv",
            "Person.id|Person.id|creationDate\n933|1129|2010-03-13T07:37:21.718+0000\n",
        ),
        ("person_email_emailaddress_0_0.csv", "Person.id|email\n933|a@b\n"),
    ];
    for (files, names_from_files) in [(&FILES[..], false), (&ldbc[..], true)] {
        let options = LoadOptions { threads: 1, names_from_files, ..LoadOptions::default() };
        let expected = load_texts(files, &options).expect("it loads");
        let printed = schema(sources(files), &options).expect("it is understood").to_mapping();
        assert_eq!(load_texts(files, &mapped(&printed)).expect("it loads"), expected, "{printed}");
        let again = schema(sources(files), &mapped(&printed)).expect("it is understood").to_mapping();
        assert_eq!(again, printed);
    }
}

/// The foreign-key mapping for LDBC in docs/loading.md is valid.
#[test]
fn the_examples_of_the_manual_are_mappings() {
    let manual = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/loading.md");
    let manual = std::fs::read_to_string(manual).expect("the manual");
    let examples: Vec<&str> =
        manual.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert!(!examples.is_empty());
    for example in examples {
        Mapping::parse(example).unwrap_or_else(|error| panic!("{error}"));
    }
}

/// The two forms of LDBC's tiny network are one graph: the edges are equal, as files or as columns.
#[test]
fn the_forms_of_ldbc_are_one_graph() {
    let beside = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let folder = std::env::var_os("VERVET_TEST_DATA").map_or(beside, PathBuf::from);
    let Ok(archive) = std::fs::File::open(folder.join("data/ldbc-snb/tiny.tar.zst")) else {
        eprintln!("skipped: no data/ldbc-snb at ../shared nor in VERVET_TEST_DATA");
        return;
    };
    let mut forms: [Vec<(String, Vec<u8>)>; 2] = [Vec::new(), Vec::new()];
    let mut archive = tar::Archive::new(zstd::Decoder::new(archive).expect("zstd"));
    for file in archive.entries().expect("an archive") {
        let mut file = file.expect("a file");
        let path = file.path().expect("a path").display().to_string();
        let form = ["tiny/vanilla/", "tiny/merge-foreign/"].iter().position(|form| path.starts_with(form));
        if let Some(form) = form.filter(|_| path.ends_with(".csv")) {
            let mut bytes = Vec::new();
            std::io::Read::read_to_end(&mut file, &mut bytes).expect("it can be read");
            forms[form].push((path, bytes));
        }
    }
    let mapping = include_str!("../../../../docs/ldbc-merge-foreign.toml");
    let edges = forms.map(|files| {
        let options = LoadOptions { names_from_files: true, ..mapped(mapping) };
        let is_vanilla = files.iter().any(|(name, _)| name.contains("vanilla"));
        let options = if is_vanilla { LoadOptions { mapping: None, ..options } } else { options };
        let mut target = MapTarget::default();
        let sources = files.into_iter().map(|(name, bytes)| Source::bytes(name, bytes)).collect();
        load(sources, &options, &mut target, &mut std::io::sink()).unwrap_or_else(|error| panic!("{error}"));
        let mut edges: Vec<String> = target
            .lines()
            .into_iter()
            .filter_map(|line| line.rsplit_once("  edge:").map(|(edge, _)| edge.to_owned()))
            .collect();
        edges.sort_unstable();
        edges
    });
    assert!(edges[0].len() > 50_000, "{}", edges[0].len());
    assert!(edges[0] == edges[1], "{} edges and {}", edges[0].len(), edges[1].len());
}
