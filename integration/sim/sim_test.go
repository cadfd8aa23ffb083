//go:debug randseednop=0

package sim

import (
	"context"
	"fmt"
	"maps"
	"math/rand"
	mathrand "math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/cryptotest"
	"testing/synctest"
	"time"

	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/integration/check"
	"github.com/zk-lite/zk-lite/internal/testkit/clock"
	"github.com/zk-lite/zk-lite/internal/testkit/slowdisk"
	"github.com/zk-lite/zk-lite/znode"
)

// options are what one simulation runs with; the rest comes from its seed.
type options struct {
	servers, clients int
	duration         time.Duration
	think            int                // ms between two rounds of a client, at most
	pipeline         int                // requests at once, at most
	snapshot         int                // commands between snapshots
	changes          int64              // bytes of changes that a server keeps; 0: the default
	disks            []slowdisk.Profile // of the servers; the last is that of all that follow

	noPush, noOverlap, noFailover bool

	local bool // new sessions are local, and upgraded
	log   bool
}

func optionsOf(seed uint64) options {
	o := options{
		servers: *flagServers, clients: *flagClients, duration: *flagDuration,
		think: 400, pipeline: 4, log: *flagLog,
	}
	if o.servers == 0 {
		o.servers = 3
		if seed%4 == 3 {
			o.servers = 5
		}
	}
	o.snapshot = []int{100_000, 2000, 300}[seed%3]
	o.changes = []int64{0, 100_000, 10_000}[seed/3%3]
	if seed%2 == 0 {
		o.think = 80
	}
	o.disks = disksOf(seed)
	switch seed % 10 { // the ideas of package peer have switches: without them must work too
	case 6:
		o.local = true
	case 7:
		o.noPush = true
	case 8:
		o.noOverlap = true
	case 9:
		o.noFailover = true
	}
	return o
}

// disksOf draws how long syncs take, on all disks or on one among faster ones.
func disksOf(seed uint64) []slowdisk.Profile {
	rng, all := mathrand.New(mathrand.NewPCG(seed, 9)), slowdisk.Profiles()
	p := all[rng.IntN(len(all))]
	if rng.IntN(4) > 0 {
		return []slowdisk.Profile{p}
	}
	return []slowdisk.Profile{p, all[0]}
}

// healLimit is how long an ensemble may take, once everything works again, until every server takes
// writes: a few elections, and the longest wait of a server that has been alone.
const healLimit = 30 * time.Second

// outcome is what came of one seed, or of several. It is exported to JSON.
type outcome struct {
	Violations []check.Violation
	Seeds      int
	Ops        int
	Unknown    int // of them, those without an answer
	Linear     check.LinearStats
	Events     int
	Changes    int
	Ends       map[check.End]int
	Holds      int
	Rights     int // operations with ACLs
	Again      int // watches set again
	Expired    int // TTL znodes and containers that went
	Virtual    time.Duration
	Counts     map[string]int // of faults, and of what else was tried
	Healed     time.Duration  // until every server took a write, at most
	Stuck      int            // bubbles that ended with raft's stuck transfer
}

func newOutcome() outcome {
	return outcome{Counts: map[string]int{}, Ends: map[check.End]int{}}
}

func (a *outcome) add(b *outcome) {
	a.Seeds += b.Seeds
	a.Ops += b.Ops
	a.Unknown += b.Unknown
	a.Linear.Ops += b.Linear.Ops
	a.Linear.Groups += b.Linear.Groups
	a.Linear.Undecided += b.Linear.Undecided
	a.Events += b.Events
	a.Changes += b.Changes
	a.Holds += b.Holds
	a.Rights += b.Rights
	a.Again += b.Again
	a.Expired += b.Expired
	a.Virtual += b.Virtual
	a.Healed = max(a.Healed, b.Healed)
	a.Stuck += b.Stuck
	for k, n := range b.Counts {
		a.Counts[k] += n
	}
	for k, n := range b.Ends {
		a.Ends[k] += n
	}
}

// threads is how many threads run a seed's goroutines. One is much faster: with two they spend a fifth
// of their time waking each other. But only with two does a goroutine get between any two steps of
// another, so some seeds have them.
func threads(seed uint64) int {
	if seed%8 == 5 {
		return 2
	}
	return 1
}

