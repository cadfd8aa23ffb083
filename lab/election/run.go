package election

import (
	"cmp"
	"slices"
	"time"

	"github.com/zk-lite/zk-lite/lab/detector"
	"github.com/zk-lite/zk-lite/lab/sim"
	"github.com/zk-lite/zk-lite/lab/znodes"
)

// Detector is how processes learn of crashes during a run. Crashes at time zero are the premise
// of a run: only the initiators know of them.
type Detector string

// The detectors.
const (
	// DetectorPerfect reports a crash to every process two message times later, and a recovery
	// at once. It is the default.
	DetectorPerfect Detector = "perfect"
	// DetectorNone reports nothing.
	DetectorNone Detector = "none"
	// DetectorNeighbour lets the ring predecessor of the would-be leader watch it: see
	// neighbour.go. No other process learns of a crash.
	DetectorNeighbour Detector = "neighbour"
	// DetectorSuccessor is the same by its ring successor.
	DetectorSuccessor Detector = "successor"
	// DetectorHeartbeat runs a real detector, which can err, in every process.
	DetectorHeartbeat Detector = "heartbeat"
)

// Config describes a run. Zero values mean the defaults named.
type Config struct {
	Algorithm string
	// Program, if not nil, makes the processes instead of Algorithm. Its guarantees are those
	// of bully: all learn of one leader, the best that is up. With AnyLeader it need not be the
	// best.
	Program   func(id sim.ID) sim.Node
	AnyLeader bool
	// IDs of the processes in ring order, clockwise. Must not be empty.
	IDs []sim.ID
	// Attributes by which bully and ring rank processes; default is the id.
	Attributes map[sim.ID]float64
	// Initiators. Default: all processes at time zero; of bully and ring, the lowest that is
	// up; of majority, the one whose timer fires first.
	Initiators []Initiator
	// Participants makes the ring run by the rule of Chang and Roberts: a process that takes
	// part swallows smaller ids. Without it messages of lower initiators are suppressed.
	Participants bool
	// AskAll, TellAll and AnnounceOnce choose a form of bully; see bullyForm.
	AskAll, TellAll, AnnounceOnce bool
	Faults                        []sim.Fault
	Network                       sim.Network
	Seed                          uint64
	// AnswerTimeout is how long bully and broadcast wait for answers; default
	// two message times, the least that is accurate.
	AnswerTimeout time.Duration
	// CoordinatorTimeout is how long bully waits for the announcement after an answer;
	// default five message times.
	CoordinatorTimeout time.Duration
	// Detector; default DetectorPerfect.
	Detector Detector
	// Heartbeat is the timing of DetectorHeartbeat.
	Heartbeat detector.Timing
	// NoSpread takes the randomness from the majority's election timeouts.
	NoSpread bool
	// MaxTime ends a run that would not end otherwise. Default: see defaultTime.
	MaxTime time.Duration
	// MaxEvents ends it as well; zero means the simulator's default.
	MaxEvents int
	// Keep the records for charts.
	Keep bool
	// CheckPure makes the simulator check every step for purity.
	CheckPure bool
	// Observers see every record of the run.
	Observers []sim.Observer
}

func (c Config) attribute(id sim.ID) float64 {
	if v, ok := c.Attributes[id]; ok {
		return v
	}
	return float64(id)
}

// ranked returns the processes from the worst to the best: by attribute, then by id.
func (c Config) ranked() []sim.ID {
	return slices.SortedFunc(slices.Values(c.IDs), func(a, b sim.ID) int {
		return cmp.Or(cmp.Compare(c.attribute(a), c.attribute(b)), cmp.Compare(a, b))
	})
}

// Result is the outcome of a run.
type Result struct {
	Algorithm string       `json:"algorithm"`
	N         int          `json:"n"`
	Messages  sim.Messages `json:"messages"`
	// Time in units until the last message of the election was delivered or the
	// last process took its leader; null for a run that did not end.
	Time *float64 `json:"time"`
	// CutOff is when such a run was ended, in units.
	CutOff *float64 `json:"cut_off,omitempty"`
	// Leader all processes that are up agree on, if it is up itself.
	Leader *sim.ID `json:"leader"`
	Safe   bool    `json:"safe"`
	Live   bool    `json:"live"`
	Seed   uint64  `json:"seed"`
	// Declared counts how often a process declared itself leader.
	Declared int `json:"declared"`
	// Lost counts those of Messages that did not arrive.
	Lost int `json:"lost"`
	// Ended is how the run ended: "quiet" (nothing left to happen), "settled" (there is a
	// leader and only upkeep continues) or "limit" (time or events).
	Ended string `json:"ended"`
	// Winners counts, for Hirschberg-Sinclair, the winners of each phase from 0.
	Winners    []int           `json:"phase_winners,omitempty"`
	Violations []sim.Violation `json:"violations"`
	Records    []sim.Record    `json:"-"`
	Truncated  bool            `json:"-"`
	// Counted is the time up to which messages count, if Ended is "settled".
	Counted time.Duration `json:"-"`
	Ring    []sim.ID      `json:"-"`
	Service bool          `json:"-"`
}

