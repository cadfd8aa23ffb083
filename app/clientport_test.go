package app_test

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/internal/testkit/ports"
	"github.com/zk-lite/zk-lite/internal/testkit/tier"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
	"github.com/zk-lite/zk-lite/znode"
)

// warnings passes on the warnings of a log.
type warnings struct {
	slog.Handler
	out chan string
}

func (w warnings) Enabled(context.Context, slog.Level) bool { return true }

func (w warnings) Handle(_ context.Context, r slog.Record) error {
	if r.Level == slog.LevelWarn {
		text := r.Message
		r.Attrs(func(a slog.Attr) bool { text += " " + a.String(); return true })
		select {
		case w.out <- text:
		default:
		}
	}
	return nil
}

// moveClients changes a server's client address in /zookeeper/config by a reconfiguration, through another server.
func (s *served) moveClients(t *testing.T, i int, addr string) {
	t.Helper()
	peer := s.options[i].Settings.Servers[i].PeerAddress()
	_, port, _ := net.SplitHostPort(peer)
	x := &state.Reconfig{Version: -1, Servers: []state.PlannedServer{
		{ID: state.ServerID(i), Voter: true, Peer: peer + ":" + port, Client: addr},
	}}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	r, err := s.servers[(i+1)%3].Server().Do(ctx, &state.Command{
		Op: state.OpReconfig, Identities: []znode.ID{znode.SuperIDs}, Reconfig: x,
	})
	if err != nil || r.Code != znode.OK {
		t.Fatalf("reconfig: %v, %v, want OK", r.Code, err)
	}
	s.waitClients(t, i, addr)
}

// waitClients waits until /zookeeper/config, as the server itself has it, shows its client address.
func (s *served) waitClients(t *testing.T, i int, addr string) {
	t.Helper()
	wait.Until(t, fmt.Sprintf("server %d is shown at %s", i, addr), func() bool {
		return s.servers[i].Consensus().Ensemble().Members()[state.ServerID(i)].Client == addr
	})
}

// listens reports whether something listens.
func listens(addr string) bool {
	c, err := net.Dial("tcp", addr)
	if err == nil {
		c.Close()
	}
	return err == nil
}

// A server listened at the client port of a reconfiguration only after its restart, with another configuration:
// clients that followed /zookeeper/config met a closed port. It changes at once, for leaders and others, without
// touching connections; a port that is taken is tried until it is free, and clients find the former one meanwhile.
func TestRegression_Reconfig_AnotherClientPort(t *testing.T) {
	tier.Seconds(t)
	t.Parallel()
	s := newServed(t)
	warned := make(chan string, 100)
	s.options[0].Logger = slog.New(warnings{slog.DiscardHandler, warned})
	s.begin(t)
	former := s.client[0]
	conn, err := client.Connect(t.Context(), former)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	port := ports.Take(t, 3)
	at := func(i int) string { return fmt.Sprintf("%s:%d", host(i), port[i]) }

	blocker, err := net.Listen("tcp", at(0))
	if err != nil {
		t.Fatal(err)
	}
	defer blocker.Close()
	s.moveClients(t, 0, at(0))
	wait.Until(t, "a warning", func() bool {
		select {
		case text := <-warned:
			return strings.HasPrefix(text, "the client port of a reconfiguration cannot be opened") &&
				strings.Contains(text, "wanted="+at(0)) && strings.Contains(text, "serving="+former)
		default:
			return false
		}
	})
	if got := word(t, s.servers[0], "conf"); !strings.Contains(got, "clientPort="+former[strings.IndexByte(former, ':')+1:]) {
		t.Errorf("while the new port is taken: %s", got)
	}
	blocker.Close()
	wait.Until(t, "the new port is open, and the former one closed", func() bool {
		return listens(at(0)) && !listens(former) && s.servers[0].ClientAddr().String() == at(0)
	})
	if got := word(t, s.servers[0], "conf"); !strings.Contains(got, fmt.Sprintf("clientPort=%d\n", port[0])) {
		t.Errorf("at the new port: %s, want clientPort=%d", got, port[0])
	}
	if _, _, err := conn.Exists(t.Context(), "/"); err != nil {
		t.Errorf("a connection that was open before: %v", err)
	}
	for i := 1; i < 3; i++ { // of which one may lead
		s.moveClients(t, i, at(i))
		wait.Until(t, at(i)+" is open", func() bool { return listens(at(i)) && !listens(s.client[i]) })
	}

	// At the next start the server's own configuration counts, as for all that it publishes, whatever the log says.
	s.stop(t, 0)
	s.start(t, 0)
	s.serve(t)
	s.waitClients(t, 0, former)
	if !listens(former) || listens(at(0)) {
		t.Errorf("after a restart the former port is open: %t, the new one: %t; want true, false",
			listens(former), listens(at(0)))
	}
}
