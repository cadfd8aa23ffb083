package org.apache.zookeeper.server.quorum;

import harness.Peer;
import harness.Server;
import java.io.*;
import java.nio.file.*;
import java.util.*;

/** In the place of ZooKeeper's: gives the test's file to a process. */
public class QuorumPeerMain {
    protected QuorumPeer quorumPeer;

    protected void initializeAndRun(String[] args) throws IOException {
        Properties file = new Properties();
        load(file, args[0]);
        File dir = new File(file.getProperty("dataDir"));
        String dynamic = file.getProperty("dynamicConfigFile");
        if (dynamic != null) load(file, dynamic);
        Path myid = dir.toPath().resolve("myid");
        long id = Files.exists(myid) ? Long.parseLong(Files.readString(myid).trim()) : -1;
        String own = file.getProperty("server." + id, ""), port = file.getProperty("clientPort");
        if (own.contains(";")) port = own.substring(own.lastIndexOf(';') + 1).replaceAll(".*:", "").trim();
        boolean alone = QuorumPeerConfig.isStandaloneEnabled() && !"false".equals(file.getProperty("standaloneEnabled"));
        long voters = file.stringPropertyNames().stream()
            .filter(n -> n.startsWith("server.") && !file.getProperty(n).contains("observer")).count();
        Peer peer = new Peer(null, id, port == null ? 0 : Integer.parseInt(port), dir);
        if (voters > (alone ? 1 : 0)) quorumPeer = peer; // before the server is up, or a test finds none
        Server s = Server.start(dir, Server.words(), Path.of(args[0]));
        peer.server = s;
        try {
            s.await();
        } catch (InterruptedException e) {
            s.stop();
        }
    }

    private static void load(Properties p, String file) throws IOException {
        try (Reader r = new FileReader(file)) {
            p.load(r);
        }
    }

    public void close() { if (quorumPeer != null) quorumPeer.shutdown(); }

    protected QuorumPeer getQuorumPeer() {
        if (quorumPeer instanceof Peer) ((Peer) quorumPeer).refresh();
        return quorumPeer;
    }
}
