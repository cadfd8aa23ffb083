package seed

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/internal/jute"
	"github.com/zk-lite/zk-lite/migration/replica"
	"github.com/zk-lite/zk-lite/session"
	"github.com/zk-lite/zk-lite/znode"
)

func newReplica(t *testing.T, txns ...replica.Txn) *replica.Replica {
	t.Helper()
	r := replica.New(znode.NewTree(), session.NewTable(), 0)
	for i := range txns {
		if err := r.Apply(&znode.Txn{}, &txns[i], false); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

// some is a few transactions of a ZooKeeper ensemble, and its own configuration.
func some() []replica.Txn {
	create := func(zxid znode.Zxid, op replica.Op, path string, c replica.Change) replica.Txn {
		c.Op, c.Path, c.Data, c.ACL, c.Creates = op, path, []byte(path), znode.OpenACL, int32(zxid)
		return replica.Txn{Zxid: zxid, Time: 1000 + int64(zxid), Session: 9, Change: c}
	}
	return []replica.Txn{
		{Zxid: 1, Session: 9, Change: replica.Change{Op: replica.OpCreateSession, Timeout: 4000}},
		create(2, replica.OpCreate, "/a", replica.Change{}),
		create(3, replica.OpCreate, "/a/e", replica.Change{Ephemeral: true}),
		create(4, replica.OpCreateTTL, "/a/ttl", replica.Change{TTL: 5000}),
		create(5, replica.OpCreateContainer, "/c", replica.Change{}),
		{Zxid: 0x5_0000_0006, Change: replica.Change{Op: replica.OpSetData, Path: znode.ConfigPath, Data: []byte("server.1=old"), Version: 1}},
	}
}

// A seed is read as it was written. Equal states have one digest; what differs, has another.
func TestSeed_RoundTrip(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	s, err := New(newReplica(t, some()...), 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Save(dir); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(s.Path())
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file has mode %v, %v; want 0600", info.Mode(), err)
	}
	got, err := Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	again, err := New(newReplica(t, some()...), 0)
	if err != nil {
		t.Fatal(err)
	}
	later, err := New(newReplica(t, some()...), 6)
	if err != nil {
		t.Fatal(err)
	}
	if got.Digest() != s.Digest() || again.Digest() != s.Digest() || later.Digest() == s.Digest() {
		t.Errorf("digests %s, read %s, made again %s, of a later epoch %s", s.Digest(), got.Digest(), again.Digest(), later.Digest())
	}
	m := got.Machine()
	if m.Zxid()>>32 != 5+state.TermJump || m.Index() != 1 || m.Point() != s.Machine().Point() {
		t.Errorf("zxid %v, %+v; want the term %#x", m.Zxid(), m.Point(), 5+state.TermJump)
	}
	if data, _, _ := m.Tree().Get(znode.ConfigPath, nil); len(data) != 0 {
		t.Errorf("clients are shown ZooKeeper's servers: %q", data)
	}
	if x := m.Sessions().Get(9); x == nil || x.Owner != uint64(state.NoServer) || !x.Compatible() {
		t.Errorf("session %+v", x)
	}
	if err := s.Save(dir); !errors.Is(err, ErrExists) || !strings.Contains(err.Error(), s.Path()) {
		t.Errorf("a second import: %v, want ErrExists with the file", err)
	}
	if err := errors.Join(got.Remove(), got.Remove()); err != nil {
		t.Error(err)
	}
	if none, err := Load(dir); none != nil || err != nil {
		t.Errorf("removed, and still %v, %v", none, err)
	}
}

// Zxids must stay positive, and an ACL that no file has must not be guessed.
func TestNew_Refuses(t *testing.T) {
	r := newReplica(t)
	if _, err := New(r, state.TermLimit-state.TermJump-1); err != nil {
		t.Errorf("the last epoch: %v", err)
	}
	for _, epoch := range []uint64{state.TermLimit - state.TermJump, 1<<32 - 1} {
		if _, err := New(r, epoch); err == nil || !strings.Contains(err.Error(), "epoch is") {
			t.Errorf("epoch %d: %v", epoch, err)
		}
	}
	b := jute.AppendInt32(jute.AppendInt32(nil, 0), 0)                                // no sessions, no lists
	for path, list := range map[string]int64{"": -1, znode.SystemPath: -1, "/a": 3} { // of /a the table is older
		b = jute.AppendInt64(jute.AppendBuffer(jute.AppendUstring(b, path), nil), list)
		b = append(b, make([]byte, 60)...) // the Stat
	}
	fuzzy, err := replica.Read(jute.NewStream(bytes.NewReader(jute.AppendUstring(b, "/")), replica.MaxField), 1)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := New(fuzzy, 0); err == nil || !strings.Contains(err.Error(), `"/a"`) {
		t.Errorf("an ACL that is not known: %v, want an error that names the znode", err)
	}
}
