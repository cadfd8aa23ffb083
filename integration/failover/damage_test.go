package failover_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"

	"github.com/zk-lite/zk-lite/integration/cluster"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
)

// damaged returns the state in which the tests of damage begin: an ensemble under load with one follower killed, whose
// files may be changed.
func damaged(t *testing.T, o cluster.Options) (*cluster.Ensemble, *load, *cluster.Server) {
	t.Helper()
	e := start(t, 3, o)
	l := startLoad(t, e, "/damage")
	l.waitProgress(200)
	victim := e.Followers()[0]
	victim.Kill()
	return e, l, victim
}

// segments are the files of raft's log, in order.
func segments(t *testing.T, s *cluster.Server) []string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(s.DataDir, "raftlog", "*.seg*"))
	if err != nil || len(all) == 0 {
		list, _ := filepath.Glob(filepath.Join(s.DataDir, "raftlog", "*"))
		t.Fatalf("no segments in %s, %v: %q", s.DataDir, err, list)
	}
	sort.Strings(all)
	return all
}

// written is the segment with records that was written last, its bytes, and
// where the zeros of its preallocation begin.
func written(t *testing.T, s *cluster.Server) (path string, b []byte, end int) {
	t.Helper()
	for _, name := range segments(t, s) {
		x, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		n := len(bytes.TrimRight(x, "\x00"))
		if path == "" || n > 4<<10 {
			path, b, end = name, x, n
		}
	}
	if end < 4<<10 {
		t.Fatalf("%s has only %d bytes", path, end)
	}
	return path, b, end
}

func writeFile(t *testing.T, path string, b []byte) {
	t.Helper()
	if err := os.WriteFile(path, b, 0o640); err != nil {
		t.Fatal(err)
	}
}

// refuses starts a server that must not serve: it must exit with an error that names the file, or the given words.
func refuses(t *testing.T, s *cluster.Server, named ...string) {
	t.Helper()
	before := len(s.Log())
	s.Start()
	if err := s.WaitEnd(); err == nil {
		t.Errorf("server %d ended with exit code 0", s.ID)
	}
	said := s.Log()[before:]
	for _, want := range named {
		if !strings.Contains(said, want) {
			t.Errorf("server %d does not name %q:\n%s", s.ID, want, said)
		}
	}
	if strings.Contains(said, "panic:") || strings.Contains(said, "goroutine ") {
		t.Errorf("server %d panics:\n%s", s.ID, said)
	}
	lines := strings.Split(strings.TrimSpace(said), "\n")
	t.Logf("it says: %s", lines[len(lines)-1])
}

// endOfRecords follows the records of a segment (consensus/raftlog/FORMAT.md) and
// returns where the last one ends.
func endOfRecords(t *testing.T, b []byte) int {
	t.Helper()
	const first, header, align = 4096, 64, 8
	off := first
	for off+header <= len(b) && binary.LittleEndian.Uint16(b[off+10:]) == 0x4c5a {
		n := header + int(binary.LittleEndian.Uint32(b[off+4:]))
		off += (n + align - 1) / align * align
	}
	if off == first || off > len(b) {
		t.Fatalf("the segment has no records: its end is at %d of %d", off, len(b))
	}
	return off
}

// TestFailover_TornLastRecord leaves the beginning of a record after the last one of a killed server's log, as a power
// cut in the middle of a write does: the server must start without repair and catch up. (The last whole record may have
// been durable before the kill; to cut that one short is damage, and refused.)
func TestFailover_TornLastRecord(t *testing.T) {
	e, l, victim := damaged(t, cluster.Options{})
	path, b, _ := written(t, victim)
	end := endOfRecords(t, b)
	copy(b[end:], b[4096:4096+40])
	writeFile(t, path, b)
	victim.Start()
	e.WaitServing()
	if !strings.Contains(victim.Log(), "cut off the end of the raft log") {
		t.Error("the server does not say that it has cut off the torn record")
	}
	l.waitProgress(50)
	l.check()
	e.CheckReplicas()
}

// TestFailover_FlippedBitInLog: a damaged record is never served; the server refuses to start and names the file, and
// the others keep serving.
func TestFailover_FlippedBitInLog(t *testing.T) {
	e, l, victim := damaged(t, cluster.Options{})
	path, b, end := written(t, victim)
	good := bytes.Clone(b)
	b[end/2] ^= 0x10
	writeFile(t, path, b)
	refuses(t, victim, path)
	l.waitProgress(50)
	// With the bit as it was, everything is in order again: the refusal has
	// destroyed nothing.
	writeFile(t, path, good)
	victim.Start()
	e.WaitServing()
	l.check()
	e.CheckReplicas()
}

// TestFailover_FlippedBitInSnapshot: the same for a snapshot.
func TestFailover_FlippedBitInSnapshot(t *testing.T) {
	e := start(t, 3, cluster.Options{Config: map[string]string{"snapCount": "200"}})
	l := startLoad(t, e, "/damage")
	victim := e.Followers()[0]
	wait.Succeeds(t, "a snapshot", func() error {
		if len(victim.Snapshots()) == 0 {
			return errors.New("there is none")
		}
		return nil
	})
	victim.Kill()
	good := map[string][]byte{}
	for _, path := range victim.Snapshots() {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		good[path] = bytes.Clone(b)
		b[len(b)/2] ^= 0x10
		writeFile(t, path, b)
	}
	refuses(t, victim, filepath.Join(victim.DataDir, "snapshots"))
	l.waitProgress(50)
	for path, b := range good {
		writeFile(t, path, b)
	}
	victim.Start()
	e.WaitServing()
	l.check()
	e.CheckReplicas()
}

// TestFailover_WipedDisk: a server that has lost its disk would forget its votes and what it has acknowledged. It must
// refuse, and must not form an ensemble of its own.
func TestFailover_WipedDisk(t *testing.T) {
	e, l, victim := damaged(t, cluster.Options{})
	victim.Wipe()
	before := len(victim.Log())
	victim.Start()
	l.waitProgress(200)
	// It may exit, or keep asking; it must report why and must not serve.
	wait.Succeeds(t, "it says that its directory is empty", func() error {
		if said := victim.Log()[before:]; !strings.Contains(said, "data directory is empty") {
			return fmt.Errorf("it says: %s", said)
		}
		return nil
	})
	if mode, err := victim.Mode(); err == nil {
		t.Errorf("the wiped server serves as %s", mode)
	}
	t.Logf("it runs: %v; it says: %s", victim.Running(), victim.Log()[before:])
	if victim.Running() {
		victim.Kill()
	}
	l.check()
	e.CheckReplicas()
}

// TestFailover_TwoWipedDisks: two servers that lost their disks and one that
// did not are no majority, however many they are.
func TestFailover_TwoWipedDisks(t *testing.T) {
	e := start(t, 3, cluster.Options{})
	l := startLoad(t, e, "/wiped")
	l.waitProgress(50)
	l.end()
	e.KillAll()
	e.Server(1).Wipe()
	e.Server(2).Wipe()
	e.StartAll()
	wait.Steadily(t, "nobody serves", notice, func() error {
		for _, s := range e.Running() {
			if mode, err := s.Mode(); err == nil {
				return fmt.Errorf("server %d serves as %s", s.ID, mode)
			}
		}
		return nil
	})
}
