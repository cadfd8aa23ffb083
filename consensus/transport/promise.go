package transport

import (
	"time"

	"github.com/hashicorp/raft"
)

// promise is what keeps two servers from campaigning against each other. A server promises one other that it
// will neither campaign nor grant a pre-vote to a third for a while. Granting a pre-vote promises, and so does
// a vote that is asked for: raft has a new term by then. Asking for pre-votes is a promise to oneself,
// which is taken back for a better candidate until a majority has agreed.
//
// A majority of promises is needed for a campaign, two majorities share a server, and that one has promised only
// one of them. So while promises last no second server campaigns. They end by themselves, in case the
// candidate dies, too, and to ask for pre-votes again does not prolong them. It is no lease: if one ends too early
// the worst is a second election.
//
// The detector's mutex protects it.
type promise struct {
	to    raft.ServerID // empty: nobody
	until time.Time
	// campaigning is set when to is this server and a majority has agreed: it is not taken back then.
	campaigning     bool
	spare, refusals int           // of such a campaign: votes that it can do without, and those that it will not get
	broken          chan struct{} // closed when another gets the promise
}

// keptFor reports whether somebody else than id has the promise.
func (p *promise) keptFor(id raft.ServerID) bool {
	return p.to != "" && p.to != id && time.Now().Before(p.until)
}

// madeTo reports whether id has the promise.
func (p *promise) madeTo(id raft.ServerID) bool { return p.to == id && time.Now().Before(p.until) }

// give gives the promise to id, whoever has it.
func (p *promise) give(id raft.ServerID, d time.Duration) {
	if p.to != id || p.broken == nil {
		if p.broken != nil {
			close(p.broken)
		}
		p.to, p.campaigning, p.broken = id, false, make(chan struct{})
	}
	p.until = time.Now().Add(d)
}

// release ends the promise if id has it.
func (p *promise) release(id raft.ServerID) {
	if p.to == id && p.broken != nil {
		close(p.broken)
		*p = promise{}
	}
}
