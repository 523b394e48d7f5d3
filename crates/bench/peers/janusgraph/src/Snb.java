// JanusGraph behind the protocol of crates/bench/src/snb/peer.rs: loads CSV files with typed headers, then runs texts of Gremlin
// through TinkerPop's own grammar and tells rows, hashes of results and times. Each run is a transaction of its own.
//
// The times that the protocol has are those of the processor in the thread that runs the text: a lower bound, without the
// threads of the driver and without Cassandra. The whole goes to standard error, one line for each operation.

import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import javax.script.Bindings;
import javax.script.SimpleBindings;
import org.apache.tinkerpop.gremlin.jsr223.GremlinLangScriptEngine;
import org.apache.tinkerpop.gremlin.process.traversal.Traversal;
import org.apache.tinkerpop.shaded.jackson.databind.ObjectMapper;
import org.janusgraph.core.JanusGraph;
import org.janusgraph.core.JanusGraphFactory;

public final class Snb {
    private static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();
    private static final ObjectMapper JSON = new ObjectMapper();
    // Seconds of each operation before its times count: environment variable VERVET_PEER_WARM_UP.
    private static final double WARM_UP = Double.parseDouble(System.getenv().getOrDefault("VERVET_PEER_WARM_UP", "3"));

    private final JanusGraph graph;
    private final GremlinLangScriptEngine engine = new GremlinLangScriptEngine();

    private Snb(JanusGraph graph) {
        this.graph = graph;
    }

    public static void main(String[] arguments) throws Exception {
        Graphs.endOnFailure();
        // Libraries write to standard output.
        PrintStream out = new PrintStream(new FileOutputStream(FileDescriptor.out), true, StandardCharsets.UTF_8);
        System.setOut(System.err);
        boolean cache = System.getenv("VERVET_JANUSGRAPH_CACHE") != null;
        double[] before = Graphs.cpu();
        long begin = System.nanoTime();
        // With VERVET_JANUSGRAPH_KEEP the network of the previous run is taken as it is.
        if (System.getenv("VERVET_JANUSGRAPH_KEEP") == null) {
            JanusGraph loading = Graphs.create(builder().set("storage.batch-loading", true).set("ids.block-size", 1_000_000));
            long rows = Loader.load(loading, Path.of(arguments[0]));
            loading.close();
            double[] after = Graphs.cpu();
            System.err.printf(Locale.ROOT, "loaded %d rows in %.1f s, CPU s: %.1f JanusGraph, %.1f Cassandra%n",
                rows, (System.nanoTime() - begin) / 1e9, after[0] - before[0], after[1] - before[1]);
        }
        double[] after = Graphs.cpu();
        out.println(JSON.writeValueAsString(Map.of("loaded", Map.of("cpu", after[0] - before[0]))));
        Snb peer = new Snb(builder().set("cache.db-cache", cache).open());
        System.err.println("| operation | runs | ms p50 | ms p99 | CPU ms: thread | JanusGraph | Cassandra |");
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            Map<String, Object> answer;
            try {
                answer = peer.operation(JSON.readValue(line, Map.class));
            } catch (Exception error) {
                error.printStackTrace();
                answer = Map.of("trouble", String.valueOf(error));
            }
            out.println(JSON.writeValueAsString(answer));
        }
        System.gc();
        Runtime runtime = Runtime.getRuntime();
        out.println(JSON.writeValueAsString(Map.of("heap", runtime.totalMemory() - runtime.freeMemory())));
        peer.graph.close();
        System.exit(0);
    }

    private static JanusGraphFactory.Builder builder() {
        return Graphs.builder("snb").set("graph.set-vertex-id", true).set("graph.allow-custom-vid-types", true);
    }

    @SuppressWarnings("unchecked")
    private Map<String, Object> operation(Map<String, Object> asked) throws Exception {
        String text = (String) asked.get("text");
        double seconds = ((Number) asked.get("seconds")).doubleValue();
        List<Map<String, Object>> parameters = (List<Map<String, Object>>) asked.get("parameters");
        List<List<Double>> runs = new ArrayList<>();
        List<Object> rows = new ArrayList<>();
        List<Object> hashes = new ArrayList<>();
        for (Map<String, Object> values : parameters) {
            Run run = run(text, values);
            runs.add(new ArrayList<>());
            rows.add(run.results.size());
            hashes.add(Long.toHexString(run.results.stream().mapToLong(Network::hash).sum()));
        }
        rounds(text, parameters, Math.max(WARM_UP, seconds), null);
        double[] before = Graphs.cpu();
        double[] milliseconds = rounds(text, parameters, seconds, runs);
        double[] after = Graphs.cpu();
        int count = milliseconds.length;
        double thread = runs.stream().flatMap(List::stream).mapToDouble(time -> time).sum() / count;
        System.err.printf(Locale.ROOT, "| %s | %d | %.3f | %.3f | %.3f | %.3f | %.3f |%n", asked.get("name"), count,
            milliseconds[count / 2], milliseconds[count * 99 / 100], thread,
            (after[0] - before[0]) * 1e3 / count, (after[1] - before[1]) * 1e3 / count);
        return Map.of("runs", runs, "rows", rows, "hashes", hashes);
    }

    // Rounds over all parameters until the time is up, at least one; returns the sorted times of the clock.
    private double[] rounds(String text, List<Map<String, Object>> parameters, double seconds, List<List<Double>> runs) throws Exception {
        List<Double> milliseconds = new ArrayList<>();
        long begin = System.nanoTime();
        do {
            for (int i = 0; i < parameters.size(); i++) {
                Run run = run(text, parameters.get(i));
                milliseconds.add(run.milliseconds);
                if (runs != null) {
                    runs.get(i).add(run.cpuMilliseconds);
                }
            }
        } while ((System.nanoTime() - begin) / 1e9 < seconds);
        return milliseconds.stream().mapToDouble(time -> time).sorted().toArray();
    }

    private record Run(List<Object> results, double milliseconds, double cpuMilliseconds) {}

    private Run run(String text, Map<String, Object> values) throws Exception {
        long cpu = THREADS.getCurrentThreadCpuTime();
        long begin = System.nanoTime();
        Bindings bindings = new SimpleBindings(new HashMap<>(values));
        bindings.put("g", graph.traversal());
        List<Object> results = (List<Object>) ((Traversal<?, ?>) engine.eval(text, bindings)).toList();
        graph.tx().rollback();
        return new Run(results, (System.nanoTime() - begin) / 1e6, (THREADS.getCurrentThreadCpuTime() - cpu) / 1e6);
    }
}
