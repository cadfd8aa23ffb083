package mutex

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/zk-lite/zk-lite/lab/sim"
	"github.com/zk-lite/zk-lite/lab/znodes"
)

// Algorithm describes one algorithm.
type Algorithm struct {
	Name    string
	Title   string
	service func(c Config) sim.Node // the process outside the ring, if any
	// perpetual: the algorithm never falls silent.
	perpetual bool
	use       sim.Use // of the network
	build     func(c Config, peers []sim.ID, id sim.ID) sim.Node
}

// Sessions reports whether messages travel over sessions (TCP), which lose and repeat
// nothing.
func (a Algorithm) Sessions() bool { return a.use.Sessions }

// Algorithms returns all algorithms in the order of the lectures.
func Algorithms() []Algorithm {
	return []Algorithm{
		{Name: "central", Title: "Central coordinator",
			use: sim.Use{Types: []string{messageRequest.Type(), messageGrant.Type(),
				messageRelease.Type()}},
			service: func(c Config) sim.Node { return coordinator{holder: sim.None, work: c.Work} },
			build: func(c Config, _ []sim.ID, _ sim.ID) sim.Node {
				return centralClient{section{hold: c.Hold}}
			}},
		{Name: "token-ring", Title: "Token ring", perpetual: true,
			use: sim.Use{Ring: true, Types: []string{messageToken.Type()}},
			build: func(c Config, _ []sim.ID, id sim.ID) sim.Node {
				return tokenNode{section: section{hold: c.Hold}, first: id == c.IDs[0],
					regenerate: c.Regenerate}
			}},
		{Name: "lamport", Title: "Lamport",
			use: sim.Use{Types: []string{kindRequest, kindReply, kindRelease}},
			build: func(c Config, peers []sim.ID, id sim.ID) sim.Node {
				return lamport{section: section{hold: c.Hold}, self: id, peers: peers, clock: c.Clocks[id]}
			}},
		{Name: "ricart-agrawala", Title: "Ricart-Agrawala",
			use: sim.Use{Types: []string{kindRequest, kindReply}},
			build: func(c Config, peers []sim.ID, id sim.ID) sim.Node {
				return ricart{section: section{hold: c.Hold}, self: id, peers: peers, clock: c.Clocks[id]}
			}},
		{Name: "maekawa", Title: "Maekawa",
			use: sim.Use{Types: []string{kindRequest, kindVote, kindRelease, kindFail, kindInquire,
				kindRelinquish}},
			build: func(c Config, peers []sim.ID, id sim.ID) sim.Node {
				place, _ := slices.BinarySearch(peers, id)
				return maekawa{section: section{hold: c.Hold}, self: id,
					set: votingSet(peers, place), plain: c.Plain, clock: c.Clocks[id]}
			}},
		{Name: "zookeeper", Title: "ZooKeeper lock recipe", perpetual: true,
			use: sim.Use{Sessions: true, Types: znodes.Types(znodes.Create, znodes.Children,
				znodes.Exists, znodes.Delete)},
			service: func(c Config) sim.Node {
				return znodes.NewService(sessionTimeout * c.Network.Delay.Max)
			},
			build: func(c Config, _ []sim.ID, id sim.ID) sim.Node {
				bound := c.Network.Delay.Max
				return zookeeperLock{section: section{hold: c.Hold}, mine: -1, watched: -1,
					client: znodes.NewClient(id, bound, sessionTimeout*bound)}
			}},
	}
}

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
	return Algorithm{}, fmt.Errorf("mutex algorithm %q is unknown: want one of %s",
		name, strings.Join(names, ", "))
}

// Config describes a run. Zero values mean the defaults named.
type Config struct {
	Algorithm string
	// Program, if not nil, makes the processes instead of Algorithm.
	Program func(id sim.ID) sim.Node
	// IDs of the processes in ring order, clockwise. Must not be empty.
	IDs []sim.ID
	// Requesters ask for the lock; default all.
	Requesters []sim.ID
	// Requests is how many each of them makes, one after the other; default 1.
	Requests int
	// Spacing delays the first request of the k-th requester by k times it.
	// Default 0: all ask at once.
	Spacing time.Duration
	// FirstRequest is when the first requester asks.
	FirstRequest time.Duration
	// Think is how long a process stays outside between two turns.
	Think time.Duration
	// Hold is how long a process stays inside; default one unit.
	Hold time.Duration
	// Regenerate is the silence after which the first process of the token ring
	// makes a new token; default 0, never.
	Regenerate time.Duration
	// Work is how long the central coordinator works on each message; default 0.
	Work time.Duration
	// Clocks are the logical clocks at the start; default 0.
	Clocks map[sim.ID]int
	// Plain makes Maekawa's voters run without fail, inquire and relinquish, so that they can
	// deadlock.
	Plain     bool
	Faults    []sim.Fault
	Network   sim.Network
	Seed      uint64
	MaxTime   time.Duration
	MaxEvents int // ends the run as well; zero means the simulator's default
	Keep      bool
	CheckPure bool
	Observers []sim.Observer
}

