package election

import (
	"fmt"
	"slices"
	"time"

	"github.com/zk-lite/zk-lite/lab/detector"
	"github.com/zk-lite/zk-lite/lab/sim"
	"github.com/zk-lite/zk-lite/lab/znodes"
)

// Detector says how processes learn of crashes during a run. Crashes at time
// zero are the premise of a run: the initiators know of them, nobody else.
type Detector string

// The detectors.
const (
	// DetectorPerfect tells every process of a crash two message times later,
	// and of a recovery at once. It is the default.
	DetectorPerfect Detector = "perfect"
	// DetectorNone tells nobody.
	DetectorNone Detector = "none"
	// DetectorNeighbour lets the ring predecessor of the would-be leader time
	// out on its elected message; it tells nobody else.
	DetectorNeighbour Detector = "neighbour"
	// DetectorHeartbeat runs a real detector, which can err, in every process.
	DetectorHeartbeat Detector = "heartbeat"
)

// Config describes a run. Zero values stand for the defaults named.
type Config struct {
	Algorithm string
	// IDs of the processes in ring order, clockwise. Must not be empty.
	IDs []sim.ID
	// Attributes by which the ring ranks processes; default is the id.
	Attributes map[sim.ID]int
	// Initiators start at time zero. Default: all processes, or the lowest that
	// is up (bully, ring), or whose timer fires first (majority).
	Initiators []sim.ID
	Faults     []sim.Fault
	Network    sim.Network
	Seed       uint64
	// AnswerTimeout is how long bully and broadcast wait for answers; default
	// two message times, the least that is accurate.
	AnswerTimeout time.Duration
	// Detector; default DetectorPerfect.
	Detector Detector
	// Heartbeat is the timing of DetectorHeartbeat.
	Heartbeat detector.Timing
	// NoSpread takes the randomness from the majority's election timeouts.
	NoSpread bool
	// MaxTime ends a run that does not end by itself. Default: see defaultTime.
	MaxTime time.Duration
	// Keep the records for charts.
	Keep bool
	// CheckPure makes the simulator check every step for purity.
	CheckPure bool
	// Observers see every record of the run.
	Observers []sim.Observer
}

func (c Config) attribute(id sim.ID) int {
	if v, ok := c.Attributes[id]; ok {
		return v
	}
	return int(id)
}

