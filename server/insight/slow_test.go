package insight_test

import (
	"bytes"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/consensus"
	"github.com/zk-lite/zk-lite/consensus/forward"
	"github.com/zk-lite/zk-lite/server/insight"
)

const ms = time.Millisecond

// leaderChanged is a server with the time of its last change of leader.
type leaderChanged time.Time

func (l leaderChanged) Status() consensus.Status {
	return consensus.Status{LeaderChanged: time.Time(l)}
}

func newLog(out io.Writer, changed time.Time) *insight.SlowLog {
	return insight.NewSlowLog(insight.SlowConfig{
		Threshold: 100 * ms, Logger: slog.New(slog.NewTextHandler(out, nil)), Server: leaderChanged(changed),
	})
}

// The stages of a request follow one another, no matter who leads, and add up to its time.
func TestOf(t *testing.T) {
	begin := time.Now()
	at := func(n int) time.Time { return begin.Add(time.Duration(n) * ms) }
	led := &forward.Times{Sent: at(10), Committed: at(100)}
	led.Lead(at(12), at(30), at(60))
	unsynced := &forward.Times{Sent: at(10), Committed: at(100)}
	unsynced.Lead(at(12), at(30), time.Time{})
	for _, c := range []struct {
		name  string
		times *forward.Times
		want  insight.Stages
	}{
		{"read", nil, insight.Stages{Queue: 120 * ms}},
		{"of another server", &forward.Times{Committed: at(100)}, insight.Stages{Queue: 120 * ms}},
		{"follower", &forward.Times{Sent: at(10), Committed: at(100)},
			insight.Stages{Queue: 10 * ms, Leader: 90 * ms, Apply: 20 * ms}},
		{"leader", led,
			insight.Stages{Queue: 10 * ms, Propose: 20 * ms, Disk: 30 * ms, Majority: 40 * ms, Apply: 20 * ms}},
		{"leader whose disk is the last", unsynced,
			insight.Stages{Queue: 10 * ms, Propose: 20 * ms, Disk: 70 * ms, Apply: 20 * ms}},
	} {
		got := insight.StagesOf(begin, c.times, at(120))
		if got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
		sum := time.Duration(0)
		for _, s := range got.List() {
			sum += s.Took
		}
		if sum != 120*ms {
			t.Errorf("%s: the stages take %v together", c.name, sum)
		}
	}
}

func TestRequest_Cause(t *testing.T) {
	for _, c := range []struct {
		want string
		r    insight.SlowRequest
	}{
		{"disk", insight.SlowRequest{Stages: insight.Stages{Disk: 60 * ms, Majority: 40 * ms}, ProcessorWait: 49 * ms}},
		{insight.CauseProcessor, insight.SlowRequest{Stages: insight.Stages{Disk: 100 * ms}, ProcessorWait: 50 * ms}},
		{"majority", insight.SlowRequest{Stages: insight.Stages{Disk: 40 * ms, Majority: 60 * ms}}},
		{"reply", insight.SlowRequest{Stages: insight.Stages{Reply: 100 * ms}, LeaderChanged: true}},
		{insight.CauseElection, insight.SlowRequest{Stages: insight.Stages{Queue: 100 * ms}, LeaderChanged: true}},
		{insight.CauseProcessor, insight.SlowRequest{Stages: insight.Stages{Queue: 100 * ms}, ProcessorWait: 25 * ms}},
		{"queue", insight.SlowRequest{Stages: insight.Stages{Queue: 100 * ms}, ProcessorWait: 24 * ms}},
	} {
		if c.r.Took = 100 * ms; c.r.Cause() != c.want {
			t.Errorf("%+v: %s, want %s", c.r.Stages, c.r.Cause(), c.want)
		}
	}
}

// It keeps a limited number, the newest, in pages. A kept path does not hold a frame.
func TestLog_Memory_IsBounded(t *testing.T) {
	l := newLog(io.Discard, time.Time{})
	for range 2500 {
		l.Add(insight.SlowRequest{At: time.Now(), Path: strings.Repeat("x", 1000)})
		l.AddEntry(insight.SlowEntry{Disk: 25 * ms})
		l.AddEntry(insight.SlowEntry{Disk: 24 * ms}) // not what made a request slow
	}
	want := uint64(2500)
	for before := uint64(0); ; {
		page := l.Requests(before, 300)
		for _, r := range page {
			if r.ID != want || len(r.Path) > 256 {
				t.Fatalf("%d with a path of %d bytes, want %d", r.ID, len(r.Path), want)
			}
			want--
		}
		if len(page) < 300 {
			break
		}
		before = page[299].ID
	}
	if want != 1500 {
		t.Errorf("those up to %d are gone, want 1500", want)
	}
	if e := l.Entries(0, 9999); len(e) != 1000 || e[0].ID != 2500 {
		t.Errorf("%d entries, the newest is %+v", len(e), e[0])
	}
	if n := l.Count(); n != 2500 {
		t.Errorf("%d were counted", n)
	}
}

// Each is logged once, with its stages; too many are not.
func TestLog_Report(t *testing.T) {
	var out bytes.Buffer
	changed := time.Now()
	l := newLog(&out, changed)
	l.Add(insight.SlowRequest{
		At: changed.Add(-time.Second), Port: insight.PortHTTP, Operation: "PUT /v1/x", Trace: "00-aa-bb-01", Index: 7,
		Took: 200 * ms, Stages: insight.Stages{Queue: 150 * ms, Apply: 50 * ms},
	})
	l.Report(0)
	l.Report(0)
	line := out.String()
	for _, want := range []string{
		"slow request", "took=200ms", "cause=election", "queue=150ms", "apply=50ms", "index=7", "traceparent=00-aa-bb-01",
	} {
		if strings.Count(line, want) != 1 {
			t.Errorf("%s is there %d times in\n%s", want, strings.Count(line, want), line)
		}
	}
	for range 100 {
		l.Add(insight.SlowRequest{At: changed})
	}
	l.Report(0)
	if n := strings.Count(out.String(), "\n"); n != 20 {
		t.Errorf("%d lines", n)
	}
}

// A wait for the processor is found for a request of its time, and for no other.
func TestLog_ProcessorWait(t *testing.T) {
	l := newLog(io.Discard, time.Time{})
	l.Report(0)
	begin := time.Now()
	l.Report(10 * time.Second) // the caller slept for too long
	l.Add(insight.SlowRequest{At: begin, Took: time.Second})
	l.Add(insight.SlowRequest{At: begin.Add(time.Hour), Took: time.Second})
	late := l.Requests(0, 2)
	if late[1].ProcessorWait < 10*time.Second || late[0].ProcessorWait >= 10*time.Second {
		t.Errorf("%v during the wait, %v later", late[1].ProcessorWait, late[0].ProcessorWait)
	}
}

func TestLog_Nil_TakesNothing(t *testing.T) {
	var l *insight.SlowLog
	if l.Slow(time.Hour) || l.Threshold() != 0 {
		t.Error("it does")
	}
}
