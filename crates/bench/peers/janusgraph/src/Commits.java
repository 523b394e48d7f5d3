// Small commits, in the shape of crates/bench/src/cluster_transactions.rs: 4,096 vertices; each transaction of a client adds one
// edge between two of them, with a label of the client's own, and commits.
//
// Commits CLIENTS SECONDS [WARM-UP SECONDS]

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.janusgraph.core.JanusGraph;
import org.janusgraph.core.JanusGraphTransaction;
import org.janusgraph.core.JanusGraphVertex;
import org.janusgraph.core.schema.JanusGraphManagement;

public final class Commits {
    private static final int VERTICES = 4_096;

    private final JanusGraph graph;
    private final long[] ids;
    // Whether a transaction reads that its vertices exist, JanusGraph's default for vertices by id.
    private final boolean looks;

    private Commits(JanusGraph graph, long[] ids, boolean looks) {
        this.graph = graph;
        this.ids = ids;
        this.looks = looks;
    }

    public static void main(String[] arguments) throws Exception {
        Graphs.endOnFailure();
        int clients = Integer.parseInt(arguments[0]);
        double seconds = Double.parseDouble(arguments[1]);
        double warmUp = arguments.length > 2 ? Double.parseDouble(arguments[2]) : 20;
        JanusGraph graph = Graphs.create(Graphs.builder("commits").set("ids.block-size", 1_000_000));
        JanusGraphManagement management = graph.openManagement();
        management.makeVertexLabel("thing").make();
        for (int client = 0; client < clients; client++) {
            management.makeEdgeLabel("link" + client).make();
        }
        management.commit();
        JanusGraphTransaction start = graph.newTransaction();
        List<JanusGraphVertex> vertices = new ArrayList<>();
        for (int number = 0; number < VERTICES; number++) {
            vertices.add(start.addVertex("thing"));
        }
        start.commit();
        long[] ids = vertices.stream().mapToLong(vertex -> (Long) vertex.id()).toArray();
        System.out.println("| look-ups | clients | commits/s | p50 ms | p99 ms | CPU ms / commit: JanusGraph | Cassandra |");
        long[] first = new long[clients];
        for (boolean looks : new boolean[] {true, false}) {
            Commits commits = new Commits(graph, ids, looks);
            commits.run(clients, warmUp, first);
            double[] before = Graphs.cpu();
            long begin = System.nanoTime();
            double[] milliseconds = commits.run(clients, seconds, first);
            double took = (System.nanoTime() - begin) / 1e9;
            double[] after = Graphs.cpu();
            int count = milliseconds.length;
            System.out.printf(Locale.ROOT, "| %s | %d | %.0f | %.3f | %.3f | %.3f | %.3f |%n", looks ? "yes" : "no", clients,
                count / took, milliseconds[count / 2], milliseconds[count * 99 / 100],
                (after[0] - before[0]) * 1e3 / count, (after[1] - before[1]) * 1e3 / count);
        }
        long edges = 0;
        for (long id : ids) {
            JanusGraphTransaction read = graph.newTransaction();
            edges += read.traversal().V(id).outE().count().next();
            read.rollback();
        }
        long expected = Arrays.stream(first).sum();
        System.out.println(edges == expected ? "all " + edges + " edges are there" : edges + " edges in place of " + expected);
        graph.close();
        System.exit(edges == expected ? 0 : 1);
    }

    // Runs all clients for some seconds, from the number of each one's next edge on; returns sorted times.
    private double[] run(int clients, double seconds, long[] next) throws Exception {
        ExecutorService threads = Executors.newFixedThreadPool(clients);
        long end = System.nanoTime() + (long) (seconds * 1e9);
        List<Future<List<Double>>> running = new ArrayList<>();
        for (int client = 0; client < clients; client++) {
            int own = client;
            running.add(threads.submit(() -> {
                List<Double> times = new ArrayList<>();
                for (long begin = System.nanoTime(); begin < end;) {
                    insert(own, next[own]++);
                    long now = System.nanoTime();
                    times.add((now - begin) / 1e6);
                    begin = now;
                }
                return times;
            }));
        }
        List<Double> all = new ArrayList<>();
        for (Future<List<Double>> one : running) {
            all.addAll(one.get());
        }
        threads.shutdown();
        return all.stream().mapToDouble(time -> time).sorted().toArray();
    }

    private void insert(int client, long number) {
        int from = (int) (number % VERTICES);
        int to = (int) ((from + 1 + number / VERTICES) % VERTICES);
        JanusGraphTransaction transaction =
            looks ? graph.newTransaction() : graph.buildTransaction().checkExternalVertexExistence(false).start();
        transaction.getVertex(ids[from]).addEdge("link" + client, transaction.getVertex(ids[to]));
        transaction.commit();
    }
}
