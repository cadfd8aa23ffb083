package election

import (
	"fmt"
	"strings"

	"github.com/zk-lite/zk-lite/lab/sim"
	"github.com/zk-lite/zk-lite/lab/znodes"
)

// Algorithm describes one algorithm and its guarantees.
type Algorithm struct {
	// Name is the value of --algorithm.
	Name string
	// Title is the name in prose.
	Title string
	// best: the leader must have the best attribute of all that are up.
	best bool
	// terms: leaders are numbered, and only one may lead in a term.
	terms bool
	// informs: every process learns who leads; otherwise the leader knows, and the others know
	// their place in the queue.
	informs bool
	// perpetual: the algorithm never falls silent, so a run ends when it has
	// settled.
	perpetual bool
	// service: the processes talk to a znode service.
	service bool
	// alone: without --initiator the processes start by themselves or all at
	// once (false: the first live one in lowest-id order starts).
	all bool
	// detects: the algorithm reacts to a failure detector.
	detects bool
	// ranks: processes are ranked by attribute.
	ranks bool
	// use of the network.
	use   sim.Use
	build func(s setup, id sim.ID, place int) sim.Node
}

// setup is the input of builders.
type setup struct {
	config Config
	sorted []sim.ID       // by id
	ranked []sim.ID       // from the worst to the best
	rank   map[sim.ID]int // places in ranked
	timing timing
}

// Sessions reports whether messages travel over sessions (TCP), which lose and repeat
// nothing.
func (a Algorithm) Sessions() bool { return a.use.Sessions }

// Algorithms returns all algorithms in the order of the lectures.
func Algorithms() []Algorithm {
	return []Algorithm{
		{Name: "bully", Title: "Bully", best: true, informs: true, detects: true, ranks: true,
			use:   sim.Use{Types: []string{bullyElection, bullyAnswer, bullyCoordinator}},
			build: buildBully},
		{Name: "ring", Title: "Ring (Chang-Roberts)", best: true, informs: true, detects: true, ranks: true,
			use: sim.Use{Ring: true, Types: []string{ringElection{}.Type(), ringElected{}.Type(),
				kindCheck, kindAlive}},
			build: buildRing},
		{Name: "lcr", Title: "LeLann-Chang-Roberts", best: true, informs: true, all: true,
			use:   sim.Use{Ring: true, Types: []string{lcrCandidate{}.Type(), leaderMessage{}.Type()}},
			build: func(_ setup, id sim.ID, _ int) sim.Node { return lcr{self: id, leader: sim.None} }},
		{Name: "hs", Title: "Hirschberg-Sinclair", best: true, informs: true, all: true,
			use: sim.Use{Ring: true, Types: []string{hsProbe{}.Type(), hsReply{}.Type(),
				leaderMessage{}.Type()}},
			build: func(_ setup, id sim.ID, _ int) sim.Node { return hs{self: id, leader: sim.None} }},
		{Name: "broadcast", Title: "Trivial broadcast", best: true, informs: true, all: true,
			use: sim.Use{Types: []string{broadcastID{}.Type()}},
			build: func(s setup, id sim.ID, _ int) sim.Node {
				return broadcast{self: id, peers: s.sorted, timing: s.timing, leader: sim.None}
			}},
		{Name: "anonymous", Title: "Anonymous ring", informs: true, all: true,
			use:   sim.Use{Ring: true, Types: []string{viewMessage{}.Type()}},
			build: buildAnonymous},
		{Name: "majority", Title: "Majority vote", terms: true, informs: true, perpetual: true,
			use: sim.Use{Types: []string{majorityRequest, majorityVote, majorityHeartbeat,
				majorityAck}},
			build: buildMajority},
		{Name: "zookeeper-drawn", Title: "ZooKeeper as drawn: the highest leads, each polls the next-higher",
			perpetual: true, use: sim.Use{Types: []string{kindCheck, kindAlive}}, build: buildDrawn},
		{Name: "zookeeper-herd", Title: "ZooKeeper, all watch the leader", informs: true,
			perpetual: true, service: true, use: zookeeperUse(), build: buildZooKeeper(true)},
		{Name: "zookeeper", Title: "ZooKeeper, each watches the next lower", perpetual: true,
			service: true, use: zookeeperUse(), build: buildZooKeeper(false)},
	}
}

func zookeeperUse() sim.Use {
	return sim.Use{Sessions: true, Types: znodes.Types(znodes.Create, znodes.Children, znodes.Exists)}
}

// Detects reports whether processes heed a failure detector.
func (a Algorithm) Detects() bool { return a.detects }

// Terms reports whether leaders are numbered, so that one that does not know yet that it is
// replaced can be recognised.
func (a Algorithm) Terms() bool { return a.terms }

// Informs reports whether every process learns who leads.
func (a Algorithm) Informs() bool { return a.informs }

// Service reports whether processes talk to a service.
func (a Algorithm) Service() bool { return a.service }

// Ring reports whether messages go round the ring.
func (a Algorithm) Ring() bool { return a.use.Ring }

// Lookup finds an algorithm by name.
func Lookup(name string) (Algorithm, error) {
	var names []string
	for _, a := range Algorithms() {
		if a.Name == name {
			return a, nil
		}
		names = append(names, a.Name)
	}
	return Algorithm{}, fmt.Errorf("election algorithm %q is unknown: want one of %s",
		name, strings.Join(names, ", "))
}

// anonymousLaps is how many laps round the anonymous ring are simulated: by induction nothing
// new happens after the first.
const anonymousLaps = 4

func buildAnonymous(s setup, _ sim.ID, _ int) sim.Node {
	n := len(s.config.IDs)
	return anonymous{n: n, limit: anonymousLaps * max(n-1, 1)}
}

// Election timeouts of the majority vote, in message times: long against a round of votes,
// spread widely enough that two processes seldom campaign at once.
const (
	majorityPatience = 10
	majoritySpread   = 10
)

func buildMajority(s setup, id sim.ID, place int) sim.Node {
	spread := majoritySpread * s.timing.bound
	if s.config.NoSpread {
		spread = 0
	}
	seed := sim.Random(s.config.Seed*1_000_003 + uint64(place) + 1)
	_, seed = seed.Next(2)
	return majority{self: id, peers: s.sorted, patience: majorityPatience * s.timing.bound,
		spread: spread, random: seed, votedFor: sim.None, leader: sim.None}
}
