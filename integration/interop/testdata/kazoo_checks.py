"""Checks of a zk-lite ensemble with kazoo.

The argument is the connect string. What is printed is described at the type
message in integration/cluster: a line for each check, and requests to kill a server.
"""

import inspect
import json
import logging
import os
import signal
import subprocess
import sys
import threading
import traceback

from kazoo import exceptions as ke
from kazoo.client import KazooClient, KazooState, TransactionRequest
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.protocol.states import EventType
from kazoo.recipe.cache import TreeCache, TreeEvent
from kazoo.recipe.watchers import ChildrenWatch, DataWatch, PatientChildrenWatch
from kazoo.retry import KazooRetry
from kazoo.security import (
    CREATOR_ALL_ACL, OPEN_ACL_UNSAFE, READ_ACL_UNSAFE, ACL, Id, make_acl, make_digest_acl)

HOSTS = sys.argv[1]
# Where ca.pem and client.pem are; empty: without TLS.
TLS = os.environ.get("ZK_LITE_INTEROP_TLS", "")
PATIENCE = 30  # seconds, for what should happen soon
SESSION = 10.0  # seconds: longer than an election on a busy machine

logging.basicConfig(level=logging.INFO, stream=sys.stderr)
checks = []


def say(**message):
    print(json.dumps(message), flush=True)


def ask(**message):
    """Asks the test to do something to a server, and waits until it is done."""
    say(**message)
    if sys.stdin.readline().strip() != "done":
        raise RuntimeError("the test did not do %r" % message)


def check(function):
    checks.append(function)
    return function


def new_client(hosts=HOSTS, **more):
    options = dict(
        hosts=hosts, timeout=SESSION, randomize_hosts=False,
        connection_retry=KazooRetry(max_tries=-1, delay=0.05, max_delay=0.5),
        command_retry=KazooRetry(max_tries=-1, delay=0.05, max_delay=0.5))
    options.update(more)
    if TLS:
        options.update(use_ssl=True, verify_certs=True, ca=TLS + "/ca.pem", certfile=TLS + "/client.pem",
                       keyfile=TLS + "/client.pem")
    client = KazooClient(**options)
    client.start(timeout=PATIENCE)
    return client


class clients:
    """Some clients, which are closed at the end of the block."""

    def __init__(self, n=1, **options):
        self.n, self.options = n, options

    def __enter__(self):
        self.all = [new_client(**self.options) for _ in range(self.n)]
        return self.all if self.n > 1 else self.all[0]

    def __exit__(self, *_):
        for client in self.all:
            client.stop()
            client.close()


def equal(got, want):
    if got != want:
        raise AssertionError("%r, want %r" % (got, want))


def raises(error, function, *args, **kwargs):
    try:
        got = function(*args, **kwargs)
    except error as e:
        # Exactly this one: kazoo's errors have parents in common.
        equal(type(e), error)
        return
    raise AssertionError("%r, want %s" % (got, error.__name__))


def wait(event, what):
    if not event.wait(PATIENCE):
        raise AssertionError("waited %d s for: %s" % (PATIENCE, what))


class Absent(Exception):
    """Raised by a check of what this version of kazoo lacks."""


class Log:
    """Collects what callbacks get, and waits for how much there is."""

    def __init__(self):
        self.changed, self.items = threading.Condition(), []

    def __call__(self, item):
        with self.changed:
            self.items.append(item)
            self.changed.notify_all()

    def await_that(self, what, condition):
        with self.changed:
            if not self.changed.wait_for(lambda: condition(self.items), PATIENCE):
                raise AssertionError("waited %d s for: %s; there is %r" % (PATIENCE, what, self.items))
            return list(self.items)


def eventually(what, condition):
    deadline = threading.Event()
    for _ in range(PATIENCE * 20):
        if condition():
            return
        deadline.wait(0.05)
    raise AssertionError("waited %d s for: %s" % (PATIENCE, what))


def server_of(client):
    """The address of the server that a client is connected to."""
    return "%s:%d" % client._connection._socket.getpeername()[:2]


def hosts_from(server):
    """The connect string with one server first; kazoo tries them in order."""
    others = [h for h in HOSTS.split(",") if h != server]
    return ",".join([server] + others)


@check
def connects_and_reads_the_version():
    with clients() as c:
        equal(c.state, KazooState.CONNECTED)
        equal(c.client_id[0] != 0, True)
        equal(len(c.client_id[1]), 16)
        equal(c.server_version()[:2], (3, 9))
        equal(c.command(b"ruok"), "imok")


