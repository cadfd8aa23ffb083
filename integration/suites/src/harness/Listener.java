package harness;

import java.io.*;
import java.util.stream.Collectors;
import org.junit.platform.engine.TestExecutionResult;
import org.junit.platform.engine.UniqueId;
import org.junit.platform.launcher.*;

/**
 * Writes how each test began and ended to HARNESS_TESTS, and what went wrong to HARNESS_TESTS.failed, at once: a class
 * that does not end leaves what it did.
 */
public class Listener implements TestExecutionListener {
    @Override public void executionStarted(TestIdentifier t) { write(t, "started"); }

    @Override public void executionFinished(TestIdentifier t, TestExecutionResult r) {
        if (t.isTest() || r.getStatus() == TestExecutionResult.Status.FAILED) write(t, "" + r.getStatus());
        r.getThrowable().ifPresent(x -> {
            try (PrintWriter w = new PrintWriter(new FileWriter(System.getenv("HARNESS_TESTS") + ".failed", true))) {
                w.println(t.getUniqueId());
                x.printStackTrace(w);
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            }
        });
    }

    private static synchronized void write(TestIdentifier t, String how) {
        // A set of parameters is a number: their text may differ from run to run.
        String name = UniqueId.parse(t.getUniqueId()).getSegments().stream().skip(2)
            .map(s -> s.getValue().replaceAll("\\(.*\\)", "")).collect(Collectors.joining("/"));
        if (how.equals("started") && !t.isTest()) return;
        if (name.isEmpty()) name = "(class)";
        try (FileWriter w = new FileWriter(System.getenv("HARNESS_TESTS"), true)) {
            w.write(name + " " + how.toLowerCase() + "\n");
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
