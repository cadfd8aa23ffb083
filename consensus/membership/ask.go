package membership

import (
	"context"
	"fmt"
	"maps"
	"net"
	"slices"
	"sync"

	"github.com/zk-lite/zk-lite/consensus/peerkeys"
	"github.com/zk-lite/zk-lite/consensus/selfcheck"
	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/consensus/transport/mux"
)

// Asker asks servers how they are, for a program that has the files of one, and is none itself.
type Asker struct {
	Self     state.ServerID // whose files they are
	Ensemble [16]byte       // zero: they are of none
	Dial     func(ctx context.Context, addr string) (net.Conn, error)
	Keys     *peerkeys.Keys // nil: none
}

// Peer is what a server has said to an Asker.
type Peer struct {
	ID   state.ServerID
	Addr string // host:port of its peer port; empty: not known
	Err  error  // why there is no answer
	// Member says that it is a member of an ensemble, and Led that it has a leader, and so the ensemble a majority.
	Member, Led bool
}

// Ask asks servers at once, until ctx ends.
func (a *Asker) Ask(ctx context.Context, servers []Server) []Peer {
	addr := make(map[string]string, len(servers)) // by the name that mux gives a server
	for _, x := range servers {
		addr[AddressOf(x.ID)] = x.Addr
	}
	m := mux.New(mux.Config{
		Listener: mux.NoListener(), Advertise: AddressOf(a.Self),
		Dial:  func(ctx context.Context, name string) (net.Conn, error) { return a.Dial(ctx, addr[name]) },
		Guard: keysOnly{keys: a.Keys},
	})
	defer func() { _ = m.Close() }()
	if a.Ensemble != [16]byte{} {
		m.SetIdentity(a.Ensemble, uint64(a.Self))
	}
	peers := make([]Peer, len(servers))
	var asking sync.WaitGroup
	for i, x := range servers {
		asking.Go(func() {
			peers[i] = Peer{ID: x.ID, Addr: x.Addr}
			peers[i].ask(ctx, &control{a.Self, m, a.Keys})
		})
	}
	asking.Wait()
	return peers
}

// keysOnly has a server that is asked show its key.
type keysOnly struct {
	mux.Credulous
	keys *peerkeys.Keys
}

// Secure implements mux.Guard.
func (g keysOnly) Secure(ctx context.Context, c net.Conn, _ mux.Kind, name string) (net.Conn, error) {
	return g.keys.Client(ctx, c, ServerOf(name), true)
}

// ask fills in the answer. A server that refuses the key is a member that says no more.
func (p *Peer) ask(ctx context.Context, c *control) {
	reply, err := c.Ask(ctx, p.ID, Request{Op: RequestWho})
	switch {
	case reply.Refused(err):
		p.Member = true
	case err != nil:
		p.Err = fmt.Errorf("asking server %d: %w", p.ID, err)
	default:
		p.Member, p.Led = reply.Ensemble != "", reply.Led
	}
}

// AskChecks asks the other servers what they have applied, as of indexes of the log, and returns the answers that
// come within an election timeout.
func (e *Ensemble) AskChecks(at []uint64) map[state.ServerID]*selfcheck.Answer {
	answers := map[state.ServerID]*selfcheck.Answer{}
	for id, reply := range e.askOthers(Request{Op: controlCheck, At: at}) {
		if reply.Check != nil {
			answers[id] = reply.Check
		}
	}
	return answers
}

// askOthers asks all servers of which this one knows at once, for an election timeout at most, and returns the
// answers.
func (e *Ensemble) askOthers(req Request) map[state.ServerID]Reply {
	ctx, cancel := context.WithTimeout(e.cfg.Context, e.cfg.ElectionTimeout)
	defer cancel()
	others := map[state.ServerID]bool{}
	maps.Copy(others, e.configured())
	for _, s := range e.cfg.Servers {
		others[s.ID] = true
	}
	delete(others, e.cfg.Self)
	var mu sync.Mutex // protects replies
	replies := map[state.ServerID]Reply{}
	var asking sync.WaitGroup
	for id := range others {
		asking.Go(func() {
			reply, err := e.Ask(ctx, id, req)
			if err != nil {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			replies[id] = reply
		})
	}
	asking.Wait()
	return replies
}

// called is the host by which this server finds another one; empty: it is not known here.
func (e *Ensemble) called(id state.ServerID) string {
	at := e.cfg.Applied.Members()[id].Addr
	for _, s := range e.cfg.Servers {
		if s.ID == id && at == "" {
			at = s.Addr
		}
	}
	host, _, _ := net.SplitHostPort(at) // or empty
	return host
}

// AskName asks the others for a host by which they find this server, and that is good; empty: none has said one. all
// reports that all servers of the configuration have answered.
func (e *Ensemble) AskName(good func(host string) bool) (host string, all bool) {
	replies := e.askOthers(Request{Op: RequestWho})
	for _, id := range slices.Sorted(maps.Keys(replies)) {
		if name := replies[id].Called; good(name) {
			return name, true
		}
	}
	for _, s := range e.cfg.Servers {
		if _, ok := replies[s.ID]; !ok && s.ID != e.cfg.Self {
			return "", false
		}
	}
	return "", true
}
