"""The store of rdflib: rdflib's tests of stores, and queries and updates that go down whole.

The first classes follow the tests of graphs and contexts of rdflib 7 (test/test_graph), whose packages do
not include them.
"""

import os
import subprocess
import sys

import pytest

import vervet

rdflib = pytest.importorskip("rdflib", reason="rdflib is not installed")

from rdflib import RDF, RDFS, XSD, BNode, ConjunctiveGraph, Dataset, Graph, Literal, URIRef  # noqa: E402
from rdflib.compare import isomorphic  # noqa: E402

from vervet.rdflib import Store  # noqa: E402

MICHEL, TAREK, BOB = URIRef("michel"), URIRef("tarek"), URIRef("bob")
LIKES, HATES, PIZZA, CHEESE = URIRef("likes"), URIRef("hates"), URIRef("pizza"), URIRef("cheese")


@pytest.fixture
def graph():
    graph = Graph(store=Store())
    yield graph
    graph.close()


def add_stuff(graph):
    graph.add((TAREK, LIKES, PIZZA))
    graph.add((TAREK, LIKES, CHEESE))
    graph.add((MICHEL, LIKES, PIZZA))
    graph.add((MICHEL, LIKES, CHEESE))
    graph.add((BOB, LIKES, CHEESE))
    graph.add((BOB, HATES, PIZZA))
    graph.add((BOB, HATES, MICHEL))


def remove_stuff(graph):
    graph.remove((TAREK, LIKES, PIZZA))
    graph.remove((TAREK, LIKES, CHEESE))
    graph.remove((MICHEL, LIKES, PIZZA))
    graph.remove((MICHEL, LIKES, CHEESE))
    graph.remove((BOB, LIKES, CHEESE))
    graph.remove((BOB, HATES, PIZZA))
    graph.remove((BOB, HATES, MICHEL))


class TestGraph:
    """rdflib's test_graph.py."""

    def test_add_and_remove(self, graph):
        add_stuff(graph)
        assert len(graph) == 7
        remove_stuff(graph)
        assert len(graph) == 0

    def test_triples(self, graph):
        add_stuff(graph)
        count = lambda s, p, o: len(list(graph.triples((s, p, o))))  # noqa: E731
        assert count(None, LIKES, PIZZA) == 2
        assert count(None, HATES, PIZZA) == 1
        assert count(None, LIKES, CHEESE) == 3
        assert count(None, HATES, CHEESE) == 0
        assert count(MICHEL, LIKES, None) == 2
        assert count(BOB, LIKES, None) == 1
        assert count(BOB, HATES, None) == 2
        assert count(MICHEL, None, CHEESE) == 1
        assert count(BOB, None, PIZZA) == 1
        assert count(None, HATES, None) == 2
        assert count(None, LIKES, None) == 5
        assert count(MICHEL, None, None) == 2
        assert count(BOB, None, None) == 3
        assert count(None, None, PIZZA) == 3
        assert count(None, None, CHEESE) == 3
        assert count(None, None, MICHEL) == 1
        assert count(None, None, None) == 7
        remove_stuff(graph)
        assert count(None, None, None) == 0

    def test_connected(self, graph):
        add_stuff(graph)
        assert graph.connected()
        graph.add((URIRef("jeroen"), LIKES, URIRef("unconnected")))
        assert not graph.connected()

    def test_sub_and_add(self):
        one, other = Graph(store=Store()), Graph(store=Store())
        one.add((TAREK, LIKES, PIZZA))
        one.add((BOB, LIKES, CHEESE))
        other.add((BOB, LIKES, CHEESE))
        assert len(one - other) == 1 and (TAREK, LIKES, PIZZA) in one - other
        assert len(one + other) == 2
        assert len(one * other) == 1
        assert len(one ^ other) == 1
        one -= other
        assert len(one) == 1
        one += other
        assert len(one) == 2

    def test_statements_of_one_graph(self, graph):
        add_stuff(graph)
        assert set(graph.subjects(LIKES, PIZZA)) == {TAREK, MICHEL}
        assert set(graph.predicates(BOB, None)) == {LIKES, HATES}
        assert graph.value(BOB, LIKES) == CHEESE
        assert set(graph.transitive_objects(BOB, HATES)) == {BOB, PIZZA, MICHEL}
        graph.set((BOB, LIKES, PIZZA))
        assert list(graph.objects(BOB, LIKES)) == [PIZZA]
        assert set(graph.triples_choices(([BOB, TAREK], HATES, None))) == set(graph.triples((BOB, HATES, None)))


