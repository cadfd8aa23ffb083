package election

import (
	"cmp"
	"fmt"
	"math"
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
	// DetectorNeighbour lets the ring predecessor of the would-be leader watch it:
	// see neighbour.go. It tells nobody else.
	DetectorNeighbour Detector = "neighbour"
	// DetectorSuccessor is the same by its ring successor.
	DetectorSuccessor Detector = "successor"
	// DetectorHeartbeat runs a real detector, which can err, in every process.
	DetectorHeartbeat Detector = "heartbeat"
)

// Config describes a run. Zero values stand for the defaults named.
type Config struct {
	Algorithm string
	// IDs of the processes in ring order, clockwise. Must not be empty.
	IDs []sim.ID
	// Attributes by which bully and ring rank processes; default is the id.
	Attributes map[sim.ID]float64
	// Initiators. Default: all processes at time zero, or the lowest that is up
	// (bully, ring), or whose timer fires first (majority).
	Initiators []Initiator
	// Participants makes the ring run by the rule of Chang and Roberts: who takes part
	// swallows a smaller id. Without it messages of lower initiators are suppressed.
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
	// MaxTime ends a run that does not end by itself. Default: see defaultTime.
	MaxTime time.Duration
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
	// Lost counts, of the same messages as Messages, those that did not arrive.
	Lost int `json:"lost"`
	// Ended says how the run ended: "quiet" (nothing left to happen), "settled"
	// (a leader stands and only upkeep goes on) or "limit" (time or events).
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
	a, err := Lookup(c.Algorithm)
	if err != nil {
		return nil, err
	}
	if err := complete(c, a); err != nil {
		return nil, err
	}
	bound := c.Network.Delay.Max
	r := &run{config: *c, algorithm: a, timing: timing{bound: bound, answer: c.AnswerTimeout,
		coordinator: c.CoordinatorTimeout},
		perpetual: a.perpetual || c.Detector == DetectorHeartbeat}
	s := setup{config: *c, sorted: slices.Sorted(slices.Values(c.IDs)), ranked: c.ranked(),
		rank: map[sim.ID]int{}, timing: r.timing}
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
	case "zookeeper-drawn":
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
	if c.CoordinatorTimeout == 0 {
		c.CoordinatorTimeout = 5 * c.Network.Delay.Max
	}
	if c.AnswerTimeout < 0 || c.CoordinatorTimeout < 0 {
		return fmt.Errorf("timeouts %s and %s: want more than 0", sim.FormatTime(c.AnswerTimeout),
			sim.FormatTime(c.CoordinatorTimeout))
	}
	if err := checkProcesses(c, a); err != nil {
		return err
	}
	if err := completeDetector(c, a); err != nil {
		return err
	}
	if c.MaxTime == 0 {
		c.MaxTime = defaultTime(*c)
	}
	return nil
}

// checkProcesses reports settings of single processes that make no sense.
func checkProcesses(c *Config, a Algorithm) error {
	for _, i := range c.Initiators {
		if !slices.Contains(c.IDs, i.ID) {
			return fmt.Errorf("initiator %d is not among the processes", int(i.ID))
		}
	}
	switch {
	case len(c.Initiators) > 0 && a.service:
		return fmt.Errorf("%s has no initiators: every candidate creates its znode at the start", a.Name)
	case len(c.Initiators) > 0 && a.Name == "zookeeper-drawn":
		return fmt.Errorf("%s has no initiators: the highest leads from the start", a.Name)
	}
	for id, v := range c.Attributes {
		if !slices.Contains(c.IDs, id) {
			return fmt.Errorf("attribute of process %d, which is not among the processes", int(id))
		}
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return fmt.Errorf("attribute %g of process %d: want a number", v, int(id))
		}
	}
	if len(c.Attributes) > 0 && !a.ranks {
		return fmt.Errorf("%s ranks processes by id: attributes are for bully and ring", a.Name)
	}
	for _, f := range c.Faults {
		if f.ID == sim.Service {
			return fmt.Errorf("S does not crash here: it stands for an ensemble; " +
				"the coordinator of the central lock does")
		}
	}
	return nil
}

// checkUse reports what the algorithm would ignore.
func checkUse(c *Config, a Algorithm) error {
	if c.AnswerTimeout != 0 && a.Name != "bully" && a.Name != "broadcast" {
		return fmt.Errorf("%s does not wait for answers: an answer timeout is for bully and broadcast",
			a.Name)
	}
	if c.CoordinatorTimeout != 0 && a.Name != "bully" {
		return fmt.Errorf("%s waits for no coordinator: that timeout is for bully", a.Name)
	}
	if (c.AskAll || c.TellAll || c.AnnounceOnce) && a.Name != "bully" {
		return fmt.Errorf("%s asks and announces in one way only: other forms are for bully", a.Name)
	}
	if c.Participants && a.Name != "ring" {
		return fmt.Errorf("%s has no rule for several initiators: that is for ring", a.Name)
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
	case DetectorNeighbour, DetectorSuccessor:
		if a.Name != "ring" {
			return fmt.Errorf("detector %s is for ring, not %s", c.Detector, a.Name)
		}
		if c.Participants {
			return fmt.Errorf("detector %s needs runs: it is for the rule of initiators", c.Detector)
		}
		return nil
	case DetectorHeartbeat:
		if !a.detects {
			return fmt.Errorf("detector heartbeat is for bully and ring: %s heeds no detector", a.Name)
		}
		return c.Heartbeat.Check()
	}
	return fmt.Errorf("detector %q is unknown: want perfect, none, neighbour, successor or heartbeat", c.Detector)
}

// defaultTime is the limit of a run: long past the last fault, long against any
// election of that size, and short enough that an endless one can be drawn.
func defaultTime(c Config) time.Duration {
	last := time.Duration(0)
	for _, i := range c.Initiators {
		last = max(last, i.At)
	}
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
	for _, l := range c.Network.Late {
		slowest = max(slowest, l.Delay)
	}
	return last + time.Duration(10*len(c.IDs)+200)*slowest
}
