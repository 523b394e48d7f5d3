"""Gremlin: values, elements, bindings, and the same graph in SPARQL."""

import datetime
import decimal
import uuid
from collections import Counter

import pytest

import vervet
from vervet import Direction, Edge, Path, Property, T, Vertex, VertexProperty

UTC = datetime.timezone.utc
VALUES = [
    None, True, 5, -(2**31), 2**31, 2**63 - 1, 2**63, -(10**50), 2**20_000, 1.5, float("inf"), "", "text 🦊",
    decimal.Decimal("1.50"), decimal.Decimal("-1E+30"), uuid.UUID(int=5), datetime.date(2024, 2, 29),
    datetime.datetime(2024, 2, 29, 12, 30, 15, 123456, UTC),
    datetime.datetime(2024, 2, 29, tzinfo=datetime.timezone(datetime.timedelta(hours=-3, minutes=-30))),
    datetime.timedelta(days=-1, seconds=5, microseconds=7), [1, "a", [2.5, None]], {1, "a"}, {"a": 1, 2: [3]},
    {(1, 2): "a list as a key"}, T.id, T.label, Direction.OUT,
]  # fmt: skip


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_values_go_in_and_out(empty, value):
    (back,) = empty.gremlin("g.inject(x)", x=value)
    assert (type(back), back) == (type(value), value)


def test_elements(people):
    (ann,) = people.gremlin("g.V().has('name', n)", n="Ann")
    assert isinstance(ann, Vertex)
    assert (ann.id, ann.label, ann["age"], ann["born"]) == (1, "person", 34, datetime.date(1990, 2, 3))
    (edge,) = people.gremlin("g.V(v).outE('knows')", v=ann)
    assert isinstance(edge, Edge) and (edge.label, edge.source, edge.target) == ("knows", ann, Vertex(2))
    assert people.gremlin("g.E(e).inV().values('name')", e=edge).values() == ["Bob"]
    (name,) = people.gremlin("g.V(1).properties('name')")
    assert isinstance(name, VertexProperty) and (name.key, name.value) == ("name", "Ann")
    (path,) = people.gremlin("g.V(1).as('a').out('knows').as('b').path()")
    assert isinstance(path, Path) and path["a"] == ann and path["b"] == Vertex(2)
    assert path.labels == (("a",), ("b",))


def test_properties_of_edges(empty):
    empty.gremlin("g.addV('a').as('a').addV('b').addE('knows').from('a').property('since', 2019)")
    (edge,) = empty.gremlin("g.E()")
    assert edge["since"] == 2019 and dict(edge.properties) == {"since": 2019}
    assert empty.gremlin("g.E().properties()").values() == [Property("since", 2019)]


def test_maps(people):
    (ann,) = people.gremlin("g.V(1).elementMap('name', 'age')")
    assert ann == {T.id: 1, T.label: "person", "name": "Ann", "age": 34}
    (edge,) = people.gremlin("g.V(1).outE().elementMap()")
    assert edge[Direction.OUT] == {T.id: 1, T.label: "person"}
    (values,) = people.gremlin("g.V(1).valueMap('name')")
    assert values == {"name": ["Ann"]}
    (groups,) = people.gremlin("g.V().group().by(values('age').is(gt(30)).fold()).by(count())")
    assert groups == {(34,): 1, (): 1, (61,): 1}
    (tree,) = people.gremlin("g.V(1).out().out().tree().by('name')")
    assert tree == {"Ann": {"Bob": {"Cem": {}}}}


def test_rows(people):
    result = people.gremlin("g.V().order().by('age').project('who', 'age').by('name').by('age')")
    assert result.columns == ("who", "age")
    assert result.rows() == [("Bob", 27), ("Ann", 34), ("Cem", 61)]
    assert result.dicts()[0] == result.values()[0] == {"who": "Bob", "age": 27}
    result = people.gremlin("g.V().values('age').order()")
    assert result.columns == ("value",)
    assert (list(result), result.rows()) == ([27, 34, 61], [(27,), (34,), (61,)])
    with pytest.raises(TypeError):
        result.rows(terms=True)
    assert str(result).splitlines() == ["value", "-----", "27", "34", "61"]


def test_missing_keys_are_none(people):
    result = people.gremlin("g.V().order().by('age').valueMap('height')")
    assert result.columns == ("height",)
    assert result.rows() == [(None,), ([1.7],), (None,)]


def test_many_equal_results(empty):
    """2^60 results of one value."""
    steps = ".union(identity(), identity()).barrier()" * 60
    result = empty.gremlin(f"g.inject(5){steps}")
    assert (result.count, result.counted()) == (2**60, [(5, 2**60)])
    iterator = iter(result)
    assert [next(iterator) for _ in range(3000)] == [5] * 3000
    result = empty.gremlin("g.inject(1, 1, 2).barrier().union(identity(), identity())")
    assert Counter(result) == Counter(result.values()) == {1: 4, 2: 2}
    assert sum(count for _, count in result.counted()) == len(result) == 6


def test_bulk_sets(people):
    (bag,) = people.gremlin("g.V().label().aggregate('x').cap('x')")
    assert bag == Counter({"person": 3})


def test_one_graph_in_two_languages(people):
    people.gremlin("g.V(1).property('city', 'Graz')")
    assert people.query("SELECT ?city { <urn:vervet:vertex:1> key:city ?city }").rows() == [("Graz",)]
    people.update('DELETE WHERE { ?x key:city ?city }')
    assert people.gremlin("g.V().has('city').count()").values() == [0]


def test_several_statements(empty):
    script = "g.addV('a').iterate(); g.addV('b').iterate(); g.V().label().order()"
    assert empty.gremlin(script).values() == ["a", "b"]


def test_invalid_bindings(empty):
    endless = []
    endless.append(endless)
    for value, error in ((object(), TypeError), (endless, ValueError), (Path([1]), TypeError)):
        with pytest.raises(error):
            empty.gremlin("g.inject(x)", x=value)


def test_profile(people):
    (text,) = people.gremlin("g.V().out().profile()")
    assert "total" in text and "ms" in text