class TestContexts:
    """rdflib's test_graph_context.py."""

    c1, c2 = URIRef("context-1"), URIRef("context-2")

    @pytest.fixture
    def conjunctive(self):
        graph = ConjunctiveGraph(Store())
        yield graph
        graph.close()

    def context(self, graph, identifier):
        return Graph(graph.store, identifier)

    def test_add_and_remove(self, conjunctive):
        one = self.context(conjunctive, self.c1)
        add_stuff(one)
        assert len(one) == 7 and len(conjunctive) == 7
        remove_stuff(one)
        assert len(one) == 0 and len(conjunctive) == 0

    def test_conjunction(self, conjunctive):
        triple = (PIZZA, LIKES, CHEESE)
        self.context(conjunctive, self.c1).add(triple)
        self.context(conjunctive, self.c2).add(triple)
        # One triple in two graphs.
        assert len(conjunctive) == 1
        add_stuff(self.context(conjunctive, self.c1))
        assert len(conjunctive) == 8

    def test_len_in_one_and_more_contexts(self, conjunctive):
        before = len(conjunctive)
        add_stuff(self.context(conjunctive, self.c1))
        assert len(conjunctive) == before + 7
        assert len(self.context(conjunctive, self.c1)) == 7
        add_stuff(self.context(conjunctive, self.c2))
        assert len(conjunctive) == before + 7

    def test_remove_in_multiple_contexts(self, conjunctive):
        triple = (PIZZA, HATES, TAREK)
        for name in (self.c1, self.c2):
            self.context(conjunctive, name).add(triple)
        conjunctive.default_context.add(triple)
        assert triple in conjunctive
        self.context(conjunctive, self.c1).remove(triple)
        assert triple in conjunctive and triple not in self.context(conjunctive, self.c1)
        self.context(conjunctive, self.c2).remove(triple)
        assert triple in conjunctive
        conjunctive.remove(triple)
        assert triple not in conjunctive

    def test_contexts(self, conjunctive):
        triple = (PIZZA, HATES, TAREK)
        self.context(conjunctive, self.c1).add(triple)
        self.context(conjunctive, self.c2).add(triple)
        names = lambda found: {context.identifier for context in found}  # noqa: E731
        assert names(conjunctive.contexts()) == {self.c1, self.c2}
        assert names(conjunctive.contexts(triple)) == {self.c1, self.c2}
        assert names(conjunctive.contexts((PIZZA, LIKES, TAREK))) == set()

    def test_remove_context(self, conjunctive):
        add_stuff(self.context(conjunctive, self.c1))
        conjunctive.remove_context(conjunctive.get_context(self.c1))
        assert len(conjunctive) == 0

    def test_remove_any(self, conjunctive):
        add_stuff(self.context(conjunctive, self.c1))
        add_stuff(self.context(conjunctive, self.c2))
        add_stuff(conjunctive)
        conjunctive.remove((None, None, None))
        assert len(conjunctive) == 0

    def test_triples(self, conjunctive):
        one = self.context(conjunctive, self.c1)
        add_stuff(one)
        for graph in (one, conjunctive):
            assert set(graph.subjects(LIKES, PIZZA)) == {TAREK, MICHEL}
            assert set(graph.objects(BOB, HATES)) == {PIZZA, MICHEL}
            assert set(graph.predicates(BOB, CHEESE)) == {LIKES}
            assert set(graph.subject_objects(HATES)) == {(BOB, PIZZA), (BOB, MICHEL)}
            assert len(list(graph)) == 7
        quads = set(conjunctive.quads((BOB, LIKES, None)))
        assert {(s, p, o, g.identifier) for s, p, o, g in quads} == {(BOB, LIKES, CHEESE, self.c1)}


def test_terms_come_back(graph):
    terms = [
        Literal("text"),
        Literal("chat", lang="fr"),
        Literal(7),
        Literal("007", datatype=XSD.integer, normalize=False),
        Literal("2024-02-30", datatype=XSD.date, normalize=False),
        Literal("x", datatype=URIRef("urn:own")),
        Literal('quotes " and \n lines \\'),
        URIRef("http://example.org/ä"),
        URIRef("relative name"),
        BNode("b1"),
    ]
    for number, term in enumerate(terms):
        graph.add((URIRef("urn:s"), URIRef(f"urn:p{number}"), term))
    for number, term in enumerate(terms):
        (found,) = graph.objects(URIRef("urn:s"), URIRef(f"urn:p{number}"))
        assert found == term and type(found) is type(term)
        assert (URIRef("urn:s"), URIRef(f"urn:p{number}"), term) in graph


