"""Measures the Python package beside others, in one process and by turns: `run.py --against pyoxigraph,ladybug`.

Each measurement is a function with the name of a system; all systems of a measurement take turns, `--repeat`
times, and the table has the least time of each. Packages that are missing are named and left out.
"""

from __future__ import annotations

import argparse
import gc
import importlib.util
import os
import pathlib
import platform
import random
import subprocess
import sys
import tempfile
import threading
import time

import vervet

SYSTEMS = ["pyoxigraph", "ladybug", "rdflib", "networkx", "maplib"]
NAME, SCORE, KNOWS = "urn:vervet:key:name", "urn:vervet:key:score", "urn:vervet:key:knows"


class Table:
    """A measurement: functions of systems, and what their times mean."""

    def __init__(self, title, unit="ms", scale=1e3):
        self.title, self.unit, self.scale = title, unit, scale
        self.rows, self.known = {}, {}

    def add(self, system, work, prepare=None):
        """`work` is measured; `prepare` makes its argument each time."""
        self.rows[system] = (work, prepare)

    def add_time(self, system, seconds):
        """A time that another program has measured."""
        self.known[system] = seconds

    def run(self, repeat):
        best = dict(self.known)
        for _ in range(repeat):
            for system, (work, prepare) in self.rows.items():
                argument = prepare() if prepare else None
                gc.collect()
                begun = time.perf_counter()
                units = work(argument) if prepare else work()
                elapsed = (time.perf_counter() - begun) / (units if isinstance(units, int) else 1)
                best[system] = min(elapsed, best.get(system, float("inf")))
        own = best.get("vervet", float("inf"))
        lines = [f"\n### {self.title}\n", f"| | {self.unit} | times Vervet |", "| --- | ---: | ---: |"]
        for system, elapsed in best.items():
            lines.append(f"| {system} | {shown(elapsed * self.scale)} | {elapsed / own:.1f} |")
        print("\n".join(lines), flush=True)
        return best


def shown(number):
    return f"{number:,.0f}" if number >= 100 else f"{number:.1f}" if number >= 10 else f"{number:.2f}"


class Data:
    """Vertices with a name and a score, and edges between them."""

    def __init__(self, rows, folder):
        import pyarrow
        from pyarrow import parquet

        rng = random.Random(1)
        self.rows, self.folder = rows, folder
        self.names = [f"person number {number}" for number in range(rows)]
        self.scores = [rng.random() for _ in range(rows)]
        self.table = pyarrow.table({"id": list(range(rows)), "name": self.names, "score": self.scores})
        self.parquet = str(folder / "people.parquet")
        parquet.write_table(self.table, self.parquet)
        self.triples = folder / "people.nt"
        with open(self.triples, "w", encoding="utf-8") as file:
            for number in range(rows):
                subject = f"<urn:vervet:vertex:{number}>"
                file.write(f'{subject} <{NAME}> "{self.names[number]}" .\n')
                score = f'"{self.scores[number]!r}"^^<http://www.w3.org/2001/XMLSchema#double>'
                file.write(f"{subject} <{SCORE}> {score} .\n")


QUERY = f"SELECT ?who ?name ?score {{ ?who <{NAME}> ?name ; <{SCORE}> ?score }}"