@check
def creates():
    with clients() as c:
        equal(c.create("/create", b"x"), "/create")
        path, stat = c.create("/create/2", b"yy", include_data=True)
        equal((path, stat.dataLength, stat.version), ("/create/2", 2, 0))
        equal(c.create("/create/a/b/c", b"deep", makepath=True), "/create/a/b/c")
        equal([c.create("/create/s-", sequence=True) for _ in range(2)],
              ["/create/s-0000000002", "/create/s-0000000003"])
        equal(c.create("/create/e", b"", ephemeral=True), "/create/e")
        equal(c.exists("/create/e").owner_session_id, c.client_id[0])
        equal(c.create("/create/e-", ephemeral=True, sequence=True), "/create/e-0000000005")
        raises(ke.NodeExistsError, c.create, "/create")
        raises(ke.NoNodeError, c.create, "/create/no/no")
        raises(ke.NoChildrenForEphemeralsError, c.create, "/create/e/x")
        raises(ke.BadArgumentsError, c.create, "/create/\x01")
        for _ in range(2):
            c.ensure_path("/create/x/y")
        equal(c.exists("/create/x/y").version, 0)


@check
def reads_and_writes():
    with clients() as c:
        c.create("/data", b"0")
        data, stat = c.get("/data")
        equal((data, stat.version, stat.dataLength, stat.numChildren), (b"0", 0, 1, 0))
        equal(c.set("/data", b"one", 0).version, 1)
        raises(ke.BadVersionError, c.set, "/data", b"x", 0)
        raises(ke.NoNodeError, c.set, "/none", b"x")
        raises(ke.NoNodeError, c.get, "/none")
        equal(c.exists("/none"), None)
        after = c.exists("/data")
        equal((after.version, after.czxid, after.mzxid > stat.mzxid), (1, stat.czxid, True))
        equal(after.last_modified >= after.created > 1e9, True)
        c.set("/data", b"")
        equal(c.get("/data")[0], b"")
        large = os.urandom(900_000)
        c.set("/data", large)
        equal(c.get("/data")[0] == large, True)
        raises(ke.BadArgumentsError, c.set, "/data", bytes(2_000_000))
        equal(c.get("/data")[0] == large, True)
        for i in range(3):
            c.create("/data/%d" % i)
        children, stat = c.get_children("/data", include_data=True)
        equal((sorted(children), stat.numChildren, stat.cversion), (["0", "1", "2"], 3, 3))
        equal(c.get_children("/data/0"), [])
        raises(ke.NoNodeError, c.get_children, "/none")
        raises(ke.NotEmptyError, c.delete, "/data")
        raises(ke.BadVersionError, c.delete, "/data/0", 7)
        raises(ke.NoNodeError, c.delete, "/none")
        c.delete("/data/0", 0)
        c.delete("/data", recursive=True)
        equal(c.exists("/data"), None)


@check
def unicode_and_chroot():
    with clients() as c:
        for name in ["äöü", "日本語", " a b ", ".hidden", "a:b,c"]:
            equal(c.create("/unicode/" + name, name.encode(), makepath=True), "/unicode/" + name)
            equal(c.get("/unicode/" + name)[0], name.encode())
        equal(len(c.get_children("/unicode")), 5)
        with clients(hosts=HOSTS + "/unicode") as below:
            equal(sorted(below.get_children("/")), sorted(c.get_children("/unicode")))
            equal(below.create("/in", b"1"), "/in")
            log = Log()
            equal(below.get("/in", watch=log)[0], b"1")
            c.set("/unicode/in", b"2")
            equal(log.await_that("the event", bool)[0].path, "/in")


