package mirror

import (
	"time"

	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/internal/histogram"
	"github.com/zk-lite/zk-lite/migration/learner"
	"github.com/zk-lite/zk-lite/migration/seed"
	"github.com/zk-lite/zk-lite/znode"
)

// Phase is what a Mirror does now.
type Phase string

// The phases.
const (
	Off        Phase = "off"        // the ensemble mirrors nothing
	Waiting    Phase = "waiting"    // this server does not lead
	Connecting Phase = "connecting" // also between two attempts
	Receiving  Phase = "receiving"  // the origin's leader was found, and prepares or sends what is missing
	Loading    Phase = "loading"    // a snapshot goes into the log
	Following  Phase = "following"  // all that was missing has come
	Stopped    Phase = "stopped"    // because of Status.Fault, on every server, until the operator begins again
)

// Status is how the mirror stands.
type Status struct {
	state.Mirror // as applied at this server; zero: Off
	Phase        Phase
	Leads        bool // this server; the others know nothing of the connection
	Connection
}

// Connection is what the leader's server knows of its connection to the origin, and of earlier ones since its start.
type Connection struct {
	Origin   learner.Leader // zero: there is no connection
	Received znode.Zxid     // the last transaction that has come; 0: none
	Proposed znode.Zxid     // the last that the origin's leader had proposed at its last ping; 0: not known
	Lag      time.Duration  // of the newest transaction applied, from its leader's stamp until it was applied here
	// Lags are those of all transactions, those that were missed and came late included.
	Lags      histogram.Counts
	Applied   int64 // transactions
	Connects  int64 // connections that have found a leader
	Snapshots int64 // loaded
	Znodes    int   // of the snapshot that is loaded now or was last
	Uploaded  int64 // bytes of it that are in the log
	// Findings are what this server would refuse to clients of it, and keeps.
	Findings []seed.Finding
	Error    string // why the last connection ended; empty: there is one, or none is wanted
}

// here is what a Mirror keeps for Status. Mirror.mu protects it, but for lags.
type here struct {
	Connection
	phase   Phase
	learner Learner // of the present connection; nil: there is none
	config  string  // of the origin, as the last connection has brought it; "" from ZooKeeper 3.4
	term    uint64  // of ours, in which that connection was made; 0: there was none
	lags    histogram.Histogram
}

// Status returns how the mirror stands.
func (m *Mirror) Status() Status {
	now, on := m.log.Mirror()
	leads := m.log.Leads() != 0
	m.mu.Lock()
	defer m.mu.Unlock()
	s := Status{Mirror: now, Phase: m.here.phase, Leads: leads, Connection: m.here.Connection}
	s.Lags = m.here.lags.Counts()
	if m.here.learner != nil {
		l := m.here.learner.Status()
		s.Received, s.Proposed = l.Received, l.Proposed
		if l.Synced && s.Phase == Receiving && s.Loaded { // a snapshot may have come, and wait for its turn
			s.Phase = Following
		}
	}
	switch {
	case !on:
		s.Phase, s.Error = Off, ""
	case s.Fault != "":
		s.Phase = Stopped
	case !leads:
		s.Phase = Waiting
	}
	return s
}

// Fault returns why the mirror has stopped, or this server, which leads, cannot connect; empty if neither is so.
func (m *Mirror) Fault() string {
	s := m.Status()
	if s.Phase == Connecting && s.Error != "" {
		return "the mirror is not connected: " + s.Error
	}
	return s.Fault
}

// Metrics emits the figures, by the names in the table of package api/metrics.
func (m *Mirror) Metrics(emit func(name string, value any)) {
	s := m.Status()
	emit("mirror_on", number(s.Phase != Off))
	emit("mirror_following", number(s.Phase == Following))
	emit("mirror_stopped", number(s.Fault != ""))
	emit("mirror_zxid", int64(s.Zxid))
	emit("mirror_origin_zxid", int64(max(s.Received, s.Proposed)))
	emit("mirror_relays", s.Relays)
	emit("mirror_lag_seconds", s.Lags)
	emit("mirror_transactions_total", s.Applied)
	emit("mirror_connections_total", s.Connects)
	emit("mirror_snapshots_total", s.Snapshots)
	emit("mirror_digests_compared", s.Compared)
	emit("mirror_digests_differing", s.Differing)
}

func number(b bool) int {
	if b {
		return 1
	}
	return 0
}

// rest notes that this server does not follow.
func (m *Mirror) rest() {
	m.set(func(h *here) { h.phase, h.learner, h.Origin = Waiting, nil, learner.Leader{} })
}

func (m *Mirror) set(edit func(h *here)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	edit(&m.here)
}

// connecting notes that a connection is tried.
func (m *Mirror) connecting(l Learner) {
	m.set(func(h *here) { h.phase, h.learner = Connecting, l })
}

// connected notes that the origin's leader was found.
func (m *Mirror) connected(l *learner.Leader, term uint64) {
	m.set(func(h *here) {
		h.config, h.term = l.Config, term
		h.phase, h.Origin, h.Error = Receiving, *l, ""
		h.Connects++
	})
}

// reconfigured notes the origin's new configuration.
func (m *Mirror) reconfigured(text string) { m.set(func(h *here) { h.config = text }) }

// loading notes that a snapshot has come.
func (m *Mirror) loading(znodes int, findings []seed.Finding) {
	m.set(func(h *here) { h.phase, h.Znodes, h.Findings, h.Uploaded = Loading, znodes, findings, 0 })
}

// uploaded notes how many bytes of the snapshot are in the log.
func (m *Mirror) uploaded(bytes int64) { m.set(func(h *here) { h.Uploaded = bytes }) }

// loaded notes that the state is the origin's.
func (m *Mirror) loaded() {
	m.set(func(h *here) {
		h.phase = Receiving
		h.Snapshots++
	})
}

// applied notes transactions with these stamps, in milliseconds since the epoch.
func (m *Mirror) applied(stamps []int64, now time.Time) {
	for _, millis := range stamps {
		m.here.lags.Observe(now.Sub(time.UnixMilli(millis)))
	}
	m.set(func(h *here) {
		h.Applied += int64(len(stamps))
		h.Lag = max(now.Sub(time.UnixMilli(stamps[len(stamps)-1])), 0)
	})
}

// failed notes why a connection has ended.
func (m *Mirror) failed(err error) {
	m.set(func(h *here) {
		h.phase, h.learner, h.Origin, h.Error = Connecting, nil, learner.Leader{}, err.Error()
	})
}
