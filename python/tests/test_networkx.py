"""The backend of NetworkX: the same answers as NetworkX, on its graphs and on those of a database."""

import importlib.util
import os
import pathlib
import random
import subprocess
import sys

import pytest

import vervet

networkx = pytest.importorskip("networkx", reason="networkx is not installed")

from networkx.algorithms.link_analysis.pagerank_alg import _pagerank_python  # noqa: E402
from vervet import networkx as backend  # noqa: E402


def ranks_of_networkx(graph, **options):
    """NetworkX's PageRank in plain Python: `networkx.pagerank` needs NumPy and SciPy."""
    return _pagerank_python(graph, **options)


def graphs():
    """Random graphs of several densities, with loops, isolated vertices and names of several types."""
    for seed in range(12):
        rng = random.Random(seed)
        for make in (networkx.Graph, networkx.DiGraph):
            graph = make()
            count = rng.choice([1, 2, 10, 40])
            names = [rng.choice([number, f"v{number}"]) for number in range(count)]
            rng.shuffle(names)
            graph.add_nodes_from(names)
            for _ in range(rng.choice([0, count, 4 * count])):
                graph.add_edge(rng.choice(names), rng.choice(names))
            yield graph


def without_loops(graph):
    graph = graph.copy()
    graph.remove_edges_from(list(networkx.selfloop_edges(graph)))
    return graph


def close(one, other):
    assert one.keys() == other.keys()
    assert all(abs(one[key] - other[key]) < 1e-6 for key in one)


def sets(groups):
    return sorted(map(sorted_names, groups))


def sorted_names(group):
    return sorted(map(str, group))


def test_ranks():
    for graph in graphs():
        own = backend.from_networkx(graph)
        close(backend.pagerank(own, tol=1e-10, max_iter=1000), ranks_of_networkx(graph, tol=1e-10, max_iter=1000))
        nodes = list(graph)
        bias = {nodes[0]: 2, nodes[-1]: 1}
        start = dict.fromkeys(nodes, 0) | bias
        for options in [{"personalization": bias}, {"nstart": start}, {"dangling": bias}, {"alpha": 0.5}]:
            options = {"tol": 1e-10, "max_iter": 1000, **options}
            close(backend.pagerank(own, **options), ranks_of_networkx(graph, **options))
    with pytest.raises(networkx.PowerIterationFailedConvergence):
        backend.pagerank(backend.from_networkx(networkx.path_graph(3)), max_iter=0)


def test_components():
    for graph in graphs():
        own = backend.from_networkx(graph)
        if graph.is_directed():
            expected = sets(networkx.strongly_connected_components(graph))
            assert sets(backend.strongly_connected_components(own)) == expected
            assert backend.number_strongly_connected_components(own) == len(expected)
            assert backend.is_strongly_connected(own) == networkx.is_strongly_connected(graph)
            assert sets(backend.connected_components(own)) == sets(networkx.weakly_connected_components(graph))
            assert backend.is_weakly_connected(own) == networkx.is_weakly_connected(graph)
        else:
            assert sets(backend.connected_components(own)) == sets(networkx.connected_components(graph))
            assert backend.is_connected(own) == networkx.is_connected(graph)
            node = list(graph)[0]
            assert backend.node_connected_component(own, node) == networkx.node_connected_component(graph, node)


def test_paths():
    for graph in graphs():
        own = backend.from_networkx(graph)
        assert dict(backend.all_pairs_shortest_path_length(own)) == dict(networkx.all_pairs_shortest_path_length(graph))
        node, other = list(graph)[0], list(graph)[-1]
        for cutoff in (None, 0, 1, 2.5):
            expected = networkx.single_source_shortest_path_length(graph, node, cutoff=cutoff)
            assert backend.single_source_shortest_path_length(own, node, cutoff) == expected
            expected = dict(networkx.single_target_shortest_path_length(graph, node, cutoff=cutoff))
            assert backend.single_target_shortest_path_length(own, node, cutoff) == expected
        for paths in (backend.single_source_shortest_path(own, node), backend.single_target_shortest_path(own, node)):
            for path in paths.values():
                assert networkx.is_path(graph, path)
                assert len(path) - 1 == networkx.shortest_path_length(graph, path[0], path[-1])
        assert backend.has_path(own, node, other) == networkx.has_path(graph, node, other)
        if networkx.has_path(graph, node, other):
            path = backend.shortest_path(own, node, other)
            assert networkx.is_path(graph, path) and len(path) == len(networkx.shortest_path(graph, node, other))
        else:
            with pytest.raises(networkx.NetworkXNoPath):
                backend.shortest_path(own, node, other)
        with pytest.raises(networkx.NodeNotFound):
            backend.shortest_path(own, "missing", other)


def test_cores_and_triangles():
    for graph in graphs():
        if graph.is_directed():
            continue
        own = backend.from_networkx(graph)
        assert backend.triangles(own) == networkx.triangles(graph)
        assert backend.clustering(own) == networkx.clustering(graph)
        assert backend.average_clustering(own) == pytest.approx(networkx.average_clustering(graph))
        assert backend.transitivity(own) == pytest.approx(networkx.transitivity(graph))
        nodes = list(graph)[:3]
        assert backend.triangles(own, nodes) == networkx.triangles(graph, nodes)
        assert backend.triangles(own, nodes[0]) == networkx.triangles(graph, nodes[0])
        simple = without_loops(graph)
        assert backend.core_number(backend.from_networkx(simple)) == networkx.core_number(simple)
        if networkx.number_of_selfloops(graph):
            with pytest.raises(networkx.NetworkXNotImplemented):
                backend.core_number(own)