@check
def acls():
    with clients(2) as (c, other):
        acl = make_digest_acl("user", "secret", all=True)
        c.create("/acl", b"mine", acl=[acl])
        raises(ke.NoAuthError, c.get, "/acl")
        c.add_auth("digest", "user:secret")
        equal(c.get("/acl")[0], b"mine")
        got, stat = c.get_acls("/acl")
        equal((got, stat.aversion), ([acl], 0))
        equal(c.set_acls("/acl", READ_ACL_UNSAFE + [acl], 0).aversion, 1)
        raises(ke.BadVersionError, c.set_acls, "/acl", [acl], 0)
        equal(other.get("/acl")[0], b"mine")
        raises(ke.NoAuthError, other.set, "/acl", b"no")
        raises(ke.NoAuthError, other.create, "/acl/x")
        other.add_auth("digest", "user:wrong")
        raises(ke.NoAuthError, other.set, "/acl", b"no")
        other.add_auth("digest", "user:secret")
        other.set("/acl", b"yes")
        c.create("/acl/creator", acl=CREATOR_ALL_ACL)
        equal([a.id.scheme for a in c.get_acls("/acl/creator")[0]],
              ["x509", "digest"] if TLS else ["digest"])
        c.create("/acl/ip", acl=[make_acl("ip", "127.0.0.1", all=True)])
        equal(c.get("/acl/ip")[0], b"")
        raises(ke.InvalidACLError, c.create, "/acl/bad", acl=[ACL(31, Id("what", "ever"))])
        raises(ke.NoNodeError, c.get_acls, "/none")
        equal(c.get_acls("/")[0], OPEN_ACL_UNSAFE)
    with clients(auth_data=[("digest", "user:secret")]) as c:
        equal(c.get("/acl")[0], b"yes")
        c.delete("/acl", recursive=True)


@check
def wrong_scheme_fails_the_session():
    with clients() as c:
        raises(ke.AuthFailedError, c.add_auth, "what", "ever")


@check
def sync_sees_what_others_wrote():
    servers = HOSTS.split(",")
    with clients(hosts=hosts_from(servers[0])) as writer, clients(hosts=hosts_from(servers[1])) as reader:
        writer.create("/sync", b"0")
        for i in range(100):
            writer.set("/sync", b"%d" % i)
            equal(reader.sync("/sync"), "/sync")
            equal(reader.get("/sync")[0], b"%d" % i)


@check
def transactions():
    with clients() as c:
        t = c.transaction()
        t.create("/t", b"t")
        t.create("/t/e", b"", ephemeral=True)
        t.create("/t/s-", sequence=True)
        t.set_data("/t", b"u", 0)
        t.check("/t", 1)
        t.delete("/t/e")
        results = t.commit()
        equal((results[:3], results[3].version, results[4:]),
              (["/t", "/t/e", "/t/s-0000000001"], 1, [True, True]))
        equal(c.get("/t")[0], b"u")
        t = TransactionRequest(c)
        t.create("/t/never")
        t.check("/t", 5)
        t.create("/t/neither")
        equal([type(r) for r in t.commit()],
              [ke.RolledBackError, ke.BadVersionError, ke.RuntimeInconsistency])
        equal(c.exists("/t/never"), None)
        with c.transaction() as t:
            t.delete("/t/s-0000000001")
            t.delete("/t")
        equal(c.exists("/t"), None)
        equal(c.transaction().commit(), [])


@check
def pipelined_requests_are_answered_in_order():
    with clients() as c:
        c.create("/async", b"")
        sets = [c.set_async("/async", b"%d" % i) for i in range(500)]
        reads = [c.get_async("/async"), c.exists_async("/async"), c.get_children_async("/async"),
                 c.sync_async("/async"), c.create_async("/async/1"), c.delete_async("/async/1")]
        equal([s.get(timeout=PATIENCE).version for s in sets], list(range(1, 501)))
        data, stat = reads[0].get(timeout=PATIENCE)
        equal((data, stat.version), (b"499", 500))
        equal([r.get(timeout=PATIENCE) for r in reads[2:]], [[], "/async", "/async/1", True])


@check
def watches_fire_once():
    with clients(2) as (c, other):
        data, there, children, missing = Log(), Log(), Log(), Log()
        c.create("/watch", b"")
        c.get("/watch", watch=data)
        c.exists("/watch", watch=there)
        c.get_children("/watch", watch=children)
        c.exists("/watch/new", watch=missing)
        other.set("/watch", b"1")
        other.set("/watch", b"2")
        other.create("/watch/new")
        other.delete("/watch/new")
        c.sync("/watch")
        events = [log.await_that("an event", bool) for log in (data, there, children, missing)]
        equal([[(e.type, e.path) for e in es] for es in events],
              [[(EventType.CHANGED, "/watch")], [(EventType.CHANGED, "/watch")],
               [(EventType.CHILD, "/watch")], [(EventType.CREATED, "/watch/new")]])
        c.get("/watch", watch=data)
        c.get_children("/watch", watch=children)
        other.delete("/watch")
        for log in (data, children):
            equal(log.await_that("the deletion", lambda es: len(es) == 2)[1].type, EventType.DELETED)


