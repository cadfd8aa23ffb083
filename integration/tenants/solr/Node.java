import java.nio.file.Files;
import java.nio.file.Path;
import org.apache.solr.client.solrj.impl.CloudSolrClient;
import org.apache.solr.client.solrj.impl.ZkClientClusterStateProvider;
import org.apache.solr.common.cloud.SolrZkClient;
import org.apache.solr.embedded.JettyConfig;
import org.apache.solr.embedded.JettySolrRunner;
import org.apache.zookeeper.data.Stat;

/** One node of Solr, with Jetty, which keeps its port and its directory when it is stopped and started. */
final class Node {
    /**
     * The timeout in ms. With Solr's default, 30 s, a session that its node left open would never expire: each new leader
     * of the ensemble gives sessions their full time, and leaders die every 20 s.
     */
    static final int SESSION = 10_000;

    private final Path home;
    private JettySolrRunner runner;
    private int port; // 0 until the first start
    private long session;

    Node(int number, String zkHost) throws Exception {
        home = Files.createDirectory(Path.of("node" + number)).toAbsolutePath();
        Files.writeString(home.resolve("solr.xml"), "<solr><solrcloud><str name='host'>127.0.0.1</str>"
            + "<int name='hostPort'>${hostPort:0}</int><str name='hostContext'>solr</str><int name='zkClientTimeout'>"
            + SESSION + "</int><str name='zkHost'>" + zkHost + "</str></solrcloud></solr>");
    }

    String name() {
        return "127.0.0.1:" + port + "_solr";
    }

    /** Starts it, and again with another Jetty if Solr gives up because the ensemble's leader dies at that time. */
    void start() throws Exception {
        Rounds.until("node started on port " + port, () -> {
            runner = new JettySolrRunner(home.toString(),
                JettyConfig.builder().setContext("/solr").setPort(port).build());
            try {
                runner.start();
                if (runner.getNodeName() == null) {
                    throw new IllegalStateException("Jetty runs without Solr");
                }
            } catch (Exception e) {
                System.err.println("failed: start of a node: " + e);
                runner.stop();
                throw e;
            }
            port = runner.getLocalPort();
            return true;
        });
    }

    void stop() throws Exception {
        runner.stop();
    }

    /** Keeps the session of a node that was started. */
    void keepSession(CloudSolrClient client) throws Exception {
        Rounds.until(name() + " is live", () -> (session = owner(client)) != 0);
    }

    /** Complains if the node, which was not stopped, has another session, or none. */
    void checkSession(CloudSolrClient client) throws Exception {
        long[] now = new long[1];
        Rounds.until("the live nodes are read", () -> {
            now[0] = owner(client);
            return true;
        });
        Rounds.check(now[0] == session, String.format("the session of node %s has expired: it was 0x%x and is 0x%x",
            name(), session, now[0]));
        session = now[0];
    }

    private long owner(CloudSolrClient client) throws Exception {
        Stat stat = zooKeeper(client).exists("/live_nodes/" + name(), null, true);
        return stat == null ? 0 : stat.getEphemeralOwner();
    }

    static SolrZkClient zooKeeper(CloudSolrClient client) {
        return ((ZkClientClusterStateProvider) client.getClusterStateProvider()).getZkStateReader().getZkClient();
    }
}
