package consensus

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"strings"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"github.com/zk-lite/zk-lite/consensus/membership"
	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/consensus/transport/mux"
	"github.com/zk-lite/zk-lite/znode"
)

// peers knows where the other servers are, and by what they prove who they are.
type peers struct {
	cfg     *Config
	applied *membership.Applied
	logged  *atomic.Pointer[map[state.ServerID]string] // see noteLogged
}

var _ mux.Guard = peers{}

func othersOf(n *Node) peers { return peers{&n.cfg, &n.applied, &n.logged} }

// dial connects to a server by its id: at the address with which it was added to the running
// ensemble, or at that in this server's own configuration.
func (p peers) dial(ctx context.Context, addr string) (net.Conn, error) {
	at := p.hostPort(addr)
	if at == "" {
		return nil, fmt.Errorf("server %s is not in this server's configuration, and was not added to the ensemble",
			addr)
	}
	return p.cfg.Dial(ctx, at)
}

// hostPort is where a server is that has this address in raft's configuration; empty: not known here.
func (p peers) hostPort(addr string) string {
	for id, m := range p.applied.Members() {
		if membership.AddressOf(id) == addr && m.Addr != "" {
			return m.Addr
		}
	}
	for _, s := range p.cfg.Servers {
		if membership.AddressOf(s.ID) == addr {
			return s.Addr
		}
	}
	if logged := p.logged.Load(); logged != nil {
		return (*logged)[membership.ServerOf(addr)]
	}
	return ""
}