// Fairness of the order in which requests were served.
type Fairness struct {
	// Overtakes counts pairs in which the later request was served first.
	Overtakes int `json:"overtakes"`
	// OutOfOrder counts entries before a request that happened before, and Twice those of a
	// process that had entered since another began to wait. Examples describe them.
	OutOfOrder int             `json:"out_of_order"`
	Twice      int             `json:"twice"`
	Examples   []sim.Violation `json:"examples"`
	WaitMean   float64         `json:"wait_mean"`
	WaitMax    float64         `json:"wait_max"`
}

// Result is the outcome of a run.
type Result struct {
	Algorithm string       `json:"algorithm"`
	N         int          `json:"n"`
	Messages  sim.Messages `json:"messages"`
	// Time in units until the last message that is not upkeep was delivered or
	// the last process left; null for a run that did not end.
	Time *float64 `json:"time"`
	// CutOff is when such a run was ended, in units.
	CutOff *float64 `json:"cut_off,omitempty"`
	Leader *sim.ID  `json:"leader"` // always null: there is no election
	Safe   bool     `json:"safe"`
	Live   bool     `json:"live"`
	Seed   uint64   `json:"seed"`
	// Requests that were made or were still to be made by processes up at the end.
	Requests int `json:"requests"`
	Entries  int `json:"entries"`
	// MessagesPerEntry counts all types but session upkeep.
	MessagesPerEntry float64 `json:"messages_per_entry"`
	// ClientDelay is from request to entry when no other process asks or is inside.
	ClientDelay Delay `json:"client_delay"`
	// ExitDelay is from the end of a stay inside to the exit.
	ExitDelay Delay `json:"exit_delay"`
	// SyncDelay is from an exit to the next entry when a process waits or asks at once.
	SyncDelay  Delay           `json:"sync_delay"`
	Fairness   Fairness        `json:"fairness"`
	Lost       int             `json:"lost"`
	Ended      string          `json:"ended"`
	Violations []sim.Violation `json:"violations"`
	Records    []sim.Record    `json:"-"`
	Truncated  bool            `json:"-"`
	Ring       []sim.ID        `json:"-"`
	Service    bool            `json:"-"`
}

func complete(c *Config, a Algorithm) error {
	if len(c.IDs) == 0 {
		return fmt.Errorf("mutual exclusion needs at least one process")
	}
	if c.Network.Delay == (sim.Delay{}) {
		c.Network.Delay = sim.Delay{Min: sim.Unit, Max: sim.Unit}
	}
	if err := c.Network.CheckUse(a.Name, a.use); err != nil {
		return err
	}
	c.Network.Sessions = a.use.Sessions
	if c.Requests == 0 {
		c.Requests = 1
	}
	if c.Requests < 1 || c.Requests > MaxRequests {
		return fmt.Errorf("%d requests: want 1 to %d", c.Requests, MaxRequests)
	}
	if c.Hold == 0 {
		c.Hold = sim.Unit
	}
	if len(c.Requesters) == 0 {
		c.Requesters = c.IDs
	}
	for _, id := range c.Requesters {
		if !slices.Contains(c.IDs, id) {
			return fmt.Errorf("requester %d is not among the processes", int(id))
		}
	}
	if err := checkUse(c, a); err != nil {
		return err
	}
	if c.MaxTime == 0 {
		c.MaxTime = defaultTime(*c)
	}
	return nil
}

// checkUse returns an error for settings that the algorithm would ignore.
func checkUse(c *Config, a Algorithm) error {
	if c.Regenerate != 0 && a.Name != "token-ring" {
		return fmt.Errorf("%s has no token to regenerate: that is for token-ring", a.Name)
	}
	if c.Plain && a.Name != "maekawa" {
		return fmt.Errorf("%s has no plain form: that is for maekawa", a.Name)
	}
	if c.Work != 0 && a.Name != "central" {
		return fmt.Errorf("%s has no coordinator that works: that is for central", a.Name)
	}
	clocked := a.Name == "lamport" || a.Name == "ricart-agrawala" || a.Name == "maekawa"
	for _, id := range slices.Sorted(maps.Keys(c.Clocks)) {
		switch {
		case !clocked:
			return fmt.Errorf("%s has no clocks: that is for lamport, ricart-agrawala and maekawa", a.Name)
		case !slices.Contains(c.IDs, id):
			return fmt.Errorf("clock of process %d, which is not among the processes", int(id))
		}
	}
	for _, f := range c.Faults {
		if f.ID == sim.Service && a.Name == "zookeeper" {
			return fmt.Errorf("S does not crash here: it stands for an ensemble; " +
				"the coordinator of central does")
		}
	}
	return nil
}

// MaxRequests bounds the requests of one process, and so the length of a run.
const MaxRequests = 10_000

// defaultTime is long past the last fault and long against the time any of the
// algorithms needs for all requests.
func defaultTime(c Config) time.Duration {
	last := c.FirstRequest + c.Spacing*time.Duration(len(c.Requesters))
	for _, f := range c.Faults {
		last = max(last, f.At)
	}
	for _, p := range c.Network.Partitions {
		last = max(last, p.Until)
	}
	turns := len(c.Requesters) * c.Requests
	turn := c.Hold + c.Think + 20*(c.Network.Delay.Max+c.Work)
	return last + time.Duration(turns)*turn + time.Duration(10*len(c.IDs)+200)*c.Network.Delay.Max
}
