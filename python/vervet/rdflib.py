"""A store of rdflib: graphs of rdflib on a Vervet database. Queries and updates go down whole.

>>> import rdflib, vervet, vervet.rdflib
>>> graph = rdflib.Graph(store=vervet.rdflib.Store(vervet.open()))
>>> _ = graph.add((rdflib.URIRef("urn:ann"), rdflib.RDFS.label, rdflib.Literal("Ann")))
>>> [str(name) for name, in graph.query("SELECT ?name { ?who rdfs:label ?name }")]
['Ann']
"""

from __future__ import annotations

import functools
import re
from collections.abc import Generator, Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import quote, unquote

import rdflib
from rdflib.graph import DATASET_DEFAULT_GRAPH_ID, Graph
from rdflib.query import Result as RdflibResult
from rdflib.store import NO_STORE, VALID_STORE, Store as RdflibStore

from . import _vervet
from .database import Database, open as _open
from .errors import InputError

__all__ = ["Store"]

_PENDING_MAX = 5000
"""Triples that wait to be added together."""
_BATCH_ROWS = 4096
"""Rows converted at a time."""
_RELATIVE = "urn:x-vervet:relative:"
"""The namespace of what rdflib holds for an IRI and is none, such as a relative one."""
_UNION = "__UNION__"
"""rdflib's name of the union of all graphs."""

_ANY = "?s ?p ?o"


