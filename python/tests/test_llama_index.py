"""The property graph store of LlamaIndex: its interface, hostile names, types, conflicts, an index with a fake model."""

import datetime
import decimal
import threading
import uuid

import pytest

import vervet

pytest.importorskip("llama_index.core", reason="llama-index-core is not installed")

from llama_index.core import MockEmbedding, PropertyGraphIndex  # noqa: E402
from llama_index.core.graph_stores.types import ChunkNode, EntityNode, Relation  # noqa: E402
from llama_index.core.indices.property_graph import (  # noqa: E402
    ImplicitPathExtractor,
    SimpleLLMPathExtractor,
    TextToCypherRetriever,
)
from llama_index.core.llms import CustomLLM, CompletionResponse, LLMMetadata  # noqa: E402
from llama_index.core.schema import NodeRelationship, QueryBundle, TextNode  # noqa: E402
from llama_index.core.vector_stores.types import VectorStoreQuery  # noqa: E402

from vervet.llama_index import PropertyGraphStore, VertexNode  # noqa: E402

HOSTILE = [
    "O'Brien", 'a "quoted" name', "two  spaces ", "line\nbreak\r\n\ttab", "Žofie 猫 🦊", "back\\slash", "%27", "a::b",
    "5", "-3", "05", "1.5", "true", "_:b", "_:b c", "http://example.org/é?x=1#y", "http://not an IRI", "urn:a", "urn:a b",
    "') ; DROP", "}} . ?s ?p ?o", "${x}", "{schema}", "urn:x-vervet:name:a", "urn:x-vervet:id:a", "urn:vervet:key:name", "\0", "<urn:a>", "?x", "g.V()",
]  # fmt: skip


@pytest.fixture
def store(empty):
    return PropertyGraphStore(empty)


def person(name, **properties):
    return EntityNode(name=name, label="person", properties=properties)


@pytest.fixture
def family(store):
    """Ann knows Bob since 2019, Bob knows Cem; Ann lives in Graz, as Cem does."""
    graz = EntityNode(name="Graz", label="city")
    store.upsert_nodes([person("Ann", age=34), person("Bob", age=27), person("Cem", age=61), graz])
    store.upsert_relations(
        [
            Relation(label="knows", source_id="Ann", target_id="Bob", properties={"since": 2019}),
            Relation(label="knows", source_id="Bob", target_id="Cem"),
            Relation(label="lives", source_id="Ann", target_id="Graz"),
            Relation(label="lives", source_id="Cem", target_id="Graz"),
        ]
    )
    return store


def shown(triplets):
    return sorted((source.id, relation.label, target.id) for source, relation, target in triplets)


def names(nodes):
    return sorted(node.id for node in nodes)


