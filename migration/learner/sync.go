package learner

import (
	"fmt"

	"github.com/zk-lite/zk-lite/internal/jute"
	"github.com/zk-lite/zk-lite/migration/replica"
	"github.com/zk-lite/zk-lite/session"
	"github.com/zk-lite/zk-lite/znode"
)

// synchronization is what a leader does to bring a learner up to date: SNAP, DIFF or TRUNC; PROPOSAL with COMMIT, and
// INFORM, for what was committed before or meanwhile; NEWLEADER, UPTODATE.
//
// Nothing is handed on before UPTODATE, for two reasons. A leader whose term begins sends the end of its own log like
// committed transactions, although a quorum has it only when UPTODATE comes, and a leader that dies before may take the
// end with it. And everything that a fuzzy snapshot may hold has been informed by then, but not always before
// NEWLEADER, which ZooKeeper 3.4 places ahead of the snapshot's end in its queue, and a follower ahead of what it is
// informing.
type synchronization struct {
	l     *Learner
	c     *conn
	from  Position
	limit int // bytes of held

	leader  Leader
	order   order
	through znode.Zxid // what was promised at first: the transactions reach it before UPTODATE

	state *replica.Replica // of SNAP; takes the transactions that follow
	x     znode.Txn
	held  [][]byte // otherwise: the transactions for the handler
	// proposals without COMMIT. A leader sends them to voters only; those of old ones also to observers.
	proposals map[znode.Zxid][]byte
	bytes     int // of held and proposals
}

// signature ends a snapshot.
const signature = "BenWasHere"

// run speaks from ACKEPOCH up to UPTODATE.
func (y *synchronization) run() error {
	c := y.c
	c.reading = y.l.cfg.SyncTimeout
	// The epoch -1 means that this is no vote for the leader.
	err := c.send(packet{kind: ackEpoch, zxid: y.from.Zxid, data: jute.AppendInt32(nil, -1)})
	if err != nil {
		return err
	}
	p, err := c.read()
	if err == nil {
		err = y.begin(p)
	}
	if err != nil {
		return err
	}
	for acked := false; ; {
		p, err := c.read()
		if err != nil {
			return err
		}
		switch p.kind {
		case proposal:
			err = y.propose(p)
		case commit, commitAndActivate:
			err = y.commit(p.zxid)
		case inform, informAndActivate:
			err = y.inform(p)
		case newLeader:
			if acked {
				return unexpected(p, "UPTODATE")
			}
			acked, err = true, y.acknowledge(p)
		case upToDate:
			if !acked {
				return unexpected(p, "NEWLEADER")
			}
			return y.finish()
		case ping:
			if acked { // otherwise the leader expects ACK, and nothing else
				err = y.l.answerPing(c, p)
			}
		default:
			err = unexpected(p, "UPTODATE")
		}
		if err != nil {
			return err
		}
	}
}

// begin handles the first packet.
func (y *synchronization) begin(p packet) error {
	y.proposals = map[znode.Zxid][]byte{}
	y.leader = Leader{Server: y.c.server, Epoch: y.c.epoch, Sync: p.kind.String()}
	y.order = order{last: y.from.Zxid, epoch: y.c.epoch}
	y.through = p.zxid
	have := y.from.Zxid
	switch p.kind {
	case snap:
		return y.readSnapshot(p.zxid)
	case diff, trunc:
		switch {
		case have == 0: // there was no transaction yet: nothing, as we have it, is all
			y.state = replica.New(znode.NewTree(), session.NewTable(), 0)
			return nil
		case p.zxid >= have, p.kind == diff && counterOf(have) == 0:
			return nil
		case counterOf(have) != 0:
			return &TruncatedError{To: p.zxid, Have: have}
		}
		// We hold a snapshot of a leader that had made no transaction yet. Only a new one tells whether it had more.
		return fmt.Errorf("%w: %v to %v, and we have a snapshot as of %v", ErrGap, p.kind, p.zxid, have)
	}
	return unexpected(p, "SNAP, DIFF or TRUNC")
}

