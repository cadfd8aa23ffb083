package load

import (
	"context"
	"time"
)

// survivor is a client of Failover, which comes back to its session at another
// host when its connection ends.
type survivor struct {
	home
	id       int
	outage   *outage
	requests *requester

	lastAnswer time.Time
	longest    time.Duration // without an answer
	afterKill  bool          // longest counts only what ended after the kill
}

func (s *survivor) run(ctx context.Context) error {
	rec := s.outage.rec
	ctx, cancel := context.WithDeadline(ctx, rec.Until())
	defer cancel()
	s.lastAnswer = time.Now()
	for ctx.Err() == nil && (s.conn != nil || s.comeBack(ctx, s.outage.expire)) {
		start := time.Now()
		if op, err := s.ask(start); err != nil {
			rec.Unanswered(start)
			s.outage.lost(s.hosts[s.at])
			s.leave()
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
	s.expect(start)
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
