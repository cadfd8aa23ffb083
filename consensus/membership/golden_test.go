package membership

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/zk-lite/zk-lite/internal/testkit/golden"
)

func TestGolden(t *testing.T) {
	request := controlRequest{
		Version: controlVersion, Op: controlRemove, From: 1, Ensemble: "e", Server: 2, Leader: 3, Force: true,
	}
	reply := controlReply{
		Version: controlVersion, Server: 2, Ensemble: "e", Bootstrapping: true, Suffrage: voter, Applied: 5, Last: 6,
		Removed: true, Error: "why", NotLeader: true, TooFew: true,
		Status: &Status{Leader: 1, Term: 2, Members: []MemberStatus{{ID: 1, Voter: true}}},
	}
	for name, message := range map[string]any{"request.json": request, "reply.json": reply} {
		b, err := json.Marshal(message)
		if err != nil {
			t.Fatal(err)
		}
		golden.Check(t, name, append(b, '\n'))
	}
	for _, v := range []int{0, 2} {
		if err := checkControlVersion(v); err == nil || !strings.Contains(err.Error(), "not neighbours") {
			t.Errorf("version %d: %v", v, err)
		}
	}
}
