package main

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/zklitetest"
)

// untilText is a buffer that calls then once it ends with text.
type untilText struct {
	bytes.Buffer
	text string
	then func()
}

func (b *untilText) Write(p []byte) (int, error) {
	n, err := b.Buffer.Write(p)
	if strings.HasSuffix(b.String(), b.text) {
		b.then()
	}
	return n, err
}

// watch --values prints what happened since a zxid: the author, the values, and those that were replaced.
func TestWatch_Values(t *testing.T) {
	e := zklitetest.Start(t)
	c, err := client.Connect(t.Context(), e.ConnectString(), client.WithAuth("digest", []byte("ann:secret")))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, stat, err := c.Create(t.Context(), "/app", []byte("one"), client.Persistent)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Set(t.Context(), "/app", []byte("two"), 0); err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) (string, error) {
		root := rootCommand()
		var out bytes.Buffer
		root.SetOut(&out)
		root.SetArgs(append([]string{"watch", "--values", "--server", e.ConnectString()}, args...))
		err := root.ExecuteContext(context.WithoutCancel(t.Context()))
		return out.String(), err
	}
	since := (stat.Czxid - 1).String()
	text, err := run("--before", "--since", since, "--count", "2", "/")
	for _, want := range []string{" by digest:ann:x\n", "\n  created /app \"one\"\n", "\n  changed /app \"two\", before \"one\"\n"} {
		if err != nil || !strings.Contains(text, want) {
			t.Errorf("watch --values printed %q, error %v; want %q in it", text, err, want)
		}
	}
	text, err = run("--since", since, "--events", "changed", "--types", "persistent,ttl", "--count", "1", "-o", "json", "/app")
	var v struct {
		Author  []string
		Changes []struct{ Event, Path, Type, Data string }
	}
	if err != nil || json.Unmarshal([]byte(text), &v) != nil || len(v.Changes) != 1 || v.Changes[0].Event != "changed" ||
		v.Changes[0].Data != "two" || v.Changes[0].Type != "persistent" {
		t.Errorf("watch --values -o json printed %s, error %v; want the change to two", text, err)
	}
	text, err = run("--list", "--since", since, "/app")
	if err == nil || !strings.Contains(err.Error(), "--list") {
		t.Errorf("--list with --since prints %q, error %v; want one that names the flags", text, err)
	}
	lists := func(args ...string) string {
		t.Helper()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		root := rootCommand()
		out := &untilText{text: "znodes\n", then: func() { _, _ = c.Set(ctx, "/app", []byte("three"), -1) }}
		root.SetOut(out)
		root.SetArgs(append([]string{"watch", "--values", "--list", "--count", "1", "--server", e.ConnectString()}, args...))
		if err := root.ExecuteContext(ctx); err != nil {
			t.Fatalf("watch --list printed %q, error %v, want none", out.String(), err)
		}
		return out.String()
	}
	text = lists("/app")
	if !strings.Contains(text, "  listed /app \"two\"\n0x") || !strings.Contains(text, " 1 znodes\n0x") ||
		!strings.HasSuffix(text, "\n  changed /app \"three\"\n") {
		t.Errorf("watch --list printed %q, want the old value and the change", text)
	}
	for flag, value := range map[string]string{"--since": "now", "--events": "moved", "--types": "sequential"} {
		if _, err := run(flag, value, "/"); err == nil || !strings.Contains(err.Error(), flag) {
			t.Errorf("%s %s: error %v, want one that names the flag", flag, value, err)
		}
	}
}