class TestReads:
    def test_get(self, family):
        assert names(family.get()) == ["Ann", "Bob", "Cem", "Graz"]
        (ann,) = family.get(ids=["Ann"])
        assert type(ann) is EntityNode
        assert (ann.name, ann.label, ann.properties, ann.embedding) == ("Ann", "person", {"age": 34}, None)
        assert names(family.get(properties={"age": 27})) == ["Bob"]
        assert names(family.get(properties={"name": "Bob"})) == ["Bob"]
        assert names(family.get(properties={"age": 27}, ids=["Ann", "Bob", "Bob", "nobody"])) == ["Bob"]
        assert names(family.get(properties={"age": 27, "name": "Ann"})) == []
        assert names(family.get(properties={"age": None})) == ["Graz"]
        assert family.get(ids=[]) == [] and family.get(ids=["", "http://no IRI"]) == []

    def test_get_triplets(self, family):
        assert family.get_triplets() == []
        assert shown(family.get_triplets(entity_names=["Bob"])) == [("Ann", "knows", "Bob"), ("Bob", "knows", "Cem")]
        assert shown(family.get_triplets(ids=["Bob", "Ann"], relation_names=["knows"])) == [
            ("Ann", "knows", "Bob"),
            ("Bob", "knows", "Cem"),
        ]
        assert shown(family.get_triplets(entity_names=["Ann"], ids=["Graz"])) == [("Ann", "lives", "Graz")]
        assert shown(family.get_triplets(relation_names=["lives"])) == [("Ann", "lives", "Graz"), ("Cem", "lives", "Graz")]
        assert shown(family.get_triplets(properties={"since": 2019})) == [("Ann", "knows", "Bob")]
        assert shown(family.get_triplets(properties={"age": 61}, relation_names=["lives"])) == [("Cem", "lives", "Graz")]
        assert family.get_triplets(entity_names=["nobody"]) == []
        ((_, relation, bob),) = family.get_triplets(entity_names=["Ann"], relation_names=["knows"])
        assert relation == Relation(label="knows", source_id="Ann", target_id="Bob", properties={"since": 2019})
        assert bob == person("Bob", age=27)

    def test_get_rel_map(self, family):
        (ann,) = family.get(ids=["Ann"])
        near = [("Ann", "knows", "Bob"), ("Ann", "lives", "Graz")]
        assert shown(family.get_rel_map([ann], depth=1)) == near
        every = near + [("Bob", "knows", "Cem"), ("Cem", "lives", "Graz")]
        assert shown(family.get_rel_map([ann])) == every
        assert shown(family.get_rel_map([ann], depth=9, ignore_rels=["lives"])) == [near[0], every[2]]
        assert shown(family.get_rel_map([ann], limit=2)) == near
        assert len(family.get_rel_map([ann], limit=3)) == 3
        assert family.get_rel_map([], depth=9) == [] and family.get_rel_map([ann], depth=0) == []

    def test_a_circle_and_a_loop(self, store):
        ends = [("a", "b"), ("b", "a"), ("a", "a"), ("b", "c")]
        store.upsert_relations([Relation(label="r", source_id=a, target_id=b) for a, b in ends])
        assert shown(store.get_rel_map(store.get(ids=["a"]), depth=5)) == sorted((a, "r", b) for a, b in ends)
        assert shown(store.get_triplets(ids=["a", "b"])) == sorted((a, "r", b) for a, b in ends)

    def test_other_vertices(self, people):
        """Vertices that another program has made are entities."""
        store = PropertyGraphStore(people)
        (ann,) = store.get(ids=["1"])
        assert isinstance(ann, VertexNode) and (ann.id, ann.name, ann.label) == ("1", "Ann", "person")
        assert ann.properties["born"] == datetime.date(1990, 2, 3)
        assert shown(store.get_rel_map([ann])) == [("1", "knows", "2"), ("2", "knows", "3")]
        assert shown(store.get_triplets(entity_names=["Cem"])) == [("2", "knows", "3")]
        before = store.get()
        store.upsert_nodes(before)
        assert store.get() == before
        people.update("INSERT DATA { <urn:x> a label:note ; key:text 'Hello' . <urn:y> key:name 'a', 'b' ; key:id 7 }")
        (note,) = store.get(ids=["urn:x"])
        assert note == ChunkNode(text="Hello", id_="urn:x", label="note")
        (other,) = store.get(ids=["urn:y"])
        assert (other.name, sorted(other.properties["name"]), other.properties["id"]) == ("urn:y", ["a", "b"], 7)
        id = uuid.UUID(int=5)
        people.gremlin("g.addV('x').property(T.id, uuid)", uuid=id)
        (found,) = store.get(ids=[id.urn])
        assert found.id == id.urn


