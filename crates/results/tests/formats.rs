//! Round trips of all formats through another library, with strings that are critical in some format.

use oxrdf::{BlankNode, Literal, NamedNode, NamedOrBlankNode, Term, Triple, TripleRef};
use sparesults::{QueryResultsFormat, QueryResultsParser, ReaderQueryResultsParserOutput};
use std::path::{Path, PathBuf};
use vervet_model::{Error, Id, LiteralKind, Result, TermParts};
use vervet_results::{Format, GraphWriter, RowWriter, TableOptions, TermSource, write_boolean};

/// Terms by number.
struct Terms(Vec<Term>);

impl Terms {
    fn term(&self, id: Id) -> Result<&Term> {
        let index = usize::try_from(id.payload()).unwrap_or(usize::MAX);
        self.0.get(index).ok_or_else(|| Error::internal("no such term"))
    }
}

impl TermSource for Terms {
    fn write_terms(&self, ids: &[Id], out: &mut Vec<u8>, ends: &mut Vec<usize>) -> Result<()> {
        let mut scratch = String::new();
        for &id in ids {
            self.read_term(id, &mut scratch, &mut |parts| parts.write_nt(out))?;
            ends.push(out.len());
        }
        Ok(())
    }

    fn read_term(&self, id: Id, _scratch: &mut String, read: &mut dyn FnMut(TermParts<'_>)) -> Result<()> {
        match self.term(id)? {
            Term::NamedNode(iri) => {
                let (namespace, local) = iri.as_str().split_at(iri.as_str().len() / 2);
                read(TermParts::Iri { namespace, local });
            }
            Term::BlankNode(blank) => read(TermParts::Blank(blank.as_str())),
            Term::Literal(literal) => {
                let tag;
                let kind = match (literal.language(), literal.direction()) {
                    (Some(language), Some(direction)) => {
                        tag = format!("{language}--{direction}");
                        LiteralKind::Language(&tag)
                    }
                    (Some(language), None) => LiteralKind::Language(language),
                    _ if literal.datatype() == oxrdf::vocab::xsd::STRING => LiteralKind::String,
                    _ => LiteralKind::Typed(literal.datatype().as_str()),
                };
                let head = literal.value().chars().next().map_or("", |c| &literal.value()[..c.len_utf8()]);
                read(TermParts::Literal { head, tail: &literal.value()[head.len()..], kind });
            }
            Term::Triple(_) => {
                let text = self.term(id)?.to_string();
                let (head, tail) = text.split_at(9);
                read(TermParts::Literal { head, tail, kind: LiteralKind::Triple });
            }
        }
        Ok(())
    }
}

fn iri(text: &str) -> NamedNode {
    NamedNode::new(text).expect("an IRI")
}

fn nasty() -> Terms {
    let mut terms: Vec<Term> = vec![
        iri("http://example.org/a?b=c&d='e'").into(),
        iri("http://example.org/größe/日本").into(),
        BlankNode::new("b0").expect("a label").into(),
        Literal::new_language_tagged_literal("chat \"noir\"", "fr-be").expect("a tag").into(),
        Literal::new_directional_language_tagged_literal("שלום", "he", oxrdf::BaseDirection::Rtl)
            .expect("a tag")
            .into(),
        Literal::new_typed_literal("01", oxrdf::vocab::xsd::INTEGER).into(),
        Literal::new_typed_literal("<&>", iri("http://example.org/t&t")).into(),
        Literal::from(-5).into(),
        Literal::from(true).into(),
    ];
    for text in [
        "",
        " ",
        "  a  ",
        "a,b",
        "a\tb",
        "a\nb",
        "a\r\nb\r",
        "\"",
        "\"\"",
        "\\",
        "\\n",
        "'",
        "]]>",
        "<x/>",
        "&amp;",
        "é",
        "日本語",
        "👩‍👩‍👧",
        "\u{7f}",
        "\u{85}",
        "\u{2028}",
        "_:x",
        "<http://x>",
        "1",
        "true",
        "=1+1",
        "?x",
    ] {
        terms.push(Literal::from(text).into());
    }
    // A triple term around each term, then nested triple terms around the last of these.
    for round in 0..2 {
        for at in terms.len() / (2 * round + 1)..terms.len() {
            // The XML reader trims strings.
            if matches!(&terms[at], Term::Literal(literal) if literal.value().starts_with(' ')) {
                continue;
            }
            let subject = match at % 2 {
                0 => NamedOrBlankNode::from(iri("http://example.org/s?a&b='")),
                _ => BlankNode::new("b1").expect("a label").into(),
            };
            let predicate = iri("http://example.org/größe");
            terms.push(Triple { subject, predicate, object: terms[at].clone() }.into());
        }
    }
    Terms(terms)
}

/// Three columns: all terms, some terms, no terms.
fn write(format: Format, terms: &Terms) -> Vec<u8> {
    let count = terms.0.len() as u64;
    let first: Vec<Id> = (0..count).map(Id::literal).collect();
    let second: Vec<Id> =
        (0..count).map(|i| if i % 3 == 0 { Id::literal(count - 1 - i) } else { Id::UNBOUND }).collect();
    let third = vec![Id::UNBOUND; first.len()];
    let mut writer = RowWriter::new(format, &["a", "größe", "c"], Vec::new()).expect("a format for rows");
    for start in (0..first.len()).step_by(7) {
        let end = (start + 7).min(first.len());
        let columns = [&first[start..end], &second[start..end], &third[start..end]];
        writer.batch(&columns, end - start, terms).expect("written");
    }
    writer.finish().expect("written")
}

#[test]
fn another_library_reads_the_same_terms() {
    let terms = nasty();
    for (format, theirs) in [
        (Format::Tsv, QueryResultsFormat::Tsv),
        (Format::Json, QueryResultsFormat::Json),
        (Format::Xml, QueryResultsFormat::Xml),
    ] {
        let bytes = write(format, &terms);
        let text = String::from_utf8(bytes.clone()).expect("UTF-8");
        let parsed = QueryResultsParser::from_format(theirs).for_reader(&bytes[..]).expect("parsed");
        let ReaderQueryResultsParserOutput::Solutions(solutions) = parsed else { panic!("not rows: {text}") };
        let names: Vec<_> = solutions.variables().iter().map(|v| v.as_str().to_owned()).collect();
        assert_eq!(names, ["a", "größe", "c"]);
        let rows: Vec<_> =
            solutions.map(|row| row.unwrap_or_else(|error| panic!("{format}: {error}: {text}"))).collect();
        assert_eq!(rows.len(), terms.0.len());
        for (i, row) in rows.iter().enumerate() {
            let expected = |i: usize| as_read(&terms.0[i], format);
            assert_eq!(row.get("a"), Some(&expected(i)), "{format} row {i}");
            let second = (i % 3 == 0).then(|| expected(terms.0.len() - 1 - i));
            assert_eq!(row.get("größe"), second.as_ref(), "{format} row {i}");
            assert_eq!(row.get("c"), None, "{format} row {i}");
        }
    }
}

/// The XML reader trims strings, although the document contains the blanks.
fn as_read(term: &Term, format: Format) -> Term {
    match term {
        Term::Literal(literal) if format == Format::Xml && literal.value().starts_with(' ') => {
            Literal::from(literal.value().trim_matches(' ')).into()
        }
        _ => term.clone(),
    }
}

/// A minimal RFC 4180 reader.
fn read_csv(text: &str) -> Vec<Vec<String>> {
    let (mut rows, mut row, mut field, mut quoted) = (Vec::new(), Vec::new(), String::new(), false);
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' if quoted && chars.peek() == Some(&'"') => field.extend(chars.next()),
            '"' => quoted = !quoted,
            ',' if !quoted => row.push(std::mem::take(&mut field)),
            '\r' if !quoted && chars.peek() == Some(&'\n') => {
                chars.next();
                row.push(std::mem::take(&mut field));
                rows.push(std::mem::take(&mut row));
            }
            c => field.push(c),
        }
    }
    assert!(row.is_empty() && field.is_empty(), "the last line ends");
    rows
}

