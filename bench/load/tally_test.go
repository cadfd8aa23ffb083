package load

import (
	"errors"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"
)

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
