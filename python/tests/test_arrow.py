"""Arrow streams and data frames, each against the rows as Python values."""

import datetime
import decimal
import random

import pytest

import vervet
from vervet import Literal

UTC = datetime.timezone.utc


@pytest.fixture
def pa():
    return pytest.importorskip("pyarrow", reason="pyarrow is not installed")


def table_of(db, *values):
    """A result of one column with these values, in order; `None` is unbound."""
    terms = " ".join("(%d UNDEF)" % at if v is None else f"({at} {Literal(v).n3() if not hasattr(v, 'n3') else v.n3()})" for at, v in enumerate(values))
    return db.query(f"SELECT ?x {{ VALUES (?at ?x) {{ {terms} }} }} ORDER BY ?at")


XSD = "http://www.w3.org/2001/XMLSchema#"
COLUMNS = [
    ("int64", [1, -5, 2**62, 2**63 - 1], None),
    ("int64", [1, Literal("7", XSD + "unsignedByte"), Literal("-3", XSD + "long"), Literal("+04", XSD + "int")], [1, 7, -3, 4]),
    ("double", [1.5, -0.0, 1e300], None),
    ("double", [1, 2.5, decimal.Decimal("0.1")], [1.0, 2.5, 0.1]),
    ("double", [Literal("1.5", XSD + "float"), Literal("-INF", XSD + "double")], [1.5, float("-inf")]),
    ("bool", [True, False, Literal("1", XSD + "boolean")], [True, False, True]),
    ("date32[day]", [datetime.date(2024, 2, 29), datetime.date(1, 1, 1), datetime.date(9999, 12, 31)], None),
    (
        "timestamp[us, tz=UTC]",
        [
            datetime.datetime(2024, 2, 29, 12, tzinfo=UTC),
            datetime.datetime(1969, 12, 31, 23, 59, 59, 999999, UTC),
            datetime.datetime(2024, 1, 1, tzinfo=datetime.timezone(datetime.timedelta(hours=-5, minutes=-30))),
        ],
        None,
    ),
    ("timestamp[us]", [datetime.datetime(2024, 2, 29, 12, 30, 15, 250000), datetime.datetime(1, 1, 1)], None),
    ("large_string", ["a", "", "längerer Text 🦊", "x" * 1000], None),
    # Mixed columns are texts.
    ("large_string", [1, "a", 2.5, True], ["1", "a", "2.5", "true"]),
    ("large_string", [2**63, 1], [str(2**63), "1"]),
    ("large_string", [vervet.IRI("urn:a"), Literal("chat", language="fr"), 5], ["urn:a", "chat", "5"]),
    ("large_string", [datetime.date(2024, 1, 1), datetime.datetime(2024, 1, 1)], ["2024-01-01", "2024-01-01T00:00:00"]),
    ("large_string", [datetime.datetime(2024, 1, 1), datetime.datetime(2024, 1, 1, tzinfo=UTC)], ["2024-01-01T00:00:00", "2024-01-01T00:00:00Z"]),
    ("large_string", [Literal("2024-02-30", XSD + "date")], ["2024-02-30"]),
    ("large_string", [Literal("2024-01-01T24:00:00", XSD + "dateTime")], ["2024-01-01T24:00:00"]),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "values", "expected"), COLUMNS, ids=lambda value: str(value)[:30])
@pytest.mark.parametrize("unbound", [False, True])
def test_types_of_columns(empty, pa, kind, values, expected, unbound):
    expected = list(values if expected is None else expected)
    if unbound:
        values, expected = [None, *values, None], [None, *expected, None]
    column = table_of(empty, *values).arrow().column("x")
    assert (str(column.type), column.to_pylist()) == (kind, expected)


def test_stored_values(empty, pa):
    """As above for values that are read from the graph, where many are inside of ids."""
    for kind, values, expected in COLUMNS:
        empty.update("CLEAR ALL")
        for at, value in enumerate(values):
            empty.update("INSERT { <urn:s> <urn:p> [ <urn:at> ?at ; <urn:x> ?x ] } WHERE {}", at=at, x=value)
        column = empty.query("SELECT ?x { ?b <urn:at> ?at ; <urn:x> ?x } ORDER BY ?at").arrow().column("x")
        assert (str(column.type), column.to_pylist()) == (kind, list(values if expected is None else expected))


