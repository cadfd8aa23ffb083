package recovery

import (
	"cmp"
	"context"
	"slices"

	"github.com/zk-lite/zk-lite/consensus/membership"
)

// Ask asks the other voters how they are, until ctx ends: those of the data, or of the configuration if these are not
// known. a.Ensemble is filled in.
func (r *Recovery) Ask(ctx context.Context, a membership.Asker, configured []membership.Server) []membership.Peer {
	a.Ensemble = r.report.Ensemble
	return a.Ask(ctx, r.others(configured))
}

func (r *Recovery) others(configured []membership.Server) (all []membership.Server) {
	members := r.machine.Members()
	for _, s := range configured {
		if s.Voter && s.ID != r.self && (len(r.report.Voters) == 0 || slices.Contains(r.report.Voters, s.ID)) {
			all = append(all, membership.Server{ID: s.ID, Addr: cmp.Or(members[s.ID].Addr, s.Addr)})
		}
	}
	for _, id := range r.report.Voters {
		known := slices.ContainsFunc(all, func(x membership.Server) bool { return x.ID == id })
		if id != r.self && !known {
			all = append(all, membership.Server{ID: id, Addr: members[id].Addr})
		}
	}
	return all
}

// Majority reports that the ensemble is not lost: one of the others has a leader, or there are enough of them for a
// majority, with this server if it has data. A server without others is recovered only from what it cannot apply.
func (r *Recovery) Majority(peers []membership.Peer) bool {
	if len(peers) == 0 && len(r.report.Skipped) > 0 {
		return false
	}
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
