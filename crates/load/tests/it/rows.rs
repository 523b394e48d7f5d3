//! Rows of CSV files: their lines in messages, quotes, duplicate names, blanks, and notes on inferred types.

use vervet_load::testing::MapTarget;
use vervet_load::{LoadOptions, LoadReport, Mapping, Source, load};
use vervet_model::{Error, ErrorKind};

fn options() -> LoadOptions<'static> {
    LoadOptions { threads: 1, ..LoadOptions::default() }
}

fn read(text: &str, options: &LoadOptions<'_>) -> Result<(Vec<String>, LoadReport, String), Error> {
    let mut target = MapTarget::default();
    let mut skipped = Vec::new();
    let source = Source::bytes("x.csv", text.as_bytes());
    let report = load(vec![source], options, &mut target, &mut skipped)?;
    let shorten = |line: String| {
        line.replace("http://www.w3.org/2001/XMLSchema#", "")
            .replace("<urn:vervet:", "<")
            .replace("<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>", "a")
    };
    let skipped = String::from_utf8(skipped).expect("the report is text");
    Ok((target.lines().into_iter().map(shorten).collect(), report, skipped))
}

fn error(text: &str) -> Error {
    read(text, &options()).expect_err(text)
}

#[test]
fn line_numbers_match_those_of_an_editor() {
    let unix = "\nid,n:int\n1,2\n\n\n2,x\n3,\"4\n\n\"\n4,y\n5,6,7\n";
    let line = |text: &str| error(text).to_string();
    assert!(line(unix).starts_with("x.csv:6:3: "), "{}", line(unix));
    for text in [unix.to_owned(), unix.replace('\n', "\r\n"), unix.replace('\n', "\r")] {
        assert_eq!(error(&text).position().map(|position| position.line), Some(6), "{text:?}");
        let skipping = LoadOptions { skip_errors: true, ..options() };
        let (_, report, skipped) = read(&text, &skipping).expect("skips");
        // The row with line breaks in a number, and the one after it.
        let lines: Vec<&str> = skipped.lines().map(|line| line.split(": ").next().unwrap_or("")).collect();
        assert_eq!((report.skipped, lines), (3, vec!["x.csv:6:3", "x.csv:10:3", "x.csv:11:1"]), "{text:?}");
    }
    // Without quotes, with an inferred column, and for the header.
    let text = "\r\nid,a\r\n\r\n1,\"x\r\n2\r\n";
    let mapping = Mapping::parse("[[file]]\nname = 'x.csv'\nvertices = 'a'\nquote = ''\n").unwrap();
    let mapped = LoadOptions { mapping: Some(mapping), ..options() };
    assert!(
        read(text, &mapped).expect_err("short").to_string().starts_with("x.csv:5:1: the row has 1 fields")
    );
    assert!(line("\r\n\r\nname,age\r\n1,2\r\n").starts_with("x.csv:3: "), "the header");
    let (_, report, _) = read("id,a\r\n\r\n1,1\r\n2,2\r\n\r\n3,x\r\n", &options()).unwrap();
    assert!(report.notes[0].contains("\"x\" in line 6"), "{:?}", report.notes);
}

#[test]
fn text_behind_a_closing_quote_is_an_error() {
    let text = "id,name\r\n1,Ann\r\n2,\"Bo\"b\"\r\n3,\"B \"\"x\"\"\"\r\n";
    let found = error(text);
    assert_eq!(found.kind(), ErrorKind::Input);
    assert_eq!(found.message(), "x.csv:3: field 2 has text behind its closing quote");
    assert!(
        found.hint().is_some_and(|hint| hint.contains("twice") && hint.contains("quote = \"\"")),
        "{found:?}"
    );
    let skipping = LoadOptions { skip_errors: true, ..options() };
    let (lines, report, skipped) = read(text, &skipping).unwrap();
    assert_eq!(
        (report.skipped, skipped.as_str()),
        (1, "x.csv:3: field 2 has text behind its closing quote\n")
    );
    assert_eq!(lines[3], "<vertex:3> <key:name> \"B \\\"x\\\"\"");
    assert_eq!(error("id,\"na\"me\n1,2\n").message(), "x.csv:1: field 2 has text behind its closing quote");
    // Quotes in unquoted fields are ordinary.
    let (lines, _, _) = read("id,name\n1,5\" pipe\n2,a \"b\" c\n", &options()).unwrap();
    assert_eq!(lines[1], "<vertex:1> <key:name> \"5\\\" pipe\"");
}

