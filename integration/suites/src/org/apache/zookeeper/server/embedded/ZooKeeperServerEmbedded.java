package org.apache.zookeeper.server.embedded;

import harness.Server;
import java.io.File;
import java.nio.file.*;
import java.util.*;

/** In the place of ZooKeeper's: a process. */
public interface ZooKeeperServerEmbedded extends AutoCloseable {
    void start() throws Exception;
    String getConnectionString();
    String getSecureConnectionString();
    void close();

    static ZookKeeperServerEmbeddedBuilder builder() { return new ZookKeeperServerEmbeddedBuilder(); }

    class ZookKeeperServerEmbeddedBuilder {
        private Path dir;
        private Properties p;
        public ZookKeeperServerEmbeddedBuilder baseDir(Path d) { dir = d; return this; }
        public ZookKeeperServerEmbeddedBuilder configuration(Properties c) { p = c; return this; }
        public ZookKeeperServerEmbeddedBuilder exitHandler(ExitHandler h) { return this; }
        public ZooKeeperServerEmbedded build() throws Exception {
            Map<String, String> lines = new HashMap<>();
            p.forEach((k, v) -> lines.put(k.toString(), v.toString()));
            lines.keySet().removeAll(List.of("host", "ticktime")); // no keys of ZooKeeper's; zk-lite would not start
            for (String key : List.of("clientPort", "secureClientPort")) {
                if ("0".equals(lines.get(key))) try (java.net.ServerSocket s = new java.net.ServerSocket(0)) {
                    lines.put(key, "" + s.getLocalPort());
                }
            }
            lines.put("dataDir", dir.resolve("data").toString());
            return new ZooKeeperServerEmbedded() {
                private Server s;
                public void start() throws Exception { s = Server.start(dir.resolve("data").toFile(), lines); }
                public String getConnectionString() { return "localhost:" + lines.get("clientPort"); }
                public String getSecureConnectionString() { return "localhost:" + lines.get("secureClientPort"); }
                public void close() { s.stop(); }
            };
        }
    }
}
