import java.io.File;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.TimeUnit;

/** A process of the system: a JVM that runs the system's own main class. It ends when the tenant does. */
final class Child {
    private Child() {}

    /** Starts a main class. What it prints joins what the tenant logs. */
    static Process start(List<String> flags, String mainClass, String... arguments) throws IOException {
        List<String> command = new ArrayList<>(List.of("java", "-Xmx256m", "-XX:+ExitOnOutOfMemoryError",
                "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"));
        command.addAll(flags);
        command.addAll(List.of("-cp", System.getProperty("java.class.path"), "Child", mainClass));
        command.addAll(List.of(arguments));
        return new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.INHERIT)
                .redirectOutput(new File("/dev/stderr")).start();
    }

    /** The flags of the tenant itself that say how to speak TLS to the ensemble. */
    static List<String> zooKeeperFlags() {
        return ManagementFactory.getRuntimeMXBean().getInputArguments().stream()
                .filter(f -> f.startsWith("-Dzookeeper.")).toList();
    }

    /** Ends a process: at once, or in an orderly way, for which it has a minute. */
    static void stop(Process child, boolean atOnce) throws InterruptedException {
        if (!atOnce) {
            child.destroy();
            atOnce = !child.waitFor(1, TimeUnit.MINUTES);
        }
        if (atOnce) {
            child.destroyForcibly().waitFor();
        }
    }

    public static void main(String[] args) throws Exception {
        Thread parent = new Thread(() -> {
            try {
                System.in.read(); // is never written to: it returns when the tenant has ended
            } catch (IOException e) {
                System.err.println("the tenant's pipe: " + e);
            }
            Runtime.getRuntime().halt(0);
        });
        parent.setDaemon(true);
        parent.start();
        String[] arguments = Arrays.copyOfRange(args, 1, args.length);
        Class.forName(args[0]).getMethod("main", String[].class).invoke(null, (Object) arguments);
    }
}
