"""Wrong: it waits one message time for an answer that takes two."""
import bully


class Hasty(bully.Bully):
    def elect(self, out):
        super().elect(out)
        for timer in out["timers"]:
            if timer["name"] == "answer" and "after" in timer:
                timer["after"] = self.t


bully.Bully = Hasty
bully.main()
