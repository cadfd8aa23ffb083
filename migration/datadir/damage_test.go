package datadir_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zk-lite/zk-lite/migration/datadir"
	"github.com/zk-lite/zk-lite/migration/replica"
)

// A changed byte of a snapshot is an error that names the file, unless it changes nothing: two copies in a compressed
// stream can stand for the same bytes.
func TestSnapshot_Damage(t *testing.T) {
	for _, version := range []string{"3.4.14", "3.6.4", "3.9.5"} { // plain, gzip, snappy
		path := newestSnapshot(t, filepath.Join("testdata", "origin", version))
		good := []byte(content(t, path))
		want, err := readSnapshot(path)
		if err != nil {
			t.Fatal(err)
		}
		damaged := filepath.Join(t.TempDir(), filepath.Base(path))
		write(t, damaged, good)
		for i := range good {
			put(t, damaged, i, good[i]^1<<(i%8))
			switch r, err := readSnapshot(damaged); {
			case err == nil && !bytes.Equal(written(t, r), written(t, want)):
				t.Errorf("%s with byte %d changed is read as another state", path, i)
			case err == nil && version == "3.4.14" && (i < 8 || i >= 16):
				t.Errorf("%s with byte %d changed is read without an error", path, i)
			case err != nil && !strings.Contains(err.Error(), damaged):
				t.Errorf("byte %d of %s: %v; want an error with the file's name", i, path, err)
			}
			put(t, damaged, i, good[i])
		}
		for i := len(good) - 1; i >= 0; i-- {
			truncate(t, damaged, int64(i))
			if _, err := readSnapshot(damaged); err == nil {
				t.Errorf("%s cut at byte %d is read without an error", path, i)
			}
		}
	}
}

// put changes a byte of a file in its place. Writing the whole file again takes the file system milliseconds.
func put(t *testing.T, path string, at int, b byte) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt([]byte{b}, int64(at)); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

func readSnapshot(path string) (*replica.Replica, error) {
	s, err := datadir.OpenSnapshot(path)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	return s.Read()
}

// Every changed byte of a log is an error, or shows: fewer transactions, and then the log is torn.
func TestLog_Damage(t *testing.T) {
	for _, version := range []string{"3.4.14", "3.9.5"} {
		logs, _ := filepath.Glob(filepath.Join("testdata", "origin", version, "version-2", "log.*"))
		for _, path := range logs {
			good := []byte(content(t, path))
			want := entries(t, path)
			last := want[len(want)-1]
			end := last.Offset + int64(len(last.Raw)) + 13
			damaged := filepath.Join(t.TempDir(), filepath.Base(path))
			write(t, damaged, good)
			for i := range good {
				put(t, damaged, i, good[i]^0x10)
				n, torn, err := count(damaged)
				var damage *datadir.DamageError
				switch {
				case err != nil && (!errors.As(err, &damage) || damage.File != damaged):
					t.Errorf("byte %d of %s: %v; want a DamageError", i, path, err)
				case err == nil && n == len(want) && int64(i) < end && i >= 16:
					t.Errorf("byte %d of %s: no error, and nothing is missing", i, path)
				case err == nil && n < len(want)-1:
					t.Errorf("byte %d of %s: no error, and %d transactions instead of %d", i, path, n, len(want))
				case err == nil && n == len(want)-1 && torn == nil:
					t.Errorf("byte %d of %s: the last transaction is lost silently", i, path)
				}
				put(t, damaged, i, good[i])
			}
		}
	}
}

// count counts the entries of a log.
func count(path string) (n int, torn *datadir.Torn, err error) {
	l, err := datadir.OpenLog(path)
	if err != nil {
		return 0, nil, err
	}
	defer l.Close()
	for ; ; n++ {
		if _, err := l.Next(); errors.Is(err, io.EOF) {
			return n, l.Torn(), nil
		} else if err != nil {
			return n, nil, err
		}
	}
}

// What is no snapshot or no log is refused by what it is.
func TestOpen_WrongFiles(t *testing.T) {
	origin := filepath.Join("testdata", "origin", "3.4.14")
	snapshot := newestSnapshot(t, origin)
	logs, _ := filepath.Glob(filepath.Join(origin, "version-2", "log.*"))
	other := filepath.Join(t.TempDir(), "snapshot.1")
	b := []byte(content(t, snapshot))
	b[7] = 3
	write(t, other, b)
	for _, c := range []struct {
		open func() error
		want string
	}{
		{func() error { _, err := datadir.OpenSnapshot(logs[0]); return err }, "it is a log and not a snapshot"},
		{func() error { _, err := datadir.OpenLog(snapshot); return err }, "it is a snapshot and not a log"},
		{func() error { _, err := datadir.OpenSnapshot(other); return err }, "version 3 of the format; want 2"},
		{func() error { _, err := datadir.OpenLog(os.Args[0]); return err }, `want "ZKLG"`},
	} {
		if err := c.open(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got the error %v, want one with %q", err, c.want)
		}
	}
}