def test_blank_nodes_keep_their_names(graph):
    node = BNode()
    graph.add((node, RDF.type, URIRef("urn:t")))
    len(graph)
    graph.add((node, RDFS.label, Literal("later")))
    assert set(graph.subjects()) == {node}
    assert list(graph.objects(node, RDFS.label)) == [Literal("later")]
    graph.remove((node, None, None))
    assert len(graph) == 0


def test_documents(graph):
    text = "@prefix : <http://example.org/> . :a :b [ :c ( 1 2 3 ) ; :d 'x'@en, 1.5, true ] ."
    graph.parse(data=text, format="turtle")
    assert isomorphic(graph, Graph().parse(data=text, format="turtle"))
    assert isomorphic(Graph().parse(data=graph.serialize(format="turtle"), format="turtle"), graph)


def test_queries_are_pushed_down(graph, monkeypatch):
    graph.parse(data="@prefix ex: <http://example.org/> . ex:a ex:age 3 . ex:b ex:age 5 ; ex:name 'B'@en .", format="turtle")
    # rdflib's own evaluation would read triples.
    monkeypatch.setattr(Store, "triples", None)
    rows = graph.query("SELECT ?who ?name { ?who ex:age ?age OPTIONAL { ?who ex:name ?name } } ORDER BY ?age")
    assert rows.vars == [rdflib.Variable("who"), rdflib.Variable("name")]
    assert [tuple(row) for row in rows] == [
        (URIRef("http://example.org/a"), None),
        (URIRef("http://example.org/b"), Literal("B", lang="en")),
    ]
    assert len(rows) == 2 and rows.bindings
    bound = graph.query("SELECT ?age { ?who ex:age ?age }", initBindings={"who": URIRef("http://example.org/b")})
    assert [row.age for row in bound] == [Literal(5)]
    assert graph.query("ASK { ?who ex:age 3 }").askAnswer is True
    made = graph.query("CONSTRUCT { ?who a ex:Person } WHERE { ?who ex:age ?age }")
    assert len(made.graph) == 2
    from rdflib.plugins.sparql import prepareQuery

    prepared = prepareQuery("SELECT ?a { ?a x:age 5 }", initNs={"x": "http://example.org/"})
    assert [row.a for row in graph.query(prepared)] == [URIRef("http://example.org/b")]
    assert b"example.org/b" in graph.query("SELECT ?a { ?a ex:age 5 }").serialize(format="json")


def test_updates_are_pushed_down(graph, monkeypatch):
    graph.bind("ex", "http://example.org/")
    monkeypatch.setattr(Store, "triples", None)
    graph.update("INSERT DATA { ex:a ex:age 1 . ex:b ex:age 2 }")
    graph.update("DELETE { ?a ex:age ?old } INSERT { ?a ex:age ?new } WHERE { ?a ex:age ?old BIND(?old * 10 AS ?new) }")
    assert {int(row.n) for row in graph.query("SELECT ?n { ?a ex:age ?n }")} == {10, 20}
    graph.update("DELETE WHERE { ?who ex:age ?n }", initBindings={"who": URIRef("http://example.org/a")})
    assert len(graph) == 1


def test_named_graphs():
    dataset = Dataset(store=Store())
    one = dataset.graph(URIRef("urn:g1"))
    one.add((URIRef("urn:a"), URIRef("urn:p"), Literal(1)))
    dataset.default_graph.add((URIRef("urn:b"), URIRef("urn:p"), Literal(2)))
    text = "SELECT ?o { ?s <urn:p> ?o }"
    assert [row.o for row in one.query(text)] == [Literal(1)]
    assert [row.o for row in dataset.query(text)] == [Literal(2)]
    assert [row.g for row in dataset.query("SELECT ?g { GRAPH ?g { ?s ?p ?o } }")] == [URIRef("urn:g1")]
    # rdflib 7.6 gives the default graph this name rather than None.
    names = {quad[3] for quad in dataset.quads((None, None, None, None))}
    assert names - {None, URIRef("urn:x-rdflib:default")} == {URIRef("urn:g1")} and len(names) == 2
    union = Dataset(store=dataset.store, default_union=True)
    assert {row.o for row in union.query(text)} == {Literal(1), Literal(2)}
    one.update("INSERT DATA { <urn:c> <urn:p> 3 }")
    assert len(one) == 2 and len(dataset.default_graph) == 1
    dataset.remove_graph(one)
    assert len(one) == 0
    trig = "<urn:a> <urn:p> 1 . <urn:g> { <urn:b> <urn:q> 2 }"
    dataset.parse(data=trig, format="trig")
    assert len(dataset.graph(URIRef("urn:g"))) == 1


