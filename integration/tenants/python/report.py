"""What a tenant in Python tells the test, as java/Report.java does for Java: that it works, what it did, how often that
failed, and what went wrong."""

import os
import sys
import threading
import time

_lock = threading.Lock()
_finish = threading.Event()
_work = {}  # by kind: [successes, failures, longest in seconds]


def ready():
    """Says that the tenant works: leaders are killed from now on."""
    def ask():
        sys.stdin.readline()
        _finish.set()
    threading.Thread(target=ask, daemon=True).start()
    _say("ready")


def working():
    """Whether the tenant is to go on with its work."""
    return not _finish.is_set()


def pause(seconds):
    """Waits, but not longer than there is work."""
    _finish.wait(seconds)


def work(what, piece, *arguments):
    """Does a piece of work, counts it and takes its time; returns whether it raised no exception."""
    begun = time.monotonic()
    good = False
    try:
        piece(*arguments)
        good = True
    except Exception as e:  # pylint: disable=broad-except
        print(time.strftime("%T"), "failed:", what, repr(e)[:400], file=sys.stderr, flush=True)
    with _lock:
        sums = _work.setdefault(what, [0, 0, 0.0])
        sums[0 if good else 1] += 1
        sums[2] = max(sums[2], time.monotonic() - begun)
    return good


def done(what):
    """How often a kind of work has succeeded."""
    with _lock:
        return _work.get(what, [0])[0]


def saw(text):
    """Adds a sentence about what the tenant saw of the ensemble."""
    _say("saw " + text)


def wrong(text):
    """Fails the test."""
    _say("wrong " + text)


def end():
    """Says what was done, and ends the program with all its threads."""
    for what, (good, bad, longest) in sorted(_work.items()):
        _say("work %s;%d;%d;%d" % (what, good, bad, longest * 1000))
    _say("end")
    os._exit(0)


def _say(line):
    with _lock:
        print("tenant: " + line, flush=True)
