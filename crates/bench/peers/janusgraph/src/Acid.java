// The ACID tests of LDBC (TPCTC 2020) on JanusGraph, as crates/conformance/src/acid has them: rounds with new vertices each, whose
// clients are transactions on eight threads. Counts the rounds in which an anomaly was seen.
//
// Acid SECONDS [lock] [TESTS]: each test runs for this long. With `lock`, keys have ConsistencyModifier.LOCK, and `knows` is a
// label of multiplicity SIMPLE with it: JanusGraph locks what is unique only. With VERVET_ACID_BREAK, rollbacks are commits, and
// other transactions are two, so that RB, G1a, G1b, G1c, IMP and PMP must fail.

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.TreeMap;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.tinkerpop.gremlin.process.traversal.dsl.graph.__;
import org.apache.tinkerpop.gremlin.structure.Direction;
import org.apache.tinkerpop.gremlin.structure.Edge;
import org.apache.tinkerpop.gremlin.structure.Vertex;
import org.apache.tinkerpop.gremlin.structure.VertexProperty;
import org.janusgraph.core.Cardinality;
import org.janusgraph.core.JanusGraph;
import org.janusgraph.core.JanusGraphException;
import org.janusgraph.core.JanusGraphTransaction;
import org.janusgraph.core.Multiplicity;
import org.janusgraph.core.schema.ConsistencyModifier;
import org.janusgraph.core.schema.JanusGraphManagement;

public final class Acid {
    private static final int THREADS = 8;
    private static final int SLEEP_MS = 4;
    private static final boolean BREAK = System.getenv("VERVET_ACID_BREAK") != null;

    // Counts the anomalies that it sees.
    private interface Round {
        void run() throws Exception;
    }

    private interface Work<T> {
        T in(JanusGraphTransaction transaction) throws Exception;
    }

    private final JanusGraph graph;
    private final ExecutorService threads = Executors.newFixedThreadPool(THREADS);
    // The second part of a transaction that `split` has broken.
    private final ThreadLocal<JanusGraphTransaction> second = new ThreadLocal<>();
    private final AtomicInteger commits = new AtomicInteger();
    private final AtomicInteger aborts = new AtomicInteger();
    private final Map<String, Integer> anomalies = new TreeMap<>();

    private Acid(JanusGraph graph) {
        this.graph = graph;
    }

    public static void main(String[] arguments) throws Exception {
        Graphs.endOnFailure();
        double seconds = Double.parseDouble(arguments[0]);
        List<String> others = new ArrayList<>(Arrays.asList(arguments).subList(1, arguments.length));
        boolean locks = others.remove("lock");
        JanusGraph graph = Graphs.create(Graphs.builder("acid").set("ids.block-size", 1_000_000));
        schema(graph, locks);
        System.out.println("| test | rounds | rounds with an anomaly | anomalies | commits | aborts |");
        Acid acid = new Acid(graph);
        Map<String, Round> tests = new LinkedHashMap<>();
        tests.put("C", acid::commit);
        tests.put("RB", acid::rollBack);
        tests.put("G0", acid::dirtyWrite);
        tests.put("G1a", acid::abortedRead);
        tests.put("G1b", acid::intermediateRead);
        tests.put("G1c", acid::circularInformationFlow);
        tests.put("OTV", acid::observedTransactionVanishes);
        tests.put("FR", acid::fracturedRead);
        tests.put("IMP", acid::itemManyPreceders);
        tests.put("PMP", acid::predicateManyPreceders);
        tests.put("LU", acid::lostUpdate);
        tests.put("WS", acid::writeSkew);
        for (Map.Entry<String, Round> test : tests.entrySet()) {
            if (!others.isEmpty() && !others.contains(test.getKey())) {
                continue;
            }
            acid.commits.set(0);
            acid.aborts.set(0);
            acid.anomalies.clear();
            int rounds = 0;
            int wrong = 0;
            for (long begin = System.nanoTime(); (System.nanoTime() - begin) / 1e9 < seconds; rounds++) {
                int before = acid.anomalies.values().stream().mapToInt(count -> count).sum();
                test.getValue().run();
                wrong += acid.anomalies.values().stream().mapToInt(count -> count).sum() > before ? 1 : 0;
            }
            System.out.printf(Locale.ROOT, "| %s | %d | %d | %s | %d | %d |%n",
                test.getKey(), rounds, wrong, acid.anomalies, acid.commits.get(), acid.aborts.get());
        }
        acid.threads.shutdown();
        graph.close();
        System.exit(0);
    }

