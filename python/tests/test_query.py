"""SPARQL: rows, dictionaries, terms, parameters, graphs, tables."""

import datetime
import decimal
import random
from collections import Counter

import pytest

import vervet
from vervet import IRI, BlankNode, Literal, Triple

ANN, BOB, CEM = (IRI(f"urn:vervet:vertex:{number}") for number in (1, 2, 3))


def test_rows(people):
    result = people.query("SELECT ?who ?name ?age { ?who key:name ?name ; key:age ?age } ORDER BY ?age")
    assert result.columns == ("who", "name", "age")
    assert len(result) == result.count == 3
    expected = [(BOB, "Bob", 27), (ANN, "Ann", 34), (CEM, "Cem", 61)]
    assert result.rows() == list(result) == expected
    assert list(result) == expected, "a result can be read again"
    assert result.dicts() == [dict(zip(("who", "name", "age"), row)) for row in expected]
    assert [type(cell) for cell in result.rows()[0]] == [IRI, str, int]


def test_terms(people):
    result = people.query("SELECT ?age ?label { ?who key:age ?age ; rdfs:label ?label }")
    assert result.rows() == [(34, Literal("Anna", language="de"))]
    ((age, label),) = result.rows(terms=True)
    assert (age.value, age.lexical, age.datatype) == (34, "34", IRI("http://www.w3.org/2001/XMLSchema#integer"))
    assert (label.value, label.language) == ("Anna", "de")
    assert result.dicts(terms=True) == [{"age": age, "label": label}]


def test_unbound_cells_are_none(people):
    rows = people.query("SELECT ?name ?label { ?who key:name ?name OPTIONAL { ?who rdfs:label ?label } }").dicts()
    assert Counter(row["label"] is None for row in rows) == {True: 2, False: 1}


def test_no_rows_and_no_columns(people):
    assert people.query("SELECT ?x { ?x key:name 'Nobody' }").rows() == []
    assert not people.query("SELECT ?x { ?x key:name 'Nobody' }")
    assert people.query("SELECT * {}").rows() == [()]


def test_ask(people):
    assert people.query("ASK { ?x key:name 'Ann' }") is True
    assert people.query("ASK { ?x key:name 'Nobody' }") is False


def test_graphs(people):
    result = people.query("CONSTRUCT { ?x <urn:age> ?age } { ?x key:age ?age }")
    assert result.columns == ("subject", "predicate", "object")
    assert set(result) == {(ANN, IRI("urn:age"), 34), (BOB, IRI("urn:age"), 27), (CEM, IRI("urn:age"), 61)}
    assert {row[2] for row in result.rows(terms=True)} == {Literal(34), Literal(27), Literal(61)}
    described = people.query("DESCRIBE <urn:vervet:vertex:3>")
    assert (CEM, IRI("urn:vervet:key:age"), 61) in described.rows()


def test_more_rows_than_a_batch(empty):
    """Against the same computation in Python."""
    numbers = random.Random(7).choices(range(500), k=5000)
    lines = [f"<urn:s{at}> <urn:p> {number} ; <urn:t> \"text {number}\" ." for at, number in enumerate(numbers)]
    empty.load_text("\n".join(lines), "ttl")
    result = empty.query("SELECT ?n ?t { ?s <urn:p> ?n ; <urn:t> ?t }")
    expected = Counter((number, f"text {number}") for number in numbers)
    assert Counter(result) == Counter(result.rows()) == expected
    groups = empty.query("SELECT ?n (COUNT(*) AS ?count) { ?s <urn:p> ?n } GROUP BY ?n")
    assert dict(groups.rows()) == Counter(numbers)


ZONE = datetime.timezone(datetime.timedelta(hours=5, minutes=30))
VALUES = [
    0, -1, 2**31, 2**63 - 1, -(2**63), 2**63, 10**40, True, False, 0.0, 1.5, -1e300, 5e-324, float("inf"),
    "", "text", "a \"quoted\"\n\ttext \\", "längerer Text 🦊", "x" * 100_000, decimal.Decimal("1.50"),
    decimal.Decimal("-0.000000000000000001"), decimal.Decimal("123456789012345678901234567890.5"),
    datetime.date(2024, 2, 29), datetime.date(1, 1, 1), datetime.datetime(2024, 2, 29, 12, 30),
    datetime.datetime(2024, 2, 29, 12, 30, 15, 123456, datetime.timezone.utc),
    datetime.datetime(1969, 12, 31, 23, 59, 59, 500000, ZONE), datetime.time(1, 2, 3), datetime.time(1, 2, 3, 400000),
    IRI("urn:x"), Literal("chat", language="fr"), Literal("سلام", language="ar--rtl"), Literal("5", "urn:my"),
    Literal("abc", "http://www.w3.org/2001/XMLSchema#integer"), Triple(IRI("urn:s"), IRI("urn:p"), 5),
]  # fmt: skip


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_values_go_in_and_out(empty, value):
    """As a parameter, and from the stored graph."""
    ((back,),) = empty.query("SELECT (?value AS ?back) {}", value=value).rows()
    assert (type(back), back) == (type(value), value)
    if not isinstance(value, Triple):
        empty.update("INSERT { <urn:s> <urn:p> ?value } WHERE {}", value=value)
        ((stored,),) = empty.query("SELECT ?o { <urn:s> <urn:p> ?o }").rows()
        assert (type(stored), stored) == (type(value), value)


