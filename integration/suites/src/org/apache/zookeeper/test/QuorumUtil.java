package org.apache.zookeeper.test;

import harness.Peer;
import harness.Server;
import java.io.*;
import java.nio.file.*;
import java.util.*;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.Collectors;
import org.apache.zookeeper.PortAssignment;
import org.apache.zookeeper.client.FourLetterWordMain;
import org.apache.zookeeper.server.quorum.QuorumPeer;

/** In the place of the tests' own: 2n+1 servers, which are processes. */
public class QuorumUtil {
    public static class PeerStruct {
        public int id;
        public QuorumPeer peer;
        public File dataDir;
        public int clientPort;
        Server server;
    }

    public final int N, ALL;
    public boolean disableJMXTest;
    private final Map<Integer, PeerStruct> peers = new TreeMap<>();
    private final Map<String, String> lines = new HashMap<>();

    public QuorumUtil(int n) { this(n, 3); }

    public QuorumUtil(int n, int syncLimit) {
        N = n;
        ALL = 2 * n + 1;
        lines.putAll(Map.of("tickTime", "2000", "initLimit", "3", "syncLimit", "" + syncLimit, "localSessionsEnabled", "false"));
        for (int id = 1; id <= ALL; id++) {
            PeerStruct p = new PeerStruct();
            p.id = id;
            p.clientPort = PortAssignment.unique();
            lines.put("server." + id, "127.0.0.1:" + PortAssignment.unique() + ":" + PortAssignment.unique()
                + ":participant;127.0.0.1:" + p.clientPort);
            try {
                p.dataDir = ClientBase.createTmpDir();
                Files.writeString(p.dataDir.toPath().resolve("myid"), "" + id);
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            }
            peers.put(id, p);
        }
    }

    public PeerStruct getPeer(int id) {
        PeerStruct p = peers.get(id);
        if (p.peer != null) ((Peer) p.peer).refresh();
        return p;
    }

    public int getLeaderServer() {
        return peers.keySet().stream().filter(id -> getPeer(id).peer.leader != null).findFirst()
            .orElseThrow(() -> new AssertionError("Leader server not found."));
    }

    public boolean leaderExists() { return peers.keySet().stream().anyMatch(id -> getPeer(id).peer.leader != null); }

    public QuorumPeer getLeaderQuorumPeer() { return getPeer(getLeaderServer()).peer; }

    public List<QuorumPeer> getFollowerQuorumPeers() {
        return peers.keySet().stream().map(id -> getPeer(id).peer).filter(p -> p.leader == null).toList();
    }

    public boolean allPeersAreConnected() {
        return peers.values().stream().allMatch(p -> p.peer.getPeerState() != QuorumPeer.ServerState.LOOKING);
    }

    public String getConnectString(QuorumPeer p) { return "127.0.0.1:" + p.getClientPort(); }

    public void enableLocalSession(boolean enabled) { lines.put("localSessionsEnabled", "" + enabled); }

    public void startAll() throws IOException {
        shutdownAll();
        for (int id : peers.keySet()) begin(id);
        for (int id : peers.keySet()) await(id);
    }

    /** startQuorum leaves a majority running. All are started before: zk-lite's first start needs all voters. */
    public void startQuorum() throws IOException {
        startAll();
        for (int id = N + 2; id <= ALL; id++) shutdown(id);
        for (int id = 1; id <= N + 1; id++) await(id);
    }

    public void start(int id) throws IOException { begin(id); }

    public void startThenShutdown(int id) throws IOException {
        restart(id);
        shutdown(id);
    }

    public void restart(int id) throws IOException {
        start(id);
        await(id);
    }

    public void shutdownAll() {
        for (PeerStruct p : peers.values()) {
            if (p.server != null) p.server.stop();
            p.server = null;
        }
    }

    /**
     * shutdown waits until the servers that are left have noticed, if they are too few: zk-lite's keep clients for a
     * while, in case that there is a leader soon.
     */
    public void shutdown(int id) {
        PeerStruct p = peers.get(id);
        if (p.server == null) return;
        p.server.stop();
        p.server = null;
        List<PeerStruct> left = peers.values().stream().filter(x -> x.server != null).toList();
        Set<Long> ids = left.stream().map(x -> (long) x.id).collect(Collectors.toSet());
        long until = System.nanoTime() + 30_000_000_000L;
        for (PeerStruct x : left) {
            if (x.peer.getQuorumVerifier().containsQuorum(ids)) return;
            while (writes(x) && System.nanoTime() < until) LockSupport.parkNanos(100_000_000);
        }
    }

    private static boolean writes(PeerStruct p) {
        try {
            return FourLetterWordMain.send4LetterWord("127.0.0.1", p.clientPort, "isro").startsWith("rw");
        } catch (Exception e) { // it is asked again
            return true;
        }
    }

    public String getConnString() {
        StringJoiner all = new StringJoiner(",");
        peers.values().forEach(p -> all.add("127.0.0.1:" + p.clientPort));
        return all.toString();
    }

    public String getConnectionStringForServer(int id) { return "127.0.0.1:" + peers.get(id).clientPort; }

    public void tearDown() { shutdownAll(); }

    private void begin(int id) throws IOException {
        PeerStruct p = peers.get(id);
        Map<String, String> own = new HashMap<>(lines);
        own.putAll(Server.words());
        own.put("dataDir", p.dataDir.getPath());
        p.server = Server.start(p.dataDir, own);
        p.peer = new Peer(p.server, id, p.clientPort, p.dataDir);
    }

    private void await(int id) {
        if (!ClientBase.waitForServerUp(getConnectionStringForServer(id), ClientBase.CONNECTION_TIMEOUT)) {
            throw new IllegalStateException("server " + id + " does not serve");
        }
    }
}
