"""A program for `zk-lite lab judge`: one process of an election or of a lock.

It answers every event, and does nothing yet: fill in the methods. `out` is the answer, and the judge
carries it out.
"""
import json
import sys


class Process:
    def __init__(self, init):
        self.me, self.ids, self.ring, self.delay_max = init["self"], init["ids"], init["ring"], init["delay_max"]

    def elect(self, e, out):
        """Begin an election; e.get("suspected") are down."""
        # TODO: such as out["send"].append({"to": ..., "type": "election"}), or out["leader"] = self.me

    def request(self, e, out):
        """Ask for the critical section."""
        # TODO: such as a message to all others; out["enter"] = True once it may enter

    def leave(self, e, out):
        """Leave it."""
        out["exit"] = True
        # TODO: let the next one in

    def message(self, e, out):
        """A message of another process has arrived."""
        # TODO: by e["type"], from e["from"], with e["body"]

    def timeout(self, e, out):
        """A timer has run out. Set one by out["timers"].append({"name": ..., "after": ...})."""
        # TODO: by e["name"]

    def suspect(self, e, out):
        """The process e["id"] has crashed."""
        # TODO: begin an election if it was the leader


def main():
    process = None
    for line in sys.stdin:
        e = json.loads(line)
        out = {"send": [], "timers": []}
        if e["event"] == "init":
            process = Process(e)  # forget everything
        else:
            getattr(process, e["event"], lambda e, out: None)(e, out)
        print(json.dumps(out), flush=True)


if __name__ == "__main__":
    main()
