package failover_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/integration/check"
	"github.com/zk-lite/zk-lite/integration/cluster"
	"github.com/zk-lite/zk-lite/internal/testkit/seed"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
	"github.com/zk-lite/zk-lite/znode"
)

// bank is accounts between which clients transfer by Client.Transact, and what they saw of it. The data of an account is
// its balance and a text that no other write has.
type bank struct {
	t     *testing.T
	begun time.Time
	done  atomic.Int64 // transactions that were answered

	mu sync.Mutex // protects the field below
	h  check.History
}

const (
	accounts  = 4
	balance   = 100                    // of each at the beginning
	marker    = "/bank/marker"         // exists now and then
	perRound  = 60                     // transactions of a client between two kills
	tellers   = 4                      // clients
	longPause = 100 * time.Millisecond // the longest pause between two attempts to connect
)

var errPoor = errors.New("the account has not so much")

func account(i int) string { return fmt.Sprint("/bank/", i) }

func (b *bank) record(o check.Op) {
	b.mu.Lock()
	defer b.mu.Unlock()
	o.ID = len(b.h.Ops)
	b.h.Ops = append(b.h.Ops, o)
}

// run runs a transaction, and records what its last run read and changed as a multi.
func (b *bank) run(ctx context.Context, c *client.Client, teller int, fn func(x *recorded) error) {
	o := check.Op{Client: teller, Kind: check.Multi, Outcome: check.OK, Call: time.Since(b.begun)}
	err := c.Transact(ctx, func(tx *client.Tx) error {
		x := &recorded{Tx: tx, ctx: ctx}
		err := fn(x)
		o.Ops = append(x.reads, x.writes...)
		return err
	})
	o.Return = time.Since(b.begun)
	switch {
	case err == errPoor: // it has read the newest state
	case errors.Is(err, client.ErrOutcomeUnknown):
		o.Outcome = check.Unknown
	case errors.Is(err, client.ErrConnectionLoss), errors.Is(err, client.ErrSessionExpired):
		return // it has not happened
	case err != nil:
		b.t.Errorf("teller %d: %v", teller, err)
		return
	}
	b.record(o)
	b.done.Add(1)
}

// recorded is a Tx that notes what it does.
type recorded struct {
	*client.Tx
	ctx           context.Context
	reads, writes []check.Op
}

func (x *recorded) read(path string) (data string, exists bool, err error) {
	b, err := x.Get(x.ctx, path)
	switch {
	case errors.Is(err, client.ErrNoNode):
		x.reads = append(x.reads, check.Op{Kind: check.Exists, Path: path, Outcome: check.Failed})
		return "", false, nil
	case err != nil:
		return "", false, err
	}
	x.reads = append(x.reads, check.Op{Kind: check.Get, Path: path, Outcome: check.OK, Data: string(b)})
	return string(b), true, nil
}

func (x *recorded) amount(i int) (int, error) {
	text, _, err := x.read(account(i))
	if err != nil {
		return 0, err
	}
	number, _, _ := strings.Cut(text, " ")
	return strconv.Atoi(number)
}

func (x *recorded) set(i, amount int, unique string) {
	value := fmt.Sprint(amount, " ", unique)
	x.Set(account(i), []byte(value))
	x.writes = append(x.writes, check.Op{Kind: check.Set, Path: account(i), Value: value, Version: znode.AnyVersion})
}

// teller transfers, adds up all accounts, and makes or removes the marker.
func (b *bank) teller(ctx context.Context, c *client.Client, n, round int, r *rand.Rand) {
	for k := range perRound {
		unique := fmt.Sprintf("%d-%d-%d", round, n, k)
		from, to, sum := r.IntN(accounts), r.IntN(accounts), r.IntN(balance)
		b.run(ctx, c, n, func(x *recorded) error {
			switch r.IntN(4) {
			case 0:
				return b.audit(x)
			case 1:
				return mark(x, unique)
			}
			have, err := x.amount(from)
			switch {
			case err != nil || from == to:
				return err
			case have < sum:
				return errPoor
			}
			other, err := x.amount(to)
			if err != nil {
				return err
			}
			x.set(from, have-sum, unique+" from")
			x.set(to, other+sum, unique+" to")
			return nil
		})
	}
}

