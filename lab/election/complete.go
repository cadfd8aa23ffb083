package election

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/zk-lite/zk-lite/lab/detector"
	"github.com/zk-lite/zk-lite/lab/sim"
)

// complete fills in defaults and returns an error for impossible values.
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

// checkProcesses returns an error for impossible settings of single processes.
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

// checkUse returns an error for settings that the algorithm would ignore.
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
