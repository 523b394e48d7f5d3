"""The native module. Its terms are public as `vervet.IRI` and so on; the other classes are wrapped."""

import builtins
import os
from collections.abc import Callable
from typing import Any, final

__all__ = [
    "IRI",
    "BlankNode",
    "Literal",
    "Triple",
    "Options",
    "Rows",
    "Database",
    "Transaction",
    "Server",
    "Network",
]

@final
class IRI:
    """An IRI."""

    def __new__(cls, value: str) -> IRI: ...
    @property
    def value(self) -> str:
        """The IRI as text."""
    def n3(self) -> str:
        """The term in the syntax of N-Triples."""
    def __hash__(self) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __lt__(self, other: IRI, /) -> bool: ...
    def __le__(self, other: IRI, /) -> bool: ...
    def __gt__(self, other: IRI, /) -> bool: ...
    def __ge__(self, other: IRI, /) -> bool: ...
    def __reduce__(self) -> tuple[Any, ...]: ...

@final
class BlankNode:
    """A blank node."""

    def __new__(cls, label: str) -> BlankNode: ...
    @property
    def value(self) -> str:
        """The label, without `_:`."""
    def n3(self) -> str:
        """The term in the syntax of N-Triples."""
    def __hash__(self) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __reduce__(self) -> tuple[Any, ...]: ...

@final
class Literal:
    """A literal: a lexical form with a datatype or a language."""

    def __new__(
        cls, value: Any, datatype: IRI | str | None = None, language: str | None = None
    ) -> Literal: ...
    @property
    def value(self) -> Any:
        """The number, truth value, date or text; the lexical form if Python has no such value."""
    @property
    def lexical(self) -> str:
        """The lexical form."""
    @property
    def datatype(self) -> IRI:
        """The IRI of the datatype."""
    @property
    def language(self) -> str | None:
        """The language tag in lower case, or `None`. A base direction follows it: `ar--rtl`."""
    def n3(self) -> str:
        """The term in the syntax of N-Triples."""
    def __hash__(self) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __reduce__(self) -> tuple[Any, ...]: ...

@final
class Triple:
    """A triple term of RDF 1.2."""

    def __new__(cls, subject: IRI | BlankNode, predicate: IRI, object: Any) -> Triple: ...
    @property
    def subject(self) -> IRI | BlankNode:
        """The subject."""
    @property
    def predicate(self) -> IRI:
        """The predicate."""
    @property
    def object(self) -> IRI | BlankNode | Literal | Triple:
        """The object."""
    def n3(self) -> str:
        """The term in the syntax of N-Triples."""
    def __hash__(self) -> int: ...
    def __eq__(self, other: builtins.object, /) -> bool: ...
    def __ne__(self, other: builtins.object, /) -> bool: ...
    def __reduce__(self) -> tuple[Any, ...]: ...

@final
class Options:
    """Limits of calls."""

    def __new__(
        cls, timeout: float | None, memory_limit_bytes: int | None, threads: int | None
    ) -> Options: ...
    def with_context(
        self,
        default_graphs: list[str] | None,
        prefixes: list[tuple[str, str]],
        base_iri: str | None,
    ) -> Options:
        """The same limits, with the context of a query: the graphs whose merge is its default graph, prefixes
        and a base."""

@final
class Rows:
    """The rows of a query or a traversal. Holds the snapshot that was read."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
    @property
    def count(self) -> int:
        """The number of rows."""
    @property
    def is_graph(self) -> bool:
        """Whether they are the triples of a graph."""
    def __len__(self) -> int: ...
    def rows(self, start: int, count: int, terms: bool = False) -> list[tuple[Any, ...]]:
        """`count` rows from `start` on, as tuples."""
    def values(self, start: int, count: int) -> list[Any]:
        """`count` results of a traversal from `start` on; rows for a query."""
    def counted(self) -> list[tuple[Any, int]]:
        """The results of a traversal, each with its number of consecutive occurrences."""
    def write_parquet(self, path: str | os.PathLike[str]) -> int:
        """Writes the rows into a Parquet file; returns their number."""
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The rows as a capsule of the Arrow C stream interface."""

