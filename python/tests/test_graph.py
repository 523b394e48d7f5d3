"""Typed calls: vertices and edges without a query language, read back in both languages."""

import datetime

import pytest

import vervet


def test_vertices_and_edges(empty):
    with empty.transaction() as tx:
        ann = tx.add_vertex("person", name="Ann", born=datetime.date(1990, 2, 3), language=["de", "en"])
        bob = tx.add_vertex("person", "bob", name='B "o" b\\')
        edge = tx.add_edge(ann, "knows", bob, since=2019)
        assert (ann.label, bob.id, edge.source, edge.target, edge["since"]) == ("person", "bob", ann, bob, 2019)
        assert tx.vertex("person", name="Ann") == ann and empty.vertex("person") is None
    found = empty.vertex("person", name='B "o" b\\')
    assert found == bob and found["name"] == 'B "o" b\\'
    assert set(empty.vertex(name="Ann").properties["language"]) == {"de", "en"}
    query = "SELECT ?born ?since { ?a key:born ?born ; key:knows <urn:vervet:vertex:bob> ~ ?e . ?e key:since ?since }"
    assert empty.query(query).rows() == [(datetime.date(1990, 2, 3), 2019)]
    assert empty.gremlin("g.V('bob').inE('knows').values('since')").values() == [2019]


def test_what_is_missing(empty):
    with empty.transaction() as tx:
        bob = tx.add_vertex("person", "bob")
        with pytest.raises(vervet.InputError):
            tx.add_vertex("person", "bob")
        with pytest.raises(vervet.InputError, match="no vertex"):
            tx.add_edge(vervet.Vertex("nobody"), "knows", bob)
        with pytest.raises(vervet.VervetError):
            tx.add_edge(bob, "knows", vervet.Vertex("nobody"))
        assert tx.vertex("person", name="Ann") is None and tx.vertex("robot") is None
    assert empty.gremlin("g.V().id()").values() == ["bob"] and empty.gremlin("g.E().count()").values() == [0]


def test_removal(empty):
    with empty.transaction() as tx:
        ann, bob = tx.add_vertex("person", "ann"), tx.add_vertex("person", "bob")
        edges = [tx.add_edge(ann, "knows", bob) for _ in range(2)]
    with empty.transaction() as tx:
        assert tx.remove(edges[0]) and not tx.remove(edges[0])
    assert empty.gremlin("g.E()").values() == [edges[1]]
    with empty.transaction() as tx:
        assert tx.remove(ann) and not tx.remove(ann)
    assert empty.gremlin("g.E().count()").values() == [0] and empty.gremlin("g.V()").values() == [bob]


def test_names_are_not_text(empty):
    """Labels and keys with quotes."""
    label, key = 'a"b\'c\\', 'k"); g.V().drop(); //'
    with empty.transaction() as tx:
        vertex = tx.add_vertex(label, **{key: 5})
    assert empty.vertex(label, **{key: 5}) == vertex and vertex[key] == 5 and vertex.label == label