class Store(RdflibStore):
    """A store of rdflib on a Vervet database.

    Triples that are added wait, at most 5,000 at a time, and are committed together before the next read or
    change, `commit` and `close`. A graph whose identifier is a blank node, as rdflib gives it by default, is
    the default graph of the database; one whose identifier is an IRI is a named graph.

    :param database: an open database, a directory, or ``None``: in memory, or by `open`.
    """

    context_aware = True
    graph_aware = True
    formula_aware = False
    transaction_aware = False

    def __init__(
        self,
        database: Database | str | None = None,
        identifier: Any = None,
        *,
        configuration: str | None = None,
    ) -> None:
        self._namespaces: dict[str, Any] = {}
        self._prefixes: dict[Any, str] = {}
        self._pending: list[tuple[Any, Any, Any, Any]] = []
        self._declared: dict[Any, None] = {}
        self._owned = not isinstance(database, Database)
        self._database: Database | None = None
        if isinstance(database, Database):
            self._database = database
        elif database is not None:
            self._database = _open(database)
        super().__init__(configuration, identifier)
        if self._database is None:
            self._database = _open()

    @property
    def database(self) -> Database:
        """The database, with all triples that were added."""
        self._flush()
        return self._db

    @property
    def _db(self) -> Database:
        if self._database is None:
            raise InputError("the store is closed", "open it again")
        return self._database

    # Opening and closing.

    def open(self, configuration: Any, create: bool = True) -> int:
        """Opens the database in a directory."""
        self.close(True)
        try:
            self._database = _open(str(configuration), create=create)
        except InputError:
            return NO_STORE
        self._owned = True
        return VALID_STORE

    def close(self, commit_pending_transaction: bool = False) -> None:
        """Adds what is pending. Closes the database if this store has opened it."""
        if self._database is not None:
            self._flush()
            if self._owned:
                self._database.close()
                self._database = None

    def commit(self) -> None:
        """Adds what is pending."""
        self._flush()

    def rollback(self) -> None:
        """Discards what is pending."""
        self._pending.clear()

    # Changes.

    def add(self, triple: tuple[Any, Any, Any], context: Any = None, quoted: bool = False) -> None:
        """Adds a triple, at the latest before the next read."""
        self._pending.append((*triple, _graph_name(context)))
        super().add(triple, context, quoted)
        if len(self._pending) >= _PENDING_MAX:
            self._flush()

    def addN(self, quads: Iterable[tuple[Any, Any, Any, Any]]) -> None:
        """Adds triples to graphs."""
        for subject, predicate, target, context in quads:
            self.add((subject, predicate, target), context)

    def _flush(self) -> None:
        if not self._pending:
            return
        pending, self._pending = self._pending, []
        parameters: dict[str, Any] = {}
        blanks: dict[Any, str] = {}

        def written(term: Any) -> str:
            if isinstance(term, rdflib.BNode):
                # A label in the text of an update would make another node.
                name = blanks.get(term)
                if name is None:
                    name = blanks[term] = f"b{len(blanks)}"
                    parameters[name] = _to_vervet(term)
                return "?" + name
            text: str = _to_vervet(term).n3()
            return text

        by_graph: dict[Any, list[str]] = {}
        for subject, predicate, target, graph in pending:
            line = f"{written(subject)} {written(predicate)} {written(target)} ."
            by_graph.setdefault(graph, []).append(line)
        parts = []
        for graph, lines in by_graph.items():
            text = "\n".join(lines)
            parts.append(text if graph is None else f"GRAPH {_to_vervet(graph).n3()} {{ {text} }}")
        body = "\n".join(parts)
        update = f"INSERT {{ {body} }} WHERE {{}}" if blanks else f"INSERT DATA {{ {body} }}"
        self._db.update(update, **parameters)

    def remove(self, triple: tuple[Any, Any, Any], context: Any = None) -> None:
        """Removes all triples that match, of one graph or of all."""
        self._flush()
        parameters = _bound(triple)
        if context is None:
            self._db.update(f"DELETE {{ {_ANY} }} WHERE {{ {_ANY} }}", **parameters)
            pattern = f"GRAPH ?g {{ {_ANY} }}"
        else:
            graph = _graph_name(context)
            pattern = _ANY if graph is None else f"GRAPH {_to_vervet(graph).n3()} {{ {_ANY} }}"
        self._db.update(f"DELETE {{ {pattern} }} WHERE {{ {pattern} }}", **parameters)
        super().remove(triple, context)

    # Reads.

    def triples(
        self, triple: tuple[Any, Any, Any], context: Any = None
    ) -> Iterator[tuple[tuple[Any, Any, Any], Iterator[Any]]]:
        """The triples that match, each with its graphs."""
        self._flush()
        parameters = _bound(triple)
        if context is not None:
            graph = _graph_name(context)
            pattern = _ANY if graph is None else f"GRAPH {_to_vervet(graph).n3()} {{ {_ANY} }}"
            rows = self._db.query(f"SELECT ?s ?p ?o {{ {pattern} }}", **parameters)
            for row in _converted(rows._rows):
                yield _with(row, triple), iter((context,))
            return
        rows = self._db.query(f"SELECT ?s ?p ?o ?g {{ {{ {_ANY} }} UNION {{ GRAPH ?g {{ {_ANY} }} }} }}", **parameters)
        graphs: dict[Any, Any] = {}
        found: dict[tuple[Any, Any, Any], list[Any]] = {}
        for *terms, name in _converted(rows._rows):
            graph = graphs.get(name)
            if graph is None:
                graph = graphs[name] = self._graph(name)
            found.setdefault(_with(terms, triple), []).append(graph)
        for match, contexts in found.items():
            yield match, iter(contexts)

    def _graph(self, name: Any) -> Graph:
        return Graph(store=self, identifier=DATASET_DEFAULT_GRAPH_ID if name is None else name)

    def __len__(self, context: Any = None) -> int:
        """The number of triples of a graph; without one, the number of different triples."""
        self._flush()
        if context is not None:
            graph = _graph_name(context)
            pattern = _ANY if graph is None else f"GRAPH {_to_vervet(graph).n3()} {{ {_ANY} }}"
            text = f"SELECT (COUNT(*) AS ?n) {{ {pattern} }}"
        elif self._named_graphs():
            every = f"{{ {_ANY} }} UNION {{ GRAPH ?g {{ {_ANY} }} }}"
            text = f"SELECT (COUNT(*) AS ?n) {{ SELECT DISTINCT ?s ?p ?o {{ {every} }} }}"
        else:
            text = f"SELECT (COUNT(*) AS ?n) {{ {_ANY} }}"
        count: int = self._db.query(text).rows()[0][0]
        return count

    def _named_graphs(self) -> list[str]:
        rows = self._db.query("SELECT DISTINCT ?g { GRAPH ?g { ?s ?p ?o } }").rows()
        return [name.value for (name,) in rows]

    def contexts(self, triple: tuple[Any, Any, Any] | None = None) -> Generator[Any, None, None]:
        """The named graphs, or those with a triple."""
        self._flush()
        parameters = _bound(triple) if triple is not None else {}
        rows = self._db.query(f"SELECT DISTINCT ?g {{ GRAPH ?g {{ {_ANY} }} }}", **parameters)
        if triple is not None and self._db.query(f"ASK {{ {_ANY} }}", **parameters):
            yield self._graph(None)
        names = {name: None for (name,) in _converted(rows._rows)}
        if triple is None:
            names.update(self._declared)
        for name in names:
            yield self._graph(name)

    def add_graph(self, graph: Any) -> None:
        """Remembers a graph that has no triple yet. The database knows a graph by its triples."""
        name = _graph_name(graph)
        if name is not None:
            self._declared[name] = None

    def remove_graph(self, graph: Any) -> None:
        """Removes all triples of a graph."""
        self.remove((None, None, None), graph)
        self._declared.pop(_graph_name(graph), None)

    # Queries and updates.

    def query(
        self,
        query: Any,
        initNs: Mapping[str, Any] | None = None,
        initBindings: Mapping[str, Any] | None = None,
        queryGraph: Any = None,
        **kwargs: Any,
    ) -> RdflibResult:
        """Runs a whole query in the database."""
        self._flush()
        text, namespaces, base = _text(query, initNs, kwargs.get("base"))
        graphs = self._default_graphs(text, queryGraph)
        prefixes = [(str(prefix), str(iri)) for prefix, iri in namespaces.items()]
        options = self._db._options.with_context(graphs, prefixes, base)
        answer = self._db._core.query(text, _parameters(initBindings), options)
        if isinstance(answer, bool):
            result = RdflibResult("ASK")
            result.askAnswer = answer
        elif answer.is_graph:
            result = RdflibResult("CONSTRUCT")
            result.graph = Graph()
            for row in _converted(answer):
                result.graph.add(row)
        else:
            result = RdflibResult("SELECT")
            names = [rdflib.Variable(name) for name in answer.columns]
            result.vars = names
            result.bindings = (
                {name: term for name, term in zip(names, row) if term is not None} for row in _converted(answer)
            )
        return result

    def _default_graphs(self, text: str, graph: Any) -> list[str] | None:
        """The graphs whose merge is the default graph of a query; ``None``: that of the database.

        :raises NotImplementedError: rdflib has to evaluate the query itself, triple by triple.
        """
        if graph == _UNION:
            named = self._named_graphs()
            if not named:
                return None
            if re.search(r"\bFROM\b", text, re.IGNORECASE) or self._db.query(f"ASK {{ {_ANY} }}"):
                raise NotImplementedError("the union of the default graph and named graphs")
            return named
        name = _graph_name(graph)
        if name is None:
            return None
        if re.search(r"\bFROM\b", text, re.IGNORECASE):
            raise NotImplementedError("a query with FROM in a named graph")
        iri: str = _to_vervet(name).value
        return [iri]

    def update(
        self,
        update: Any,
        initNs: Mapping[str, Any] | None = None,
        initBindings: Mapping[str, Any] | None = None,
        queryGraph: Any = None,
        **kwargs: Any,
    ) -> None:
        """Runs a whole update in the database, in one transaction."""
        self._flush()
        if queryGraph == _UNION and self._named_graphs() or _graph_name(queryGraph) is not None:
            raise NotImplementedError("an update whose default graph is a named graph")
        text, namespaces, base = _text(update, initNs, kwargs.get("base"))
        if re.search(r"\bLOAD\b", text, re.IGNORECASE):
            raise NotImplementedError("LOAD")
        prefixes = [(str(prefix), str(iri)) for prefix, iri in namespaces.items()]
        options = self._db._options.with_context(None, prefixes, base)
        self._db._core.update(text, _parameters(initBindings), options)

    # Namespaces: in memory, as they are no part of the graph.

    def bind(self, prefix: str, namespace: Any, override: bool = True) -> None:
        """Binds a prefix."""
        bound = self._namespaces.get(prefix)
        other = self._prefixes.get(namespace)
        if other is None and bound is not None:
            other = self._prefixes.get(bound)
        if override:
            if other is not None:
                self._namespaces.pop(other, None)
            if bound is not None:
                self._prefixes.pop(bound, None)
            self._prefixes[namespace] = prefix
            self._namespaces[prefix] = namespace
        else:
            namespace = namespace if bound is None else bound
            prefix = prefix if other is None else other
            self._prefixes.setdefault(namespace, prefix)
            self._namespaces.setdefault(prefix, namespace)

    def namespace(self, prefix: str) -> Any:
        """The namespace of a prefix."""
        return self._namespaces.get(prefix)

    def prefix(self, namespace: Any) -> str | None:
        """The prefix of a namespace."""
        return self._prefixes.get(namespace)

    def namespaces(self) -> Iterator[tuple[str, Any]]:
        """All prefixes and namespaces."""
        yield from list(self._namespaces.items())


