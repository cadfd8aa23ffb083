import java.util.concurrent.Callable;

/** Work that is repeated until the test is over, and conditions that come true in time. */
final class Rounds {
    private Rounds() {}

    interface Round {
        void run(int n) throws Exception;
    }

    /** Repeats a piece of work in a thread, with a pause in between, in milliseconds. */
    static Thread start(String name, long pause, Round round) {
        Thread t = new Thread(() -> {
            for (int n = 0; Report.working(); n++) {
                try {
                    round.run(n);
                    Thread.sleep(pause);
                } catch (Exception e) {
                    e.printStackTrace();
                    Report.wrong(name + ": " + e);
                }
            }
        }, name);
        t.start();
        return t;
    }

    /** Does a piece of work, again when the system has given it up. */
    static void work(String what, Callable<?> piece) throws Exception {
        until(what, () -> Report.work(what, piece) != null);
    }

    /** Tries until something holds, for two minutes. */
    static void until(String what, Callable<Boolean> holds) throws Exception {
        Exception last = null;
        for (long end = System.nanoTime() + 120_000_000_000L; System.nanoTime() < end; Thread.sleep(200)) {
            try {
                if (holds.call()) {
                    return;
                }
            } catch (Exception e) {
                last = e; // a process of the system or a server of the ensemble is away
            }
        }
        throw new IllegalStateException("not within two minutes: " + what, last);
    }

    static void check(boolean good, String otherwise) {
        if (!good) {
            Report.wrong(otherwise);
        }
    }
}
