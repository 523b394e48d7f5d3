"""The graph store of LangChain: its protocol, hostile names, types, and chains with a fake model."""

import datetime
import decimal
import threading

import pytest

import vervet

pytest.importorskip("langchain_community", reason="langchain-community is not installed")

from langchain_community.chains.graph_qa.cypher import GraphCypherQAChain  # noqa: E402
from langchain_community.chains.graph_qa.sparql import GraphSparqlQAChain  # noqa: E402
from langchain_community.graphs.graph_document import GraphDocument, Node, Relationship  # noqa: E402
from langchain_community.graphs.graph_store import GraphStore as Protocol  # noqa: E402
from langchain_community.graphs.rdf_graph import RdfGraph  # noqa: E402
from langchain_core.documents import Document  # noqa: E402
from langchain_core.language_models import FakeListLLM  # noqa: E402

from vervet.langchain import GREMLIN_PROMPT, SPARQL_PROMPT, GraphStore  # noqa: E402

# The chains of langchain-community are deprecated in favour of packages for single databases.
pytestmark = pytest.mark.filterwarnings("ignore")

HOSTILE = [
    "O'Brien", 'a "quoted" name', "two  spaces ", "line\nbreak\r\n\ttab", "Žofie 猫 🦊", "back\\slash", "%27", "5", "05",
    "_:b", "http://example.org/é?x=1#y", "http://not an IRI", "urn:a b", "') ; DROP", "}} . ?s ?p ?o", "urn:vervet:key:id", "\0",
]  # fmt: skip


@pytest.fixture
def graph(empty):
    return GraphStore(empty)


def document(nodes, relationships=(), text="A text.", **options):
    source = Document(page_content=text, **options)
    return GraphDocument(nodes=list(nodes), relationships=list(relationships), source=source)


ANN = Node(id="Ann", type="person", properties={"age": 34})
BOB = Node(id="Bob", type="person", properties={"age": 27})
GRAZ = Node(id="Graz", type="city")
KNOWS = Relationship(source=ANN, target=BOB, type="knows", properties={"since": 2019})
LIVES = Relationship(source=ANN, target=GRAZ, type="lives in")


@pytest.fixture
def family(graph):
    graph.add_graph_documents([document([ANN, BOB], [KNOWS]), document([GRAZ], [LIVES])])
    return graph


def test_the_protocol(graph):
    assert isinstance(graph, Protocol) and isinstance(graph, RdfGraph)
    graph.add_graph_documents([])
    assert graph.query("ASK {}") == [{"ask": True}]


def test_documents(family):
    db = family.database
    assert sorted(db.gremlin("g.V().id()")) == ["Ann", "Bob", "Graz"]
    (edge,) = db.gremlin("g.V('Ann').outE('knows')")
    assert edge.target.id == "Bob" and edge["since"] == 2019
    assert family.query("SELECT ?age { ?x a label:person ; key:id 'Ann' ; key:age ?age }") == [{"age": 34}]
    assert db.gremlin("g.V('Ann').out('lives in').label()").values() == ["city"]


def test_documents_are_merged(family):
    """Properties are set, labels are added; the same documents again change nothing."""
    before = family.database.info()["statements"]
    family.add_graph_documents([document([ANN, BOB], [KNOWS]), document([GRAZ], [LIVES])])
    assert family.database.info()["statements"] == before
    author = Node(id="Ann", type="author", properties={"age": None, "books": 2})
    family.add_graph_documents([document([author], [Relationship(source=author, target=BOB, type="knows", properties={"x": 1})])])
    (ann,) = family.database.gremlin("g.V('Ann')")
    assert set(ann.label.split("::")) == {"author", "person"}
    assert {key: values[0] for key, values in ann.properties.items()} == {"id": "Ann", "books": 2}
    (edge,) = family.database.gremlin("g.V('Ann').outE('knows')")
    assert dict(edge.properties) == {"since": 2019, "x": 1}