def frames(data, against, repeat, rust=None):
    """A result of a million rows as data frames."""
    db = vervet.open()
    db.load(data.triples)
    stores = {}
    if "pyoxigraph" in against:
        import pyoxigraph

        stores["pyoxigraph"] = pyoxigraph.Store()
        stores["pyoxigraph"].bulk_load(path=str(data.triples), format=pyoxigraph.RdfFormat.N_TRIPLES)
    if "ladybug" in against:
        stores["ladybug"] = ladybug_of(data)
    if "maplib" in against:
        stores["maplib"] = maplib_of(data)

    def oxigraph_rows():
        def value(term):
            return float(term.value) if hasattr(term, "datatype") and term.datatype.value.endswith("double") else term.value

        names = ["who", "name", "score"]
        return names, [[value(row[name]) for name in names] for row in stores["pyoxigraph"].query(QUERY)]

    cypher = "MATCH (p:person) RETURN p.id AS who, p.name AS name, p.score AS score"
    for library, own, ladybug in [("pandas", "df", "get_as_df"), ("polars", "pl", "get_as_pl")]:
        if importlib.util.find_spec(library) is None:
            print(f"\n{library} is not installed: left out")
            continue
        importlib.import_module(library)
        table = Table(f"A result of {data.rows:,} rows and three columns into {library}")
        table.add("vervet", lambda own=own: getattr(db.query(QUERY), own)())
        if "pyoxigraph" in stores:

            def oxigraph(library=library):
                names, rows = oxigraph_rows()
                module = importlib.import_module(library)
                if library == "pandas":
                    return module.DataFrame(rows, columns=names)
                return module.DataFrame(rows, schema=names, orient="row")

            table.add("pyoxigraph", oxigraph)
        if "ladybug" in stores:
            table.add("ladybug", lambda ladybug=ladybug: getattr(stores["ladybug"].execute(cypher), ladybug)())
        if "maplib" in stores:
            # Its results are frames of polars.
            table.add("maplib", lambda pandas=library == "pandas": stores["maplib"].query(QUERY).to_pandas() if pandas else stores["maplib"].query(QUERY))
        table.run(repeat)

    points = [random.Random(2).randrange(data.rows) for _ in range(2000)]
    table = Table("Point query: the name of one vertex", "µs", 1e6)
    text = f"SELECT ?name {{ ?who <{NAME}> ?name }}"
    iris = [vervet.IRI(f"urn:vervet:vertex:{number}") for number in points]

    def own_points():
        for iri in iris:
            db.query(text, who=iri).rows()
        return len(iris)

    table.add("vervet", own_points)
    if rust:
        command = [rust, str(data.triples), str(len(points)), str(max(repeat, 5))]
        microseconds = float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
        table.add_time("vervet in Rust", microseconds / 1e6)
    if "pyoxigraph" in stores:
        texts = [f"SELECT ?name {{ <urn:vervet:vertex:{number}> <{NAME}> ?name }}" for number in points]

        def oxigraph_points():
            for each in texts:
                for row in stores["pyoxigraph"].query(each):
                    row["name"].value
            return len(texts)

        table.add("pyoxigraph", oxigraph_points)
    if "ladybug" in stores:
        point = "MATCH (p:person) WHERE p.id = $id RETURN p.name"

        def ladybug_points():
            for number in points:
                stores["ladybug"].execute(point, {"id": number}).get_all()
            return len(points)

        table.add("ladybug", ladybug_points)
    if "maplib" in stores:

        def maplib_points():
            for number in points[:200]:
                stores["maplib"].query(f"SELECT ?name {{ <urn:vervet:vertex:{number}> <{NAME}> ?name }}").rows()
            return 200

        table.add("maplib", maplib_points)
    if "rdflib" in against:
        few = min(data.rows, 20_000)
        graph = rdflib_graph(data, few)
        import rdflib
        from rdflib.plugins.sparql import prepareQuery

        prepared = prepareQuery(text)

        def rdflib_points():
            for number in points[:200]:
                list(graph.query(prepared, initBindings={"who": rdflib.URIRef(f"urn:vervet:vertex:{number % few}")}))
            return 200

        table.add(f"rdflib ({few:,} vertices)", rdflib_points)
    table.run(repeat)
    threads(db, stores, data, repeat)
    return db


def threads(db, stores, data, repeat):
    """The same queries in one thread after the other, and in two at once."""
    text = f"SELECT (SUM(?score) AS ?sum) {{ ?who <{SCORE}> ?score FILTER(?score > 0.5) }}"
    single = db.with_options(threads=1)

    def speedup(query):
        def one():
            begun = time.perf_counter()
            query()
            query()
            return time.perf_counter() - begun

        def two():
            workers = [threading.Thread(target=query) for _ in range(2)]
            begun = time.perf_counter()
            for worker in workers:
                worker.start()
            for worker in workers:
                worker.join()
            return time.perf_counter() - begun

        query()
        pairs = [(one(), two()) for _ in range(max(repeat, 3))]
        return min(pair[0] for pair in pairs) / min(pair[1] for pair in pairs)

    print("\n### Two threads: the time of two runs one after the other, by that of two at once\n")
    print("| | aggregate | rows as Python values |\n| --- | ---: | ---: |")
    limited = QUERY + " LIMIT 200000"
    aggregate = speedup(lambda: single.query(text).rows())
    values = speedup(lambda: single.query(limited).rows())
    print(f"| vervet | {aggregate:.2f} | {values:.2f} |")
    if "pyoxigraph" in stores:
        store = stores["pyoxigraph"]
        aggregate = speedup(lambda: list(store.query(text)))
        values = speedup(lambda: [row["name"].value for row in store.query(limited)])
        print(f"| pyoxigraph | {aggregate:.2f} | {values:.2f} |")


