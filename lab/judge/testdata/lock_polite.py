"""Wrong: Ricart and Agrawala without timestamps: who wants in replies at once."""
import json
import sys


class Polite:
    def __init__(self, init):
        self.me, self.others = init["self"], [i for i in init["ids"] if i != init["self"]]
        self.state, self.replies, self.waiting = "RELEASED", 0, []

    def step(self, e, out):
        if e["event"] == "request":
            self.state, self.replies = "WANTED", 0
            out["send"] = [{"to": i, "type": "request"} for i in self.others]
        elif e["event"] == "leave":
            self.state = "RELEASED"
            out["exit"] = True
            out["send"] = [{"to": i, "type": "reply"} for i in self.waiting]
            self.waiting = []
        elif e["event"] == "message" and e["type"] == "request":
            if self.state == "HELD":
                self.waiting.append(e["from"])
            else:
                out["send"] = [{"to": e["from"], "type": "reply"}]
        elif e["event"] == "message":
            self.replies += 1
        if self.state == "WANTED" and self.replies == len(self.others):
            self.state = "HELD"
            out["enter"] = True
        out["variables"] = {"state": self.state}


process = None
for line in sys.stdin:
    event, answer = json.loads(line), {}
    if event["event"] == "init":
        process = Polite(event)
    elif event["event"] != "start":
        process.step(event, answer)
    print(json.dumps(answer), flush=True)
