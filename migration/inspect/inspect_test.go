package inspect_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/adler32"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/zk-lite/zk-lite/consensus/raftlog"
	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/internal/jute"
	"github.com/zk-lite/zk-lite/internal/testkit/golden"
	"github.com/zk-lite/zk-lite/internal/testkit/tier"
	"github.com/zk-lite/zk-lite/migration/datadir"
	"github.com/zk-lite/zk-lite/migration/inspect"
	"github.com/zk-lite/zk-lite/migration/replica"
	"github.com/zk-lite/zk-lite/session"
	"github.com/zk-lite/zk-lite/znode"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// show returns what File prints, with the directory of the file left out.
func show(t testing.TB, path string, o inspect.Options) (string, error) {
	t.Helper()
	var out bytes.Buffer
	err := inspect.File(t.Context(), &out, path, o)
	return strings.ReplaceAll(out.String(), filepath.Dir(path)+"/", ""), err
}

var (
	digestACL = []znode.ACL{
		{Perms: znode.PermAll, ID: znode.ID{Scheme: "digest", ID: "ann:sCxtVJ1gPG8UW/jzFHR0A1ZKY5s="}},
		{Perms: znode.PermRead, ID: znode.Anyone},
	}
	password = session.Password{0x50, 0x41, 0x53, 0x53}
)

// commands are one of each operation of ours that has something of its own.
func commands() []state.Command {
	const sid = 0x100000000000005
	return []state.Command{
		{Op: state.OpCreateSession, Session: sid, Timeout: 9 * time.Second, Password: password},
		{Op: state.OpCreate, Path: "/a", Data: []byte("secret of a"), ACL: digestACL},
		{Op: state.OpCreate, Path: "/é", ACL: znode.OpenACL, Session: sid, Mode: znode.Ephemeral},
		{Op: state.OpCreate, Path: "/c", ACL: znode.OpenACL, Mode: znode.Container, Kind: znode.CreateContainer},
		{Op: state.OpCreate, Path: "/ttl", Data: []byte{}, ACL: znode.OpenACL, Mode: znode.PersistentTTL,
			Kind: znode.CreateTTL, TTL: 60_000, Flags: state.FlagExtendedTypes},
		{Op: state.OpMulti, Ops: []state.Command{
			{Op: state.OpSetData, Path: "/c", Data: []byte("x"), Version: -1}, {Op: state.OpCheck, Path: "/c", Version: 9},
		}},
		{Op: state.OpBranch, Branch: &state.Branch{Then: 1, If: []znode.Condition{
			{Path: "/c", Of: znode.OfVersion, Is: znode.Greater, Number: 8}, {Path: "/c", Of: znode.OfData, Is: znode.Equal, Data: []byte("y")}}},
			Ops: []state.Command{{Op: state.OpDelete, Path: "/c", Version: -1}, {Op: state.OpChildren, Path: "/c"}}},
		{Op: state.OpDelete, Path: "/none", Version: 3, Mzxid: 0x100000001},
		{Op: state.OpSetACL, Path: "/c", ACL: znode.ReadACL, Version: 0},
		{Op: state.OpMember, Member: state.Member{ID: 1, Peer: "h:1:2", Client: "h:2181", Version: "1.1.0", Token: [32]byte{1}}},
		{Op: state.OpSync},
	}
}

func entryOf(commands []state.Command) []byte {
	g := state.Batch{Origin: state.Origin{Server: 1, Incarnation: 7}, First: 1, Count: len(commands)}
	for i := range commands {
		g.Commands = state.AppendCommand(g.Commands, &commands[i])
	}
	return state.AppendEntry(nil, 1_700_000_000_000, []state.Batch{g})
}

func machine(t testing.TB) *state.Machine {
	t.Helper()
	m := state.New()
	must(t, m.Apply(1, 1, entryOf(commands()), state.Unobserved{}))
	return m
}

