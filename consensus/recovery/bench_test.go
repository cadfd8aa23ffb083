package recovery

import (
	"bytes"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/consensus/storage"
	"github.com/zk-lite/zk-lite/znode"
)

// BenchmarkRecovery takes a backup of a million znodes into an empty directory, and then reads it as a server does at
// its start.
func BenchmarkRecovery(b *testing.B) {
	const znodes = 1_000_000
	m := state.New()
	acl := []znode.ACL{{Perms: znode.PermAll, ID: znode.ID{Scheme: "world", ID: "anyone"}}}
	for i := range znodes {
		g := state.Batch{Origin: state.Origin{Server: 1, Incarnation: 1}, First: uint64(i + 1), Count: 1}
		g.Commands = state.AppendCommand(nil, &state.Command{
			Op: state.OpCreate, Path: fmt.Sprintf("/n%07d", i), Data: make([]byte, 100), ACL: acl,
		})
		entry := state.AppendEntry(nil, 1, []state.Batch{g})
		if err := m.Apply(uint64(i+1), 1, entry, state.Unobserved{}); err != nil {
			b.Fatal(err)
		}
	}
	if n := m.Tree().Size().Znodes; n < znodes {
		b.Fatalf("%d znodes", n)
	}
	var file bytes.Buffer
	s := m.Snapshot()
	err := s.Write(&file)
	s.Release()
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		cfg := storage.Config{Dir: b.TempDir(), Logger: slog.New(slog.DiscardHandler)}
		r, err := Open(cfg, 1, bytes.NewReader(file.Bytes()), 0)
		if err == nil {
			_, _, err = r.Run(time.Now())
		}
		if err != nil {
			b.Fatal(err)
		}
		store, err := storage.Open(cfg)
		if err != nil {
			b.Fatal(err)
		}
		x := &Recovery{cfg: cfg, self: 1}
		if err := x.replay(&store); err != nil {
			b.Fatal(err)
		}
		if n := x.machine.Tree().Size().Znodes; n < znodes {
			b.Fatalf("%d znodes are there again", n)
		}
		if err := store.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
