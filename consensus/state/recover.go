package state

import (
	"time"

	"github.com/zk-lite/zk-lite/session"
	"github.com/zk-lite/zk-lite/znode"
)

// Recover makes m the state of an ensemble that continues with one server alone, after the entry with this index and
// in this term: it drops the other servers, and a backup that was being uploaded. The zxid's high half becomes the
// term, so that it is above all that a client may have seen from a lost server. Sessions stay.
func (m *Machine) Recover(self ServerID, index, term uint64) {
	m.Configure(index, term, map[ServerID]bool{self: true}, Unobserved{})
	m.zxid = max(m.zxid, znode.Zxid(term<<32))
	m.upload = nil
	m.Chain(index, term, nil)
}

// Time is when the last entry was made, by its leader's clock.
func (m *Machine) Time() time.Time { return time.UnixMilli(m.time) }

// Unobserved is an Observer that ignores everything.
type Unobserved struct{}

// Event implements Observer.
func (Unobserved) Event(*znode.Event) {}

// Result implements Observer.
func (Unobserved) Result(Origin, uint64, *Result) {}

// Gap implements Observer.
func (Unobserved) Gap(Origin, uint64) {}

// SessionOpened implements Observer.
func (Unobserved) SessionOpened(*session.Session) {}

// SessionAttached implements Observer.
func (Unobserved) SessionAttached(*session.Session, ServerID) {}

// SessionClosed implements Observer.
func (Unobserved) SessionClosed(*session.Session, []string, bool) {}

// QuotaExceeded implements Observer.
func (Unobserved) QuotaExceeded(string) {}
