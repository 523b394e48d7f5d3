"""A property graph store of LlamaIndex on a Vervet database.

>>> import vervet, vervet.llama_index
>>> from llama_index.core.graph_stores.types import EntityNode, Relation
>>> db = vervet.open()
>>> store = vervet.llama_index.PropertyGraphStore(db)
>>> ann = EntityNode(name="Ann", label="person", properties={"age": 34})
>>> store.upsert_nodes([ann, EntityNode(name="Bob", label="person")])
>>> knows = Relation(label="knows", source_id="Ann", target_id="Bob", properties={"since": 2019})
>>> store.upsert_relations([knows])
>>> [(str(relation), other.id) for _, relation, other in store.get_triplets(entity_names=["Ann"])]
[("knows ({'since': 2019})", 'Bob')]
>>> store.structured_query("SELECT ?age { ?who key:name ?name ; key:age ?age }", {"name": "Ann"})
[{'age': 34}]
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from llama_index.core.graph_stores.types import (
    ChunkNode,
    EntityNode,
    LabelledNode,
    PropertyGraphStore as BaseStore,
    Relation,
    Triplet,
)
from llama_index.core.prompts import PromptTemplate
from llama_index.core.vector_stores.types import VectorStoreQuery

from . import _graphs
from .database import Database, Transaction, open as _open
from .elements import Edge, Vertex
from .errors import InputError

__all__ = ["PropertyGraphStore", "VertexNode"]

_ENTITY_KEYS = ("name", "embedding")
_CHUNK_KEYS = ("name", "text", "embedding")
_ESCAPE = "property:"
"""The prefix of a property's key that a field of the node has."""

_SPARQL_PROMPT = PromptTemplate(
    "Write a SPARQL query that answers a question on a graph.\n"
    "Use only the classes and predicates of the schema. Return the query only, without backticks.\n"
    "Schema:\n{schema}\n\nQuestion: {question}\nQuery:"
)
_GREMLIN_PROMPT = PromptTemplate(
    "Write a Gremlin traversal, in the syntax of gremlin-lang, that answers a question on a graph. It begins "
    "with g.\n"
    "Use only the labels and keys of the schema. Return the traversal only, without backticks.\n"
    "Schema:\n{schema}\n\nQuestion: {question}\nTraversal:"
)


class VertexNode(EntityNode):  # type: ignore[misc, unused-ignore]
    """An entity whose id is not its name: a vertex that something else than this store has made."""

    id_: str
    """The id of the vertex."""

    @property
    def id(self) -> str:
        """The id of the vertex."""
        return self.id_