def _text(
    query: Any, namespaces: Mapping[str, Any] | None, base: str | None
) -> tuple[str, Mapping[str, Any], str | None]:
    """The text, prefixes and base of a query, which may be a prepared one."""
    if isinstance(query, (str, bytes)):
        return (query.decode() if isinstance(query, bytes) else query), namespaces or {}, base
    arguments = getattr(query, "_original_args", None)
    if arguments is None:
        raise NotImplementedError("a query without its text")
    text, own, own_base = arguments
    return text, {**(namespaces or {}), **(own or {})}, base or own_base


def _parameters(bindings: Mapping[str, Any] | None) -> dict[str, Any]:
    return {str(name).lstrip("?"): _to_vervet(term) for name, term in (bindings or {}).items()}


def _graph_name(context: Any) -> Any:
    """The name of a graph; ``None``: the default graph."""
    name = context.identifier if isinstance(context, Graph) else context
    if name is None or name == _UNION or isinstance(name, rdflib.BNode) or name == DATASET_DEFAULT_GRAPH_ID:
        return None
    return name


def _bound(triple: tuple[Any, Any, Any]) -> dict[str, Any]:
    """The terms of a pattern by the names of its variables."""
    return {name: _to_vervet(term) for name, term in zip("spo", triple) if term is not None}