def ladybug_of(data):
    import ladybug

    connection = ladybug.Connection(ladybug.Database(":memory:"))
    connection.execute("CREATE NODE TABLE person(id INT64 PRIMARY KEY, name STRING, score DOUBLE)")
    connection.execute(f"COPY person FROM '{data.parquet}'")
    return connection


def maplib_of(data):
    import maplib

    model = maplib.Model()
    model.read(str(data.triples))
    return model


def rdflib_graph(data, rows):
    import rdflib

    graph = rdflib.Graph()
    double = rdflib.XSD.double
    for number in range(rows):
        subject = rdflib.URIRef(f"urn:vervet:vertex:{number}")
        graph.add((subject, rdflib.URIRef(NAME), rdflib.Literal(data.names[number])))
        graph.add((subject, rdflib.URIRef(SCORE), rdflib.Literal(data.scores[number], datatype=double)))
    return graph


def loads(data, against, repeat):
    """A data frame beside the Parquet file with the same rows."""
    table = Table(f"Load of {data.rows:,} vertices with two properties, in memory")
    table.add("vervet", lambda: load_own(data.table))
    table.add("vervet, Parquet file", lambda: load_own(data.parquet))
    if importlib.util.find_spec("pandas") is not None:
        frame = data.table.to_pandas()
        table.add("vervet, pandas", lambda: load_own(frame))
    if "ladybug" in against:
        import ladybug

        def load_ladybug():
            connection = ladybug.Connection(ladybug.Database(":memory:"))
            connection.execute("CREATE NODE TABLE person(id INT64 PRIMARY KEY, name STRING, score DOUBLE)")
            rows = data.table
            connection.execute("COPY person FROM rows")

        table.add("ladybug", load_ladybug)
    if "pyoxigraph" in against:
        import pyoxigraph

        def load_oxigraph():
            store = pyoxigraph.Store()
            store.bulk_load(path=str(data.triples), format=pyoxigraph.RdfFormat.N_TRIPLES)

        table.add("pyoxigraph, N-Triples", load_oxigraph)
    if "maplib" in against:
        table.add("maplib, N-Triples", lambda: maplib_of(data) and None)
    table.run(repeat)


def load_own(source):
    with vervet.open() as db:
        db.load(source, vertices="person", id_column="id")