// ownFiles writes a backup, a snapshot as raft keeps it, and a log.
func ownFiles(t testing.TB, dir string) (backup, snapshot, log string) {
	t.Helper()
	s := machine(t).Snapshot()
	defer s.Release()
	var b, plain bytes.Buffer
	must(t, s.Write(&plain))
	must(t, s.WriteBackup(&b, [16]byte{0xab, 15: 0xcd}))
	backup, snapshot, log = filepath.Join(dir, "zk.backup"), filepath.Join(dir, "snapshot"), filepath.Join(dir, "raftlog")
	must(t, os.WriteFile(backup, b.Bytes(), 0o600))
	must(t, os.Mkdir(snapshot, 0o700))
	must(t, os.WriteFile(filepath.Join(snapshot, "state.bin"), plain.Bytes(), 0o600))
	writeLog(t, log, commands())
	return backup, snapshot, log
}

// writeLog writes a log with an entry that holds the commands.
func writeLog(t testing.TB, dir string, commands []state.Command) {
	t.Helper()
	l, err := raftlog.Open(dir, raftlog.Options{NoDirect: true})
	must(t, err)
	at := time.Unix(1_700_000_000, 0)
	must(t, l.StoreLogs([]*raft.Log{
		{Index: 1, Term: 1, Type: raft.LogConfiguration, Data: []byte("of raft's own"), AppendedAt: at},
		{Index: 2, Term: 1, Type: raft.LogCommand, Data: entryOf(commands), AppendedAt: at},
		{Index: 3, Term: 1, Type: raft.LogNoop, AppendedAt: at},
	}))
	must(t, l.DeleteRange(3, 3))
	must(t, l.Close())
}

// transactions are one of each type of ZooKeeper's that has something of its own.
func transactions() [][]byte {
	long, number, text := jute.AppendInt64, jute.AppendInt32, jute.AppendUstring
	zxid := int64(0x500000000)
	head := func(session int64, cxid int32, op replica.Op) []byte {
		zxid++
		return number(long(long(number(long(nil, session), cxid), zxid), 1_700_000_000_000), int32(op))
	}
	acl := func(b []byte, list []znode.ACL) []byte {
		b = number(b, int32(len(list)))
		for _, a := range list {
			b = text(text(number(b, int32(a.Perms)), a.ID.Scheme), a.ID.ID)
		}
		return b
	}
	digest := func(b []byte) []byte { return long(number(b, 2), 0x1234) }
	create := func(b []byte, path string, data []byte, list []znode.ACL, ephemeral byte, parent int32) []byte {
		return number(append(acl(jute.AppendBuffer(text(b, path), data), list), ephemeral), parent)
	}
	sub := func(b []byte, op replica.Op, record []byte) []byte {
		return jute.AppendBuffer(number(b, int32(op)), record)
	}
	const sid = 0x1000abcdef0123
	return [][]byte{
		digest(number(head(sid, 0, replica.OpCreateSession), 30_000)),
		digest(create(head(sid, 1, replica.OpCreate), "/a", []byte("secret of a"), digestACL, 0, 1)),
		digest(create(head(sid, 2, replica.OpCreate2), "/a/é", nil, znode.OpenACL, 1, 1)),
		digest(long(number(acl(jute.AppendBuffer(text(head(sid, 3, replica.OpCreateTTL), "/ttl"), []byte{}), znode.OpenACL), 2), 60_000)),
		sub(sub(number(head(sid, 4, replica.OpMulti), 2), replica.OpSetData, number(jute.AppendBuffer(text(nil, "/a"), []byte("x")), 1)),
			replica.OpDelete, text(nil, "/ttl")),
		number(head(sid, 5, replica.OpError), -101),
		number(acl(text(head(sid, 6, replica.OpSetACL), "/a"), znode.ReadACL), 1),
		text(number(head(sid, 7, replica.OpCloseSession), 1), "/a/é"),
	}
}

