package load

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// Outage is the effect of a server's end on clients.
type Outage struct {
	// Killed is the host that was killed, "" if this run has killed none;
	// KilledAt is when, since the start of the measured time.
	Killed   string        `json:"killed,omitempty"`
	KilledAt time.Duration `json:"killed_at_ns,omitempty"`
	// Longest is the longest time in which no client at all had an answer, and
	// At its begin. After a kill only times that end later count.
	Longest Micros        `json:"longest_us"`
	At      time.Duration `json:"at_ns"`
	// Open is set if this time had not ended when the run did.
	Open bool `json:"open,omitempty"`
	// Clients is the longest time without an answer of each client, over the same
	// time.
	Clients Latency `json:"clients"`
	// DroppedOfKilled are ends of connections to the killed host, DroppedOfOthers
	// of those to survivors (all of them if this run has killed none).
	DroppedOfKilled int `json:"dropped_of_killed"`
	DroppedOfOthers int `json:"dropped_of_others"`
	// Expired counts sessions that no server took back.
	Expired int `json:"expired_sessions"`
}

// Killer ends a server and returns its host, in the spelling of Config.Hosts.
type Killer func(ctx context.Context) (host string, err error)

// Failover measures the pause while something kills a server: Connections clients, each with
// one request in flight, resume their sessions at another host when they lose a connection.
// kill is called after the given part of the measured time; nil leaves the killing to someone
// else.
func Failover(ctx context.Context, cfg Config, kill Killer, after time.Duration) (*Result, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	cfg.InFlight, cfg.Rate = 1, 0
	keys, data := newKeySpace(cfg.Prefix, cfg.Keys), value(cfg.Seed, cfg.ValueSize)
	if err := asAdmin(ctx, &cfg, func(c *conn) error { return keys.build(ctx, c, data) }); err != nil {
		return nil, err
	}
	conns, err := connectAll(ctx, &cfg, cfg.Connections)
	if err != nil {
		closeAll(conns)
		return nil, err
	}
	o := &outage{}
	var clients []*survivor
	res, err := Measure(ctx, &cfg, func(rec *Recorder, _ time.Time) (tasks []func() error) {
		o.rec = rec
		o.last.Store(-1) // nothing yet
		for i, c := range conns {
			s := &survivor{home: home{hosts: cfg.Hosts, at: i % len(cfg.Hosts), conn: c, dialer: cfg.dialer()},
				id: i, outage: o, requests: newRequester(&cfg, keys, data, i)}
			clients = append(clients, s)
			tasks = append(tasks, func() error { return s.run(ctx) })
		}
		if kill != nil {
			tasks = append(tasks, func() error { return o.kill(ctx, kill, after) })
		}
		return tasks
	})
	res.Kind, res.Failover = "failover", o.result(clients)
	if o.killErr != nil {
		err = errors.Join(err, fmt.Errorf("killing a server: %w", o.killErr))
	}
	return res, errors.Join(err, cleanUp(ctx, &cfg, keys))
}

// outage finds the longest silence.
type outage struct {
	rec  *Recorder
	last atomic.Int64 // the last answer to any client, since rec.from

	mu       sync.Mutex // protects the fields below
	killed   string
	killedAt time.Duration // 0: not yet
	killErr  error
	longest  time.Duration
	at       time.Duration
	dropped  map[string]int // by host
	expired  int
}

func (o *outage) kill(ctx context.Context, kill Killer, after time.Duration) error {
	select {
	case <-time.After(time.Until(o.rec.from.Add(after))):
	case <-ctx.Done():
		return nil
	}
	host, err := kill(ctx)
	at := time.Since(o.rec.from)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.killed, o.killErr, o.killedAt = host, err, at
	o.longest, o.at = 0, 0 // earlier gaps have other reasons
	return nil
}

// suspicious is how long a silence must be to be checked under the lock.
const suspicious = 200 * time.Microsecond

// openGap is how long no client may have been served at the end of a run before that is called
// an outage: the last answers arrive at different times.
const openGap = 100 * time.Millisecond

