package election

import (
	"context"

	"github.com/zk-lite/zk-lite/lab/sim"
	"github.com/zk-lite/zk-lite/lab/znodes"
)

// ScenarioRunner performs scenarios on the simulator.
type ScenarioRunner struct{ Seed uint64 }

// killTime of the leader, in units: long after the candidates are in line.
const killTime = 20

// KillLeader implements Runner.
func (r ScenarioRunner) KillLeader(_ context.Context, k KillLeader) (Outcome,
	error) {
	if err := k.Check(); err != nil {
		return Outcome{}, err
	}
	c := Config{Algorithm: "zookeeper", Seed: r.Seed}
	if k.Herd {
		c.Algorithm = "zookeeper-herd"
	}
	for i := range k.Candidates {
		c.IDs = append(c.IDs, sim.ID(i+1))
	}
	// With the constant delay of the default network the first process is the
	// first to create its znode, so it is the one that leads.
	c.Faults = []sim.Fault{{ID: c.IDs[0], At: killTime * sim.Unit}}
	counter := &killCounter{}
	c.Observers = []sim.Observer{counter}
	result, err := Run(c)
	if err != nil {
		return Outcome{}, err
	}
	o := Outcome{Events: counter.events, Requests: counter.requests, Messages: counter.messages}
	if result.Leader != nil && result.Safe && result.Live {
		o.Leaders, o.Changed = 1, *result.Leader != c.IDs[0]
	}
	return o, nil
}

// killCounter counts the messages after the first crash.
type killCounter struct {
	killed                     bool
	events, requests, messages int
}

// Observe implements sim.Observer.
func (k *killCounter) Observe(r sim.Record) {
	if k.killed && !r.Quiet && r.Kind == sim.Sent {
		k.messages++
	}
	switch {
	case r.Kind == sim.Crashed:
		k.killed = true
	case !k.killed || r.Quiet:
	case r.Kind == sim.Delivered && r.Type == (znodes.WatchEvent{}).Type():
		k.events++
	case r.Kind == sim.Sent && r.Peer == sim.Service:
		k.requests++
	}
}
