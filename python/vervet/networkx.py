"""A backend of NetworkX: its algorithms run on Vervet's kernels, in parallel.

``db.networkx(edges="route")`` is a graph that NetworkX's functions take as their own: no edge is copied into
Python. With ``backend="vervet"``, or Vervet among ``nx.config.backend_priority``, they also take graphs of
NetworkX, which are converted once and kept with the graph.

>>> import vervet
>>> db = vervet.open()
>>> _ = db.gremlin('''g.addV('page').property(T.id, 'a').as('a').addV('page').property(T.id, 'b').as('b')
...     .addE('links').from('a').to('b').addE('links').from('b').to('a')''')
>>> graph = db.networkx(edges="links")
>>> len(graph), graph.number_of_edges(), "a" in graph
(2, 2, True)
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from . import _vervet

__all__ = ["Graph"]

_OPTIONS = (None, None, None)
"""Graphs of NetworkX have no limits: their algorithms end by Ctrl-C."""


class Graph:
    """A directed or undirected graph without parallel edges, for algorithms.

    Vertices are named as in Gremlin: by integers and texts. It is the graph as it was when it was made.
    """

    __networkx_backend__ = "vervet"
    __slots__ = ("_core", "_directed", "_nodes", "_numbers", "graph", "__networkx_cache__")

    def __init__(self, core: _vervet.Network, directed: bool, nodes: list[Any] | None = None) -> None:
        self._core = core
        self._directed = directed
        self._nodes = nodes
        self._numbers: dict[Any, int] | None = None
        self.graph: dict[str, Any] = {}
        self.__networkx_cache__: dict[str, Any] = {}

    @property
    def nodes(self) -> list[Any]:
        """The vertices."""
        if self._nodes is None:
            self._nodes = list(self._core.names())
        return self._nodes

    @property
    def _number_of(self) -> dict[Any, int]:
        if self._numbers is None:
            self._numbers = {node: number for number, node in enumerate(self.nodes)}
        return self._numbers

    def is_directed(self) -> bool:
        """Whether edges have a direction."""
        return self._directed

    def is_multigraph(self) -> bool:
        """Whether there are parallel edges: no."""
        return False

    def number_of_nodes(self) -> int:
        """The number of vertices."""
        return len(self._core)

    order = number_of_nodes

    def number_of_edges(self) -> int:
        """The number of edges."""
        if self._directed:
            return self._core.arc_count
        # An edge is two arcs, a loop is one.
        return (self._core.arc_count + self._loops()) // 2

    size = number_of_edges

    def _loops(self) -> int:
        return self._core.arc_count - sum(self._core.degrees())

    def neighbors(self, node: Any) -> Iterator[Any]:
        """The vertices that edges of this one lead to."""
        nodes = self.nodes
        return (nodes[number] for number in self._core.neighbours(self._number(node)))

    successors = neighbors

    def predecessors(self, node: Any) -> Iterator[Any]:
        """The vertices with edges to this one."""
        nodes = self.nodes
        return (nodes[number] for number in self._core.predecessors(self._number(node)))

    def edges(self) -> Iterator[tuple[Any, Any]]:
        """The edges."""
        nodes = self.nodes
        for number, node in enumerate(nodes):
            for other in self._core.neighbours(number):
                if self._directed or number <= other:
                    yield node, nodes[other]

    def to_networkx(self) -> Any:
        """The same graph as one of NetworkX."""
        import networkx

        graph = networkx.DiGraph() if self._directed else networkx.Graph()
        graph.add_nodes_from(self.nodes)
        graph.add_edges_from(self.edges())
        graph.graph.update(self.graph)
        return graph

    def _number(self, node: Any) -> int:
        try:
            return self._number_of[node]
        except (KeyError, TypeError):
            import networkx

            raise networkx.NodeNotFound(f"Node {node} is not in the graph") from None

    def has_node(self, node: Any) -> bool:
        """Whether there is such a vertex."""
        return node in self

    def __contains__(self, node: object) -> bool:
        try:
            return node in self._number_of
        except TypeError:
            return False

    def __iter__(self) -> Iterator[Any]:
        return iter(self.nodes)

    def __len__(self) -> int:
        return len(self._core)

    def __repr__(self) -> str:
        kind = "directed" if self._directed else "undirected"
        return f"<vervet.networkx.Graph: {kind}, {len(self)} vertices, {self.number_of_edges()} edges>"


def from_networkx(graph: Any) -> Graph:
    """A graph of NetworkX, without the attributes of its vertices and edges; parallel edges become one."""
    nodes = list(graph)
    numbers = {node: number for number, node in enumerate(nodes)}
    adjacency = graph._adj
    degrees = array("I", [len(neighbours) for neighbours in adjacency.values()])
    targets = array("I", [numbers[node] for neighbours in adjacency.values() for node in neighbours])
    directed = graph.is_directed()
    options = _vervet.Options(*_OPTIONS)
    core = _vervet.Network(degrees.tobytes(), targets.tobytes(), directed, options)
    made = Graph(core, directed, nodes)
    made.graph.update(graph.graph)
    return made


# Algorithms, with the names, parameters and results of NetworkX.


def pagerank(
    G: Graph,
    alpha: float = 0.85,
    personalization: dict[Any, float] | None = None,
    max_iter: int = 100,
    tol: float = 1.0e-6,
    nstart: dict[Any, float] | None = None,
    weight: str | None = "weight",
    dangling: dict[Any, float] | None = None,
) -> dict[Any, float]:
    """PageRank."""
    if len(G) == 0:
        return {}
    nodes = G.nodes

    def distribution(values: dict[Any, float] | None) -> list[float] | None:
        if values is None:
            return None
        numbers = [float(values.get(node, 0)) for node in nodes]
        total = sum(numbers)
        if total == 0:
            raise ZeroDivisionError
        return [number / total for number in numbers]

    ranks = G._core.page_rank(
        alpha, max_iter, tol, distribution(nstart), distribution(personalization), distribution(dangling)
    )
    if ranks is None:
        import networkx

        raise networkx.PowerIterationFailedConvergence(max_iter)
    return dict(zip(nodes, ranks))


def _groups(G: Graph, numbers: Iterable[int]) -> list[set[Any]]:
    """The vertices with each number."""
    groups: dict[int, set[Any]] = {}
    for node, number in zip(G.nodes, numbers):
        group = groups.get(number)
        if group is None:
            groups[number] = {node}
        else:
            group.add(node)
    return list(groups.values())


def connected_components(G: Graph) -> Iterator[set[Any]]:
    """The components of an undirected graph."""
    yield from _groups(G, G._core.weak_components())



def strongly_connected_components(G: Graph) -> Iterator[set[Any]]:
    """The strongly connected components of a directed graph, each after those that it leads to."""
    groups: dict[int, set[Any]] = {}
    for node, number in zip(G.nodes, G._core.strong_components()):
        groups.setdefault(number, set()).add(node)
    for number in range(len(groups)):
        yield groups[number]


def number_connected_components(G: Graph) -> int:
    """The number of components."""
    return max(G._core.weak_components(), default=-1) + 1



def number_strongly_connected_components(G: Graph) -> int:
    """The number of strongly connected components."""
    return max(G._core.strong_components(), default=-1) + 1


def _check_not_empty(G: Graph) -> None:
    if len(G) == 0:
        import networkx

        raise networkx.NetworkXPointlessConcept("Connectivity is undefined for the null graph.")


def is_connected(G: Graph) -> bool:
    """Whether there is one component."""
    _check_not_empty(G)
    return number_connected_components(G) == 1


def is_weakly_connected(G: Graph) -> bool:
    """Whether there is one component."""
    return is_connected(G)


def is_strongly_connected(G: Graph) -> bool:
    """Whether there is one strongly connected component."""
    _check_not_empty(G)
    return number_strongly_connected_components(G) == 1


def node_connected_component(G: Graph, n: Any) -> set[Any]:
    """The component of a vertex."""
    try:
        number = G._number_of[n]
    except KeyError:
        raise KeyError(n) from None
    nodes = G.nodes
    return {nodes[found] for found in G._core.search(number, None, None, False)[0]}


def _steps(cutoff: float | None) -> int | None:
    if cutoff is None or cutoff == math.inf:
        return None
    # A step begins while its length so far is below the cutoff.
    return min(max(math.ceil(cutoff), 0), 2**32 - 1)


def _check_in(G: Graph, node: Any, what: str) -> None:
    if node not in G:
        import networkx

        raise networkx.NodeNotFound(f"{what} in G")


def _lengths(G: Graph, node: Any, cutoff: float | None, backwards: bool) -> dict[Any, int]:
    return G._core.lengths(G.nodes, G._number(node), _steps(cutoff), backwards)


def single_source_shortest_path_length(
    G: Graph, source: Any, cutoff: float | None = None
) -> dict[Any, int]:
    """The steps from a vertex to each that it reaches."""
    _check_in(G, source, f"Source {source} is not")
    return _lengths(G, source, cutoff, False)


def single_target_shortest_path_length(
    G: Graph, target: Any, cutoff: float | None = None
) -> dict[Any, int]:
    """The steps to a vertex from each that reaches it."""
    _check_in(G, target, f"Target {target} is not")
    return _lengths(G, target, cutoff, G.is_directed())


def all_pairs_shortest_path_length(
    G: Graph, cutoff: float | None = None
) -> Iterator[tuple[Any, dict[Any, int]]]:
    """The steps between all pairs."""
    for node in G.nodes:
        yield node, _lengths(G, node, cutoff, False)


def _paths(G: Graph, node: Any, cutoff: float | None, backwards: bool) -> dict[Any, list[Any]]:
    nodes = G.nodes
    found, _, parents = G._core.search(G._number(node), None, _steps(cutoff), backwards)
    paths: dict[int, list[Any]] = {}
    for number, parent in zip(found, parents):
        if number == parent:
            paths[number] = [nodes[number]]
        elif backwards:
            paths[number] = [nodes[number], *paths[parent]]
        else:
            paths[number] = [*paths[parent], nodes[number]]
    return {nodes[number]: path for number, path in paths.items()}


def single_source_shortest_path(
    G: Graph, source: Any, cutoff: float | None = None
) -> dict[Any, list[Any]]:
    """A shortest path from a vertex to each that it reaches."""
    _check_in(G, source, f"Source {source} not")
    return _paths(G, source, cutoff, False)


def single_target_shortest_path(
    G: Graph, target: Any, cutoff: float | None = None
) -> dict[Any, list[Any]]:
    """A shortest path to a vertex from each that reaches it."""
    _check_in(G, target, f"Target {target} not")
    return _paths(G, target, cutoff, True)


def _between(G: Graph, source: Any, target: Any) -> list[int]:
    """The numbers of the vertices of a shortest path."""
    import networkx

    for node, role in ((source, "Source"), (target, "Target")):
        _check_in(G, node, f"{role} {node} is not")
    start, end = G._number(source), G._number(target)
    found, _, parents = G._core.search(start, end, None, False)
    parent = dict(zip(found, parents))
    if end not in parent:
        raise networkx.NetworkXNoPath(f"No path between {source} and {target}.")
    path = [end]
    while path[-1] != start:
        path.append(parent[path[-1]])
    return path[::-1]


def bidirectional_shortest_path(G: Graph, source: Any, target: Any) -> list[Any]:
    """A shortest path between two vertices."""
    nodes = G.nodes
    return [nodes[number] for number in _between(G, source, target)]


def has_path(G: Graph, source: Any, target: Any) -> bool:
    """Whether there is a path."""
    import networkx

    try:
        _between(G, source, target)
    except networkx.NetworkXNoPath:
        return False
    return True


def shortest_path(
    G: Graph, source: Any = None, target: Any = None, weight: Any = None, method: str = "dijkstra"
) -> Any:
    """Shortest paths."""
    _check_method(method)
    if source is None and target is None:
        return ((node, _paths(G, node, None, False)) for node in G.nodes)
    if target is None:
        return single_source_shortest_path(G, source)
    if source is None:
        return single_target_shortest_path(G, target)
    return bidirectional_shortest_path(G, source, target)


def shortest_path_length(
    G: Graph, source: Any = None, target: Any = None, weight: Any = None, method: str = "dijkstra"
) -> Any:
    """Lengths of shortest paths."""
    _check_method(method)
    if source is None and target is None:
        return all_pairs_shortest_path_length(G)
    if target is None:
        return single_source_shortest_path_length(G, source)
    if source is None:
        return single_target_shortest_path_length(G, target)
    return len(_between(G, source, target)) - 1


def _check_method(method: str) -> None:
    if method not in ("dijkstra", "bellman-ford"):
        raise ValueError(f"method not supported: {method}")


def core_number(G: Graph) -> dict[Any, int]:
    """The core number of each vertex."""
    if G._loops():
        import networkx

        raise networkx.NetworkXNotImplemented(
            "Input graph has self loops which is not permitted; "
            "Consider using G.remove_edges_from(nx.selfloop_edges(G))."
        )
    return dict(zip(G.nodes, G._core.core_numbers()))


def _of_nodes(G: Graph, values: Iterable[Any], nodes: Any) -> Any:
    """The values of a vertex, or of some or all vertices."""
    every = dict(zip(G.nodes, values))
    if nodes is None:
        return every
    if nodes in G:
        return every[nodes]
    return {node: every[node] for node in nodes if node in every}


def triangles(G: Graph, nodes: Any = None) -> Any:
    """The number of triangles with each vertex."""
    return _of_nodes(G, G._core.triangles(), nodes)


def clustering(G: Graph, nodes: Any = None, weight: str | None = None) -> Any:
    """The clustering coefficient of each vertex."""
    values = [
        2 * found / (degree * (degree - 1)) if found else 0
        for found, degree in zip(G._core.triangles(), G._core.degrees())
    ]
    return _of_nodes(G, values, nodes)


def average_clustering(
    G: Graph, nodes: Any = None, weight: str | None = None, count_zeros: bool = True
) -> float:
    """The average clustering coefficient."""
    values = list(clustering(G, nodes).values())
    if not count_zeros:
        values = [value for value in values if abs(value) > 0]
    return float(sum(values) / len(values))


def transitivity(G: Graph) -> float:
    """The fraction of the possible triangles that there are."""
    found = sum(G._core.triangles())
    possible = sum(degree * (degree - 1) for degree in G._core.degrees())
    return 0 if found == 0 else 2 * found / possible


def betweenness_centrality(
    G: Graph,
    k: int | None = None,
    normalized: bool = True,
    weight: Any = None,
    endpoints: bool = False,
    seed: Any = None,
) -> dict[Any, float]:
    """The share of shortest paths through each vertex."""
    count = len(G)
    sums = G._core.betweenness(list(range(count)), endpoints)
    ends = count if endpoints else count - 1
    if ends < 2:
        scale = 1.0
    elif normalized:
        scale = 1 / (ends * (ends - 1))
    else:
        scale = 1.0 if G.is_directed() else 0.5
    return {node: found * scale for node, found in zip(G.nodes, sums)}


def louvain_communities(
    G: Graph,
    weight: str | None = "weight",
    resolution: float = 1,
    threshold: float = 1e-07,
    max_level: int | None = None,
    seed: Any = None,
) -> list[set[Any]]:
    """Communities by the Louvain method. Without a seed, vertices move in their order: the result is the same
    in each run."""
    if max_level is not None and max_level <= 0:
        raise ValueError("max_level argument must be a positive integer or None")
    if len(G) == 0:
        return []
    number = seed if seed is None or isinstance(seed, int) else seed.randrange(2**63)
    levels = G._core.louvain(resolution, threshold, max_level, None if number is None else number % 2**64)
    return _groups(G, levels[-1])


def label_propagation_communities(G: Graph) -> Any:
    """Communities by semi-synchronous label propagation: the same as those of NetworkX."""
    return dict(enumerate(_groups(G, G._core.label_propagation()))).values()


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    function.__name__: function
    for function in (
        pagerank,
        connected_components,
        strongly_connected_components,
        number_connected_components,
        number_strongly_connected_components,
        is_connected,
        is_weakly_connected,
        is_strongly_connected,
        node_connected_component,
        single_source_shortest_path_length,
        single_target_shortest_path_length,
        all_pairs_shortest_path_length,
        single_source_shortest_path,
        single_target_shortest_path,
        bidirectional_shortest_path,
        has_path,
        shortest_path,
        shortest_path_length,
        core_number,
        triangles,
        clustering,
        average_clustering,
        transitivity,
        betweenness_centrality,
        louvain_communities,
        label_propagation_communities,
    )
}
_FUNCTIONS["weakly_connected_components"] = connected_components
_FUNCTIONS["number_weakly_connected_components"] = number_connected_components

_UNDIRECTED = {"core_number", "triangles", "clustering", "average_clustering", "transitivity", "louvain_communities"}
"""Functions that mean something else for directed graphs, and run in NetworkX for those."""
_COUNT_PARALLEL = {"pagerank", "louvain_communities", "betweenness_centrality", "clustering", "transitivity"}
"""Functions whose results depend on parallel edges."""
_WEIGHTED = {"pagerank": 6, "louvain_communities": 1}
"""Functions that use the attribute `weight` if edges have it, and the position of that parameter."""
_UNWEIGHTED = {
    "shortest_path": 3,
    "shortest_path_length": 3,
    "clustering": 2,
    "average_clustering": 2,
    "betweenness_centrality": 3,
}
"""Functions without weights unless they are asked for."""


def _argument(args: tuple[Any, ...], kwargs: dict[str, Any], position: int, name: str, default: Any) -> Any:
    if name in kwargs:
        return kwargs[name]
    return args[position] if len(args) > position else default


class Backend:
    """The interface that NetworkX calls."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        try:
            return _FUNCTIONS[name]
        except KeyError:
            raise AttributeError(name) from None

    def __dir__(self) -> list[str]:
        return [*_FUNCTIONS, "convert_from_nx", "convert_to_nx", "can_run", "should_run"]

    @staticmethod
    def convert_from_nx(graph: Any, **_: Any) -> Graph:
        """A graph of NetworkX as one of Vervet. Attributes are not used by any function of this backend."""
        return graph if isinstance(graph, Graph) else from_networkx(graph)

    @staticmethod
    def convert_to_nx(result: Any, **_: Any) -> Any:
        """A graph of Vervet as one of NetworkX; other results as they are."""
        return result.to_networkx() if isinstance(result, Graph) else result

    @staticmethod
    def can_run(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool | str:
        """Whether a call has what this backend supports, or why not."""
        graph = _argument(args, kwargs, 0, "G", None)
        if name in _UNDIRECTED and graph.is_directed():
            return "directed graphs are not supported"
        if name in _COUNT_PARALLEL and graph.is_multigraph():
            return "parallel edges are not supported"
        if name in _UNWEIGHTED and _argument(args, kwargs, _UNWEIGHTED[name], "weight", None) is not None:
            return "weights are not supported"
        if name in _WEIGHTED:
            weight = _argument(args, kwargs, _WEIGHTED[name], "weight", "weight")
            if weight is not None and _has_weights(graph, weight):
                return "weights are not supported"
        if name == "betweenness_centrality" and _argument(args, kwargs, 1, "k", None) is not None:
            return "sampling is not supported"
        return True

    @staticmethod
    def should_run(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool | str:
        """Whether a call is worth a conversion."""
        return True


def _has_weights(graph: Any, weight: str) -> bool:
    """Whether an edge has the attribute."""
    if isinstance(graph, Graph):
        return False
    return any(weight in data for _, _, data in graph.edges(data=True))


backend = Backend()


def info() -> dict[str, Any]:
    """What NetworkX shows of this backend."""
    return {
        "backend_name": "vervet",
        "project": "vervet",
        "package": "vervet",
        "short_summary": "Algorithms on graphs of the database Vervet, in parallel.",
        "functions": {name: {} for name in _FUNCTIONS},
    }
