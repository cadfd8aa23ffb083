import java.io.File;
import java.io.FileOutputStream;
import java.io.OutputStream;
import java.net.ConnectException;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.file.Files;
import java.security.KeyStore;
import java.security.cert.Certificate;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.concurrent.ThreadLocalRandom;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.ha.HAServiceProtocol.HAServiceState;
import org.apache.hadoop.hdfs.HdfsConfiguration;
import org.apache.hadoop.hdfs.MiniDFSCluster;
import org.apache.hadoop.hdfs.MiniDFSNNTopology;
import org.apache.hadoop.hdfs.server.namenode.ha.HATestUtil;
import org.apache.hadoop.hdfs.tools.NNHAServiceTarget;
import org.apache.zookeeper.util.PemReader;

/**
 * HDFS with two NameNodes, one of which is active. Their failover controllers are processes of their own, as in
 * production, and agree on it in ZooKeeper. Files are written, read and deleted while the NameNodes take over from each
 * other: because an operator asks for it, because the active one stops, because its controller is killed.
 */
public final class Tenant {
    private static final String SERVICE = "ns1";
    private static final String[] NAMES = {"nn1", "nn2"};
    private static final String PASSWORD = "tenants"; // Hadoop wants one for its keys
    private static final int PATIENCE = 60_000; // ms, for a NameNode to become active

    private static final Process[] CONTROLLERS = new Process[2];
    private static MiniDFSCluster cluster;
    private static int checks;

    public static void main(String[] args) throws Exception {
        start(args[0]);
        FileSystem fs = HATestUtil.configureFailoverFs(cluster, cluster.getConfiguration(0));
        List<Writer> writers = List.of(new Writer(fs, "a"), new Writer(fs, "b"));
        writers.forEach(Thread::start);
        Thread watchman = new Thread(Tenant::watchForTwo);
        watchman.start();
        Report.ready();
        int failovers = failOver();
        for (Writer w : writers) {
            w.join();
        }
        watchman.join();
        verify(fs, writers);
        Report.saw(failovers + " failovers, none without a cause, and never two active NameNodes at " + checks
            + " looks");
        Report.saw("the sessions of controllers expired when these were killed, and else " + expired() + " times");
        cluster.shutdown();
        Report.end();
    }

    /** Starts two NameNodes, both on standby, and the controller of each. */
    private static void start(String servers) throws Exception {
        Configuration conf = new HdfsConfiguration();
        conf.set("ha.zookeeper.quorum", servers);
        conf.set("ha.zookeeper.parent-znode", "/hadoop/ha");
        conf.setBoolean("dfs.ha.automatic-failover.enabled", true);
        // A dead NameNode needs no fence but that it is dead, and a living one answers when it is told to stand by.
        conf.set("dfs.ha.fencing.methods", "shell(true)");
        conf.setInt("ha.failover-controller.graceful-fence.rpc-timeout.ms", PATIENCE);
        setKeys(conf);
        MiniDFSNNTopology.NSConf names = new MiniDFSNNTopology.NSConf(SERVICE);
        for (String name : NAMES) {
            conf.setInt("dfs.ha.zkfc.port." + SERVICE + "." + name, freePort());
            names.addNN(new MiniDFSNNTopology.NNConf(name).setIpcPort(freePort()));
        }
        cluster = new MiniDFSCluster.Builder(conf, new File("hdfs").getAbsoluteFile())
            .nnTopology(new MiniDFSNNTopology().addNameservice(names)).numDataNodes(1).build();
        if (controller(0, "-formatZK").waitFor() != 0) {
            throw new IllegalStateException("hdfs zkfc -formatZK failed");
        }
        for (int i = 0; i < NAMES.length; i++) {
            startController(i);
        }
        awaitActive(-1);
    }

    /** Gives Hadoop the kit's keys in the only form that it takes: with a password. */
    private static void setKeys(Configuration conf) throws Exception {
        File pem = new File(System.getProperty("zookeeper.ssl.keyStore.location"));
        KeyStore keys = KeyStore.getInstance("JKS");
        keys.load(null);
        keys.setKeyEntry("client", PemReader.loadPrivateKey(pem, Optional.empty()), PASSWORD.toCharArray(),
            PemReader.readCertificateChain(pem).toArray(new Certificate[0]));
        setKeys(conf, "keystore", keys);
        File trusted = new File(System.getProperty("zookeeper.ssl.trustStore.location"));
        setKeys(conf, "truststore", PemReader.loadTrustStore(trusted));
        conf.setBoolean("dfs.ha.zkfc.client.ssl.enabled", true);
    }