@check
def data_watch():
    with clients(2) as (c, other):
        log = Log()
        DataWatch(c, "/dw", lambda data, stat: log(data))
        other.create("/dw", b"1")
        log.await_that("the creation", lambda d: d[-1] == b"1")
        other.set("/dw", b"2")
        log.await_that("the change", lambda d: d[-1] == b"2")
        other.delete("/dw")
        log.await_that("the deletion", lambda d: d[-1] is None)
        other.create("/dw", b"3")
        log.await_that("it again", lambda d: d[-1] == b"3")
        equal(log.items, [None, b"1", b"2", None, b"3"])


@check
def children_watch():
    with clients(2) as (c, other):
        log = Log()
        c.create("/chw")
        ChildrenWatch(c, "/chw", lambda names: log(sorted(names)))
        for i in range(10):
            other.create("/chw/%d" % i)
        log.await_that("ten", lambda l: len(l[-1]) == 10)
        other.delete("/chw/5")
        log.await_that("nine", lambda l: len(l[-1]) == 9)
        names, changed = PatientChildrenWatch(c, "/chw", time_boundary=0.1).start().get(timeout=PATIENCE)
        equal(len(names), 9)
        other.delete("/chw/6")
        changed.get(timeout=PATIENCE)


@check
def tree_cache():
    with clients(2) as (c, other):
        log = Log()
        cache = TreeCache(c, "/tree")
        cache.listen(log)
        cache.start()
        log.await_that("the start", lambda l: any(e.event_type == TreeEvent.INITIALIZED for e in l))
        for i in range(5):
            other.create("/tree/%d/x/y" % i, b"%d" % i, makepath=True)

        def data(path):
            node = cache.get_data(path)
            return node and node.data
        eventually("all data", lambda: all(data("/tree/%d/x/y" % i) == b"%d" % i for i in range(5)))
        other.delete("/tree/3", recursive=True)
        eventually("the deletion", lambda: cache.get_data("/tree/3") is None)
        cache.close()


@check
def ephemerals_end_with_the_session():
    with clients() as c:
        gone = threading.Event()
        other = new_client()
        other.create("/eph", b"", ephemeral=True)
        c.exists("/eph", watch=lambda e: gone.set())
        equal(c.exists("/eph").owner_session_id, other.client_id[0])
        other.stop()
        other.close()
        wait(gone, "the ephemeral's end")
        equal(c.exists("/eph"), None)


@check
def ephemerals_end_when_the_client_is_killed():
    with clients() as c:
        there, gone = threading.Event(), threading.Event()
        c.exists("/killed", watch=lambda e: there.set())
        program = ("import sys, threading; from kazoo.client import KazooClient\n"
                   "c = KazooClient(sys.argv[1], timeout=1.0); c.start()\n"
                   "c.create('/killed', b'', ephemeral=True); threading.Event().wait()\n")
        child = subprocess.Popen([sys.executable, "-c", program, HOSTS], stdout=sys.stderr)
        try:
            wait(there, "the other process's ephemeral")
            c.exists("/killed", watch=lambda e: gone.set())
        finally:
            child.send_signal(signal.SIGKILL)
            child.wait()
        wait(gone, "the ephemeral's end")
        equal(c.exists("/killed"), None)


@check
def an_expired_session_is_replaced():
    with clients() as c:
        states, old = Log(), c.client_id
        c.add_listener(states)
        c.create("/expired", ephemeral=True)
        # The session is taken over and closed. Its first client may be back before
        # it is closed, and then takes it over in turn.
        for _ in range(100):
            try:
                other = new_client(client_id=old)
            except KazooTimeoutError:
                continue  # connected, and the first client had it back before start() looked
            taken = other.client_id[0] == old[0]
            other.stop()
            other.close()
            if not taken:
                break
        states.await_that("lost, and connected again",
                          lambda l: KazooState.LOST in l and l[-1] == KazooState.CONNECTED)
        equal(c.client_id[0] != old[0], True)
        equal(c.exists("/expired"), None)


def die_under(client):
    """Kills the server of a client and waits until it is at another one."""
    states, server = Log(), server_of(client)
    client.add_listener(states)
    ask(kill=server)
    # The fall-back is the request: kazoo's states may change before the listener sees them.
    states.await_that("connected again", lambda l: l[-1:] == [KazooState.CONNECTED])
    client.remove_listener(states)
    equal(KazooState.LOST in states.items, False)
    equal(server_of(client) != server, True)


