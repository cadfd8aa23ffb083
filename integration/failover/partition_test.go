//go:build privileged

package failover_test

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/integration/cluster"
	"github.com/zk-lite/zk-lite/internal/testkit/network"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
)

const (
	// networkSeed is for losses and delays.
	networkSeed = 1
	networkPace = 2 * time.Millisecond
)

// networked starts n servers, each in a network namespace of its own, and returns false where the machine's owner has
// forbidden this.
func networked(t *testing.T, n int) (*cluster.Ensemble, *network.Network, bool) {
	t.Helper()
	if !cluster.Privileged() {
		t.Logf("%s is set: NOT RUN", cluster.UnprivilegedVariable)
		return nil, nil, false
	}
	w := cluster.NewNetwork(t, n, networkSeed)
	return start(t, n, cluster.Options{Network: w}), w, true
}

// partition is one way to break a network of three servers.
type partition struct {
	name string
	// apart lists the links to cut; a and b are the followers.
	apart func(w *network.Network, leader, a, b int)
	// alone is the server that cannot take part while it lasts, 0: none.
	alone func(leader, a, b int) int
}

func partitions() []partition {
	cut := network.Link{Cut: true}
	theLeader := func(leader, _, _ int) int { return leader }
	follower := func(_, a, _ int) int { return a }
	nobody := func(_, _, _ int) int { return 0 }
	return []partition{
		{"the leader is alone", func(w *network.Network, leader, _, _ int) {
			w.Isolate(leader)
		}, theLeader},
		{"a follower is alone", func(w *network.Network, _, a, _ int) { w.Isolate(a) }, follower},
		{"the leader hears and is not heard", func(w *network.Network, leader, a, b int) {
			w.Set(leader, a, cut)
			w.Set(leader, b, cut)
		}, theLeader},
		{"the leader is heard and does not hear", func(w *network.Network, leader, a, b int) {
			w.Set(a, leader, cut)
			w.Set(b, leader, cut)
		}, theLeader},
		{"a follower hears and is not heard", func(w *network.Network, leader, a, b int) {
			w.Set(a, leader, cut)
			w.Set(a, b, cut)
		}, follower},
		{"a follower is heard and does not hear", func(w *network.Network, leader, a, b int) {
			w.Set(leader, a, cut)
			w.Set(b, a, cut)
		}, follower},
		// The follower b reaches both: either may lead, and the other is without.
		{"the leader and a follower are apart", func(w *network.Network, leader, a, _ int) {
			w.SetBoth(leader, a, cut)
		}, nobody},
	}
}

// TestPartition_EveryWay breaks the network between the servers in every way, with clients at all of them. Two servers
// that reach each other must keep serving, acknowledged writes must stay, and when the network is whole so is the
// ensemble.
func TestPartition_EveryWay(t *testing.T) {
	t.Parallel()
	e, w, allowed := networked(t, 3)
	if !allowed {
		return
	}
	for i, p := range partitions() {
		t.Run(p.name, func(t *testing.T) { breakNetwork(t, e, w, fmt.Sprintf("/apart-%d", i), p) })
		if t.Failed() {
			break
		}
	}
	e.CheckReplicas()
	t.Logf("packets: %+v", w.Counts())
}

func breakNetwork(t *testing.T, e *cluster.Ensemble, w *network.Network, root string, p partition) {
	l := startPacedLoad(t, e, root, networkPace)
	l.waitProgress(20)
	leader, followers := e.Roles()
	at := time.Now()
	p.apart(w, leader.ID, followers[0].ID, followers[1].ID)
	alone := p.alone(leader.ID, followers[0].ID, followers[1].ID)
	if alone != 0 {
		// Its clients find the others by their connect strings.
		e.Server(alone).WaitNotServing()
		t.Logf("server %d served nobody after %v", alone, time.Since(at))
	}
	l.waitProgress(50)
	gap, _ := l.gap(at)
	t.Logf("nobody got an answer for %v", gap)
	w.Heal()
	e.WaitServing()
	l.waitProgress(20)
	l.check()
}

// TestPartition_Flapping cuts and heals links at random, faster than elections
// settle, and then lets the ensemble come to rest.
func TestPartition_Flapping(t *testing.T) {
	t.Parallel()
	e, w, allowed := networked(t, 3)
	if !allowed {
		return
	}
	l := startPacedLoad(t, e, "/flapping", networkPace)
	for round := range rounds(t, 8) {
		leader := e.Servers()[round%3].ID
		w.Isolate(leader)
		wait.Steadily(t, "the servers run", time.Duration(50+round*150)*time.Millisecond,
			func() error { return nil })
		w.Heal()
		wait.Steadily(t, "the servers run", time.Duration(50+round*50)*time.Millisecond,
			func() error { return nil })
	}
	e.WaitServing()
	l.waitProgress(50)
	l.check()
	e.CheckReplicas()
}

// TestPartition_BadNetwork: packets late, out of order, lost and twice cost
// time and nothing else.
func TestPartition_BadNetwork(t *testing.T) {
	t.Parallel()
	e, w, allowed := networked(t, 3)
	if !allowed {
		return
	}
	for name, l := range map[string]network.Link{
		"slow": {Delay: 50 * time.Millisecond},
		"all":  {Delay: 5 * time.Millisecond, Jitter: 20 * time.Millisecond, Loss: 0.03, Duplicate: 0.03},
		"loss": {Loss: 0.05},
	} {
		t.Run(name, func(t *testing.T) {
			writers := startPacedLoad(t, e, "/bad-"+name, networkPace)
			writers.waitProgress(20)
			w.SetServers(l)
			writers.waitProgress(50)
			w.Heal()
			e.WaitServing()
			writers.waitProgress(20)
			writers.check()
		})
	}
	e.CheckReplicas()
	t.Logf("packets: %+v", w.Counts())
}

// TestPartition_HalfOpenClients: clients whose packets vanish, in one direction or both, cannot close their
// connections. Their connections end with their sessions; other clients notice nothing.
func TestPartition_HalfOpenClients(t *testing.T) {
	t.Parallel()
	e, w, allowed := networked(t, 3)
	if !allowed {
		return
	}
	const clients = 50
	followers := e.Followers()
	victim := followers[0]
	l := startPacedLoad(t, e, "/half-open", networkPace)
	conns := make([]*cluster.Conn, 0, clients)
	for range clients {
		conns = append(conns, victim.Connect(t, cluster.ConnectOptions{Timeout: 2 * time.Second}))
	}
	others := withoutHome(l, victim)
	others.waitProgress(20)
	w.Set(network.Host, victim.ID, network.Link{Cut: true})
	wait.Succeeds(t, "the sessions of the half-open connections end",
		func() error {
			text, err := followers[1].Metrics()
			if err != nil {
				return err
			}
			// The load has two sessions at each server, and may be opening one more.
			n, err := strconv.Atoi(text["global_sessions"])
			if err == nil && n >= clients {
				err = fmt.Errorf("%d sessions", n)
			}
			return err
		})
	others.waitProgress(50)
	others.checkKept()
	w.Heal()
	for _, c := range conns {
		<-c.Ended()
	}
	l.waitProgress(20)
	l.check()
	e.CheckReplicas()
}
