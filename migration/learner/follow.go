package learner

import (
	"context"
	"fmt"

	"github.com/zk-lite/zk-lite/internal/jute"
	"github.com/zk-lite/zk-lite/migration/replica"
	"github.com/zk-lite/zk-lite/znode"
)

// Follow connects to the leader, calls h for all that follows from, and returns when the connection has ended and h has
// got all that was received, when h fails, or when ctx ends. It never returns nil. The errors above say how to start
// again; Follow itself does not. One Follow runs at a time.
func (l *Learner) Follow(ctx context.Context, from Position, h Handler) error {
	c, err := l.connect(ctx, from)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { c.Close() })
	defer stop()
	q := newQueue(l.cfg.MaxQueue)
	done := make(chan struct{})
	go l.receive(c, q, from, done)
	err = deliver(ctx, q, h)
	c.Close()
	<-done
	return err
}

// deliver calls the handler for each event.
func deliver(ctx context.Context, q *queue, h Handler) error {
	for {
		e, err := q.take(ctx)
		if err == nil {
			err = e.call(h)
		}
		if err != nil {
			return err
		}
	}
}

// receive reads the connection until it ends, and says in the queue why.
func (l *Learner) receive(c *conn, q *queue, from Position, done chan<- struct{}) {
	defer close(done)
	l.mu.Lock()
	l.status, l.queue = Status{Server: c.server}, q
	l.mu.Unlock()
	l.cfg.Logger.Info("connected to the ensemble's leader", "server", c.server, "epoch", c.epoch, "zxid", from.Zxid)
	y := &synchronization{l: l, c: c, from: from, limit: l.cfg.MaxQueue}
	err := y.run()
	if err == nil {
		l.goLive(c)
		if err = y.handOver(q); err == nil {
			err = l.follow(c, q, y.order)
		}
	}
	err = c.end(err)
	l.endLive()
	q.close(fmt.Errorf("%s: %w", c.server, err))
}

// follow reads what the leader sends to an observer that is up to date.
func (l *Learner) follow(c *conn, q *queue, o order) error {
	c.reading = l.cfg.Timeout
	for {
		p, err := c.read()
		if err != nil {
			return err
		}
		switch p.kind {
		case inform, informAndActivate:
			raw, zxid, err := transactionOf(p)
			if err == nil {
				err = o.mustNext(zxid)
			}
			if err == nil {
				err = q.put(transaction(raw))
			}
			if err == nil && p.kind == informAndActivate {
				err = refuseListed(raw, l.cfg.ID)
			}
			if err != nil {
				return err
			}
			l.setStatus(func(s *Status) { s.Received = zxid })
		case ping:
			err = l.answerPing(c, p)
		case revalidate, syncPacket:
			err = c.answer(p, q)
		case proposal, commit, commitAndActivate:
			// Observers do the same: what is committed comes with INFORM, too.
		default:
			err = unexpected(p, "INFORM")
		}
		if err != nil {
			return err
		}
	}
}

// answer passes the answer to a request on, behind the transactions that came before it.
func (c *conn) answer(p packet, q *queue) error {
	if p.kind == syncPacket {
		if c.syncs.Add(-1) < 0 {
			return fmt.Errorf("%w: SYNC without a request", ErrProtocol)
		}
		return q.put(event{Handler.Synced, eventBytes})
	}
	r := jute.NewReader(p.data)
	id, valid := znode.SessionID(r.Int64()), r.Bool()
	if err := r.Err(); err != nil {
		return fmt.Errorf("%w: REVALIDATE: %w", ErrProtocol, err)
	}
	return q.put(event{func(h Handler) error { return h.Revalidated(id, valid) }, eventBytes})
}

// eventBytes is about what an event needs besides its transaction.
const eventBytes = 64

// transactionOf returns the transaction of a PROPOSAL, INFORM or INFORMANDACTIVATE.
func transactionOf(p packet) (raw []byte, zxid znode.Zxid, err error) {
	raw = p.data
	if p.kind == informAndActivate { // the id of the next leader comes first
		if len(raw) < 8 {
			return nil, 0, fmt.Errorf("%w: %v with %d bytes", ErrProtocol, p.kind, len(raw))
		}
		raw = raw[8:]
	}
	r := jute.NewReader(raw)
	r.Int64() // session
	r.Int32() // cxid
	zxid = znode.Zxid(r.Int64())
	if r.Err() != nil || zxid != p.zxid {
		return nil, 0, fmt.Errorf("%w: %v of %v holds the transaction %v, %d bytes", ErrProtocol, p.kind, p.zxid, zxid,
			len(raw))
	}
	return raw, zxid, nil
}

// transaction is the event of a transaction. It is parsed when it is its turn, because it needs less memory before.
func transaction(raw []byte) event {
	return event{func(h Handler) error {
		t, err := replica.ParseTxn(raw)
		if err != nil {
			return err
		}
		return h.Transaction(raw, t)
	}, eventBytes + len(raw)}
}

func (l *Learner) setStatus(change func(*Status)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change(&l.status)
}