def test_sources(graph):
    documents = [
        document([ANN], [LIVES], text="First", metadata={"page": 1, "id": "m"}),
        document([ANN, BOB], text="Second", id="own id", metadata={"id": "m"}),
        document([BOB], text="Third"),
    ]
    graph.add_graph_documents(documents, include_source=True)
    graph.add_graph_documents(documents, include_source=True)
    rows = graph.query("SELECT ?text ?id { ?d a label:Document ; key:text ?text ; key:MENTIONS ?x . ?x key:id ?id }")
    found = sorted((row["text"], row["id"]) for row in rows)
    assert found == [("First", "Ann"), ("First", "Graz"), ("Second", "Ann"), ("Second", "Bob"), ("Third", "Bob")]
    ids = sorted(graph.database.gremlin("g.V().hasLabel('Document').id()"))
    assert ids == ["168909c0b6f1dfbd48f679d47059c1d6", "m", "own id"]
    assert graph.query("SELECT ?page { ?d key:page ?page }") == [{"page": 1}]


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names(graph, name):
    other = Node(id=name + "2", type=name, properties={name: name})
    node = Node(id=name, type=name, properties={name: name})
    relationship = Relationship(source=node, target=other, type=name, properties={name: name})
    for _ in range(2):
        graph.add_graph_documents([document([node, other], [relationship], text=name)])
    gremlin = GraphStore(graph.database, language="gremlin")
    expected = {"id": name, name: name, "label": name}
    assert sorted(gremlin.query("g.V()"), key=lambda found: len(found["id"])) == [expected, {**expected, "id": name + "2"}]
    (edge,) = gremlin.query("g.E()")
    assert (edge["source"], edge["label"], edge["target"], edge[name]) == (name, name, name + "2", name)
    assert graph.query("SELECT (COUNT(*) AS ?n) { ?x key:id ?id }", {"id": name}) == [{"n": 1}]
    graph.refresh_schema()
    (relationship,) = graph.get_structured_schema["relationships"]
    query = f"ASK {{ ?a a {relationship['start']} ; {relationship['type']} ?b . ?b a {relationship['end']} }}"
    assert graph.query(query) == [{"ask": True}]


def test_integer_ids(graph):
    graph.add_graph_documents([document([Node(id=5, type="n"), Node(id="5", type="m")])])
    assert graph.database.gremlin("g.V().count()").values() == [1]


def test_values(graph):
    values = {
        "int": 34, "float": 1.5, "bool": True, "decimal": decimal.Decimal("1.50"), "date": datetime.date(2024, 2, 29),
        "list": [1, "a"], "map": {"a": [1]}, "time": datetime.datetime(2024, 2, 29, 1, tzinfo=datetime.timezone.utc),
    }  # fmt: skip
    graph.add_graph_documents([document([Node(id="x", type="t", properties=values)])])
    (vertex,) = graph.database.gremlin("g.V('x')")
    found = {key: one for key, (one,) in vertex.properties.items() if key != "id"}
    assert found == values and all(type(found[key]) is type(values[key]) for key in values)


def test_what_cannot_be_stored(graph):
    for bad in (b"", object(), "\ud800"):
        with pytest.raises(vervet.InputError, match="the vertex 'x': the property 'p' cannot be stored"):
            graph.add_graph_documents([document([ANN, Node(id="x", type="t", properties={"ok": 1, "p": bad})])])
        edge = Relationship(source=ANN, target=BOB, type="knows", properties={"p": bad})
        with pytest.raises(vervet.InputError, match="the edge 'knows' from 'Ann' to 'Bob': the property 'p'"):
            graph.add_graph_documents([document([ANN], [edge])])
    with pytest.raises(vervet.InputError, match="empty label"):
        graph.add_graph_documents([document([ANN, Node(id="x", type="")])])
    assert graph.database.info()["statements"] == 0


def test_queries_change_nothing(family):
    with pytest.raises(vervet.QueryError):
        family.query("DELETE WHERE { ?s ?p ?o }")
    gremlin = GraphStore(family.database, language="gremlin")
    gremlin.query("g.V().drop()")
    assert gremlin.query("g.V().has('age', gt(least)).values('id')", {"least": 30}) == [{"value": "Ann"}]
    with pytest.raises(vervet.UnsupportedError, match="not run"):
        family.update("DELETE WHERE { ?s ?p ?o }")
    with pytest.raises(ValueError, match="cypher"):
        GraphStore(family.database, language="cypher")
    assert gremlin.query("g.V().count()") == [{"value": 3}]


