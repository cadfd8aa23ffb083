package session_test

import (
	"encoding/hex"
	"testing"

	"github.com/zk-lite/zk-lite/session"
	"github.com/zk-lite/zk-lite/znode"
)

// The passwords are those of java.util.Random, printed by a Java program.
func TestCompatiblePassword(t *testing.T) {
	for id, want := range map[znode.SessionID]string{
		0x100: "d817ac50a246528ee5ae584f97165324", 0x1000abcdef0123: "9980ce721d009c82f0a1068e1d4f6dc3",
		-0x7f00000000000001: "20f62cb5648dc2d771471c8a2486a9ee", 1: "054cc74a37327db215e702e20c73f005",
	} {
		p := session.CompatiblePassword(id)
		if got := hex.EncodeToString(p[:]); got != want {
			t.Errorf("password of %v: %s, want %s", id, got, want)
		}
	}
}
