package raftlog_test

import (
	"fmt"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/zk-lite/zk-lite/consensus/raftlog"
	"github.com/zk-lite/zk-lite/consensus/raftlog/faultfs"
	"github.com/zk-lite/zk-lite/internal/testkit/clock"
)

// counter is a state machine that counts commands.
type counter struct{ n uint64 }

func (c *counter) Apply(*raft.Log) any                 { c.n++; return c.n }
func (c *counter) Snapshot() (raft.FSMSnapshot, error) { return counterSnapshot(*c), nil }

func (c *counter) Restore(r io.ReadCloser) error {
	_, err := fmt.Fscan(r, &c.n)
	return err
}

type counterSnapshot struct{ n uint64 }

func (c counterSnapshot) Release() {}

func (c counterSnapshot) Persist(sink raft.SnapshotSink) error {
	if _, err := fmt.Fprint(sink, c.n); err != nil {
		return err
	}
	return sink.Close()
}

// Goal: Raft itself, with snapshots, compaction and a user restore, gets along with the store over
// several lives that end in a power cut. Method: one server, so that every acknowledged command
// must be there in the next life; only the log is on the disk that loses power.
func TestStore_Raft_KeepsCommandsAcrossPowerCuts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := faultfs.New(7, 512)
		stable, snaps := raft.NewInmemStore(), raft.NewInmemSnapshotStore()
		address, transport := raft.NewInmemTransport("a")
		config := raft.DefaultConfig()
		config.LocalID, config.TrailingLogs, config.SnapshotThreshold = "a", 20, 1<<40
		config.Logger = hclog.NewNullLogger()
		var want uint64
		for life := range 6 {
			s, err := tryOpen(f, raftlog.Options{CacheEntries: 16})
			must(t, err)
			fsm := &counter{}
			r, err := raft.NewRaft(config, fsm, s, stable, snaps, transport)
			must(t, err)
			if life == 0 {
				must(t, r.BootstrapCluster(raft.Configuration{Servers: []raft.Server{
					{ID: "a", Address: address}}}).Error())
			}
			for r.State() != raft.Leader {
				clock.Sleep(10 * time.Millisecond) // the bubble's clock
			}
			must(t, r.Barrier(0).Error())
			if fsm.n != want {
				t.Fatalf("life %d starts with %d commands, want %d", life, fsm.n, want)
			}
			for range 200 {
				must(t, r.Apply(make([]byte, 50), 0).Error())
				want++
			}
			if life%2 == 1 {
				must(t, r.Snapshot().Error())
				s.Settle()
				if st := s.Stats(); st.LastIndex-st.FirstIndex > 30 || st.Segments > 3 {
					t.Errorf("after a snapshot: %+v", st)
				}
			}
			if life == 3 {
				meta, content, err := snaps.Open(newestSnapshot(t, snaps))
				must(t, err)
				must(t, r.Restore(meta, content, 0)) // empties the log and leaves a gap
			}
			f.PowerCut()
			must(t, r.Shutdown().Error())
			_ = s.Close()
			f.PowerOn()
		}
	})
}

// newestSnapshot returns the id of the newest snapshot.
func newestSnapshot(t *testing.T, s raft.SnapshotStore) string {
	t.Helper()
	list, err := s.List()
	if err != nil || len(list) == 0 {
		t.Fatalf("snapshots %v, %v", list, err)
	}
	return list[0].ID
}
