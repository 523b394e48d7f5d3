"""Tables in Arrow: loads of vertices, edges and statements; decimals; exports to Parquet."""

import datetime
import decimal
import random

import pytest

import vervet

pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
D = decimal.Decimal


def airports():
    return pyarrow.table({"code": ["VIE", "GRZ"], "city": ["Vienna", "Graz"], "runways": [2, None]})


def test_vertices_and_edges(empty):
    report = empty.load(airports(), vertices="airport", id_column="code")
    assert report.added == 2 * 3 + 1
    routes = pyarrow.table({"from": ["VIE", "GRZ"], "to": ["GRZ", "VIE"], "distance": [150.5, 151.0]})
    empty.load(routes, edges="route", source="from", target="to")
    assert empty.gremlin("g.V('VIE').outE('route').values('distance')").values() == [150.5]
    assert empty.gremlin("g.V().has('code', 'GRZ').out('route').values('city')").values() == ["Vienna"]
    assert empty.query("SELECT ?n { ?a a label:airport ; key:runways ?n }").rows() == [(2,)]


def test_defaults(empty):
    """The first column is the id, the first two are the ends; headers tell as in files."""
    empty.load(airports(), vertices="airport")
    empty.load(pyarrow.table({"a": ["VIE"], "b": ["GRZ"]}), edges="route")
    assert empty.gremlin("g.V('VIE').out('route').id()").values() == ["GRZ"]
    empty.load(pyarrow.table({"id": [1], "label": ["person"], "name": ["Ann"]}))
    assert empty.gremlin("g.V(1).label()").values() == ["person"]
    empty.load(pyarrow.table({"x": [1.5, 2.5]}), vertices="point", row_ids=True)
    assert sorted(empty.gremlin("g.V().hasLabel('point').values('x')")) == [1.5, 2.5]


def test_several_sources_are_one_load(empty, tmp_path):
    file = tmp_path / "knows.csv"
    file.write_text("source,target,label\n1,2,knows\n")
    empty.load(pyarrow.table({"id": [1, 2], "label": ["person"] * 2}), file)
    assert empty.gremlin("g.V(1).out('knows').id()").values() == [2]
    bad = pyarrow.table({"id": [3], "label": ["person"], "part": [{"a": 1}]})
    with pytest.raises(vervet.UnsupportedError):
        empty.load(pyarrow.table({"id": [4], "label": ["person"]}), bad)
    assert empty.gremlin("g.V().count()").values() == [2]


def test_wrong_arguments(empty):
    for options in [
        {"vertices": "a", "edges": "b"},
        {"source": "a", "target": "b"},
        {"edges": "e", "source": "a"},
        {"edges": "e", "id_column": "a"},
    ]:
        with pytest.raises(TypeError):
            empty.load(airports(), **options)
    with pytest.raises(vervet.InputError, match="nothing"):
        empty.load(airports(), edges="route", source="nothing", target="city")
    with pytest.raises(TypeError):
        empty.load(42)


TYPES = {
    "int8": (pyarrow.int8(), 1),
    "uint64": (pyarrow.uint64(), 2**63 - 1),
    "float32": (pyarrow.float32(), 0.5),
    "float64": (pyarrow.float64(), 1e300),
    "bool": (pyarrow.bool_(), True),
    "string": (pyarrow.string(), "ä"),
    "large_string": (pyarrow.large_string(), ""),
    "string_view": (pyarrow.string_view(), "a view of more than twelve bytes"),
    "dictionary": (pyarrow.dictionary(pyarrow.int8(), pyarrow.string()), "category"),
    "decimal": (pyarrow.decimal128(10, 2), D("1.25")),
    "date": (pyarrow.date32(), datetime.date(2024, 2, 29)),
    "timestamp_ms": (pyarrow.timestamp("ms"), datetime.datetime(2024, 2, 29, 1, 2, 3, 4000)),
    "timestamp_ns": (pyarrow.timestamp("ns"), datetime.datetime(2024, 2, 29)),
    "timestamp_zone": (
        pyarrow.timestamp("us", tz="Europe/Vienna"),
        datetime.datetime(2024, 2, 29, tzinfo=datetime.timezone.utc),
    ),
}


@pytest.mark.parametrize("name", TYPES)
def test_types_of_properties(empty, name):
    kind, value = TYPES[name]
    table = pyarrow.table({"id": [1, 2], "label": ["x", "x"], "value": pyarrow.array([value, None], kind)})
    empty.load(table)
    (found,) = empty.query("SELECT ?v { ?x key:value ?v }").rows()
    assert found == (value,) and type(found[0]) is type(value)


@pytest.mark.parametrize("name", TYPES)
def test_types_of_objects(empty, name):
    kind, value = TYPES[name]
    table = pyarrow.table(
        {"subject": ["urn:a", "_:b"], "predicate": ["urn:p", "urn:p"], "object": pyarrow.array([value, value], kind)}
    )
    assert empty.load(table).added == 2
    rows = empty.query("SELECT ?v { ?x <urn:p> ?v }").rows()
    assert rows == [(value,), (value,)]


def test_lists_and_nulls(empty):
    table = pyarrow.table({"id": [1], "label": ["x"], "tags": [["a", "b"]], "nothing": pyarrow.nulls(1)})
    empty.load(table)
    assert sorted(empty.gremlin("g.V().values('tags')")) == ["a", "b"]
    assert empty.gremlin("g.V().properties('nothing').count()").values() == [0]


