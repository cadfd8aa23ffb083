package consensus

import (
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"github.com/zk-lite/zk-lite/consensus/state"
)

// maxPutOff is how often the FSM must have wanted a snapshot before the leader takes one although a
// follower needs the log that it shortens: the log, and with it the disk and the time of a restart,
// grow to so many times what they are otherwise.
const maxPutOff = 16

// snapshots are those that this server takes of its state.
type snapshots struct {
	n      *Node
	wanted chan struct{} // capacity 1
	last   atomic.Int64  // when the newest was written, in seconds since the epoch; 0: there is none
	size   atomic.Int64  // of the last one written or restored, in bytes
	failed atomic.Int64
	fault  atomic.Pointer[string] // why the last attempt failed; nil: it did not
}

// wantSnapshot asks raft for a snapshot once one pays. raft's own count is of entries, which hold from one to
// thousands of commands.
func (f *fsm) wantSnapshot() {
	if !f.snapshotPays(f.machine.Memory()) {
		return
	}
	f.commands, f.bytes = 0, 0
	select {
	case f.n.snapshots.wanted <- struct{}{}:
	default: // one is being taken
	}
}

// snapshotPays reports whether enough has been applied, by commands or by bytes: a multi is one command, and may load
// a megabyte. A snapshot then writes about as many bytes as the log since the last one, at most.
func (f *fsm) snapshotPays(memory int64) bool {
	commands := int64(f.n.cfg.SnapshotCommands) * (1 + memory/snapshotMemory)
	bytes := max(snapshotBytes, memory/snapshotShare, f.n.snapshots.size.Load())
	return f.commands >= commands || f.bytes >= bytes
}

// run takes a snapshot whenever the FSM wants one.
func (s *snapshots) run() {
	n := s.n
	for {
		select {
		case <-n.ctx.Done():
			return
		case <-s.wanted:
			s.letCatchUp()
			err := s.limitTrailing()
			if err == nil {
				err = n.raft.Snapshot().Error()
			}
			if err != nil && !errors.Is(err, raft.ErrNothingNewToSnapshot) && n.ctx.Err() == nil {
				s.failed.Add(1)
				text := err.Error()
				s.fault.Store(&text)
				n.logger.Error("taking a snapshot failed; the log grows until one succeeds", "error", err)
			}
		}
	}
}

// limitTrailing sets how many entries raft keeps behind the snapshot that comes: as many as ever, but no more
// than TrailingBytes. A follower that needs more than that is better off with the snapshot.
func (s *snapshots) limitTrailing() error {
	n, log := s.n, s.n.cfg.Storage.Raftlog
	if log == nil {
		return nil
	}
	c := n.raft.ReloadableConfig()
	c.TrailingLogs = min(n.cfg.TrailingLogs, log.NewestWithin(n.cfg.TrailingBytes))
	return n.raft.ReloadConfig(c)
}

// letCatchUp waits while a follower that was sent a snapshot needs the log behind that
// one: the next snapshot would shorten it, and the follower would have to be sent that
// snapshot too (transport, send.go).
func (s *snapshots) letCatchUp() {
	n := s.n
	tick := time.NewTicker(n.cfg.ElectionTimeout / 8)
	defer tick.Stop()
	for wants := 1; wants < maxPutOff && n.transport.CatchingUp(); {
		select {
		case <-n.ctx.Done():
			return
		case <-s.wanted:
			wants++
		case <-tick.C:
		}
	}
}

// Snapshot implements raft.FSM.
func (f *fsm) Snapshot() (raft.FSMSnapshot, error) {
	if f.broken {
		return nil, fmt.Errorf("this server cannot apply the log any further")
	}
	if !f.n.transport.BeginSnapshot() {
		return nil, raft.ErrNothingNewToSnapshot // the leader's, which is newer, is being installed
	}
	f.n.cfg.Handler.BeginApply() // freezing marks the tree: readers wait microseconds
	defer f.n.cfg.Handler.EndApply()
	return &snapshot{n: f.n, state: f.machine.Snapshot()}, nil
}

// snapshot is a frozen state that raft writes out while applying goes on.
type snapshot struct {
	n     *Node
	state *state.Snapshot
}

// Persist implements raft.FSMSnapshot. What is in a snapshot must be in the
// log on disk too, or a power cut would leave a log that ends before it.
func (s *snapshot) Persist(sink raft.SnapshotSink) error {
	start := time.Now()
	err := s.persist(sink)
	if err != nil {
		_ = sink.Cancel()
		return err
	}
	s.n.snapshots.last.Store(time.Now().Unix())
	s.n.snapshots.fault.Store(nil)
	s.n.logger.Info("snapshot written", "index", s.state.Index(), "took", time.Since(start))
	return nil
}

func (s *snapshot) persist(sink raft.SnapshotSink) error {
	if d := s.n.cfg.Storage.Raftlog; d != nil {
		if err := d.WaitDurable(s.state.Index()); err != nil {
			return fmt.Errorf("waiting for the log: %w", err)
		}
	}
	w := &counted{Writer: &throttled{Writer: sink, n: s.n, began: time.Now()}}
	if err := s.state.Write(w); err != nil {
		return err
	}
	s.n.snapshots.size.Store(w.bytes)
	return sink.Close()
}

const (
	// pauseAfter is how long a snapshot is written without a pause.
	pauseAfter = time.Millisecond
	// pauseTimes as long is the pause, so that a snapshot takes a quarter of a processor at most. The longest
	// counts where it was the disk that took so long.
	pauseTimes = 3
	pauseMost  = 100 * time.Millisecond
)

// throttled leaves the processors to those who serve clients while a snapshot is written, until the log is worth the
// next one: a restart would have to read it.
type throttled struct {
	io.Writer
	n     *Node
	began time.Time // to work, after a pause
}

func (t *throttled) Write(b []byte) (int, error) {
	n, err := t.Writer.Write(b)
	took := time.Since(t.began)
	if err != nil || took < pauseAfter || len(t.n.snapshots.wanted) > 0 {
		return n, err
	}
	pause := time.NewTimer(min(took*pauseTimes, pauseMost))
	defer pause.Stop()
	select {
	case <-pause.C:
	case <-t.n.ctx.Done():
		return n, t.n.ctx.Err() // it would take too long
	}
	t.began = time.Now()
	return n, nil
}

// counted counts the bytes of a snapshot that is written or read.
type counted struct {
	io.Writer
	io.Reader
	bytes int64
}

func (c *counted) Write(b []byte) (int, error) {
	n, err := c.Writer.Write(b)
	c.bytes += int64(n)
	return n, err
}

func (c *counted) Read(b []byte) (int, error) {
	n, err := c.Reader.Read(b)
	c.bytes += int64(n)
	return n, err
}

// Release implements raft.FSMSnapshot.
func (s *snapshot) Release() {
	s.state.Release()
	s.n.transport.EndSnapshot()
}