    private static void schema(JanusGraph graph, boolean locks) {
        JanusGraphManagement management = graph.openManagement();
        management.makeVertexLabel("Person").make();
        management.makeVertexLabel("Post").make();
        for (String name : List.of("version", "friends", "value")) {
            management.makePropertyKey(name).dataType(Integer.class).make();
        }
        management.makePropertyKey("history").dataType(String.class).make();
        management.makePropertyKey("name").dataType(String.class).make();
        management.makePropertyKey("email").dataType(String.class).cardinality(Cardinality.LIST).make();
        management.makeEdgeLabel("knows").multiplicity(locks ? Multiplicity.SIMPLE : Multiplicity.MULTI).make();
        management.makeEdgeLabel("likes").make();
        if (locks) {
            for (String name : List.of("version", "friends", "value", "history", "name")) {
                management.setConsistency(management.getPropertyKey(name), ConsistencyModifier.LOCK);
            }
            management.setConsistency(management.getEdgeLabel("knows"), ConsistencyModifier.LOCK);
        }
        management.commit();
    }

    // Clients.

    private synchronized void anomaly(String what) {
        anomalies.merge(what, 1, Integer::sum);
    }

    // Runs all, at most THREADS at a time, started in this order; returns what they return, without nulls.
    private <T> List<T> all(List<Callable<T>> clients) throws Exception {
        List<T> results = new ArrayList<>();
        for (Future<T> one : threads.invokeAll(clients)) {
            results.add(one.get());
        }
        results.removeIf(Objects::isNull);
        return results;
    }

    // A transaction; null: it aborted.
    private <T> T transaction(Work<T> work) throws Exception {
        JanusGraphTransaction transaction = graph.newTransaction();
        try {
            T result = work.in(transaction);
            (second.get() == null ? transaction : second.get()).commit();
            commits.incrementAndGet();
            return result;
        } catch (JanusGraphException error) {
            if (transaction.isOpen()) {
                transaction.rollback();
            }
            aborts.incrementAndGet();
            return null;
        } finally {
            second.remove();
        }
    }

    // With VERVET_ACID_BREAK, commits a transaction in its middle and begins another.
    private JanusGraphTransaction split(JanusGraphTransaction transaction) {
        if (!BREAK) {
            return transaction;
        }
        transaction.commit();
        second.set(graph.newTransaction());
        return second.get();
    }

    private <T> T rolledBack(Work<T> work) throws Exception {
        JanusGraphTransaction transaction = graph.newTransaction();
        T result = work.in(transaction);
        if (BREAK) {
            transaction.commit();
        } else {
            transaction.rollback();
        }
        return result;
    }

    private static void sleep() throws InterruptedException {
        Thread.sleep(0, ThreadLocalRandom.current().nextInt(500_000, 999_999));
        Thread.sleep(ThreadLocalRandom.current().nextInt(SLEEP_MS * 3 / 2));
    }

    private static void linger() throws InterruptedException {
        if (ThreadLocalRandom.current().nextBoolean()) {
            Thread.sleep(1);
        }
    }

    // New persons, each with this property.
    private long[] persons(int count, String key, Object value) throws Exception {
        return transaction(transaction -> {
            long[] ids = new long[count];
            for (int i = 0; i < count; i++) {
                Vertex vertex = transaction.addVertex("Person");
                vertex.property(key, value);
                ids[i] = (Long) vertex.id();
            }
            return ids;
        });
    }

    private static Vertex vertex(JanusGraphTransaction transaction, long id) {
        return transaction.traversal().V(id).next();
    }

    private static int get(JanusGraphTransaction transaction, long id, String key) {
        return vertex(transaction, id).<Integer>value(key);
    }

    private static void set(JanusGraphTransaction transaction, long id, String key, int value) {
        vertex(transaction, id).property(key, value);
    }

    // Numbers of writers from 1 on, and zeros for readers, in random order.
    private static List<Integer> writersAndReaders(int writers, int readers) {
        List<Integer> clients = new ArrayList<>(Collections.nCopies(readers, 0));
        for (int number = 1; number <= writers; number++) {
            clients.add(number);
        }
        Collections.shuffle(clients);
        return clients;
    }

    private interface Client<T> {
        T run(int number) throws Exception;
    }

    private <T> List<T> each(List<Integer> numbers, Client<T> client) throws Exception {
        List<Callable<T>> clients = new ArrayList<>();
        for (int number : numbers) {
            clients.add(() -> client.run(number));
        }
        return all(clients);
    }

    // Runs readers on all other threads, again and again while the writer runs; returns what they have read.
    private <T> List<T> besideAWriter(Round writer, Callable<T> reader) throws Exception {
        AtomicBoolean isDone = new AtomicBoolean();
        List<T> seen = Collections.synchronizedList(new ArrayList<>());
        each(writersAndReaders(1, THREADS - 1), number -> {
            if (number == 1) {
                try {
                    writer.run();
                } finally {
                    isDone.set(true);
                }
            }
            while (number == 0 && !isDone.get()) {
                seen.add(reader.call());
            }
            return null;
        });
        seen.removeIf(Objects::isNull);
        return seen;
    }