#[test]
fn csv_has_the_plain_values() {
    let terms = nasty();
    let rows = read_csv(&String::from_utf8(write(Format::Csv, &terms)).expect("UTF-8"));
    assert_eq!(rows[0], ["a", "größe", "c"]);
    for (i, row) in rows[1..].iter().enumerate() {
        let value = match &terms.0[i] {
            Term::NamedNode(iri) => iri.as_str().to_owned(),
            Term::BlankNode(blank) => blank.to_string(),
            Term::Literal(literal) => literal.value().to_owned(),
            Term::Triple(_) => terms.0[i].to_string(),
        };
        assert_eq!(row[0], value);
        assert_eq!((row.len(), row[2].as_str()), (3, ""));
    }
    let fixed = |terms: Vec<Term>| {
        let mut writer = RowWriter::new(Format::Csv, &["x"], Vec::new()).expect("rows");
        let ids: Vec<Id> = (0..terms.len() as u64).map(Id::literal).collect();
        writer.batch(&[&ids], ids.len(), &Terms(terms)).expect("written");
        String::from_utf8(writer.finish().expect("written")).expect("UTF-8")
    };
    assert_eq!(
        fixed(vec![Literal::from("a\"b,c").into(), BlankNode::new("b").expect("a label").into()]),
        "x\r\n\"a\"\"b,c\"\r\n_:b\r\n"
    );
}

