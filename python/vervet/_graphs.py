"""Shared by the adapters for LangChain and LlamaIndex: upserts by name, schemas, results as plain data."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal as OneOf, TypeAlias
from urllib.parse import quote, unquote

from . import _vervet
from .database import Database, Transaction
from .elements import Direction, Edge, Path, Property, T, Vertex, VertexProperty
from .errors import InputError
from .result import Result

__all__: list[str] = []

Language: TypeAlias = OneOf["sparql", "gremlin"]

_ENCODED_ID, _ENCODED_NAME = "urn:x-vervet:id:", "urn:x-vervet:name:"
"""The namespaces of ids, and of labels and keys, that Vervet would read as an IRI or a blank node."""
_LABEL, _KEY = "urn:vervet:label:", "urn:vervet:key:"
_MARK = "urn:x-vervet:label-of"
"""The key that connects a vertex with its new label while a transaction changes it."""
_BATCH_ROWS = 1000
"""Vertices or edges of one script."""
_XSD = "http://www.w3.org/2001/XMLSchema#"
_RDF_TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"

_MERGE_VERTICES = (
    "g.inject(rows).unfold().as('row').mergeV(select('match'))"
    ".option(Merge.onCreate, select('row').select('create'))"
    ".option(Merge.onMatch, select('row').select('update')).iterate()"
)
_MERGE_EDGES = _MERGE_VERTICES.replace("mergeV", "mergeE")
_UPDATE_LABELS = f"""
    INSERT {{ ?vertex a ?label }}
    WHERE {{ ?vertex <{_MARK}> ?number . ?fresh <{_MARK}:new> ?number ; a ?label }}
