"""A graph store of LangChain on a Vervet database.

>>> import vervet, vervet.langchain
>>> from langchain_core.documents import Document
>>> from langchain_community.graphs.graph_document import GraphDocument, Node, Relationship
>>> db = vervet.open()
>>> graph = vervet.langchain.GraphStore(db)
>>> ann, bob = Node(id="Ann", type="person", properties={"age": 34}), Node(id="Bob", type="person")
>>> knows = Relationship(source=ann, target=bob, type="knows", properties={"since": 2019})
>>> source = Document(page_content="Ann, who is 34, has known Bob since 2019.")
>>> graph.add_graph_documents([GraphDocument(nodes=[ann, bob], relationships=[knows], source=source)])
>>> graph.query("SELECT ?age { ?who key:id ?id ; key:age ?age }", {"id": "Ann"})
[{'age': 34}]
>>> db.gremlin("g.V('Ann').out('knows').id()").values()
['Bob']
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from typing import Any

from langchain_community.graphs.graph_document import GraphDocument, Node
from langchain_community.graphs.graph_store import GraphStore as BaseStore
from langchain_community.graphs.rdf_graph import RdfGraph
from langchain_core.documents import Document
from langchain_core.prompts import PromptTemplate

from . import _graphs
from .database import Database, Transaction, open as _open
from .errors import UnsupportedError

__all__ = ["GraphStore", "SPARQL_PROMPT", "GREMLIN_PROMPT"]

SPARQL_PROMPT = PromptTemplate.from_template(
    "Write a SPARQL query that answers a question on a graph.\n"
    "Use only the classes and predicates of the schema; label: and key: are known prefixes.\n"
    "Return the query only.\n"
    "Schema:\n{schema}\n\nQuestion: {question}\nQuery:"
)
"""The ``cypher_prompt`` of a ``GraphCypherQAChain`` that writes SPARQL."""
GREMLIN_PROMPT = PromptTemplate.from_template(
    "Write a Gremlin traversal, in the syntax of gremlin-lang, that answers a question on a graph. It begins "
    "with g.\n"
    "Use only the labels and keys of the schema. Return the traversal only.\n"
    "Schema:\n{schema}\n\nQuestion: {question}\nTraversal:"
)
"""The ``cypher_prompt`` of a ``GraphCypherQAChain`` that writes Gremlin."""


class GraphStore(BaseStore, RdfGraph):  # type: ignore[misc, unused-ignore]
    """A graph store of LangChain on a Vervet database.

    A node is a vertex with the id and the type of the node, and its id is also the property ``id``, unless
    the node has another property of that name. Nodes with one id and several types are one vertex with
    several labels. A relationship is an edge, which its type and its ends identify. Values keep their
    types; a tuple becomes a list, a date-time without a time zone one in UTC.

    It is also an ``RdfGraph``, the only class that ``GraphSparqlQAChain`` accepts.

    :param database: an open database, a directory, or ``None``: in memory.
    :param language: the language of `query`, ``"sparql"`` or ``"gremlin"``.
    :param allow_updates: whether `update` changes the graph. A chain that has classified a question as an
        update passes on what a language model has written.
    """

    def __init__(
        self,
        database: Database | str | os.PathLike[str] | None = None,
        *,
        language: _graphs.Language = "sparql",
        allow_updates: bool = False,
    ) -> None:
        if language not in ("sparql", "gremlin"):
            raise ValueError(f'language is "sparql" or "gremlin", not {language!r}')
        self._database = database if isinstance(database, Database) else _open(database)
        self._language = language
        self._allow_updates = allow_updates
        self._schema: _graphs.Schema | None = None

    @property
    def database(self) -> Database:
        """The database."""
        return self._database

    # Changes.

    def add_graph_documents(
        self, graph_documents: Sequence[GraphDocument], include_source: bool = False
    ) -> None:
        """Adds the nodes and relationships of documents in one transaction, run again if it conflicts with
        others. Properties of vertices and edges that exist are set, and others stay; a property ``None`` is
        removed.

        :param include_source: add each source document too, as a vertex with the label ``Document``, its text
            and its metadata, and an edge ``MENTIONS`` to each node. Its id is that of the document, else
            ``id`` in its metadata, else the MD5 sum of its text.
        :raises InputError: an empty id or type, or a property that cannot be stored, with its key.
        """
        nodes, edges = [], []
        for document in graph_documents:
            ends = [end for one in document.relationships for end in (one.source, one.target)]
            own = [_row(node) for node in (*ends, *document.nodes)]
            nodes += own
            for one in document.relationships:
                source_id, target_id = str(one.source.id), str(one.target.id)
                edges.append(_graphs.EdgeRow(source_id, one.type, target_id, one.properties))
            if include_source:
                source = _source_row(document.source)
                nodes.append(source)
                mentioned = dict.fromkeys(row.name for row in own)
                edges += (_graphs.EdgeRow(source.name, "MENTIONS", name, {}) for name in mentioned)

        def work(tx: Transaction) -> None:
            _graphs.merge_vertices(tx, nodes, "add")
            _graphs.merge_edges(tx, edges)

        if nodes:
            self._database.transact(work)

    def update(self, query: str) -> None:
        """Runs a SPARQL update in one transaction, if this store allows updates.

        :raises UnsupportedError: it does not.
        :raises QueryError: the text is not an update, with the place of the mistake.
        """
        if not self._allow_updates:
            raise UnsupportedError(
                "this graph store is read only for queries, and the update was not run",
                "allow updates by language models with GraphStore(…, allow_updates=True)",
            )
        self._database.update(_graphs.without_fence(query))

    # Queries.

    def query(  # type: ignore[override, unused-ignore]
        self, query: str, params: Mapping[str, Any] | None = None
    ) -> list[dict[str, Any]]:
        """The rows of a query in the language of the store, as dictionaries of numbers, texts and so on: IRIs
        are texts, vertices and edges dictionaries; a result of Gremlin that is no map has the key ``value``,
        the answer of ``ASK`` the key ``ask``.

        A query changes nothing: SPARQL updates are refused, and what a traversal changes is rolled back.

        :param params: values of variables, which do not become a part of the text.
        :raises QueryError: the text is not a query, with the place of the mistake.
        """
        return _graphs.run_query(self._database, self._language, query, params or {})

    @property
    def get_schema(self) -> str:
        """The schema as text for a prompt: labels, keys and types as the query language writes them."""
        return str(self._known_schema())

    @property
    def get_structured_schema(self) -> dict[str, Any]:
        """The schema as data, with the names of `get_schema`: ``node_props``, ``rel_props``,
        ``relationships``."""
        schema = self._known_schema()

        def listed(of: Mapping[str, Mapping[str, str]]) -> dict[str, list[dict[str, str]]]:
            return {
                name: [{"property": key, "type": type} for key, type in types.items()]
                for name, types in of.items()
            }

        return {
            "node_props": listed(schema.vertices),
            "rel_props": listed(schema.edge_properties),
            "relationships": [{"start": a, "type": edge, "end": b} for a, edge, b in schema.edges],
        }

    def refresh_schema(self) -> None:
        """Reads the schema, which the first use reads as well. The cost is that of an aggregate over all
        statements."""
        self._schema = _graphs.read_schema(self._database, self._language)

    def load_schema(self) -> None:
        """As `refresh_schema`."""
        self.refresh_schema()

    def _known_schema(self) -> _graphs.Schema:
        if self._schema is None:
            self._schema = _graphs.read_schema(self._database, self._language)
        return self._schema


def _row(node: Node) -> _graphs.VertexRow:
    return _graphs.VertexRow(str(node.id), node.type, {"id": node.id, **node.properties})


def _source_row(source: Document) -> _graphs.VertexRow:
    id = getattr(source, "id", None) or source.metadata.get("id")
    if id is None:
        id = hashlib.md5(source.page_content.encode(), usedforsecurity=False).hexdigest()
    return _graphs.VertexRow(str(id), "Document", {"id": id, **source.metadata, "text": source.page_content})
