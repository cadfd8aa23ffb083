package org.apache.curator.test;

import harness.Server;
import java.io.*;
import java.net.ServerSocket;
import java.util.*;
import org.apache.zookeeper.client.FourLetterWordMain;

/** In the place of Curator's: a process. TestingServer and TestingCluster start it. */
public class TestingZooKeeperServer implements Closeable {
    private final QuorumConfigBuilder config;
    private final int index;
    private int port;
    private Server server;
    private boolean closed;

    public TestingZooKeeperServer(QuorumConfigBuilder c) { this(c, 0); }

    public TestingZooKeeperServer(QuorumConfigBuilder c, int i) {
        config = c;
        index = i;
        port = c.getInstanceSpec(i).getPort();
    }

    public Collection<InstanceSpec> getInstanceSpecs() { return config.getInstanceSpecs(); }

    public InstanceSpec getInstanceSpec() { return config.getInstanceSpec(index); }

    public int getLocalPort() { return port; }

    public void start() throws Exception {
        if (server != null || closed) return;
        if (port == 0) try (ServerSocket s = new ServerSocket(0)) {
            port = s.getLocalPort();
        }
        Map<String, String> lines = new HashMap<>();
        config.buildConfigProperties(index, port).forEach((k, v) -> lines.put("" + k, "" + v));
        server = Server.start(getInstanceSpec().getDataDirectory(), lines);
        long until = System.nanoTime() + 60_000_000_000L;
        while (config.size() == 1 && !serves() && System.nanoTime() < until) Thread.sleep(20);
    }

    /** serves reports whether a client would not be turned away, for which it would wait a second. */
    private boolean serves() {
        try {
            return FourLetterWordMain.send4LetterWord("127.0.0.1", port, "srvr").contains("Mode:");
        } catch (Exception e) { // not yet
            return false;
        }
    }

    public void restart() throws Exception {
        if (closed) throw new IllegalStateException("Cannot restart a closed instance");
        stop();
        start();
    }

    public void stop() throws IOException {
        if (server != null) server.stop();
        server = null;
    }

    public void kill() {
        if (server != null) server.kill();
        server = null;
    }

    @Override public void close() throws IOException {
        stop();
        if (closed) return;
        closed = true;
        config.close();
        InstanceSpec spec = getInstanceSpec();
        if (spec.deleteDataDirectoryOnClose()) DirectoryUtils.deleteRecursively(spec.getDataDirectory());
    }
}
