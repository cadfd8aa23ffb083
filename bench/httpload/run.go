package httpload

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/zk-lite/zk-lite/bench/load"
)

// Run puts gets, sets and creates on an API, in a closed or an open loop. Every one of
// Connections × InFlight is a connection of its own, as an HTTP/1.1 connection has one
// request under way.
func Run(ctx context.Context, cfg load.Config, api API) (*load.Result, error) {
	if err := check(&cfg); err != nil {
		return nil, err
	}
	for _, s := range cfg.Mix {
		if s.Op != load.Get && s.Op != load.Set && s.Op != load.Create {
			return nil, fmt.Errorf("over HTTP a mix is of get, set and create, not of %s", s.Op)
		}
	}
	return around(ctx, &cfg, api, func() (*load.Result, error) {
		return load.RunCallers(ctx, cfg, func(i int) (load.Caller, error) {
			return &caller{conn: newConn(&cfg, i), api: api, prefix: cfg.Prefix}, nil
		})
	})
}

// check also makes every request under way a connection.
func check(cfg *load.Config) error {
	if err := cfg.Check(); err != nil {
		return err
	}
	cfg.Connections, cfg.InFlight = cfg.Connections*cfg.InFlight, 1
	return cfg.Check()
}

func newConn(cfg *load.Config, i int) *conn {
	return &conn{host: cfg.Hosts[i%len(cfg.Hosts)], tls: cfg.TLS}
}

// around creates the keys before and deletes them after.
func around(
	ctx context.Context, cfg *load.Config, api API, run func() (*load.Result, error),
) (*load.Result, error) {
	admin := newConn(cfg, 0)
	defer admin.close()
	err := api.clear(ctx, admin, cfg.Prefix)
	if err == nil {
		err = api.prepare(ctx, admin, cfg)
	}
	if err != nil {
		return nil, fmt.Errorf("creating the keys: %w", err)
	}
	res, err := run()
	if !cfg.Keep {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), clearTime)
		defer cancel()
		err = errors.Join(err, api.clear(ctx, admin, cfg.Prefix))
	}
	return res, err
}

// clearTime is how long a person may wait for the keys to be deleted.
const clearTime = time.Minute

// caller is one connection of Run.
type caller struct {
	conn   *conn
	api    API
	prefix string
}

// Do sends one request.
func (c *caller) Do(ctx context.Context, call load.Call) error {
	q := c.api.call(c.prefix, call)
	_, err := c.conn.do(ctx, &q)
	return err
}

// Close ends the connection.
func (c *caller) Close() error {
	c.conn.close()
	return nil
}

// Locks acquires and releases locks: each of Connections has a session and a lock of its own,
// so that no one waits. One operation is both requests.
func Locks(ctx context.Context, cfg load.Config, api API) (*load.Result, error) {
	cfg.Mix, cfg.Keys = load.Mix{{Op: load.Lock, Weight: 1}}, 1
	if err := check(&cfg); err != nil {
		return nil, err
	}
	res, err := around(ctx, &cfg, api, func() (*load.Result, error) {
		return load.RunCallers(ctx, cfg, func(i int) (load.Caller, error) {
			c := &locker{caller: caller{newConn(&cfg, i), api, cfg.Prefix}}
			c.path = cfg.Prefix + "/lock" + strconv.Itoa(i)
			var err error
			c.owner, err = api.owner(ctx, c.conn)
			return c, err
		})
	})
	if res != nil {
		res.Kind, res.Config.Mix = "locks", nil
	}
	return res, err
}

// locker is one connection of Locks.
type locker struct {
	caller
	owner, path string
}

// Do takes the lock and gives it back.
func (c *locker) Do(ctx context.Context, _ load.Call) error {
	back, err := c.api.lock(ctx, c.conn, c.owner, c.path)
	if err != nil {
		return err
	}
	_, err = c.conn.do(ctx, &back)
	return err
}

// Close ends the session and the connection.
func (c *locker) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), dialTimeout)
	defer cancel()
	err := c.api.disown(ctx, c.conn, c.owner)
	c.conn.close()
	return err
}
