package load

import (
	"context"
	"errors"
	"time"
)

// Reconnecting waits this long after the first failure and twice as long after
// each further one, up to the most. Real clients wait longer; these are to find
// out when a server is back.
const (
	backoffFirst = time.Millisecond
	backoffMost  = 20 * time.Millisecond
)

// survivor is a client of Failover, which comes back to its session at another
// host when its connection ends.
type survivor struct {
	id       int
	cfg      *Config
	host     int   // index in cfg.Hosts
	conn     *conn // nil while disconnected
	session  session
	outage   *outage
	requests *requester

	lastAnswer time.Time
	longest    time.Duration // without an answer
	afterKill  bool          // longest counts only what ended after the kill
}

func (s *survivor) run(ctx context.Context) error {
	rec := s.outage.rec
	s.lastAnswer = time.Now()
	for time.Now().Before(rec.Until()) && ctx.Err() == nil {
		if s.conn == nil && !s.reconnect(ctx) {
			break
		}
		start := time.Now()
		if op, err := s.ask(start); err != nil {
			rec.Unanswered(start)
			s.lost()
		} else {
			now := time.Now()
			rec.Answer(s.id, op, start, now)
			s.outage.answered(now)
			s.answered(now)
		}
	}
	if s.conn == nil {
		s.answered(time.Now()) // it has not come back, and has waited until now
		return nil
	}
	_ = s.conn.closeSession() // what is broken has no session to end in good order
	return nil
}

// ask sends one request and waits for its answer. An error code is an answer,
// recorded as an error; it is not what this measures.
func (s *survivor) ask(start time.Time) (Op, error) {
	b, sent := s.requests.append(s.conn, nil, start)
	// A client gives a server up after two thirds of the session's timeout, as
	// ZooKeeper's do, and has the rest to find another.
	s.conn.nc.SetDeadline(start.Add(s.cfg.SessionTimeout * 2 / 3))
	if _, err := s.conn.nc.Write(b); err != nil {
		return sent.op, err
	}
	a, err := s.conn.read()
	if err != nil {
		return sent.op, err
	}
	if err := a.Err.Err(); err != nil {
		s.outage.rec.Error(sent.op, err)
		return sent.op, nil
	}
	s.requests.done(&sent)
	return sent.op, nil
}

// answered notes the time that has passed without an answer.
func (s *survivor) answered(now time.Time) {
	gap := now.Sub(s.lastAnswer)
	s.lastAnswer = now
	if gap <= suspicious {
		return
	}
	if !s.afterKill && s.outage.hasKilled() {
		s.afterKill, s.longest = true, 0
	}
	s.longest = max(s.longest, gap)
}

// lost leaves the host for the next one.
func (s *survivor) lost() {
	s.outage.lost(s.cfg.Hosts[s.host])
	s.conn.nc.Close()
	s.session, s.conn = s.conn.session, nil
	s.host = (s.host + 1) % len(s.cfg.Hosts)
}

// reconnect tries one host after the other until the end of the run, when it
// reports false.
func (s *survivor) reconnect(ctx context.Context) bool {
	wait := backoffFirst
	for time.Now().Before(s.outage.rec.Until()) {
		c, err := connect(ctx, s.cfg.Hosts[s.host], s.cfg.SessionTimeout, s.session)
		if err == nil {
			s.conn = c
			return true
		}
		if errors.Is(err, errSession) {
			s.outage.expire()
			s.session = session{}
			continue
		}
		s.host = (s.host + 1) % len(s.cfg.Hosts)
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return false
		}
		wait = min(2*wait, backoffMost)
	}
	return false
}
