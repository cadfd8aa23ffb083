package znodes

import (
	"testing"

	"github.com/zk-lite/zk-lite/lab/sim"
)

// ask steps a service with one request.
func ask(t *testing.T, node sim.Node, r Request) (sim.Node, sim.Output) {
	t.Helper()
	return node.Step(0, sim.Deliver{From: r.Session.ID, Message: r})
}

func TestService_Create_NumbersRise(t *testing.T) {
	node := NewService(10 * sim.Unit)
	for i := range 3 {
		var out sim.Output
		node, out = ask(t, node, Request{Session: Session{sim.ID(i + 1), 1}, Number: 1, Op: Create})
		if got := out.Sends[0].Message.(Reply).Sequence; got != i {
			t.Errorf("create %d got sequence %d", i, got)
		}
	}
	_, out := ask(t, node, Request{Session: Session{1, 1}, Number: 2, Op: Children})
	if got := out.Sends[0].Message.(Reply).List(); len(got) != 3 || got[2].Owner.ID != 3 {
		t.Errorf("children %v", got)
	}
}

// TestService_RepeatedRequest_DoneOnce: a retry is answered with the first reply.
func TestService_RepeatedRequest_DoneOnce(t *testing.T) {
	node := NewService(10 * sim.Unit)
	r := Request{Session: Session{1, 1}, Number: 1, Op: Create}
	node, first := ask(t, node, r)
	node, second := ask(t, node, r)
	if first.Sends[0].Message != second.Sends[0].Message {
		t.Errorf("%v, then %v", first.Sends[0].Message, second.Sends[0].Message)
	}
	if got := len(node.(service).znodes); got != 1 {
		t.Errorf("%d znodes after one create and its retry", got)
	}
}

// TestService_Delete_FiresWatchOnce: a watch fires once, for its znode only.
func TestService_Delete_FiresWatchOnce(t *testing.T) {
	node := NewService(10 * sim.Unit)
	a, b := Session{1, 1}, Session{2, 1}
	node, _ = ask(t, node, Request{Session: a, Number: 1, Op: Create})
	node, _ = ask(t, node, Request{Session: b, Number: 1, Op: Create})
	node, out := ask(t, node, Request{Session: b, Number: 2, Op: Exists, Sequence: 0})
	if !out.Sends[0].Message.(Reply).Found {
		t.Fatal("exists did not find the znode")
	}
	node, out = ask(t, node, Request{Session: a, Number: 2, Op: Delete, Sequence: 0})
	events := 0
	for _, s := range out.Sends {
		if _, ok := s.Message.(WatchEvent); ok {
			events++
		}
	}
	if events != 1 {
		t.Errorf("%d events, want 1", events)
	}
	_, out = ask(t, node, Request{Session: b, Number: 3, Op: Exists, Sequence: 0})
	if out.Sends[0].Message.(Reply).Found {
		t.Error("the deleted znode is still found")
	}
}

func TestService_Expiry_RemovesZnodesAndRefusesTheSession(t *testing.T) {
	node := NewService(10 * sim.Unit)
	a := Session{1, 1}
	node, _ = ask(t, node, Request{Session: a, Number: 1, Op: Create})
	node, _ = node.Step(0, sim.Timeout{Name: a.String()})
	if got := len(node.(service).znodes); got != 0 {
		t.Errorf("%d znodes after the session expired", got)
	}
	_, out := ask(t, node, Request{Session: a, Number: 2, Op: Create})
	if got := out.Sends[0].Message.Type(); got != expired {
		t.Errorf("a request in an expired session is answered with %s", got)
	}
}

// TestClient_Silence_DisconnectsBeforeExpiry is the inequality leaders rely on.
func TestClient_Silence_DisconnectsBeforeExpiry(t *testing.T) {
	var out sim.Output
	bound := sim.Unit
	NewClient(1, bound, 6*bound).Open(&out)
	for _, timer := range out.Timers {
		if timer.Name == "lease" && timer.After+2*bound > 6*bound {
			t.Errorf("lease %v and a round trip pass the session timeout", timer.After)
		}
	}
	if len(out.Timers) == 0 {
		t.Fatal("no timers set")
	}
}
