package zk

import (
	"testing"
	"time"
)

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

// While the bucket is empty the chance to be refused rises, and it falls when the bucket fills.
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