// readSnapshot reads the state that SNAP announces.
func (y *synchronization) readSnapshot(zxid znode.Zxid) error {
	y.c.budget = y.l.cfg.MaxSnapshot
	s := jute.NewStream(y.c.in, replica.MaxField)
	state, err := replica.Read(s, zxid)
	if err == nil {
		if end := s.Ustring(); s.Err() != nil {
			err = s.Err()
		} else if end != signature {
			err = fmt.Errorf("%w: %.32q instead of %q at its end", ErrProtocol, end, signature)
		}
	}
	if err != nil {
		return fmt.Errorf("the snapshot of %v: %w", zxid, y.c.explain(err))
	}
	y.c.budget = noBudget
	y.state = state
	y.order = order{last: zxid, epoch: y.c.epoch, fuzzy: true}
	return nil
}

// propose keeps a proposal until its COMMIT.
func (y *synchronization) propose(p packet) error {
	raw, zxid, err := transactionOf(p)
	if err != nil {
		return err
	}
	if _, twice := y.proposals[zxid]; twice {
		return fmt.Errorf("%w: PROPOSAL of %v twice", ErrProtocol, zxid)
	}
	y.proposals[zxid] = raw
	return y.count(raw)
}

// commit takes a proposal.
func (y *synchronization) commit(zxid znode.Zxid) error {
	raw, proposed := y.proposals[zxid]
	if !proposed {
		if zxid <= y.order.last && !y.order.fuzzy {
			return nil // a repeat
		}
		return fmt.Errorf("%w: COMMIT of %v without its PROPOSAL", ErrGap, zxid)
	}
	delete(y.proposals, zxid)
	y.bytes -= len(raw) + eventBytes
	return y.take(zxid, raw)
}

// inform takes a transaction that comes at once.
func (y *synchronization) inform(p packet) error {
	raw, zxid, err := transactionOf(p)
	if err == nil && p.kind == informAndActivate {
		err = refuseListed(raw, y.l.cfg.ID)
	}
	if err != nil {
		return err
	}
	return y.take(zxid, raw)
}

// take takes the next transaction that was committed.
func (y *synchronization) take(zxid znode.Zxid, raw []byte) error {
	if repeat, err := y.order.next(zxid); err != nil || repeat {
		return err
	}
	if y.state == nil {
		y.held = append(y.held, raw)
		return y.count(raw)
	}
	t, err := replica.ParseTxn(raw)
	if err != nil {
		return err
	}
	return y.state.Apply(&y.x, t, true)
}

func (y *synchronization) count(raw []byte) error {
	if y.bytes += len(raw) + eventBytes; y.bytes > y.limit {
		return fmt.Errorf("%w: the leader sends more than %d bytes of transactions after %v", ErrFar, y.limit,
			y.from.Zxid)
	}
	return nil
}

// acknowledge handles NEWLEADER. The answer does not wait until anything is held for good: a leader counts those of
// voters only, and it wants one within its initLimit.
func (y *synchronization) acknowledge(p packet) error {
	if epochOf(p.zxid) != y.c.epoch || counterOf(p.zxid) != 0 {
		return fmt.Errorf("%w: NEWLEADER of %v, and LEADERINFO was of epoch %d", ErrProtocol, p.zxid, y.c.epoch)
	}
	y.leader.Config = string(p.data)
	if err := refuseListed(p.data, y.l.cfg.ID); err != nil {
		return err
	}
	return y.c.send(packet{kind: ack, zxid: p.zxid})
}

// finish handles UPTODATE.
func (y *synchronization) finish() error {
	if y.order.last < y.through && counterOf(y.through) != 0 {
		return fmt.Errorf("%w: %s promised transactions up to %v, and they end with %v", ErrGap, y.leader.Sync,
			y.through, y.order.last)
	}
	y.order.fuzzy = false
	if y.state != nil {
		if paths := y.state.Unresolved(); len(paths) > 0 {
			return fmt.Errorf("%w after a snapshot and all that it may hold: %q and %d others", replica.ErrUnresolved,
				paths[0], len(paths)-1)
		}
	}
	return y.c.send(packet{kind: ack, zxid: znode.Zxid(y.c.epoch << 32)})
}

// handOver puts all that was received into the queue.
func (y *synchronization) handOver(q *queue) error {
	leader, state := y.leader, y.state
	err := q.put(event{call: func(h Handler) error { return h.Leader(leader) }})
	if err == nil && state != nil {
		err = q.put(event{call: func(h Handler) error { return h.Snapshot(state) }})
	}
	for _, raw := range y.held {
		if err == nil {
			err = q.put(transaction(raw))
		}
	}
	y.held, y.state, y.proposals = nil, nil, nil
	y.l.setStatus(func(s *Status) { s.Received, s.Synced = y.order.last, true })
	return err
}
