// The social network for peers in Java: CSV files with typed headers into a TinkerGraph, and results as hashes.

import java.io.BufferedReader;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.tinkerpop.gremlin.structure.Element;
import org.apache.tinkerpop.gremlin.structure.T;
import org.apache.tinkerpop.gremlin.structure.Vertex;
import org.apache.tinkerpop.gremlin.structure.VertexProperty;
import org.apache.tinkerpop.gremlin.tinkergraph.structure.TinkerGraph;

final class Network {
    private Network() {}

    // What our queries look up by value has an index here, as it has there.
    static void load(TinkerGraph graph, Path folder) throws IOException {
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
                        rows(graph, file.getFileName().toString().replace(".csv", ""), header, in, edges);
                    }
                }
            }
        }
    }

    private static void rows(TinkerGraph graph, String name, String[] header, BufferedReader in, boolean edges) throws IOException {
        String relation = edges ? name.split("_")[1] : name;
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] cells = line.split("\\|", -1);
            Element element = edges
                ? vertex(graph, header[0], cells[0]).addEdge(relation, vertex(graph, header[1], cells[1]))
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

    private static Vertex vertex(TinkerGraph graph, String column, String id) {
        return graph.vertices(space(column) + ":" + id).next();
    }

    // What stands between the parentheses of `:START_ID(Person)`.
    private static String space(String column) {
        return column.substring(column.indexOf('(') + 1, column.indexOf(')'));
    }

    // FNV-1a of the UTF-8 bytes of the canonical text (crates/bench/src/snb/run.rs).
    static long hash(Object value) {
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
