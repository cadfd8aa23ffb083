package load

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/zk-lite/zk-lite/znode"
)

// TestWriter_Acknowledged_Versions: what is right after so many writes of unknown outcome, and what is not.
func TestWriter_Acknowledged_Versions(t *testing.T) {
	for _, c := range []struct {
		versions []znode.Version // 0: a write whose outcome is unknown
		wrong    int
		most     int64
	}{
		{[]znode.Version{5, 6, 7}, 0, 7},
		{[]znode.Version{5, 5}, 1, 5}, // lost
		{[]znode.Version{5, 7}, 1, 7}, // done twice
		{[]znode.Version{5, 0, 6}, 0, 6},
		{[]znode.Version{5, 0, 7}, 0, 7},
		{[]znode.Version{5, 0, 8}, 1, 8},
		{[]znode.Version{5, 0, 0, 8, 10}, 1, 10}, // the unknown ones are settled by the first answer
		{[]znode.Version{5, 4}, 1, 4},
		{[]znode.Version{5, 0}, 0, 6},
	} {
		w := &Writer{home: home{hosts: []string{"host"}}, path: "/w", version: -1}
		for _, v := range c.versions {
			if v == 0 {
				w.lost()
			} else {
				w.acknowledged(v)
			}
		}
		if r := w.Report(); len(r.Wrong) != c.wrong || r.Most != c.most {
			t.Errorf("%v: %+v; want %d wrong, at most %d", c.versions, r, c.wrong, c.most)
		}
	}
}

// TestWriter_Longest_SinceMark: a gap counts if it ends after the mark, wherever it began.
func TestWriter_Longest_SinceMark(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &Writer{home: home{hosts: []string{"one", "two"}}, path: "/w", version: -1}
		ack := func(v znode.Version, after time.Duration) {
			<-time.After(after)
			w.acknowledged(v)
		}
		ack(1, 0)
		ack(2, time.Hour)
		w.lost()
		<-time.After(time.Minute)
		w.Mark()
		begun := time.Now()
		ack(3, time.Second)
		ack(4, 2*time.Second)
		w.at = 1
		w.lost()
		r := w.Report()
		if r.Longest.Length() != time.Minute+time.Second || !r.Longest.From.Before(begun) ||
			r.Lost != "two" || r.Unknown != 2 || r.Acks != 4 {
			t.Errorf("%+v", r)
		}
	})
}
