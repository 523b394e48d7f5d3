"""Databases and transactions."""

from __future__ import annotations

import json
import os
import random
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Literal as OneOf, Protocol, TypeVar, runtime_checkable

from . import _vervet
from .elements import Edge, Vertex
from .errors import ConflictError, InputError
from .files import local_path, source_path
from .networkx import Graph
from .progress import LoadProgress, display as _display
from .result import GremlinResult, Result
from .server import Server

__all__ = ["open", "Database", "Transaction", "LoadReport", "UpdateReport", "SupportsArrow"]

_T = TypeVar("_T")

_TIMEOUT_DEFAULT = 3600.0
_MEMORY_LIMIT_DEFAULT = 4 << 30
_ATTEMPTS_MAX = 100
"""Attempts of `Database.transact` under conflicts."""
_PAUSE_MAX = 0.02
"""The longest pause between two attempts, in seconds."""


@runtime_checkable
class SupportsArrow(Protocol):
    """A table that other libraries can read: it has the Arrow C stream interface."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The rows as a capsule."""


@dataclass(frozen=True)
class LoadReport:
    """What a load has read."""

    statements: int
    """Statements read, including those that were there before."""
    added: int
    """Statements that were not there before."""
    skipped: int
    """Malformed statements that were skipped."""
    bytes: int
    """Bytes read."""
    remarks: tuple[str, ...]
    """Remarks, such as on ids that occur twice."""


@dataclass(frozen=True)
class UpdateReport:
    """What a SPARQL update has changed."""

    inserted: int
    """Statements that were not there before."""
    removed: int
    """Statements that are no longer there."""


def open(
    path: str | os.PathLike[str] | None = None,
    *,
    create: bool = True,
    read_only: bool = False,
    durability: OneOf["sync", "none"] | float | None = None,
    timeout: float | None = _TIMEOUT_DEFAULT,
    memory_limit: int | None = _MEMORY_LIMIT_DEFAULT,
    threads: int | None = None,
) -> Database:
    """Opens the database in a directory; without a path, an empty one in memory.

    :param create: whether a directory without a database is an empty database, which the first change
        creates. Otherwise it is an `InputError`.
    :param read_only: refuse changes. Any number of processes may read a directory beside one that writes;
        each sees what was committed when it opened it.
    :param durability: ``"sync"`` (a commit survives a power failure), ``"none"``, or seconds between syncs.
    :param timeout: seconds that a call may take; ``None``: no limit.
    :param memory_limit: bytes of intermediate results that a call may hold; ``None``: no limit.
    :param threads: threads of one call; ``None``: as many as there are cores.

    >>> with vervet.open() as db:
    ...     db.query("ASK {}")
    True
    """
    directory = None if path is None else local_path(path, "a database", "open a local directory")
    core = _vervet.Database(directory, create, read_only, durability)
    return Database(core, _vervet.Options(timeout, memory_limit, threads))