// simulate runs one seed in a bubble, and judges outside of it.
func simulate(t *testing.T, opt options, seed uint64) outcome {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(threads(seed)))
	var out outcome
	var w *world
	var h *check.History
	stuck := 0
	func() {
		defer forgiveStuckTransfer(&stuck)
		synctest.Test(t, func(t *testing.T) {
			cryptotest.SetGlobalRandom(t, seed)
			rand.Seed(int64(seed)) //nolint:staticcheck // raft's timeouts; see the directive at the top
			w = newWorld(opt, seed)
			out, h = live(w)
		})
	}()
	out.Seeds, out.Stuck = 1, stuck
	linear, stats := check.Linearizable(h)
	out.Linear = stats
	out.Violations = append(out.Violations, linear...)
	for _, judge := range []func(*check.History) []check.Violation{
		check.Sessions, check.Once, check.Watches, check.Ephemerals, check.Sequences, check.Tokens, check.Feeds,
	} {
		out.Violations = append(out.Violations, judge(h)...)
	}
	out.Violations = append(out.Violations, judgeRights(&w.rights)...)
	out.Violations = append(out.Violations, judgeAgain(&w.again, h)...)
	early, gone := judgeExpiring(&w.expiring, h)
	out.Violations = append(out.Violations, early...)
	out.Expired = gone
	out.Rights, out.Again = len(w.rights.ops), len(w.again.list)
	out.Ops, out.Events, out.Changes, out.Holds = len(h.Ops), len(h.Events), len(h.Changes), len(h.Holds)
	for _, s := range h.Sessions {
		out.Ends[s.Ended]++
	}
	for i := range h.Ops {
		if h.Ops[i].Outcome == check.Unknown {
			out.Unknown++
		}
	}
	return out
}

