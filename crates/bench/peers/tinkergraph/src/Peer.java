// TinkerGraph behind the protocol of crates/bench/src/snb/peer.rs: loads CSV files with typed headers, then runs texts of
// Gremlin through TinkerPop's own grammar and tells rows, hashes of results and times of the CPU.

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.nio.charset.StandardCharsets;
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
import javax.script.Bindings;
import javax.script.SimpleBindings;
import org.apache.tinkerpop.gremlin.jsr223.GremlinLangScriptEngine;
import org.apache.tinkerpop.gremlin.process.traversal.Traversal;
import org.apache.tinkerpop.gremlin.process.traversal.dsl.graph.GraphTraversalSource;
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
        Network.load(peer.graph, Path.of(arguments[0]));
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
            hashes.add(run == null ? null : Long.toHexString(run.results.stream().mapToLong(Network::hash).sum()));
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
}
