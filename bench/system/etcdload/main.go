// Command etcdload puts the loads of bench/load on etcd, with etcd's own client,
// for the program bench. It reads a load.Config as JSON from standard input, writes
// the load.Result as JSON to standard output, and "begin" and "end" to standard
// error around the measured time.
//
//	etcdload load    a closed loop, or an open one
//	etcdload fill    Keys keys in transactions, left there
//	etcdload churn   leases that are granted, have a key put, and are revoked
//	etcdload failover   a closed loop of clients of all servers, one of which something kills
//
// The operations of etcd for those of ZooKeeper: for set a Put, for create a transaction that
// puts a key which does not exist, for get a Get. Gets are serializable, as ZooKeeper's and
// zk-lite's are: the server answers from its applied state. Each connection is a client of its
// own with one endpoint.
//
// It is a module of its own: etcd's dependencies stay out of zk-lite's.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"github.com/zk-lite/zk-lite/bench/load"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "etcdload:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 1 {
		return errors.New("want one argument, load, fill, churn or failover")
	}
	var cfg load.Config
	if err := json.NewDecoder(os.Stdin).Decode(&cfg); err != nil {
		return fmt.Errorf("reading the configuration: %w", err)
	}
	if err := cfg.Check(); err != nil {
		return err
	}
	cfg.Measured = func(begun bool) {
		word := "end"
		if begun {
			word = "begin"
		}
		fmt.Fprintln(os.Stderr, word)
	}
	keys := make([]string, cfg.Keys)
	for i := range keys {
		keys[i] = fmt.Sprintf("%s/d%d/k%d", cfg.Prefix, i/1000, i)
	}
	ctx := context.Background()
	start := time.Now()
	var res *load.Result
	var err error
	if !cfg.Reuse {
		if err = fill(ctx, &cfg, keys); err != nil {
			return err
		}
	}
	switch args[0] {
	case "fill":
		res = &load.Result{Kind: "fill", Started: start, Config: cfg, Elapsed: time.Since(start)}
		res.Total.PerSecond = float64(cfg.Keys) / res.Elapsed.Seconds()
		for _, pid := range cfg.PIDs {
			p, err := load.ReadProcess(pid)
			if err != nil {
				return err
			}
			res.Servers = append(res.Servers, p)
		}
	case "load", "churn":
		if args[0] == "churn" {
			cfg.Mix = load.Mix{{Op: load.Session, Weight: 1}}
		}
		res, err = load.RunCallers(ctx, cfg, func(conn int) (load.Caller, error) {
			c, err := dial(cfg.Hosts[conn%len(cfg.Hosts)])
			return &caller{client: c, keys: keys, prefix: cfg.Prefix + "/new/"}, err
		})
		if err == nil {
			err = remove(ctx, &cfg)
		}
		if args[0] == "churn" && res != nil {
			res.Kind, res.Config.Mix = "sessions", nil // not one that could be asked for
		}
	case "failover":
		res, err = failover(ctx, cfg, keys)
	default:
		err = fmt.Errorf("%q is unknown; there are load, fill, churn and failover", args[0])
	}
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(res)
}

func dial(endpoints ...string) (*clientv3.Client, error) {
	return clientv3.New(clientv3.Config{Endpoints: endpoints, DialTimeout: 5 * time.Second,
		Logger: zap.NewNop()})
}

// caller is one connection.
type caller struct {
	client *clientv3.Client
	keys   []string
	prefix string // of the keys that Create makes
}

var errExists = errors.New("the key exists")

// Do sends one request.
func (c *caller) Do(ctx context.Context, call load.Call) error {
	var key string
	if call.New != "" {
		key = c.prefix + call.New
	} else {
		key = c.keys[call.Key]
	}
	switch call.Op {
	case load.Session:
		return c.session(ctx, call)
	case load.Get:
		_, err := c.client.Get(ctx, key, clientv3.WithSerializable())
		return err
	case load.Set:
		_, err := c.client.Put(ctx, key, string(call.Data))
		return err
	case load.Create:
		answer, err := c.client.Txn(ctx).If(clientv3.Compare(clientv3.Version(key), "=", 0)).
			Then(clientv3.OpPut(key, string(call.Data))).Commit()
		if err == nil && !answer.Succeeded {
			err = errExists
		}
		return err
	}
	return fmt.Errorf("etcd has no counterpart of %s here", call.Op)
}

// leaseSeconds is the time to live of leases, that of the sessions they stand for.
const leaseSeconds = 30

// session is a lease with a key, which are granted, put and revoked.
func (c *caller) session(ctx context.Context, call load.Call) error {
	lease, err := c.client.Grant(ctx, leaseSeconds)
	if err != nil {
		return err
	}
	key := fmt.Sprintf("%ssession-%d", c.prefix, lease.ID)
	if _, err := c.client.Put(ctx, key, string(call.Data), clientv3.WithLease(lease.ID)); err != nil {
		return err
	}
	_, err = c.client.Revoke(ctx, lease.ID)
	return err
}

// Close ends the connection.
func (c *caller) Close() error { return c.client.Close() }

// fillOps is below etcd's limit for a transaction, 128 operations.
const fillOps = 100

// fillAhead is how many transactions are under way at once, as in load.Fill.
const fillAhead = 8

// fill creates the keys.
func fill(ctx context.Context, cfg *load.Config, keys []string) error {
	client, err := dial(cfg.Hosts[0])
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }() // the results no longer depend on it
	data := string(make([]byte, cfg.ValueSize))
	var group errgroup.Group
	group.SetLimit(fillAhead)
	for len(keys) > 0 {
		n := min(fillOps, len(keys))
		var ops []clientv3.Op
		for _, key := range keys[:n] {
			ops = append(ops, clientv3.OpPut(key, data))
		}
		keys = keys[n:]
		group.Go(func() error {
			_, err := client.Txn(ctx).Then(ops...).Commit()
			return err
		})
	}
	return group.Wait()
}

// remove deletes the keys that the load has left; of one that keeps its keys, those that it has created.
func remove(ctx context.Context, cfg *load.Config) error {
	client, err := dial(cfg.Hosts[0])
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }() // the results no longer depend on it
	prefix := cfg.Prefix + "/"
	if cfg.Keep {
		prefix += "new/"
	}
	_, err = client.Delete(ctx, prefix, clientv3.WithPrefix())
	return err
}
