//go:build interop

package interop_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
	"github.com/zk-lite/zk-lite/recipes"
)

// What one sets the other waits for, and removes.
func (p *pair) barrier() {
	b := recipes.NewBarrier(p.c, p.path)
	p.must(b.Set(p.ctx))
	d := p.peer.begin("wait", p.path)
	d.expect("waits")
	p.must(b.Remove(p.ctx))
	d.expect("passed")
	d = p.peer.begin("barrier", p.path)
	d.expect("set")
	waiting := async(func() (struct{}, error) { return struct{}{}, b.Wait(p.ctx) })
	p.must(p.c.Sync(p.ctx, p.path))
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
	p.must(err)
	d := p.peer.begin("group", p.path, "java")
	d.expect("held")
	d.eventually("list", "go=x,java=data of java")
	p.members(g, "go=x java=data of java")
	p.must(m.Set(p.ctx, []byte("y")))
	d.eventually("list", "go=y,java=data of java")
	p.must(m.Leave(p.ctx))
	d.eventually("list", "java=data of java")
	d.release()
	p.members(g, "")
}

func (p *pair) members(g *recipes.Group, want string) {
	p.Helper()
	wait.Succeeds(p, "the members are "+want, func() error {
		list, err := g.Members(p.ctx)
		p.must(err)
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
	p.must(err)
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
		p.must(err)
	}
	added := int64(0)
	for _, d := range deeds {
		if d.next() != "not added" { // it tries only once before its policy refuses
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
	p.must(err)
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
	p.must(f.Update(p.ctx, func(v int32) (int32, error) { return v * 6, nil }))
	d.eventually("get", "42")
	d.release()
}

// Items of each are taken by the other, once, in their order.
func (p *pair) queue() {
	q := recipes.NewQueue(p.c, p.path)
	p.peer.begin("put", p.path, "plain", "a", 0).expect("put")
	p.must(q.Put(p.ctx, []byte("b")))
	p.peer.begin("put", p.path, "plain", "c", 0).expect("put")
	for _, want := range []string{"a", "b"} {
		p.take(q, want)
	}
	d := p.peer.begin("take", p.path, "plain")
	d.expect("held")
	d.expect("took c")
	p.must(q.Put(p.ctx, []byte("d")))
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
	p.must(err)
	if string(item.Data) != want {
		p.Errorf("took %q, want %q", item.Data, want)
	}
	p.must(item.Complete(p.ctx))
}

func (p *pair) priorityQueue() {
	q := recipes.NewPriorityQueue(p.c, p.path)
	p.peer.begin("put", p.path, "priority", "late", 9).expect("put")
	p.must(q.Put(p.ctx, -3, []byte("first")))
	p.peer.begin("put", p.path, "priority", "middle", -1).expect("put")
	p.must(q.Put(p.ctx, 100, []byte("last")))
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
	p.must(q.Put(p.ctx, soon.Add(-time.Second), []byte("first")))
	p.take(q, "first")
	p.take(q, "second")
	if time.Now().Before(soon.Truncate(time.Millisecond)) {
		p.Error("an item was taken before its time")
	}
	p.must(q.Put(p.ctx, time.Now(), []byte("third")))
	d := p.peer.begin("take", p.path, "delay")
	d.expect("held")
	d.expect("took third")
	p.children(p.path, 0)
	d.release()
}

// Curator's three caches of a subtree get Go's writes, with its watches of all kinds; and so does ours.
func (p *pair) caches() {
	_, _, err := p.c.Create(p.ctx, p.path, []byte("r"), client.Persistent)
	p.must(err)
	var all []*deed
	for _, kind := range []string{"cache", "pathcache", "treecache"} {
		d := p.peer.begin(kind, p.path)
		d.expect("held")
		all = append(all, d)
	}
	ours, err := client.NewCache(p.ctx, p.c, p.path)
	p.must(err)
	defer ours.Close()
	for i := range 20 {
		_, _, err := p.c.Create(p.ctx, fmt.Sprintf("%s/%d", p.path, i), nil, client.Persistent)
		p.must(err)
	}
	for i := range 18 {
		p.must(p.c.Delete(p.ctx, fmt.Sprintf("%s/%d", p.path, i), client.AnyVersion))
	}
	_, err = p.c.Set(p.ctx, p.path+"/18", []byte("x"), client.AnyVersion)
	p.must(err)
	_, _, err = p.c.Create(p.ctx, p.path+"/19/deep", []byte("y"), client.Persistent)
	p.must(err)
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

// Curator holds a lock, waits for another and leads, while one server after the other is killed and restarted: its
// session continues, and it keeps what it holds.
func (p *pair) serversDie() {
	mine := recipes.NewMutex(p.c, p.path+"-go")
	held := p.peer.begin("mutex", p.path)
	held.expect("held")
	leads := p.peer.begin("latch", p.path+"-latch")
	leads.expect("held")
	g, err := mine.Lock(p.ctx)
	p.must(err)
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
		p.must(err)
		s.Start()
		p.e.WaitServing()
	}
	waits.silent()
	pending(p, next)
	p.must(g.Release(p.ctx))
	waits.expect("held")
	waits.release()
	held.release()
	p.must(await(p, next).Release(p.ctx))
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