@check
def a_session_moves_when_its_server_dies():
    for round, first in enumerate(HOSTS.split(",")):
        with clients(hosts=hosts_from(first)) as c, clients(hosts=hosts_from(HOSTS.split(",")[round - 1])) as other:
            equal(server_of(c), first)
            root, log = "/move-%d" % round, Log()
            c.create(root, b"0")
            path = c.create(root + "/e", b"", ephemeral=True)
            DataWatch(c, root, lambda data, stat: log(data))
            old = c.client_id
            die_under(c)
            equal(c.client_id, old)
            equal(c.exists(path).owner_session_id, old[0])
            equal(c.create(root + "/e2", b"", ephemeral=True), root + "/e2")
            c.set(root, b"1")
            log.await_that("the data", lambda l: l[-1] == b"1")
            other.sync(root)
            equal(sorted(other.get_children(root)), ["e", "e2"])
            ask(heal=True)
            c.stop()
            other.sync(root)
            equal(other.get_children(root), [])


@check
def lock_excludes_and_passes_on():
    with clients(3) as all_clients:
        inside, order, most = [0], [], [0]

        def work(client, i):
            lock = client.Lock("/lock", str(i))
            for _ in range(5):
                with lock:
                    inside[0] += 1
                    most[0] = max(most[0], inside[0])
                    order.append(i)
                    client.exists("/lock")
                    inside[0] -= 1
        run_threads([lambda c=c, i=i: work(c, i) for i, c in enumerate(all_clients)])
        equal((len(order), most[0]), (15, 1))
        lock, second = all_clients[0].Lock("/lock", "first"), all_clients[1].Lock("/lock", "second")
        lock.acquire(timeout=PATIENCE)
        equal(second.acquire(blocking=False), False)
        raises(ke.LockTimeout, second.acquire, timeout=0.2)
        equal(lock.contenders(), ["first"])
        waiting = threading.Thread(target=second.acquire, kwargs={"timeout": PATIENCE})
        waiting.start()
        eventually("two contenders", lambda: lock.contenders() == ["first", "second"])
        lock.release()
        waiting.join(PATIENCE)
        equal(second.is_acquired, True)
        second.release()


def run_threads(functions):
    """Runs functions at the same time and raises the first error."""
    failed = []

    def guarded(f):
        try:
            f()
        except BaseException:
            failed.append(traceback.format_exc())
    threads = [threading.Thread(target=guarded, args=(f,), daemon=True) for f in functions]
    for t in threads:
        t.start()
    for t in threads:
        t.join(PATIENCE)
        if t.is_alive():
            failed.append("a thread did not end in %d s" % PATIENCE)
    if failed:
        raise AssertionError("\n".join(failed))


@check
def lock_survives_the_death_of_its_server():
    with clients(2) as (c, other):
        lock, waiting = c.Lock("/moving-lock", "holder"), other.Lock("/moving-lock", "waiter")
        lock.acquire(timeout=PATIENCE)
        t = threading.Thread(target=waiting.acquire, kwargs={"timeout": 2 * PATIENCE}, daemon=True)
        t.start()
        eventually("two contenders", lambda: len(lock.contenders()) == 2)
        die_under(c)
        equal((lock.is_acquired, waiting.is_acquired), (True, False))
        equal(lock.contenders(), ["holder", "waiter"])
        lock.release()
        t.join(PATIENCE)
        equal(waiting.is_acquired, True)
        waiting.release()
        ask(heal=True)


@check
def read_and_write_locks():
    with clients(3) as (r1, r2, w):
        first, second = r1.ReadLock("/rw", "r1"), r2.ReadLock("/rw", "r2")
        writer = w.WriteLock("/rw", "w")
        equal(first.acquire(timeout=PATIENCE), True)
        equal(second.acquire(timeout=PATIENCE), True)
        equal(writer.acquire(blocking=False), False)
        t = threading.Thread(target=writer.acquire, kwargs={"timeout": PATIENCE}, daemon=True)
        t.start()
        first.release()
        second.release()
        t.join(PATIENCE)
        equal(writer.is_acquired, True)
        equal(first.acquire(blocking=False), False)
        writer.release()
        equal(first.acquire(timeout=PATIENCE), True)
        first.release()


@check
def semaphore():
    with clients(3) as (a, b, c):
        one, two, three = (x.Semaphore("/sem", max_leases=2) for x in (a, b, c))
        equal((one.acquire(timeout=PATIENCE), two.acquire(timeout=PATIENCE)), (True, True))
        equal(three.acquire(blocking=False), False)
        equal(len(one.lease_holders()), 2)
        t = threading.Thread(target=three.acquire, kwargs={"timeout": PATIENCE}, daemon=True)
        t.start()
        one.release()
        t.join(PATIENCE)
        equal(three.is_acquired, True)
        two.release()
        three.release()