// audit adds up. A run that saw accounts of two states would fail here even if it is not the last.
func (b *bank) audit(x *recorded) error {
	total := 0
	for i := range accounts {
		have, err := x.amount(i)
		if err != nil {
			return err
		}
		total += have
	}
	if total != accounts*balance {
		b.t.Errorf("a transaction sees %d in all accounts, want %d: %+v", total, accounts*balance, x.reads)
	}
	return nil
}

// mark makes the marker if it is not there and the first account is rich, and removes it otherwise.
func mark(x *recorded, unique string) error {
	have, err := x.amount(0)
	if err != nil {
		return err
	}
	_, exists, err := x.read(marker)
	switch {
	case err != nil:
		return err
	case exists:
		x.Delete(marker)
		x.writes = append(x.writes, check.Op{Kind: check.Delete, Path: marker, Version: znode.AnyVersion})
	case have >= balance:
		x.Create(marker, []byte(unique), client.Persistent)
		x.writes = append(x.writes, check.Op{Kind: check.Create, Path: marker, Value: unique})
	}
	return nil
}

// TestFailover_Transact kills the leader while clients transfer between accounts in transactions. There is one order of
// all transactions, those that only read included, that fits real time and explains what each has read; and no run of
// one sees two states.
func TestFailover_Transact(t *testing.T) {
	r := rand.New(rand.NewPCG(seed.Of(t), 0))
	e := start(t, 3, cluster.Options{})
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	b := &bank{t: t, begun: time.Now()}
	var clients []*client.Client
	for range tellers {
		c, err := client.Connect(ctx, e.ConnectString(), client.WithBackoff(10*time.Millisecond, longPause))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		clients = append(clients, c)
	}
	if err := clients[0].EnsurePath(ctx, "/bank", client.Persistent); err != nil {
		t.Fatal(err)
	}
	for i := range accounts {
		o := check.Op{Kind: check.Create, Path: account(i), Value: fmt.Sprint(balance, " ", i), Outcome: check.OK, Call: time.Since(b.begun)}
		if _, _, err := clients[0].Create(ctx, o.Path, []byte(o.Value), client.Persistent); err != nil {
			t.Fatal(err)
		}
		o.Return = time.Since(b.begun)
		b.record(o)
	}
	for round := range rounds(t, 3) {
		before := b.done.Load()
		var running sync.WaitGroup
		for n, c := range clients {
			mine := rand.New(rand.NewPCG(r.Uint64(), 0))
			running.Go(func() { b.teller(ctx, c, n, round, mine) })
		}
		wait.Until(t, "a quarter of the transactions", func() bool { return b.done.Load()-before > perRound*tellers/4 })
		leader := e.Leader()
		leader.Kill()
		running.Wait()
		leader.Start()
		e.WaitServing()
	}
	violations, stats := check.Linearizable(&b.h)
	for _, v := range violations {
		t.Errorf("%v, want one order of all transactions", v)
	}
	unknown := 0
	for i := range b.h.Ops {
		if b.h.Ops[i].Outcome == check.Unknown {
			unknown++
		}
	}
	t.Logf("%d transactions, %d of them without an answer; %+v", len(b.h.Ops)-accounts, unknown, stats)
	if stats.Groups != 1 || stats.Undecided != 0 || len(b.h.Ops) < perRound*tellers {
		t.Errorf("%d operations, %+v, want them all judged, in one group", len(b.h.Ops), stats)
	}
	// The check would notice a transaction with an old read.
	for i, o := range slices.Backward(b.h.Ops) {
		if o.Outcome == check.OK && len(o.Ops) > 0 && o.Ops[0].Kind == check.Get && o.Ops[0].Data != fmt.Sprint(balance, " ", o.Ops[0].Path[len("/bank/"):]) {
			b.h.Ops[i].Ops[0].Data = fmt.Sprint(balance, " ", o.Ops[0].Path[len("/bank/"):])
			break
		}
	}
	if violations, _ := check.Linearizable(&b.h); len(violations) == 0 {
		t.Error("a read of the first state in one of the last transactions was not noticed")
	}
	e.CheckReplicas()
}
