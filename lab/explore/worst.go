package explore

import (
	"fmt"
	"slices"

	"github.com/zk-lite/zk-lite/lab/election"
	"github.com/zk-lite/zk-lite/lab/sim"
	"github.com/zk-lite/zk-lite/lab/table"
)

// Limits of the search for an arrangement.
const (
	// Exhaustive is the greatest ring of which all arrangements are run.
	Exhaustive = 8
	// MaxWorst is the greatest ring for which one is looked for.
	MaxWorst = 128
	climbs   = 4000 // runs of a climb
)

// Arrangement is the result of Worst.
type Arrangement struct {
	IDs      []sim.ID
	Messages int
	// Runs is how many arrangements were tried; All is set if there are no others.
	Runs int
	All  bool
}

// Worst looks for the arrangement of the ids 1 to n in a ring for which an election costs the
// most messages. All arrangements are run up to Exhaustive; above, two ids are swapped
// repeatedly, and a swap that costs no less is kept. Hirschberg-Sinclair, whose messages can be
// counted without a run, is searched further (table.HSWorst).
func Worst(c election.Config, n int) (Arrangement, error) {
	a, err := election.Lookup(c.Algorithm)
	if err != nil {
		return Arrangement{}, err
	}
	if !a.Ring() || a.Name == "anonymous" {
		return Arrangement{}, fmt.Errorf("%s does not depend on the arrangement: want ring, lcr or hs", a.Name)
	}
	if n < 2 || n > MaxWorst {
		return Arrangement{}, fmt.Errorf("a ring of %d: want 2 to %d", n, MaxWorst)
	}
	s := &arranger{config: c}
	if a.Name == "hs" && n > Exhaustive {
		ids, all := table.HSWorst(n, c.Seed)
		s.look(ids)
		s.best.All = all
		return s.best, s.err
	}
	if n <= Exhaustive {
		s.permute(table.Descending(n), 1)
		s.best.All = true
	} else {
		s.climb(n)
	}
	return s.best, s.err
}

type arranger struct {
	config election.Config
	best   Arrangement
	err    error
}

// look runs one arrangement.
func (s *arranger) look(ids []sim.ID) int {
	s.config.IDs, s.config.Keep = ids, false
	r, err := election.Run(s.config)
	if err != nil {
		s.err = err
		return 0
	}
	s.best.Runs++
	if r.Messages.Total > s.best.Messages {
		s.best.IDs, s.best.Messages = slices.Clone(ids), r.Messages.Total
	}
	return r.Messages.Total
}

// permute keeps the first id where it is: turned rings are the same ring.
func (s *arranger) permute(ids []sim.ID, k int) {
	if k == len(ids) {
		s.look(ids)
		return
	}
	for i := k; i < len(ids) && s.err == nil; i++ {
		ids[k], ids[i] = ids[i], ids[k]
		s.permute(ids, k+1)
		ids[k], ids[i] = ids[i], ids[k]
	}
}

func (s *arranger) climb(n int) {
	random := sim.Random(s.config.Seed)
	var a, b int64
	ids := table.Shuffled(n, s.config.Seed)
	now := s.look(ids)
	for s.best.Runs < climbs && s.err == nil {
		a, random = random.Next(int64(n))
		b, random = random.Next(int64(n))
		ids[a], ids[b] = ids[b], ids[a]
		if m := s.look(ids); m < now {
			ids[a], ids[b] = ids[b], ids[a]
		} else {
			now = m
		}
	}
}
