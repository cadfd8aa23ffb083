"""A kazoo client at a cut-over, with kazoo's own settings.

The argument is the connect string. It holds a lock, an ephemeral and watches, and creates znodes until a line of its
input says stop; it ends at the end of its input. What it prints is described at the type mover in movers_test.go.
"""

import sys
import threading
import time

from kazoo import exceptions as ke
from kazoo.client import KazooClient
from kazoo.handlers.threading import KazooTimeoutError

printing = threading.Lock()


def say(*words):
    with printing:
        print("kazoo", *words, flush=True)


def session():
    return hex(client.client_id[0] & 0xFFFFFFFFFFFFFFFF)


def write():
    while not stopped.is_set():
        try:
            path, stat = client.create("/q/n-", b"data", sequence=True, include_data=True)
            say("ack", path, stat.czxid, time.time_ns() // 1000)
        except (ke.ConnectionLoss, ke.ConnectionClosedError, ke.SessionExpiredError, ke.OperationTimeoutError,
                KazooTimeoutError):
            stopped.wait(0.01)  # the outcome is not known; without a connection it fails at once
    say("stopped", session())


client = KazooClient(hosts=sys.argv[1], timeout=30.0)
client.add_listener(lambda state: say("state", state))
client.start(timeout=60)
client.Lock("/lock-kazoo", "mover").acquire()
client.create("/e-kazoo", b"", ephemeral=True)


@client.DataWatch("/watched")
def data_watch(data, stat):
    if data == b"after":
        say("saw", "data")


@client.ChildrenWatch("/watched")
def children_watch(children):
    if "after" in children:
        say("saw", "child")


say("holds", session())
stopped = threading.Event()
writer = threading.Thread(target=write)
writer.start()
for line in sys.stdin:
    if line.strip() == "stop":
        stopped.set()
        writer.join()
client.stop()