def test_the_union_of_named_graphs_is_pushed_down(monkeypatch):
    graph = ConjunctiveGraph(store=Store())
    for number in (1, 2):
        graph.get_context(URIRef(f"urn:g{number}")).add((URIRef("urn:a"), URIRef("urn:p"), Literal(number)))
    len(graph)
    monkeypatch.setattr(Store, "triples", None)
    assert {int(row.o) for row in graph.query("SELECT ?o { ?s <urn:p> ?o }")} == {1, 2}


def test_an_open_database(people):
    graph = Graph(store=Store(people))
    name = URIRef("urn:vervet:key:name")
    assert {str(text) for text in graph.objects(None, name)} == {"Ann", "Bob", "Cem"}
    graph.add((URIRef("urn:vervet:vertex:9"), name, Literal("Dan")))
    graph.store.commit()
    assert people.gremlin("g.V(9).values('name')").values() == ["Dan"]
    graph.close()
    assert not people.closed


def test_directories(tmp_path):
    path = str(tmp_path / "db")
    graph = Graph(store="vervet" if "vervet" in stores() else Store())
    assert graph.open(path, create=True) == rdflib.store.VALID_STORE
    add_stuff(graph)
    graph.close()
    with vervet.open(path) as db:
        assert db.info()["statements"] == 7
    again = Graph(store=Store(path))
    assert len(again) == 7
    again.close()
    assert Graph(store=Store()).open(str(tmp_path / "missing"), create=False) == rdflib.store.NO_STORE


def stores():
    return {plugin.name for plugin in rdflib.plugin.plugins(None, rdflib.store.Store)}


def test_many_triples_are_added_together(graph):
    for number in range(12_000):
        graph.add((URIRef(f"urn:s{number}"), URIRef("urn:p"), BNode(f"b{number % 100}")))
    assert len(graph) == 12_000
    assert len(set(graph.objects())) == 100


def test_rollback_discards_what_waits(graph):
    graph.add((MICHEL, LIKES, PIZZA))
    graph.rollback()
    assert len(graph) == 0


RDFLIB_TESTS = [
    "test/test_graph/test_graph_context.py",
    "test/test_graph/test_graph_generators.py",
    "test/test_graph/test_graph_operator.py",
    "test/test_dataset",
]


@pytest.mark.skipif("RDFLIB_SOURCE" not in os.environ, reason="RDFLIB_SOURCE does not name a source distribution of rdflib")
def test_the_tests_of_rdflib():
    """rdflib's tests of graphs and datasets, which take every store that is installed. They are in its source
    distribution only: pip download --no-binary :all: --no-deps rdflib."""
    if "vervet" not in stores():
        pytest.skip("vervet is not installed, so rdflib does not know the store")
    folder = os.environ["RDFLIB_SOURCE"]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", os.devnull, "--rootdir=.", *RDFLIB_TESTS]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, check=False)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr


def test_literals_are_those_of_the_constructor():
    """Literals of results are made without rdflib's constructor: they have all that it sets."""
    from vervet.rdflib import _from_vervet

    members = ("_language", "_datatype", "_value", "_ill_typed")
    for lexical, datatype in [
        ("", XSD.string), ("a", XSD.string), ("1", XSD.integer), ("+01", XSD.integer), ("x", XSD.integer), ("9" * 50, XSD.integer),
        (" 1 ", XSD.integer), ("1_0", XSD.integer), ("1.50e0", XSD.double), ("INF", XSD.double), ("-INF", XSD.double), ("NaN", XSD.double),
        ("inf", XSD.double), ("x", XSD.double), ("1.5", XSD.decimal), ("true", XSD.boolean), ("2024-02-30", XSD.date),
    ]:  # fmt: skip
        own = _from_vervet(vervet.Literal(lexical, str(datatype)))
        theirs = Literal(lexical, datatype=None if datatype == XSD.string else datatype, normalize=False)
        assert own == theirs or lexical == "NaN" and str(own) == str(theirs)
        assert [repr(getattr(own, name)) for name in members] == [repr(getattr(theirs, name)) for name in members], lexical
