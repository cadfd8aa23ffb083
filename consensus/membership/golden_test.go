package membership

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/zk-lite/zk-lite/consensus/peerkeys"
	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/internal/testkit/golden"
)

func TestGolden(t *testing.T) {
	request := Request{
		Version: controlVersion, Op: controlRemove, From: 1, Ensemble: "e", Server: 2, Leader: 3, Force: true,
	}
	reply := Reply{
		Version: controlVersion, Server: 2, Ensemble: "e", Bootstrapping: true, Suffrage: Voter, Applied: 5, Last: 6,
		Removed: true, Error: "why", NotLeader: true, TooFew: true,
		Status: &Status{Leader: 1, Term: 2, Members: []MemberStatus{{ID: 1, Voter: true}}},
	}
	found := Request{Version: controlVersion, Op: RequestFoundSeeded, From: 1, Ensemble: "e", Seeds: true, Seed: "d"}
	fresh := Reply{Version: controlVersion, Server: 2, Seed: NoSeed}
	for name, message := range map[string]any{
		"request.json": request, "reply.json": reply, "found-seeded.json": found, "reply-fresh.json": fresh,
	} {
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

// A server must be able to read another's reply, however many servers there are.
func TestRegression_Control_FitsTheLargestEnsemble(t *testing.T) {
	status, keys := &Status{}, &peerkeys.Table{
		Keys: map[state.ServerID]peerkeys.Key{}, Removed: map[state.ServerID]peerkeys.Key{},
	}
	for id := range state.ServerID(state.MaxServerID + 1) {
		key := peerkeys.Key{0: 255, 31: 255}
		keys.Keys[id], keys.Removed[id] = key, key
		status.Members = append(status.Members, MemberStatus{
			ID: id, Connected: true, LastIndex: 1<<64 - 1, AppliedIndex: 1<<64 - 1, Contact: NoContact,
			Plan: &Plan{Waits: strings.Repeat("x", 200), In: NoContact},
		})
	}
	for message, most := range map[any]int{
		&Reply{Keys: keys, Status: status, Error: strings.Repeat("x", 1000)}: replyMax,
		&Request{Op: RequestFound, Keys: keys}:                               controlMax,
	} {
		b, err := json.Marshal(message)
		if err != nil || len(b) > most {
			t.Errorf("%T: %d bytes, %d are read; %v", message, len(b), most, err)
		}
	}
}
