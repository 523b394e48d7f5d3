// TinkerPop's Gremlin Server with a TinkerGraph of a folder of CSV files, for `vervet-bench wire`. Says its port in a line of JSON,
// and ends with its standard input.

import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.file.Path;
import java.util.ArrayList;
import org.apache.tinkerpop.gremlin.server.GremlinServer;
import org.apache.tinkerpop.gremlin.server.Settings;
import org.apache.tinkerpop.gremlin.server.util.DefaultGraphManager;
import org.apache.tinkerpop.gremlin.tinkergraph.structure.TinkerGraph;
import org.apache.tinkerpop.gremlin.util.ser.GraphBinaryMessageSerializerV1;
import org.apache.tinkerpop.gremlin.util.ser.GraphSONMessageSerializerV3;

public final class Server {
    public static void main(String[] arguments) throws Exception {
        TinkerGraph graph = TinkerGraph.open();
        Network.load(graph, Path.of(arguments[0]));
        Settings settings = new Settings();
        settings.host = "127.0.0.1";
        try (ServerSocket free = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            settings.port = free.getLocalPort();
        }
        settings.graphManager = DefaultGraphManager.class.getName();
        settings.scriptEngines.put("gremlin-lang", new Settings.ScriptEngineSettings());
        settings.serializers = new ArrayList<>();
        for (Class<?> serializer : new Class<?>[] {GraphBinaryMessageSerializerV1.class, GraphSONMessageSerializerV3.class}) {
            Settings.SerializerSettings one = new Settings.SerializerSettings();
            one.className = serializer.getName();
            settings.serializers.add(one);
        }
        GremlinServer server = new GremlinServer(settings);
        server.getServerGremlinExecutor().getGraphManager().putGraph("graph", graph);
        server.getServerGremlinExecutor().getGraphManager().putTraversalSource("g", graph.traversal());
        server.getServerGremlinExecutor().getGremlinExecutor().getScriptEngineManager().put("g", graph.traversal());
        server.start().get();
        System.out.println("{\"port\": " + settings.port + "}");
        while (System.in.read() >= 0) {
            // What it says means nothing.
        }
        System.exit(0);
    }
}
