"""Arrow over HTTP: the server's own encoder, read by pyarrow, against the tables that the module makes by the
library arrow."""

import urllib.error
import urllib.parse
import urllib.request

import pytest

import vervet
from test_arrow import COLUMNS

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
ACCEPT = "application/vnd.apache.arrow.stream"


def fetch(server, query, **headers):
    url = server.url + "query?" + urllib.parse.urlencode({"query": query})
    request = urllib.request.Request(url, headers={"Accept": ACCEPT, **headers})
    with urllib.request.urlopen(request, timeout=60) as answer:
        assert answer.headers["Content-Type"] == ACCEPT
        return answer.read()


def table(server, query):
    read = pa.ipc.open_stream(fetch(server, query)).read_all()
    read.validate(full=True)
    assert int(read.schema.metadata[b"vervet.rows"]) == read.num_rows
    return read


@pytest.fixture(scope="module")
def served():
    with vervet.open() as db, db.serve(port=0) as server:
        yield db, server


@pytest.mark.parametrize(("kind", "values", "expected"), COLUMNS, ids=lambda value: str(value)[:30])
def test_types_of_columns(served, kind, values, expected):
    """Stored values and computed ones, with and without unbound cells."""
    db, server = served
    db.update("CLEAR ALL")
    for at, value in enumerate(values):
        db.update("INSERT { <urn:s> <urn:p> [ <urn:at> ?at ; <urn:x> ?x ] } WHERE {}", at=at, x=value)
    db.update("INSERT DATA { <urn:s> <urn:p> [ <urn:at> 1000 ] }")
    expected = list(values if expected is None else expected)
    for query, more in (
        ("SELECT ?x { ?b <urn:at> ?at ; <urn:x> ?x } ORDER BY ?at", []),
        ("SELECT ?x { ?b <urn:at> ?at OPTIONAL { ?b <urn:x> ?x } } ORDER BY ?at", [None]),
        ("SELECT (COALESCE(?y, ?x) AS ?x2) ?x { ?b <urn:at> ?at OPTIONAL { ?b <urn:x> ?x } } ORDER BY ?at", [None]),
    ):
        column = table(server, query).column("x")
        assert (str(column.type), column.to_pylist()) == (kind, [*expected, *more])
        assert table(server, query).equals(db.query(query).arrow())


def test_shapes(served):
    db, server = served
    db.update("CLEAR ALL")
    lines = "\n".join(f'<urn:s{n}> <urn:p> {n} ; <urn:q> "text {"ä" * (n % 50)}" ; <urn:r> {n / 7:f}e0 .' for n in range(70_000))
    db.load_text(lines, "ttl")
    for query in (
        "SELECT * { ?s <urn:none> ?o }",
        "SELECT ?s ?p ?q ?r { ?s <urn:p> ?p ; <urn:q> ?q ; <urn:r> ?r } ORDER BY ?p",
        "SELECT (?p / 10 AS ?d) (?p > 5 AS ?b) { ?s <urn:p> ?p } ORDER BY ?p",
        "SELECT ?unbound ?p { ?s <urn:p> ?p } ORDER BY ?p LIMIT 10",
    ):
        one, other = table(server, query), db.query(query).arrow()
        assert one.equals(other), query
    assert table(server, "ASK { <urn:s1> <urn:p> 1 }").to_pylist() == [{"boolean": True}]
    assert table(server, "SELECT * {}").num_columns == 0


def test_other_readers(served):
    polars = pytest.importorskip("polars", reason="polars is not installed")
    db, server = served
    db.update("CLEAR ALL")
    db.update('INSERT DATA { <urn:a> <urn:p> 1, 2.5 . <urn:b> <urn:q> "2024-02-29"^^xsd:date, "2024-02-28"^^xsd:date }')
    for query in ("SELECT ?x { ?s <urn:p> ?x } ORDER BY ?x", "SELECT ?x { ?s <urn:q> ?x } ORDER BY ?x"):
        assert polars.read_ipc_stream(fetch(server, query)).equals(db.query(query).pl())


def test_errors_have_a_status(served):
    _, server = served
    for query, status in (("SELECT ?x { ?x fof:name ?n }", 400), ("CONSTRUCT WHERE { ?s ?p ?o }", 406)):
        with pytest.raises(urllib.error.HTTPError) as caught:
            fetch(server, query)
        assert caught.value.code == status


def test_a_stream_that_is_cut_is_noticed(served):
    """Every prefix of a stream: pyarrow notices most of them, the number of rows all."""
    db, server = served
    db.update("CLEAR ALL")
    db.update('INSERT DATA { <urn:a> <urn:p> 1, 2, 3 ; <urn:q> "x" }')
    stream = fetch(server, "SELECT * { ?s ?p ?o }")
    for length in range(len(stream) - 8):
        try:
            read = pa.ipc.open_stream(stream[:length]).read_all()
        except (pa.ArrowInvalid, OSError):
            continue
        assert int(read.schema.metadata[b"vervet.rows"]) != read.num_rows
