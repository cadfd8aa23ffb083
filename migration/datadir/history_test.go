package datadir_test

import (
	"fmt"
	"hash/adler32"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zk-lite/zk-lite/internal/jute"
	"github.com/zk-lite/zk-lite/migration/datadir"
	"github.com/zk-lite/zk-lite/migration/replica"
	"github.com/zk-lite/zk-lite/session"
	"github.com/zk-lite/zk-lite/znode"
)

// history is a directory that a test writes, transaction by transaction.
type history struct {
	*replica.Replica
	t   *testing.T
	dir string
	log string            // path of the log; "": the next transaction begins one
	b   map[string][]byte // of the logs, which load writes

	creates int32 // of the root
}

func newHistory(t *testing.T) *history {
	return &history{Replica: replica.New(znode.NewTree(), session.NewTable(), 0), t: t, dir: t.TempDir(),
		b: map[string][]byte{}}
}

// set sets the data of a znode, which it creates if there is none, and logs that. wrong is added to the digest.
func (h *history) set(path string, wrong uint64) {
	h.t.Helper()
	c := replica.Change{Op: replica.OpSetData, Path: path, Data: fmt.Appendf(nil, "%v", h.Zxid)}
	stat, code := h.Tree.Exists(path, nil)
	record := jute.AppendBuffer(jute.AppendUstring(nil, path), c.Data)
	if c.Version = stat.Version + 1; code == znode.OK {
		record = jute.AppendInt32(record, int32(c.Version))
	} else {
		h.creates++
		c.Op, c.ACL, c.Creates = replica.OpCreate, znode.OpenACL, h.creates
		record = jute.AppendInt32(jute.AppendInt32(record, 1), 31)
		record = jute.AppendUstring(jute.AppendUstring(record, "world"), "anyone")
		record = jute.AppendInt32(jute.AppendBool(record, false), h.creates)
	}
	txn := replica.Txn{Zxid: h.Zxid + 1, Time: int64(h.Zxid), Change: c}
	if err := h.Apply(new(znode.Txn), &txn, false); err != nil {
		h.t.Fatalf("Apply = %v", err)
	}
	record = jute.AppendInt64(jute.AppendInt32(record, 2), int64(h.Digest()+wrong))
	h.append(&txn, record)
}

// append logs a transaction with this record.
func (h *history) append(txn *replica.Txn, record []byte) {
	h.t.Helper()
	e := jute.AppendInt64(jute.AppendInt32(jute.AppendInt64(nil, int64(txn.Session)), 0), int64(txn.Zxid))
	e = append(jute.AppendInt32(jute.AppendInt64(e, txn.Time), int32(txn.Op)), record...)
	if h.log == "" {
		h.log = h.path("log", txn.Zxid)
		h.b[h.log] = jute.AppendInt64(jute.AppendInt32([]byte("ZKLG"), 2), 0)
	}
	h.b[h.log] = append(jute.AppendBuffer(jute.AppendInt64(h.b[h.log], int64(adler32.Checksum(e))), e), 'B')
}

func (h *history) path(kind string, zxid znode.Zxid) string {
	return filepath.Join(h.dir, kind+"."+strings.TrimPrefix(zxid.String(), "0x"))
}

// snapshot writes the state under the name of a zxid, with the digest of the present one: a fuzzy snapshot, if that is
// later.
func (h *history) snapshot(name znode.Zxid) {
	h.t.Helper()
	dir := h.t.TempDir()
	path, err := datadir.WriteSnapshot(dir, h.Replica)
	if err != nil {
		h.t.Fatalf("WriteSnapshot = %v", err)
	}
	write(h.t, h.path("snapshot", name), []byte(content(h.t, path)))
}

// load compares what Load returns with the history; want is a part of the error, "" for none.
func (h *history) load(name, want string) *datadir.Report {
	h.t.Helper()
	for path, b := range h.b {
		write(h.t, path, append(b[:len(b):len(b)], make([]byte, 64)...))
	}
	r, report, err := datadir.Load(h.dir, "")
	switch {
	case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
		h.t.Errorf("%s: Load = %v, want an error with %q", name, err, want)
	case want == "" && err != nil:
		h.t.Errorf("%s: Load = %v", name, err)
	case want == "" && (r.Zxid != h.Zxid || r.Digest() != h.Digest()):
		h.t.Errorf("%s: zxid %v, digest %#x; want %v, %#x", name, r.Zxid, r.Digest(), h.Zxid, h.Digest())
	}
	return report
}

// A digest that does not fit is an error at once, unless a write of "/" may have spoilt it; then it must fit again.
func TestLoad_Digests(t *testing.T) {
	h := newHistory(t)
	h.set("/a", 0)
	h.set("/a", 7)
	h.load("a wrong digest", "since transaction 0x2, up to 0x2")

	h = newHistory(t)
	h.set("/", 0)
	h.set("/a", 7)
	if got := h.load("spoilt at the end", ""); len(got.Warnings) != 2 || !strings.Contains(got.Warnings[0], "since 0x2") {
		t.Errorf("warnings %q; want one of the digests since 0x2", got.Warnings)
	}
	h.set("/b", 0)
	if got := h.load("spoilt for a while", "").Digests; got.Equal != 2 || got.Spoilt != 1 {
		t.Errorf("%+v; want 2 equal, 1 spoilt", got)
	}

	h = newHistory(t)
	h.set("/", 0)
	for range 10_002 {
		h.set("/a", 7)
	}
	h.load("spoilt for too long", "since transaction 0x2")

	// The write of "/" may be before the snapshot.
	h = newHistory(t)
	h.set("/", 0)
	h.snapshot(h.Zxid)
	h.log = ""
	h.set("/a", 7)
	h.set("/a", 0)
	if got := h.load("spoilt by a write before the snapshot", "").Digests; got.Equal != 2 || got.Spoilt != 1 {
		t.Errorf("%+v; want 2 equal, 1 spoilt", got)
	}
}