#[test]
fn two_columns_of_one_name_are_an_error() {
    for (header, says) in [
        ("id,name,age,name", "columns 2 and 4 of the header are both called name"),
        ("id,age:int, age", "columns 2 and 3 of the header are both called age"),
        ("id,name,id", "columns 1 (id) and 3 (id) are both the id"),
        ("a:ID,b:ID", "columns 1 (a:ID) and 2 (b:ID) are both the id"),
        ("id,label,:LABEL", "columns 2 (label) and 3 (:LABEL) are both the label"),
        ("from,to,from", "(there is from, from)"),
    ] {
        let found = error(&format!("{header}\n1,2,3,4\n"));
        assert!(found.message().starts_with("x.csv:1: ") && found.message().contains(says), "{found}");
        assert!(found.hint().is_some(), "{found}");
    }
    let (lines, _, _) = read("id,name,name:IGNORE\n1,a,b\n", &options()).unwrap();
    assert_eq!(lines[1..], ["<vertex:1> <key:name> \"a\""]);
    // A mapping may make two columns values of one property, but its names denote one column each.
    let mapped = |columns: &str| {
        let text = format!("[[file]]\nname = 'x.csv'\nvertices = 'P'\ncolumns = {columns}\n");
        LoadOptions { mapping: Some(Mapping::parse(&text).unwrap()), ..options() }
    };
    let one = mapped("['id', { name = 'a', property = 'k' }, { name = 'b', property = 'k' }]");
    assert_eq!(read("id,a,b\n1,x,y\n", &one).unwrap().0.len(), 3);
    let found = read("id,a,a\n1,x,y\n", &mapped("['id']")).expect_err("twice");
    assert!(found.message().contains("columns 2 and 3 of the header are both called a"), "{found}");
}

#[test]
fn blanks_belong_to_texts_and_ids_but_not_to_names_and_numbers() {
    let (lines, report, _) = read("id, name, age\n1, Ann, 30\n 1,Bob,31 \n", &options()).unwrap();
    assert_eq!(
        lines,
        [
            "<vertex:1> a <label:vertex>",
            "<vertex:1> <key:name> \" Ann\"",
            "<vertex:1> <key:age> \"30\"^^<int>",
            "<vertex:%201> a <label:vertex>",
            "<vertex:%201> <key:name> \"Bob\"",
            "<vertex:%201> <key:age> \"31\"^^<int>",
        ]
    );
    assert_eq!(report.notes.len(), 1, "{:?}", report.notes);
    assert!(report.notes[0].starts_with("x.csv: blanks around the names in the header are ignored"));
    assert_eq!(read("id,name\n1, Ann\n", &options()).unwrap().1.notes.len(), 0);
}

#[test]
fn columns_made_text_by_few_cells_are_noted() {
    let column = |cells: &[&str]| {
        let rows: Vec<String> =
            cells.iter().enumerate().map(|(row, cell)| format!("{row},{cell}\n")).collect();
        read(&format!("id,n\n{}", rows.concat()), &options()).unwrap().1.notes
    };
    // Wherever the cell is: the first, the second, the last.
    for (cells, line) in [
        (&["x", "1", "2"][..], 2),
        (&["1", "x", "2.5"], 3),
        (&["1", "2", "3", "4", "", "x"], 7),
        (&["true", "false", "x"], 4),
    ] {
        let notes = column(cells);
        let [note] = notes.as_slice() else { panic!("{cells:?}: {notes:?}") };
        assert!(note.starts_with("x.csv: column n holds texts, because 1 value is not of type "), "{note}");
        assert!(note.contains(&format!("\"x\" in line {line}; ")), "{note}");
    }
    let notes = column(&["1", "n/a", "2", "3", "007", "4", "5"]);
    assert!(
        notes[0].contains("because 2 values are not of type int, first \"n/a\" in line 3; the other 5"),
        "{notes:?}"
    );
    assert!(notes[0].contains("n:int"), "{notes:?}");
    let notes = column(&["1", "2", "true"]);
    assert!(notes[0].contains("not of type int \"true\" in line 4"), "{notes:?}");
    // Texts that are not few are what the column holds.
    for cells in [&["x", "1"][..], &["x", "y", "1"], &["1", "2"], &["1", "2.5"], &["", ""]] {
        assert_eq!(column(cells).len(), 0, "{cells:?}");
    }
}
