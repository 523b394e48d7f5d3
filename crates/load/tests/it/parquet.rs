//! Parquet files of other writers (`tests/parquet/write.py`), compared with expected texts and with CSV;
//! damaged files.

use std::fs;
use std::path::{Path, PathBuf};
use vervet_load::testing::MapTarget;
use vervet_load::{LoadOptions, LoadReport, Mapping, Source, load, schema};
use vervet_model::{Error, ErrorKind};

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/parquet").join(name)
}

fn bytes(name: &str) -> Vec<u8> {
    fs::read(path(name)).expect("the file is in the repository")
}

fn text(name: &str) -> String {
    String::from_utf8(bytes(name)).expect("it is text")
}

fn try_load(
    sources: Vec<Source>,
    options: &LoadOptions<'_>,
) -> Result<(MapTarget, LoadReport, String), Error> {
    let mut target = MapTarget::default();
    let mut skipped = Vec::new();
    let report = load(sources, options, &mut target, &mut skipped)?;
    Ok((target, report, String::from_utf8(skipped).expect("the report is text")))
}

fn lines_with(names: &[&str], options: &LoadOptions<'_>) -> Vec<String> {
    let sources = names.iter().map(|name| Source::path(path(name))).collect();
    let (target, report, _) = try_load(sources, options).expect("the file is whole");
    let size: u64 = names.iter().map(|name| fs::metadata(path(name)).expect("it is there").len()).sum();
    assert!(report.bytes >= size, "{names:?}: progress ends at {} of {size}", report.bytes);
    let shorten = |line: String| {
        line.replace("http://www.w3.org/2001/XMLSchema#", "")
            .replace("urn:vervet:datatype:", "")
            .replace("<urn:vervet:", "<")
            .replace("<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>", "a")
    };
    target.lines().into_iter().map(shorten).collect()
}

fn lines(name: &str) -> Vec<String> {
    lines_with(&[name], &LoadOptions::default())
}

/// The expected statements of a text file: `vertex key datatype value` per line.
fn expected(name: &str) -> Vec<String> {
    let line = |line: &str| {
        let [vertex, key, datatype, value] = line.splitn(4, ' ').collect::<Vec<_>>()[..] else {
            panic!("{name} has the line {line}");
        };
        let datatype = if datatype == "string" { String::new() } else { format!("^^<{datatype}>") };
        format!("<vertex:{vertex}> <key:{key}> \"{value}\"{datatype}")
    };
    text(name).lines().map(line).collect()
}

fn sorted(mut lines: Vec<String>) -> Vec<String> {
    lines.sort();
    lines
}

#[test]
fn every_type_keeps_its_values() {
    for (name, labels) in [("types", &["vertex"; 4][..]), ("duckdb", &["b", "a"])] {
        let found = lines(&format!("{name}.parquet"));
        let (types, values): (Vec<_>, Vec<_>) = found.into_iter().partition(|line| line.contains(" a "));
        assert_eq!(sorted(values), sorted(expected(&format!("{name}.txt"))));
        let found: Vec<&str> =
            types.iter().map(|line| &line[line.find("<label:").expect("a label") + 7..]).collect();
        assert_eq!(found, labels.iter().map(|label| format!("{label}>")).collect::<Vec<_>>());
    }
}

#[test]
fn every_compression_and_encoding_gives_what_csv_gives() {
    let expected = lines("plain.csv");
    assert_eq!(expected.len(), 40 * 5 - 8 - 6 + 40, "the text has what it should");
    for name in [
        "none",
        "snappy",
        "gzip",
        "brotli",
        "zstd",
        "lz4",
        "v2_snappy",
        "v2_zstd",
        "delta",
        "delta_v2",
        "pages",
        "duckdb_lz4",
        "duckdb_brotli",
    ] {
        assert_eq!(lines(&format!("plain_{name}.parquet")), expected, "{name}");
    }
}