// Run runs one election.
func Run(c Config) (Result, error) {
	r, err := newRun(&c)
	if err != nil {
		return Result{}, err
	}
	r.schedule()
	return r.finish(r.play()), nil
}

// run is one election in progress.
type run struct {
	config    Config
	algorithm Algorithm
	sim       *sim.Simulator
	checker   *checker
	perpetual bool
	timing    timing

	lookedAt  time.Duration // when judge last looked
	settledAt time.Duration // since when judge has been content
	settled   bool
	counts    map[string]int // as of settledAt
	lost      int            // as of settledAt
	time      time.Duration  // as of settledAt
}

func newRun(c *Config) (*run, error) {
	a, members, err := Build(c)
	if err != nil {
		return nil, err
	}
	r := &run{config: *c, algorithm: a, timing: c.timing(),
		perpetual: a.perpetual || c.Detector == DetectorHeartbeat}
	network := c.Network
	network.Sessions = a.service
	r.sim, err = sim.New(sim.Config{Seed: c.Seed, Network: network, Faults: c.Faults,
		MaxTime: c.MaxTime, MaxEvents: c.MaxEvents, Keep: c.Keep, CheckPure: c.CheckPure}, members)
	if err != nil {
		return nil, err
	}
	r.checker = newChecker(a, c.IDs, c.attribute)
	r.checker.takeover, r.checker.window = r.grace()
	r.sim.Watch(r.checker)
	for _, o := range c.Observers {
		r.sim.Watch(o)
	}
	return r, nil
}

func (c Config) timing() timing {
	return timing{bound: c.Network.Delay.Max, answer: c.AnswerTimeout, coordinator: c.CoordinatorTimeout}
}

// lookup finds the algorithm, or the guarantees of a program.
func (c Config) lookup() (Algorithm, error) {
	if c.Program == nil {
		return Lookup(c.Algorithm)
	}
	return Algorithm{Name: "program", Title: "A program", best: !c.AnyLeader, informs: true, detects: true, ranks: true,
		perpetual: true, build: func(_ setup, id sim.ID, _ int) sim.Node { return c.Program(id) }}, nil
}

// Build completes a configuration and returns its processes as they are before the run.
func Build(c *Config) (Algorithm, []sim.Member, error) {
	a, err := c.lookup()
	if err != nil {
		return a, nil, err
	}
	if err := complete(c, a); err != nil {
		return a, nil, err
	}
	bound := c.Network.Delay.Max
	s := setup{config: *c, sorted: slices.Sorted(slices.Values(c.IDs)), ranked: c.ranked(),
		rank: map[sim.ID]int{}, timing: c.timing()}
	for i, id := range s.ranked {
		s.rank[id] = i
	}
	var members []sim.Member
	if a.service {
		members = append(members, sim.Member{ID: sim.Service,
			Node: znodes.NewService(sessionTimeout * bound)})
	}
	for i, id := range c.IDs {
		node := a.build(s, id, i)
		if c.Detector == DetectorHeartbeat {
			node = detector.Wrap(id, s.sorted, c.Heartbeat, node)
		}
		members = append(members, sim.Member{ID: id, Node: node})
	}
	return a, members, nil
}

// grace returns how long a takeover may take and how long a better process must
// have been up for a declaration to be wrong.
func (r *run) grace() (takeover, window time.Duration) {
	bound := r.timing.bound
	switch r.algorithm.Name {
	case "bully", "broadcast":
		return bound, 2 * bound
	case "zookeeper", "zookeeper-herd":
		return 0, 0
	case "zookeeper-drawn":
		return 0, 0
	}
	return bound, time.Duration(3*len(r.config.IDs)) * bound
}