def test_no_rows_and_no_columns(empty, pa):
    table = empty.query("SELECT ?a ?b { ?a <urn:p> ?b }").arrow()
    assert (table.column_names, table.num_rows) == (["a", "b"], 0)
    assert empty.query("SELECT * {}").arrow().num_columns == 0
    assert table_of(empty, None, None).arrow().column("x").to_pylist() == [None, None]


def test_more_rows_than_a_batch(empty, pa):
    numbers = random.Random(5).choices(range(10**6), k=70_000)
    lines = (f'<urn:s{at}> <urn:p> {n} ; <urn:q> "text {n}" .' for at, n in enumerate(numbers))
    empty.load_text("\n".join(lines), "ttl")
    result = empty.query("SELECT ?s ?n ?t { ?s <urn:p> ?n ; <urn:q> ?t }")
    table = result.arrow()
    assert table.num_rows == 70_000 and table.column("n").num_chunks == 2
    table.validate(full=True)
    rows = [(str(s), n, t) for s, n, t in result]
    assert list(zip(*(table.column(name).to_pylist() for name in "snt"))) == rows
    assert sorted(n for _, n, _ in rows) == sorted(numbers)
    # A consumer that stops early.
    reader = pa.RecordBatchReader.from_stream(result)
    assert reader.read_next_batch().num_rows == 65_536
    del reader
    result.__arrow_c_stream__()


def test_graphs(people, pa):
    table = people.query("CONSTRUCT { ?x <urn:age> ?age } { ?x key:age ?age }").arrow()
    assert [str(kind) for kind in table.schema.types] == ["large_string", "large_string", "int64"]
    assert sorted(table.column("object").to_pylist()) == [27, 34, 61]


def test_gremlin(people, pa):
    table = people.gremlin("g.V().order().by('age').project('who', 'age', 'name').by().by('age').by('name')").arrow()
    assert table.to_pylist() == [
        {"who": "2", "age": 27, "name": "Bob"},
        {"who": "1", "age": 34, "name": "Ann"},
        {"who": "3", "age": 61, "name": "Cem"},
    ]
    at = datetime.datetime(2024, 1, 1, 12, tzinfo=UTC)
    for values, kind in (
        ([1, 2**40, None], "int64"), ([1, 2.5], "double"), ([True], "bool"), (["a", None], "large_string"),
        ([at], "timestamp[us, tz=UTC]"), ([at.date()], "date32[day]"),
    ):  # fmt: skip
        column = people.gremlin("g.inject(x).unfold()", x=values).arrow().column("value")
        assert (str(column.type), column.to_pylist()) == (kind, values)
    mixed = people.gremlin("g.inject(x).unfold()", x=[1, "a", 2.5, True, at]).arrow().column("value").to_pylist()
    assert mixed == ["1", "a", "2.5", "true", "2024-01-01T12:00:00Z"]


def test_pandas(people, pa):
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    frame = people.query("SELECT ?name ?age ?height { ?x key:name ?name ; key:age ?age OPTIONAL { ?x key:height ?height } } ORDER BY ?age").df()
    assert list(frame["name"]) == ["Bob", "Ann", "Cem"] and frame["age"].sum() == 122
    assert frame["age"].dtype == "int64" and frame["height"].dtype == "float64"
    assert list(frame["height"].isna()) == [True, False, True]
    assert isinstance(frame, pandas.DataFrame)


def test_pandas_without_pyarrow(people, monkeypatch):
    pytest.importorskip("pandas", reason="pandas is not installed")
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    frame = people.query("SELECT ?name ?age { ?x key:name ?name ; key:age ?age } ORDER BY ?age").df()
    assert frame.to_dict("list") == {"name": ["Bob", "Ann", "Cem"], "age": [27, 34, 61]}


def test_polars(people):
    polars = pytest.importorskip("polars", reason="polars is not installed")
    frame = people.query("SELECT ?name ?age ?born { ?x key:name ?name ; key:age ?age OPTIONAL { ?x key:born ?born } } ORDER BY ?age").pl()
    assert frame.schema == {"name": polars.String, "age": polars.Int64, "born": polars.Date}
    assert frame.rows() == [("Bob", 27, None), ("Ann", 34, datetime.date(1990, 2, 3)), ("Cem", 61, None)]
