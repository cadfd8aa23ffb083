package org.apache.zookeeper.server.quorum;

import harness.Server;
import java.io.*;
import java.nio.file.*;
import java.util.*;

/** In the place of ZooKeeper's: gives the test's file to a process. */
public class QuorumPeerMain {
    protected QuorumPeer quorumPeer;

    protected void initializeAndRun(String[] args) throws IOException {
        Properties file = new Properties();
        try (Reader r = new FileReader(args[0])) {
            file.load(r);
        }
        String dynamic = file.getProperty("dynamicConfigFile");
        if (dynamic != null) {
            file.remove("dynamicConfigFile");
            try (Reader r = new FileReader(dynamic)) {
                file.load(r);
            }
        }
        Map<String, String> lines = new HashMap<>();
        file.stringPropertyNames().forEach(k -> lines.put(k, file.getProperty(k)));
        Server s = Server.start(new File(file.getProperty("dataDir")), lines);
        quorumPeer = new QuorumPeer() {
            @Override public void shutdown() { s.stop(); }
        };
        try {
            s.await();
        } catch (InterruptedException e) {
            s.stop();
        }
    }
    public void close() { if (quorumPeer != null) quorumPeer.shutdown(); }
    protected QuorumPeer getQuorumPeer() { return quorumPeer; }
}