    private static List<Integer> upTo(int count) {
        return writersAndReaders(count, 0);
    }

    // Atomicity. A reader sees emails of a person, friends, and names of friends.

    private static List<Long> counts(JanusGraphTransaction transaction, long person) {
        var source = transaction.traversal();
        return List.of(source.V(person).values("email").count().next(), source.V(person).out("knows").count().next(),
            source.V(person).out("knows").values("name").count().next());
    }

    private void atomicity(Client<?> write, long person, List<List<Long>> allowed) throws Exception {
        List<List<Long>> seen = besideAWriter(() -> write.run(1), () -> transaction(transaction -> counts(transaction, person)));
        for (List<Long> one : seen) {
            if (!allowed.contains(one)) {
                anomaly("a reader sees a part");
            }
        }
        if (!allowed.get(allowed.size() - 1).equals(transaction(transaction -> counts(transaction, person)))) {
            anomaly("the end differs");
        }
    }

    private long personWithEmail() throws Exception {
        return persons(1, "email", "a")[0];
    }

    private void commit() throws Exception {
        long person = personWithEmail();
        atomicity(number -> transaction(transaction -> {
            Vertex vertex = vertex(transaction, person);
            vertex.property(VertexProperty.Cardinality.list, "email", "new");
            sleep();
            Vertex friend = transaction.addVertex("Person");
            friend.property("name", "Carol");
            sleep();
            vertex.addEdge("knows", friend);
            return true;
        }), person, List.of(List.of(1L, 0L, 0L), List.of(2L, 1L, 1L)));
    }

    private void rollBack() throws Exception {
        long person = personWithEmail();
        atomicity(number -> rolledBack(transaction -> {
            vertex(transaction, person)
                .property(VertexProperty.Cardinality.list, "email", "new");
            sleep();
            return true;
        }), person, List.of(List.of(1L, 0L, 0L)));
    }

    // One or two vertices.

    private void dirtyWrite() throws Exception {
        long[] pair = persons(2, "history", "0");
        transaction(transaction ->
            vertex(transaction, pair[0]).addEdge("knows", vertex(transaction, pair[1]), "history", "0"));
        List<Integer> committed = each(upTo(50), number -> transaction(transaction -> {
            Vertex one = vertex(transaction, pair[0]);
            Vertex two = vertex(transaction, pair[1]);
            Edge edge = one.edges(Direction.OUT, "knows").next();
            for (var element : List.of(one, two, edge)) {
                element.property("history", element.<String>value("history") + "," + number);
            }
            linger();
            return number;
        }));
        List<String> lists = transaction(transaction -> {
            Vertex one = vertex(transaction, pair[0]);
            return List.of(one.<String>value("history"), vertex(transaction, pair[1]).value("history"),
                one.edges(Direction.OUT, "knows").next().value("history"));
        });
        if (!lists.get(1).equals(lists.get(0)) || !lists.get(2).equals(lists.get(0))) {
            anomaly("lists differ");
        }
        if (lists.get(0).split(",").length != committed.size() + 1) {
            anomaly("committed numbers are missing");
        }
    }

    private void abortedRead() throws Exception {
        long person = persons(1, "version", 1)[0];
        List<Integer> seen = each(writersAndReaders(5, 20), number -> {
            if (number == 0) {
                sleep();
                return transaction(transaction -> get(transaction, person, "version"));
            }
            return rolledBack(transaction -> {
                get(transaction, person, "version");
                sleep();
                set(transaction, person, "version", 2);
                sleep();
                return null;
            });
        });
        seen.stream().filter(version -> version != 1).forEach(version -> anomaly("version never committed"));
    }

    private void intermediateRead() throws Exception {
        long person = persons(1, "version", 99)[0];
        List<Integer> seen = each(writersAndReaders(10, 100), number -> {
            if (number == 0) {
                sleep();
                return transaction(transaction -> get(transaction, person, "version"));
            }
            return transaction(transaction -> {
                set(transaction, person, "version", 100 + 2 * number);
                sleep();
                set(split(transaction), person, "version", 101 + 2 * number);
                return null;
            });
        });
        seen.stream().filter(version -> version % 2 == 0).forEach(version -> anomaly("version between two steps"));
    }

    private void circularInformationFlow() throws Exception {
        long[] pair = persons(2, "version", 0);
        Map<Integer, Integer> read = new TreeMap<>();
        for (int[] one : each(upTo(100), number -> transaction(transaction -> {
            int own = ThreadLocalRandom.current().nextInt(2);
            set(transaction, pair[own], "version", number);
            linger();
            return new int[] {number, get(split(transaction), pair[1 - own], "version")};
        }))) {
            read.put(one[0], one[1]);
        }
        read.forEach((number, from) -> {
            if (from != 0 && !read.containsKey(from)) {
                anomaly("read from an aborted transaction");
            } else if (number < from && number.equals(read.get(from))) {
                anomaly("two read from each other");
            }
        });
    }

