import de.bwaldvogel.mongo.MongoServer;
import de.bwaldvogel.mongo.MongoVersion;
import de.bwaldvogel.mongo.backend.memory.MemoryBackend;
import java.util.List;

/** An in-memory MongoDB for tests. Argument: the port, 0 for a free one. Prints the connection string. */
class MongoStandIn {
    /** The library's own MONGO_5_0 reports wire version 8; current drivers ask for 9 or more. */
    static final MongoVersion VERSION = new MongoVersion() {
        public List<Integer> getVersionArray() {
            return List.of(5, 0, 0);
        }

        public int getWireVersion() {
            return 13;
        }
    };

    public static void main(String[] args) {
        MongoServer server = new MongoServer(new MemoryBackend().version(VERSION));
        server.bind("127.0.0.1", Integer.parseInt(args[0]));
        System.out.println(server.getConnectionString());
    }
}