class Database:
    """An open database. Threads may share it; a process made by ``fork`` may not use it.

    Each query reads a snapshot: the graph as it was committed when the query began. A ``with`` statement
    closes the database at its end.
    """

    __slots__ = ("_core", "_options")

    def __init__(self, core: _vervet.Database, options: _vervet.Options) -> None:
        self._core = core
        self._options = options

    def with_options(
        self,
        *,
        timeout: float | None = _TIMEOUT_DEFAULT,
        memory_limit: int | None = _MEMORY_LIMIT_DEFAULT,
        threads: int | None = None,
    ) -> Database:
        """The same open database with other limits; see `vervet.open`.

        >>> vervet.open().with_options(timeout=0).query("SELECT * { ?s ?p ?o }")
        Traceback (most recent call last):
        vervet.errors.DeadlineError: ...
        """
        return Database(self._core, _vervet.Options(timeout, memory_limit, threads))

    def query(self, text: str, /, **parameters: Any) -> Result | Any:
        """Runs a SPARQL query: a `Result` of rows, or of the triples of a graph; ``bool`` for ``ASK``.

        Parameters are values of variables. They are terms or Python values, never text of the query.

        >>> db = vervet.open()
        >>> db.query("SELECT (?n + 1 AS ?next) {}", n=41).rows()
        [(42,)]
        """
        answer = self._core.query(text, parameters, self._options)
        return answer if isinstance(answer, bool) else Result(answer)

    def gremlin(self, text: str, /, **bindings: Any) -> GremlinResult:
        """Runs a Gremlin script in one transaction; the last statement has the results.

        Bindings are values of variables.

        >>> db = vervet.open()
        >>> db.gremlin("g.inject(n).math('_ + 1')", n=41).values()
        [42.0]
        """
        return GremlinResult(self._core.gremlin(text, bindings, self._options))

    def update(self, text: str, /, **parameters: Any) -> UpdateReport:
        """Runs a SPARQL update in one transaction, again if it conflicts with others.

        ``LOAD`` is off; `load` reads files.

        >>> vervet.open().update("INSERT DATA { <urn:ann> <urn:knows> <urn:bob> }")
        UpdateReport(inserted=1, removed=0)
        """
        return UpdateReport(*self._core.update(text, parameters, self._options))

    def load(
        self,
        *sources: str | os.PathLike[str] | SupportsArrow,
        vertices: str | None = None,
        edges: str | None = None,
        source: str | None = None,
        target: str | None = None,
        format: str | None = None,
        graph: str | _vervet.IRI | None = None,
        base_iri: str | None = None,
        skip_errors: bool = False,
        id_column: str | None = None,
        row_ids: bool = False,
        label: str | None = None,
        name: str = "table",
        progress: bool | Callable[[LoadProgress], Any] | None = None,
    ) -> LoadReport:
        """Loads files and tables: all of them, or none if there is an error.

        A table is a data frame of pandas or polars, or anything else with ``__arrow_c_stream__``. Its columns
        mean what those of a Parquet file mean; a table with the columns ``subject``, ``predicate``,
        ``object``, and perhaps ``graph``, ``datatype`` and ``language``, has statements.

        Batches of a stream are read one after the other, and held as one uncompressed Parquet file in memory
        (statements: as N-Quads) until the load begins.

        :param sources: tables, and paths of files or folders. The extension has the format: ``.ttl``,
            ``.nt``, ``.csv``, ``.parquet``, ``.graphml``, ``.graphson`` and more, also with ``.gz`` or
            ``.zst``.
        :param vertices: every row of every table is a vertex with this label. Without ``id_column`` and
            ``row_ids``, the first column has the ids. An ``id_column`` is a property as well, unless its name
            is ``id``.
        :param edges: every row of every table is an edge with this label.
        :param source: the column with the ids of the sources of these edges; by default the first one.
        :param target: the column with the ids of their targets; by default the second one.
        :param format: the format of all files, such as ``"ttl"``.
        :param graph: the named graph of statements without one.
        :param base_iri: the base of relative IRIs.
        :param skip_errors: skip malformed statements where the format permits it.
        :param id_column: the column with ids in tables of vertices.
        :param row_ids: number the rows of tables of vertices without ids.
        :param label: the label of vertices and edges without one.
        :param name: the name of tables in errors.
        :param progress: show progress, by default in a notebook and on a terminal; or a function that is
            called with a `LoadProgress` from time to time.
        """
        files = [
            (name, source) if isinstance(source, SupportsArrow) else source_path(source) for source in sources
        ]
        mapping = _mapping(vertices, edges, source, target, id_column, row_ids)
        options = {
            "format": format,
            "graph": graph,
            "base_iri": base_iri,
            "skip_errors": skip_errors,
            "id_column": None if mapping else id_column,
            "row_ids": None if mapping else row_ids,
            "label": label,
            "mapping": mapping,
        }
        return self._load(files, options, progress)

    def load_text(
        self,
        text: str | bytes,
        /,
        format: str,
        *,
        graph: str | _vervet.IRI | None = None,
        base_iri: str | None = None,
        skip_errors: bool = False,
        name: str = "text",
    ) -> LoadReport:
        """Loads a text.

        :param name: its name in errors, and of the label of the vertices of a table.

        >>> db = vervet.open()
        >>> db.load_text("<urn:ann> <urn:knows> <urn:bob> .", "ttl").added
        1
        """
        data = text.encode() if isinstance(text, str) else text
        options = {"format": format, "graph": graph, "base_iri": base_iri, "skip_errors": skip_errors}
        return self._load([(name, data)], options, False)

    def _load(
        self,
        sources: list[Any],
        how: dict[str, Any],
        progress: bool | Callable[[LoadProgress], Any] | None,
    ) -> LoadReport:
        if how["graph"] is not None:
            how["graph"] = str(how["graph"])
        display = _display(progress)
        if display is None:
            report = self._core.load(sources, how, self._options, None)
        else:
            with display:
                report = self._core.load(sources, how, self._options, display)
        report["remarks"] = tuple(report["remarks"])
        return LoadReport(**report)

    def serve(
        self,
        port: int | None = None,
        *,
        host: str = "127.0.0.1",
        read_only: bool = False,
        allow_plain_http: bool = False,
    ) -> Server:
        """Serves the web console and the endpoints of SPARQL and Gremlin on this open database, in the
        background, until the server is stopped or the database is closed.

        Everyone who reaches the address may write, unless it is read only; by default these are the programs
        of this machine.

        :param port: the port; by default 7878, or a free one if that is taken. 0: a free one.
        :param host: the address or name to listen on.
        :param read_only: refuse changes by clients.
        :param allow_plain_http: listen on addresses that other machines reach, without encryption.

        >>> from urllib.request import urlopen
        >>> db = vervet.open()
        >>> with db.serve(port=0) as server:
        ...     urlopen(server.url + "query?query=ASK%7B%7D").status
        200
        """
        ports = [7878, 0] if port is None else [port]
        core = self._core.serve(host, ports, read_only, allow_plain_http, self._options)
        return Server(core, self._core)

    def vertex(self, label: str | None = None, /, **properties: Any) -> Vertex | None:
        """A vertex with this label and these values of properties, or ``None``. Which one is not determined
        if there are several.

        >>> db = vervet.open()
        >>> _ = db.gremlin("g.addV('airport').property('code', 'VIE').property('city', 'Vienna')")
        >>> db.vertex("airport", code="VIE")["city"]
        'Vienna'
        """
        return _vertex(self, label, properties)

    def networkx(
        self,
        edges: str | Iterable[str] = (),
        *,
        vertices: str | Iterable[str] = (),
        directed: bool = True,
    ) -> Graph:
        """The graph of some edges for the algorithms of NetworkX, which run in the database; see
        `vervet.networkx`.

        :param edges: labels, or IRIs of predicates; by default all edges and all vertices.
        :param vertices: labels of vertices that are part of the graph even without such edges.
        :param directed: whether edges have a direction.
        """
        labels = [edges] if isinstance(edges, str) else list(edges)
        others = [vertices] if isinstance(vertices, str) else list(vertices)
        return Graph(self._core.network(labels, others, directed, self._options), directed)

    def transaction(self, *, isolation: OneOf["serializable", "snapshot"] = "serializable") -> Transaction:
        """Begins a transaction. As a context manager it commits at the end, and rolls back on an exception.

        >>> db = vervet.open()
        >>> with db.transaction() as tx:
        ...     _ = tx.update("INSERT DATA { <urn:ann> <urn:knows> <urn:bob> }")
        ...     len(tx.query("SELECT * { ?a ?p ?b }")), len(db.query("SELECT * { ?a ?p ?b }"))
        (1, 0)
        >>> len(db.query("SELECT * { ?a ?p ?b }"))
        1
        """
        if isolation not in ("serializable", "snapshot"):
            raise ValueError(f'isolation is "serializable" or "snapshot", not {isolation!r}')
        return Transaction(self._core.begin(isolation == "snapshot"), self._options)

    def transact(self, work: Callable[[Transaction], _T]) -> _T:
        """Calls ``work`` with a transaction and commits it; again from the start, at most 100 times, if it
        conflicts with another one.

        >>> db = vervet.open()
        >>> db.transact(lambda tx: tx.update("INSERT DATA { <urn:ann> <urn:knows> <urn:bob> }").inserted)
        1
        """
        for attempt in range(1, _ATTEMPTS_MAX + 1):
            try:
                with self.transaction() as tx:
                    return work(tx)
            except ConflictError:
                if attempt == _ATTEMPTS_MAX:
                    raise
                # Transactions that conflict with each other do not try again at the same time.
                time.sleep(min(random.random() * attempt * 64e-6, _PAUSE_MAX))
        raise AssertionError("unreachable")

    def explain(self, text: str, /, *, run: bool = False, **parameters: Any) -> str:
        """The plan of a SPARQL query; with ``run`` that of `profile`. For Gremlin,
        ``db.gremlin("g.V()….explain()")``. A variable with the name ``run`` cannot be a parameter here.
        """
        return self._core.explain(text, parameters, self._options, run)

    def profile(self, text: str, /, **parameters: Any) -> str:
        """Runs a SPARQL query and returns its plan with the rows and times of each step. For Gremlin,
        ``db.gremlin("g.V()….profile()")``."""
        return self._core.explain(text, parameters, self._options, True)

    def info(self) -> dict[str, Any]:
        """Counts of statements, vertices, edges and literals, size in bytes, graphs, predicates, constraints.

        >>> info = vervet.open().info()
        >>> info["statements"], info["vertices"], info["predicates"]
        (0, 0, {})
        """
        return self._core.info()

    def backup(self, path: str | os.PathLike[str]) -> int:
        """Copies the database into a new directory while others read and write; returns the number of
        statements."""
        return self._core.backup(local_path(path, "a backup", "copy a local one there"))

    def cancel(self) -> int:
        """Cancels all calls under way in other threads, which raise `CancelledError`; returns their number."""
        return self._core.cancel()

    def close(self) -> None:
        """Closes the database and stops its servers. Calls under way and open transactions keep it until they
        end; results stay readable."""
        self._core.close()

    @property
    def closed(self) -> bool:
        """Whether it is closed."""
        return self._core.closed

    def __enter__(self) -> Database:
        return self

    def __exit__(
        self,
        exception_type: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "closed " if self.closed else "read-only " if self._core.read_only else ""
        return f"<{state}vervet.Database>"


class Transaction:
    """A transaction: a snapshot of the graph, and its own changes. Threads that share it take turns.

    Without `commit`, the changes are discarded.
    """

    __slots__ = ("_core", "_options")

    def __init__(self, core: _vervet.Transaction, options: _vervet.Options) -> None:
        self._core = core
        self._options = options

    def query(self, text: str, /, **parameters: Any) -> Result | Any:
        """As `Database.query`, on what the transaction sees."""
        answer = self._core.query(text, parameters, self._options)
        return answer if isinstance(answer, bool) else Result(answer)

    def gremlin(self, text: str, /, **bindings: Any) -> GremlinResult:
        """As `Database.gremlin`, on what the transaction sees."""
        return GremlinResult(self._core.gremlin(text, bindings, self._options))

    def update(self, text: str, /, **parameters: Any) -> UpdateReport:
        """As `Database.update`, as a part of the transaction. If it fails, the transaction stays as it was
        before."""
        return UpdateReport(*self._core.update(text, parameters, self._options))

    def add_vertex(self, label: str = "vertex", id: Any = None, /, **properties: Any) -> Vertex:
        """Adds a vertex, with an id of its own if it is not given one.

        A property that is a list has several values.

        >>> db = vervet.open()
        >>> with db.transaction() as tx:
        ...     ann = tx.add_vertex("person", name="Ann", language=["de", "en"])
        ...     bob = tx.add_vertex("person", "bob", name="Bob")
        ...     edge = tx.add_edge(ann, "knows", bob, since=2019)
        >>> db.query("SELECT ?name { ?who key:name ?name ; key:language 'en' ; key:knows <urn:vervet:vertex:bob> }").rows()
        [('Ann',)]
        """
        bindings: dict[str, Any] = {}
        script = f"g.addV({_quoted(label)})"
        if id is not None:
            script += ".property(T.id, external_id)"
            bindings["external_id"] = id
        script += _property_steps(properties, bindings)
        vertex: Vertex = self.gremlin(script, **bindings).values()[0]
        return vertex

    def add_edge(self, source: Vertex, label: str, target: Vertex, /, **properties: Any) -> Edge:
        """Adds an edge. Its ends are vertices of the graph."""
        bindings: dict[str, Any] = {"source": source, "target": target}
        script = f"g.V(source).addE({_quoted(label)}).to(__.V(target))" + _property_steps(properties, bindings)
        edges = self.gremlin(script, **bindings).values()
        if not edges:
            raise InputError(f"there is no vertex {source}", "add it before its edges")
        edge: Edge = edges[0]
        return edge

    def vertex(self, label: str | None = None, /, **properties: Any) -> Vertex | None:
        """A vertex with this label and these values of properties, or ``None``. Which one is not determined
        if there are several."""
        return _vertex(self, label, properties)

    def remove(self, element: Vertex | Edge, /) -> bool:
        """Removes an edge, or a vertex with its edges; ``False`` if there is no such element."""
        start = "V" if isinstance(element, Vertex) else "E"
        found = self.gremlin(f"g.{start}(element).count()", element=element).values() != [0]
        if found:
            self.gremlin(f"g.{start}(element).drop()", element=element)
        return found

    def commit(self) -> None:
        """Makes the changes visible and durable.

        :raises ConflictError: another transaction has changed what this one has read.
        :raises ConstraintError: the graph would violate a constraint.
        """
        self._core.commit()

    def rollback(self) -> None:
        """Discards the changes."""
        self._core.roll_back()

    @property
    def is_open(self) -> bool:
        """Whether it has neither been committed nor rolled back."""
        return self._core.is_open

    def __enter__(self) -> Transaction:
        return self

    def __exit__(
        self,
        exception_type: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if not self.is_open:
            return
        if exception_type is None:
            self.commit()
        else:
            self.rollback()

    def __repr__(self) -> str:
        return f"<{'open' if self.is_open else 'ended'} vervet.Transaction>"


def _quoted(text: str) -> str:
    """A string of Gremlin."""
    return json.dumps(text, ensure_ascii=False)


def _property_steps(properties: dict[str, Any], bindings: dict[str, Any]) -> str:
    """Steps that set properties to values, which become bindings."""
    steps = ""
    for key, value in properties.items():
        several = isinstance(value, (list, tuple, set, frozenset))
        for one in value if several else (value,):
            name = f"value{len(bindings)}"
            bindings[name] = one
            cardinality = "Cardinality.list, " if several else ""
            steps += f".property({cardinality}{_quoted(key)}, {name})"
    return steps


def _vertex(reader: Database | Transaction, label: str | None, properties: dict[str, Any]) -> Vertex | None:
    bindings: dict[str, Any] = {}
    script = "g.V()" if label is None else f"g.V().hasLabel({_quoted(label)})"
    for key, value in properties.items():
        name = f"value{len(bindings)}"
        bindings[name] = value
        script += f".has({_quoted(key)}, {name})"
    found = reader.gremlin(script + ".limit(1)", **bindings).values()
    return found[0] if found else None


def _mapping(
    vertices: str | None,
    edges: str | None,
    source: str | None,
    target: str | None,
    id_column: str | None,
    row_ids: bool,
) -> str | None:
    """The mapping of tables whose rows all are vertices or edges; ``None`` if their columns tell."""
    if vertices is not None and edges is not None:
        raise TypeError("the rows are vertices or edges: give one of the two")
    if edges is None and (source is not None or target is not None):
        raise TypeError("source and target are columns of edges: give their label too, edges=…")
    if edges is not None and (source is None) != (target is None):
        raise TypeError("give both columns, source=… and target=…, or none")
    if vertices is None and edges is None:
        return None
    # The texts of TOML have the escapes of JSON.
    quoted = json.dumps
    lines = ["[[file]]", 'name = "*"']
    if edges is not None:
        if id_column is not None or row_ids:
            raise TypeError("id_column and row_ids are for vertices")
        lines.append(f"edges = {quoted(edges)}")
        ends = [("from", source), ("to", target)]
        columns = [f"{{ name = {quoted(name)}, is = {quoted(role)} }}" for role, name in ends if name]
    else:
        lines.append(f"vertices = {quoted(vertices)}")
        columns = []
        if row_ids:
            lines.append("row_ids = true")
        elif id_column is not None:
            kept = "" if id_column == "id" else f", property = {quoted(id_column)}"
            columns.append(f'{{ name = {quoted(id_column)}, is = "id"{kept} }}')
    if columns:
        lines.append(f"columns = [{', '.join(columns)}]")
    return "\n".join(lines)