def test_schemas(family):
    text = family.get_schema
    assert "label:person: key:age (int), key:id (string)" in text
    assert "label:person <urn:vervet:key:lives%20in> label:city" in text
    schema = family.get_structured_schema
    assert {"start": "label:person", "type": "key:knows", "end": "label:person"} in schema["relationships"]
    assert schema["rel_props"] == {"key:knows": [{"property": "key:since", "type": "int"}]}
    family.add_graph_documents([document([Node(id="Rex", type="dog")])])
    assert "dog" not in family.get_schema
    family.refresh_schema()
    assert "label:dog: key:id (string)" in family.get_schema
    assert "(person)-[lives in]->(city)" in GraphStore(family.database, language="gremlin").get_schema


def test_threads(graph):
    def work(own):
        for number in range(10):
            node = Node(id="shared", type=f"type{own}", properties={f"k{own}": number})
            graph.add_graph_documents([document([node], [Relationship(source=node, target=ANN, type="r")])])

    threads = [threading.Thread(target=work, args=(own,)) for own in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (shared,) = graph.database.gremlin("g.V('shared')")
    assert shared.label == "type0::type1::type2::type3" and [shared[f"k{own}"] for own in range(4)] == [9] * 4
    assert graph.database.gremlin("g.E().count()").values() == [1]


QUERY = "SELECT ?age { ?x key:id 'Ann' ; key:age ?age }"


class Model(FakeListLLM):
    """A model with given answers, which keeps the prompts."""

    prompts: list[str] = []

    def _call(self, prompt, *arguments, **options):
        self.prompts.append(prompt)
        return super()._call(prompt, *arguments, **options)


@pytest.mark.parametrize("query", [QUERY, f"```sparql\n{QUERY}\n```"])
def test_a_sparql_chain(family, query):
    """GraphSparqlQAChain: a model finds the intent, writes the query, and answers."""
    model = Model(responses=["SELECT", query, "Ann is 34."], prompts=[])
    chain = GraphSparqlQAChain.from_llm(model, graph=family, allow_dangerous_requests=True)
    assert chain.invoke("How old is Ann?")["result"] == "Ann is 34."
    assert "label:person: key:age (int)" in model.prompts[1] and "{'age': 34}" in model.prompts[2]


def test_updates_of_a_sparql_chain(family):
    def chain(graph):
        model = Model(responses=["UPDATE", "INSERT { ?x key:age 35 } WHERE { ?x key:id 'Bob' }"])
        return GraphSparqlQAChain.from_llm(model, graph=graph, allow_dangerous_requests=True)

    with pytest.raises(vervet.UnsupportedError):
        chain(family).invoke("Bob turned 35")
    ages = "SELECT ?age { ?x key:id 'Bob' ; key:age ?age } ORDER BY ?age"
    assert family.query(ages) == [{"age": 27}]
    chain(GraphStore(family.database, allow_updates=True)).invoke("Bob turned 35")
    assert family.query(ages) == [{"age": 27}, {"age": 35}]


@pytest.mark.parametrize(
    "language, query, prompt",
    [
        ("sparql", QUERY, SPARQL_PROMPT),
        ("sparql", f"```sparql\n{QUERY}\n```", SPARQL_PROMPT),
        ("gremlin", "g.V('Ann').project('age').by('age')", GREMLIN_PROMPT),
    ],
)
def test_a_cypher_chain(family, language, query, prompt):
    """GraphCypherQAChain, which takes every graph store, with a prompt for another language."""
    graph = GraphStore(family.database, language=language)
    model = Model(responses=[query, "Ann is 34."], prompts=[])
    chain = GraphCypherQAChain.from_llm(model, graph=graph, cypher_prompt=prompt, allow_dangerous_requests=True)
    assert chain.invoke("How old is Ann?")["result"] == "Ann is 34."
    assert "person" in model.prompts[0] and "age" in model.prompts[0] and "{'age': 34}" in model.prompts[1]
