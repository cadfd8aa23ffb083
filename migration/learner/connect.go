package learner

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"time"

	"github.com/zk-lite/zk-lite/internal/jute"
	"github.com/zk-lite/zk-lite/znode"
)

// stagger is how long a server has to answer as the leader before the next one is tried as well: one that is paused
// accepts connections and stays silent.
const stagger = 250 * time.Millisecond

// protocolVersion is that of ZooKeeper 3.4 and later.
const protocolVersion = 0x10000

// attempt is what came of the server with this number.
type attempt struct {
	server int
	c      *conn
	err    error
}

// connect tries the servers, from the one that answered last time on, until one answers as the leader.
func (l *Learner) connect(ctx context.Context, from Position) (*conn, error) {
	trying, cancel := context.WithCancel(ctx)
	defer cancel()
	n := len(l.cfg.Servers)
	l.mu.Lock()
	first := l.first
	l.mu.Unlock()
	results := make(chan attempt, n)
	next := time.NewTimer(0)
	defer next.Stop()
	started, running := 0, 0
	var leader *conn
	failed := ErrNoLeader
	for running > 0 || leader == nil && started < n {
		select {
		case <-next.C:
			if leader == nil && started < n {
				go l.try(trying, (first+started)%n, from, results)
				started++
				running++
				next.Reset(stagger)
			}
		case r := <-results:
			running--
			switch {
			case r.err != nil:
				failed = fmt.Errorf("%w; %w", failed, r.err)
				next.Reset(0)
			case leader != nil:
				r.c.Close()
			default:
				leader, first = r.c, r.server
				cancel() // ends the other attempts
			}
		}
	}
	if leader == nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, failed
	}
	l.mu.Lock()
	l.first = first
	l.mu.Unlock()
	return leader, nil
}

// try connects to one server and reports whether it is the leader.
func (l *Learner) try(ctx context.Context, i int, from Position, results chan<- attempt) {
	server := l.cfg.Servers[i]
	c, err := l.handshake(ctx, server, from)
	if err != nil {
		err = fmt.Errorf("%s: %w", server, err)
	}
	results <- attempt{i, c, err}
}

// handshake opens a connection and speaks up to LEADERINFO.
func (l *Learner) handshake(ctx context.Context, server string, from Position) (*conn, error) {
	ctx, cancel := context.WithTimeout(ctx, l.cfg.Timeout)
	defer cancel()
	raw, err := l.cfg.Dial(ctx, server)
	if err != nil {
		return nil, err
	}
	opened := raw
	stop := context.AfterFunc(ctx, func() { opened.Close() })
	defer stop()
	if l.cfg.TLS != nil {
		if raw, err = overTLS(ctx, raw, server, l.cfg.TLS); err != nil {
			raw.Close()
			return nil, err
		}
	}
	c := newConn(raw, server, &l.cfg)
	if l.cfg.SASL != nil {
		err = l.cfg.SASL.authenticate(c)
	}
	if err == nil {
		err = c.introduce(l.cfg.ID, from)
	}
	if !stop() { // the time is up, or another server is the leader
		err = fmt.Errorf("no answer within %v: %w", l.cfg.Timeout, context.Cause(ctx))
	}
	if err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

func overTLS(ctx context.Context, raw net.Conn, server string, config func(host string) *tls.Config) (net.Conn, error) {
	host, _, err := net.SplitHostPort(server)
	if err != nil {
		return raw, err
	}
	c := tls.Client(raw, verifyHost(config(host), host, raw.RemoteAddr()))
	return c, c.HandshakeContext(ctx)
}

// introduce says who we are and learns the leader's epoch.
func (c *conn) introduce(id int64, from Position) error {
	ours := max(from.Epoch, epochOf(from.Zxid))
	info := jute.AppendInt64(nil, id)
	info = jute.AppendInt32(info, protocolVersion)
	info = jute.AppendInt64(info, 0) // the version of our configuration, which must not be above theirs
	if err := c.send(packet{kind: observerInfo, zxid: znode.Zxid(ours << 32), data: info}); err != nil {
		return err
	}
	p, err := c.read()
	switch {
	case err != nil:
		return err
	case p.kind != leaderInfo:
		return unexpected(p, "LEADERINFO")
	}
	c.epoch = epochOf(p.zxid)
	if c.epoch < ours {
		return fmt.Errorf("%w: %d, and ours is %d", ErrOldLeader, c.epoch, ours)
	}
	return nil
}

// epochOf and counterOf are the halves of a zxid.
func epochOf(z znode.Zxid) int64   { return int64(uint64(z) >> 32) }
func counterOf(z znode.Zxid) int64 { return int64(uint64(z) & (1<<32 - 1)) }
