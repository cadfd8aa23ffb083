package membership

import (
	"context"
	"maps"
	"sync"

	"github.com/zk-lite/zk-lite/consensus/selfcheck"
	"github.com/zk-lite/zk-lite/consensus/state"
)

// AskChecks asks the other servers what they have applied, as of indexes of the log, and returns the answers that
// come within an election timeout.
func (e *Ensemble) AskChecks(at []uint64) map[state.ServerID]*selfcheck.Answer {
	answers := map[state.ServerID]*selfcheck.Answer{}
	for id, reply := range e.askOthers(Request{Op: controlCheck, At: at}) {
		if reply.Check != nil {
			answers[id] = reply.Check
		}
	}
	return answers
}

// askOthers asks all servers of which this one knows at once, for an election timeout at most, and returns the
// answers.
func (e *Ensemble) askOthers(req Request) map[state.ServerID]Reply {
	ctx, cancel := context.WithTimeout(e.cfg.Context, e.cfg.ElectionTimeout)
	defer cancel()
	others := map[state.ServerID]bool{}
	maps.Copy(others, e.configured())
	for _, s := range e.cfg.Servers {
		others[s.ID] = true
	}
	delete(others, e.cfg.Self)
	var mu sync.Mutex // protects replies
	replies := map[state.ServerID]Reply{}
	var asking sync.WaitGroup
	for id := range others {
		asking.Go(func() {
			reply, err := e.Ask(ctx, id, req)
			if err != nil {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			replies[id] = reply
		})
	}
	asking.Wait()
	return replies
}
