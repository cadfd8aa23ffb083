import java.io.File;
import java.io.FileOutputStream;
import java.util.Properties;
import java.util.Set;
import org.apache.bookkeeper.client.BookKeeperAdmin;
import org.apache.bookkeeper.conf.ClientConfiguration;
import org.apache.bookkeeper.conf.ServerConfiguration;
import org.apache.bookkeeper.net.BookieId;
import org.apache.zookeeper.Watcher;
import org.apache.zookeeper.ZooKeeper;
import org.apache.zookeeper.data.Stat;

/** Four bookies, each a process that recovers lost ones, too: one of them is the auditor. */
final class Bookies {
    static final int COUNT = 4;
    private static final String ROOT = "/bookkeeper";
    private final String metadata;
    private final ZooKeeper zk;
    private final BookKeeperAdmin admin;
    private final Process[] processes = new Process[COUNT];
    private final long[] sessions = new long[COUNT]; // that registered the bookie after its start
    private BookieId auditor;

    Bookies(String servers) throws Exception {
        metadata = "zk+hierarchical://" + servers.replace(',', ';') + ROOT;
        zk = new ZooKeeper(servers, 10_000, e -> {
            if (e.getState() == Watcher.Event.KeeperState.Expired) {
                Report.wrong("the session of the test's own client expired");
            }
        });
        ServerConfiguration c = new ServerConfiguration().setMetadataServiceUri(metadata);
        c.setZkEnableSecurity(true);
        Rounds.check(BookKeeperAdmin.initNewCluster(c), "there was a cluster already");
        for (int id = 0; id < COUNT; id++) {
            launch(id);
        }
        for (int id = 0; id < COUNT; id++) {
            awaitRegistered(id);
        }
        admin = new BookKeeperAdmin(client());
        Rounds.until("an auditor is elected", () -> admin.getCurrentAuditor() != null);
        auditor = admin.getCurrentAuditor();
    }

    ClientConfiguration client() {
        ClientConfiguration c = new ClientConfiguration().setMetadataServiceUri(metadata);
        c.setZkEnableSecurity(true);
        return c;
    }

    /** Ends the auditor, at once or in an orderly way, until another one is elected and its registration is gone. */
    int failOver(boolean atOnce) throws Exception {
        checkSessions();
        BookieId dead = auditor;
        int id = Integer.parseInt(dead.getId().substring("bookie".length()));
        Child.stop(processes[id], atOnce);
        Rounds.until("an auditor follows " + dead, () -> admin.getCurrentAuditor() != null
                && !admin.getCurrentAuditor().equals(dead));
        Rounds.until(dead + ", which has ended, loses its registration",
                () -> zk.exists(registration(id), false) == null);
        auditor = admin.getCurrentAuditor();
        return id;
    }

    void start(int id) throws Exception {
        launch(id);
        awaitRegistered(id);
    }

    /** The ledgers of which a bookie has entries. */
    Set<Long> ledgersOf(int id) throws Exception {
        return admin.getLedgersContainBookies(Set.of(BookieId.parse("bookie" + id))).keySet();
    }

    /** Reports each bookie that has another session than the one that it started with, and another auditor. */
    void checkSessions() throws Exception {
        for (int id = 0; id < COUNT; id++) {
            Stat stat = zk.exists(registration(id), false);
            Rounds.check(stat != null && stat.getEphemeralOwner() == sessions[id],
                    "bookie" + id + " lost the session with which it started");
        }
        Rounds.check(auditor.equals(admin.getCurrentAuditor()),
                "the auditor is " + admin.getCurrentAuditor() + ", although " + auditor + " lives");
        Rounds.check(zk.getACL(ROOT, new Stat()).stream().allMatch(a -> a.getId().getScheme().equals("x509")),
                "the metadata is open to all");
    }

    private void awaitRegistered(int id) throws Exception {
        Rounds.until("bookie" + id + " registers itself", () -> {
            if (!processes[id].isAlive()) { // it gives up when a connection takes long, on a busy machine
                launch(id);
            }
            return zk.exists(registration(id), false) != null;
        });
        sessions[id] = zk.exists(registration(id), false).getEphemeralOwner();
    }

    private static String registration(int id) {
        return ROOT + "/available/bookie" + id;
    }

    private void launch(int id) throws Exception {
        Properties p = new Properties();
        p.put("metadataServiceUri", metadata);
        p.put("zkEnableSecurity", "true");
        p.put("bookieId", "bookie" + id);
        p.put("bookiePort", "0");
        p.put("allowEphemeralPorts", "true");
        p.put("advertisedAddress", "127.0.0.1");
        p.put("allowLoopback", "true");
        p.put("journalDirectories", new File("journal-" + id).getAbsolutePath());
        p.put("ledgerDirectories", new File("ledgers-" + id).getAbsolutePath());
        p.put("autoRecoveryDaemonEnabled", "true");
        // Files and memory that suit the small heap.
        p.put("journalMaxSizeMB", "16");
        p.put("journalPreAllocSizeMB", "1");
        p.put("logSizeLimit", "16000000");
        p.put("skipListSizeLimit", "4000000");
        File file = new File("bookie" + id + ".properties");
        try (FileOutputStream out = new FileOutputStream(file)) {
            p.store(out, null);
        }
        processes[id] = Child.start(Child.zooKeeperFlags(), "org.apache.bookkeeper.server.Main",
                "--conf", file.getPath());
    }
}