// noteLogged looks in the log for the addresses of servers that were added, if nothing else here has them. Only a
// leader says what of the log may be applied, and after a restart of all there is none before they find each other.
func noteLogged(n *Node) error {
	missing := false
	for _, s := range n.raft.GetConfiguration().Configuration().Servers {
		addr := string(s.Address)
		missing = missing || membership.ServerOf(addr) != n.cfg.ID && othersOf(n).hostPort(addr) == ""
	}
	if !missing {
		return nil
	}
	log := n.cfg.Storage.Log
	first, err := log.FirstIndex()
	last, wrong := log.LastIndex()
	if err = errors.Join(err, wrong); err != nil || first == 0 {
		return err
	}
	found := map[state.ServerID]string{}
	for i := first; i <= last && n.ctx.Err() == nil; i++ {
		var l raft.Log
		if err := log.GetLog(i, &l); err != nil {
			return err
		}
		if l.Type != raft.LogCommand {
			continue
		}
		_, err := state.VisitEntry(l.Data, func(_ state.Origin, _ uint64, c *state.Command) error {
			if c.Op == state.OpMember && c.Member.Addr != "" {
				found[c.Member.ID] = strings.Clone(c.Member.Addr)
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("entry %d of the log: %w", i, err)
		}
	}
	n.logged.Store(&found)
	return nil
}

// Verify implements mux.Guard by Config.Verify for a server's id. A server that is not known here may have been added
// while this one was down, and be the leader that would tell it. Keys on control connections are membership's affair.
func (p peers) Verify(c net.Conn, kind mux.Kind, from uint64) error {
	if from >= mux.NoServer {
		return nil
	}
	if kind != mux.KindControl {
		if err := p.cfg.Keys.CheckKey(c, state.ServerID(from)); err != nil {
			return err
		}
	}
	if p.cfg.Verify == nil {
		return nil
	}
	host, _, _ := net.SplitHostPort(p.hostPort(membership.AddressOf(state.ServerID(from)))) // or empty
	return p.cfg.Verify(c, state.ServerID(from), host)
}

// Secure implements mux.Guard: it puts TLS on a connection to the server with an address of raft's. Keys on control
// connections are checked where it is known what they are for (membership).
func (p peers) Secure(ctx context.Context, c net.Conn, kind mux.Kind, addr string) (net.Conn, error) {
	return p.cfg.Keys.Client(ctx, c, membership.ServerOf(addr), kind == mux.KindControl)
}

// Stranger implements mux.Guard.
func (p peers) Stranger(c net.Conn) bool { return !p.cfg.Keys.Bound(c) }

// streams is forward's network.
type streams struct{ mux *mux.Mux }

// Dial implements forward.Network.
func (s streams) Dial(ctx context.Context, to state.ServerID) (net.Conn, error) {
	return s.mux.Dial(ctx, mux.KindStream, membership.AddressOf(to), uint64(to))
}

// Accept implements forward.Network.
func (s streams) Accept() (net.Conn, state.ServerID, error) {
	conn, err := s.mux.Accept(mux.KindStream)
	if err != nil {
		return nil, 0, err
	}
	return conn, state.ServerID(conn.ServerID()), nil
}

// publishMembers lets the node's other goroutines see what is known of the
// servers.
func (f *fsm) publishMembers() {
	if now := f.machine.MembersChanged(); now != f.members {
		f.members = now
		members, configuration := f.machine.Members(), f.machine.Configuration()
		f.n.applied.SetMembers(members, configuration)
		f.n.ensemble.NoteMembers()
		f.n.ensemble.SetReconfiguration(f.machine.Reconfiguring(), maps.Clone(f.machine.Leaving()))
		f.n.cfg.Keys.Applied(f.times.Index, members, configuration)
	}
}

// followPeers tells the transport of a new configuration, and the self-check who votes.
func (f *fsm) followPeers(l *raft.Log) {
	if l.Type != raft.LogConfiguration {
		return
	}
	f.n.transport.SetPeers(raft.DecodeConfiguration(l.Data).Servers)
	f.n.check.Record.SetVoters(f.machine.Voters())
}

// A server publishes its line of the configuration, and clients follow what it says. In its own line many a server is
// 0.0.0.0, or localhost, which is right for where it listens, and leads everyone else to himself. The others know it by
// another name; until one has said it, what was published before stays.

// askNameEvery is how often the others are asked for this server's name.
const askNameEvery = 5 * time.Second

// publish publishes m, with the best host that is known for it.
func (n *Node) publish(m state.Member) {
	propose := func(m state.Member) {
		code, err := n.queue.Do(n.ctx, &state.Command{Op: state.OpMember, Member: m})
		if err == nil && code == znode.OK && (m.Peer != "" || n.cfg.Publish.Peer == "") {
			n.ensemble.NotePublished()
		}
	}
	host, _, _ := splitPeer(m.Peer)
	if m.Peer == "" || reach(host) == everywhere || onOneMachine(n.cfg.Servers) {
		propose(m)
		return
	}
	bare := m
	bare.Peer, bare.Client, bare.HTTP = "", "", ""
	propose(bare)
	tick := time.NewTicker(n.cfg.ElectionTimeout)
	defer tick.Stop()
	for said := false; ; {
		select {
		case <-n.ctx.Done():
			return
		case <-tick.C:
		}
		name, all := n.ensemble.AskName(func(name string) bool { return reach(name) > reach(host) })
		switch {
		case name != "":
			if said { // a reconfiguration may have moved it meanwhile
				m.Client = n.applied.Members()[n.cfg.ID].Client
			}
			propose(withHost(m, name))
			return
		case all && !said: // no one knows a better one, or they run a release that does not say it
			propose(m)
			said = true
		}
		tick.Reset(askNameEvery)
	}
}

// onOneMachine reports whether all servers are configured on the loopback interface.
func onOneMachine(servers []membership.Server) bool {
	for _, s := range servers {
		if host, _, _ := net.SplitHostPort(s.Addr); reach(host) != thisMachine {
			return false
		}
	}
	return true
}

// The machines that find a server by a host.
const (
	none        = iota // 0.0.0.0 or ::
	thisMachine        // loopback
	everywhere
)

func reach(host string) int {
	ip, err := netip.ParseAddr(host)
	switch {
	case host == "", err == nil && ip.IsUnspecified():
		return none
	case strings.EqualFold(host, "localhost"), err == nil && ip.IsLoopback():
		return thisMachine
	}
	return everywhere
}

// withHost is m at another host. Its addresses for clients are at the same one, or say where they are.
func withHost(m state.Member, host string) state.Member {
	was, port, election := splitPeer(m.Peer)
	m.Peer = net.JoinHostPort(host, port) + ":" + election
	for _, address := range []*string{&m.Client, &m.HTTP} {
		if at, port, err := net.SplitHostPort(*address); err == nil && (at == was || reach(at) == none) {
			*address = net.JoinHostPort(host, port)
		}
	}
	return m
}

// splitPeer splits host:port:port.
func splitPeer(peer string) (host, port, election string) {
	if i := strings.LastIndexByte(peer, ':'); i >= 0 {
		peer, election = peer[:i], peer[i+1:]
	}
	host, port, _ = net.SplitHostPort(peer)
	return host, port, election
}
