package membership

import (
	"context"
	"fmt"
	"maps"
	"net"
	"slices"
	"sync"
	"time"

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

// NoContact is a Contact of "never".
const NoContact = time.Duration(1<<63 - 1)

// Status is the ensemble as its leader sees it.
type Status struct {
	Leader       state.ServerID `json:"leader"`
	Term         uint64         `json:"term"`
	LastIndex    uint64         `json:"last"`    // in the leader's log
	AppliedIndex uint64         `json:"applied"` // by the leader
	Voters       int            `json:"voters"`
	Connected    int            `json:"connected"` // voters, with the leader
	// Members is every server of the configuration, the leader too.
	Members []MemberStatus `json:"members"`
	// Reconfiguring is what is being done of a reconfiguration; empty: there is none.
	Reconfiguring string `json:"reconfiguring,omitempty"`
}

// FailuresToleratedNow is how many of the voters that are connected may fail without the loss of
// the majority.
func (s *Status) FailuresToleratedNow() int { return max(s.Connected-(s.Voters/2+1), 0) }

// MemberStatus is a server as the leader sees it.
type MemberStatus struct {
	ID    state.ServerID `json:"id"`
	Voter bool           `json:"voter"`
	// Connected is set if the server keeps a stream to the leader, and has answered
	// when it was asked.
	Connected bool `json:"connected"`
	// LastIndex and AppliedIndex are as it has answered; both are 0 if it is not connected.
	LastIndex    uint64 `json:"last"`
	AppliedIndex uint64 `json:"applied"`
	// Contact is how long ago the leader has last got something on its stream;
	// NoContact if it never has.
	Contact time.Duration `json:"contact"`
	// Plan is what the leader will do with the server by itself; nil: nothing.
	Plan *Plan `json:"plan,omitempty"`
}

// Lag is how many entries the server has not applied that the leader has.
func (s *Status) Lag(m *MemberStatus) uint64 {
	if m.AppliedIndex >= s.AppliedIndex {
		return 0
	}
	return s.AppliedIndex - m.AppliedIndex
}

// statusTimeout is how long the leader waits for the other servers' answers. A server that
// has not answered by then is not connected, as far as an operator is concerned: it is much
// longer than an answer takes, and shorter than people wait.
const statusTimeout = 1500 * time.Millisecond

// statusAsLeader asks all servers at once.
func (l *leader) statusAsLeader() (*Status, error) {
	r, err := l.leads()
	if err != nil {
		return nil, err
	}
	s := &Status{
		Leader: l.cfg.Self, Term: l.cfg.Leadership.Now().Term,
		LastIndex: r.LastIndex(), AppliedIndex: l.cfg.Applied.Index.Load(),
	}
	if doing := l.doing.Load(); doing != nil && l.reconfig.Load() != nil {
		s.Reconfiguring = *doing
	}
	for id, votes := range l.configuration.configured() {
		m := MemberStatus{ID: id, Voter: votes, Contact: NoContact, Plan: l.planOf(id)}
		if id == l.cfg.Self {
			m.Connected, m.Contact = true, 0
			m.LastIndex, m.AppliedIndex = s.LastIndex, s.AppliedIndex
		}
		s.Members = append(s.Members, m)
	}
	ctx, cancel := context.WithTimeout(l.cfg.Context, statusTimeout)
	defer cancel()
	var asking sync.WaitGroup
	for i := range s.Members {
		if m := &s.Members[i]; m.ID != l.cfg.Self {
			asking.Go(func() { l.askMember(ctx, m) })
		}
	}
	asking.Wait()
	for i := range s.Members {
		m := &s.Members[i]
		if m.Voter {
			s.Voters++
			if m.Connected {
				s.Connected++
			}
		}
	}
	if _, err := l.leads(); err != nil {
		return nil, err // what it has seen may be of a minority
	}
	return s, nil
}

func (l *leader) askMember(ctx context.Context, m *MemberStatus) {
	open, last := l.cfg.Streams.Contact(m.ID)
	if !last.IsZero() {
		m.Contact = time.Since(last)
	}
	if !open {
		return
	}
	reply, err := l.control.Ask(ctx, m.ID, Request{Op: RequestWho})
	if err != nil {
		return
	}
	m.Connected, m.LastIndex, m.AppliedIndex = true, reply.Last, reply.Applied
}