func zooKeeperLog() []byte {
	b := jute.AppendInt64(jute.AppendInt32([]byte("ZKLG"), 2), 0)
	for _, txn := range transactions() {
		b = jute.AppendBuffer(jute.AppendInt64(b, int64(adler32.Checksum(txn))), txn)
		b = append(b, 'B')
	}
	return append(b, make([]byte, 4096)...)
}

func zooKeeperFiles(t testing.TB, dir string) (snapshot, compressed, log string) {
	t.Helper()
	m := machine(t)
	snapshot, err := datadir.WriteSnapshot(dir, replica.New(m.Tree(), m.Sessions(), m.Zxid()))
	must(t, err)
	b, err := os.ReadFile(snapshot)
	must(t, err)
	var z bytes.Buffer
	w := gzip.NewWriter(&z)
	_, err = w.Write(b)
	must(t, errors.Join(err, w.Close()))
	compressed = filepath.Join(dir, "snapshot.100000007.gz")
	must(t, os.WriteFile(compressed, z.Bytes(), 0o600))
	log = filepath.Join(dir, "log.500000001")
	must(t, os.WriteFile(log, zooKeeperLog(), 0o600))
	return snapshot, compressed, log
}

// What is printed of each kind of file is as in testdata, and without --data nothing secret is in it.
func TestFile_Golden(t *testing.T) {
	dir := t.TempDir()
	backup, _, log := ownFiles(t, dir)
	zkSnapshot, _, zkLog := zooKeeperFiles(t, dir)
	for name, path := range map[string]string{
		"backup": backup, "raftlog": log, "zookeeper-snapshot": zkSnapshot, "zookeeper-log": zkLog,
	} {
		for suffix, o := range map[string]inspect.Options{".txt": {}, ".json": {JSON: true, Data: true}} {
			got, err := show(t, path, o)
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if !strings.HasSuffix(name, "log") {
				got = sorted(got, o.JSON)
			}
			if want := string(golden.Read(t, name+suffix, []byte(got))); got != want {
				t.Errorf("%s%s prints\n%s\nwant\n%s", name, suffix, got, want)
			}
			for _, secret := range []string{"sCxtVJ1gPG8UW", "secret of", "c2VjcmV0IG9mIGE="} {
				if !o.Data && strings.Contains(got, secret) {
					t.Errorf("%s%s prints the secret %q", name, suffix, secret)
				}
			}
			for _, never := range []string{"PASS", "UEFTU", "50415353"} {
				if strings.Contains(got, never) {
					t.Errorf("%s%s prints the password of a session: %q", name, suffix, never)
				}
			}
			if o.JSON {
				for line := range strings.Lines(got) {
					var v struct{ Kind string }
					if err := json.Unmarshal([]byte(line), &v); err != nil || v.Kind == "" {
						t.Errorf("%s: no object with a kind: %v: %s", name, err, line)
					}
				}
			}
		}
	}
}

// sorted is what is printed with its parts in an order: the znodes of our snapshots come in any.
func sorted(text string, lines bool) string {
	by := "----\n"
	if lines {
		by = "\n"
	}
	parts := strings.Split(text, by)
	slices.Sort(parts[1 : len(parts)-1]) // what is before the znodes stays, and so does the end
	return strings.Join(parts, by)
}

// A kind is the same whether the whole or a part is given, plain or compressed.
func TestFile_SameContent(t *testing.T) {
	dir := t.TempDir()
	backup, snapshot, log := ownFiles(t, dir)
	zkSnapshot, zkCompressed, _ := zooKeeperFiles(t, dir)
	for one, other := range map[string]string{
		backup: snapshot, snapshot: filepath.Join(snapshot, "state.bin"), log: filepath.Join(log, "00000001.seg"),
		zkSnapshot: zkCompressed,
	} {
		var texts []string
		for _, path := range []string{one, other} {
			text, err := show(t, path, inspect.Options{Data: true})
			if err != nil {
				t.Errorf("%s: %v", path, err)
			}
			_, text, _ = strings.Cut(sorted(strings.ReplaceAll(text, "raftlog/", ""), false), "\n")
			_, text, _ = strings.Cut(text, "  time =") // a backup has its ensemble before
			texts = append(texts, text)
		}
		if texts[0] != texts[1] {
			t.Errorf("%s prints\n%s\nand %s\n%s\nwant the same", one, texts[0], other, texts[1])
		}
	}
}

