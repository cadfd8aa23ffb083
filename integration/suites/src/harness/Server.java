package harness;

import java.io.*;
import java.nio.file.*;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.*;
import java.util.concurrent.TimeUnit;
import javax.security.auth.login.AppConfigurationEntry;
import javax.security.auth.login.Configuration;
import org.apache.zookeeper.server.quorum.QuorumPeerConfig;

/** A server as a process: zk-lite's (HARNESS_ZKLITE), or ZooKeeper's (HARNESS_ZOOKEEPER, a class path). */
public final class Server {
    private final Process process;

    private Server(Process p) { process = p; }

    /** words are the lines by which a server answers what a Peer asks, unless the test says which it answers. */
    public static Map<String, String> words() {
        boolean told = System.getProperty("zookeeper.4lw.commands.whitelist") != null;
        return told ? Map.of() : Map.of("4lw.commands.whitelist", "*");
    }

    /** start runs a server with these lines of zoo.cfg, and what the test has set as system properties. */
    public static Server start(File dir, Map<String, String> lines) throws IOException {
        return start(dir, lines, dir.toPath().resolve("harness.cfg"));
    }

    /** start writes the lines to the end of a file of which they are the rest, and runs a server with it. */
    public static Server start(File dir, Map<String, String> lines, Path file) throws IOException {
        String binary = System.getenv("HARNESS_ZKLITE");
        Map<String, String> all = new TreeMap<>();
        List<String> command = new ArrayList<>();
        if (binary == null) {
            command.addAll(List.of(System.getProperty("java.home") + "/bin/java", "-Xmx256m", "-XX:-UsePerfData",
                "-XX:TieredStopAtLevel=1", "-Xshare:auto", "-XX:SharedArchiveFile=" + System.getenv("HARNESS_ARCHIVE"),
                "-Xlog:disable"));
        }
        for (String name : System.getProperties().stringPropertyNames()) {
            String value = System.getProperty(name);
            if (!name.startsWith("zookeeper.") || clients(name)) continue;
            if (binary != null && name.equals("zookeeper.letAnySaslUserDoX")) continue; // zk-lite would not start
            if (binary == null) {
                command.add("-D" + name + "=" + value);
            } else if (!name.startsWith("zookeeper.authProvider.") || value.startsWith("org.apache.zookeeper.server.auth.")) {
                all.put(name.substring("zookeeper.".length()), value);
            }
        }
        for (String name : List.of("readonlymode.enabled", "jute.maxbuffer", "znode.container.checkIntervalMs")) {
            String value = System.getProperty(name);
            if (value != null && binary == null) command.add("-D" + name + "=" + value);
            else if (value != null) all.put(name, value);
        }
        if (QuorumPeerConfig.isReconfigEnabled()) all.put("reconfigEnabled", "true");
        if (!QuorumPeerConfig.isStandaloneEnabled()) all.put("standaloneEnabled", "false");
        all.putAll(lines);
        Files.createDirectories(dir.toPath());
        String jaas = jaas();
        if (!jaas.isEmpty()) {
            String path = Files.writeString(dir.toPath().resolve("harness.jaas"), jaas).toString();
            if (binary == null) command.add("-Djava.security.auth.login.config=" + path);
            else all.put("java.security.auth.login.config", path);
        }
        if (binary != null) { // ZooKeeper lets servers in that no one has named before
            Path secret = Files.writeString(dir.toPath().resolve("harness.secret"), "0123456789abcdef0123456789abcdef\n");
            Files.setPosixFilePermissions(secret, PosixFilePermissions.fromString("rw-------"));
            all.put("peer.joinSecretFile", secret.toString());
        }
        String krb5 = System.getProperty("java.security.krb5.conf");
        if (binary == null && krb5 != null) command.add("-Djava.security.krb5.conf=" + krb5);
        all.putIfAbsent("admin.enableServer", "false");
        Properties there = new Properties();
        if (Files.exists(file) && !file.endsWith("harness.cfg")) {
            there.load(new StringReader(Files.readString(file)));
        } else {
            Files.writeString(file, "");
        }
        StringBuilder text = new StringBuilder("\n");
        all.forEach((k, v) -> { if (!there.containsKey(k)) text.append(k).append('=').append(v).append('\n'); });
        Files.writeString(file, text, StandardOpenOption.APPEND);
        if (binary == null) {
            command.addAll(List.of("-cp", System.getenv("HARNESS_ZOOKEEPER"),
                "org.apache.zookeeper.server.quorum.QuorumPeerMain", file.toString()));
        } else {
            command.addAll(List.of(binary, "server", "--config", file.toString()));
        }
        File starts = new File(System.getenv("HARNESS_STARTS")), log = new File(starts.getParentFile(), "servers.log");
        Process p = new ProcessBuilder(command).redirectErrorStream(true)
            .redirectOutput(ProcessBuilder.Redirect.appendTo(log)).start();
        Runtime.getRuntime().addShutdownHook(new Thread(p::destroyForcibly));
        try (FileWriter w = new FileWriter(starts, true)) {
            w.write(dir + "\n");
        }
        return new Server(p);
    }

    /** jaas is the server's section of the test's login configuration, which may be an object in this JVM. */
    private static String jaas() {
        String section = System.getProperty("zookeeper.sasl.serverconfig", "Server");
        AppConfigurationEntry[] entries;
        try {
            entries = Configuration.getConfiguration().getAppConfigurationEntry(section);
        } catch (SecurityException e) { // there is none
            return "";
        }
        if (entries == null) return "";
        StringBuilder text = new StringBuilder(section + " {\n");
        for (AppConfigurationEntry e : entries) {
            text.append(e.getLoginModuleName()).append(" required");
            e.getOptions().forEach((k, v) -> text.append("\n  ").append(k).append("=\"").append(v).append('"'));
            text.append(";\n");
        }
        return text.append("};\n").toString();
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

    public void kill() {
        try {
            process.destroyForcibly().waitFor(20, TimeUnit.SECONDS);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    public void await() throws InterruptedException { process.waitFor(); }
}