    private static void setKeys(Configuration conf, String kind, KeyStore keys) throws Exception {
        File file = new File(kind + ".jks").getAbsoluteFile();
        try (OutputStream out = new FileOutputStream(file)) {
            keys.store(out, PASSWORD.toCharArray());
        }
        conf.set("hadoop.zk.ssl." + kind + ".location", file.getPath());
        conf.set("hadoop.zk.ssl." + kind + ".password", PASSWORD);
    }

    private static void startController(int i) throws Exception {
        CONTROLLERS[i] = controller(i);
    }

    /** Starts hdfs zkfc for a NameNode. It speaks TLS by Hadoop's own settings. */
    private static Process controller(int i, String... arguments) throws Exception {
        File conf = new File(NAMES[i] + ".xml").getAbsoluteFile();
        try (OutputStream out = new FileOutputStream(conf)) {
            cluster.getConfiguration(i).writeXml(out);
        }
        List<String> all = new ArrayList<>(List.of("-conf", conf.getPath()));
        all.addAll(List.of(arguments));
        return Child.start(List.of("-Xmx128m", "-Dlog=WARN, file", "-Dfile=" + NAMES[i] + ".log"),
            "org.apache.hadoop.hdfs.tools.DFSZKFailoverController", all.toArray(new String[0]));
    }

    /** Makes the NameNodes take over from each other, in three ways, until the work ends, and returns how often. */
    private static int failOver() throws Exception {
        int failovers = 0;
        int active = active();
        for (int way = 0; Report.working(); way = (way + 1) % 3) {
            awaitControllers();
            Thread.sleep(8_000); // the one that came back last joins the election
            if (active() != active) {
                Report.wrong("a failover that nothing had caused: " + NAMES[active] + " is not active");
            }
            int from = active;
            int to = 1 - active;
            switch (way) {
                case 0:
                    Report.work("failover by an operator", () -> {
                        target(to).getZKFCProxy(cluster.getConfiguration(to), PATIENCE).gracefulFailover();
                        return awaitActive(from);
                    });
                    break;
                case 1:
                    Report.work("failover from a stopped NameNode", () -> {
                        cluster.shutdownNameNode(from);
                        return awaitActive(from);
                    });
                    cluster.restartNameNode(from, false);
                    break;
                default:
                    Report.work("failover from a killed controller", () -> {
                        Child.stop(CONTROLLERS[from], true);
                        return awaitActive(from);
                    });
                    startController(from);
            }
            active = awaitActive(-1);
            if (active == from) {
                Report.wrong("no failover: " + NAMES[from] + " is still active");
            }
            failovers++;
        }
        return failovers;
    }

    /** Waits until both controllers answer. */
    private static void awaitControllers() throws Exception {
        for (int i = 0; i < NAMES.length; ) {
            try (Socket s = new Socket()) {
                s.connect(target(i).getZKFCAddress());
                i++;
            } catch (ConnectException e) {
                if (!CONTROLLERS[i].isAlive()) {
                    throw new IllegalStateException("the controller of " + NAMES[i] + " has ended by itself", e);
                }
                Thread.sleep(100);
            }
        }
    }

    /** Waits until a NameNode is active that is not the one given, and returns it. */
    private static int awaitActive(int other) throws Exception {
        for (long end = System.currentTimeMillis() + PATIENCE; System.currentTimeMillis() < end; Thread.sleep(50)) {
            int active = active();
            if (active >= 0 && active != other) {
                return active;
            }
        }
        throw new IllegalStateException("no NameNode became active within " + PATIENCE + " ms");
    }

    /** The active NameNode, or -1. */
    private static int active() {
        return isActive(0) ? 0 : isActive(1) ? 1 : -1;
    }

    private static boolean isActive(int i) {
        try {
            return target(i).getProxy(cluster.getConfiguration(i), PATIENCE).getServiceStatus().getState()
                == HAServiceState.ACTIVE;
        } catch (java.io.IOException e) {
            return false; // it is stopped
        }
    }

