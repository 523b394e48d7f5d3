"""Loads: files, folders, texts, options, reports."""

import gzip

import pytest

import vervet


def test_files(empty, tmp_path):
    people, knows = tmp_path / "people.csv", tmp_path / "knows.csv.gz"
    people.write_text("id,label,name,age\n1,person,Ann,34\n2,person,Bob,27\n")
    knows.write_bytes(gzip.compress(b"source,target,label,since\n1,2,knows,2019\n"))
    report = empty.load(people, str(knows))
    assert isinstance(report, vervet.LoadReport)
    assert report.added == report.statements and report.skipped == 0 and report.bytes > 0
    assert empty.gremlin("g.V().has('name', 'Ann').outE('knows').values('since')").values() == [2019]
    assert empty.query("SELECT ?name { ?x key:age ?age ; key:name ?name FILTER(?age = 27) }").rows() == [("Bob",)]


def test_a_second_load_adds(empty):
    text = "<urn:a> <urn:b> 1 . <urn:a> <urn:b> 2 ."
    assert empty.load_text(text, "ttl").added == 2
    report = empty.load_text(text + "<urn:a> <urn:b> 3 .", format="turtle")
    assert (report.statements, report.added) == (3, 1)


def test_graphs_and_bases(empty):
    empty.load_text(b"<a> <b> <c> .", "ttl", graph="urn:g", base_iri="http://example.org/")
    empty.load_text("<a> <b> <c> .", "ttl", graph=vervet.IRI("urn:h"), base_iri="http://example.org/")
    rows = empty.query("SELECT ?g ?s { GRAPH ?g { ?s ?p ?o } } ORDER BY ?g").rows()
    iri = vervet.IRI
    assert rows == [(iri("urn:g"), iri("http://example.org/a")), (iri("urn:h"), iri("http://example.org/a"))]
    assert set(empty.info()["graphs"]) == {"urn:g", "urn:h"}


def test_skipped_errors(empty):
    report = empty.load_text("<urn:a> <urn:b> <urn:c> .\nnonsense\n<urn:a> <urn:b> <urn:d> .\n", "nt", skip_errors=True)
    assert (report.added, report.skipped) == (2, 1)


def test_tables_without_ids(empty, tmp_path):
    table = tmp_path / "cities.csv"
    table.write_text("code,name\nVIE,Vienna\nGRZ,Graz\n")
    empty.load(table, id_column="code", label="city")
    assert sorted(empty.gremlin("g.V().hasLabel('city').id()")) == ["GRZ", "VIE"]


def test_parquet(empty, tmp_path):
    pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    from pyarrow import parquet

    table = pyarrow.table({"id": [1, 2], "label": ["person", "person"], "age": [34, 27]})
    parquet.write_table(table, tmp_path / "people.parquet")
    empty.load(tmp_path / "people.parquet")
    assert sorted(empty.gremlin("g.V().values('age')")) == [27, 34]


def test_remarks(empty, tmp_path):
    file = tmp_path / "people.csv"
    file.write_text("id,label,name\n1,person,Ann\n1,person,Bob\n")
    (remark,) = empty.load(file).remarks
    assert "became one" in remark