def test_nan(empty):
    ((back,),) = empty.query("SELECT (?value AS ?back) {}", value=float("nan")).rows()
    assert back != back


@pytest.mark.parametrize(
    "term",
    [
        '"24:00:00"^^xsd:time', '"2024-02-30"^^xsd:date', '"2024-01-01Z"^^xsd:date', '"-0044-03-15"^^xsd:date',
        '"2024-01-01T24:00:00"^^xsd:dateTime', '"2024-01-01T00:00:00.1234567Z"^^xsd:dateTime', '"maybe"^^xsd:boolean',
        '"1e5"^^xsd:decimal', '"inf"^^xsd:double', '"1_000"^^xsd:integer', '"P1D"^^xsd:duration', f'"{"9" * 5000}"^^xsd:integer',
    ],
)  # fmt: skip
def test_literals_without_a_python_value_stay_literals(empty, term):
    ((cell,),) = empty.query(f"SELECT ({term} AS ?x) {{}}").rows()
    assert isinstance(cell, Literal)
    assert cell.value == cell.lexical == term.split('"')[1]


def test_integers_of_all_types(empty):
    for name in ("byte", "short", "int", "long", "unsignedByte", "nonNegativeInteger", "negativeInteger"):
        ((cell,),) = empty.query(f'SELECT ("-7"^^xsd:{name} AS ?x) {{}}').rows()
        assert (type(cell), cell) == (int, -7)


def test_parameters_are_not_text(people):
    evil = '" } ; DROP ALL ; INSERT DATA { <urn:x> <urn:y> "'
    assert people.query("SELECT * { ?x key:name ?name }", name=evil).rows() == []
    assert len(people.query("SELECT ?x { ?x key:name ?name }", name="Ann")) == 1


def test_any_name_is_a_parameter(empty):
    ((text, this),) = empty.query("SELECT (?text AS ?a) (?self AS ?b) {}", text=1, self=2).rows()
    assert (text, this) == (1, 2)


def test_parameters_of_other_types(empty):
    with pytest.raises(TypeError, match="parameter x: a value of type (builtins.)?object has no RDF term"):
        empty.query("SELECT (?x AS ?y) {}", x=object())
    with pytest.raises(ValueError, match="NaN"):
        empty.query("SELECT (?x AS ?y) {}", x=decimal.Decimal("NaN"))


def test_numbers_of_numpy(empty):
    numpy = pytest.importorskip("numpy", reason="numpy is not installed")
    row = empty.query("SELECT (?a AS ?x) (?b AS ?y) {}", a=numpy.int64(5), b=numpy.float32(0.5)).rows()[0]
    assert row == (5, 0.5)


def test_blank_nodes(empty):
    empty.load_text("_:a <urn:p> _:b .", "nt")
    ((a, b),) = empty.query("SELECT ?a ?b { ?a <urn:p> ?b }").rows()
    assert isinstance(a, BlankNode) and a != b and str(a) == f"_:{a.value}"


def test_a_result_is_a_snapshot(people):
    result = people.query("SELECT ?name { ?x key:name ?name }")
    people.update("DELETE WHERE { ?x key:name ?name }")
    assert sorted(result.rows()) == [("Ann",), ("Bob",), ("Cem",)]
    assert people.query("SELECT ?name { ?x key:name ?name }").rows() == []


def test_tables(people):
    result = people.query("SELECT ?name ?label { ?x key:name ?name OPTIONAL { ?x rdfs:label ?label } } ORDER BY ?name")
    assert str(result).splitlines() == ["name | label", "-----+--------", "Ann  | Anna@de", "Bob  |", "Cem  |"]
    assert repr(result) == "<Result: 3 rows of (name, label)>"
    page = people.query("SELECT (?x AS ?y) {}", x="<script>")._repr_html_()
    assert "&lt;script&gt;" in page and "<script>" not in page
    many = people.query("SELECT * { ?s ?p ?o . ?a ?b ?c }")
    assert str(many).splitlines()[-1] == f"… {14 * 14 - 20} more rows"
    assert many._repr_html_().count("<tr>") == 21


def test_explain_and_profile(people):
    text = "SELECT ?name { ?x key:age ?age ; key:name ?name }"
    assert "key:age" in people.explain(text) and "actual" not in people.explain(text)
    assert people.profile(text) != people.explain(text)
    assert "key:age" in people.profile("ASK { ?x key:age ?age }")


def test_info(people):
    info = people.info()
    assert (info["statements"], info["vertices"], info["edges"]) == (14, 3, 0)
    assert info["predicates"]["urn:vervet:key:name"] == 3
    assert info["durability"] is None and info["size_bytes"] > 0


def test_limits(people):
    with pytest.raises(vervet.DeadlineError):
        people.with_options(timeout=0).query("SELECT * { ?s ?p ?o }")
    with pytest.raises(vervet.MemoryLimitError):
        people.with_options(memory_limit=1).query("SELECT ?s (COUNT(*) AS ?n) { ?s ?p ?o } GROUP BY ?s")
    with pytest.raises(ValueError):
        people.with_options(timeout=-1)
    assert len(people.query("SELECT * { ?s ?p ?o }")) == 14, "the limits of the database are as before"
