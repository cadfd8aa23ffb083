import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.concurrent.ExecutionException;
import org.apache.bookkeeper.client.api.BKException;
import org.apache.bookkeeper.client.api.BookKeeper;
import org.apache.bookkeeper.client.api.LedgerEntries;
import org.apache.bookkeeper.client.api.LedgerEntry;
import org.apache.bookkeeper.client.api.ReadHandle;
import org.apache.bookkeeper.client.api.WriteHandle;

/** BookKeeper: ledgers are written, taken over, read by another client and deleted, bookies die and are replaced. */
final class Tenant {
    private static final byte[] PASSWORD = "secret".getBytes();
    private static final int ENTRIES = 20;
    private static final int MOST_KEPT = 60;
    private final Bookies bookies;
    private final BookKeeper writer;
    private final BookKeeper reader;
    /** How many entries of each ledger are acknowledged. */
    private final ConcurrentSkipListMap<Long, Integer> kept = new ConcurrentSkipListMap<>();
    private int failOvers;
    private int replicated;

    private Tenant(String servers) throws Exception {
        bookies = new Bookies(servers);
        writer = BookKeeper.newBuilder(bookies.client()).build();
        reader = BookKeeper.newBuilder(bookies.client()).build();
    }

    public static void main(String[] args) throws Exception {
        try {
            new Tenant(args[args.length - 1]).run();
        } catch (Exception e) {
            e.printStackTrace();
            Report.wrong("the program ended with " + e);
        }
        Report.end();
    }

    private void run() throws Exception {
        Report.ready();
        List<Thread> all = new ArrayList<>();
        all.add(Rounds.start("ledgers", 200, this::ledger));
        all.add(Rounds.start("other ledgers", 200, this::ledger));
        all.add(Rounds.start("bookies", 15_000, this::bookie));
        for (Thread t : all) {
            t.join();
        }
        bookies.checkSessions();
        for (long id : kept.keySet()) {
            readBack(id);
        }
        Report.saw("no session expired, " + failOvers + " auditors elected, one for each that was stopped or killed, "
                + replicated + " ledgers of dead bookies replicated");
        Report.saw("all acknowledged entries of " + kept.size() + " ledgers were read back at the end");
    }

    /** A ledger is written by one client, closed or taken over by another one, and read. */
    private void ledger(int n) throws Exception {
        WriteHandle w = Report.work("ledger created", () -> writer.newCreateLedgerOp().withEnsembleSize(3)
                .withWriteQuorumSize(2).withAckQuorumSize(2).withPassword(PASSWORD).execute().get());
        if (w == null) {
            return; // its metadata may be there, and says nothing
        }
        int acknowledged = 0;
        for (; acknowledged < ENTRIES; acknowledged++) {
            byte[] entry = content(w.getId(), acknowledged);
            if (Report.work("entry acknowledged by two bookies", () -> w.append(entry)) == null) {
                break;
            }
            Thread.sleep(20);
        }
        kept.put(w.getId(), acknowledged);
        if (n % 3 == 0) {
            Rounds.work("ledger taken over from its writer", () -> open(w.getId()).getLastAddConfirmed());
            checkFenced(w);
        } else {
            Report.work("ledger closed", () -> w.closeAsync().thenApply(v -> true).get());
        }
        readBack(w.getId());
        if (kept.size() > MOST_KEPT) {
            delete(kept.firstKey());
        }
    }

    /** A writer whose ledger another client has opened must not be able to add to it. */
    private static void checkFenced(WriteHandle w) throws Exception {
        try {
            long entry = w.append(content(w.getId(), ENTRIES));
            Report.wrong("entry " + entry + " was added to ledger " + w.getId() + " after it had been taken over");
        } catch (BKException expected) {
            w.closeAsync();
        }
    }

    /** Compares a ledger with what was acknowledged. */
    private void readBack(long id) throws Exception {
        Rounds.work("ledger read back by another client", () -> {
            try (ReadHandle r = open(id)) {
                long last = r.getLastAddConfirmed();
                int want = kept.getOrDefault(id, 0); // the other thread may have deleted it
                Rounds.check(last >= want - 1, "ledger " + id + " ends with entry " + last + ", want " + (want - 1));
                if (last < 0) {
                    return true;
                }
                try (LedgerEntries entries = r.read(0, last)) {
                    for (LedgerEntry e : entries) {
                        String got = new String(e.getEntryBytes());
                        Rounds.check(got.equals(new String(content(id, e.getEntryId()))), "ledger " + id + ", entry "
                                + e.getEntryId() + ": got " + got);
                    }
                }
                return true;
            }
        });
    }

    private synchronized void delete(long id) throws Exception {
        if (kept.remove(id) == null) {
            return; // the other thread has deleted it
        }
        Rounds.work("ledger deleted", () -> writer.newDeleteLedgerOp().withLedgerId(id).execute()
                .thenApply(v -> true).get());
        Rounds.until("ledger " + id + " is gone for the other client", () -> {
            try {
                reader.getLedgerMetadata(id).get();
                return false;
            } catch (ExecutionException e) {
                return e.getCause() instanceof BKException b
                        && b.getCode() == BKException.Code.NoSuchLedgerExistsOnMetadataServerException;
            }
        });
    }

    /** The auditor dies: the next one has to find out what it held, and others have to copy it. */
    private void bookie(int n) throws Exception {
        boolean atOnce = n % 2 == 0;
        int dead = Report.work("auditor " + (atOnce ? "killed" : "stopped") + ", and another elected",
                () -> bookies.failOver(atOnce));
        failOvers++;
        Set<Long> lost = new HashSet<>(bookies.ledgersOf(dead));
        lost.retainAll(kept.keySet());
        Report.work("dead bookie's ledgers replicated", () -> {
            Rounds.until("bookie" + dead + " is replaced in all of its ledgers", () -> {
                Set<Long> rest = new HashSet<>(bookies.ledgersOf(dead));
                rest.retainAll(lost);
                return rest.isEmpty();
            });
            return true;
        });
        replicated += lost.size();
        bookies.start(dead);
    }

    private ReadHandle open(long id) throws Exception {
        return reader.newOpenLedgerOp().withLedgerId(id).withPassword(PASSWORD).withRecovery(true).execute().get();
    }

    private static byte[] content(long ledger, long entry) {
        return ("entry " + entry + " of ledger " + ledger).getBytes();
    }
}
