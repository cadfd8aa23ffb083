"""Three nodes of Patroni with PostgreSQL, one of them primary, one a synchronous standby: rows written to the primary,
and switchovers, stopped and killed primaries, of which Patroni must see each one and no more."""

import re
import sys
import threading
import time

import psycopg2

import report
from node import Node, wait

PATIENCE = 90  # seconds: a session of 15 s, a look every 5 s, a busy machine
SLOW = 100  # seconds without a commit, in which a primary may be missed

nodes = [Node(name) for name in "abc"]
acknowledged = set()
acting = threading.Lock()  # held while nodes are down or settings change
caused = 0  # promotions that the tenant asks for


def main():
    for n in nodes:
        n.configure(sys.argv[2], sys.argv[1])
        n.start()
    wait("a primary", 120, primary)
    wait("two standbys, one of them synchronous", 120, whole)
    begun = timeline()
    primary().select("CREATE TABLE facts (id bigint PRIMARY KEY); SELECT 1")
    threads = [threading.Thread(target=t) for t in [write, settings, look, act]]
    report.ready()
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    try:
        verify(begun)
    except Exception as e:  # pylint: disable=broad-except
        report.wrong("the end could not be verified: %r" % e)
    report.end()


def primary():
    """The node that holds the leader's znode, or None."""
    return next((n for n in nodes if n.agrees("/primary")), None)


def whole():
    """Whether there are a primary, two standbys that follow it, and a synchronous one in ZooKeeper."""
    p = primary()
    return p and all(n.agrees("/replica") for n in nodes if n is not p) and any(n.agrees("/sync") for n in nodes)


def timeline():
    """PostgreSQL's timeline, which each promotion raises."""
    return int(re.search(r'"timeline": (\d+)', primary().ask("/patroni")[1])[1])


def write():
    """Inserts rows. One that is not acknowledged is inserted again, until it is."""
    where = {"host": ",".join("127.0.0.1" for _ in nodes), "port": ",".join(str(n.sql) for n in nodes),
             "user": "postgres", "dbname": "postgres", "connect_timeout": 3, "target_session_attrs": "read-write"}
    connection, row, last = None, 0, time.monotonic()

    def insert():
        nonlocal connection
        if connection is None or connection.closed:
            connection = psycopg2.connect(**where)
            connection.autocommit = True
        with connection.cursor() as cursor:
            cursor.execute("INSERT INTO facts VALUES (%s) ON CONFLICT DO NOTHING", (row,))

    while report.working():
        if report.work("commit acknowledged", insert):
            acknowledged.add(row)
            row += 1
            last = time.monotonic()
            time.sleep(0.05)
            continue
        if time.monotonic() - last > SLOW:
            report.wrong("no commit for %d s" % SLOW)
            last = time.monotonic()
        time.sleep(1)


def settings():
    """Changes a setting in ZooKeeper and waits until all PostgreSQLs that run have it."""
    size = 4000

    def change():
        status, text = primary().ask("/config", "PATCH", {"postgresql": {"parameters": {"work_mem": "%dkB" % size}}})
        if status != 200:
            raise ValueError(text)
        wait("work_mem at all", PATIENCE, lambda: all(n.select("SHOW work_mem") == ["%dkB" % size] for n in nodes))

    while report.working():
        with acting:
            size += 1
            report.work("setting changed at all nodes", change)
        report.pause(3)


def look():
    """Looks for two primaries."""
    while report.working():
        writable = [n.name for n in nodes if n.writable()]
        if len(writable) > 1:
            report.wrong("two PostgreSQLs take writes: %s" % writable)
        report.pause(0.5)


def act():
    """Moves the primary in all ways, in turn, and waits after each until the cluster is whole again."""
    actions = [("primary switched over", switch_over), ("Patroni of the primary killed and started", kill_patroni),
               ("primary stopped, another promoted", stop), ("primary killed, another promoted", kill)]
    n = 0
    while report.working():
        report.pause(10)
        with acting:
            report.work(*actions[n % len(actions)])
            try:
                wait("two standbys", PATIENCE, whole)
            except TimeoutError as e:
                report.wrong(str(e))
        n += 1


def switch_over():
    global caused
    old = primary()
    candidate = next(n for n in nodes if n.agrees("/sync"))
    status, text = old.ask("/switchover", "POST", {"leader": old.name, "candidate": candidate.name})
    if status != 200:
        raise ValueError(text)
    caused += 1
    wait("%s is primary" % candidate.name, PATIENCE, lambda: candidate.agrees("/primary"))


def kill_patroni():
    """PostgreSQL goes on without it; the new process has a new session and takes the leader's znode over."""
    old = primary()
    old.kill_patroni()
    old.start()
    wait("%s is primary still" % old.name, PATIENCE, lambda: old.agrees("/primary"))


def stop():
    replace(Node.stop)


def kill():
    replace(Node.kill)


def replace(end):
    global caused
    old = primary()
    end(old)
    caused += 1
    try:
        wait("another is primary", PATIENCE, primary)
    finally:
        old.start()


def verify(begun):
    """Compares all nodes with what was acknowledged, and the promotions with those that the tenant asked for."""
    wait("the cluster is whole", PATIENCE, whole)
    for n in nodes:
        try:
            wait("it has all", 30, lambda: acknowledged <= set(n.select("SELECT id FROM facts")))
        except TimeoutError:
            lost = acknowledged - set(n.select("SELECT id FROM facts"))
            report.wrong("node %s lacks %d of %d rows, the first %d" % (
                n.name, len(lost), len(acknowledged), min(lost)))
    promotions = timeline() - begun
    if promotions != caused:
        report.wrong("%d promotions, of which %d were asked for" % (promotions, caused))
    if promotions == 0:
        report.wrong("no primary was replaced")
    expired = [line for n in nodes for line in n.logged("Session has expired")]
    if expired:
        report.wrong("%d sessions expired, the first: %s" % (len(expired), expired[0]))
    lost = sum(len(n.logged("Zookeeper connection lost")) for n in nodes)
    report.saw("%d promotions, each caused by a switchover or an ended primary, %d lost connections, no expired session"
               % (promotions, lost))


main()