// Damage at any byte of a file is found, or changes nothing; what comes before it is printed, and the error has the file.
func TestFile_Damage(t *testing.T) {
	dir := t.TempDir()
	backup, _, log := ownFiles(t, dir)
	zkSnapshot, zkCompressed, zkLog := zooKeeperFiles(t, dir)
	used := map[string]int{zkLog: len(zooKeeperLog()) - 4096, filepath.Join(log, "00000001.seg"): 8 << 10}
	for _, path := range []string{backup, filepath.Join(log, "00000001.seg"), zkSnapshot, zkCompressed, zkLog} {
		good, err := os.ReadFile(path)
		must(t, err)
		whole, err := show(t, path, inspect.Options{})
		must(t, err)
		found, n := 0, len(good)
		if used[path] > 0 {
			n = used[path]
		}
		step := max(1, n/300)
		for at := 0; at < n; at += step {
			bad := bytes.Clone(good)
			bad[at] ^= 0x41
			must(t, os.WriteFile(path, bad, 0o600))
			got, err := show(t, path, inspect.Options{})
			if err == nil && got != whole && !tornAtEnd(got) {
				t.Errorf("%s, byte %d changed: no error, and it prints\n%s", path, at, got)
			}
			if err != nil {
				found++
				if !strings.Contains(err.Error(), path) {
					t.Errorf("%s, byte %d changed: the error does not name the file: %v", path, at, err)
				}
			}
		}
		if found < n/step/2 {
			t.Errorf("%s: %d of %d damaged bytes were found", path, found, n/step)
		}
		must(t, os.WriteFile(path, good, 0o600))
	}
}

// tornAtEnd reports that a log was taken for one whose server died while it wrote the last entry.
func tornAtEnd(text string) bool {
	return strings.Contains(text, "it ends inside one") || strings.Contains(text, "was never durable")
}

// A file that is cut off is printed up to there.
func TestFile_CutOff_PrintsWhatIsBefore(t *testing.T) {
	dir := t.TempDir()
	snapshot, _, _ := zooKeeperFiles(t, dir)
	b, err := os.ReadFile(snapshot)
	must(t, err)
	must(t, os.WriteFile(snapshot, b[:len(b)*2/3], 0o600))
	got, err := show(t, snapshot, inspect.Options{})
	var damage *datadir.DamageError
	if !errors.As(err, &damage) || !strings.Contains(err.Error(), "take an older snapshot") {
		t.Errorf("error %v, want a DamageError that says what to do", err)
	}
	for _, want := range []string{"\n/a\n", "0x100000000000005, 9000, "} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in what is printed:\n%s", want, got)
		}
	}
}

// What is of no kind is refused by what it begins with, and an end of the context ends the work.
func TestFile_Refuses(t *testing.T) {
	dir := t.TempDir()
	bolt := append(make([]byte, 16), "\xed\xda\x0c\xed\x02\x00\x00\x00"...)
	for want, content := range map[string][]byte{
		`it begins with "PK\x03\x04"`:     []byte("PK\x03\x04"),
		"the file is empty":               {},
		"log.store=boltdb":                bolt,
		"want a snapshot of ZooKeeper":    []byte("\x1f\x8b\x08\x00no gzip"),
		"it has version 3 of the format":  []byte("ZKSN\x00\x00\x00\x03\x00\x00\x00\x00\x00\x00\x00\x00"),
		"has version 4, of a build":       []byte("zkls\x00\x04"),
		"the file ends inside its header": []byte("zkraftlg\x01"),
	} {
		path := filepath.Join(dir, "file")
		must(t, os.WriteFile(path, content, 0o600))
		if _, err := show(t, path, inspect.Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", content, err, want)
		}
	}
	if _, err := show(t, dir, inspect.Options{}); !errors.Is(err, inspect.ErrUnknown) {
		t.Errorf("a directory: %v, want ErrUnknown", err)
	}
	backup, _, _ := ownFiles(t, dir)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := inspect.File(ctx, new(bytes.Buffer), backup, inspect.Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end of the context: %v, want context.Canceled", err)
	}
}

