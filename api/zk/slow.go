package zk

import (
	"time"

	"github.com/zk-lite/zk-lite/server/insight"
)

// maxSlow is how many slow requests of one connection are kept until their replies are written.
const maxSlow = 16

// noteSlow keeps what is known of a request that was answered now, if it was slow, until its reply is written. The
// outbox is locked.
func (c *conn) noteSlow(r *request, now time.Time) {
	if c.out.since.IsZero() {
		c.out.since = now
	}
	log := c.listener.cfg.Slow
	took := now.Sub(r.start)
	switch {
	case !log.Slow(took):
		return
	case len(c.out.slow) >= maxSlow:
		log.Leave(1)
		return
	}
	x := insight.SlowRequest{
		At: r.start, Port: insight.PortZooKeeper, Operation: r.op.String(), Path: r.firstPath(), Address: c.remote,
		Took: took, Stages: insight.StagesOf(r.start, r.times, now),
	}
	if r.times != nil {
		x.Index, x.Term = r.times.Index, r.times.Term
	}
	c.out.slow = append(c.out.slow, x)
}

// firstPath is the path of a request, or of the first operation of a transaction.
func (r *request) firstPath() string {
	switch {
	case r.path != "":
		return r.path
	case len(r.cmd.Ops) > 0:
		return r.cmd.Ops[0].Path
	}
	return r.cmd.Path
}

// reportSlow hands on the slow requests whose replies the client has taken now, the first of which was given at since;
// or that the replies alone were slow.
func (c *conn) reportSlow(since time.Time, slow []insight.SlowRequest) {
	log, now := c.listener.cfg.Slow, time.Now()
	if len(slow) == 0 && log.Slow(now.Sub(since)) {
		slow = []insight.SlowRequest{{
			At: since, Port: insight.PortZooKeeper, Operation: insight.OnlyReply, Address: c.remote,
		}}
	}
	for _, x := range slow {
		x.Session = c.session()
		x.Stages.Reply = now.Sub(x.At.Add(x.Took))
		x.Took = now.Sub(x.At)
		log.Add(x)
	}
}