    // Versions of four persons in a cycle, which one writer counts up together.

    private List<int[][]> cycle() throws Exception {
        long[] persons = persons(4, "version", 0);
        transaction(transaction -> {
            for (int i = 0; i < 4; i++) {
                vertex(transaction, persons[i]).addEdge("knows", vertex(transaction, persons[(i + 1) % 4]));
            }
            return true;
        });
        return besideAWriter(() -> {
            for (int write = 0; write < 10; write++) {
                transaction(transaction -> {
                    for (long person : persons) {
                        set(transaction, person, "version", get(transaction, person, "version") + 1);
                    }
                    return true;
                });
            }
        }, () -> transaction(transaction -> {
            int[] first = versions(transaction, persons[0]);
            sleep();
            return new int[][] {first, versions(transaction, persons[0])};
        }));
    }

    private static int[] versions(JanusGraphTransaction transaction, long person) {
        List<Object> found = transaction.traversal().V(person).emit().repeat(__.out("knows"))
            .times(3).values("version").toList();
        return found.stream().mapToInt(version -> (Integer) version).toArray();
    }

    private void observedTransactionVanishes() throws Exception {
        for (int[][] seen : cycle()) {
            if (Arrays.stream(seen[0]).max().getAsInt() > Arrays.stream(seen[1]).min().getAsInt()) {
                anomaly("a version seen before has vanished");
            }
        }
    }

    private void fracturedRead() throws Exception {
        for (int[][] seen : cycle()) {
            if (!Arrays.equals(seen[0], seen[1])) {
                anomaly("two reads differ");
            }
            if (Arrays.stream(seen[0]).distinct().count() > 1) {
                anomaly("one read has several versions");
            }
        }
    }

    private void itemManyPreceders() throws Exception {
        long person = persons(1, "version", 1)[0];
        each(writersAndReaders(10, 10), number -> {
            if (number == 0) {
                return transaction(transaction -> {
                    int first = get(transaction, person, "version");
                    sleep();
                    if (first != get(split(transaction), person, "version")) {
                        anomaly("two reads differ");
                    }
                    return true;
                });
            }
            sleep();
            return transaction(transaction -> {
                set(transaction, person, "version", get(transaction, person, "version") + 1);
                return true;
            });
        });
    }

    private void predicateManyPreceders() throws Exception {
        long[] persons = persons(11, "name", "Alice");
        long post = transaction(transaction -> (Long) transaction.addVertex("Post").id());
        each(writersAndReaders(10, 10), number -> {
            if (number == 0) {
                return transaction(transaction -> {
                    long first = transaction.traversal().V(post).in("likes").hasLabel("Person").count().next();
                    sleep();
                    if (first != split(transaction).traversal().V(post).in("likes").hasLabel("Person").count().next()) {
                        anomaly("two counts differ");
                    }
                    return true;
                });
            }
            sleep();
            return transaction(transaction -> {
                vertex(transaction, persons[number]).addEdge("likes", vertex(transaction, post));
                return true;
            });
        });
    }

    // Updates.

    private void lostUpdate() throws Exception {
        long person = persons(1, "friends", 0)[0];
        int done = each(upTo(50), number -> transaction(transaction -> {
            Vertex friend = transaction.addVertex("Person");
            vertex(transaction, person).addEdge("knows", friend);
            linger();
            set(transaction, person, "friends", get(transaction, person, "friends") + 1);
            return true;
        })).size();
        transaction(transaction -> {
            if (get(transaction, person, "friends") != done) {
                anomaly("updates lost");
            }
            if (transaction.traversal().V(person).out("knows").count().next() != done) {
                anomaly("edges lost");
            }
            return true;
        });
    }

    private void writeSkew() throws Exception {
        long[] persons = persons(20, "value", 75);
        each(upTo(50), number -> transaction(transaction -> {
            int pair = 2 * ThreadLocalRandom.current().nextInt(10);
            int[] values = {get(transaction, persons[pair], "value"), get(transaction, persons[pair + 1], "value")};
            if (values[0] + values[1] < 100) {
                return true;
            }
            sleep();
            int which = ThreadLocalRandom.current().nextInt(2);
            set(transaction, persons[pair + which], "value", values[which] - 100);
            return true;
        }));
        transaction(transaction -> {
            for (int pair = 0; pair < 20; pair += 2) {
                if (get(transaction, persons[pair], "value") + get(transaction, persons[pair + 1], "value") <= 0) {
                    anomaly("skewed pairs");
                }
            }
            return true;
        });
    }
}