// Digests count from the zxid that the snapshot's digest is of; without the logs up to there the state is not known.
func TestLoad_FuzzyEnd(t *testing.T) {
	h := newHistory(t)
	for range 3 {
		h.set("/a", 0)
	}
	h.log = ""
	h.set("/a", 7) // 0x4 and 0x5 are in the snapshot 0x3 already
	h.set("/b", 0)
	h.snapshot(3)
	h.set("/a", 0)
	if got := h.load("a fuzzy snapshot", "").Digests; got.Equal != 2 || got.None != 1 || got.Spoilt != 0 {
		t.Errorf("%+v; want 0x5 and 0x6 equal, and 0x4 not compared", got)
	}
	h = newHistory(t)
	h.set("/a", 0)
	h.set("/a", 0)
	h.snapshot(1)
	clear(h.b)
	if got := h.load("without the logs, whole", ""); len(got.Warnings) != 2 || !strings.Contains(got.Warnings[0], "up to 0x2") {
		t.Errorf("warnings %q; want one that the logs are missing up to 0x2", got.Warnings)
	}
	// Now as if /a had been written before the second transaction: the digest that follows the state tells.
	path := h.path("snapshot", 1)
	whole := []byte(content(t, path))
	older := newHistory(t)
	older.set("/a", 0)
	older.snapshot(1)
	half := []byte(content(t, older.path("snapshot", 1)))
	const trailer = 33 + 21 // digest and last zxid with their seals
	half = half[:len(half)-trailer]
	half = append(half, whole[len(whole)-trailer:len(whole)-21-13]...)
	half = jute.AppendUstring(jute.AppendInt64(half, int64(adler32.Checksum(half))), "/")
	write(t, path, half)
	h.load("without the logs, half", "the logs end with transaction 0x1, and the snapshot may hold a part of those up to 0x2")
}

// Transactions that two logs have count once; those of a new leader begin with 1; others that are missing are named.
func TestLoad_Order(t *testing.T) {
	h := newHistory(t)
	h.set("/a", 0)
	h.set("/b", 0)
	again := h.b[h.log]
	h.log = ""
	h.set("/c", 0)
	h.b[h.log] = append(again[:len(again):len(again)], h.b[h.log][16:]...) // log.3 begins with 1 and 2, too
	if got := h.load("transactions twice", ""); got.Repeated != 2 || got.Transactions != 3 {
		t.Errorf("%d repeated, %d transactions; want 2, 3", got.Repeated, got.Transactions)
	}
	h.Zxid, h.log = 1<<32, ""
	h.set("/d", 0)
	h.load("a new leader", "")
	h.Zxid, h.log = 2<<32|1, ""
	h.set("/e", 0)
	h.load("a new leader's first is missing", "those from 0x200000001 to 0x200000001 are missing")
}

// What a copy cannot hold is refused by name, and is no damage: the snapshot is not skipped.
func TestLoad_RefusesWhatItCannotHold(t *testing.T) {
	state := func(sessions, znode []byte) []byte {
		b := jute.AppendInt64(jute.AppendInt32([]byte("ZKSN"), 2), -1)
		b = append(b, sessions...)
		b = jute.AppendInt32(b, 0) // ACLs
		for _, path := range []string{"", "/zookeeper", "/zookeeper/quota"} {
			b = append(jute.AppendInt64(jute.AppendBuffer(jute.AppendUstring(b, path), nil), -1), make([]byte, 60)...)
		}
		b = jute.AppendUstring(append(b, znode...), "/")
		return jute.AppendUstring(jute.AppendInt64(b, int64(adler32.Checksum(b))), "/")
	}
	stat := func(owner uint64) []byte {
		return jute.AppendInt64(jute.AppendInt64(make([]byte, 44), int64(owner)), 0)
	}
	none := jute.AppendInt32(nil, 0)
	item := func(acl int64, owner uint64) []byte {
		return append(jute.AppendInt64(jute.AppendBuffer(jute.AppendUstring(nil, "/x"), nil), acl), stat(owner)...)
	}
	one := jute.AppendInt32(jute.AppendInt64(jute.AppendInt32(nil, 1), -1<<56|5), 1000)
	for _, c := range []struct {
		name     string
		snapshot []byte
		want     string // "" for none
	}{
		{"nothing unusual", state(none, item(-1, 0)), ""},
		{"a session with 0xff on top", state(one, nil), "session 0xff00000000000005 has an id that means something else"},
		{"an owner with 0xff on top", state(none, item(-1, 0xff12_3456_789a_0000)), `znode "/x": owner 0xff123456789a0000`},
		{"a TTL of 3.5.3", state(none, item(-1, 0x8000_0000_0000_1000)), "zookeeper.emulate353TTLNodes"},
		{"an ACL that is nowhere", state(none, item(5, 0)), `["/x"]`},
		{"no parent", state(none, append(jute.AppendInt64(jute.AppendBuffer(jute.AppendUstring(nil, "/y/z"), nil), -1),
			stat(0)...)), `"/y/z" has no parent`},
	} {
		dir := t.TempDir()
		path := filepath.Join(dir, "snapshot.0")
		write(t, path, c.snapshot)
		_, report, err := datadir.Load(dir, "")
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: Load = %v, want an error with %q", c.name, err, c.want)
		}
		if len(report.Skipped) > 0 {
			t.Errorf("%s: skipped %+v", c.name, report.Skipped)
		}
	}
}
