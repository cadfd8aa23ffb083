package storage

import (
	"errors"
	"io"
	"log/slog"
	"testing"

	"github.com/hashicorp/raft"
)

// Inspect reads what a server has, in either store of logs; an empty directory is no error.
func TestInspect(t *testing.T) {
	for _, kind := range []LogKind{LogRaftlog, LogBolt} {
		c := Config{Dir: t.TempDir(), Kind: kind, Logger: slog.New(slog.DiscardHandler)}
		var snapshots, entries int
		inspect := func() error {
			snapshots, entries = 0, 0
			return c.Inspect(func(in io.Reader) error {
				snapshots++
				_, err := io.ReadAll(in)
				return err
			}, func(*raft.Log) error {
				entries++
				return nil
			})
		}
		if err := inspect(); err != nil || snapshots+entries > 0 {
			t.Errorf("%s: of nothing %d and %d, %v", kind, snapshots, entries, err)
		}
		s, err := Open(c)
		if err != nil {
			t.Fatal(err)
		}
		var logs []*raft.Log
		for i := range uint64(7) {
			logs = append(logs, &raft.Log{Index: i + 1, Term: 1})
		}
		_, bare := raft.NewInmemTransport("")
		sink, err := s.Snapshots.Create(raft.SnapshotVersionMax, 3, 1, raft.Configuration{}, 1, bare)
		if err == nil {
			err = sink.Close()
		}
		if err := errors.Join(err, s.Log.StoreLogs(logs), s.Close()); err != nil {
			t.Fatal(err)
		}
		if err := inspect(); err != nil || snapshots != 1 || entries != 7 {
			t.Errorf("%s: %d snapshots, %d entries, %v", kind, snapshots, entries, err)
		}
	}
}
