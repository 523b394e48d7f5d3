// The social network into JanusGraph: the CSV files with typed headers that TinkerGraph gets too. The ids of vertices are the
// texts `Person:933` of the queries, so that a look-up by id reads one row of Cassandra.

import java.io.BufferedReader;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Future;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.tinkerpop.gremlin.structure.Element;
import org.apache.tinkerpop.gremlin.structure.T;
import org.apache.tinkerpop.gremlin.structure.Vertex;
import org.apache.tinkerpop.gremlin.structure.VertexProperty;
import org.janusgraph.core.Cardinality;
import org.janusgraph.core.JanusGraph;
import org.janusgraph.core.JanusGraphTransaction;
import org.janusgraph.core.schema.JanusGraphManagement;

final class Loader {
    // Rows of a transaction, and transactions at the same time.
    private static final int ROWS = 2_000;
    private static final int THREADS = 4;

    private record Table(Path path, String name, String[] header, boolean isEdges) {
        String relation() {
            return isEdges ? name.split("_")[1] : name;
        }
    }

    private Loader() {}

    // The graph must have been opened with storage.batch-loading. Returns the number of rows.
    static long load(JanusGraph graph, Path folder) throws Exception {
        List<Path> files;
        try (Stream<Path> all = Files.list(folder)) {
            files = all.filter(file -> file.toString().endsWith(".csv")).sorted().collect(Collectors.toList());
        }
        List<Table> tables = new ArrayList<>();
        for (Path file : files) {
            try (BufferedReader in = Files.newBufferedReader(file, StandardCharsets.UTF_8)) {
                String[] header = in.readLine().split("\\|", -1);
                String name = file.getFileName().toString().replace(".csv", "");
                tables.add(new Table(file, name, header, header[0].startsWith(":START_ID")));
            }
        }
        schema(graph, tables);
        long rows = 0;
        for (boolean edges : new boolean[] {false, true}) {
            ExecutorService workers = new ThreadPoolExecutor(THREADS, THREADS, 0, TimeUnit.SECONDS,
                new ArrayBlockingQueue<>(THREADS), new ThreadPoolExecutor.CallerRunsPolicy());
            List<Future<?>> done = new ArrayList<>();
            for (Table table : tables) {
                if (table.isEdges != edges) {
                    continue;
                }
                try (BufferedReader in = Files.newBufferedReader(table.path, StandardCharsets.UTF_8)) {
                    in.readLine();
                    List<String> lines = new ArrayList<>();
                    for (String line = in.readLine(); line != null || !lines.isEmpty(); line = line == null ? null : in.readLine()) {
                        if (line != null) {
                            lines.add(line);
                            rows++;
                        }
                        if (line == null || lines.size() == ROWS) {
                            List<String> batch = lines;
                            done.add(workers.submit(() -> commit(graph, table, batch)));
                            lines = new ArrayList<>();
                        }
                    }
                }
            }
            workers.shutdown();
            for (Future<?> one : done) {
                one.get();
            }
        }
        return rows;
    }

    private static void commit(JanusGraph graph, Table table, List<String> lines) {
        JanusGraphTransaction transaction = graph.newTransaction();
        for (String line : lines) {
            row(transaction, table, line.split("\\|", -1));
        }
        transaction.commit();
    }

    // Labels from the names of files and the column :LABEL, keys from the headers; indexes as in TinkerGraph.
    private static void schema(JanusGraph graph, List<Table> tables) throws IOException {
        Map<String, String> keys = new TreeMap<>();
        Set<String> labels = new TreeSet<>();
        Set<String> relations = new TreeSet<>();
        for (Table table : tables) {
            (table.isEdges ? relations : labels).add(table.relation());
            int label = List.of(table.header).indexOf(":LABEL");
            if (label >= 0) {
                try (Stream<String> lines = Files.lines(table.path, StandardCharsets.UTF_8)) {
                    lines.skip(1).forEach(line -> labels.add(line.split("\\|", -1)[label]));
                }
            }
            for (int i = table.isEdges ? 2 : 1; i < table.header.length; i++) {
                int colon = table.header[i].lastIndexOf(':');
                if (colon > 0) {
                    keys.put(table.header[i].substring(0, colon), table.header[i].substring(colon + 1));
                }
            }
        }
        keys.put("id", "LONG");
        JanusGraphManagement management = graph.openManagement();
        labels.forEach(label -> management.makeVertexLabel(label).make());
        relations.forEach(relation -> management.makeEdgeLabel(relation).make());
        keys.forEach((key, type) -> {
            Class<?> kind = type.equals("LONG") ? Long.class : type.equals("INT") ? Integer.class : String.class;
            Cardinality cardinality = type.equals("STRING[]") ? Cardinality.LIST : Cardinality.SINGLE;
            management.makePropertyKey(key).dataType(kind).cardinality(cardinality).make();
        });
        for (String key : List.of("name", "firstName")) {
            management.buildIndex("by_" + key, Vertex.class).addKey(management.getPropertyKey(key)).buildCompositeIndex();
        }
        management.commit();
    }

    private static void row(JanusGraphTransaction transaction, Table table, String[] cells) {
        String[] header = table.header;
        Element element;
        if (table.isEdges) {
            Vertex from = vertex(transaction, header[0], cells[0]);
            element = from.addEdge(table.relation(), vertex(transaction, header[1], cells[1]));
        } else {
            int label = List.of(header).indexOf(":LABEL");
            element = transaction.addVertex(T.id, space(header[0]) + ":" + cells[0],
                T.label, label < 0 ? table.relation() : cells[label]);
            element.property("id", Long.valueOf(cells[0]));
        }
        for (int i = table.isEdges ? 2 : 1; i < header.length; i++) {
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

    private static Vertex vertex(JanusGraphTransaction transaction, String column, String id) {
        return transaction.getVertex(space(column) + ":" + id);
    }

    // What stands between the parentheses of `:START_ID(Person)`.
    private static String space(String column) {
        return column.substring(column.indexOf('(') + 1, column.indexOf(')'));
    }
}