#[test]
fn lists_go_over_pages_and_row_groups() {
    for name in ["lists.parquet", "lists_v2.parquet"] {
        let found = lines(name);
        let expected = text("lists.txt");
        let mut values: Vec<String> = found
            .iter()
            .filter_map(|line| line.strip_prefix("edge:"))
            .map(|line| {
                line.replace("<key:", "").replace("> \"", " ").replace("\"^^<int>", "").replace('"', "")
            })
            .collect();
        values.sort();
        values.dedup();
        assert_eq!(values, sorted(expected.lines().map(str::to_owned).collect()), "{name}");
        let edges: Vec<&String> = found.iter().filter(|line| line.contains(" edge:")).collect();
        assert_eq!(edges.len(), 7);
        assert_eq!(edges[4], "<vertex:4> <key:likes> <vertex:2>  edge:4");
    }
}

/// The same network as CSV and as Parquet is one graph.
#[test]
fn a_network_is_the_same_from_csv() {
    let stems = [
        "person_0_0",
        "tag_0_0",
        "person_knows_person_0_0",
        "person_hasInterest_tag_0_0",
        "person_email_emailaddress_0_0",
    ];
    let options = LoadOptions { names_from_files: true, ..LoadOptions::default() };
    let named = |end: &str| stems.map(|stem| format!("{stem}.{end}"));
    let [csv, parquet] = ["csv", "parquet"].map(|end| {
        let names = named(end);
        lines_with(&names.each_ref().map(String::as_str), &options)
    });
    assert!(csv.len() > 30, "{csv:?}");
    assert_eq!(csv, parquet);
}

#[test]
fn int96_is_a_local_time_and_a_mapping_makes_bytes_texts() {
    let error =
        try_load(vec![Source::path(path("int96.parquet"))], &LoadOptions::default()).expect_err("bytes");
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.to_string().contains("column raw has the type binary"), "{error}");
    let mapping = "[[file]]\nname = '*.parquet'\nvertices = 'V'\ncolumns = ['id', 'raw:string']";
    let options = LoadOptions {
        mapping: Some(Mapping::parse(mapping).expect("a mapping")),
        skip_errors: true,
        ..LoadOptions::default()
    };
    let (target, report, skipped) =
        try_load(vec![Source::bytes("x.parquet", bytes("int96.parquet"))], &options)
            .expect("two rows of three");
    assert_eq!(report.skipped, 1);
    assert_eq!(skipped, "x.parquet: row 3 (row group 1), column raw: the text is not UTF-8\n");
    let found =
        target.lines().join("\n").replace("urn:vervet:", "").replace("http://www.w3.org/2001/XMLSchema#", "");
    assert!(found.contains("<vertex:a> <key:at> \"2020-02-29T00:00:00.123456789\"^^<dateTime>"), "{found}");
    assert!(found.contains("<vertex:b> <key:raw> \"ä\""), "{found}");
    assert!(!found.contains("vertex:c"), "{found}");
}

#[test]
fn unsupported_columns_are_named() {
    let columns = [
        ("structure", "struct"),
        ("pair", "struct"),
        ("map", "map"),
        ("nested", "list of lists or of structs"),
        ("structures", "list of lists or of structs"),
        ("bytes", "binary"),
        ("length", "interval"),
    ];
    for (column, what) in columns {
        let others: Vec<String> = columns
            .iter()
            .filter(|(other, _)| *other != column)
            .map(|(other, _)| format!("{{ name = '{other}', is = 'nothing' }}, "))
            .collect();
        let entry = |rest: &str| {
            format!(
                "[[file]]\nname = '*'\nvertices = 'V'\ncolumns = [{{ name = 'id', is = 'id' }}, {}{rest}]",
                others.concat()
            )
        };
        let load_with = |mapping: &str| {
            let mapping = Some(Mapping::parse(mapping).expect("a mapping"));
            let options = LoadOptions { mapping, ..LoadOptions::default() };
            try_load(vec![Source::bytes("x.parquet", bytes("unsupported.parquet"))], &options)
        };
        let error = load_with(&entry("")).expect_err("no place for it");
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        let start = format!("x.parquet: column {column} has the type {what}, which is not supported");
        assert!(error.to_string().starts_with(&start), "{error}");
        let (target, ..) =
            load_with(&entry(&format!("{{ name = '{column}', is = 'nothing' }}"))).expect("nothing of it");
        assert_eq!(target.statements.len(), 1);
    }
}

