"""Checks of read-only mode with kazoo.

The argument is the connect string. What is printed is described at the type message in integration/cluster.
"""

import kazoo_checks as k
from kazoo import exceptions as ke
from kazoo.client import KazooState
from kazoo.protocol.states import KeeperState


def reads_then_writes():
    with k.clients() as c:
        c.create("/read", b"1")
    for host in k.HOSTS.split(",")[:2]:
        k.ask(kill=host)
    with k.clients(read_only=True) as c:
        k.equal(c.client_state, KeeperState.CONNECTED_RO)
        watch, states = k.Log(), k.Log()
        k.equal(c.get("/read", watch)[0], b"1")
        k.raises(ke.NotReadOnlyCallError, c.set, "/read", b"no")
        k.raises(ke.NotReadOnlyCallError, c.create, "/no")
        k.raises(ke.NotReadOnlyCallError, c.sync, "/")
        c.add_listener(states)
        k.ask(heal=True)
        # kazoo comes back with its session, which is told that it has expired.
        states.await_that("a new session", lambda l: l[-2:] == [KazooState.LOST, KazooState.CONNECTED])
        k.equal(c.client_state, KeeperState.CONNECTED)
        c.set("/read", b"2")
        k.equal(c.get("/read")[0], b"2")


k.run([reads_then_writes])
