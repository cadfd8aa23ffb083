package consensus

import (
	"net"
	"net/netip"
	"strings"
	"time"

	"github.com/zk-lite/zk-lite/consensus/state"
)

// A server publishes its line of the configuration, and clients follow what it says. In its own line many a server is
// 0.0.0.0, or localhost, which is right for where it listens, and leads everyone else to himself. The others know it by
// another name; until one has said it, what was published before stays.

// askNameEvery is how often the others are asked for this server's name.
const askNameEvery = 5 * time.Second

// publish publishes m, with the best host that is known for it.
func (n *Node) publish(m state.Member) {
	host, _, _ := splitPeer(m.Peer)
	if m.Peer == "" || reach(host) == everywhere || n.onOneMachine() {
		n.propose(m)
		return
	}
	bare := m
	bare.Peer, bare.Client, bare.HTTP = "", "", ""
	n.propose(bare)
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
			n.propose(withHost(m, name))
			return
		case all && !said: // no one knows a better one, or they run a release that does not say it
			n.propose(m)
			said = true
		}
		tick.Reset(askNameEvery)
	}
}

func (n *Node) propose(m state.Member) {
	_ = n.Propose(&state.Command{Op: state.OpMember, Member: m}, ignore{})
}

// onOneMachine reports that all servers are configured on the loopback interface.
func (n *Node) onOneMachine() bool {
	for _, s := range n.cfg.Servers {
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
	if at, port, err := net.SplitHostPort(m.HTTP); err == nil && (at == was || reach(at) == none) {
		m.HTTP = net.JoinHostPort(host, port)
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