class PropertyGraphStore(BaseStore):  # type: ignore[misc, unused-ignore]
    """A property graph store of LlamaIndex on a Vervet database.

    A node is a vertex with the id and the label of the node. The name of an entity is its property ``name``,
    the text of a chunk its property ``text``. A property of a node that would have such a key, or the key
    ``embedding``, has the key ``property:name`` and so on in the database. A relation is an edge, which its
    label and its ends identify. Values keep their types; a tuple becomes a list, a date-time without a time
    zone one in UTC.

    Each change is one transaction, run again if it conflicts with others. Vertices that other programs have
    made are entities; those with a text and without a name are chunks.

    There are no vectors: LlamaIndex keeps embeddings in a vector store of its own beside this store.

    :param database: an open database, a directory, or ``None``: in memory.
    :param language: the language of `structured_query`, ``"sparql"`` or ``"gremlin"``.
    """

    supports_structured_queries = True
    supports_vector_queries = False

    def __init__(
        self,
        database: Database | str | os.PathLike[str] | None = None,
        *,
        language: _graphs.Language = "sparql",
    ) -> None:
        if language not in ("sparql", "gremlin"):
            raise ValueError(f'language is "sparql" or "gremlin", not {language!r}')
        self._database = database if isinstance(database, Database) else _open(database)
        self._language = language
        self._schema: _graphs.Schema | None = None
        self.text_to_cypher_template = _SPARQL_PROMPT if language == "sparql" else _GREMLIN_PROMPT

    @property
    def client(self) -> Database:
        """The database."""
        return self._database

    # Reads.

    def get(
        self, properties: dict[str, Any] | None = None, ids: list[str] | None = None
    ) -> list[LabelledNode]:
        """The nodes with all of these values of properties, and one of these ids. Without arguments all
        nodes; an empty list of ids is no node.

        The cost is that of the nodes found if there are ids, else of a search for the values.
        """
        if ids is not None and not ids:
            return []
        script, bindings = "g.V()", {}
        if ids is not None:
            script, bindings["ids"] = "g.V(ids).dedup()", _graphs.vertex_ids(ids)
            if not bindings["ids"]:
                return []
        script += _conditions(properties or {}, bindings)
        return [_node(vertex) for vertex in self._database.gremlin(script, **bindings)]

    def get_triplets(
        self,
        entity_names: list[str] | None = None,
        relation_names: list[str] | None = None,
        properties: dict[str, Any] | None = None,
        ids: list[str] | None = None,
    ) -> list[Triplet]:
        """Relations with their ends. An end has one of the names, an end has one of the ids, the relation
        one of the labels, and an end or the relation all of the values. Without arguments none.

        The cost is that of the edges at the vertices found; without names, ids and values, of the edges with
        the labels.
        """
        if not (entity_names or relation_names or properties or ids):
            return []
        with _graphs.snapshot(self._database) as reader:
            groups = []
            if entity_names:
                groups.append(_named(reader, entity_names))
            if ids:
                groups.append(_existing(reader, ids))
            bindings: dict[str, Any] = {}
            if groups:
                if not all(groups):
                    return []
                script, bindings["ids"] = "g.V(ids).bothE().dedup()", groups[0]
            else:
                script = "g.E()"
            if relation_names:
                script += ".hasLabel(within(labels))"
                bindings["labels"] = [_graphs.encoded(name) for name in relation_names if name]
            for number, group in enumerate(groups[1:]):
                script += f".where(bothV().hasId(within(ids{number})))"
                bindings[f"ids{number}"] = group
            if properties:
                edge = _conditions(properties, bindings, are_escaped=False)
                ends = _conditions(properties, bindings)
                script += f".or(__{edge}, __.outV(){ends}, __.inV(){ends})"
            rows = reader.gremlin(script + _ENDS, **bindings).rows()
        return [_triplet(*row) for row in rows]

    def get_rel_map(
        self,
        graph_nodes: list[LabelledNode],
        depth: int = 2,
        limit: int = 30,
        ignore_rels: list[str] | None = None,
    ) -> list[Triplet]:
        """At most ``limit`` relations that paths of at most ``depth`` relations from these nodes have, in any
        direction; the nearest ones first. Paths have no relation with a label of ``ignore_rels``.

        The cost is that of the edges at the vertices reached, until there are enough.
        """
        found: dict[Any, Triplet] = {}
        frontier = _graphs.vertex_ids(node.id for node in graph_nodes)
        reached = set(frontier)
        ignored = [_graphs.encoded(name) for name in ignore_rels or () if name]
        with _graphs.snapshot(self._database) as reader:
            for _ in range(depth):
                if not frontier or len(found) >= limit:
                    break
                script = "g.V(ids).bothE()" + ".not(hasLabel(within(ignored)))" * bool(ignored)
                script += f".dedup().limit(most){_ENDS}"
                # An edge between two rounds is found twice.
                bindings: dict[str, Any] = {"ids": frontier, "most": limit + len(found)}
                if ignored:
                    bindings["ignored"] = ignored
                frontier = []
                for source, edge, target in reader.gremlin(script, **bindings).rows():
                    if edge.id not in found and len(found) < limit:
                        found[edge.id] = _triplet(source, edge, target)
                        for end in (source, target):
                            id = _graphs.encoded_id(_graphs.name_of(end.id))
                            if id not in reached:
                                reached.add(id)
                                frontier.append(id)
        return list(found.values())

    # Changes.

    def upsert_nodes(self, nodes: Sequence[LabelledNode]) -> None:
        """Adds nodes in one transaction, or changes those that exist: the label is replaced, the properties
        of the node are set, and others stay. A property ``None`` is removed.

        :raises InputError: an empty id or label, or a property that cannot be stored, with its key.
        """
        rows = [_graphs.VertexRow(node.id, node.label, _stored(node)) for node in nodes]
        if rows:
            self._database.transact(lambda tx: _graphs.merge_vertices(tx, rows, "replace"))

    def upsert_relations(self, relations: Sequence[Relation]) -> None:
        """Adds relations in one transaction, or sets the properties of those that exist. Ends that do not
        exist become entities.

        :raises InputError: an empty label, or a property that cannot be stored, with its key.
        """
        rows = [_graphs.EdgeRow(one.source_id, one.label, one.target_id, one.properties) for one in relations]
        names = dict.fromkeys(name for row in rows for name in (row.source, row.target))
        ends = [_graphs.VertexRow(name, "entity", {}, {"name": name}) for name in names]

        def work(tx: Transaction) -> None:
            _graphs.merge_vertices(tx, ends, "keep")
            _graphs.merge_edges(tx, rows)

        if rows:
            self._database.transact(work)

    def delete(
        self,
        entity_names: list[str] | None = None,
        relation_names: list[str] | None = None,
        properties: dict[str, Any] | None = None,
        ids: list[str] | None = None,
    ) -> None:
        """Deletes, in one transaction, the nodes with one of these names, those with one of these ids, those
        with all of these values, each with its relations; and relations with one of these labels."""

        def work(tx: Transaction) -> None:
            doomed = _named(tx, entity_names or ()) + _graphs.vertex_ids(ids or ())
            if doomed:
                tx.gremlin("g.V(ids).drop()", ids=doomed)
            labels = [_graphs.encoded(name) for name in relation_names or () if name]
            if labels:
                tx.gremlin("g.E().hasLabel(within(labels)).drop()", labels=labels)
            if properties:
                bindings: dict[str, Any] = {}
                script = f"g.V(){_conditions(properties, bindings)}.drop()"
                tx.gremlin(script, **bindings)

        self._database.transact(work)

    # Queries.

    def structured_query(self, query: str, param_map: dict[str, Any] | None = None) -> list[dict[str, Any]]:
        """The rows of a query in the language of the store, as dictionaries of numbers, texts and so on: IRIs
        are texts, vertices and edges dictionaries; a result of Gremlin that is no map has the key ``value``,
        the answer of ``ASK`` the key ``ask``.

        A query changes nothing: SPARQL updates are refused, and what a traversal changes is rolled back.

        :param param_map: values of variables, which do not become a part of the text.
        :raises QueryError: the text is not a query, with the place of the mistake.
        """
        return _graphs.run_query(self._database, self._language, query, param_map or {})

    def vector_query(self, query: VectorStoreQuery, **kwargs: Any) -> tuple[list[LabelledNode], list[float]]:
        """Not supported.

        :raises NotImplementedError: always.
        """
        raise NotImplementedError(
            "Vervet has no index of vectors: give PropertyGraphIndex a vector_store, which it uses beside "
            "this store"
        )

    def get_schema(self, refresh: bool = False) -> dict[str, Any]:
        """The labels, keys and types of the graph, as its query language writes them; kept until ``refresh``.

        The cost of reading it is that of an aggregate over all statements.
        """
        schema = self._read_schema(refresh)
        return {
            "node_props": schema.vertices,
            "rel_props": schema.edge_properties,
            "relationships": [list(edge) for edge in schema.edges],
            "others": schema.others,
        }

    def get_schema_str(self, refresh: bool = False) -> str:
        """The schema as text for a prompt; see `get_schema`."""
        return str(self._read_schema(refresh))

    async def aget_schema_str(self, refresh: bool = False) -> str:
        """As `get_schema_str`."""
        return self.get_schema_str(refresh)

    def _read_schema(self, refresh: bool) -> _graphs.Schema:
        if self._schema is None or refresh:
            self._schema = _graphs.read_schema(self._database, self._language)
        return self._schema

    # Files.

    def persist(self, persist_path: str, fs: Any = None) -> None:
        """Copies a database in memory into the new directory ``persist_path``, which `vervet.open` opens.
        A database in a directory keeps every change when it is made: nothing is copied.

        :raises InputError: the directory exists.
        :raises NotImplementedError: another file system than that of the operating system.
        """
        if self._database.info()["durability"] is not None:
            return
        if fs is not None and "file" not in ([fs.protocol] if isinstance(fs.protocol, str) else fs.protocol):
            raise NotImplementedError("a database is copied into a local directory: give no fs")
        if os.path.exists(persist_path):
            raise InputError(
                f"{persist_path} exists",
                "give the path of a new directory, or keep the graph in one: PropertyGraphStore(path)",
            )
        self._database.backup(persist_path)

    @classmethod
    def from_persist_path(
        cls, persist_path: str, fs: Any = None, *, language: _graphs.Language = "sparql"
    ) -> PropertyGraphStore:
        """The store on the directory that `persist` has made.

        :raises InputError: there is no database.
        """
        return cls(_open(persist_path, create=False), language=language)


