package follow_test

import (
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/zk-lite/zk-lite/internal/follow"
	"github.com/zk-lite/zk-lite/internal/testkit/clock"
)

// parse takes any text but "bad".
func parse(text []byte) (string, error) {
	if string(text) == "bad" {
		return "", errors.New("it is bad")
	}
	return string(text), nil
}

// replace puts a file in the place of another one, as an operator should.
func replace(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

func TestFile_IsFollowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		path := filepath.Join(t.TempDir(), "users")
		replace(t, path, "one")
		f, err := follow.Open("list of users", path, parse, slog.New(slog.NewTextHandler(&log, nil)))
		if err != nil || f.Get() != "one" {
			t.Fatalf("the file is read as %q (%v), want one", f.Get(), err)
		}
		for _, x := range []struct {
			name   string
			change func()
			want   string
			logged string // "": nothing
		}{
			{"nothing", func() {}, "one", ""},
			{"another file", func() { replace(t, path, "two") }, "two", "the list of users has changed and is in use"},
			{"a bad file", func() { replace(t, path, "bad") }, "two", "it is bad"},
			{"still bad", func() {}, "two", ""},
			{"too large", func() { replace(t, path, strings.Repeat("x", follow.MaxBytes+1)) }, "two", "larger than"},
			{"no file", func() { os.Remove(path) }, "two", "no such file"},
			{"still none", func() {}, "two", ""},
			{"a file again", func() { replace(t, path, "three") }, "three", "is in use"},
		} {
			log.Reset()
			before := f.Get()
			x.change()
			clock.Sleep(follow.LookEvery - 1)
			if got := f.Get(); got != before {
				t.Errorf("%s: %q before it was time to look", x.name, got)
			}
			clock.Sleep(1)
			if got := f.Get(); got != x.want {
				t.Errorf("%s: %.10q, want %q", x.name, got, x.want)
			}
			if got := log.String(); !strings.Contains(got, x.logged) || x.logged == "" && got != "" {
				t.Errorf("%s: logged %q, want %q", x.name, got, x.logged)
			}
		}
	})
}

func TestOpen_Errors(t *testing.T) {
	dir := t.TempDir()
	replace(t, dir+"/bad", "bad")
	quiet := slog.New(slog.NewTextHandler(io.Discard, nil))
	for name, want := range map[string]string{"bad": "/bad: it is bad", "none": "no such file"} {
		if _, err := follow.Open("file", filepath.Join(dir, name), parse, quiet); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
	}
}