@final
class Database:
    """An open database, shared by threads."""

    def __new__(
        cls,
        path: str | os.PathLike[str] | None,
        create: bool,
        read_only: bool,
        durability: str | float | None,
    ) -> Database: ...
    @property
    def closed(self) -> bool:
        """Whether it is closed."""
    @property
    def read_only(self) -> bool:
        """Whether it was opened to be read only."""
    def close(self) -> None:
        """Closes the database and stops its servers. Calls under way and open transactions keep it until they
        end."""
    def cancel(self) -> int:
        """Cancels all calls under way; returns their number."""
    def query(self, text: str, parameters: dict[str, Any], options: Options) -> Rows | bool:
        """Runs a SPARQL query."""
    def gremlin(self, text: str, bindings: dict[str, Any], options: Options) -> Rows:
        """Runs a Gremlin script."""
    def update(self, text: str, parameters: dict[str, Any], options: Options) -> tuple[int, int]:
        """Runs a SPARQL update; returns the numbers of inserted and removed statements."""
    def explain(self, text: str, parameters: dict[str, Any], options: Options, profile: bool) -> str:
        """The plan of a SPARQL query as text; with `profile`, after a run."""
    def load(
        self,
        sources: list[Any],
        how: dict[str, Any],
        options: Options,
        tick: Callable[[int, int | None, int, int, int], None] | None,
    ) -> dict[str, Any]:
        """Loads files, texts and tables: paths, and pairs of a name and bytes or a table."""
    def network(
        self, labels: list[str], vertices: list[str], directed: bool, options: Options
    ) -> Network:
        """The vertices and edges of a property graph, or of IRIs, for algorithms."""
    def serve(
        self, host: str, ports: list[int], read_only: bool, allow_plain_http: bool, options: Options
    ) -> Server:
        """Serves the database over HTTP until the server is stopped or the database is closed."""
    def begin(self, snapshot_isolation: bool) -> Transaction:
        """Begins a transaction."""
    def info(self) -> dict[str, Any]:
        """Counts, names and sizes."""
    def backup(self, path: str | os.PathLike[str]) -> int:
        """Copies the database into another directory; returns the number of statements."""

@final
class Transaction:
    """A transaction. Threads that share it take turns."""

    @property
    def is_open(self) -> bool:
        """Whether it has neither been committed nor rolled back."""
    def query(self, text: str, parameters: dict[str, Any], options: Options) -> Rows | bool:
        """Runs a SPARQL query on what the transaction sees."""
    def gremlin(self, text: str, bindings: dict[str, Any], options: Options) -> Rows:
        """Runs a Gremlin script on what the transaction sees."""
    def update(self, text: str, parameters: dict[str, Any], options: Options) -> tuple[int, int]:
        """Runs a SPARQL update; returns the numbers of inserted and removed statements."""
    def commit(self) -> None:
        """Makes the changes visible and durable."""
    def roll_back(self) -> None:
        """Discards the changes."""

@final
class Server:
    """A server of an open database."""

    @property
    def address(self) -> tuple[str, int]:
        """The address as text, and the port."""
    @property
    def is_running(self) -> bool:
        """Whether it has not ended."""
    def stop(self) -> None:
        """Shuts it down: requests under way have ten seconds."""

@final
class Network:
    """A graph of numbered vertices, without parallel edges."""

    def __new__(cls, degrees: bytes, neighbours: bytes, directed: bool, options: Options) -> Network: ...
    def __len__(self) -> int: ...
    @property
    def arc_count(self) -> int:
        """The number of arcs; an undirected edge is two, a loop one."""
    def names(self) -> list[int | str]:
        """The names of the vertices of a database: integers and texts."""
    def neighbours(self, vertex: int) -> list[int]:
        """The neighbours of a vertex that its arcs lead to, ascending."""
    def predecessors(self, vertex: int) -> list[int]:
        """The neighbours of a vertex whose arcs lead to it, ascending."""
    def page_rank(
        self,
        alpha: float,
        rounds_max: int,
        tolerance: float,
        first: list[float] | None,
        jumps: list[float] | None,
        dangling: list[float] | None,
    ) -> list[float] | None:
        """PageRank; `None` if it does not converge."""
    def weak_components(self) -> list[int]:
        """The number of the weak component of each vertex."""
    def strong_components(self) -> list[int]:
        """The number of the strong component of each vertex."""
    def search(
        self, source: int, target: int | None, steps_max: int | None, backwards: bool
    ) -> tuple[list[int], list[int], list[int]]:
        """The vertices that a breadth-first search reaches, their steps and predecessors; from the targets of
        arcs to their sources if `backwards`."""
    def lengths(
        self, nodes: list[Any], source: int, steps_max: int | None, backwards: bool
    ) -> dict[Any, int]:
        """The steps to each vertex that a breadth-first search reaches, by its node in `nodes`; see
        `Network.search`."""
    def core_numbers(self) -> list[int]:
        """The core number of each vertex."""
    def triangles(self) -> list[int]:
        """The number of triangles with each vertex."""
    def degrees(self) -> list[int]:
        """The number of neighbours of each vertex other than itself."""
    def betweenness(self, sources: list[int], endpoints: bool) -> list[float]:
        """The sum of the dependencies of `sources` on each vertex."""
    def louvain(
        self, resolution: float, threshold: float, levels_max: int | None, seed: int | None
    ) -> list[list[int]]:
        """The community of each vertex at each level."""
    def label_propagation(self) -> list[int]:
        """The label of each vertex."""
    def cancel(self) -> int:
        """Cancels all calls under way; returns their number."""
