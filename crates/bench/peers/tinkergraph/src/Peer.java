// TinkerGraph behind the protocol of crates/bench/src/snb/peer.rs: loads CSV files with typed headers, then runs texts of
// Gremlin through TinkerPop's own grammar and tells rows, hashes of results and times of the CPU.

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import javax.script.Bindings;
import javax.script.SimpleBindings;
import org.apache.tinkerpop.gremlin.jsr223.GremlinLangScriptEngine;
import org.apache.tinkerpop.gremlin.process.traversal.Traversal;
import org.apache.tinkerpop.gremlin.process.traversal.dsl.graph.GraphTraversalSource;
import org.apache.tinkerpop.gremlin.structure.Element;
import org.apache.tinkerpop.gremlin.structure.T;
import org.apache.tinkerpop.gremlin.structure.Vertex;
import org.apache.tinkerpop.gremlin.structure.VertexProperty;
import org.apache.tinkerpop.gremlin.tinkergraph.structure.TinkerGraph;
import org.apache.tinkerpop.shaded.jackson.databind.ObjectMapper;

public final class Peer {
    private static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();
    private static final ObjectMapper JSON = new ObjectMapper();

    private final TinkerGraph graph = TinkerGraph.open();
    private final GremlinLangScriptEngine engine = new GremlinLangScriptEngine();
    private final GraphTraversalSource source = graph.traversal();
    private ExecutorService worker = Executors.newSingleThreadExecutor();