#[test]
fn documents_match_expected_bytes() {
    let terms = Terms(vec![iri("http://e/a").into(), Literal::from("b\"").into(), Literal::from(1).into()]);
    let one = |format| {
        let mut writer = RowWriter::new(format, &["x", "y", "z"], Vec::new()).expect("rows");
        writer.batch(&[&[Id::literal(0)], &[Id::literal(1)], &[Id::literal(2)]], 1, &terms).expect("written");
        String::from_utf8(writer.finish().expect("written")).expect("UTF-8")
    };
    let xsd = "http://www.w3.org/2001/XMLSchema#";
    assert_eq!(one(Format::Tsv), format!("?x\t?y\t?z\n<http://e/a>\t\"b\\\"\"\t\"1\"^^<{xsd}integer>\n"));
    assert_eq!(one(Format::Csv), "x,y,z\r\nhttp://e/a,\"b\"\"\",1\r\n");
    assert_eq!(
        one(Format::Json),
        format!(
            "{{\"head\":{{\"vars\":[\"x\",\"y\",\"z\"]}},\"results\":{{\"bindings\":[{{\"x\":{{\"type\":\"uri\",\"value\":\"http://e/a\"}},\"y\":{{\"type\":\"literal\",\"value\":\"b\\\"\"}},\"z\":{{\"type\":\"literal\",\"value\":\"1\",\"datatype\":\"{xsd}integer\"}}}}]}}}}\n"
        )
    );
    assert_eq!(
        one(Format::Xml),
        format!(
            "<?xml version=\"1.0\"?><sparql xmlns=\"http://www.w3.org/2005/sparql-results#\"><head><variable name=\"x\"/><variable name=\"y\"/><variable name=\"z\"/></head><results><result><binding name=\"x\"><uri>http://e/a</uri></binding><binding name=\"y\"><literal>b&quot;</literal></binding><binding name=\"z\"><literal datatype=\"{xsd}integer\">1</literal></binding></result></results></sparql>\n"
        )
    );
}