def _with(terms: Iterable[Any], pattern: tuple[Any, Any, Any]) -> tuple[Any, Any, Any]:
    """The terms of a match. Those of the pattern are kept as they are."""
    subject, predicate, target = (
        found if wanted is None else wanted for found, wanted in zip(terms, pattern)
    )
    return subject, predicate, target


def _to_vervet(term: Any) -> Any:
    """A term of rdflib as one of Vervet."""
    if isinstance(term, rdflib.URIRef):
        try:
            return _vervet.IRI(str(term))
        except ValueError:
            return _vervet.IRI(_RELATIVE + quote(str(term), safe=""))
    if isinstance(term, rdflib.BNode):
        return _vervet.BlankNode(str(term))
    if isinstance(term, rdflib.Literal):
        if term.language:
            return _vervet.Literal(str(term), language=term.language)
        if term.datatype is None:
            return _vervet.Literal(str(term))
        return _vervet.Literal(str(term), datatype=_to_vervet(term.datatype))
    if isinstance(term, rdflib.Graph):
        return _to_vervet(term.identifier)
    raise TypeError(f"{term!r} cannot be stored: expected an IRI, a blank node or a literal")


@functools.lru_cache(maxsize=256)
def _datatype(iri: str) -> Any:
    """The IRI of a datatype: there are few of them, and rdflib checks each."""
    return rdflib.URIRef(iri)


def _literal(lexical: str, value: Any, datatype: Any) -> Any:
    """A literal without a language whose value is known, with the members that rdflib's constructor sets. That
    constructor takes ten times as long, which is most of the time of a long result."""
    literal = str.__new__(rdflib.Literal, lexical)
    literal._language, literal._datatype, literal._value = None, datatype, value
    literal._ill_typed = None if datatype is None else False
    return literal


def _are_equal(one: Any, other: Any) -> bool:
    names = ("_language", "_datatype", "_value", "_ill_typed")
    return str(one) == str(other) and all(getattr(one, name) == getattr(other, name) for name in names)


def _is_known_version() -> bool:
    """Whether `_literal` makes what the constructor of this version of rdflib makes."""
    double = rdflib.XSD.double
    try:
        return _are_equal(_literal("a", "a", None), rdflib.Literal("a")) and _are_equal(
            _literal("1.50e0", 1.5, double), rdflib.Literal("1.50e0", datatype=double, normalize=False)
        )
    except AttributeError:
        return False


_IS_KNOWN_VERSION = _is_known_version()
_XSD = "http://www.w3.org/2001/XMLSchema#"
# Datatypes whose values of Python are those of rdflib.
_VALUES = {f"{_XSD}double": float, f"{_XSD}integer": int}


def _from_vervet(term: Any) -> Any:
    """A term of Vervet as one of rdflib."""
    if term is None:
        return None
    if isinstance(term, _vervet.IRI):
        text = term.value
        # Without rdflib's own check: the database has only valid IRIs.
        return str.__new__(rdflib.URIRef, unquote(text[len(_RELATIVE) :]) if text.startswith(_RELATIVE) else text)
    if isinstance(term, _vervet.BlankNode):
        return rdflib.BNode(term.value)
    if isinstance(term, _vervet.Literal):
        language = term.language
        if language:
            return rdflib.Literal(term.lexical, lang=language)
        datatype, lexical = term.datatype.value, term.lexical
        if datatype == f"{_XSD}string":
            return _literal(lexical, lexical, None) if _IS_KNOWN_VERSION else rdflib.Literal(lexical)
        if _IS_KNOWN_VERSION and datatype in _VALUES:
            value = term.value
            # An invalid lexical form has no value.
            if isinstance(value, _VALUES[datatype]):
                return _literal(lexical, value, _datatype(datatype))
        return rdflib.Literal(term.lexical, datatype=_datatype(datatype), normalize=False)
    raise TypeError(f"rdflib has no term for {term!r}")


def _converted(rows: _vervet.Rows) -> Iterator[tuple[Any, ...]]:
    """The rows of a result with terms of rdflib: each term is converted once in a batch."""
    start = 0
    while batch := rows.rows(start, _BATCH_ROWS, True):
        start += _BATCH_ROWS
        # Equal terms of a batch are one object.
        known: dict[int, Any] = {}
        for row in batch:
            converted = []
            for term in row:
                found = known.get(id(term))
                if found is None and term is not None:
                    found = known[id(term)] = _from_vervet(term)
                converted.append(found)
            yield tuple(converted)
