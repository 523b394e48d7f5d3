// Tests a running server through the Java driver.
//
// Usage: java Client 127.0.0.1:7878 127.0.0.1:7879, an empty server and one with the users of tests/server/users.rs.
// Each check runs with GraphBinary and with GraphSON 3.

import static org.apache.tinkerpop.gremlin.process.traversal.AnonymousTraversalSource.traversal;

import java.math.BigDecimal;
import java.math.BigInteger;
import java.time.OffsetDateTime;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.UUID;
import java.util.concurrent.Callable;
import org.apache.tinkerpop.gremlin.driver.Cluster;
import org.apache.tinkerpop.gremlin.driver.RequestOptions;
import org.apache.tinkerpop.gremlin.driver.Result;
import org.apache.tinkerpop.gremlin.driver.exception.ResponseException;
import org.apache.tinkerpop.gremlin.driver.remote.DriverRemoteConnection;
import org.apache.tinkerpop.gremlin.process.traversal.Order;
import org.apache.tinkerpop.gremlin.process.traversal.P;
import org.apache.tinkerpop.gremlin.process.traversal.dsl.graph.GraphTraversalSource;
import org.apache.tinkerpop.gremlin.process.traversal.dsl.graph.__;
import org.apache.tinkerpop.gremlin.structure.Edge;
import org.apache.tinkerpop.gremlin.structure.T;
import org.apache.tinkerpop.gremlin.structure.Transaction;
import org.apache.tinkerpop.gremlin.structure.Vertex;
import org.apache.tinkerpop.gremlin.util.MessageSerializer;
import org.apache.tinkerpop.gremlin.util.ser.GraphBinaryMessageSerializerV1;
import org.apache.tinkerpop.gremlin.util.ser.GraphSONMessageSerializerV3;

public final class Client {
    private static int checks = 0;

    private static void check(Object actual, Object expected) {
        if (!Objects.equals(actual, expected)) {
            throw new AssertionError("expected " + expected + ", got " + actual);
        }
        checks++;
    }

    private static ResponseException refused(int code, Callable<?> work) {
        try {
            Object result = work.call();
            throw new AssertionError("expected " + code + ", got " + result);
        } catch (Exception error) {
            for (Throwable cause = error; cause != null; cause = cause.getCause()) {
                if (cause instanceof ResponseException) {
                    ResponseException response = (ResponseException) cause;
                    check(response.getResponseStatusCode().getValue(), code);
                    return response;
                }
            }
            throw new AssertionError("expected " + code, error);
        }
    }

    private static Cluster cluster(String address, MessageSerializer<?> serializer, String name, String password) {
        String[] parts = address.split(":");
        Cluster.Builder builder = Cluster.build(parts[0]).port(Integer.parseInt(parts[1])).serializer(serializer);
        return (name == null ? builder : builder.credentials(name, password)).create();
    }

    private static void walk(GraphTraversalSource g) {
        g.V().drop().iterate();
        Vertex marko = g.addV("person").property(T.id, 1).property("name", "marko").property("age", 29).next();
        check(marko.label(), "person");
        check(((Number) marko.id()).intValue(), 1);
        g.addV("person").property(T.id, 2).property("name", "vadas").property("age", 27).iterate();
        g.addV("software").property(T.id, "lop").property("name", "lop").iterate();
        Edge edge = g.V(1).addE("knows").to(__.V(2)).property("weight", 0.5).next();
        check(edge.label(), "knows");
        g.V(1).addE("created").to(__.V("lop")).iterate();
        check(g.V().has("age", P.gt(20)).order().by("age", Order.desc).values("name").toList(), Arrays.asList("marko", "vadas"));
        check(g.V(1).out().values("name").toSet(), new HashSet<>(Arrays.asList("vadas", "lop")));
        check(g.V(1).repeat(__.out()).until(__.has("name", "lop")).path().by("name").next().objects(), Arrays.asList("marko", "lop"));
        Map<Object, Long> groups = g.V().groupCount().by(T.label).next();
        check(groups, Map.of("person", 2L, "software", 1L));
        check(g.V(1).hasNext() && !g.V(99).hasNext(), true);
        Map<Object, Object> found = g.V(1).elementMap().next();
        check(found.get("name") + " " + found.get(T.label), "marko person");
        check(g.V(1).next().property("age").value(), 29);
        check(g.with("materializeProperties", "tokens").V(1).next().property("age").isPresent(), false);
        check(g.inject(1).repeat(__.identity()).emit().limit(1000).toList().size(), 1000);
        check(g.V().both().both().both().both().count().next(), (long) g.V().both().both().both().both().barrier().toList().size());
        // Schema queries of tools.
        check(g.V().label().dedup().order().toList(), Arrays.asList("person", "software"));
        check(g.E().label().groupCount().next(), Map.of("knows", 1L, "created", 1L));
        check(g.V().properties().key().dedup().order().toList(), Arrays.asList("age", "name"));
    }

    private static void values(GraphTraversalSource g) {
        List<Object> some = new ArrayList<>(Arrays.asList(
            "ünïcode 🦀", true, (byte) 1, (short) 2, 3, 4L, 0.5f, 0.25, Double.POSITIVE_INFINITY, 'c',
            new BigInteger("1180591620717411303424"), new BigDecimal("12345678901234567890.123"),
            UUID.fromString("41d2e28a-20a4-4ab0-b379-d810dede3786"), OffsetDateTime.parse("2026-11-22T12:30:15Z"),
            Arrays.asList(1, "a", Arrays.asList(2L)), new HashSet<>(Arrays.asList(1, 2))));
        Map<Object, Object> map = new LinkedHashMap<>();
        map.put("a", 1);
        map.put(2L, Arrays.asList("b"));
        some.add(map);
        for (Object value : some) {
            check(g.addV("v").property("value", value).values("value").next(), value);
            check(g.inject(value).next(), value);
        }
    }

