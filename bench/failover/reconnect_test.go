package main

import (
	"strings"
	"testing"

	"github.com/zk-lite/zk-lite/internal/testkit/tier"
)

// All of a few hundred clients come back to their sessions, with TLS and without.
func TestRun(t *testing.T) {
	tier.Seconds(t)
	var out strings.Builder
	if err := run(t.Context(), []string{"-sessions", "300", "-rounds", "1", "-dir", t.TempDir()}, &out); err != nil {
		t.Fatal(err)
	}
	if text := out.String(); strings.Count(text, "| 300 |") != 2 || !strings.Contains(text, "| zk-lite-tls |") {
		t.Error(text)
	}
	t.Log("\n" + out.String())
}
