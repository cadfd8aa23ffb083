import java.io.File;
import java.io.FileOutputStream;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.zookeeper.Watcher;
import org.apache.zookeeper.ZooKeeper;
import org.apache.zookeeper.data.Stat;

/** Three brokers, each a process, and what ZooKeeper says of them: who is registered, how long, and who controls. */
final class Brokers {
    static final int COUNT = 3;
    private final String servers;
    private final ZooKeeper zk;
    private final Process[] processes = new Process[COUNT];
    private final long[] sessions = new long[COUNT]; // that registered the broker after its start

    Brokers(String servers) throws Exception {
        this.servers = servers;
        zk = new ZooKeeper(servers + "/kafka", 18_000, e -> {
            if (e.getState() == Watcher.Event.KeeperState.Expired) {
                Report.wrong("the session of the test's own client expired");
            }
        });
        for (int id = 0; id < COUNT; id++) {
            launch(id);
        }
        for (int id = 0; id < COUNT; id++) {
            awaitRegistered(id);
        }
    }

    /** Where clients find the brokers that are registered, by the name of a listener. */
    String addresses(String listener) throws Exception {
        List<String> all = new ArrayList<>();
        for (String id : zk.getChildren("/brokers/ids", false)) {
            Matcher m = Pattern.compile(listener + "://([0-9.:]+)").matcher(text("/brokers/ids/" + id));
            if (m.find()) {
                all.add(m.group(1));
            }
        }
        return String.join(",", all);
    }

    int controller() throws Exception {
        Matcher m = Pattern.compile("\"brokerid\":(\\d)").matcher(text("/controller"));
        return m.find() ? Integer.parseInt(m.group(1)) : -1;
    }

    /** How many controllers have been elected. */
    int elections() throws Exception {
        return Integer.parseInt(text("/controller_epoch"));
    }

    /** Whether only the brokers' certificate may read the users' passwords. */
    boolean secret() throws Exception {
        return zk.getACL("/config/users", new Stat()).stream().allMatch(a -> a.getId().getScheme().equals("x509"));
    }

    /** Ends the controller, at once or in an orderly way, until another one is elected and its registration is gone. */
    int failOver(boolean atOnce) throws Exception {
        checkSessions();
        int id = controller();
        Child.stop(processes[id], atOnce);
        Rounds.until("a controller follows broker " + id, () -> controller() != id && controller() >= 0);
        Rounds.until("broker " + id + ", which has ended, loses its registration",
                () -> zk.exists("/brokers/ids/" + id, false) == null);
        return id;
    }

    void start(int id) throws Exception {
        launch(id);
        awaitRegistered(id);
    }

    /** Reports each broker that has another session than the one that it started with. */
    void checkSessions() throws Exception {
        for (int id = 0; id < COUNT; id++) {
            Stat stat = zk.exists("/brokers/ids/" + id, false);
            if (stat == null || stat.getEphemeralOwner() != sessions[id]) {
                Report.wrong("broker " + id + " lost the session with which it started");
            }
        }
    }

    private void awaitRegistered(int id) throws Exception {
        Rounds.until("broker " + id + " registers itself", () -> {
            if (!processes[id].isAlive()) { // it gives up when a connection takes long, on a busy machine
                launch(id);
            }
            return zk.exists("/brokers/ids/" + id, false) != null;
        });
        sessions[id] = zk.exists("/brokers/ids/" + id, false).getEphemeralOwner();
    }

    private String text(String path) throws Exception {
        return new String(zk.getData(path, false, null));
    }

    private void launch(int id) throws Exception {
        Properties p = new Properties();
        p.put("broker.id", "" + id);
        p.put("log.dirs", new File("logs-" + id).getAbsolutePath());
        p.put("listeners", "INNER://127.0.0.1:0,USERS://127.0.0.1:0");
        p.put("listener.security.protocol.map", "INNER:PLAINTEXT,USERS:SASL_PLAINTEXT");
        p.put("inter.broker.listener.name", "INNER");
        p.put("sasl.enabled.mechanisms", "SCRAM-SHA-256");
        p.put("listener.name.users.scram-sha-256.sasl.jaas.config",
                "org.apache.kafka.common.security.scram.ScramLoginModule required;");
        p.put("authorizer.class.name", "kafka.security.authorizer.AclAuthorizer");
        p.put("super.users", "User:ANONYMOUS"); // all who come through INNER
        p.put("min.insync.replicas", "2");
        p.put("auto.create.topics.enable", "false");
        p.put("log.cleaner.dedupe.buffer.size", "10000000"); // half of the heap by default
        p.put("controlled.shutdown.max.retries", "10");
        p.put("zookeeper.connect", servers + "/kafka");
        // No session expires that is longer than a leader lives. 6 s was Kafka's default before 18 s.
        p.put("zookeeper.session.timeout.ms", "6000");
        p.put("zookeeper.connection.timeout.ms", "18000");
        p.put("zookeeper.set.acl", "true");
        p.put("zookeeper.ssl.client.enable", "true");
        p.put("zookeeper.clientCnxnSocket", "org.apache.zookeeper.ClientCnxnSocketNetty");
        p.put("zookeeper.ssl.keystore.location", System.getProperty("zookeeper.ssl.keyStore.location"));
        p.put("zookeeper.ssl.keystore.type", "PEM");
        p.put("zookeeper.ssl.truststore.location", System.getProperty("zookeeper.ssl.trustStore.location"));
        p.put("zookeeper.ssl.truststore.type", "PEM");
        File file = new File("broker-" + id + ".properties");
        try (FileOutputStream out = new FileOutputStream(file)) {
            p.store(out, null);
        }
        processes[id] = Child.start(List.of(), "kafka.Kafka", file.getPath());
    }
}