// endless writes znodes until a snapshot has so many.
func endless(t *testing.T, path string, znodes int) (bytes int64) {
	t.Helper()
	f, err := os.Create(path)
	must(t, err)
	sum := adler32.New()
	w := io.MultiWriter(f, sum)
	b := jute.AppendInt64(jute.AppendInt32([]byte("ZKSN"), 2), -1)
	b = jute.AppendInt32(jute.AppendInt32(b, 0), 0)
	data := make([]byte, 1000)
	for i := range znodes {
		path := fmt.Sprintf("/z%09d", i)
		if i == 0 {
			path = ""
		}
		b = jute.AppendInt64(jute.AppendBuffer(jute.AppendUstring(b, path), data), -1)
		b = append(b, make([]byte, 4*8+3*4+2*8)...)
		if len(b) > 1<<20 || i == znodes-1 {
			_, err := w.Write(b)
			must(t, err)
			bytes, b = bytes+int64(len(b)), b[:0]
		}
	}
	_, err = w.Write(jute.AppendUstring(nil, "/"))
	must(t, err)
	_, err = f.Write(jute.AppendUstring(jute.AppendInt64(nil, int64(sum.Sum32())), "/"))
	must(t, errors.Join(err, f.Close()))
	return bytes
}

// lowMemory counts what is printed, and notes how much of the heap is in use meanwhile.
type lowMemory struct {
	bytes, peak, next int64
}

func (m *lowMemory) Write(b []byte) (int, error) {
	if m.bytes += int64(len(b)); m.bytes > m.next {
		m.next = m.bytes + 8<<20
		var s runtime.MemStats
		runtime.ReadMemStats(&s)
		m.peak = max(m.peak, int64(s.HeapAlloc))
	}
	return len(b), nil
}

// many writes a backup with so many znodes of 1000 bytes.
func many(t *testing.T, path string, znodes int) (bytes int64) {
	t.Helper()
	m := state.New()
	data := make([]byte, 1000)
	for i := range znodes {
		c := state.Command{Op: state.OpCreate, Path: fmt.Sprintf("/z%09d", i), Data: data, ACL: znode.OpenACL}
		g := state.Batch{Origin: state.Origin{Server: 1, Incarnation: 1}, First: uint64(i + 1), Count: 1}
		g.Commands = state.AppendCommand(nil, &c)
		must(t, m.Apply(uint64(i+1), 1, state.AppendEntry(nil, 1, []state.Batch{g}), state.Unobserved{}))
	}
	f, err := os.Create(path)
	must(t, err)
	s := m.Snapshot()
	defer s.Release()
	must(t, errors.Join(s.WriteBackup(f, [16]byte{1}), f.Close()))
	return int64(znodes) * int64(len(data))
}

// A snapshot is printed as it is read, in a memory that does not grow with it.
func TestFile_Streams(t *testing.T) {
	tier.Seconds(t)
	dir := t.TempDir()
	for name, write := range map[string]func(*testing.T, string, int) int64{"snapshot.1": endless, "zk.backup": many} {
		path := filepath.Join(dir, name)
		size := write(t, path, 80_000)
		runtime.GC()
		var out lowMemory
		must(t, inspect.File(t.Context(), &out, path, inspect.Options{JSON: true, Data: true}))
		t.Logf("%s: %d MB, %d MB printed, at most %d MB of the heap in use", name, size>>20, out.bytes>>20, out.peak>>20)
		const most = 32 << 20
		if out.peak > most || size < 2*most {
			t.Errorf("%s: %d MB of the heap in use, want at most 32, for %d MB", name, out.peak>>20, size>>20)
		}
	}
}
