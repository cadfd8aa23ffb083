"""Three ClickHouse servers with replicated tables: rows inserted at one and read at the others, blocks repeated, tables
created, altered and dropped on all, and one server stopped or killed after the other."""

import signal
import sys
import threading
import time

import report
from server import Refused, Server

TABLE = "ENGINE = ReplicatedMergeTree('/clickhouse/tables/%s', '{replica}') PARTITION BY part ORDER BY id"
BLOCK = 10  # rows of an insert
PATIENCE = 120  # seconds, until a server has fetched all that it lacks
GIVE_UP = 180  # seconds without a block
HANG = 90  # seconds; a request that the system tries again may take that long, with a session of 10 s in it

servers = [Server("r%d" % n) for n in range(3)]
acknowledged = {"events": set(), "quorum": set()}
last = {"events": time.monotonic(), "quorum": time.monotonic()}  # when a block was acknowledged
altered = threading.Lock()  # held while a server is down, and while a statement waits for all servers


def main():
    for s in servers:
        s.configure(sys.argv[1], servers)
    for s in servers:
        s.start()
    for table in acknowledged:
        on_all("CREATE TABLE %s ON CLUSTER all (id UInt64, part UInt8, text String) %s" % (table, TABLE % table))
    threads = [threading.Thread(target=t, args=a) for t, a in [
        (insert, ("events", 0)), (insert, ("events", 1)), (insert, ("quorum", 2)), (administer, ()), (restart, ())]]
    report.ready()
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    try:
        verify()
    except Exception as e:  # pylint: disable=broad-except
        report.wrong("the end could not be verified: %r" % e)
    report.end()


def insert(table, writer):
    """Inserts blocks of rows. A block that is not acknowledged is inserted again, at the next server, until it is, and
    ClickHouse promises to store it once. Some of those that are acknowledged are repeated, too."""
    block, at = 0, writer
    settings = {"insert_quorum": 2} if table == "quorum" else {}
    while report.working():
        ids = [(block * 3 + writer) * BLOCK + i for i in range(BLOCK)]
        text = "INSERT INTO %s VALUES %s" % (
            table, ",".join("(%d,%d,'row %d')" % (i, block % 3, i) for i in ids))
        what = "block of rows inserted" + (", with a quorum" if settings else "")
        while not report.work(what, lambda: servers[at % 3].query(text, **settings)):
            at += 1
            time.sleep(0.5)
            if time.monotonic() - last[table] > GIVE_UP:
                return noticed(table)
        acknowledged[table].update(ids)
        noticed(table)
        if block % 10 == 5:
            at += 1
            report.work("block repeated at another server", lambda: servers[at % 3].query(text, **settings))
        if settings:
            at += 1
            report.work("row read at another server at once", lambda: read(servers[at % 3], ids))
        block += 1
        at += block % 20 == 0
        report.pause(0.3)


def noticed(table):
    now = time.monotonic()
    if now - last[table] > HANG:
        report.wrong("no block was inserted into %s for %d s" % (table, now - last[table]))
    last[table] = now


def read(server, ids):
    """Reads a block that a quorum has at another server, which refuses to answer until it has it, too."""
    query = "SELECT count() FROM quorum WHERE id >= %d AND id <= %d" % (ids[0], ids[-1])
    for _ in range(50):
        try:
            rows = server.query(query, select_sequential_consistency=1)
            break
        except Refused as e:
            if "Replica doesn't have part" not in str(e):
                raise
            time.sleep(0.2)
    else:
        raise TimeoutError("%s has not the block of %d in 10 s" % (server.name, ids[0]))
    if rows != [[str(BLOCK)]]:
        report.wrong("%s has %s of %d rows that a quorum acknowledged" % (server.name, rows, BLOCK))


def administer():
    """Creates, alters and drops tables on all servers, and alters and merges the one that is written to."""
    n = 0
    while report.working():
        with altered:
            report.work("table created and dropped on all servers", passing, "passing%d" % n)
            report.work("partition merged", servers[n % 3].query, "OPTIMIZE TABLE events PARTITION %d FINAL" % (n % 3))
        n += 1
        report.pause(2)


def passing(table):
    """A table's life. Altered are tables of their own, as a block with a new column is not the same block."""
    on_all("CREATE TABLE IF NOT EXISTS %s ON CLUSTER all (id UInt64, part UInt8) %s" % (table, TABLE % table))
    servers[0].query("INSERT INTO %s VALUES (1, 0), (2, 1)" % table)
    servers[1].query("ALTER TABLE %s ADD COLUMN more String DEFAULT 'none'" % table)
    servers[1].query("ALTER TABLE %s DELETE WHERE id = 1" % table)
    servers[2].query("SYSTEM SYNC REPLICA %s" % table)
    on_all("DROP TABLE IF EXISTS %s ON CLUSTER all" % table)


def on_all(statement):
    """Runs a statement on all servers, through the queue in ZooKeeper. Each answers with a line and its error."""
    for row in servers[0].query(statement, distributed_ddl_task_timeout=60):
        if row[2] != "0":
            raise ValueError("server %s: %s" % (row[:2], row[3]))


def restart():
    """Stops and starts a server, or kills it, in turn."""
    n = 0
    while report.working():
        report.pause(20)
        with altered:
            s, how = servers[n % 3], [signal.SIGTERM, signal.SIGKILL][n % 2]
            s.stop(how)
            report.pause(3)
            report.work("server %s and started" % ["stopped", "killed"][n % 2], s.start)
        n += 1


def verify():
    """Compares what each server has with what was acknowledged."""
    for table, want in acknowledged.items():
        sums = set()
        for s in servers:
            got = complete(s, table, want)
            if len(got) != len(set(got)):
                report.wrong("%s has rows of %s twice: %d rows, %d ids" % (s.name, table, len(got), len(set(got))))
            if set(got) != want:
                report.wrong("%s has %d rows of %s, of %d; %d are lost, the first %s" % (
                    s.name, len(got), table, len(want), len(want - set(got)), min(want - set(got), default="none")))
            sums.add(str(s.query("SELECT sum(cityHash64(id, part, text)) FROM " + table)))
        if len(sums) != 1:
            report.wrong("the servers have different checksums of %s: %s" % (table, sums))
    rows = sum(map(len, acknowledged.values()))
    lost = sum(s.logged("events (ReplicatedMergeTreeRestartingThread): ZooKeeper session has expired") for s in servers)
    report.saw("all %d rows on all three servers, once, with equal checksums" % rows)
    report.saw("%d lost connections, each with its session, which its client never resumes, and merges wait until the "
               "old session has expired" % lost)


def complete(server, table, want):
    """The ids that a server has in the end, when it has fetched what it lacks."""
    end = time.monotonic() + PATIENCE
    while True:
        try:
            server.query("SYSTEM SYNC REPLICA " + table)
            got = [int(row[0]) for row in server.query("SELECT id FROM " + table)]
            if set(got) == want or time.monotonic() > end:
                return got
        except (OSError, Refused) as e:
            if time.monotonic() > end:
                raise
            print("again:", repr(e)[:300], file=sys.stderr, flush=True)
        time.sleep(1)


main()