    private static List<Object> all(org.apache.tinkerpop.gremlin.driver.Client client, String text) throws Exception {
        List<Object> all = new ArrayList<>();
        for (Result result : client.submit(text).all().get()) {
            all.add(result.getObject());
        }
        return all;
    }

    private static void texts(org.apache.tinkerpop.gremlin.driver.Client client) throws Exception {
        check(client.submit("g.V(x).values('name')", Map.of("x", 1)).one().getString(), "marko");
        check(client.submit("g.inject(1).repeat(identity()).emit().limit(300)").all().get().size(), 300);
        RequestOptions lang = RequestOptions.build().language("gremlin-lang").batchSize(100).timeout(10_000).create();
        check(client.submit("g.inject(1).repeat(identity()).emit().limit(300)", lang).all().get().size(), 300);
        check(all(client, "g.V().hasLabel('none')"), new ArrayList<>());
        ResponseException error = refused(597, () -> client.submit("g.V().oout()").all().get());
        check(error.getMessage().contains("did you mean"), true);
        check(error.getRemoteExceptionHierarchy().get(), Arrays.asList("vervet.query"));
        RequestOptions soon = RequestOptions.build().timeout(100).create();
        refused(598, () -> client.submit("g.inject(1).repeat(identity())", soon).all().get());
        refused(595, () -> client.submit("g.V().fail('not today')").all().get());
        refused(500, () -> client.submit("g.addV().property(T.id, 1)").all().get());
        check(all(client, "g.V(1).values('age')"), Arrays.asList((Object) 29));
    }

    private static void transactions(Cluster cluster, GraphTraversalSource g) throws Exception {
        long before = g.V().count().next();
        Transaction tx = g.tx();
        GraphTraversalSource gtx = tx.begin();
        gtx.addV("tx").iterate();
        check(gtx.V().count().next(), before + 1);
        check(g.V().count().next(), before);
        tx.commit();
        check(g.V().count().next(), before + 1);
        tx = g.tx();
        gtx = tx.begin();
        gtx.addV("tx").iterate();
        tx.rollback();
        check(g.V().count().next(), before + 1);
        // Two conflicting transactions.
        Transaction[] both = {g.tx(), g.tx()};
        for (Transaction one : both) {
            GraphTraversalSource source = one.begin();
            int age = (Integer) source.V(1).values("age").next();
            source.V(1).property("age", age + 1).iterate();
        }
        both[0].commit();
        refused(596, () -> {
            both[1].commit();
            return null;
        });
        check(g.V(1).values("age").next(), 30);
        // Scripts in a session.
        org.apache.tinkerpop.gremlin.driver.Client session = cluster.connect(UUID.randomUUID().toString());
        all(session, "g.addV('tx')");
        all(session, "g.tx().commit()");
        all(session, "g.addV('tx')");
        all(session, "g.tx().rollback()");
        session.close();
        check(g.V().count().next(), before + 2);
        // A session that ends each of its transactions itself.
        org.apache.tinkerpop.gremlin.driver.Client managed = cluster.connect(UUID.randomUUID().toString(), true);
        all(managed, "g.addV('tx')");
        check(g.V().count().next(), before + 3);
        managed.close();
    }

    private static void users(String address, MessageSerializer<?> serializer) {
        Cluster root = cluster(address, serializer, "root", "root");
        GraphTraversalSource g = traversal().with(DriverRemoteConnection.using(root, "g"));
        g.addV("guarded").iterate();
        check(g.V().hasNext(), true);
        root.close();
        Cluster reader = cluster(address, serializer, "reader", "let me in");
        GraphTraversalSource read = traversal().with(DriverRemoteConnection.using(reader, "g"));
        check(read.V().hasNext(), true);
        refused(403, () -> read.addV().iterate());
        reader.close();
        Cluster wrong = cluster(address, serializer, "reader", "wrong");
        GraphTraversalSource none = traversal().with(DriverRemoteConnection.using(wrong, "g"));
        refused(401, () -> none.V().toList());
        wrong.close();
    }

    public static void main(String[] addresses) {
        try {
            run(addresses);
            System.exit(0);
        } catch (Throwable error) {
            // The threads of the driver would keep the process alive.
            error.printStackTrace();
            System.exit(1);
        }
    }

    private static void run(String[] addresses) throws Exception {
        for (MessageSerializer<?> serializer : Arrays.asList(
            new GraphBinaryMessageSerializerV1(), new GraphSONMessageSerializerV3())) {
            int before = checks;
            Cluster cluster = cluster(addresses[0], serializer, null, null);
            GraphTraversalSource g = traversal().with(DriverRemoteConnection.using(cluster, "g"));
            walk(g);
            texts(cluster.connect());
            transactions(cluster, g);
            values(g);
            users(addresses[1], serializer);
            cluster.close();
            System.out.println(serializer.getClass().getSimpleName() + ": " + (checks - before) + " checks");
        }
        System.out.println("gremlin-driver: ok");
    }
}
