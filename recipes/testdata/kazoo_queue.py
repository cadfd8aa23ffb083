"""Stands in the line of a lock or an election with kazoo, for interop_test.go.

usage: kazoo_queue.py HOSTS lock|election PATH

Prints "queued" when its znode is in the line, "held" when its turn has come, waits
for a line on its input, releases, and prints "released".
"""
import sys
import threading

from kazoo.client import KazooClient

hosts, kind, path = sys.argv[1:4]
zk = KazooClient(hosts=hosts, timeout=10)
zk.start()

# The names of the Go recipes' znodes, which are Curator's.
patterns = {"lock": ["-lock-"], "election": ["-latch-"]}[kind]


def say(word):
    sys.stdout.write(word + "\n")  # print writes twice: two threads would share a line
    sys.stdout.flush()


def hold():
    say("held")
    sys.stdin.readline()


def queued(lock):
    while lock.prefix not in "".join(zk.get_children(path)):
        threading.Event().wait(0.01)
    say("queued")


lock = zk.Lock(path, "kazoo", extra_lock_patterns=patterns)
zk.ensure_path(path)
threading.Thread(target=queued, args=(lock,), daemon=True).start()
if kind == "lock":
    with lock:
        hold()
else:
    election = zk.Election(path, "kazoo")
    election.lock = lock  # kazoo's Election has no argument for the patterns
    election.run(hold)
say("released")
zk.stop()
