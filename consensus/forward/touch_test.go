package forward

import (
	"slices"
	"testing"

	"github.com/zk-lite/zk-lite/znode"
)

// A report that was under way when the stream broke was lost, and the sessions in
// it could expire early by as much as the time to their clients' next heartbeat.
func TestReports_Unconfirmed_AreToldAgain(t *testing.T) {
	r := reports{}
	r.add([]znode.SessionID{1, 2}, 10, 0)
	r.add([]znode.SessionID{2, 3}, 20, 5)
	r.add([]znode.SessionID{4}, 30, 10) // confirms the first
	got := r.unconfirmed(10)
	slices.Sort(got)
	if want := []znode.SessionID{2, 3, 4}; !slices.Equal(got, want) {
		t.Errorf("told again: %v, want %v", got, want)
	}
	if got := r.unconfirmed(30); len(got) != 0 {
		t.Errorf("told again although confirmed: %v", got)
	}
}