def test_statements(empty):
    table = pyarrow.table(
        {
            "subject": ["urn:a", "_:b", "urn:a", "urn:a"],
            "predicate": ["urn:p"] * 4,
            "object": ["urn:b", "plain text", "chat", "12"],
            "graph": [None, None, None, "urn:g"],
            "language": [None, None, "fr", None],
            "datatype": [None, None, None, "http://www.w3.org/2001/XMLSchema#integer"],
        }
    )
    assert empty.load(table).added == 4
    iri, literal = vervet.IRI, vervet.Literal
    found = {value for (value,) in empty.query("SELECT ?o { ?s ?p ?o }").rows()}
    assert found == {iri("urn:b"), "plain text", literal("chat", language="fr")}
    assert empty.query("SELECT ?o { GRAPH <urn:g> { ?s ?p ?o } }").rows() == [(12,)]


def test_statements_that_are_none(empty):
    for column, value in [("subject", "no IRI"), ("predicate", "_:b"), ("object", None)]:
        row = {"subject": "urn:a", "predicate": "urn:p", "object": "x", column: value}
        table = pyarrow.Table.from_pylist([row], schema=pyarrow.schema([(name, pyarrow.string()) for name in row]))
        with pytest.raises(vervet.InputError, match=f"row 1, column {column}"):
            empty.load(table)


def test_a_result_is_a_source(people, empty):
    """What one database constructs, another one loads."""
    graph = people.query("CONSTRUCT WHERE { ?s key:knows ?o }")
    with vervet.open() as other:
        assert other.load(graph).added == 2
        assert other.query("ASK { <urn:vervet:vertex:1> key:knows <urn:vervet:vertex:2> }")


def test_pandas(empty):
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    frame = pandas.DataFrame({"code": ["VIE"], "kind": pandas.Categorical(["big"]), "score": [1.5]})
    if not hasattr(frame, "__arrow_c_stream__"):
        pytest.skip("this version of pandas has no Arrow streams")
    empty.load(frame, vertices="airport", id_column="code")
    assert empty.query("SELECT ?k ?s { ?a key:kind ?k ; key:score ?s }").rows() == [("big", 1.5)]


def test_polars(empty):
    polars = pytest.importorskip("polars", reason="polars is not installed")
    frame = polars.DataFrame({"code": ["VIE"], "opened": [datetime.date(1938, 1, 1)]})
    empty.load(frame, vertices="airport", id_column="code")
    assert empty.query("SELECT ?day { ?a key:opened ?day }").rows() == [(datetime.date(1938, 1, 1),)]


def test_a_stream_is_read_once(empty):
    reader = airports().to_reader()
    empty.load(reader, vertices="airport")
    assert empty.gremlin("g.V().count()").values() == [2]


def test_decimals(empty):
    values = "VALUES ?d { 1.5 -0.25 100000000000000000000.125 } VALUES ?m { 1.5 } VALUES ?i { 7 }"
    table = empty.query(f"SELECT ?d ?m {{ {values} }}").arrow()
    assert table.schema.field("d").type == pyarrow.decimal128(24, 3)
    assert sorted(table["d"].to_pylist()) == [D("-0.250"), D("1.500"), D("100000000000000000000.125")]
    mixed = empty.query("SELECT ?d { VALUES ?d { 1.5 2 UNDEF } }").arrow()
    assert mixed["d"].to_pylist() == [D("1.5"), D("2.0"), None]
    floats = empty.query("SELECT ?d { VALUES ?d { 1.5 2e0 } }").arrow()
    assert floats["d"].to_pylist() == [1.5, 2.0]
    wide = f"1{'0' * 30}.{'0' * 20}1"
    assert empty.query(f"SELECT ?d {{ VALUES ?d {{ {wide} 1.5 }} }}").arrow().schema.field("d").type == pyarrow.float64()


def test_random_decimals(empty):
    rng = random.Random(5)
    for _ in range(30):
        scale = rng.randrange(0, 10)
        values = [D(rng.randrange(-(10**15), 10**15)).scaleb(-rng.randrange(0, scale + 1)) for _ in range(5)]
        texts = " ".join(f'"{value:f}"^^<http://www.w3.org/2001/XMLSchema#decimal>' for value in values)
        table = empty.query(f"SELECT ?d {{ VALUES ?d {{ {texts} }} }}").arrow()
        assert table["d"].to_pylist() == values


def test_decimals_in_frames(empty):
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    frame = empty.query("SELECT ?d { VALUES ?d { 1.5 2.5 } }").df()
    assert isinstance(frame, pandas.DataFrame) and frame["d"].dtype == "float64" and frame["d"].sum() == 4


def test_export(people, tmp_path):
    from pyarrow import parquet

    result = people.query("SELECT ?name ?age ?height { ?a key:name ?name ; key:age ?age OPTIONAL { ?a key:height ?height } } ORDER BY ?age")
    path = tmp_path / "people.parquet"
    assert result.write_parquet(path) == 3
    table = parquet.read_table(path)
    assert table == result.arrow()
    assert [child.name for child in tmp_path.iterdir()] == ["people.parquet"]
    with pytest.raises(vervet.IoError):
        result.write_parquet(tmp_path / "missing" / "people.parquet")


def test_export_and_load(people, tmp_path):
    people.gremlin("g.V().hasLabel('person').project('id', 'name').by(T.id).by('name')").write_parquet(tmp_path / "p.parquet")
    with vervet.open() as other:
        other.load(tmp_path / "p.parquet", vertices="person")
        assert other.gremlin("g.V(1).values('name')").values() == ["Ann"]


def test_an_empty_result(empty, tmp_path):
    from pyarrow import parquet

    assert empty.query("SELECT ?a { ?a key:x 1 }").write_parquet(tmp_path / "a.parquet") == 0
    assert parquet.read_table(tmp_path / "a.parquet").num_rows == 0