class TestChanges:
    def test_nodes_are_merged(self, store):
        store.upsert_nodes([person("Ann", age=34, city="Graz")])
        store.upsert_nodes([EntityNode(name="Ann", label="author", properties={"age": 35, "city": None, "books": 2})])
        (ann,) = store.get()
        assert ann == EntityNode(name="Ann", label="author", properties={"age": 35, "books": 2})
        keys = store.client.query("SELECT DISTINCT ?p { ?s ?p ?o }").rows()
        assert len(keys) == 4, "the transaction left something of its own behind"
        store.upsert_nodes([person("Bob"), person("Bob", age=1), EntityNode(name="Bob", label="a::b")])
        (bob,) = store.get(ids=["Bob"])
        assert (bob.label, bob.properties) == ("a::b", {"age": 1})
        store.upsert_nodes([])

    def test_relations_are_merged(self, store):
        one = Relation(label="knows", source_id="Ann", target_id="Bob", properties={"since": 2019, "x": 1})
        store.upsert_relations([one])
        store.upsert_relations([one.model_copy(update={"properties": {"since": 2020, "x": None}})])
        ((ann, relation, bob),) = store.get_triplets(entity_names=["Ann"])
        assert relation.properties == {"since": 2020}
        assert ann == EntityNode(name="Ann") and bob == EntityNode(name="Bob")
        store.upsert_nodes([person("Ann")])
        assert store.get(ids=["Ann"]) == [person("Ann")]
        store.upsert_relations([])

    def test_keys_of_fields(self, store):
        """Properties with the keys of fields of a node, and of its elements."""
        keys = ["name", "text", "embedding", "property:name", "property:", "id", "label", "id_"]
        properties = {key: f"a property {key}" for key in keys}
        nodes = [
            EntityNode(name="e", properties=properties, embedding=[0.5, -1.0]),
            ChunkNode(text="t", id_="c", properties=properties, embedding=[1e-300]),
        ]
        store.upsert_nodes(nodes)
        assert sorted(store.get(), key=lambda node: node.id) == nodes[::-1]
        assert names(store.get(properties=properties)) == ["c", "e"]
        relation = Relation(label="r", source_id="e", target_id="c", properties=properties)
        store.upsert_relations([relation])
        assert [found[1] for found in store.get_triplets(ids=["e"])] == [relation]

    def test_an_entity_becomes_a_chunk(self, store):
        store.upsert_nodes([person("x", age=1)])
        chunk = ChunkNode(text="t", id_="x", properties={"age": 1})
        store.upsert_nodes([chunk])
        assert store.get() == [chunk]

    @pytest.mark.parametrize("name", HOSTILE)
    def test_hostile_names(self, store, name):
        """As id, name, label, key, value and text."""
        label = "b" if name == "a::b" else name
        node = EntityNode(name=name, label=label, properties={name: name})
        chunk = ChunkNode(text=name, id_=name + "2", label=label, properties={name: [name]})
        store.upsert_nodes([node, chunk])
        relation = Relation(label=label, source_id=node.id, target_id=chunk.id, properties={name: name})
        store.upsert_relations([relation])
        for _ in range(2):
            assert store.get(ids=[node.id]) == [node] and store.get(ids=[chunk.id]) == [chunk]
            assert store.get(properties={name: name}) == [node]
            assert store.get_triplets(entity_names=[name], relation_names=[label]) == [(node, relation, chunk)]
            assert store.get_rel_map([node]) == [(node, relation, chunk)]
            # Again, as labels are compared.
            store.upsert_nodes([node, chunk])
            store.upsert_relations([relation])
        assert (len(store.get()), store.client.gremlin("g.E().count()").values()) == (2, [1])
        assert store.get_schema_str(refresh=True)
        store.delete(entity_names=[name])
        assert names(store.get()) == [chunk.id]
        store.delete(ids=[chunk.id])
        assert store.get() == []

    def test_values(self, store):
        values = {
            "int": 34, "big": 2**70, "float": 1.5, "whole": 2.0, "bool": True, "text": "", "none": None,
            "decimal": decimal.Decimal("1.50"), "uuid": uuid.UUID(int=7), "date": datetime.date(2024, 2, 29),
            "time": datetime.datetime(2024, 2, 29, 1, 2, 3, tzinfo=datetime.timezone.utc),
            "list": [1, "a", [2.5, None]], "empty": [], "map": {"a": 1, "b": {"c": [True]}}, "set": {1, "a"},
        }  # fmt: skip
        store.upsert_nodes([EntityNode(name="x", properties=values)])
        store.upsert_relations([Relation(label="r", source_id="x", target_id="x", properties=values)])
        ((node, relation, _),) = store.get_triplets(ids=["x"])
        del values["none"]
        for found in (node.properties, relation.properties):
            assert found == values
            assert {key: type(value) for key, value in found.items()} == {key: type(value) for key, value in values.items()}
        assert names(store.get(properties={"list": values["list"], "int": 34})) == ["x"]

    @pytest.mark.parametrize("value", [b"bytes", object(), datetime.time(1), "\ud800", [1, {2: b""}], vervet.Vertex(1)])
    def test_values_that_cannot_be_stored(self, store, value):
        bad = person("Ann", age=34, portrait=value)
        with pytest.raises(vervet.InputError, match="the vertex 'Ann': the property 'portrait' cannot be stored: .") as info:
            store.upsert_nodes([person("Bob"), bad, person("Cem")])
        assert "convert it" in info.value.hint
        bad = Relation(label="knows", source_id="Ann", target_id="Bob", properties={"since": 2019, "how": value})
        with pytest.raises(vervet.InputError, match="the edge 'knows' from 'Ann' to 'Bob': the property 'how'"):
            store.upsert_relations([bad])
        assert store.client.info()["statements"] == 0

    def test_empty_names(self, store):
        with pytest.raises(vervet.InputError, match="empty id"):
            store.upsert_nodes([person("")])
        with pytest.raises(vervet.InputError, match="'Ann' has an empty label"):
            store.upsert_nodes([EntityNode(name="Ann", label="")])
        with pytest.raises(vervet.InputError, match="'' is not the key"):
            store.upsert_nodes([EntityNode(name="Ann", properties={"": 1})])
        with pytest.raises(vervet.InputError, match="empty label"):
            store.upsert_relations([Relation(label="", source_id="a", target_id="b")])
        with pytest.raises(vervet.InputError, match="empty id"):
            store.upsert_relations([Relation(label="r", source_id="a", target_id="")])
        assert store.get() == []

    def test_delete(self, family):
        family.delete()
        family.delete(ids=[], entity_names=[])
        assert len(family.get()) == 4
        family.delete(relation_names=["lives"])
        assert shown(family.get_rel_map(family.get())) == [("Ann", "knows", "Bob"), ("Bob", "knows", "Cem")]
        family.delete(entity_names=["Bob", "nobody"])
        assert names(family.get()) == ["Ann", "Cem", "Graz"] and family.get_rel_map(family.get()) == []
        family.delete(properties={"age": 34}, ids=["Graz"])
        assert names(family.get()) == ["Cem"]
        family.delete(properties={"age": 61, "name": "Ann"})
        assert names(family.get()) == ["Cem"]

    def test_more_than_a_batch(self, store):
        nodes = [person(f"n{number}", number=number) for number in range(2500)]
        store.upsert_nodes(nodes)
        relations = [Relation(label="next", source_id=f"n{n}", target_id=f"n{n + 1}") for n in range(2499)]
        store.upsert_relations(relations)
        store.upsert_nodes([node.model_copy(update={"label": "robot"}) for node in nodes])
        assert store.client.query("SELECT (COUNT(*) AS ?n) { ?x a label:robot ; key:number ?k }").rows() == [(2500,)]
        assert store.client.query("ASK { ?x a label:person }") is False
        assert len(store.get_rel_map(store.get(ids=["n0"]), depth=50)) == 30

    def test_threads(self, store):
        """Upserts of the same nodes conflict and are repeated: none is lost, and no node is there twice."""

        def work(own):
            for number in range(10):
                store.upsert_nodes([person("shared", **{f"k{own}": number})])
                store.upsert_relations([Relation(label="r", source_id="shared", target_id=f"t{number}")])

        threads = [threading.Thread(target=work, args=(own,)) for own in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        (shared,) = store.get(ids=["shared"])
        assert shared.properties == {f"k{own}": 9 for own in range(4)}
        assert len(store.get()) == 11 and len(store.get_triplets(relation_names=["r"])) == 10


class TestQueries:
    def test_sparql(self, family):
        query = "SELECT ?who ?age { ?who key:name ?name ; key:age ?age }"
        assert family.structured_query(query, {"name": "Ann"}) == [{"who": "urn:vervet:vertex:Ann", "age": 34}]
        for text in ("ASK {}", "```sparql\nASK {}\n```", "\n```\nASK {}```\n", "sparql\nASK {}", "\nASK\n{}\n"):
            assert family.structured_query(text) == [{"ask": True}]
        with pytest.raises(vervet.QueryError):
            family.structured_query("DELETE WHERE { ?s ?p ?o }")
        with pytest.raises(vervet.QueryError):
            family.structured_query("MATCH (n) RETURN n")
        assert len(family.get()) == 4

    def test_gremlin(self, family):
        store = PropertyGraphStore(family.client, language="gremlin")
        query = "g.V().has('name', who).outE('knows')"
        (edge,) = store.structured_query(query, {"who": "Ann"})
        assert (edge["label"], edge["source"], edge["target"], edge["since"]) == ("knows", "Ann", "Bob", 2019)
        assert store.structured_query("g.V('Bob')") == [{"id": "Bob", "label": "person", "name": "Bob", "age": 27}]
        assert store.structured_query("g.V().count()") == [{"value": 4}]
        assert store.structured_query("g.V('Ann').elementMap('age')") == [{"id": "Ann", "label": "person", "age": 34}]
        assert store.structured_query("g.V('Ann').out('knows').path().by('name')") == [{"value": ["Ann", "Bob"]}]
        store.structured_query("g.V().drop()")
        assert len(store.get()) == 4, "a query has changed the graph"
        with pytest.raises(ValueError, match="cypher"):
            PropertyGraphStore(family.client, language="cypher")

    def test_schema(self, family):
        family.upsert_relations([Relation(label="works at", source_id="Ann", target_id="a firm")])
        schema = family.get_schema()
        assert schema["node_props"]["label:person"] == {"key:age": "int", "key:name": "string"}
        assert ["label:person", "key:knows", "label:person"] in schema["relationships"]
        assert schema["rel_props"] == {"key:knows": {"key:since": "int"}}
        text = family.get_schema_str()
        assert "label:person <urn:vervet:key:works%20at> label:entity" in text
        other = PropertyGraphStore(family.client, language="gremlin").get_schema_str()
        assert "(person)-[works at]->(entity)" in other and "person: age (int), name (string)" in other
        family.upsert_nodes([EntityNode(name="Rex", label="dog")])
        assert family.get_schema_str() == text != family.get_schema_str(refresh=True)
        family.client.update("INSERT DATA { <urn:a> <urn:b> 1 }")
        assert family.get_schema(refresh=True)["others"] == ["<urn:b>"]

    def test_names_of_the_schema_are_those_of_queries(self, family):
        store = PropertyGraphStore(family.client)
        schema = store.get_schema()
        for label in schema["node_props"]:
            assert store.structured_query(f"ASK {{ ?x a {label} }}") == [{"ask": True}]
        for source, edge, target in schema["relationships"]:
            assert store.structured_query(f"ASK {{ ?a a {source} ; {edge} ?b . ?b a {target} }}") == [{"ask": True}]
        for edge, keys in schema["rel_props"].items():
            for key in keys:
                assert store.structured_query(f"ASK {{ ?a {edge} ?b ~ ?edge . ?edge {key} ?v }}") == [{"ask": True}]

    def test_vectors_are_declined(self, store):
        assert not store.supports_vector_queries
        with pytest.raises(NotImplementedError, match="vector_store"):
            store.vector_query(VectorStoreQuery(query_embedding=[1.0]))


def test_persist(family, tmp_path):
    path = str(tmp_path / "graph")
    family.persist(path)
    with pytest.raises(vervet.InputError, match="exists"):
        family.persist(path)
    with pytest.raises(vervet.InputError):
        PropertyGraphStore.from_persist_path(str(tmp_path / "nothing"))
    copy = PropertyGraphStore.from_persist_path(path)
    assert shown(copy.get_rel_map(copy.get())) == shown(family.get_rel_map(family.get()))
    copy.persist(str(tmp_path / "again"))
    assert not (tmp_path / "again").exists(), "a database in a directory needs no copy"
    copy.client.close()
    store = PropertyGraphStore(tmp_path / "own")
    store.upsert_nodes([person("Ann")])
    store.client.close()
    assert names(PropertyGraphStore(tmp_path / "own").get()) == ["Ann"]


def test_a_database_that_is_read_only(tmp_path):
    store = PropertyGraphStore(tmp_path / "db")
    store.upsert_relations([Relation(label="r", source_id="a", target_id="b")])
    store.client.close()
    db = vervet.open(tmp_path / "db", read_only=True)
    store = PropertyGraphStore(db)
    assert shown(store.get_triplets(ids=["a"])) == shown(store.get_rel_map(store.get())) == [("a", "r", "b")]
    assert "key:r" in store.get_schema_str()
    gremlin = PropertyGraphStore(db, language="gremlin")
    assert gremlin.structured_query("g.V().count()") == [{"value": 2}]
    with pytest.raises(vervet.UnavailableError, match="read only"):
        gremlin.structured_query("g.V().drop()")
    with pytest.raises(vervet.UnavailableError, match="read only"):
        store.delete(ids=["a"])


class FakeModel(CustomLLM):
    """A model with one answer, which keeps the last prompt."""

    answer: str
    prompts: list[str] = []

    @property
    def metadata(self):
        return LLMMetadata()

    def complete(self, prompt, formatted=False, **options):
        self.prompts.append(prompt)
        return CompletionResponse(text=self.answer)

    def stream_complete(self, prompt, formatted=False, **options):
        raise NotImplementedError


@pytest.mark.parametrize(
    "language, query",
    [("sparql", "SELECT ?age { ?x key:name 'Ann' ; key:age ?age }"), ("gremlin", "g.V().has('name', 'Ann').valueMap('age')")],
)
def test_a_retriever_that_writes_queries(family, language, query):
    store = PropertyGraphStore(family.client, language=language)
    model = FakeModel(answer=query)
    (found,) = TextToCypherRetriever(store, llm=model).retrieve_from_graph(QueryBundle("How old is Ann?"))
    assert "34" in found.node.get_content()
    assert "age (int)" in model.prompts[-1] and "How old is Ann?" in model.prompts[-1]


def test_an_index(store):
    """PropertyGraphIndex adds, finds and deletes chunks and entities, with vectors beside the store."""
    metadata = [{"name": "x", "page": number} for number in range(3)]
    nodes = [TextNode(text=f'Text {number}: "a"\n', id_=f"chunk {number}", metadata=metadata[number]) for number in range(3)]
    for one, other in zip(nodes, nodes[1:]):
        one.relationships[NodeRelationship.NEXT] = other.as_related_node_info()
    model = FakeModel(answer="(Ann, knows, Bob)")
    index = PropertyGraphIndex(
        nodes,
        property_graph_store=store,
        kg_extractors=[ImplicitPathExtractor(), SimpleLLMPathExtractor(llm=model, num_workers=1)],
        embed_model=MockEmbedding(embed_dim=3),
        llm=model,
    )
    assert names(store.get()) == ["Ann", "Bob", "chunk 0", "chunk 1", "chunk 2"]
    assert ("Ann", "Knows", "Bob") in shown(store.get_triplets(entity_names=["Ann"]))
    assert ("chunk 0", "NEXT", "chunk 1") in shown(store.get_triplets(ids=["chunk 1"]))
    (found,) = store.get_llama_nodes(["chunk 1"])
    assert (found.id_, found.text, found.metadata) == ("chunk 1", nodes[1].text, metadata[1])
    retrieved = index.as_retriever(include_text=False).retrieve("Whom does Ann know?")
    assert any("Ann -> Knows -> Bob" in node.text for node in retrieved)
    store.delete_llama_nodes(["chunk 2"])
    assert "chunk 2" not in names(store.get()) and "chunk 0" in names(store.get())