    public static void main(String[] arguments) throws Exception {
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        Peer peer = new Peer();
        long before = THREADS.getCurrentThreadCpuTime();
        peer.load(Path.of(arguments[0]));
        double seconds = (THREADS.getCurrentThreadCpuTime() - before) / 1e9;
        out.println(JSON.writeValueAsString(Map.of("loaded", Map.of("cpu", seconds))));
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            Map<String, Object> answer;
            try {
                answer = peer.operation(JSON.readValue(line, Map.class));
            } catch (ExecutionException error) {
                answer = Map.of("trouble", String.valueOf(error.getCause()));
            }
            out.println(JSON.writeValueAsString(answer));
        }
        System.gc();
        Runtime runtime = Runtime.getRuntime();
        out.println(JSON.writeValueAsString(Map.of("heap", runtime.totalMemory() - runtime.freeMemory())));
        peer.worker.shutdownNow();
    }

    // What our queries look up by value has an index here, as it has there.
    private void load(Path folder) throws IOException {
        for (String key : List.of("name", "firstName")) {
            graph.createIndex(key, Vertex.class);
        }
        List<Path> files;
        try (Stream<Path> all = Files.list(folder)) {
            files = all.filter(file -> file.toString().endsWith(".csv")).sorted().collect(Collectors.toList());
        }
        for (boolean edges : new boolean[] {false, true}) {
            for (Path file : files) {
                try (BufferedReader in = Files.newBufferedReader(file, StandardCharsets.UTF_8)) {
                    String[] header = in.readLine().split("\\|", -1);
                    if (header[0].startsWith(":START_ID") == edges) {
                        rows(file.getFileName().toString().replace(".csv", ""), header, in, edges);
                    }
                }
            }
        }
    }

    private void rows(String name, String[] header, BufferedReader in, boolean edges) throws IOException {
        String relation = edges ? name.split("_")[1] : name;
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] cells = line.split("\\|", -1);
            Element element = edges
                ? vertex(header[0], cells[0]).addEdge(relation, vertex(header[1], cells[1]))
                : null;
            if (!edges) {
                String label = relation;
                for (int i = 1; i < header.length; i++) {
                    label = header[i].equals(":LABEL") ? cells[i] : label;
                }
                element = graph.addVertex(T.id, space(header[0]) + ":" + cells[0], T.label, label);
                element.property("id", Long.valueOf(cells[0]));
            }
            for (int i = edges ? 2 : 1; i < header.length; i++) {
                int colon = header[i].lastIndexOf(':');
                String key = header[i].substring(0, colon);
                if (cells[i].isEmpty() || key.isEmpty()) {
                    continue;
                }
                switch (header[i].substring(colon + 1)) {
                    case "LONG" -> element.property(key, Long.valueOf(cells[i]));
                    case "INT" -> element.property(key, Integer.valueOf(cells[i]));
                    case "STRING[]" -> {
                        for (String part : cells[i].split(";")) {
                            ((Vertex) element).property(VertexProperty.Cardinality.list, key, part);
                        }
                    }
                    default -> element.property(key, cells[i]);
                }
            }
        }
    }

    private Vertex vertex(String column, String id) {
        return graph.vertices(space(column) + ":" + id).next();
    }

    // What stands between the parentheses of `:START_ID(Person)`.
    private static String space(String column) {
        return column.substring(column.indexOf('(') + 1, column.indexOf(')'));
    }

    @SuppressWarnings("unchecked")
    private Map<String, Object> operation(Map<String, Object> asked) throws Exception {
        String text = (String) asked.get("text");
        double seconds = ((Number) asked.get("seconds")).doubleValue();
        double limit = ((Number) asked.get("limit")).doubleValue();
        List<Map<String, Object>> parameters = (List<Map<String, Object>>) asked.get("parameters");
        List<List<Double>> runs = new ArrayList<>();
        List<Object> rows = new ArrayList<>();
        List<Object> hashes = new ArrayList<>();
        long begin = System.nanoTime();
        // Rows and hashes; what is slow is not done for all parameters.
        for (Map<String, Object> values : parameters) {
            runs.add(new ArrayList<>());
            boolean late = (System.nanoTime() - begin) / 1e9 > limit;
            Run run = late ? null : run(text, values, limit);
            rows.add(run == null ? null : run.results.size());
            hashes.add(run == null ? null : Long.toHexString(run.results.stream().mapToLong(Peer::hash).sum()));
        }
        // Until compiled: as long as the times themselves.
        for (boolean counted : new boolean[] {false, true}) {
            begin = System.nanoTime();
            boolean first = true;
            while (first || (System.nanoTime() - begin) / 1e9 < seconds) {
                for (int i = 0; i < parameters.size(); i++) {
                    if (rows.get(i) == null || (System.nanoTime() - begin) / 1e9 > Math.max(8 * seconds, limit)) {
                        continue;
                    }
                    Run run = run(text, parameters.get(i), limit);
                    if (run != null && counted) {
                        runs.get(i).add(run.milliseconds);
                    }
                }
                first = false;
            }
        }
        Map<String, Object> answer = new HashMap<>();
        answer.put("runs", runs);
        answer.put("rows", rows);
        answer.put("hashes", hashes);
        return answer;
    }

    private record Run(List<Object> results, double milliseconds) {}

    // Runs a text; null: it took too long.
    private Run run(String text, Map<String, Object> values, double limit) throws Exception {
        Bindings bindings = new SimpleBindings(new HashMap<>(values));
        bindings.put("g", source);
        Future<Run> future = worker.submit(() -> {
            long before = THREADS.getCurrentThreadCpuTime();
            List<Object> results = (List<Object>) ((Traversal<?, ?>) engine.eval(text, bindings)).toList();
            return new Run(results, (THREADS.getCurrentThreadCpuTime() - before) / 1e6);
        });
        try {
            return future.get((long) (limit * 1000), TimeUnit.MILLISECONDS);
        } catch (TimeoutException late) {
            future.cancel(true);
            worker.shutdownNow();
            worker.awaitTermination(60, TimeUnit.SECONDS);
            worker = Executors.newSingleThreadExecutor();
            return null;
        }
    }

    // FNV-1a of the UTF-8 bytes of the canonical text (crates/bench/src/snb/run.rs).
    private static long hash(Object value) {
        long hash = 0xcbf29ce484222325L;
        for (byte b : canonical(value).getBytes(StandardCharsets.UTF_8)) {
            hash = (hash ^ (b & 0xff)) * 0x100000001b3L;
        }
        return hash;
    }

    private static String canonical(Object value) {
        if (value instanceof Double || value instanceof Float) {
            double number = ((Number) value).doubleValue();
            boolean whole = number == Math.rint(number) && Math.abs(number) < 9e15;
            return whole ? Long.toString((long) number) : Double.toString(number);
        }
        if (value instanceof Map<?, ?> map) {
            return map.entrySet().stream().map(e -> canonical(e.getKey()) + "=" + canonical(e.getValue()))
                .sorted().collect(Collectors.joining(",", "{", "}"));
        }
        if (value instanceof Iterable<?> list) {
            List<String> texts = new ArrayList<>();
            list.forEach(part -> texts.add(canonical(part)));
            return texts.stream().sorted().collect(Collectors.joining(",", "[", "]"));
        }
        if (value instanceof Vertex vertex) {
            return "v[" + vertex.id() + "]";
        }
        return String.valueOf(value);
    }
}