// forgiveStuckTransfer recovers from the panic of a bubble that ends while goroutines are blocked, if
// they are all those of hashicorp/raft's issue 696: a leader that steps down during a transfer may
// leave its two goroutines behind for good, and with them the one that waits for the transfer's end.
// Package consensus has the server end itself when that matters; a simulated process cannot take its
// goroutines along.
func forgiveStuckTransfer(forgiven *int) {
	broken := recover()
	if broken == nil {
		return
	}
	stacks := make([]byte, 16<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	var others []string
	for _, g := range strings.Split(string(stacks), "\n\n") {
		head, _, _ := strings.Cut(g, "\n")
		if strings.Contains(head, "synctest bubble") && !strings.Contains(g, "raft.(*Raft).leadershipTransfer") &&
			!strings.Contains(g, "raft.(*Raft).leaderLoop.func") &&
			!strings.Contains(g, "membership.(*leader).transfer.func") {
			others = append(others, g)
		}
	}
	if len(others) > 0 {
		panic(fmt.Sprint(broken, "\n", strings.Join(others, "\n\n")))
	}
	if !strings.Contains(fmt.Sprint(broken), "blocked goroutines remain") {
		panic(broken)
	}
	*forgiven++
}

// live is a world's life: clients and servers start, work, suffer faults, and are healed.
func live(w *world) (outcome, *check.History) {
	for _, m := range w.servers {
		w.boot(m)
	}
	first := make(chan struct{})
	setup := newClient(w, 0, first)
	setup.prepare()
	close(first)

	stop := make(chan struct{})
	var clients sync.WaitGroup
	for i := range w.opt.clients {
		c := newClient(w, i+1, stop)
		clients.Go(c.run)
	}
	var following []*follower
	for i := range followers {
		f := newFollower(w, i)
		following = append(following, f)
		clients.Go(func() { f.run(stop) })
	}
	w.harass(w.opt.duration)
	w.heal()
	w.complete()
	out := newOutcome()
	out.Counts = w.counts
	out.Counts[fmt.Sprintf("seed with syncs of %v", w.opt.disks)]++
	out.Healed = w.available()
	clock.Sleep(time.Duration(w.rng.IntN(3000)) * time.Millisecond)
	close(stop)
	clients.Wait()
	w.reaped()
	final, zxid := w.agree()
	for _, f := range following {
		f.finish(zxid)
	}
	out.Virtual = w.now()
	for _, m := range w.servers {
		m.busy <- struct{}{}
		m.stop()
		<-m.busy
	}
	w.ended.Wait()
	maps.Copy(out.Counts, w.net.counts)
	h := w.history(final, zxid)
	h.Feeds = feeds(following, zxid, out.Counts)
	out.Violations = append(w.record.violations, w.compare(h)...)
	return out, h
}

// prepare makes the znodes that all work below, and those with ACLs.
func (c *client) prepare() {
	acls := map[string][]znode.ACL{rightsPath: grant(znode.PermRead), secretPath: grant(0)}
	paths := append(parents(), expiringPath, rightsPath, secretPath)
	for i := range rightsCount {
		path := fmt.Sprintf("%s/k%d", rightsPath, i)
		acls[path], paths = grant(0), append(paths, path)
	}
	for _, path := range paths {
		acl := acls[path]
		if acl == nil {
			acl = znode.OpenACL
		}
		for made := false; !made; {
			x := c.connect(-1)
			k, ok := x.send(check.Op{Kind: check.Create, Path: path, Value: c.value()}, &state.Command{
				Op: state.OpCreate, Path: path, Data: []byte(fmt.Sprintf("c%d-%d", c.id, c.values)), ACL: acl,
			})
			made = ok && x.await(k) && (k.op.Code == znode.OK || k.op.Code == znode.ErrNodeExists)
			x.close()
		}
	}
}

// available checks that every server takes a session and a write again.
func (w *world) available() time.Duration {
	begin := time.Now()
	var all sync.WaitGroup
	for i := range w.servers {
		all.Go(func() {
			stop := make(chan struct{})
			done := make(chan struct{})
			c := newClient(w, 1000+i, stop)
			go func() {
				defer close(done)
				for !c.stopped() {
					x := c.connect(i)
					if x == nil {
						return
					}
					calls, ok := c.one(x, check.Op{Kind: check.Create, Mode: znode.PersistentSequential,
						Path: "/q0/n-", Value: c.value()})
					ok = ok && x.await(calls...) && calls[0].op.Outcome == check.OK
					c.closeSession(x)
					x.close()
					if ok {
						return
					}
				}
			}()
			limit := time.NewTimer(healLimit)
			defer limit.Stop()
			select {
			case <-done:
			case <-limit.C:
				w.record.violation("Availability", "server %d took no write within %v of the end of all "+
					"faults at %v: %s", i, healLimit, w.now(), w.stand())
				close(stop)
				<-done
			}
		})
	}
	all.Wait()
	return time.Since(begin)
}

// stand says how the servers see the ensemble.
func (w *world) stand() string {
	var b strings.Builder
	for i, m := range w.servers {
		if l := m.running(); l != nil {
			fmt.Fprintf(&b, "[%d: %+v index %d] ", i, l.node.Status(), w.applied(l))
		} else {
			fmt.Fprintf(&b, "[%d: down] ", i)
		}
	}
	return b.String()
}

// agree waits until all replicas have applied the same, compares them, and returns the tree.
func (w *world) agree() ([]check.Znode, znode.Zxid) {
	ctx, cancel := context.WithTimeout(context.Background(), healLimit)
	defer cancel()
	for w.converged(ctx) {
		digests := map[[2]uint64][]int{}
		var final []check.Znode
		var zxid znode.Zxid
		zxids := map[znode.Zxid]bool{}
		for i, m := range w.servers {
			z, d := m.running().srv.Digest()
			digests[[2]uint64{uint64(z), d}] = append(digests[[2]uint64{uint64(z), d}], i)
			zxids[z] = true
			if i == 0 {
				final, zxid = w.final(m.running())
			}
		}
		if len(zxids) > 1 || !zxids[zxid] {
			continue // something has been applied meanwhile
		}
		if len(digests) > 1 {
			w.record.violation("Replicas", "different states at the same index: %v", digests)
		}
		return final, zxid
	}
	w.record.violation("Availability", "the servers have not come to the same state within %v: %s", healLimit, w.stand())
	return nil, 0
}

// compare checks whether the reported changes lead to the present tree.
func (w *world) compare(h *check.History) (list []check.Violation) {
	if h.Final == nil {
		return nil
	}
	tree := map[string]string{}
	for _, c := range h.Changes {
		if c.Type == znode.EventDeleted {
			delete(tree, c.Path)
		} else {
			tree[c.Path] = c.Value
		}
	}
	for _, z := range h.Final {
		if strings.HasPrefix(z.Path, "/zookeeper") || z.Path == "/" {
			continue
		}
		if v, ok := tree[z.Path]; !ok || v != z.Value {
			list = append(list, check.Violation{Guarantee: "Durability",
				What: fmt.Sprintf("%s holds %q, and the log left %q (%v)", z.Path, z.Value, v, ok)})
		}
		delete(tree, z.Path)
	}
	for path := range tree {
		if !strings.HasPrefix(path, "/zookeeper") {
			list = append(list, check.Violation{Guarantee: "Durability", What: path + " was made, and is not there"})
		}
	}
	return list
}
