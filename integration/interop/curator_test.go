//go:build interop

package interop_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/integration/cluster"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
	"github.com/zk-lite/zk-lite/recipes"
)

// pair is what the tests with Curator have: a Java process and Go clients, on the same
// ensemble and, in each test, the same path.
type pair struct {
	*testing.T
	ctx  context.Context
	e    *cluster.Ensemble
	c    *client.Client
	peer *peer
	path string
}

// TestInterop_Curator lets Go recipes and Curator's compete for the same things.
func TestInterop_Curator(t *testing.T) {
	e := ensemble(t)
	ctx, cancel := context.WithTimeout(t.Context(), programPatience)
	defer cancel()
	c, err := client.Connect(ctx, e.ConnectString(), client.WithSessionTimeout(10*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	java := startPeer(t, e)
	for _, test := range []struct {
		name string
		run  func(*pair)
	}{
		{"Mutex", (*pair).mutex},
		{"Mutex try and revoke", (*pair).revoke},
		{"LeaderSelector", (*pair).leaderSelector},
		{"RWMutex", (*pair).rwMutex},
		{"Semaphore", (*pair).semaphore},
		{"Election", (*pair).election},
		{"Barrier", (*pair).barrier},
		{"DoubleBarrier", (*pair).doubleBarrier},
		{"Group", (*pair).group},
		{"Counter", (*pair).counter},
		{"Config", (*pair).config},
		{"Queue", (*pair).queue},
		{"PriorityQueue", (*pair).priorityQueue},
		{"DelayQueue", (*pair).delayQueue},
		{"caches", (*pair).caches},
		{"servers die", (*pair).serversDie}, // the last, because the others wait less
	} {
		t.Run(test.name, func(t *testing.T) {
			p := &pair{T: t, ctx: ctx, e: e, c: c, path: "/curator-" + strings.ReplaceAll(test.name, " ", "-")}
			was := java.t
			java.t = t
			defer func() { java.t = was }()
			p.peer = java
			test.run(p)
		})
	}
	atRest(t, e)
}

func (p *pair) no(err error) {
	p.Helper()
	if err != nil {
		p.Fatal(err)
	}
}

// result is what a call in another goroutine ends with.
type result[T any] struct {
	v   T
	err error
}

// async makes a call in another goroutine.
func async[T any](call func() (T, error)) <-chan result[T] {
	c := make(chan result[T], 1)
	go func() {
		v, err := call()
		c <- result[T]{v, err}
	}()
	return c
}

// await waits for the end of such a call.
func await[T any](p *pair, c <-chan result[T]) T {
	p.Helper()
	select {
	case r := <-c:
		p.no(r.err)
		return r.v
	case <-p.ctx.Done():
		p.Fatal(p.ctx.Err())
		panic("unreachable")
	}
}

// children waits until a znode has so many children.
func (p *pair) children(path string, n int) {
	p.Helper()
	wait.Succeeds(p, fmt.Sprintf("%s has %d children", path, n), func() error {
		p.no(p.c.Sync(p.ctx, path))
		names, _, err := p.c.Children(p.ctx, path)
		if err != nil && !errors.Is(err, client.ErrNoNode) || len(names) != n {
			return fmt.Errorf("it has %v, %w", names, err)
		}
		return nil
	})
}

// pending fails the test if a call has ended.
func pending[T any](p *pair, c <-chan result[T]) {
	p.Helper()
	if len(c) > 0 {
		p.Fatalf("got %+v, and it is not its turn", <-c)
	}
}

// Go, Curator, Go, Curator stand in one line, and have the lock in this order.
func (p *pair) mutex() {
	m := recipes.NewMutex(p.c, p.path)
	first, err := m.Lock(p.ctx)
	p.no(err)
	second := p.peer.begin("mutex", p.path)
	p.children(p.path, 2)
	third := async(func() (*recipes.Grant, error) { return m.Lock(p.ctx) })
	p.children(p.path, 3)
	fourth := p.peer.begin("mutex", p.path)
	p.children(p.path, 4)
	p.peer.begin("participants", p.path).expect("4")
	second.silent()
	p.no(first.Release(p.ctx))
	second.expect("held")
	pending(p, third)
	fourth.silent()
	second.release()
	g := await(p, third)
	if g.FencingToken() <= first.FencingToken() {
		p.Errorf("token %d after %d", g.FencingToken(), first.FencingToken())
	}
	fourth.silent()
	p.no(g.Release(p.ctx))
	fourth.expect("held")
	fourth.release()
	p.children(p.path, 0)
}

// Neither gets what the other has, and each understands the other's wish.
func (p *pair) revoke() {
	m := recipes.NewMutex(p.c, p.path)
	g, err := m.Lock(p.ctx)
	p.no(err)
	p.peer.begin("try", p.path).expect("refused")
	p.peer.begin("revoke", p.path).expect("asked")
	select {
	case <-g.Revoked():
	case <-p.ctx.Done():
		p.Fatal("Curator's Revoker is not heard")
	}
	p.no(g.Release(p.ctx))
	d := p.peer.begin("mutex", p.path)
	d.expect("held")
	if _, err := m.TryLock(p.ctx); !errors.Is(err, recipes.ErrNotAcquired) {
		p.Errorf("TryLock: %v, want %v", err, recipes.ErrNotAcquired)
	}
	p.no(m.Revoke(p.ctx))
	d.expect("revoked")
	d.release()
}

// LeaderSelector is a mutex with names, so a Mutex competes with it.
func (p *pair) leaderSelector() {
	m := recipes.NewMutex(p.c, p.path)
	g, err := m.Lock(p.ctx)
	p.no(err)
	d := p.peer.begin("selector", p.path)
	p.children(p.path, 2)
	last := async(func() (*recipes.Grant, error) { return m.Lock(p.ctx) })
	p.children(p.path, 3)
	d.silent()
	p.no(g.Release(p.ctx))
	d.expect("held")
	list, err := m.Participants(p.ctx)
	p.no(err)
	if string(list[0].Data) != "curator-"+d.id {
		p.Errorf("the holder is %q", list[0].Data)
	}
	pending(p, last)
	d.release()
	p.no(await(p, last).Release(p.ctx))
}

// Readers of both share, writers of both do not, and no reader overtakes a writer.
func (p *pair) rwMutex() {
	l := recipes.NewRWMutex(p.c, p.path)
	rlock := func() (*recipes.Grant, error) { return l.RLock(p.ctx) }
	r1, err := rlock()
	p.no(err)
	r2 := p.peer.begin("read", p.path)
	r2.expect("held") // both read
	w3 := p.peer.begin("write", p.path)
	p.children(p.path, 3)
	r4 := async(rlock) // behind the writer
	p.children(p.path, 4)
	w5 := async(func() (*recipes.Grant, error) { return l.Lock(p.ctx) })
	p.children(p.path, 5)
	r6 := p.peer.begin("read", p.path)
	p.children(p.path, 6)
	p.no(r1.Release(p.ctx))
	w3.silent()
	r2.release()
	w3.expect("held")
	pending(p, r4)
	w3.release()
	g4 := await(p, r4)
	pending(p, w5)
	p.no(g4.Release(p.ctx))
	g5 := await(p, w5)
	r6.silent()
	// Downgraded, the writer reads together with the reader behind it.
	down, err := l.Downgrade(p.ctx, g5)
	p.no(err)
	r6.expect("held")
	p.no(down.Release(p.ctx))
	r6.release()
}

// Two places, taken by both, and given in turn.
func (p *pair) semaphore() {
	s := recipes.NewSemaphore(p.c, p.path, 2)
	acquire := func() (*recipes.Grant, error) { return s.Acquire(p.ctx) }
	g1, err := acquire()
	p.no(err)
	d2 := p.peer.begin("semaphore", p.path, 2)
	d2.expect("held")
	if _, err := s.TryAcquire(p.ctx); !errors.Is(err, recipes.ErrNotAcquired) {
		p.Errorf("a third place: %v", err)
	}
	d3 := p.peer.begin("semaphore", p.path, 2)
	p.children(p.path+"/locks", 1) // the waiters
	g4 := async(acquire)
	p.children(p.path+"/locks", 2)
	d3.silent()
	p.no(g1.Release(p.ctx))
	d3.expect("held")
	pending(p, g4)
	d2.release()
	p.no(await(p, g4).Release(p.ctx))
	d3.release()
	p.children(p.path+"/leases", 0)
}

// Candidates of both lead in turn, and each sees the other.
func (p *pair) election() {
	e := recipes.NewElection(p.c, p.path, recipes.WithData([]byte("go")))
	first, err := e.Campaign(p.ctx)
	p.no(err)
	second := p.peer.begin("latch", p.path)
	p.children(p.path, 2)
	third := async(func() (*recipes.Term, error) { return e.Campaign(p.ctx) })
	p.children(p.path, 3)
	second.eventually("list", "go*,curator-"+second.id+",go")
	second.silent()
	p.no(first.Resign(p.ctx))
	second.expect("held")
	leader, err := e.Leader(p.ctx)
	p.no(err)
	if string(leader.Data) != "curator-"+second.id {
		p.Errorf("the leader is %q", leader.Data)
	}
	pending(p, third)
	second.release()
	p.no(await(p, third).Resign(p.ctx))
	p.children(p.path, 0)
}

// What one sets the other waits for, and removes.
func (p *pair) barrier() {
	b := recipes.NewBarrier(p.c, p.path)
	p.no(b.Set(p.ctx))
	d := p.peer.begin("wait", p.path)
	d.expect("waits")
	p.no(b.Remove(p.ctx))
	d.expect("passed")
	d = p.peer.begin("barrier", p.path)
	d.expect("set")
	waiting := async(func() (struct{}, error) { return struct{}{}, b.Wait(p.ctx) })
	p.no(p.c.Sync(p.ctx, p.path))
	pending(p, waiting)
	d.say("do remove")
	d.expect("removed")
	await(p, waiting)
}

// Two of Go and one of Curator go in together and out together, twice.
func (p *pair) doubleBarrier() {
	for round := range 2 {
		enter := func() (*recipes.Entered, error) {
			return recipes.NewDoubleBarrier(p.c, p.path, 3).Enter(p.ctx)
		}
		one := async(enter)
		p.children(p.path, 1)
		two := p.peer.begin("double", p.path, 3)
		p.children(p.path, 2)
		pending(p, one)
		two.silent()
		three := async(enter)
		in1, in3 := await(p, one), await(p, three)
		two.expect("held")
		leave := func(in *recipes.Entered) <-chan result[struct{}] {
			return async(func() (struct{}, error) { return struct{}{}, in.Leave(p.ctx) })
		}
		var out1, out3 <-chan result[struct{}]
		if round == 0 { // Curator's is the last to leave, then the first
			out1, out3 = leave(in1), leave(in3)
			pending(p, out1)
			pending(p, out3)
			two.say("do release")
		} else {
			two.say("do release")
			two.silent()
			out1, out3 = leave(in1), leave(in3)
		}
		await(p, out1)
		await(p, out3)
		two.expect("left")
		p.children(p.path, 0)
	}
}

// Each sees the members of the other, with data, and that they leave.
func (p *pair) group() {
	g := recipes.NewGroup(p.c, p.path)
	m, err := g.Join(p.ctx, "go", []byte("x"))
	p.no(err)
	d := p.peer.begin("group", p.path, "java")
	d.expect("held")
	d.eventually("list", "go=x,java=data of java")
	p.members(g, "go=x java=data of java")
	p.no(m.Set(p.ctx, []byte("y")))
	d.eventually("list", "go=y,java=data of java")
	p.no(m.Leave(p.ctx))
	d.eventually("list", "java=data of java")
	d.release()
	p.members(g, "")
}

func (p *pair) members(g *recipes.Group, want string) {
	p.Helper()
	wait.Succeeds(p, "the members are "+want, func() error {
		list, err := g.Members(p.ctx)
		p.no(err)
		got := ""
		for i, m := range list {
			if i > 0 {
				got += " "
			}
			got += m.Name + "=" + string(m.Data)
		}
		if got != want {
			return errors.New(got)
		}
		return nil
	})
}

// DistributedAtomicLong and Counter add to one number.
func (p *pair) counter() {
	n := recipes.NewCounter(p.c, p.path)
	p.peer.begin("atomic", p.path, 5).expect("5")
	sum, err := n.Add(p.ctx, -7)
	p.no(err)
	if sum != -2 {
		p.Errorf("the sum is %d, want -2", sum)
	}
	p.peer.begin("atomic", p.path, 1).expect("-1")
	var deeds []*deed
	for range 5 { // at the same time
		deeds = append(deeds, p.peer.begin("atomic", p.path, 10))
	}
	for range 20 {
		_, err := n.Add(p.ctx, 1)
		p.no(err)
	}
	added := int64(0)
	for _, d := range deeds {
		if d.next() != "not added" { // it tries only once before its policy says no
			added += 10
		}
	}
	if v, err := n.Get(p.ctx); err != nil || v != 19+added {
		p.Errorf("the sum is %d, %v; want %d", v, err, 19+added)
	}
}

// SharedCount is a value of four bytes: a Config follows it, and is followed.
func (p *pair) config() {
	d := p.peer.begin("count", p.path)
	d.expect("held")
	f, err := recipes.NewValue(p.ctx, p.c, p.path, recipes.Codec[int32]{
		Encode: func(v int32) ([]byte, error) { return binary.BigEndian.AppendUint32(nil, uint32(v)), nil },
		Decode: func(b []byte) (int32, error) {
			if len(b) != 4 {
				return 0, fmt.Errorf("%d bytes, want 4", len(b))
			}
			return int32(binary.BigEndian.Uint32(b)), nil
		},
	})
	p.no(err)
	defer f.Close()
	d.say("do set 7")
	d.expect("set")
	for changed := f.Changed(); ; changed = f.Changed() {
		if v, ok := f.Get(); ok && v == 7 {
			break
		}
		select {
		case <-changed:
		case <-p.ctx.Done():
			p.Fatal("the Config does not follow")
		}
	}
	p.no(f.Update(p.ctx, func(v int32) (int32, error) { return v * 6, nil }))
	d.eventually("get", "42")
	d.release()
}

// Items of each are taken by the other, once, in their order.
func (p *pair) queue() {
	q := recipes.NewQueue(p.c, p.path)
	p.peer.begin("put", p.path, "plain", "a", 0).expect("put")
	p.no(q.Put(p.ctx, []byte("b")))
	p.peer.begin("put", p.path, "plain", "c", 0).expect("put")
	for _, want := range []string{"a", "b"} {
		p.take(q, want)
	}
	d := p.peer.begin("take", p.path, "plain")
	d.expect("held")
	d.expect("took c")
	p.no(q.Put(p.ctx, []byte("d")))
	d.expect("took d")
	p.children(p.path, 0)
	d.release()
}

// taker is what the queues have.
type taker interface {
	Take(context.Context) (*recipes.Item, error)
}

func (p *pair) take(q taker, want string) {
	p.Helper()
	item, err := q.Take(p.ctx)
	p.no(err)
	if string(item.Data) != want {
		p.Errorf("took %q, want %q", item.Data, want)
	}
	p.no(item.Complete(p.ctx))
}

func (p *pair) priorityQueue() {
	q := recipes.NewPriorityQueue(p.c, p.path)
	p.peer.begin("put", p.path, "priority", "late", 9).expect("put")
	p.no(q.Put(p.ctx, -3, []byte("first")))
	p.peer.begin("put", p.path, "priority", "middle", -1).expect("put")
	p.no(q.Put(p.ctx, 100, []byte("last")))
	for _, want := range []string{"first", "middle"} {
		p.take(q, want)
	}
	d := p.peer.begin("take", p.path, "priority")
	d.expect("held")
	d.expect("took late")
	d.expect("took last")
	p.children(p.path, 0)
	d.release()
}

func (p *pair) delayQueue() {
	q := recipes.NewDelayQueue(p.c, p.path)
	soon := time.Now().Add(300 * time.Millisecond)
	p.peer.begin("put", p.path, "delay", "second", soon.UnixMilli()).expect("put")
	p.no(q.Put(p.ctx, soon.Add(-time.Second), []byte("first")))
	p.take(q, "first")
	p.take(q, "second")
	if time.Now().Before(soon.Truncate(time.Millisecond)) {
		p.Error("an item was taken before its time")
	}
	p.no(q.Put(p.ctx, time.Now(), []byte("third")))
	d := p.peer.begin("take", p.path, "delay")
	d.expect("held")
	d.expect("took third")
	p.children(p.path, 0)
	d.release()
}

// Curator's three caches of a subtree come to what Go has written, with its watches
// of all kinds; and so does ours.
func (p *pair) caches() {
	_, _, err := p.c.Create(p.ctx, p.path, []byte("r"), client.Persistent)
	p.no(err)
	var all []*deed
	for _, kind := range []string{"cache", "pathcache", "treecache"} {
		d := p.peer.begin(kind, p.path)
		d.expect("held")
		all = append(all, d)
	}
	ours, err := client.NewCache(p.ctx, p.c, p.path)
	p.no(err)
	defer ours.Close()
	for i := range 20 {
		_, _, err := p.c.Create(p.ctx, fmt.Sprintf("%s/%d", p.path, i), nil, client.Persistent)
		p.no(err)
	}
	for i := range 18 {
		p.no(p.c.Delete(p.ctx, fmt.Sprintf("%s/%d", p.path, i), client.AnyVersion))
	}
	_, err = p.c.Set(p.ctx, p.path+"/18", []byte("x"), client.AnyVersion)
	p.no(err)
	_, _, err = p.c.Create(p.ctx, p.path+"/19/deep", []byte("y"), client.Persistent)
	p.no(err)
	top := fmt.Sprintf("%s/18=x,%s/19=", p.path, p.path)
	// Sorted as texts, in which / is before =.
	whole := fmt.Sprintf("%[1]s/18=x,%[1]s/19/deep=y,%[1]s/19=,%[1]s=r", p.path)
	all[0].eventually("list", whole)
	all[1].eventually("list", top)
	all[2].eventually("list", whole)
	wait.Succeeds(p, "our cache is the same", func() error {
		var got []string
		for n := range ours.All() {
			got = append(got, n.Path+"="+string(n.Data))
		}
		slices.Sort(got)
		if s := strings.Join(got, ","); s != whole {
			return errors.New(s)
		}
		return nil
	})
	for _, d := range all {
		d.release()
	}
}

// Curator holds a lock, waits for another and leads, while one server after the other
// is killed and comes back: its session goes on, and what it has it keeps.
func (p *pair) serversDie() {
	mine := recipes.NewMutex(p.c, p.path+"-go")
	held := p.peer.begin("mutex", p.path)
	held.expect("held")
	leads := p.peer.begin("latch", p.path+"-latch")
	leads.expect("held")
	g, err := mine.Lock(p.ctx)
	p.no(err)
	waits := p.peer.begin("mutex", p.path+"-go")
	p.children(p.path+"-go", 2)
	next := async(func() (*recipes.Grant, error) { return recipes.NewMutex(p.c, p.path).Lock(p.ctx) })
	p.children(p.path, 2)
	cache := p.peer.begin("cache", p.path+"-tree")
	cache.expect("held")
	session := p.c.SessionID()
	for _, s := range p.e.Servers() {
		s.Kill()
		err := p.c.EnsurePath(p.ctx, p.path+"-tree", client.Persistent) // the others serve
		for errors.Is(err, client.ErrOutcomeUnknown) {
			err = p.c.EnsurePath(p.ctx, p.path+"-tree", client.Persistent)
		}
		p.no(err)
		s.Start()
		p.e.WaitServing()
	}
	waits.silent()
	pending(p, next)
	p.no(g.Release(p.ctx))
	waits.expect("held")
	waits.release()
	held.release()
	p.no(await(p, next).Release(p.ctx))
	leads.release()
	cache.eventually("list", p.path+"-tree=")
	cache.release()
	if p.c.SessionID() != session {
		p.Error("Go has lost its session")
	}
	p.peer.mu.Lock()
	states := p.peer.got["state"]
	p.peer.mu.Unlock()
	p.Logf("Curator's connection: %v", states)
	if slices.Contains(states, "LOST") {
		p.Errorf("Curator has lost its session: %v", states)
	}
	if !slices.Contains(states, "RECONNECTED") {
		p.Errorf("Curator's connection was never broken: %v; nothing was tested", states)
	}
}