    private static NNHAServiceTarget target(int i) {
        return new NNHAServiceTarget(cluster.getConfiguration(i), SERVICE, NAMES[i]);
    }

    /** Asks both NameNodes again and again: both are active at once if the first is before and after the second is. */
    private static void watchForTwo() {
        for (; Report.working(); checks++) {
            if (isActive(0) && isActive(1) && isActive(0)) {
                Report.wrong("both NameNodes are active");
            }
            try {
                Thread.sleep(100);
            } catch (InterruptedException e) {
                return;
            }
        }
    }

    /** Compares all files that the NameNode has with those that were acknowledged. */
    private static void verify(FileSystem fs, List<Writer> writers) throws Exception {
        int files = 0;
        for (Writer w : writers) {
            Map<String, byte[]> want = new TreeMap<>(w.files);
            for (FileStatus f : fs.listStatus(w.directory)) {
                byte[] content = want.remove(f.getPath().getName());
                if (content == null && !w.uncertain.contains(f.getPath().getName())) {
                    Report.wrong(f.getPath() + " is there, though its deletion was acknowledged");
                } else if (content != null) {
                    w.read(f.getPath().getName(), content);
                    files++;
                }
            }
            want.keySet().forEach(name -> Report.wrong(w.directory + "/" + name + " was acknowledged and is lost"));
        }
        Report.saw("all " + files + " files that were acknowledged and not deleted are there");
    }

    /** How often a controller's log tells of an expired session; a fatal error is wrong, too. */
    private static int expired() throws Exception {
        int expired = 0;
        for (String name : NAMES) {
            for (String line : Files.readAllLines(java.nio.file.Path.of(name + ".log"))) {
                if (line.contains("Session expired") || line.contains(" FATAL ")) {
                    Report.wrong("the controller of " + name + " logged: " + line);
                    expired++;
                }
            }
        }
        return expired;
    }

    /** A port below those that the system and the test give to others, so that it is still free after a restart. */
    private static int freePort() {
        while (true) {
            try (ServerSocket s = new ServerSocket(ThreadLocalRandom.current().nextInt(2_000, 10_000))) {
                return s.getLocalPort();
            } catch (java.io.IOException e) {
                System.err.println("a port is taken: " + e);
            }
        }
    }

    /** Writes, reads and deletes files of a directory. */
    private static final class Writer extends Thread {
        final FileSystem fs;
        final Path directory;
        final Map<String, byte[]> files = new TreeMap<>(); // acknowledged
        final List<String> uncertain = new ArrayList<>(); // a creation or deletion failed

        Writer(FileSystem fs, String name) {
            this.fs = fs;
            directory = new Path("/work", name);
        }

        @Override
        public void run() {
            for (int i = 0; Report.working(); i++) {
                String name = "file-" + i;
                byte[] content = (directory + " " + i + " ").repeat(100).getBytes();
                done("file written", name, content, () -> {
                    try (OutputStream out = fs.create(new Path(directory, name))) {
                        out.write(content);
                    }
                    return true;
                });
                String old = "file-" + i / 2;
                if (files.containsKey(old)) {
                    Report.work("file read", () -> read(old, files.get(old)));
                }
                if (i % 2 == 0 && files.containsKey(old)) {
                    done("file deleted", old, null, () -> fs.delete(new Path(directory, old), false) ? true : null);
                }
                try {
                    Thread.sleep(200);
                } catch (InterruptedException e) {
                    return;
                }
            }
        }

        /** Does a piece of work after which the file has the content, or is deleted if that is null. */
        private void done(String what, String name, byte[] content, java.util.concurrent.Callable<Boolean> piece) {
            files.remove(name);
            if (Report.work(what, piece) == null) {
                uncertain.add(name);
            } else if (content != null) {
                files.put(name, content);
            }
        }

        boolean read(String name, byte[] want) throws java.io.IOException {
            byte[] got;
            try (FSDataInputStream in = fs.open(new Path(directory, name))) {
                got = in.readAllBytes();
            }
            if (!java.util.Arrays.equals(got, want)) {
                Report.wrong(directory + "/" + name + " has other content than was written");
            }
            return true;
        }
    }
}