"""
_REMOVE_LABELS = f"DELETE {{ ?vertex a ?old }} WHERE {{ ?vertex <{_MARK}> ?number ; a ?old }}"


# Names.


def encoded_id(name: str) -> str:
    """The id of a vertex as Vervet takes it. Ids that only look like IRIs, those of blank nodes, and IRIs
    that stand for other ids become IRIs of their own."""
    return _encoded(name, _ENCODED_ID)


def encoded(name: str) -> str:
    """A label or a key as Vervet takes it."""
    return _encoded(name, _ENCODED_NAME)


def _encoded(name: str, space: str) -> str:
    looks_like_iri = "://" in name or name.startswith("urn:")
    is_reserved = name.startswith((_ENCODED_ID, _ENCODED_NAME, "_:", "urn:vervet:"))
    is_other = is_reserved or (looks_like_iri and not _is_iri(name))
    return space + quote(name, safe="") if is_other else name


def decoded(name: str) -> str:
    """The name whose encoded form this is."""
    for space in (_ENCODED_ID, _ENCODED_NAME):
        if name.startswith(space):
            return unquote(name[len(space) :])
    return name


def _is_iri(text: str) -> bool:
    try:
        _vervet.IRI(text)
    except ValueError:
        return False
    return True


def name_of(id: Any) -> str:
    """The id of a vertex as text, by which `vertex_ids` finds it."""
    return id.urn if isinstance(id, uuid.UUID) else decoded(str(id))


def vertex_ids(names: Iterable[str]) -> list[str]:
    """The ids of vertices with these names. The empty text names none."""
    return [encoded_id(name) for name in names if name]


def labels_of(label: str) -> set[str]:
    """The labels of a vertex, which are one text."""
    return set(label.split("::"))


# Changes.


@dataclass(frozen=True)
class VertexRow:
    """A vertex to be created or changed."""

    name: str
    """Its id."""
    label: str
    """Its label."""
    properties: Mapping[str, Any]
    """Values by key; ``None`` removes a value."""
    defaults: Mapping[str, Any] = field(default_factory=dict)
    """Further values of a vertex that does not exist yet."""


@dataclass(frozen=True)
class EdgeRow:
    """An edge to be created or changed. Its ends and its label identify it."""

    source: str
    label: str
    target: str
    properties: Mapping[str, Any]


def merge_vertices(
    tx: Transaction, rows: Sequence[VertexRow], labels: OneOf["replace", "add", "keep"]
) -> None:
    """Creates vertices, or sets the properties of those that exist.

    :param labels: what the label of a row is to a vertex that exists: its only one, a further one, or none.
    :raises InputError: an empty name, or a value that cannot be stored.
    """
    for row in rows:
        _check_names(f"the vertex {row.name!r}", {"id": row.name, "label": row.label}, row.properties)
    merged: dict[str, VertexRow] = {}
    for row in rows:
        id = encoded_id(row.name)
        merged[id] = row if id not in merged else _merged(merged[id], row, labels == "add")
    rows = list(merged.values())
    changed: dict[str, str] = {}
    if labels != "keep":
        for found in _batches(list(merged)):
            script = "g.V(ids).project('id', 'label').by(id()).by(label())"
            for found_id, label in tx.gremlin(script, ids=found).rows():
                id = encoded_id(name_of(found_id))
                present, wanted = labels_of(label), labels_of(encoded(merged[id].label))
                if wanted - present or (labels == "replace" and present - wanted):
                    changed[id] = encoded(merged[id].label)
    try:
        for batch in _batches(rows):
            tx.gremlin(_MERGE_VERTICES, rows=[_vertex_maps(row) for row in batch])
    except (TypeError, ValueError, InputError):
        for row in rows:
            _check_values(tx, f"the vertex {row.name!r}", {**row.defaults, **row.properties})
        raise
    if changed:
        _change_labels(tx, changed, labels == "replace")


def _merged(one: VertexRow, other: VertexRow, add_labels: bool) -> VertexRow:
    """The row that has the effect of two rows of one vertex."""
    is_new = add_labels and not labels_of(other.label) <= labels_of(one.label)
    label = f"{one.label}::{other.label}" if is_new else one.label if add_labels else other.label
    properties, defaults = {**one.properties, **other.properties}, {**one.defaults, **other.defaults}
    return VertexRow(one.name, label, properties, defaults)


def _vertex_maps(row: VertexRow) -> dict[str, dict[Any, Any]]:
    id = encoded_id(row.name)
    update = {encoded(key): value for key, value in row.properties.items()}
    create = {encoded(key): value for key, value in row.defaults.items()} | update
    known = {key: value for key, value in create.items() if value is not None}
    return {"match": {T.id: id}, "create": {T.id: id, T.label: encoded(row.label), **known}, "update": update}


def _change_labels(tx: Transaction, changed: Mapping[str, str], replace: bool) -> None:
    """Gives vertices other labels. Gremlin cannot change labels, and SPARQL needs them as IRIs: a new vertex
    with each label tells its IRI."""
    numbers = {label: number for number, label in enumerate(dict.fromkeys(changed.values()))}
    for label, number in numbers.items():
        script = "g.addV(name).property(mark, number).iterate()"
        tx.gremlin(script, name=label, mark=f"{_MARK}:new", number=number)
    for id, label in changed.items():
        script = "g.V(vertex).property(mark, number).iterate()"
        tx.gremlin(script, vertex=id, mark=_MARK, number=numbers[label])
    if replace:
        tx.update(_REMOVE_LABELS)
    tx.update(_UPDATE_LABELS)
    tx.gremlin("g.V().has(mark).drop()", mark=f"{_MARK}:new")
    for batch in _batches(list(changed)):
        tx.gremlin("g.V(ids).properties(mark).drop()", ids=batch, mark=_MARK)


def merge_edges(tx: Transaction, rows: Sequence[EdgeRow]) -> None:
    """Creates edges, or sets the properties of those that exist. Their ends exist.

    :raises InputError: an empty name, or a value that cannot be stored.
    """
    for row in rows:
        names = {"source": row.source, "label": row.label, "target": row.target}
        _check_names(_edge_name(row), names, row.properties)
    try:
        for batch in _batches(rows):
            tx.gremlin(_MERGE_EDGES, rows=[_edge_maps(row) for row in batch])
    except (TypeError, ValueError, InputError):
        for row in rows:
            _check_values(tx, _edge_name(row), row.properties)
        raise


def _edge_name(row: EdgeRow) -> str:
    return f"the edge {row.label!r} from {row.source!r} to {row.target!r}"


def _edge_maps(row: EdgeRow) -> dict[str, dict[Any, Any]]:
    ends = {Direction.OUT: encoded_id(row.source), Direction.IN: encoded_id(row.target)}
    update = {encoded(key): value for key, value in row.properties.items()}
    known = {key: value for key, value in update.items() if value is not None}
    return {"match": {T.label: encoded(row.label), **ends}, "create": known, "update": update}


def _check_names(what: str, names: Mapping[str, str], properties: Mapping[str, Any]) -> None:
    for part, name in names.items():
        if not name:
            raise InputError(f"{what} has an empty {part}", "give it a text of at least one character")
    for key in properties:
        if not isinstance(key, str) or not key:
            raise InputError(f"{what}: {key!r} is not the key of a property", "a key is a non-empty text")


def _check_values(tx: Transaction, what: str, properties: Mapping[str, Any]) -> None:
    """Finds the value that made a script fail."""
    for key, value in properties.items():
        try:
            tx.gremlin("g.addV('x').property('x', content).iterate()", content=value)
        except (TypeError, ValueError, InputError) as error:
            reason = error.message if isinstance(error, InputError) else str(error)
            raise InputError(
                f"{what}: the property {key!r} cannot be stored: {reason}",
                "convert it to a number, a text, a date, or a list or dictionary of these",
            ) from error


def _batches(values: Sequence[Any]) -> Iterator[Any]:
    return (values[start : start + _BATCH_ROWS] for start in range(0, len(values), _BATCH_ROWS))


# Results.


@contextmanager
def snapshot(database: Database) -> Iterator[Database | Transaction]:
    """One version of the graph, for several reads: a transaction whose changes are discarded. A database that
    is read only has no transactions, and does not change."""
    if database._core.read_only:
        yield database
        return
    with database.transaction(isolation="snapshot") as tx:
        try:
            yield tx
        finally:
            tx.rollback()


_FENCE = re.compile(
    r"\A\s*(?:```)?[ \t]*(?:sparql|gremlin|groovy)?[ \t]*\n(.*?)(?:```)?\s*\Z", re.DOTALL | re.IGNORECASE
)


def run_query(
    database: Database, language: Language, text: str, parameters: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """The rows of a query as dictionaries of plain values. Changes by a script of Gremlin are rolled back. A
    fence of Markdown around the text, as language models write it, is removed.

    :raises QueryError: the text is not a query; a SPARQL update is none.
    """
    text = without_fence(text)
    if language == "sparql":
        answer = database.query(text, **parameters)
        if not isinstance(answer, Result):
            return [{"ask": answer}]
        return [{name: plain(cell) for name, cell in row.items()} for row in answer.dicts()]
    with snapshot(database) as reader:
        plain_values = [plain(value) for value in reader.gremlin(text, **parameters)]
    return [value if isinstance(value, dict) else {"value": value} for value in plain_values]


def without_fence(text: str) -> str:
    """A text without a fence of Markdown around it."""
    return _FENCE.sub(r"\1", text)


def plain(value: Any) -> Any:
    """A value without classes of Vervet: IRIs as texts, elements as dictionaries, paths as lists."""
    if isinstance(value, (_vervet.IRI, _vervet.BlankNode, _vervet.Triple)):
        return value.value if isinstance(value, _vervet.IRI) else value.n3()
    if isinstance(value, _vervet.Literal):
        return value.lexical
    if isinstance(value, Vertex):
        properties = {decoded(key): plain(one_or_list(values)) for key, values in value.properties.items()}
        return {**properties, "id": name_of(value.id), "label": decoded(value.label)}
    if isinstance(value, Edge):
        properties = {decoded(key): plain(one) for key, one in value.properties.items()}
        ends = {"source": name_of(value.source.id), "target": name_of(value.target.id)}
        return {**properties, "id": str(value.id), "label": decoded(value.label), **ends}
    if isinstance(value, (VertexProperty, Property)):
        return {decoded(value.key): plain(value.value)}
    if isinstance(value, (T, Direction)):
        return value.value
    if isinstance(value, dict):
        return {_plain_key(key): plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple, set, frozenset, Path)):
        return [plain(one) for one in value]
    return value


def _plain_key(key: Any) -> Any:
    key = plain(key)
    if isinstance(key, str):
        return decoded(key)
    return str(key) if isinstance(key, (list, dict)) else key


def one_or_list(values: Sequence[Any]) -> Any:
    """The value of a property with one value, else the list of its values."""
    return values[0] if len(values) == 1 else list(values)


# Schemas.


@dataclass(frozen=True)
class Schema:
    """Names and types that occur in a graph, as its query language writes them."""

    language: Language
    vertices: dict[str, dict[str, str]]
    """For each label, the types of properties by key."""
    edges: list[tuple[str, str, str]]
    """Labels of a source, an edge and a target."""
    edge_properties: dict[str, dict[str, str]]
    """For each label of edges, the types of properties by key."""
    others: list[str]
    """Predicates that only vertices without a label have."""

    def __str__(self) -> str:
        """The schema for a prompt."""

        def properties(of: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
            for name, types in of.items():
                yield f"{name}: " + (", ".join(f"{key} ({type})" for key, type in types.items()) or "none")

        sparql = self.language == "sparql"
        lines = []
        if sparql:
            lines.append(f"Prefixes, which need no declaration: label: is <{_LABEL}>, key: is <{_KEY}>.")
        head = "Classes and the properties of their instances:"
        lines.append(head if sparql else "Labels of vertices and their properties:")
        lines += properties(self.vertices)
        lines.append("Statements between instances of classes:" if sparql else "Edges:")
        lines += (f"{a} {edge} {b}" if sparql else f"({a})-[{edge}]->({b})" for a, edge, b in self.edges)
        if self.edge_properties:
            example = ", of ?edge in ?source ?predicate ?target ~ ?edge" if sparql else ""
            lines.append(f"Properties of edges{example}:")
            lines += properties(self.edge_properties)
        if self.others:
            lines.append("Other predicates: " if sparql else "Other labels of edges and keys: ")
            lines.append(", ".join(self.others))
        return "\n".join(lines)


def read_schema(database: Database, language: Language) -> Schema:
    """The schema of the default graph. The cost is that of an aggregate over all of its statements."""

    def name(iri: Any) -> str:
        text: str = iri.value if isinstance(iri, _vervet.IRI) else iri.n3()
        for prefix, space in (("label:", _LABEL), ("key:", _KEY)):
            local = text[len(space) :]
            if not text.startswith(space):
                continue
            if language == "gremlin":
                return unquote(local)
            if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", local):
                return prefix + local
        return f"<{text}>" if language == "sparql" and isinstance(iri, _vervet.IRI) else decoded(text)

    vertices: dict[str, dict[str, str]] = {}
    edge_properties: dict[str, dict[str, str]] = {}
    known = {_RDF_TYPE}
    with snapshot(database) as reader:
        for (label,) in reader.query("SELECT DISTINCT ?label { ?vertex a ?label } ORDER BY ?label").rows():
            vertices[name(label)] = {}
        for label, key, type in reader.query(_VERTEX_PROPERTIES).rows():
            vertices[name(label)][name(key)] = _type_name(type)
            known.add(key.value)
        edges = []
        for source, label, target in reader.query(_EDGES, type=_vervet.IRI(_RDF_TYPE)).rows():
            edges.append((name(source), name(label), name(target)))
            known.add(label.value)
        for label, key, type in reader.query(_EDGE_PROPERTIES).rows():
            edge_properties.setdefault(name(label), {})[name(key)] = _type_name(type)
            known.add(key.value)
    others = [name(_vervet.IRI(iri)) for iri in sorted(database.info()["predicates"]) if iri not in known]
    return Schema(language, vertices, edges, edge_properties, others)


def _type_name(datatype: Any) -> str:
    iri = str(datatype.value) if isinstance(datatype, _vervet.IRI) else ""
    if iri.startswith(_XSD):
        return iri[len(_XSD) :]
    names = {"urn:vervet:datatype:graphson": "list or map", "urn:vervet:datatype:uuid": "uuid"}
    return names.get(iri, "string" if iri.endswith("angString") else iri)


_VERTEX_PROPERTIES = """
    SELECT ?label ?key (SAMPLE(DATATYPE(?value)) AS ?type)
    { ?vertex a ?label ; ?key ?value FILTER(isLiteral(?value)) }
    GROUP BY ?label ?key ORDER BY ?label ?key
"""
_EDGES = """
    SELECT DISTINCT ?source ?label ?target
    { ?a a ?source ; ?label ?b . ?b a ?target FILTER(?label != ?type) }
    ORDER BY ?source ?label ?target
"""
_EDGE_PROPERTIES = """
    SELECT ?label ?key (SAMPLE(DATATYPE(?value)) AS ?type)
    { ?a ?label ?b ~ ?edge . ?edge ?key ?value FILTER(isLiteral(?value)) }
    GROUP BY ?label ?key ORDER BY ?label ?key
"""
