package appendrpc

import (
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"

	"github.com/zk-lite/zk-lite/internal/testkit/clock"
)

// Raft puts up to 64 entries into a request, however long they are. With long ones that made a request that no server
// reads, or that took longer than any request may: a server that was behind stayed behind.
func TestRegression_Fit_LongEntriesGoOneByOne(t *testing.T) {
	const long = maxEntries - entryHead
	for name, x := range map[string]struct {
		lengths []int
		want    int
	}{
		"none":             {nil, 0},
		"many short":       {make([]int, 64), 64},
		"one":              {[]int{long}, 1},
		"one, and another": {[]int{long, 0}, 1},
		"one too long":     {[]int{2 * long, 0}, 1},
		"the last":         {[]int{1, long / 2, long / 2, 1}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			req := &raft.AppendEntriesRequest{}
			for _, n := range x.lengths {
				req.Entries = append(req.Entries, &raft.Log{Data: make([]byte, n)})
			}
			if Fit(req); len(req.Entries) != x.want {
				t.Errorf("%d entries, want %d", len(req.Entries), x.want)
			}
		})
	}
}

// A server that takes a long request slowly, but takes it, was given up after the time of a short one, each time.
func TestRegression_Client_LongRequestsMayTakeLonger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		here, there := net.Pipe()
		cl := NewClient(func(raft.ServerAddress) (net.Conn, error) { return here, nil }, 5*time.Second)
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			step := make([]byte, bufferSize)
			for _, err := there.Read(step); err == nil; _, err = there.Read(step) {
				clock.Sleep(time.Second / 100)
			}
		}()
		req := &raft.AppendEntriesRequest{Entries: []*raft.Log{{Data: make([]byte, 60<<20)}}}
		begun := time.Now()
		if err := cl.Notify("b", req); err != nil {
			t.Errorf("after %v: %v", time.Since(begun), err)
		}
		here.Close()
		<-ended
	})
}
