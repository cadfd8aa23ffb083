package recovery

import (
	"cmp"
	"context"
	"net"
	"slices"
	"sync"

	"github.com/zk-lite/zk-lite/consensus/membership"
	"github.com/zk-lite/zk-lite/consensus/peerkeys"
	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/consensus/transport/mux"
)

// Peers is how to reach the other servers.
type Peers struct {
	Servers []membership.Server // as configured
	Dial    func(ctx context.Context, addr string) (net.Conn, error)
	Keys    *peerkeys.Keys // nil: none
}

// Peer is what another voter has said.
type Peer struct {
	ID   state.ServerID
	Addr string // host:port of its peer port; empty: not known
	Err  error  // why there is no answer
	membership.Answer
}

// Ask asks the other voters how they are, at once, until ctx ends.
func (r *Recovery) Ask(ctx context.Context, p Peers) []Peer {
	all := r.others(p.Servers)
	dialled := make(map[string]string, len(all)) // what to dial by the name that mux gives a server
	for _, x := range all {
		dialled[membership.AddressOf(x.ID)] = x.Addr
	}
	m := mux.New(mux.Config{
		Listener: mux.NoListener(), Advertise: membership.AddressOf(r.self),
		Dial: func(ctx context.Context, addr string) (net.Conn, error) {
			return p.Dial(ctx, dialled[addr])
		},
		Secure: func(ctx context.Context, c net.Conn, _ mux.Kind, addr string) (net.Conn, error) {
			return p.Keys.Client(ctx, c, membership.ServerOf(addr), true)
		},
	})
	defer func() { _ = m.Close() }()
	if r.report.Ensemble != [16]byte{} {
		m.SetIdentity(r.report.Ensemble, uint64(r.self))
	}
	var asking sync.WaitGroup
	for i := range all {
		asking.Go(func() { all[i].Answer, all[i].Err = membership.Ask(ctx, m, p.Keys, r.self, all[i].ID) })
	}
	asking.Wait()
	return all
}

// others are the voters but this server: those of the data, or of the configuration if these are not known.
func (r *Recovery) others(configured []membership.Server) (all []Peer) {
	members := r.machine.Members()
	for _, s := range configured {
		if s.Voter && s.ID != r.self && (len(r.report.Voters) == 0 || slices.Contains(r.report.Voters, s.ID)) {
			all = append(all, Peer{ID: s.ID, Addr: cmp.Or(members[s.ID].Addr, s.Addr)})
		}
	}
	for _, id := range r.report.Voters {
		known := slices.ContainsFunc(all, func(x Peer) bool { return x.ID == id })
		if id != r.self && !known {
			all = append(all, Peer{ID: id, Addr: members[id].Addr})
		}
	}
	return all
}

// Majority reports that the ensemble is not lost: one of the others has a leader, or there are enough of them for a
// majority, with this server if it has data.
func (r *Recovery) Majority(peers []Peer) bool {
	up, voters := 0, len(r.report.Voters)
	if voters == 0 {
		voters = len(peers) + 1
	}
	if slices.Contains(r.report.Voters, r.self) && r.report.Ensemble != [16]byte{} {
		up++
	}
	for _, p := range peers {
		if p.Led {
			return true
		}
		if p.Member {
			up++
		}
	}
	return up > voters/2
}
