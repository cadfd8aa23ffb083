package zk

import (
	"net"
	"testing"
	"time"
)

// Over the limit of all, the clients are cut off that have taken nothing for the longest time, also if only one long
// message waits for each; one that takes some stays.
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
	all.hold(alone, 0) // nothing now
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

func TestThrottle_Bucket(t *testing.T) {
	now := time.Now()
	b := newThrottle(ConnectionThrottle{MaxTokens: 5, FillTime: 10 * time.Millisecond, FillCount: 2, New: 3, Renewed: 2})
	b.filled = now
	if !b.admit(now, false) || !b.admit(now, true) || b.admit(now, true) {
		t.Errorf("a bucket of five gave more, or less: %d are left", b.tokens)
	}
	if b.admit(now.Add(9*time.Millisecond), true) || !b.admit(now.Add(10*time.Millisecond), true) {
		t.Errorf("after the time of two tokens: %d", b.tokens)
	}
	if now = now.Add(1000 * time.Hour); !b.admit(now, false) || b.tokens != 2 {
		t.Errorf("after long: %d", b.tokens)
	}
	off := newThrottle(ConnectionThrottle{})
	for range 1000 {
		if !off.admit(now, false) {
			t.Fatal("without a bucket a session was refused")
		}
	}
}

// While the bucket is empty, the probability of a refusal rises; it falls when the bucket fills.
func TestThrottle_Chance(t *testing.T) {
	now := time.Now()
	b := newThrottle(ConnectionThrottle{MaxTokens: 2, FillTime: time.Hour, FillCount: 1, Freeze: time.Millisecond,
		DropIncrease: 0.4, Decrease: 0.5, DecreaseRatio: 0.5})
	draw := 0.999
	b.random = func() float64 { return draw }
	b.admit(now, false)
	b.admit(now, false)
	for _, want := range []float64{0.4, 0.8, 1, 1} {
		now = now.Add(2 * time.Millisecond)
		if b.admit(now, false) || b.chance != want {
			t.Errorf("empty: %v, want %v", b.chance, want)
		}
	}
	now = now.Add(2 * time.Hour)
	if !b.admit(now, false) || b.chance != 0.5 {
		t.Errorf("full again: %v", b.chance)
	}
	if draw = 0.4; b.admit(now, false) {
		t.Error("the unlucky one was let in")
	}
}
