"""The bully algorithm for `zk-lite lab judge --task election`: a right one."""
import json
import sys


class Bully:
    def __init__(self, init):
        self.me, self.ids, self.t = init["self"], init["ids"], init["delay_max"]
        self.leader, self.phase, self.down = None, "idle", set()

    def higher(self):
        return [i for i in self.ids if i > self.me]

    def elect(self, out):
        if all(i in self.down for i in self.higher()):
            return self.announce(out)
        self.phase = "waits for answers"
        self.hold(None, out)
        out["send"] += [{"to": i, "type": "election"} for i in self.higher()]
        out["timers"].append({"name": "answer", "after": 2 * self.t})

    def announce(self, out):
        self.phase = "idle"
        self.hold(self.me, out)
        out["send"] += [{"to": i, "type": "coordinator"} for i in self.ids if i < self.me]

    def hold(self, leader, out):
        self.leader = out["leader"] = leader

    def step(self, e, out):
        kind = e["event"]
        if kind in ("elect", "recover"):
            if kind == "recover":
                self.phase, self.down = "idle", set()
                self.hold(None, out)
            self.down |= set(e.get("suspected", []))
            if self.phase == "idle":
                self.elect(out)
        elif kind == "suspect":
            self.down.add(e["id"])
            if self.leader == e["id"]:
                self.hold(None, out)
                if self.phase == "idle":
                    self.elect(out)
        elif kind == "trust":
            self.down.discard(e["id"])
        elif kind == "timeout":
            if e["name"] == "answer":
                self.announce(out)
            else:
                self.elect(out)
        elif kind == "message":
            self.down.discard(e["from"])
            self.receive(e["from"], e["type"], out)
        out["variables"] = {"phase": self.phase}

    def receive(self, sender, kind, out):
        if kind == "election":
            out["send"].append({"to": sender, "type": "answer"})
            if self.phase == "idle":  # answer first, then ask
                self.phase = "answered"
                out["timers"].append({"name": "elect", "after": self.t})
        elif kind == "answer" and self.phase == "waits for answers":
            self.phase = "waits for the coordinator"
            out["timers"] += [{"name": "answer", "cancel": True}, {"name": "coordinator", "after": 5 * self.t}]
        elif kind == "coordinator":
            if self.leader is not None and sender < self.leader and self.leader not in self.down:
                return
            self.phase = "idle"
            out["timers"] += [{"name": n, "cancel": True} for n in ("elect", "answer", "coordinator")]
            self.hold(sender, out)


def main():
    process = None
    for line in sys.stdin:
        e = json.loads(line)
        out = {"send": [], "timers": []}
        if e["event"] == "init":
            process = Bully(e)
        elif e["event"] != "start":
            process.step(e, out)
        print(json.dumps(out), flush=True)


if __name__ == "__main__":
    main()
