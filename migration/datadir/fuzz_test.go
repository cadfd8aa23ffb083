package datadir_test

import (
	"bytes"
	"errors"
	"io"
	"path/filepath"
	"testing"

	"github.com/zk-lite/zk-lite/migration/datadir"
	"github.com/zk-lite/zk-lite/migration/replica"
	"github.com/zk-lite/zk-lite/znode"
)

// Whatever a file holds, reading it ends, and what is read can be written and read again.
func FuzzSnapshot(f *testing.F) {
	for _, origin := range origins(f) {
		for _, path := range snapshots(f, origin) {
			f.Add([]byte(content(f, path)))
		}
	}
	f.Add([]byte("\x82SNAPPY\x00\x00\x00\x00\x01\x00\x00\x00\x01\x7f\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, b []byte) {
		path := filepath.Join(t.TempDir(), "snapshot.1")
		write(t, path, b)
		znodes := 0
		walked := walk(path, replica.Visitor{Znode: func(*znode.Record, int64) error {
			znodes++
			return nil
		}})
		r, err := readSnapshot(path)
		if err != nil {
			return
		}
		if walked != nil {
			t.Fatalf("Walk = %v, and Read succeeds", walked)
		}
		if n := r.Tree.Size().Znodes; n < znodes || n > znodes+2 {
			t.Errorf("%d znodes in the tree, and Walk has shown %d", n, znodes)
		}
		if len(r.Unresolved()) > 0 {
			return
		}
		dir := t.TempDir()
		name, err := datadir.WriteSnapshot(dir, r)
		if err != nil {
			t.Fatal(err)
		}
		again, err := readSnapshot(name)
		if err != nil || !bytes.Equal(written(t, again), written(t, r)) {
			t.Errorf("written and read again: error %v, or another state", err)
		}
	})
}

func walk(path string, v replica.Visitor) error {
	s, err := datadir.OpenSnapshot(path)
	if err != nil {
		return err
	}
	defer s.Close()
	return s.Walk(v)
}

// Reading a log ends, and its entries lie one behind the other.
func FuzzLog(f *testing.F) {
	for _, origin := range origins(f) {
		logs, _ := filepath.Glob(filepath.Join(origin, "version-2", "log.*"))
		for _, path := range logs {
			f.Add([]byte(content(f, path)))
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		path := filepath.Join(t.TempDir(), "log.1")
		write(t, path, b)
		l, err := datadir.OpenLog(path)
		if err != nil {
			return
		}
		defer l.Close()
		next := int64(16)
		for {
			e, err := l.Next()
			if err != nil {
				if _, again := l.Next(); again == nil || errors.Is(again, io.EOF) != errors.Is(err, io.EOF) {
					t.Errorf("after %v Next returns %v", err, again)
				}
				return
			}
			if e.Offset != next {
				t.Fatalf("an entry at byte %d, want %d", e.Offset, next)
			}
			next += int64(len(e.Raw)) + 13
		}
	})
}
