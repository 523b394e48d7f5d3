// JanusGraph on the Cassandra server of cassandra/cassandra.sh, and the processor time that both take.

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import org.janusgraph.core.JanusGraph;
import org.janusgraph.core.JanusGraphFactory;

final class Graphs {
    private Graphs() {}

    // The configuration that all programs here share. Everything else is JanusGraph's default.
    static JanusGraphFactory.Builder builder(String keyspace) {
        return JanusGraphFactory.build()
            .set("storage.backend", "cql")
            .set("storage.hostname", "127.0.0.1")
            .set("storage.port", 19042)
            .set("storage.cql.keyspace", keyspace)
            .set("storage.cql.local-datacenter", "datacenter1")
            // A slow machine must not turn into errors.
            .set("storage.cql.request-timeout", 30_000)
            .set("schema.default", "none");
    }

    // Ends the program with a failure of any thread: those of the driver would keep it alive.
    static void endOnFailure() {
        Thread.setDefaultUncaughtExceptionHandler((thread, error) -> {
            error.printStackTrace();
            Runtime.getRuntime().halt(1);
        });
    }

    // A new graph, in place of one that is there already.
    static JanusGraph create(JanusGraphFactory.Builder builder) throws Exception {
        JanusGraphFactory.drop(builder.open());
        return builder.open();
    }

    // Processor time of this process and of the server, in seconds; the latter is NaN without VERVET_CASSANDRA, the folder
    // that cassandra.sh got.
    static double[] cpu() throws IOException {
        String folder = System.getenv("VERVET_CASSANDRA");
        double server = Double.NaN;
        if (folder != null) {
            server = seconds(ProcessHandle.of(Long.parseLong(Files.readString(Path.of(folder, "pid")).strip())).orElseThrow());
        }
        return new double[] {seconds(ProcessHandle.current()), server};
    }

    private static double seconds(ProcessHandle process) {
        return process.info().totalCpuDuration().map(Duration::toNanos).orElse(0L) / 1e9;
    }
}
