package follow_test

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zk-lite/zk-lite/internal/follow"
	"github.com/zk-lite/zk-lite/internal/testkit/clock"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
)

// A file of tokens, or a JAAS file, that could not be used once was not read again until its next change, although the
// obstacle had gone: its owner, a label, a keytab that it names, the server's descriptors.
func TestRegression_Follow_WhatFailedIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		var wrong error
		path := filepath.Join(t.TempDir(), "jaas")
		replace(t, path, "one")
		f, err := follow.Open("file", path, func(text []byte) (string, error) { return string(text), wrong },
			slog.New(slog.NewTextHandler(&log, nil)))
		if err != nil {
			t.Fatal(err)
		}
		replace(t, path, "two")
		for _, x := range []struct {
			wrong error
			want  string
			lines int // in the log, as of now
		}{
			{errors.New("permission denied"), "one", 1}, {errors.New("permission denied"), "one", 1},
			{errors.New("no keytab"), "one", 2}, {nil, "two", 3}, {errors.New("is not read"), "two", 3},
		} {
			wrong = x.wrong
			clock.Sleep(follow.LookEvery)
			if got := f.Get(); got != x.want || strings.Count(log.String(), "\n") != x.lines {
				t.Errorf("with %v: %q, want %q, after\n%s", x.wrong, got, x.want, log.String())
			}
		}
	})
}

// A change of a file's owner, mode or label changes nothing but its ctime.
func TestRegression_Stamp_SeesAnotherMode(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	replace(t, path, "one")
	at := time.Now().Add(-time.Hour)
	if err := os.Chtimes(path, at, at); err != nil {
		t.Fatal(err)
	}
	before := follow.StampOf(path)
	if !before.Equal(follow.StampOf(path)) {
		t.Error("a file that nobody touches changes")
	}
	wait.Until(t, "a clock of the file system that has gone on", func() bool {
		if err := os.Chmod(path, 0o640); err != nil {
			t.Fatal(err)
		}
		return !before.Equal(follow.StampOf(path))
	})
}
