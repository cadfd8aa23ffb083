package zk

import (
	"net"
	"testing"
)

// When too much waits for all, those go who have taken nothing for the longest time, also if only one long message waits
// for each; who takes some stays.
func TestOutboxes_WhoTakesNothingGoes(t *testing.T) {
	var gone []net.Conn
	all := &shares{limit: 100, close: func(c net.Conn) { gone = append(gone, c) }}
	add := func(n int) *share {
		c, _ := net.Pipe()
		o := &share{conn: c}
		all.hold(o, n)
		return o
	}
	wantGone := func(want ...*share) {
		t.Helper()
		if len(gone) != len(want) {
			t.Fatalf("%d were cut off, want %d", len(gone), len(want))
		}
		for i, o := range want {
			if gone[i] != o.conn {
				t.Errorf("another one was cut off, want the one that holds %d", o.held)
			}
		}
		gone = nil
	}
	alone := add(1000) // one message may be larger than all may have
	wantGone()
	slow, deaf := add(40), add(40)
	wantGone(alone)
	all.took(slow)
	all.hold(alone, 0) // nothing any more
	last := add(30)
	wantGone(deaf)
	all.hold(slow, 35) // it has taken some
	more := add(50)
	wantGone(last)
	if n := all.sum(); n != 85 {
		t.Errorf("%d bytes wait, want 85", n)
	}
	for _, o := range []*share{slow, more} {
		all.hold(o, 0)
	}
	if n := all.sum(); n != 0 || all.closed.Load() != 3 {
		t.Errorf("%d bytes wait, and %d were cut off", n, all.closed.Load())
	}
}

// As many long replies as the bound has room for are made at a time, and always one; short ones always.
func TestOutboxes_LongRepliesAtATime(t *testing.T) {
	all := &replyRoom{limit: 10 << 20}
	const large = 6 << 20
	if !all.reserve(large) || all.reserve(large) || !all.reserve(longReply) {
		t.Error("want one long reply, no second one, and a short one")
	}
	all.release(large)
	all.release(longReply)
	if !all.reserve(100<<20) || all.reserve(large) {
		t.Error("want one reply that is longer than the bound, and no other")
	}
}
