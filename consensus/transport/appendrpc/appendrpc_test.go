package appendrpc

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"

	"github.com/zk-lite/zk-lite/internal/testkit/pipenet"
)

// pair is a leader's client and a follower that serves its connections, without raft: the test answers.
type pair struct {
	*Client
	f     *pipenet.Network
	rpcs  chan raft.RPC
	done  chan struct{}
	ended chan error // how the connections ended
}

func newPair(t *testing.T) *pair {
	t.Helper()
	p := &pair{
		f: pipenet.New(), rpcs: make(chan raft.RPC), done: make(chan struct{}), ended: make(chan error, 10),
	}
	dial := p.f.Dialer("a")
	p.Client = NewClient(func(target raft.ServerAddress) (net.Conn, error) {
		return dial(context.Background(), string(target))
	}, 5*time.Second)
	l := p.f.Listen("b")
	t.Cleanup(func() {
		close(p.done)
		l.Close()
		p.f.Drop("b")
	})
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				p.ended <- Serve(c, func(rpc raft.RPC) { p.rpcs <- rpc }, func() {}, p.done)
			}()
		}
	}()
	return p
}

// An error of the other server's raft is an error of that request alone; a connection that ended is
// not used again.
func TestClient_Call_ErrorsAndConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t)
		call := func(answer raft.RPCResponse) (*raft.AppendEntriesResponse, error) {
			go func() {
				select {
				case rpc := <-p.rpcs:
					rpc.RespChan <- answer
				case <-p.done:
				}
			}()
			resp := &raft.AppendEntriesResponse{}
			return resp, p.Call("b", requests()["full"], resp)
		}
		yes := raft.RPCResponse{Response: &raft.AppendEntriesResponse{Term: 3, Success: true}}
		if resp, err := call(yes); err != nil || !resp.Success || resp.Term != 3 {
			t.Fatalf("%+v, %v", resp, err)
		}
		first := p.idle["b"][0]
		no := raft.RPCResponse{Response: &raft.AppendEntriesResponse{Term: 3}, Error: errors.New("no room")}
		if resp, err := call(no); err == nil || err.Error() != "no room" || resp.Success {
			t.Fatalf("%+v, %v", resp, err)
		}
		if idle := p.idle["b"]; len(idle) != 1 || idle[0] != first {
			t.Fatalf("after an error of raft's: %d connections, want the first one", len(idle))
		}
		p.f.Drop("b")
		err := p.Call("b", requests()["full"], &raft.AppendEntriesResponse{})
		if err == nil || len(p.idle["b"]) != 0 {
			t.Fatalf("on a connection that has ended: %v, %d kept", err, len(p.idle["b"]))
		}
		if resp, err := call(yes); err != nil || !resp.Success {
			t.Fatalf("on a new connection: %+v, %v", resp, err)
		}
	})
}

// A notice gets no answer that a later request could take for its own, and stays before it.
func TestClient_Notify_IsReadBeforeTheNextRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t)
		var terms []uint64
		go func() {
			for {
				select {
				case rpc := <-p.rpcs:
					req := rpc.Command.(*raft.AppendEntriesRequest)
					terms = append(terms, req.Term)
					rpc.RespChan <- raft.RPCResponse{Response: &raft.AppendEntriesResponse{Term: req.Term}}
				case <-p.done:
					return
				}
			}
		}()
		for term := uint64(1); term < 20; term += 2 {
			if err := p.Notify("b", &raft.AppendEntriesRequest{Term: term}); err != nil {
				t.Fatal(err)
			}
			resp := &raft.AppendEntriesResponse{}
			err := p.Call("b", &raft.AppendEntriesRequest{Term: term + 1}, resp)
			if err != nil || resp.Term != term+1 {
				t.Fatalf("the answer is to term %d, want %d; %v", resp.Term, term+1, err)
			}
		}
		for i, term := range terms {
			if term != uint64(i+1) {
				t.Fatalf("they came as %v", terms)
			}
		}
		if n := len(p.idle["b"]); n != 1 {
			t.Fatalf("%d connections, want one", n)
		}
	})
}

// A connection that carries something else is ended, with an error that says why.
func TestServe_Malformed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t)
		c, err := p.dial("b")
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := c.Write([]byte("\xff\xff\xff\xff")); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Read(make([]byte, 1)); err == nil {
			t.Fatal("it was answered")
		}
		if err := <-p.ended; !errors.Is(err, ErrMalformed) || !strings.Contains(err.Error(), "4294967295 bytes announced") {
			t.Fatalf("it ended with %v", err)
		}
	})
}