_ENDS = ".project('source', 'edge', 'target').by(outV()).by().by(inV())"


def _named(reader: Database | Transaction, names: Sequence[str]) -> list[Any]:
    """The ids of vertices with these names; without a name, with these ids."""
    if not names:
        return []
    script = "g.V().has('name', within(names)).id()"
    found = reader.gremlin(script, names=list(names)).values()
    ids = _graphs.vertex_ids(names)
    if ids:
        found += reader.gremlin("g.V(ids).hasNot('name').id()", ids=ids).values()
    return list(dict.fromkeys(found))


def _existing(reader: Database | Transaction, names: Sequence[str]) -> list[Any]:
    ids = _graphs.vertex_ids(names)
    return list(dict.fromkeys(reader.gremlin("g.V(ids).id()", ids=ids).values())) if ids else []


def _conditions(properties: dict[str, Any], bindings: dict[str, Any], are_escaped: bool = True) -> str:
    """Steps that pass elements with these values of properties."""
    steps = ""
    for key, value in properties.items():
        number = len(bindings)
        bindings[f"key{number}"], bindings[f"value{number}"] = _graphs.encoded(key), value
        if value is None:
            del bindings[f"value{number}"]
            steps += f".hasNot(key{number})"
        elif are_escaped and (key in _CHUNK_KEYS or key.startswith(_ESCAPE)):
            bindings[f"escaped{number}"] = _ESCAPE + key
            keys = (f"key{number}", f"escaped{number}")
            steps += ".or(" + ", ".join(f"__.has({name}, eq(value{number}))" for name in keys) + ")"
        else:
            steps += f".has(key{number}, eq(value{number}))"
    return steps