#[test]
fn the_schema_is_shown_and_is_a_mapping() {
    let sources = || vec![Source::path(path("plain_zstd.parquet")), Source::path(path("lists.parquet"))];
    let shown = schema(sources(), &LoadOptions::default()).expect("the files are whole");
    let text = shown.to_string();
    for part in [
        "plain_zstd.parquet: vertices, label from a column, else vertex; 7 columns\n",
        "  share   property share   decimal\n",
        "lists.parquet: edges, label from a column, else edge; 5 columns\n",
        "  numbers  property numbers  int[]\n",
    ] {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
    let mapping = Some(Mapping::parse(&shown.to_mapping()).expect("what is printed can be read"));
    let options = LoadOptions { mapping, ..LoadOptions::default() };
    let both = ["plain_zstd.parquet", "lists.parquet"];
    assert_eq!(lines_with(&both, &options), lines_with(&both, &LoadOptions::default()));
}

#[test]
fn mappings_define_columns() {
    let mapping = r#"
        [[file]]
        name = "plain_*.parquet"
        vertices = "Being"
        null = ["dog"]
        rest = "nothing"
        columns = [
            { name = "id", is = "id", space = "B" },
            { name = "name", is = "property", property = "called" },
            { name = "age", edge = "aged", to = "Age" },
            { name = "label", property = "sort" },
            { name = "height", type = "string" },
            { name = "share", type = "double" },
        ]"#;
    let options = |text: &str| LoadOptions {
        mapping: Some(Mapping::parse(text).expect("a mapping")),
        ..LoadOptions::default()
    };
    let found = lines_with(&["plain_gzip.parquet"], &options(mapping));
    for line in [
        "<vertex:B:1> a <label:Being>",
        "<vertex:B:1> <key:called> \"name of 1\"",
        "<vertex:B:2> <key:sort> \"person\"",
        "<vertex:B:3> <key:height> \"7.5E-1\"",
        "<vertex:B:3> <key:share> \"3.75E-1\"^^<double>",
        "<vertex:B:6> <key:aged> <vertex:Age:36>  edge:5",
    ] {
        assert!(found.iter().any(|found| found == line), "{line} is not in {found:#?}");
    }
    assert!(!found.iter().any(|line| line.contains("dog") || line.contains("tall")), "{found:#?}");

    let wrong = |text: &str, start: &str| {
        let error =
            try_load(vec![Source::bytes("plain_x.parquet", bytes("plain_none.parquet"))], &options(text));
        let error = error.expect_err("wrong").to_string();
        assert!(error.starts_with(start), "{error}");
    };
    let entry = "[[file]]\nname = '*'\nvertices = 'V'\n";
    wrong(&format!("{entry}columns = ['nobody']"), "plain_x.parquet: the header has no column nobody");
    wrong(
        &format!("{entry}columns = ['id', 'name:int']"),
        "plain_x.parquet: row 2 (row group 1), column name: \"name of 1\"",
    );
    wrong(
        &format!("{entry}header = false\ncolumns = ['id']"),
        "plain_x.parquet: the columns of Parquet have names",
    );
    wrong(
        "[[file]]\nname = '*'\nvertices = 'V'\ncolumns = ['id', 'age:boolean']",
        "plain_x.parquet: row 3 (row group 1), column age: \"4\"",
    );
}

#[test]
fn malformed_rows_are_skipped_by_number() {
    let mapping =
        "[[file]]\nname = '*'\nvertices = 'V'\ncolumns = [{ name = 'name', is = 'id' }]\nrest = 'nothing'";
    let options = LoadOptions {
        mapping: Some(Mapping::parse(mapping).expect("a mapping")),
        skip_errors: true,
        ..LoadOptions::default()
    };
    let source = || vec![Source::bytes("x.parquet", bytes("plain_pages.parquet"))];
    let (target, report, skipped) = try_load(source(), &options).expect("the others");
    assert_eq!((report.skipped, target.statements.len()), (8, 32));
    assert!(skipped.contains("x.parquet: row 36 (row group 3), "), "{skipped}");
    let error = try_load(source(), &LoadOptions { skip_errors: false, ..options }).expect_err("no id");
    assert!(error.to_string().starts_with("x.parquet: row 1 (row group 1), "), "{error}");
}

#[test]
fn streams_are_buffered_and_compressed_files_refused() {
    let stream = Source::reader("standard input", std::io::Cursor::new(bytes("plain_zstd.parquet")));
    let options = LoadOptions { format: vervet_load::Format::from_name("Parquet"), ..LoadOptions::default() };
    let (target, ..) = try_load(vec![stream], &options).expect("it is whole");
    assert_eq!(target.statements.len(), lines("plain.csv").len());
    let packed = zstd::encode_all(&bytes("plain_none.parquet")[..], 3).expect("memory");
    for name in ["x.parquet.zst", "x.parquet"] {
        let error = try_load(vec![Source::bytes(name, &packed[..])], &LoadOptions::default())
            .expect_err("compressed");
        assert!(error.to_string().contains("decompress it first"), "{error}");
    }
}

/// Errors of truncated or damaged files contain a position. The worst outcome is an error.
#[test]
fn damaged_files_are_errors() {
    let options = LoadOptions { format: vervet_load::Format::from_name("parquet"), ..LoadOptions::default() };
    let error = |bytes: Vec<u8>| {
        let error = try_load(vec![Source::bytes("x.parquet", bytes)], &options).expect_err("it is damaged");
        assert!(
            matches!(error.kind(), ErrorKind::Input | ErrorKind::Unsupported),
            "{:?}: {error}",
            error.kind()
        );
        let text = error.to_string();
        assert!(text.starts_with("x.parquet: "), "{text}");
        text
    };
    let whole = bytes("plain_snappy.parquet");
    for end in 0..whole.len() {
        error(whole[..end].to_vec());
    }
    assert!(error(Vec::new()).contains("too early"));
    let footer = whole.len()
        - 8
        - u32::from_le_bytes(whole[whole.len() - 8..][..4].try_into().expect("four")) as usize;
    let changed = |at: usize, bytes: &[u8]| {
        let mut changed = whole.clone();
        changed[at..at + bytes.len()].copy_from_slice(bytes);
        changed
    };
    assert!(error(changed(0, b"PAX1")).contains("PAR1"));
    assert!(error(changed(whole.len() - 4, b"PARE")).contains("encrypted"));
    assert!(error(changed(whole.len() - 8, &[0xFF, 0xFF, 0, 0])).contains("longer than the file"));
    assert!(error(changed(whole.len() - 8, &[0xFF; 4])).contains("FOOTER_BYTES_MAX"));
    assert!(error(changed(whole.len() - 8, &[3, 0, 0, 0])).contains("footer is damaged"));
    assert!(error(changed(footer, &[0xFF; 40])).contains("footer"));
    // The header of the page that has the names.
    let message = error(changed(516, &[0xFF; 20]));
    assert!(message.contains("row group 1, column name: the header of a page is damaged"), "{message}");
    // A page that is valid except for its checksum.
    let mut checked = bytes("plain_v2_zstd.parquet");
    let at = checked.windows(4).position(|bytes| bytes == [0x28, 0xB5, 0x2F, 0xFD]).expect("a page of zstd");
    checked[at + 9] ^= 1;
    assert!(error(checked).contains("row group 1, column "));
}

/// Every byte of small files, changed one at a time: statements or an error.
#[test]
fn files_with_mutated_bytes_do_not_panic() {
    let options = LoadOptions {
        format: vervet_load::Format::from_name("parquet"),
        skip_errors: true,
        ..LoadOptions::default()
    };
    for name in ["lists.parquet", "plain_delta.parquet", "int96.parquet", "tag_0_0.parquet"] {
        let whole = bytes(name);
        for at in 0..whole.len() {
            for change in [0x01_u8, 0x80, 0xFF] {
                let mut changed = whole.clone();
                changed[at] ^= change;
                if let Err(error) = try_load(vec![Source::bytes("x.parquet", changed)], &options) {
                    assert!(
                        matches!(error.kind(), ErrorKind::Input | ErrorKind::Unsupported),
                        "{name}, byte {at}: {:?}: {error}",
                        error.kind()
                    );
                }
            }
        }
    }
}