#[test]
fn empty_results_are_valid() {
    for (format, none, two) in [
        (Format::Tsv, "\n", "\n\n\n"),
        (Format::Csv, "\r\n", "\r\n\r\n\r\n"),
        (
            Format::Json,
            "{\"head\":{\"vars\":[]},\"results\":{\"bindings\":[]}}\n",
            "{\"head\":{\"vars\":[]},\"results\":{\"bindings\":[{},{}]}}\n",
        ),
        (Format::Table, "0 rows\n", "2 rows\n"),
    ] {
        for (rows, expected) in [(0, none), (2, two)] {
            let mut writer = RowWriter::new(format, &[], Vec::new()).expect("rows");
            writer.batch(&[], rows, &Terms(Vec::new())).expect("written");
            assert_eq!(String::from_utf8(writer.finish().expect("written")).expect("UTF-8"), expected);
        }
    }
}

#[test]
fn booleans() {
    for answer in [true, false] {
        for (format, theirs) in
            [(Format::Json, QueryResultsFormat::Json), (Format::Xml, QueryResultsFormat::Xml)]
        {
            let mut bytes = Vec::new();
            write_boolean(format, answer, &mut bytes).expect("written");
            let parsed = QueryResultsParser::from_format(theirs).for_reader(&bytes[..]).expect("parsed");
            assert!(matches!(parsed, ReaderQueryResultsParserOutput::Boolean(read) if read == answer));
        }
        let mut bytes = Vec::new();
        write_boolean(Format::Tsv, answer, &mut bytes).expect("written");
        assert_eq!(String::from_utf8(bytes).expect("UTF-8"), format!("{answer}\n"));
    }
    assert!(write_boolean(Format::Turtle, true, &mut Vec::new()).is_err());
}

#[test]
fn unsupported_results_are_errors() {
    let terms = Terms(vec![Literal::from("\u{1}").into()]);
    let mut writer = RowWriter::new(Format::Xml, &["x"], Vec::new()).expect("rows");
    assert!(writer.batch(&[&[Id::literal(0)]], 1, &terms).is_err());
    assert!(writer.batch(&[&[Id::literal(9)]], 1, &terms).is_err());
    assert!(writer.batch(&[], 1, &terms).is_err());
    assert!(RowWriter::new(Format::Turtle, &["x"], Vec::new()).is_err());
    assert!(GraphWriter::new(Format::Json, &[], Vec::new()).is_err());
    assert!("yaml".parse::<Format>().is_err());
}

#[test]
fn graphs_round_trip() {
    let terms = nasty();
    let (subject, predicate) = (Id::literal(1), Id::literal(0));
    let objects: Vec<Id> = (0..terms.0.len() as u64).map(Id::literal).chain([Id::UNBOUND]).collect();
    let columns: [Vec<Id>; 3] = [vec![subject; objects.len()], vec![predicate; objects.len()], objects];
    let prefixes = [("ex", "http://example.org/")];
    for format in [Format::NTriples, Format::Turtle] {
        let mut writer = GraphWriter::new(format, &prefixes, Vec::new()).expect("a graph");
        writer.batch([&columns[0], &columns[1], &columns[2]], &terms).expect("written");
        // Not RDF statements.
        writer.batch([&[Id::literal(5)], &[predicate], &[subject]], &terms).expect("left out");
        writer.batch([&[subject], &[Id::literal(2)], &[subject]], &terms).expect("left out");
        let (a, b) = (iri("http://example.org/x"), iri("http://example.org/y"));
        writer.triple(TripleRef::new(&a, &b, &a)).expect("written");
        let bytes = writer.finish().expect("written");
        let read: Vec<_> =
            oxttl::TurtleParser::new().for_slice(&bytes).map(|t| t.expect("a statement").object).collect();
        let mut expected = terms.0.clone();
        expected.push(a.into());
        assert_eq!(read, expected);
    }
}

