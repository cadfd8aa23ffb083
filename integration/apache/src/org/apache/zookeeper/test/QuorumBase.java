package org.apache.zookeeper.test;

import static org.junit.jupiter.api.Assertions.assertTrue;

import harness.Server;
import java.io.*;
import java.nio.file.*;
import java.util.*;
import org.apache.zookeeper.*;
import org.apache.zookeeper.client.FourLetterWordMain;
import org.apache.zookeeper.server.quorum.QuorumPeer;
import org.junit.jupiter.api.*;

/** In the place of the tests' own: five servers, which are processes. */
public class QuorumBase extends ClientBase {
    protected boolean localSessionsEnabled, localSessionsUpgradingEnabled;
    private final List<Server> servers = new ArrayList<>();

    @BeforeEach
    @Override public void setUp() throws Exception {
        setupTestEnv();
        setUpAll();
        Map<String, String> all = new HashMap<>();
        List<String> clients = new ArrayList<>();
        for (int i = 1; i <= 5; i++) {
            int port = PortAssignment.unique();
            clients.add("127.0.0.1:" + port);
            all.put("server." + i, "127.0.0.1:" + PortAssignment.unique() + ":" + PortAssignment.unique()
                + ":participant;127.0.0.1:" + port);
        }
        hostPort = String.join(",", clients);
        all.putAll(Map.of("tickTime", "2000", "initLimit", "3", "syncLimit", "3",
            "localSessionsEnabled", "" + localSessionsEnabled,
            "localSessionsUpgradingEnabled", "" + localSessionsUpgradingEnabled));
        for (int i = 1; i <= 5; i++) {
            File dir = createTmpDir();
            Files.writeString(dir.toPath().resolve("myid"), "" + i);
            Map<String, String> lines = new HashMap<>(all);
            lines.put("dataDir", dir.getPath());
            servers.add(Server.start(dir, lines));
        }
        for (String s : clients) assertTrue(waitForServerUp(s, CONNECTION_TIMEOUT), "waiting for server up");
    }

    @AfterEach
    @Override public void tearDown() throws Exception {
        shutdownServers();
    }

    public void shutdownServers() {
        servers.forEach(Server::stop);
        servers.clear();
    }

    public int getLeaderIndex() {
        String[] all = hostPort.split(",");
        for (int i = 0; i < all.length; i++) {
            String[] at = all[i].split(":");
            try {
                if (FourLetterWordMain.send4LetterWord(at[0], Integer.parseInt(at[1]), "srvr").contains("Mode: leader")) return i;
            } catch (Exception e) { // it is down, or not serving
            }
        }
        return -1;
    }

    /** getPeerList is empty: the servers are not in this JVM. */
    public ArrayList<QuorumPeer> getPeerList() { return new ArrayList<>(); }

    protected TestableZooKeeper createClient() throws IOException, InterruptedException { return createClient(hostPort); }

    protected TestableZooKeeper createClient(String hp) throws IOException, InterruptedException {
        return createClient(new CountdownWatcher(), hp);
    }
}
