package consensus

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zk-lite/zk-lite/internal/testkit/tier"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
)

// What is damaged or gone is named, with what to do about it, and the server does not start:
// not at the second attempt either.
func TestOpenStorage_Damage_IsNamedWithItsRemedy(t *testing.T) {
	tier.Seconds(t)
	e := newTestEnsemble(t, 1, nil)
	e.must(0, "/a")
	if err := e.nodes[0].raft.Snapshot().Error(); err != nil {
		t.Fatal(err)
	}
	e.must(0, "/b")
	e.stop(0)
	dir := e.nodes[0].dir
	snapshots, err := os.ReadDir(filepath.Join(dir, "snapshots"))
	if err != nil || len(snapshots) == 0 {
		t.Fatalf("snapshots %v (%v), want at least one", snapshots, err)
	}
	snapshot := filepath.Join("snapshots", snapshots[len(snapshots)-1].Name())
	garbage := bytes.Repeat([]byte("no"), 20_000)
	for _, x := range []struct {
		file string
		now  []byte // nil: gone
	}{
		{"identity.json", garbage},
		{"identity.json", []byte(`{"version":1,"ensemble":"0123","server":1}`)},
		{"identity.json", []byte{}},
		{"stable.db", garbage},
		{"stable.db", garbage[:100]},
		{"stable.db", []byte{}},
		{"stable.db", nil},
		{filepath.Join("raftlog", "manifest"), nil},
		{filepath.Join(snapshot, "state.bin"), garbage},
		{filepath.Join(snapshot, "meta.json"), garbage},
	} {
		path := filepath.Join(dir, x.file)
		before, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if x.now == nil {
			err = os.Remove(path)
		} else {
			err = os.WriteFile(path, x.now, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			err = e.start(0)
			if err == nil {
				e.stop(0)
				t.Fatalf("%s as %.10q: the server has started", x.file, x.now)
			}
			name := strings.TrimSuffix(path, "/meta.json") // which is named with its directory
			if !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), "add it as a new one") {
				t.Errorf("%s as %.10q: %v", x.file, x.now, err)
			}
		}
		if err := os.WriteFile(path, before, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	e.mustStart(0) // what was restored is as good as before
	e.must(0, "/c")
	if !e.nodes[0].handler.exists("/a") || !e.nodes[0].handler.exists("/b") {
		t.Error("znodes are missing")
	}
}

// It is said in the log, and by the server's status, as long as it is so.
func TestRegression_Node_DataThatIsGone(t *testing.T) {
	tier.Seconds(t)
	t.Parallel()
	said := &counter{text: "this server's data is gone"}
	e := newTestEnsemble(t, 1, func(c *Config) { c.Logger = slog.New(said) })
	e.must(0, "/a")
	dir := e.nodes[0].dir
	if err := os.Rename(dir, dir+".away"); err != nil {
		t.Fatal(err)
	}
	wait.Until(t, "a word", func() bool { return e.nodes[0].Status().DataLost != "" && said.lines.Load() > 0 })
	e.must(0, "/b")
	if err := os.Rename(dir+".away", dir); err != nil {
		t.Fatal(err)
	}
	wait.Until(t, "the all-clear", func() bool { return e.nodes[0].Status().DataLost == "" })
}