// Result is the outcome of a run.
type Result struct {
	Algorithm string       `json:"algorithm"`
	N         int          `json:"n"`
	Messages  sim.Messages `json:"messages"`
	// Time in units until the last message of the election was delivered or the
	// last process took its leader.
	Time float64 `json:"time"`
	// Leader all processes that are up agree on, if it is up itself.
	Leader *sim.ID `json:"leader"`
	Safe   bool    `json:"safe"`
	Live   bool    `json:"live"`
	Seed   uint64  `json:"seed"`
	// Declared counts how often a process declared itself leader.
	Declared int `json:"declared"`
	// Lost counts, of the same messages as Messages, those that did not arrive.
	Lost int `json:"lost"`
	// Ended says how the run ended: "quiet" (nothing left to happen), "settled"
	// (a leader stands and only upkeep goes on) or "limit" (time or events).
	Ended      string       `json:"ended"`
	Violations []string     `json:"violations"`
	Records    []sim.Record `json:"-"`
	Truncated  bool         `json:"-"`
	Ring       []sim.ID     `json:"-"`
	Service    bool         `json:"-"`
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
	a, err := Lookup(c.Algorithm)
	if err != nil {
		return nil, err
	}
	if err := complete(c, a); err != nil {
		return nil, err
	}
	bound := c.Network.Delay.Max
	r := &run{config: *c, algorithm: a, timing: timing{bound: bound, answer: c.AnswerTimeout},
		perpetual: a.perpetual || c.Detector == DetectorHeartbeat}
	s := setup{config: *c, sorted: slices.Sorted(slices.Values(c.IDs)), timing: r.timing}
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
	network := c.Network
	network.Sessions = a.service
	r.sim, err = sim.New(sim.Config{Seed: c.Seed, Network: network, Faults: c.Faults,
		MaxTime: c.MaxTime, Keep: c.Keep, CheckPure: c.CheckPure}, members)
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

// grace returns how long a takeover may take and how long a better process must
// have been up for a declaration to be wrong.
func (r *run) grace() (takeover, window time.Duration) {
	bound := r.timing.bound
	switch r.algorithm.Name {
	case "bully", "broadcast":
		return bound, 2 * bound
	case "zookeeper", "zookeeper-herd":
		return 0, 0
	}
	return bound, time.Duration(3*len(r.config.IDs)) * bound
}

// complete fills in defaults and reports what makes no sense.
func complete(c *Config, a Algorithm) error {
	if len(c.IDs) == 0 {
		return fmt.Errorf("an election needs at least one process")
	}
	if c.Network.Delay == (sim.Delay{}) {
		c.Network.Delay = sim.Delay{Min: sim.Unit, Max: sim.Unit}
	}
	if err := checkUse(c, a); err != nil {
		return err
	}
	if c.AnswerTimeout == 0 {
		c.AnswerTimeout = 2 * c.Network.Delay.Max
	}
	if c.AnswerTimeout < 0 {
		return fmt.Errorf("answer timeout %s: want more than 0", sim.FormatTime(c.AnswerTimeout))
	}
	for _, id := range c.Initiators {
		if !slices.Contains(c.IDs, id) {
			return fmt.Errorf("initiator %d is not among the processes", int(id))
		}
	}
	if len(c.Initiators) > 0 && a.service {
		return fmt.Errorf("%s has no initiators: every candidate creates its znode at the start", a.Name)
	}
	for id := range c.Attributes {
		if !slices.Contains(c.IDs, id) {
			return fmt.Errorf("attribute of process %d, which is not among the processes", int(id))
		}
	}
	if len(c.Attributes) > 0 && a.Name != "ring" {
		return fmt.Errorf("%s ranks processes by id: attributes are for ring", a.Name)
	}
	if err := completeDetector(c, a); err != nil {
		return err
	}
	if c.MaxTime == 0 {
		c.MaxTime = defaultTime(*c)
	}
	return nil
}

// checkUse reports what the algorithm would ignore.
func checkUse(c *Config, a Algorithm) error {
	if c.AnswerTimeout != 0 && a.Name != "bully" && a.Name != "broadcast" {
		return fmt.Errorf("%s does not wait for answers: an answer timeout is for bully and broadcast",
			a.Name)
	}
	if c.NoSpread && a.Name != "majority" {
		return fmt.Errorf("%s has no election timeouts to spread: that is for majority", a.Name)
	}
	use := a.use
	if c.Detector == DetectorHeartbeat {
		use.Types = append(slices.Clone(use.Types), detector.Heartbeat{}.Type())
	}
	return c.Network.CheckUse(a.Name, use)
}

func completeDetector(c *Config, a Algorithm) error {
	switch c.Detector {
	case "":
		c.Detector = DetectorPerfect
		return nil
	case DetectorPerfect, DetectorNone:
		return nil
	case DetectorNeighbour:
		if a.Name != "ring" {
			return fmt.Errorf("detector neighbour is for ring, not %s", a.Name)
		}
		return nil
	case DetectorHeartbeat:
		if !a.detects {
			return fmt.Errorf("detector heartbeat is for bully and ring: %s heeds no detector", a.Name)
		}
		return c.Heartbeat.Check()
	}
	return fmt.Errorf("detector %q is unknown: want perfect, none, neighbour or heartbeat", c.Detector)
}

// defaultTime is the limit of a run: long past the last fault, long against any
// election of that size, and short enough that an endless one can be drawn.
func defaultTime(c Config) time.Duration {
	last := time.Duration(0)
	for _, f := range c.Faults {
		last = max(last, f.At)
	}
	for _, p := range c.Network.Partitions {
		last = max(last, p.Until)
	}
	slowest := c.Network.Delay.Max
	for _, s := range c.Network.Slow {
		slowest = max(slowest, s.Delay)
	}
	return last + time.Duration(10*len(c.IDs)+200)*slowest
}
