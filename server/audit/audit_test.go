package audit

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/znode"
)

// sink is a file in memory, which can be held up or broken.
type sink struct {
	mu    sync.Mutex // protects the fields below; its holder delays the writer
	text  bytes.Buffer
	fault error
}

func (s *sink) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fault != nil {
		return 0, s.fault
	}
	return s.text.Write(b)
}

func (s *sink) Close() error { return nil }

// lines returns the lines written, without the times.
func (s *sink) lines() (all []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for line := range strings.Lines(s.text.String()) {
		_, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " INFO audit: ")
		all = append(all, rest)
	}
	return all
}

var ann = Client{Session: 0x1000, IP: "10.0.0.1", IDs: []znode.ID{
	{Scheme: "ip", ID: "10.0.0.1"}, {Scheme: "digest", ID: "ann:hash"}, {Scheme: "super"}, {Scheme: "x509", ID: "CN=ann"},
}}

// The fields and their order are those of ZooKeeper's AuditEvent, createLogEvent and AuditHelper.
func TestLog_LinesAreZooKeepers(t *testing.T) {
	out := &sink{}
	l := start(Config{Logger: slog.Default()}, out)
	const who = "session=0x1000\tuser=10.0.0.1,ann,CN=ann\tip=10.0.0.1\t"
	ok := &state.Result{Code: znode.OK}
	var want []string
	for _, x := range []struct {
		c    state.Command
		r    *state.Result
		line []string
	}{
		{state.Command{Op: state.OpCreate, Path: "/a-", Mode: 3}, &state.Result{Path: "/a-1"},
			[]string{"operation=create\tznode=/a-1\tznode_type=ephemeral_sequential\tresult=success"}},
		{state.Command{Op: state.OpCreate, Path: "/c", Kind: znode.CreateContainer}, &state.Result{Code: znode.ErrNodeExists},
			[]string{"operation=create\tznode=/c\tznode_type=container\tresult=failure\treason=NODEEXISTS"}},
		{state.Command{Op: state.OpDelete, Path: "/a\tb\nc"}, ok, []string{"operation=delete\tznode=/abc\tresult=success"}},
		{state.Command{Op: state.OpSetData, Path: "/a"}, &state.Result{Code: znode.ErrNoAuth},
			[]string{"operation=setData\tznode=/a\tresult=failure\treason=NOAUTH"}},
		{state.Command{Op: state.OpSetACL, Path: "/a", ACL: []znode.ACL{
			{Perms: 31, ID: znode.Anyone}, {Perms: 1, ID: znode.ID{Scheme: "digest", ID: "bob:secret"}}}}, ok,
			[]string{"operation=setAcl\tznode=/a\tacl=world:anyone:cdrwa,digest:bob:x:r\tresult=success"}},
		{state.Command{Op: state.OpMulti, Ops: []state.Command{
			{Op: state.OpCheck, Path: "/a"}, {Op: state.OpCreate, Path: "/s-", Mode: 2}, {Op: state.OpDelete, Path: "/d"}}},
			&state.Result{Multi: []state.OpResult{{}, {Path: "/s-7"}, {}}},
			[]string{"operation=create\tznode=/s-7\tznode_type=persistent_sequential\tresult=success",
				"operation=delete\tznode=/d\tresult=success"}},
		{state.Command{Op: state.OpMulti, Ops: []state.Command{{Op: state.OpDelete, Path: "/d"}}},
			&state.Result{Multi: []state.OpResult{{Code: znode.ErrNoNode}}},
			[]string{"operation=multiOperation\tresult=failure\treason=NONODE"}},
		{state.Command{Op: state.OpBranch, Branch: &state.Branch{Then: 1}, Ops: []state.Command{
			{Op: state.OpSetData, Path: "/not"}, {Op: state.OpSetData, Path: "/d"}, {Op: state.OpGet, Path: "/d"}}},
			&state.Result{Multi: []state.OpResult{{}, {}}}, []string{"operation=setData\tznode=/d\tresult=success"}},
		{state.Command{Op: state.OpBranch, Branch: &state.Branch{}}, &state.Result{Code: znode.ErrNoAuth, Path: "/a"},
			[]string{"operation=multiOperation\tznode=/a\tresult=failure\treason=NOAUTH"}},
		{state.Command{Op: state.OpSync}, ok, nil},
	} {
		l.Change(ann, &x.c, x.r)
		for _, line := range x.line {
			want = append(want, who+line)
		}
	}
	l.Note(Client{}, Event{User: "zk", Operation: "serverStart", Result: Success})
	want = append(want, "user=zk\toperation=serverStart\tresult=success")
	if err := errors.Join(l.Close(), l.Close()); err != nil {
		t.Fatal(err)
	}
	l.Note(ann, Event{Operation: "after the end"})
	if got := strings.Join(out.lines(), "\n"); got != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", got, strings.Join(want, "\n"))
	}
	if text := out.text.String(); strings.Contains(text, "secret") || strings.Contains(text, "hash") {
		t.Error("a hash is in the log")
	}
}

func TestLog_JSON(t *testing.T) {
	out := &sink{}
	l := start(Config{JSON: true, Logger: slog.Default()}, out)
	l.Change(ann, &state.Command{Op: state.OpDelete, Path: "/a\n"}, &state.Result{})
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	var got map[string]string
	if err := json.Unmarshal(out.text.Bytes(), &got); err != nil || got["time"] == "" || got["znode"] != "/a\n" ||
		got["session"] != "0x1000" || got["result"] != "success" {
		t.Errorf("event %v (%v), want a time, a success of session 0x1000 at /a: %s", got, err, out.text.String())
	}
}

// No one waits for a hanging disk, and nothing is lost silently.
func TestLog_NeverBlocks(t *testing.T) {
	out := &sink{fault: errors.New("no space left")}
	var log bytes.Buffer
	l := start(Config{Logger: slog.New(slog.NewTextHandler(&log, nil))}, out)
	out.mu.Lock()
	const n = queueLength + 1000
	for range n {
		l.Note(ann, Event{Operation: "x", Result: Failure})
	}
	if lost := l.LeftOut(); lost < 900 {
		t.Errorf("%d were left out", lost)
	}
	out.mu.Unlock()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if l.LeftOut() != n || strings.Count(log.String(), "\n") != 1 {
		t.Errorf("%d of %d were left out: %s", l.LeftOut(), n, log.String())
	}
	var none *Log
	none.Note(ann, Event{})
	none.Change(ann, &state.Command{Op: state.OpDelete}, &state.Result{})
	if none.LeftOut() != 0 || none.Close() != nil {
		t.Error("no log has lines")
	}
}

func TestOpen_RotatesAndKeepsToTheOwner(t *testing.T) {
	dir := t.TempDir()
	l := Open(Config{File: filepath.Join(dir, "audit.log"), MaxBytes: 1 << 20, Keep: 1, Logger: slog.Default()})
	long := strings.Repeat("x", 300<<10)
	for range 8 {
		l.Note(ann, Event{Operation: long, Result: Success})
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	files, err := os.ReadDir(dir)
	if err != nil || len(files) < 2 {
		t.Fatalf("files %v (%v), want at least 2", files, err)
	}
	for _, f := range files {
		if info, err := f.Info(); err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: mode %v (%v), want no rights for others", f.Name(), info.Mode(), err)
		}
	}
}
