// TinkerGraph behind the protocol of crates/conformance/src/random_gremlin/peer.rs: makes the graphs it is told, runs texts of
// Gremlin through TinkerPop's own grammar, and tells their results in the words of random_gremlin/canonical.rs.

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Iterator;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
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
import org.apache.tinkerpop.gremlin.process.traversal.Path;
import org.apache.tinkerpop.gremlin.process.traversal.Traversal;
import org.apache.tinkerpop.gremlin.process.traversal.dsl.graph.GraphTraversalSource;
import org.apache.tinkerpop.gremlin.process.traversal.step.util.BulkSet;
import org.apache.tinkerpop.gremlin.structure.Edge;
import org.apache.tinkerpop.gremlin.structure.Property;
import org.apache.tinkerpop.gremlin.structure.Vertex;
import org.apache.tinkerpop.gremlin.structure.VertexProperty;
import org.apache.tinkerpop.gremlin.tinkergraph.structure.TinkerGraph;
import org.apache.tinkerpop.shaded.jackson.databind.ObjectMapper;

public final class Answers {
    private static final ObjectMapper JSON = new ObjectMapper();

    private final GremlinLangScriptEngine engine = new GremlinLangScriptEngine();
    private GraphTraversalSource source = TinkerGraph.open().traversal();
    private ExecutorService worker = worker();

    public static void main(String[] arguments) throws Exception {
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        Answers peer = new Answers();
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            out.println(JSON.writeValueAsString(peer.answer(JSON.readValue(line, Map.class))));
        }
        peer.worker.shutdownNow();
    }

    private static ExecutorService worker() {
        return Executors.newSingleThreadExecutor(work -> {
            Thread thread = new Thread(null, work, "worker", 256 << 20);
            thread.setDaemon(true);
            return thread;
        });
    }

    private Map<String, Object> answer(Map<String, Object> asked) throws Exception {
        if (asked.get("graph") instanceof List<?> texts) {
            source = TinkerGraph.open().traversal();
            for (Object text : texts) {
                traversal((String) text).iterate();
            }
            return Map.of("loaded", texts.size());
        }
        String text = (String) asked.get("text");
        boolean bags = (Boolean) asked.get("bags");
        int most = ((Number) asked.get("most")).intValue();
        Future<List<String>> future = worker.submit(() -> {
            List<String> results = new ArrayList<>();
            Iterator<?> traversal = traversal(text);
            while (traversal.hasNext()) {
                if (results.size() == most) {
                    return null;
                }
                results.add(show(traversal.next(), bags));
            }
            return results;
        });
        try {
            List<String> results = future.get(((Number) asked.get("milliseconds")).longValue(), TimeUnit.MILLISECONDS);
            return results == null ? Map.of("late", true) : Map.of("results", results);
        } catch (TimeoutException late) {
            future.cancel(true);
            worker.shutdownNow();
            worker = worker();
            return Map.of("late", true);
        } catch (ExecutionException error) {
            return Map.of("error", String.valueOf(error.getCause()));
        }
    }

    private Traversal<?, ?> traversal(String text) throws Exception {
        Bindings bindings = new SimpleBindings();
        bindings.put("g", source);
        return (Traversal<?, ?>) engine.eval(text, bindings);
    }

    private static String show(Object value, boolean bags) {
        if (value == null) {
            return "null";
        } else if (value instanceof Boolean) {
            return value.toString();
        } else if (value instanceof Byte) {
            return value + "b";
        } else if (value instanceof Short) {
            return value + "s";
        } else if (value instanceof Integer) {
            return value + "i";
        } else if (value instanceof Long) {
            return value + "l";
        } else if (value instanceof Float number) {
            return fraction(number) + "f";
        } else if (value instanceof Double number) {
            return fraction(number) + "d";
        } else if (value instanceof java.math.BigInteger) {
            return value + "n";
        } else if (value instanceof java.math.BigDecimal number) {
            return fraction(number.doubleValue()) + "m";
        } else if (value instanceof String) {
            return "\"" + value + "\"";
        } else if (value instanceof Vertex vertex) {
            return "v[" + show(vertex.id(), bags) + "]";
        } else if (value instanceof Edge edge) {
            return "e[" + show(edge.id(), bags) + "]";
        } else if (value instanceof VertexProperty<?> property) {
            return "vp[" + property.key() + "=" + show(property.value(), bags) + "]";
        } else if (value instanceof Property<?> property) {
            return "p[" + property.key() + "=" + show(property.value(), bags) + "]";
        } else if (value instanceof Path path) {
            List<String> objects = new ArrayList<>();
            for (int i = 0; i < path.size(); i++) {
                String labels = path.labels().get(i).stream().sorted().collect(Collectors.joining(","));
                objects.add(show(path.objects().get(i), bags) + (labels.isEmpty() ? "" : "@" + labels));
            }
            return "path[" + String.join(" ", objects) + "]";
        } else if (value instanceof Map.Entry<?, ?> entry) {
            return "{" + show(entry.getKey(), bags) + ": " + show(entry.getValue(), bags) + "}";
        } else if (value instanceof Map<?, ?> map) {
            Stream<String> entries =
                map.entrySet().stream().map(entry -> show(entry.getKey(), bags) + ": " + show(entry.getValue(), bags));
            return "{" + entries.sorted().collect(Collectors.joining(", ")) + "}";
        } else if (value instanceof BulkSet<?> bag) {
            return "bag(" + items(bag, bags, true) + ")";
        } else if (value instanceof Set<?> set) {
            return "set(" + items(set, bags, true) + ")";
        } else if (value instanceof Collection<?> list) {
            return "[" + items(list, bags, bags) + "]";
        } else if (value instanceof Enum<?> token) {
            return token.getDeclaringClass().getSimpleName() + "." + token.name();
        }
        return value.getClass().getSimpleName() + " " + value;
    }

    private static String items(Collection<?> items, boolean bags, boolean sorted) {
        Stream<String> shown = items.stream().map(item -> show(item, bags));
        return (sorted ? shown.sorted() : shown).collect(Collectors.joining(", "));
    }

    // As Rust's {:.9e} has it.
    private static String fraction(double number) {
        if (Double.isNaN(number)) {
            return "NaN";
        } else if (Double.isInfinite(number)) {
            return number > 0 ? "inf" : "-inf";
        }
        return String.format(Locale.ROOT, "%.9e", number).replaceAll("e\\+0*(\\d+)$", "e$1").replaceAll("e-0*(\\d+)$", "e-$1");
    }
}
