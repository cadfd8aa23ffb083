package forward

import (
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/session"
	"github.com/zk-lite/zk-lite/znode"
)

func create(path string) *state.Command {
	return &state.Command{Op: state.OpCreate, Path: path, Data: []byte("x"), ACL: znode.OpenACL}
}

// eventually waits for a condition that no channel announces.
func eventually(tb testing.TB, what string, holds func() bool) {
	tb.Helper()
	deadline := time.NewTimer(time.Minute)
	defer deadline.Stop()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-deadline.C:
			tb.Fatalf("still not: %s", what)
		}
	}
}

// discard is an Observer that does nothing.
type discard struct{}

func (discard) Event(*znode.Event)                               {}
func (discard) SessionOpened(*session.Session)                   {}
func (discard) SessionAttached(*session.Session, state.ServerID) {}
func (discard) SessionClosed(znode.SessionID, bool)              {}
func (discard) QuotaExceeded(string)                             {}
func (discard) Result(state.Origin, uint64, *state.Result)       {}
func (discard) Gap(state.Origin, uint64)                         {}
