package transport

import (
	"fmt"

	"github.com/hashicorp/raft"
)

// Terms that other servers tell are checked before raft believes them: it takes any higher one as its own at once and
// for good. One message with the highest term of all left an ensemble without leaders for ever.
const (
	// maxTerm bounds terms: they are the high half of zxids, of which clients know 31 bits.
	maxTerm = 1<<31 - 1
	// maxTermStep is how far a term may be ahead of this server's. Each election takes one.
	maxTermStep = 1 << 20
)

// checkTerm returns why raft must not see a term. A server that has no log yet may have missed any number of elections.
func (l *raftLink) checkTerm(term uint64) error {
	if term > maxTerm {
		return fmt.Errorf("transport: term %d is not one: terms end at %d", term, maxTerm)
	}
	r := l.raft.Load()
	if r == nil {
		return nil
	}
	if own := r.CurrentTerm(); term > own+maxTermStep && r.LastIndex() > 0 {
		return fmt.Errorf("transport: term %d is more than %d ahead of %d, this server's", term, maxTermStep, own)
	}
	return nil
}

// checkRequest returns why raft must not see a request.
func (l *raftLink) checkRequest(command any) error {
	term, lasting := uint64(0), uint64(0) // the sender's, and the newest in a log
	switch c := command.(type) {
	case *raft.AppendEntriesRequest:
		term, lasting = c.Term, c.PrevLogTerm
		for _, e := range c.Entries {
			lasting = max(lasting, e.Term)
		}
	case *raft.RequestVoteRequest:
		term, lasting = c.Term, c.LastLogTerm
	case *raft.RequestPreVoteRequest:
		term, lasting = c.Term, c.LastLogTerm
	case *raft.InstallSnapshotRequest:
		term, lasting = c.Term, c.LastLogTerm
	}
	if lasting > term {
		return fmt.Errorf("transport: an entry of term %d is told in term %d", lasting, term)
	}
	return l.checkTerm(term)
}
