package org.apache.zookeeper.test;

import static org.junit.jupiter.api.Assertions.assertTrue;

import harness.Peer;
import harness.Server;
import java.io.*;
import java.nio.file.*;
import java.util.*;
import org.apache.zookeeper.*;
import org.apache.zookeeper.server.quorum.QuorumPeer;
import org.junit.jupiter.api.*;

/** In the place of the tests' own: five servers, which are processes. */
public class QuorumBase extends ClientBase {
    protected boolean localSessionsEnabled, localSessionsUpgradingEnabled;
    QuorumPeer s1, s2, s3, s4, s5;
    private final List<Peer> peers = new ArrayList<>();
    private final List<File> dirs = new ArrayList<>();
    private final List<Integer> ports = new ArrayList<>();
    private final List<String> clients = new ArrayList<>();
    private final Map<String, String> all = new HashMap<>();
    private boolean observers;

    @BeforeEach
    @Override public void setUp() throws Exception { setUp(false, false); }

    /** setUp gives the servers no oracle: it decides between two, and there are more. */
    protected void setUp(boolean withObservers, boolean withOracle) throws Exception {
        setupTestEnv();
        setUpAll();
        for (Collection<?> c : List.of(dirs, ports, clients)) c.clear();
        observers = withObservers;
        for (int i = 1; i <= 5; i++) {
            int port = PortAssignment.unique();
            ports.add(port);
            clients.add("127.0.0.1:" + port);
            all.put("server." + i, "127.0.0.1:" + PortAssignment.unique() + ":" + PortAssignment.unique()
                + (withObservers && i > 3 ? ":observer" : ":participant") + ";127.0.0.1:" + port);
        }
        hostPort = String.join(",", clients);
        all.putAll(Map.of("tickTime", "2000", "initLimit", "3", "syncLimit", "3",
            "localSessionsEnabled", "" + localSessionsEnabled,
            "localSessionsUpgradingEnabled", "" + localSessionsUpgradingEnabled));
        for (int i = 1; i <= 5; i++) {
            dirs.add(createTmpDir());
            Files.writeString(dirs.get(i - 1).toPath().resolve("myid"), "" + i);
        }
        startServers();
    }

    /** startServers starts them, after shutdownServers with the addresses and data that they had. */
    void startServers() throws Exception {
        for (int i = 1; i <= 5; i++) {
            File dir = dirs.get(i - 1);
            Map<String, String> lines = new HashMap<>(all);
            lines.putAll(Server.words());
            lines.put("dataDir", dir.getPath());
            if (observers && i > 3) lines.put("peerType", "observer");
            peers.add(new Peer(Server.start(dir, lines), i, ports.get(i - 1), dir));
        }
        s1 = peers.get(0);
        s2 = peers.get(1);
        s3 = peers.get(2);
        s4 = peers.get(3);
        s5 = peers.get(4);
        for (String s : clients) assertTrue(waitForServerUp(s, CONNECTION_TIMEOUT), "waiting for server up");
    }

    @AfterEach
    @Override public void tearDown() throws Exception {
        shutdownServers();
    }

    public void shutdownServers() {
        peers.forEach(Peer::shutdown);
        peers.clear();
    }

    public static void shutdown(QuorumPeer p) { p.shutdown(); }

    public ArrayList<QuorumPeer> getPeerList() {
        peers.forEach(Peer::refresh);
        return new ArrayList<>(peers);
    }

    public int getLeaderIndex() {
        for (int i = 0; i < peers.size(); i++) {
            if (peers.get(i).getPeerState() == QuorumPeer.ServerState.LEADING) return i;
        }
        return -1;
    }

    public int getLeaderClientPort() { return peers.get(getLeaderIndex()).getClientPort(); }

    public QuorumPeer getLeaderQuorumPeer() { return peers.get(getLeaderIndex()).refresh(); }

    public QuorumPeer getFirstObserver() {
        return peers.stream().map(Peer::refresh).filter(p -> p.observer != null).findFirst().orElse(null);
    }

    public int getFirstObserverClientPort() { return getFirstObserver().getClientPort(); }

    public String getPeersMatching(QuorumPeer.ServerState state) {
        StringJoiner all = new StringJoiner(",");
        peers.stream().filter(p -> p.getPeerState() == state).forEach(p -> all.add("127.0.0.1:" + p.getClientPort()));
        return all.toString();
    }

    public QuorumPeer getPeerByClientPort(int port) {
        return peers.stream().filter(p -> p.getClientPort() == port).findFirst().orElse(null);
    }

    protected TestableZooKeeper createClient() throws IOException, InterruptedException { return createClient(hostPort); }

    protected TestableZooKeeper createClient(String hp) throws IOException, InterruptedException {
        return createClient(new CountdownWatcher(), hp);
    }

    protected TestableZooKeeper createClient(CountdownWatcher w, QuorumPeer.ServerState state)
        throws IOException, InterruptedException {
        return createClient(w, getPeersMatching(state));
    }
}
