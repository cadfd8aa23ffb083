package main

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/bench/failover"
	"github.com/zk-lite/zk-lite/bench/system"
	"github.com/zk-lite/zk-lite/internal/testkit/tier"
)

func TestPicked_WhatIsWrongIsNamed(t *testing.T) {
	for _, c := range []struct {
		args string
		want string // of the error; "": none
	}{
		{"-rows set-64,nothing", "set-1, set-64"},
		{"-rows put-1", "is unknown"}, // of another suite
		{"-suite http,growth -rows put-1,tree", ""},
		{"-suite everything", "servers, http, ycsb, clients, growth, failover, reconnect, overload"},
		{"-systems zk", "ZooKeeper, etcd, noop, zk-lite"},
		{"-sync 5ms/tail -suite growth", ""},
		{"-sync 5", "5ms"},
		{"-rounds 0", "from 1"},
		{"-share 0", "-share"},
		{"-suite ycsb -rows ycsb-a,ycsb-d-most", ""},
		{"-rounds x", "-rounds"},
		{"-duration 0s", "above 0"},
		{"-binary base=x -binary zk-lite=x", "NAME=PATH"},
		{"-binary base=x -binary base", "NAME=PATH"},
		{"-binary base=x -binary base=", "NAME=PATH"},
		{"-binary base=/bin/zk-lite -systems base", ""},
		{"-suite failover -extra-setting raft.electionTimeout", "KEY=VALUE"},
		{"-suite failover kill", "only flags"},
	} {
		_, _, err := picked(strings.Fields(c.args))
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want an error with %q", c.args, err, c.want)
		}
	}
}

// TestPicked_Defaults: a flag wins over -short, and -short over the suite's own.
func TestPicked_Defaults(t *testing.T) {
	_, each, err := picked(strings.Fields("-short -rounds 7 -jit-warm-up 0s -suite servers,reconnect -sync 5ms/tail"))
	if err != nil || len(each) != 2 {
		t.Fatalf("%d suites, %v, want 2", len(each), err)
	}
	if o := each[0]; o.Rounds != 7 || o.Duration != 3*time.Second || o.WarmUp != 700*time.Millisecond || o.JIT != 0 ||
		o.Znodes != 1_000_000 || len(o.Sync) != 1 || !o.Sync[0].Tail {
		t.Errorf("servers: %+v, want 7 rounds of 3 s after 700 ms and no warm-up, with slow syncs", o.Options)
	}
	if o := each[1]; o.Rounds != 7 || o.Sessions != 10_000 || o.SessionTimeout != 30*time.Second {
		t.Errorf("reconnect: %+v, want 7 rounds with 10,000 sessions of 30 s", o.Options)
	}
}

// TestRun_Reconnect: all of a few hundred clients come back to their sessions, with TLS and without.
func TestRun_Reconnect(t *testing.T) {
	tier.Seconds(t)
	file := t.TempDir() + "/results.md"
	err := run(t.Context(), []string{"-suite", failover.Returns, "-sessions", "300", "-rounds", "1", "-dir", t.TempDir(),
		"-out", file})
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	text := string(content)
	if strings.Count(text, "| 300 |") != 2 || !strings.Contains(text, "| "+system.AllTLS+" |") {
		t.Errorf("want two rows with 300 sessions, one of them of %s, in:\n%s", system.AllTLS, text)
	}
}