@check
def election():
    with clients(3) as all_clients:
        leaders, inside = [], [0]
        elections = [c.Election("/election", "c%d" % i) for i, c in enumerate(all_clients)]

        def lead(i):
            inside[0] += 1
            equal(inside[0], 1)
            leaders.append(i)
            all_clients[i].exists("/election")
            inside[0] -= 1
        run_threads([lambda i=i: elections[i].run(lead, i) for i in range(3)])
        equal(sorted(leaders), [0, 1, 2])
        equal(elections[0].contenders(), [])


@check
def barriers():
    with clients(3) as all_clients:
        barrier = all_clients[0].Barrier("/barrier")
        barrier.create()
        equal(all_clients[1].Barrier("/barrier").wait(0.1), False)
        passed = []
        waiting = [threading.Thread(target=lambda c=c: passed.append(c.Barrier("/barrier").wait(PATIENCE)))
                   for c in all_clients[1:]]
        for t in waiting:
            t.start()
        barrier.remove()
        for t in waiting:
            t.join(PATIENCE)
        equal(passed, [True, True])
        doubles = [c.DoubleBarrier("/double", 3, str(i)) for i, c in enumerate(all_clients)]
        run_threads([d.enter for d in doubles])
        equal([d.participating for d in doubles], [True] * 3)
        run_threads([d.leave for d in doubles])
        equal([d.participating for d in doubles], [False] * 3)


@check
def queues():
    with clients(2) as (c, other):
        q = c.Queue("/queue")
        for i, priority in enumerate([100, 50, 100]):
            q.put(b"%d" % i, priority)
        equal(len(other.Queue("/queue")), 3)
        equal([other.Queue("/queue").get(), q.get(), q.get(), q.get()], [b"1", b"0", b"2", None])
        l1, l2 = c.LockingQueue("/locking"), other.LockingQueue("/locking")
        l1.put_all([b"a", b"b"])
        equal((l1.get(PATIENCE), l2.get(PATIENCE)), (b"a", b"b"))
        equal((l1.holds_lock(), l2.holds_lock()), (True, True))
        equal((l1.consume(), l2.release()), (True, True))
        equal(l1.get(PATIENCE), b"b")
        equal((l1.consume(), l1.get(0.1)), (True, None))


@check
def parties_counters_and_leases():
    with clients(2) as (c, other):
        p1, p2 = c.Party("/party", "one"), other.Party("/party", "two")
        p1.join()
        p2.join()
        equal((sorted(p1), len(p2)), (["one", "two"], 2))
        p1.leave()
        equal(list(p2), ["two"])
        s1 = c.ShallowParty("/shallow", "one")
        s1.join()
        equal(len(other.ShallowParty("/shallow")), 1)
        counters = [c.Counter("/counter"), other.Counter("/counter")]

        def count(counter):
            for _ in range(25):
                counter += 2
        run_threads([lambda k=k: count(k) for k in counters])
        equal(counters[0].value, 100)
        counters[1] -= 1
        equal(counters[0].value, 99)


@check
def partitioner():
    with clients(2) as all_clients:
        parts = [c.SetPartitioner("/part", set=list(range(6)), time_boundary=0.2,
                                  identifier="member-%d" % i) for i, c in enumerate(all_clients)]

        def acquire(p):
            while not p.acquired:
                if p.failed:
                    raise AssertionError("the partitioner failed")
                if p.release:
                    p.release_set()
                else:
                    p.wait_for_acquire(1)
        run_threads([lambda p=p: acquire(p) for p in parts])
        equal(sorted(list(parts[0]) + list(parts[1])), list(range(6)))
        run_threads([p.finish for p in parts])


def lacks(has, what):
    if not has:
        raise Absent(what)
    raise AssertionError("kazoo has %s now, and no check of them is here" % what)


@check
def containers_and_TTL():
    lacks({"ttl", "container"} & set(inspect.signature(KazooClient.create).parameters), "containers and TTL")


@check
def persistent_watches():
    lacks(hasattr(KazooClient, "add_watch"), "persistent watches")


def run(functions):
    for function in functions:
        try:
            function()
            say(check=function.__name__, ok=True)
        except Absent as e:
            say(check=function.__name__, absent=True, detail=str(e))
        except BaseException:
            say(check=function.__name__, ok=False, detail=traceback.format_exc())
    say(end=len(functions))


if __name__ == "__main__":
    run(checks)
