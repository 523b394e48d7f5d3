// Retries transactions that conflict with the Java driver, as docs/guides/conflicts.md shows.
//
// Usage: java Conflicts 127.0.0.1:7878, a server without users and with an empty database.

import static org.apache.tinkerpop.gremlin.process.traversal.AnonymousTraversalSource.traversal;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.apache.tinkerpop.gremlin.driver.Cluster;
import org.apache.tinkerpop.gremlin.driver.remote.DriverRemoteConnection;
// ANCHOR: java
import java.util.concurrent.ThreadLocalRandom;
import java.util.function.Function;
import org.apache.tinkerpop.gremlin.driver.exception.ResponseException;
import org.apache.tinkerpop.gremlin.process.traversal.dsl.graph.GraphTraversalSource;
import org.apache.tinkerpop.gremlin.structure.Transaction;

final class Retry {
    /** Runs the work in a transaction until its commit succeeds; returns its result. */
    static <R> R transact(GraphTraversalSource g, int attempts, Function<GraphTraversalSource, R> work)
            throws InterruptedException {
        for (int attempt = 1;; attempt++) {
            Transaction tx = g.tx();
            try {
                R result = work.apply(tx.begin());
                tx.commit();
                return result;
            } catch (RuntimeException error) {
                if (tx.isOpen()) {
                    tx.rollback();
                }
                if (!isConflict(error) || attempt == attempts) {
                    throw error;
                }
                Thread.sleep(ThreadLocalRandom.current().nextLong(1L << Math.min(attempt, 10)));
            }
        }
    }

    /** The driver wraps the response in other exceptions. */
    static boolean isConflict(Throwable error) {
        for (Throwable cause = error; cause != null; cause = cause.getCause()) {
            if (cause instanceof ResponseException) {
                return ((ResponseException) cause).getResponseStatusCode().getValue() == 596;
            }
        }
        return false;
    }
}
// ANCHOR_END: java

public final class Conflicts {
    private static final int CLIENTS = 4;
    private static final int ROUNDS = 10;

    private static Cluster cluster(String address) {
        String[] parts = address.split(":");
        return Cluster.build(parts[0]).port(Integer.parseInt(parts[1])).create();
    }

    private static boolean increment(GraphTraversalSource g) {
        int count = (Integer) g.V().has("name", "visits").values("count").next();
        g.V().has("name", "visits").property("count", count + 1).iterate();
        return true;
    }

    public static void main(String[] arguments) throws Exception {
        Cluster cluster = cluster(arguments[0]);
        GraphTraversalSource g = traversal().with(DriverRemoteConnection.using(cluster, "g"));
        g.addV("counter").property("name", "visits").property("count", 0).iterate();
        ExecutorService threads = Executors.newFixedThreadPool(CLIENTS);
        List<Future<?>> all = new ArrayList<>();
        for (int client = 0; client < CLIENTS; client++) {
            all.add(threads.submit(() -> {
                for (int round = 0; round < ROUNDS; round++) {
                    Retry.transact(g, 100, Conflicts::increment);
                }
                return null;
            }));
        }
        for (Future<?> one : all) {
            one.get();
        }
        threads.shutdown();
        int total = (Integer) g.V().has("name", "visits").values("count").next();
        if (total != CLIENTS * ROUNDS) {
            throw new AssertionError("expected " + CLIENTS * ROUNDS + ", got " + total);
        }
        // An error that no retry can mend is raised at once.
        try {
            Retry.transact(g, 10, source -> source.V().fail("no").iterate());
            throw new AssertionError("fail() passed");
        } catch (RuntimeException error) {
            if (Retry.isConflict(error)) {
                throw error;
            }
        }
        g.close();
        cluster.close();
        System.out.println("Conflicts: ok");
    }
}
