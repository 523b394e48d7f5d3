// TinkerPop's driver behind the protocol of crates/bench/src/wire/client.rs: connects to a server and measures, by the wall
// clock, what a program that uses it sees. One line of JSON in, one out.

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.tinkerpop.gremlin.driver.Client;
import org.apache.tinkerpop.gremlin.driver.Cluster;
import org.apache.tinkerpop.gremlin.driver.RequestOptions;
import org.apache.tinkerpop.gremlin.driver.Result;
import org.apache.tinkerpop.gremlin.util.MessageSerializer;
import org.apache.tinkerpop.gremlin.util.ser.GraphBinaryMessageSerializerV1;
import org.apache.tinkerpop.gremlin.util.ser.GraphSONMessageSerializerV3;
import org.apache.tinkerpop.shaded.jackson.databind.ObjectMapper;

public final class Driver {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final String ADD = "g.addV('person').property('name', x)";

    private Cluster cluster;
    private Client client;

    @SuppressWarnings("unchecked")
    public static void main(String[] arguments) throws Exception {
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        Driver driver = new Driver();
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            Map<String, Object> answer;
            try {
                answer = driver.work(JSON.readValue(line, Map.class));
            } catch (Exception error) {
                answer = Map.of("trouble", String.valueOf(error));
            }
            out.println(JSON.writeValueAsString(answer));
        }
        System.exit(0);
    }

    private Map<String, Object> work(Map<String, Object> asked) throws Exception {
        return switch ((String) asked.get("do")) {
            case "connect" -> connect(asked);
            case "look" -> look(asked);
            case "one" -> one(asked);
            case "many" -> many(asked);
            case "write" -> write(asked);
            default -> throw new IllegalArgumentException("there is no such work");
        };
    }

    private Map<String, Object> connect(Map<String, Object> asked) {
        if (cluster != null) {
            cluster.close();
        }
        MessageSerializer<?> serializer = asked.get("format").equals("GraphBinary")
            ? new GraphBinaryMessageSerializerV1()
            : new GraphSONMessageSerializerV3();
        int most = 1024;
        cluster = Cluster.build((String) asked.get("host")).port((Integer) asked.get("port")).serializer(serializer)
            .minConnectionPoolSize(1).maxConnectionPoolSize(1).maxInProcessPerConnection(most)
            .minSimultaneousUsagePerConnection(0).maxSimultaneousUsagePerConnection(most).maxWaitForConnection(60_000).create();
        client = cluster.connect();
        client.init();
        return Map.of("connected", true);
    }

    private static RequestOptions options(Map<String, Object> bindings) {
        RequestOptions.Builder builder = RequestOptions.build().language("gremlin-lang");
        bindings.forEach(builder::addParameter);
        return builder.create();
    }

    @SuppressWarnings("unchecked")
    private static List<RequestOptions> parameters(Map<String, Object> asked) {
        List<RequestOptions> all = new ArrayList<>();
        for (Map<String, Object> bindings : (List<Map<String, Object>>) asked.get("parameters")) {
            all.add(options(bindings));
        }
        return all;
    }

    // Numbers of results and their hashes, for each set of parameters.
    private Map<String, Object> look(Map<String, Object> asked) throws Exception {
        List<Integer> rows = new ArrayList<>();
        List<String> hashes = new ArrayList<>();
        for (RequestOptions options : parameters(asked)) {
            List<Result> results = client.submit((String) asked.get("text"), options).all().get();
            rows.add(results.size());
            hashes.add(Long.toHexString(results.stream().mapToLong(result -> Network.hash(result.getObject())).sum()));
        }
        return Map.of("rows", rows, "hashes", hashes);
    }

    // One request after the other: what each took from the call to the last result.
    private Map<String, Object> one(Map<String, Object> asked) throws Exception {
        List<RequestOptions> parameters = parameters(asked);
        String text = (String) asked.get("text");
        List<Double> micros = new ArrayList<>();
        long all = 0;
        // Until compiled: as long as the times themselves.
        for (boolean counted : new boolean[] {false, true}) {
            long until = System.nanoTime() + nanos(asked);
            for (int i = 0; System.nanoTime() < until; i++) {
                long begin = System.nanoTime();
                client.submit(text, parameters.get(i % parameters.size())).all().get();
                all++;
                if (counted) {
                    micros.add((System.nanoTime() - begin) / 1e3);
                }
            }
        }
        return Map.of("micros", micros, "all", all);
    }

    // So many at a time.
    private Map<String, Object> many(Map<String, Object> asked) throws Exception {
        List<RequestOptions> parameters = parameters(asked);
        String text = (String) asked.get("text");
        Map<String, Object> answer = new HashMap<>();
        int all = 0;
        for (boolean counted : new boolean[] {false, true}) {
            Flight flight = new Flight((Integer) asked.get("in_flight"));
            long begin = System.nanoTime();
            int requests = 0;
            for (; System.nanoTime() - begin < nanos(asked); requests++) {
                flight.submit(client, text, parameters.get(requests % parameters.size()));
            }
            flight.land();
            all += requests;
            if (counted) {
                answer.put("requests", requests);
                answer.put("seconds", (System.nanoTime() - begin) / 1e9);
            }
        }
        answer.put("all", all);
        return answer;
    }

    // Vertices one by one; in a session with a commit behind so many of them.
    private Map<String, Object> write(Map<String, Object> asked) throws Exception {
        boolean session = (Boolean) asked.get("session");
        int vertices = (Integer) asked.get("vertices");
        int commitEach = (Integer) asked.get("commit_each");
        Client writer = session ? cluster.connect(UUID.randomUUID().toString()) : client;
        writer.init();
        Flight flight = new Flight((Integer) asked.get("in_flight"));
        RequestOptions none = options(Map.of());
        String name = (String) asked.get("name");
        long begin = System.nanoTime();
        for (int i = 0; i < vertices; i++) {
            flight.submit(writer, ADD, options(Map.of("x", name + i)));
            if (session && ((i + 1) % commitEach == 0 || i + 1 == vertices)) {
                flight.submit(writer, "g.tx().commit()", none);
            }
        }
        flight.land();
        double seconds = (System.nanoTime() - begin) / 1e9;
        if (session) {
            writer.close();
        }
        return Map.of("seconds", seconds);
    }

    private static long nanos(Map<String, Object> asked) {
        return (long) (((Number) asked.get("seconds")).doubleValue() * 1e9);
    }

    // Requests on their way.
    private static final class Flight {
        private final int most;
        private final Semaphore free;
        private final AtomicReference<Throwable> trouble = new AtomicReference<>();

        Flight(int most) {
            this.most = most;
            this.free = new Semaphore(most);
        }

        void submit(Client to, String text, RequestOptions options) throws Exception {
            free.acquire();
            check();
            CompletableFuture<List<Result>> all = to.submitAsync(text, options).thenCompose(results -> results.all());
            all.whenComplete((results, error) -> {
                if (error != null) {
                    trouble.compareAndSet(null, error);
                }
                free.release();
            });
        }

        void land() throws Exception {
            free.acquire(most);
            free.release(most);
            check();
        }

        private void check() throws Exception {
            if (trouble.get() != null) {
                throw new Exception(trouble.get());
            }
        }
    }
}