#[test]
fn tables_are_aligned() {
    let terms = Terms(vec![
        iri("http://example.org/Ann").into(),
        iri("http://elsewhere.org/Ben").into(),
        Literal::from("日本\n").into(),
        Literal::from(7).into(),
        Literal::from(1234).into(),
        Literal::from("x".repeat(300)).into(),
    ]);
    let options =
        TableOptions { width: 46, prefixes: vec![("ex".to_owned(), "http://example.org/".to_owned())] };
    let mut writer = RowWriter::table(options, &["who", "n", "text"], Vec::new()).expect("rows");
    let columns = [
        [Id::literal(0), Id::literal(1)],
        [Id::literal(3), Id::literal(4)],
        [Id::literal(2), Id::literal(5)],
    ];
    writer.batch(&[&columns[0], &columns[1], &columns[2]], 2, &terms).expect("written");
    let text = String::from_utf8(writer.finish().expect("written")).expect("UTF-8");
    let expected = [
        " who              │    n │ text",
        "──────────────────┼──────┼──────────────────",
        " ex:Ann           │    7 │ \"日本\\n\"",
        " <http://elsewhe… │ 1234 │ \"xxxxxxxxxxxxxx…",
        "2 rows",
    ];
    assert!(text.lines().eq(expected), "\n{text}");
}

/// The expected rows of the benchmark, parsed as terms and serialized again, are identical.
#[test]
fn tsv_matches_the_benchmark() {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let root = std::env::var_os("VERVET_TEST_DATA").map_or(beside, PathBuf::from);
    let file = root.join("data/lubm/expected/lubm-1.json");
    let Ok(text) = std::fs::read_to_string(&file) else {
        println!("skipped: there is no test data at {}", file.display());
        return;
    };
    let all: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let mut row_count = 0;
    for (query, expected) in all.as_object().expect("queries") {
        let Some(rows) = expected["tsv"].as_array() else { continue };
        let header = expected["header"].as_str().expect("a header");
        let names: Vec<&str> = header.split('\t').map(|name| name.trim_start_matches('?')).collect();
        let mut terms = Terms(Vec::new());
        let mut columns = vec![Vec::new(); names.len()];
        for row in rows {
            for (column, cell) in columns.iter_mut().zip(row.as_str().expect("a row").split('\t')) {
                column.push(if cell.is_empty() { Id::UNBOUND } else { Id::literal(terms.0.len() as u64) });
                if !cell.is_empty() {
                    terms.0.push(cell.parse().expect("a term"));
                }
            }
        }
        let columns: Vec<&[Id]> = columns.iter().map(Vec::as_slice).collect();
        let mut writer = RowWriter::new(Format::Tsv, &names, Vec::new()).expect("rows");
        writer.batch(&columns, rows.len(), &terms).expect("written");
        let written = String::from_utf8(writer.finish().expect("written")).expect("UTF-8");
        let mut lines = written.lines();
        assert_eq!(lines.next(), Some(header), "{query}");
        assert!(lines.eq(rows.iter().map(|row| row.as_str().expect("a row"))), "{query}");
        row_count += rows.len();
    }
    assert!(row_count > 1_000);
}

/// Found by a fuzzer: it was reported as an I/O error.
#[test]
fn formats_without_triple_terms_return_errors() {
    let node = |name: &str| oxrdf::NamedNode::new_unchecked(format!("http://e/{name}"));
    let inner = oxrdf::Triple::new(node("s"), node("p"), node("o"));
    let triple = oxrdf::Triple::new(node("x"), node("says"), inner);
    for format in
        [Format::NTriples, Format::NQuads, Format::Turtle, Format::TriG, Format::RdfXml, Format::JsonLd]
    {
        let mut writer = GraphWriter::new(format, &[], Vec::new()).expect("a format of graphs");
        let written = writer.triple(triple.as_ref());
        match format {
            Format::RdfXml | Format::JsonLd => {
                let error = written.expect_err("it cannot be held");
                assert_eq!(error.kind(), vervet_model::ErrorKind::Unsupported, "{error}");
            }
            _ => {
                written.expect("it is written");
                let text = String::from_utf8(writer.finish().expect("memory")).expect("text");
                assert!(text.contains("<<( "), "{format}: {text}");
            }
        }
    }
}