def algorithms(edges, against, repeat):
    """Algorithms of NetworkX on a random graph."""
    if "networkx" not in against:
        return
    import networkx

    rng = random.Random(3)
    count = max(edges // 10, 10)
    pairs = {(rng.randrange(count), int(count * rng.random() ** 2)) for _ in range(edges)}
    other = networkx.DiGraph()
    other.add_edges_from(pairs)
    db = vervet.open()
    import pyarrow

    source, target = zip(*pairs)
    db.load(pyarrow.table({"source": source, "target": target}), edges="knows", source="source", target="target")
    graph, undirected = db.networkx(edges="knows"), db.networkx(edges="knows", directed=False)
    other_undirected = other.to_undirected()
    first = next(iter(pairs))[0]
    backend = vervet.networkx
    print(f"\nA graph of {len(graph):,} vertices and {graph.number_of_edges():,} edges.")
    communities = networkx.community
    for name, own, theirs in [
        ("PageRank", lambda: backend.pagerank(graph), lambda: networkx.pagerank(other)),
        (
            "Shortest paths from one vertex (lengths)",
            lambda: backend.single_source_shortest_path_length(graph, first),
            lambda: networkx.single_source_shortest_path_length(other, first),
        ),
        (
            "Strongly connected components",
            lambda: list(backend.strongly_connected_components(graph)),
            lambda: list(networkx.strongly_connected_components(other)),
        ),
        (
            "Connected components",
            lambda: list(backend.connected_components(undirected)),
            lambda: list(networkx.connected_components(other_undirected)),
        ),
        ("Core numbers", lambda: backend.core_number(undirected), lambda: networkx.core_number(other_undirected)),
        ("Triangles", lambda: backend.triangles(undirected), lambda: networkx.triangles(other_undirected)),
        (
            "Label propagation",
            lambda: backend.label_propagation_communities(undirected),
            lambda: communities.label_propagation_communities(other_undirected),
        ),
    ]:
        other.__networkx_cache__.clear()
        other_undirected.__networkx_cache__.clear()
        for each in (other, other_undirected):
            if name in ("Core numbers", "Triangles"):
                each.remove_edges_from(list(networkx.selfloop_edges(each)))
        if name == "Core numbers" and undirected._loops():
            db.gremlin("g.V().as('a').outE('knows').where(__.inV().as('a')).drop()")
            graph, undirected = db.networkx(edges="knows"), db.networkx(edges="knows", directed=False)
        table = Table(name)
        table.add("vervet", own)
        table.add("networkx", theirs)
        table.run(repeat)
    small = other_undirected.subgraph(list(other_undirected)[:2000]).copy()
    own_small = backend.from_networkx(small)
    table = Table(f"Betweenness of {small.number_of_nodes():,} vertices and {small.number_of_edges():,} edges")
    table.add("vervet", lambda: backend.betweenness_centrality(own_small))
    table.add("networkx", lambda: networkx.betweenness_centrality(small))
    table.run(1)
    table = Table(f"Louvain on the same graph")
    table.add("vervet", lambda: backend.louvain_communities(own_small))
    table.add("networkx", lambda: communities.louvain_communities(small, seed=1))
    table.run(repeat)


def rdflib_queries(data, against, repeat):
    """Queries of rdflib on its own store and on this one."""
    if "rdflib" not in against:
        return
    import rdflib
    import vervet.rdflib

    few = min(data.rows, 20_000)
    memory = rdflib_graph(data, few)
    own = rdflib.Graph(store=vervet.rdflib.Store())
    for triple in memory:
        own.add(triple)
    len(own)
    for name, text in [
        ("join and filter", f"SELECT ?name {{ ?who <{NAME}> ?name ; <{SCORE}> ?score FILTER(?score > 0.99) }}"),
        ("aggregate", f"SELECT (AVG(?score) AS ?mean) (COUNT(*) AS ?n) {{ ?who <{NAME}> ?name ; <{SCORE}> ?score }}"),
        ("all rows", f"SELECT ?who ?name ?score {{ ?who <{NAME}> ?name ; <{SCORE}> ?score }}"),
        ("the ten best", f"SELECT ?name {{ ?who <{NAME}> ?name ; <{SCORE}> ?score }} ORDER BY DESC(?score) LIMIT 10"),
    ]:
        assert len(list(own.query(text))) == len(list(memory.query(text)))
        table = Table(f"rdflib, {few:,} vertices: {name}")
        table.add("vervet", lambda text=text: list(own.query(text)))
        table.add("rdflib", lambda text=text: list(memory.query(text)))
        table.run(min(repeat, 2))


def machine():
    try:
        commit = subprocess.run(["git", "-C", os.path.dirname(__file__), "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        commit = "?"
    return f"commit {commit}, Python {platform.python_version()}, {os.cpu_count()} cores, {time.strftime('%Y-%m-%d')}"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--against", default=",".join(SYSTEMS), help="peers, separated by commas")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--edges", type=int, default=1_000_000)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--only", default="frames,loads,algorithms,rdflib")
    parser.add_argument("--rust", help="crates/vervet/examples/point_queries.rs, built: measured beside Python")
    options = parser.parse_args()
    wanted = [name for name in options.against.split(",") if name]
    unknown = set(wanted) - set(SYSTEMS)
    if unknown:
        parser.error(f"unknown: {', '.join(sorted(unknown))}; known are {', '.join(SYSTEMS)}")
    against = [name for name in wanted if importlib.util.find_spec(name) is not None]
    for name in wanted:
        if name not in against:
            print(f"{name} is not installed: left out")
    if importlib.util.find_spec("pyarrow") is None:
        sys.exit("pyarrow is needed: pip install pyarrow")
    from importlib.metadata import version

    print(machine(), *[f"{name} {version(name)}" for name in against], sep=", ")
    parts = options.only.split(",")
    with tempfile.TemporaryDirectory() as folder:
        data = Data(options.rows, pathlib.Path(folder))
        if "frames" in parts:
            frames(data, against, options.repeat, options.rust)
        if "loads" in parts:
            loads(data, against, options.repeat)
        if "rdflib" in parts:
            rdflib_queries(data, against, options.repeat)
    if "algorithms" in parts:
        algorithms(options.edges, against, options.repeat)


if __name__ == "__main__":
    main()
