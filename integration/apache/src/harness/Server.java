package harness;

import java.io.*;
import java.nio.file.*;
import java.util.*;
import java.util.concurrent.TimeUnit;

/** A server as a process: zk-lite's (HARNESS_ZKLITE), or ZooKeeper's (HARNESS_ZOOKEEPER, a class path). */
public final class Server {
    private final Process process;

    private Server(Process p) { process = p; }

    /** start runs a server with these lines of zoo.cfg, and what the test has set as system properties. */
    public static Server start(File dir, Map<String, String> lines) throws IOException {
        String binary = System.getenv("HARNESS_ZKLITE");
        Map<String, String> all = new TreeMap<>();
        List<String> command = new ArrayList<>();
        if (binary == null) {
            command.addAll(List.of(System.getProperty("java.home") + "/bin/java", "-Xmx256m", "-XX:TieredStopAtLevel=1"));
        }
        for (String name : System.getProperties().stringPropertyNames()) {
            String value = System.getProperty(name);
            if (!name.startsWith("zookeeper.") || clients(name)) continue;
            if (binary == null) {
                command.add("-D" + name + "=" + value);
            } else if (!name.startsWith("zookeeper.authProvider.") || value.startsWith("org.apache.zookeeper.server.auth.")) {
                all.put(name.substring("zookeeper.".length()), value);
            }
        }
        all.putAll(lines);
        Files.createDirectories(dir.toPath());
        StringBuilder text = new StringBuilder();
        all.putIfAbsent("admin.enableServer", "false");
        all.putIfAbsent("4lw.commands.whitelist", "*");
        all.forEach((k, v) -> text.append(k).append('=').append(v).append('\n'));
        Path file = dir.toPath().resolve("harness.cfg");
        Files.writeString(file, text);
        if (binary == null) {
            command.addAll(List.of("-cp", System.getenv("HARNESS_ZOOKEEPER"),
                "org.apache.zookeeper.server.quorum.QuorumPeerMain", file.toString()));
        } else {
            command.addAll(List.of(binary, "server", "--config", file.toString()));
        }
        File log = new File(dir, "harness.log");
        Process p = new ProcessBuilder(command).redirectErrorStream(true)
            .redirectOutput(ProcessBuilder.Redirect.appendTo(log)).start();
        Runtime.getRuntime().addShutdownHook(new Thread(p::destroyForcibly));
        try (FileWriter w = new FileWriter(System.getenv("HARNESS_STARTS"), true)) {
            w.write(log + "\n");
        }
        return new Server(p);
    }

    /** clients reports whether a property is for the test's own clients. */
    private static boolean clients(String name) {
        if (name.equals("zookeeper.client.portUnification") || name.equals("zookeeper.client.certReload")) return false;
        return name.startsWith("zookeeper.client") || name.startsWith("zookeeper.sasl.client");
    }

    public void stop() {
        process.destroy();
        try {
            if (!process.waitFor(20, TimeUnit.SECONDS)) process.destroyForcibly();
        } catch (InterruptedException e) {
            process.destroyForcibly();
        }
    }

    public void await() throws InterruptedException { process.waitFor(); }
}
