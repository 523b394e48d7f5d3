import org.apache.jena.fuseki.main.FusekiServer;
import org.apache.jena.mem2.GraphMem2Fast;
import org.apache.jena.riot.RDFDataMgr;
import org.apache.jena.sparql.core.DatasetGraphFactory;

/** `Jena FILE PORT`: Jena's in-memory graph behind Fuseki, on the loopback address, at /sparql. */
public final class Jena {
    public static void main(String[] arguments) {
        var graph = new GraphMem2Fast();
        RDFDataMgr.read(graph, arguments[0]);
        FusekiServer.create()
            .port(Integer.parseInt(arguments[1]))
            .loopback(true)
            .verbose(false)
            .add("/sparql", DatasetGraphFactory.wrap(graph))
            .start()
            .join();
    }
}
