package inspect_test

import (
	"bytes"
	"fmt"
	"hash/adler32"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/internal/jute"
	"github.com/zk-lite/zk-lite/migration/inspect"
	"github.com/zk-lite/zk-lite/migration/replica"
)

// appendingWriter appends entries to a log when the first output comes, as its server does meanwhile.
type appendingWriter struct {
	bytes.Buffer
	t    *testing.T
	path string
	at   int64
	more []byte
}

func (w *appendingWriter) Write(b []byte) (int, error) {
	if w.more != nil {
		f, err := os.OpenFile(w.path, os.O_WRONLY, 0)
		must(w.t, err)
		_, err = f.WriteAt(w.more, w.at)
		must(w.t, err)
		must(w.t, f.Close())
		w.more = nil
	}
	return w.Buffer.Write(b)
}

// entry is a transaction in a log, which sets the data of /a.
func entry(zxid int64) []byte {
	b := jute.AppendInt64(jute.AppendInt64(jute.AppendInt32(jute.AppendInt64(nil, 7), 1), zxid), 1_700_000_000_000)
	b = jute.AppendInt32(jute.AppendInt32(b, int32(replica.OpSetData)), 2)
	b = append(append(b, "/a"...), 0, 0, 0, 1, 'x', 0, 0, 0, 1)
	return append(jute.AppendBuffer(jute.AppendInt64(nil, int64(adler32.Checksum(b))), b), 'B')
}

// A server writes its log while it is read: entries that follow what was read as the end are no damage.
func TestFile_LogThatGrows(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log.1")
	b := jute.AppendInt64(jute.AppendInt32([]byte("ZKLG"), 2), 0)
	const before, after = 1000, 3 // what is printed before fills a buffer
	for i := range int64(before) {
		b = append(b, entry(i+1)...)
	}
	w := &appendingWriter{t: t, path: path, at: int64(len(b))}
	for i := range int64(after) {
		w.more = append(w.more, entry(before+i+1)...)
	}
	must(t, os.WriteFile(path, append(b, make([]byte, 1<<20)...), 0o600))
	must(t, inspect.File(t.Context(), w, path, inspect.Options{}))
	text := w.String()
	for i := range int64(before + after) {
		if n := strings.Count(text, fmt.Sprintf(" zxid 0x%x setData /a ", i+1)); n != 1 {
			t.Fatalf("transaction 0x%x is printed %d times, want once", i+1, n)
		}
	}
	if !strings.HasSuffix(text, "1003 transactions, every transaction's checksum fits\n") {
		t.Errorf("it ends with %q, want 1003 transactions", text[len(text)-80:])
	}
}

// What real servers of all versions have written is read to its end.
func TestFile_RealServers(t *testing.T) {
	files, err := filepath.Glob("../datadir/testdata/origin/*/version-2/*.*")
	if err != nil || len(files) < 20 {
		t.Fatalf("%d files, %v, want those of six versions", len(files), err)
	}
	for _, path := range files {
		got, err := show(t, path, inspect.Options{Data: true})
		if err != nil {
			t.Errorf("%s: %v", path, err)
		}
		want := "checksum"
		if version := filepath.Base(filepath.Dir(filepath.Dir(path))); version > "3.6" && !strings.Contains(path, "log.") &&
			!strings.Contains(path, "snapshot.0") {
			want = "checksum and digest fit\n" // nothing was written meanwhile
		}
		if !strings.Contains(got, want) {
			t.Errorf("%s: it ends with\n%s\nwant %q", path, got[max(0, len(got)-200):], want)
		}
	}
}

// The transactions that a mirror has brought are shown with their zxids.
func TestFile_Mirror(t *testing.T) {
	var data []byte
	for _, txn := range transactions()[:3] {
		data = state.AppendTxn(data, txn)
	}
	dir := t.TempDir()
	writeLog(t, dir, []state.Command{{Op: state.OpMirror, Mirror: state.MirrorFollow, Term: 1, Data: data},
		{Op: state.OpMirror, Mirror: state.MirrorFollow, Term: 1, Data: data[:len(data)-1]},
		{Op: state.OpMirror, Mirror: state.MirrorStop, Data: (&state.Takeover{Server: 3, Last: 5<<32 | 3, Tail: 2}).Append(nil)}})
	got, err := show(t, dir, inspect.Options{})
	must(t, err)
	for _, want := range []string{
		"[createSession zxid 0x500000001 session 0x1000abcdef0123 timeout=30000 ms]",
		"[create zxid 0x500000002 session 0x1000abcdef0123 /a persistent ", "the transactions end early",
		"up to zxid 0x500000003 of server 3, whose log alone had 2 of the transactions",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in\n%s", want, got)
		}
	}
}

// Whatever a file holds, the error of it names it, and nothing panics.
func FuzzFile(f *testing.F) {
	dir := f.TempDir()
	backup, _, log := ownFiles(f, dir)
	zkSnapshot, zkCompressed, zkLog := zooKeeperFiles(f, dir)
	for _, path := range []string{backup, filepath.Join(log, "00000001.seg"), zkSnapshot, zkCompressed, zkLog} {
		b, err := os.ReadFile(path)
		must(f, err)
		f.Add(b[:min(len(b), 16<<10)])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		path := filepath.Join(t.TempDir(), "file")
		must(t, os.WriteFile(path, b, 0o600))
		if _, err := show(t, path, inspect.Options{JSON: true, Data: true}); err != nil && !strings.Contains(err.Error(), path) {
			t.Errorf("the error does not name the file: %v", err)
		}
	})
}
