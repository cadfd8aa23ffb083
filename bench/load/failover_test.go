package load

import (
	"errors"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"
)

// TestOutage_Answered_LongestSilence covers what counts: silences between two answers to any
// clients, after a kill only those that end later, and the one that the end of the run cuts
// off.
func TestOutage_Answered_LongestSilence(t *testing.T) {
	from := time.Unix(1_000_000, 0)
	ms := func(n int) time.Time { return from.Add(time.Duration(n) * time.Millisecond) }
	play := func(killAfter int, answers ...int) *Outage {
		o := &outage{rec: newRecorder(Mix{{Set, 1}}, from, ms(1000))}
		o.last.Store(-1)
		for _, at := range answers {
			if killAfter > 0 && at > killAfter && !o.hasKilled() {
				o.killedAt, o.longest, o.at = time.Duration(killAfter)*time.Millisecond, 0, 0
			}
			o.answered(ms(at))
		}
		return o.result(nil)
	}
	for _, c := range []struct {
		kill     int
		answers  []int
		long, at int
		open     bool
	}{
		{0, []int{10, 20, 320, 990, 999}, 670, 320, false},
		{0, []int{-500, 10, 20, 300, 600, 900, 999}, 300, 300, false}, // the warm-up does not count
		{500, []int{1, 450, 460, 560, 700, 999}, 299, 700, false},
		{500, []int{1, 450, 460, 760, 800, 999}, 300, 460, false},
		{500, []int{1, 450, 460}, 540, 460, true},
	} {
		got := play(c.kill, c.answers...)
		if got.Longest.Duration() != time.Duration(c.long)*time.Millisecond ||
			got.At != time.Duration(c.at)*time.Millisecond || got.Open != c.open {
			t.Errorf("%v, killed at %d: %v from %v, open %v; want %d ms from %d ms, %v", c.answers, c.kill,
				got.Longest, got.At, got.Open, c.long, c.at, c.open)
		}
	}
}

// TestTally_Acknowledged_Versions: what is right after so many writes of unknown outcome, and what is not.
func TestTally_Acknowledged_Versions(t *testing.T) {
	for _, c := range []struct {
		versions []int64 // 0: a write whose outcome is unknown
		wrong    int
		most     int64
		done     int
	}{
		{[]int64{5, 6, 7}, 0, 7, 0},
		{[]int64{5, 5}, 1, 5, 0}, // lost
		{[]int64{5, 7}, 1, 7, 0}, // done twice
		{[]int64{5, 0, 6}, 0, 6, 0},
		{[]int64{5, 0, 7}, 0, 7, 1},
		{[]int64{5, 0, 8}, 1, 8, 1},
		{[]int64{5, 0, 0, 8, 10}, 1, 10, 2}, // the unknown ones are settled by the first answer
		{[]int64{5, 4}, 1, 4, 0},
		{[]int64{5, 0}, 0, 6, 0},
	} {
		w := NewTally("/w")
		for i, v := range c.versions {
			switch {
			case v != 0:
				w.Acknowledged(v)
			case i%2 == 0:
				w.Failed(errors.New("refused"))
			default:
				w.Lost("host", false)
			}
		}
		if r := w.Report(); len(r.Wrong) != c.wrong || r.Most != c.most || r.Done != c.done {
			t.Errorf("%v: %+v; want %d wrong, at most %d, %d done", c.versions, r, c.wrong, c.most, c.done)
		}
	}
}

// TestTally_SinceMark: a gap counts if it ends after the mark, wherever it began.
func TestTally_SinceMark(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := NewTally("/w")
		ack := func(v int64, after time.Duration) {
			<-time.After(after)
			w.Acknowledged(v)
		}
		ack(1, 0)
		ack(2, time.Hour)
		w.Lost("one", true)
		w.Failed(errors.New("refused"))
		w.Expired()
		<-time.After(time.Minute)
		w.Mark()
		begun := time.Now()
		var times Histogram
		w.Measure(&times)
		w.SentAway()
		ack(3, time.Second)
		ack(4, 2*time.Second)
		w.Lost("two", true)
		w.Lost("three", false)
		r := w.Report()
		if r.Longest.Length() != time.Minute+time.Second || !r.Longest.From.Before(begun) || r.Acks != 4 ||
			r.First != "two" || r.Lost != 2 || r.Unread != 1 || len(r.Failed) != 0 || r.Expired != 0 || r.Sent != 1 {
			t.Errorf("%+v, want a gap of 61 s, 4 answers, 2 lost, 1 of them unread, 1 sent away", r)
		}
		var counts Counts
		if times.AddTo(&counts); counts.N() != 2 || counts.Max() != time.Minute+time.Second {
			t.Errorf("%d times, at most %v", counts.N(), counts.Max())
		}
	})
}

// TestUnread_WhatTheKernelSays: a server that closes without having read resets the connection, and one
// that has read everything does not.
func TestUnread_WhatTheKernelSays(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	for _, reads := range []int64{0, 4} {
		ours, err := net.Dial("tcp", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		theirs, err := listener.Accept()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(ours, "word"); err != nil {
			t.Fatal(err)
		}
		one := make([]byte, 4)
		if _, err := io.ReadFull(theirs, one[:reads]); err != nil {
			t.Fatal(err)
		}
		theirs.Close()
		_, err = ours.Read(one)
		if got := unread(ours, err); got != (reads == 0) {
			t.Errorf("%d bytes read: unread %v, %v", reads, got, err)
		}
		ours.Close()
	}
}