def _stored(node: LabelledNode) -> dict[str, Any]:
    """The properties of the vertex of a node."""
    is_chunk = isinstance(node, ChunkNode)
    reserved = _CHUNK_KEYS if is_chunk else _ENTITY_KEYS
    stored = {
        _ESCAPE + key if isinstance(key, str) and (key in reserved or key.startswith(_ESCAPE)) else key: value
        for key, value in node.properties.items()
    }
    if isinstance(node, ChunkNode):
        # A vertex with a name is an entity.
        stored |= {"name": None, "text": node.text}
    elif not isinstance(node, VertexNode) or node.name != node.id:
        stored["name"] = getattr(node, "name", node.id)
    if node.embedding is not None:
        stored["embedding"] = node.embedding
    return stored


def _node(vertex: Vertex) -> LabelledNode:
    """The node of a vertex."""
    properties = {
        _graphs.decoded(key): _graphs.one_or_list(values) for key, values in vertex.properties.items()
    }
    id, label = _graphs.name_of(vertex.id), _graphs.decoded(vertex.label)
    name, text, embedding = (properties.get(key) for key in _CHUNK_KEYS)
    common: dict[str, Any] = {"label": label}
    if isinstance(embedding, list) and all(isinstance(one, float) for one in embedding):
        common["embedding"] = properties.pop("embedding")
    is_chunk = isinstance(text, str) and "name" not in properties
    if is_chunk:
        del properties["text"]
    elif isinstance(name, str):
        del properties["name"]
    common["properties"] = {_unescaped(key): value for key, value in properties.items()}
    if is_chunk:
        return ChunkNode(text=str(text), id_=id, **common)
    entity = EntityNode(name=name if isinstance(name, str) else id, **common)
    return entity if entity.id == id else VertexNode(id_=id, name=entity.name, **common)


def _unescaped(key: str) -> str:
    return key[len(_ESCAPE) :] if key.startswith(_ESCAPE) else key


def _triplet(source: Vertex, edge: Edge, target: Vertex) -> Triplet:
    relation = Relation(
        label=_graphs.decoded(edge.label),
        source_id=_graphs.name_of(source.id),
        target_id=_graphs.name_of(target.id),
        properties={_graphs.decoded(key): value for key, value in edge.properties.items()},
    )
    return _node(source), relation, _node(target)