// answered notes an answer.
func (o *outage) answered(now time.Time) {
	at := now.Sub(o.rec.from)
	before := time.Duration(o.last.Swap(int64(at)))
	if at-before < suspicious || before < 0 {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if gap := at - before; gap > o.longest {
		o.longest, o.at = gap, before
	}
}

func (o *outage) lost(host string) {
	o.rec.Dropped()
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.dropped == nil {
		o.dropped = map[string]int{}
	}
	o.dropped[host]++
}

func (o *outage) expire() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.expired++
}

// hasKilled reports whether this run has killed a server.
func (o *outage) hasKilled() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.killedAt != 0
}

func (o *outage) result(clients []*survivor) *Outage {
	o.mu.Lock()
	defer o.mu.Unlock()
	r := &Outage{Killed: o.killed, KilledAt: o.killedAt, Longest: Micros(o.longest), At: o.at,
		Expired: o.expired}
	length, last := o.rec.until.Sub(o.rec.from), time.Duration(o.last.Load())
	if gap := length - last; gap > o.longest && gap > suspicious {
		r.Longest, r.At, r.Open = Micros(gap), max(last, 0), gap > openGap
	}
	var pauses Histogram
	for _, s := range clients {
		pauses.Record(s.longest)
	}
	var counts Counts
	pauses.AddTo(&counts)
	r.Clients = counts.Latency()
	for host, n := range o.dropped {
		if host == o.killed {
			r.DroppedOfKilled += n
		} else {
			r.DroppedOfOthers += n
		}
	}
	return r
}

// survivor is a client of Failover, which resumes its session at another host when its
// connection ends.
type survivor struct {
	home
	id       int
	outage   *outage
	requests *requester

	lastAnswer time.Time
	longest    time.Duration // without an answer
	afterKill  bool          // longest counts only gaps that ended after the kill
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
		s.answered(time.Now()) // it has not reconnected, and has waited until now
		return nil
	}
	_ = s.conn.closeSession() // a broken connection has no session to close in good order
	return nil
}

// ask sends one request and waits for its answer. An error code is an answer, recorded as an
// error; it is not measured here.
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

// Reconnecting waits this long after the first failure and twice as long after
// each further one, up to the most. Real clients wait longer; these are to find
// out when a server is back.
const (
	backoffFirst = time.Millisecond
	backoffMost  = 20 * time.Millisecond
)

// home is a session and the host that it is at, which is another one after a
// connection has ended.
type home struct {
	hosts   []string
	at      int   // index in hosts
	conn    *conn // nil while disconnected
	session session
	dialer
}

// clientPatience is how long a client waits for an answer: it gives up on a server after two thirds of the session's
// timeout, as ZooKeeper's do, and has the rest to find another.
func clientPatience(timeout time.Duration) time.Duration { return timeout * 2 / 3 }

// expect bounds the wait for the answer to a request that is sent at start.
func (h *home) expect(start time.Time) { h.conn.nc.SetDeadline(start.Add(clientPatience(h.timeout))) }

// leave gives the connection up, for the next host.
func (h *home) leave() {
	h.conn.nc.Close()
	h.session, h.conn = h.conn.session, nil
	h.at = (h.at + 1) % len(h.hosts)
}

// comeBack tries one host after the other until ctx ends, when it returns false. expired is called when
// the session is no longer known; a new one takes its place.
func (h *home) comeBack(ctx context.Context, expired func()) bool {
	wait := backoffFirst
	for ctx.Err() == nil {
		c, err := h.connect(ctx, h.hosts[h.at], h.session)
		if err == nil {
			h.conn = c
			return true
		}
		if errors.Is(err, errSession) {
			expired()
			h.session = session{}
			continue
		}
		h.at = (h.at + 1) % len(h.hosts)
		select {
		case <-time.After(wait):
		case <-ctx.Done():
		}
		wait = min(2*wait, backoffMost)
	}
	return false
}
