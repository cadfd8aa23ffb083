import java.util.Map;
import java.util.Scanner;
import java.util.TreeMap;
import java.util.concurrent.Callable;

/** What a tenant in Java tells the test: that it works, what it did, how often that failed, and what went wrong. */
final class Report {
    private static final Map<String, long[]> WORK = new TreeMap<>(); // successes, failures, longest in ms
    private static volatile boolean finish;

    private Report() {}

    /** Runs the tenant, and says so if it fails as a whole. */
    public static void main(String[] args) {
        try {
            Tenant.main(args);
        } catch (Throwable e) {
            e.printStackTrace();
            wrong("its program failed: " + e);
            end();
        }
    }

    /** Says that the tenant works: leaders are killed from now on. */
    static void ready() {
        Thread asks = new Thread(() -> {
            new Scanner(System.in).nextLine();
            finish = true;
        });
        asks.setDaemon(true);
        asks.start();
        say("ready");
    }

    /** Whether the tenant is to go on with its work. */
    static boolean working() {
        return !finish;
    }

    /** Does a piece of work, counts it and takes its time; returns null if it failed. */
    static <T> T work(String what, Callable<T> piece) {
        long begun = System.nanoTime();
        T result = null;
        boolean good = false;
        try {
            result = piece.call();
            good = true;
        } catch (Exception e) {
            System.err.println("failed: " + what + ": " + e);
        }
        synchronized (WORK) {
            long[] sums = WORK.computeIfAbsent(what, w -> new long[3]);
            sums[good ? 0 : 1]++;
            sums[2] = Math.max(sums[2], (System.nanoTime() - begun) / 1_000_000);
        }
        return result;
    }

    /** Adds a sentence about what the tenant saw of the ensemble. */
    static void saw(String text) {
        say("saw " + text);
    }

    /** Fails the test. */
    static void wrong(String text) {
        say("wrong " + text);
    }

    /** Says what was done, and ends the program with all its threads. */
    static void end() {
        WORK.forEach((what, sums) -> say("work " + what + ";" + sums[0] + ";" + sums[1] + ";" + sums[2]));
        say("end");
        Runtime.getRuntime().halt(0);
    }

    private static synchronized void say(String line) {
        System.out.println("tenant: " + line);
        System.out.flush();
    }
}
