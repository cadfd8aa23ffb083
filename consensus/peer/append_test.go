package peer

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/hashicorp/raft"
)

// lines is a log that a test reads.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) { l.mu.Lock(); defer l.mu.Unlock(); return l.b.Write(p) }
func (l *lines) String() string              { l.mu.Lock(); defer l.mu.Unlock(); return l.b.String() }

// appendPair is a leader's transport and a follower's, without raft: the test answers.
func appendPair(t *testing.T) (f *fabric, leader, follower *Transport, log *lines) {
	t.Helper()
	f, log = newFabric(), &lines{}
	open := func(addr string, id uint64) *Transport {
		tr := NewTransport(TransportConfig{Mux: newTestMux(t, f, addr, id), LocalID: RaftID(id),
			Logger: slog.New(slog.NewTextHandler(log, nil))})
		t.Cleanup(func() { tr.Close() })
		return tr
	}
	return f, open("a", 1), open("b", 2), log
}

// What the other server's raft declines is an error of that request alone; a connection that ends is
// not used again.
func TestAppend_Call_ErrorsAndConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, a, b, _ := appendPair(t)
		call := func(answer raft.RPCResponse) (*raft.AppendEntriesResponse, error) {
			go func() {
				select {
				case rpc := <-b.Consumer():
					rpc.RespChan <- answer
				case <-b.done:
				}
			}()
			resp := &raft.AppendEntriesResponse{}
			return resp, a.appends.call("b", requests()["full"], resp)
		}
		yes := raft.RPCResponse{Response: &raft.AppendEntriesResponse{Term: 3, Success: true}}
		if resp, err := call(yes); err != nil || !resp.Success || resp.Term != 3 {
			t.Fatalf("%+v, %v", resp, err)
		}
		first := a.appends.idle["b"][0]
		no := raft.RPCResponse{Response: &raft.AppendEntriesResponse{Term: 3}, Error: errors.New("no room")}
		if resp, err := call(no); err == nil || err.Error() != "no room" || resp.Success {
			t.Fatalf("%+v, %v", resp, err)
		}
		if idle := a.appends.idle["b"]; len(idle) != 1 || idle[0] != first {
			t.Fatalf("after an error of raft's: %d connections, want the first one", len(idle))
		}
		f.drop("b")
		err := a.appends.call("b", requests()["full"], &raft.AppendEntriesResponse{})
		if err == nil || len(a.appends.idle["b"]) != 0 {
			t.Fatalf("on a connection that has ended: %v, %d kept", err, len(a.appends.idle["b"]))
		}
		if resp, err := call(yes); err != nil || !resp.Success {
			t.Fatalf("on a new connection: %+v, %v", resp, err)
		}
	})
}

// A notice gets no answer that a later request could take for its own, and stays before it.
func TestAppend_Tell_IsReadBeforeTheNextRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, a, b, _ := appendPair(t)
		var terms []uint64
		go func() {
			for {
				select {
				case rpc := <-b.Consumer():
					req := rpc.Command.(*raft.AppendEntriesRequest)
					terms = append(terms, req.Term)
					rpc.RespChan <- raft.RPCResponse{Response: &raft.AppendEntriesResponse{Term: req.Term}}
				case <-b.done:
					return
				}
			}
		}()
		for term := uint64(1); term < 20; term += 2 {
			if err := a.appends.tell("b", &raft.AppendEntriesRequest{Term: term}); err != nil {
				t.Fatal(err)
			}
			resp := &raft.AppendEntriesResponse{}
			err := a.appends.call("b", &raft.AppendEntriesRequest{Term: term + 1}, resp)
			if err != nil || resp.Term != term+1 {
				t.Fatalf("the answer is to term %d, want %d; %v", resp.Term, term+1, err)
			}
		}
		for i, term := range terms {
			if term != uint64(i+1) {
				t.Fatalf("they came as %v", terms)
			}
		}
		if n := len(a.appends.idle["b"]); n != 1 {
			t.Fatalf("%d connections, want one", n)
		}
	})
}

// A connection that carries something else is ended, with a warning that says why.
func TestAppend_Serve_Malformed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, a, _, log := appendPair(t)
		c, err := a.mux.dialMember(KindAppend, "b", DefaultTimeout)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Write([]byte("\xff\xff\xff\xff")); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Read(make([]byte, 1)); err == nil {
			t.Fatal("it was answered")
		}
		synctest.Wait()
		if s := log.String(); !strings.Contains(s, "level=WARN") || !strings.Contains(s, "4294967295 bytes announced") {
			t.Fatalf("the log: %s", s)
		}
	})
}
