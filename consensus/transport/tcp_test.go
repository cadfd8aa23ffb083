package transport

import (
	"context"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/zk-lite/zk-lite/consensus/transport/mux"
)

// tcpServer is a server on real TCP. Its log store is the simulated disk, with syncs of no time.
type tcpServer struct {
	mux   *mux.Mux
	t     *Transport
	r     *raft.Raft
	store *diskView
	fsm   *machine
}

func (s *tcpServer) kill() {
	if s.r == nil {
		return
	}
	stopped := s.r.Shutdown()
	s.mux.Close()
	stopped.Error()
	s.store.close()
	s.r = nil
}

// raftsTimeout is that of raft's own timers on real TCP: too long for them to cause anything, also on a machine that
// stands still for seconds. What does not wait for them takes less than half of it.
const raftsTimeout = time.Minute

// Goal: what virtual time and pipes show holds over real sockets: the kernel's refusal is
// recognised, the push is fast, a dead leader is replaced long before raft's timeout.
func TestTransport_TCP_PushAndFailover(t *testing.T) {
	servers := startTCP(t)
	l := awaitTCPLeader(t, servers, nil)
	var worst time.Duration
	for i := range 20 {
		data := fmt.Sprint("w", i)
		var seen []<-chan struct{}
		for _, s := range servers {
			if s != l {
				seen = append(seen, s.fsm.expect(data))
			}
		}
		start := time.Now()
		if err := l.r.Apply([]byte(data), 0).Error(); err != nil {
			t.Fatal(err)
		}
		for _, ch := range seen {
			<-ch
		}
		worst = max(worst, time.Since(start))
	}
	if worst > raftsTimeout/2 {
		t.Fatalf("all servers applied after %v at worst, CommitTimeout is %v", worst, raftsTimeout)
	}
	start := time.Now()
	l.kill()
	next := awaitTCPLeader(t, servers, l)
	if err := next.r.Apply([]byte("after"), 0).Error(); err != nil {
		t.Fatal(err)
	}
	took := time.Since(start)
	t.Logf("a write applied everywhere after %v at worst; first commit %v after the kill", worst, took)
	if took > raftsTimeout/2 {
		t.Fatalf("first commit %v after the leader died, the election timeout is %v", took, raftsTimeout)
	}
}

// startTCP starts three servers, the first of which will lead.
func startTCP(t *testing.T) (servers []*tcpServer) {
	t.Helper()
	var cfg raft.Configuration
	for i := range 3 {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		s := &tcpServer{store: newDisk(uint64(i), nil).open()}
		s.mux = mux.New(mux.Config{Listener: ln, Dial: func(
			ctx context.Context, addr string,
		) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", addr)
		}})
		s.mux.SetIdentity(testEnsemble, uint64(i+1))
		s.t = New(Config{
			Mux: s.mux, LocalID: RaftID(uint64(i + 1)), Log: s.store,
		})
		s.fsm = &machine{t: s.t, store: s.store}
		servers = append(servers, s)
		cfg.Servers = append(cfg.Servers, raft.Server{
			ID: RaftID(uint64(i + 1)), Address: rafts(s.mux.Addr().String()),
		})
	}
	for i, s := range servers {
		c := testConfig(uint64(i + 1))
		c.HeartbeatTimeout, c.ElectionTimeout = raftsTimeout, raftsTimeout
		c.LeaderLeaseTimeout, c.CommitTimeout = raftsTimeout, raftsTimeout
		if err := raft.BootstrapCluster(c, s.store, s.store, s.store, s.t, cfg); err != nil {
			t.Fatal(err)
		}
		r, err := raft.NewRaft(c, s.fsm, s.store, s.store, s.store, s.t)
		if err != nil {
			t.Fatal(err)
		}
		s.r = r
		s.t.Attach(r)
		t.Cleanup(s.kill)
	}
	first := cfg.Servers[0]
	request := raft.TimeoutNowRequest{RPCHeader: raft.RPCHeader{
		ProtocolVersion: raft.ProtocolVersionMax, ID: []byte(first.ID), Addr: []byte(first.Address),
	}}
	if err := servers[0].t.TimeoutNow(first.ID, first.Address, &request, new(raft.TimeoutNowResponse)); err != nil {
		t.Fatal(err)
	}
	return servers
}

func awaitTCPLeader(t *testing.T, servers []*tcpServer, not *tcpServer) *tcpServer {
	t.Helper()
	limit := time.After(2 * raftsTimeout)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		for _, s := range servers {
			if s != not && s.r != nil && s.r.State() == raft.Leader {
				return s
			}
		}
		select {
		case <-limit:
			t.Fatalf("no leader after %v", 2*raftsTimeout)
		case <-tick.C:
		}
	}
}