def test_betweenness():
    for graph in graphs():
        own = backend.from_networkx(graph)
        for normalized in (True, False):
            for endpoints in (True, False):
                options = {"normalized": normalized, "endpoints": endpoints}
                close(
                    backend.betweenness_centrality(own, **options),
                    networkx.betweenness_centrality(graph, **options),
                )


def test_communities():
    for graph in graphs():
        if graph.is_directed():
            continue
        own = backend.from_networkx(graph)
        expected = networkx.community.label_propagation_communities(graph)
        assert sets(backend.label_propagation_communities(own)) == sets(expected)
        found = backend.louvain_communities(own)
        assert networkx.community.is_partition(graph, found)
        if graph.size():
            alone = networkx.community.modularity(graph, [{node} for node in graph])
            assert networkx.community.modularity(graph, found) >= alone - 1e-9


def test_louvain_is_as_good_as_that_of_networkx():
    """The modularity is close to that of NetworkX, whose result depends on a seed."""
    for graph in [networkx.karate_club_graph(), networkx.les_miserables_graph(), networkx.relaxed_caveman_graph(30, 8, 0.2, seed=1)]:
        graph = networkx.Graph(graph.edges())
        expected = networkx.community.modularity(graph, networkx.community.louvain_communities(graph, seed=1))
        own = backend.from_networkx(graph)
        for seed in (None, 1, 2):
            found = backend.louvain_communities(own, seed=seed)
            assert networkx.community.modularity(graph, found) >= expected - 0.03
            assert found == backend.louvain_communities(own, seed=seed)


@pytest.fixture
def routes(empty):
    empty.load_text("id,label\nVIE,airport\nGRZ,airport\nZRH,airport\n7,country\n", "csv")
    empty.load_text("source,target,label\nVIE,GRZ,route\nGRZ,VIE,route\nVIE,GRZ,route\nZRH,VIE,route\n7,VIE,has\n", "csv")
    return empty


def test_graphs_of_a_database(routes):
    graph = routes.networkx(edges="route")
    assert sorted(graph.nodes) == ["GRZ", "VIE", "ZRH"] and graph.number_of_edges() == 3
    assert sorted(graph.edges()) == [("GRZ", "VIE"), ("VIE", "GRZ"), ("ZRH", "VIE")]
    assert list(graph.successors("ZRH")) == ["VIE"] and sorted(graph.predecessors("VIE")) == ["GRZ", "ZRH"]
    assert set(routes.networkx(edges="route", vertices="country").nodes) == {"GRZ", "VIE", "ZRH", 7}
    assert set(routes.networkx().nodes) == {"GRZ", "VIE", "ZRH", 7}
    assert routes.networkx(["route", "has"]).number_of_edges() == 4
    undirected = routes.networkx("route", directed=False)
    assert undirected.number_of_edges() == 2 and not undirected.is_directed()
    assert networkx.utils.graphs_equal(graph.to_networkx(), networkx.DiGraph([("VIE", "GRZ"), ("GRZ", "VIE"), ("ZRH", "VIE")])) is not None
    assert len(routes.networkx(edges="missing")) == 0


def test_rdf(empty):
    empty.load_text("<urn:a> <urn:p> <urn:b> . _:x <urn:p> <urn:a> . <urn:a> <urn:q> 'text' .", "ttl")
    graph = empty.networkx(edges="urn:p")
    assert {"urn:a", "urn:b"} < set(graph.nodes) and len(graph) == 3


def test_limits(routes):
    with pytest.raises(vervet.DeadlineError):
        routes.with_options(timeout=0).networkx(edges="route")


has_entry_point = "vervet" in networkx.utils.backends.backends


@pytest.mark.skipif(not has_entry_point, reason="vervet is not installed, so NetworkX does not know the backend")
def test_dispatch(routes):
    graph = routes.networkx(edges="route")
    ranks = networkx.pagerank(graph)
    close(ranks, ranks_of_networkx(graph.to_networkx()))
    assert networkx.shortest_path(graph, "ZRH", "GRZ") == ["ZRH", "VIE", "GRZ"]
    ring = networkx.cycle_graph(5)
    assert networkx.triangles(ring, backend="vervet") == dict.fromkeys(range(5), 0)
    weighted = networkx.Graph()
    weighted.add_edge(1, 2, weight=3)
    with pytest.raises(NotImplementedError):
        networkx.pagerank(weighted, backend="vervet")


MODULES = [
    "algorithms/link_analysis/tests/test_pagerank.py",
    "algorithms/components/tests",
    "algorithms/shortest_paths/tests/test_unweighted.py",
    "algorithms/shortest_paths/tests/test_generic.py",
    "algorithms/tests/test_core.py",
    "algorithms/tests/test_cluster.py",
    "algorithms/centrality/tests/test_betweenness_centrality.py",
    "algorithms/community/tests/test_louvain.py",
    "algorithms/community/tests/test_label_propagation.py",
]


# They expect the very communities that follow from a seed of NetworkX's generator.
SEEDED = [
    f"algorithms/community/tests/test_louvain.py::{name}"
    for name in ("test_karate_club_partition", "test_undirected_selfloops", "test_none_weight_param", "test_max_level")
]


@pytest.mark.skipif(not has_entry_point, reason="vervet is not installed, so NetworkX does not know the backend")
@pytest.mark.skipif(importlib.util.find_spec("scipy") is None, reason="scipy is not installed")
def test_the_tests_of_networkx(tmp_path):
    """NetworkX's own tests of these functions, with every graph converted to this backend."""
    root = pathlib.Path(networkx.__file__).parent
    environment = {**os.environ, "NETWORKX_TEST_BACKEND": "vervet", "NETWORKX_FALLBACK_TO_NX": "True"}
    tests = [*(str(root / module) for module in MODULES), *(f"--deselect={name}" for name in SEEDED)]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--rootdir={root}", *tests]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment, check=False)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr
