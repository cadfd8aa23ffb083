package server

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/internal/testkit/seed"
	"github.com/zk-lite/zk-lite/watch"
	"github.com/zk-lite/zk-lite/znode"
)

// racer is a client that checks its answers by its own count: they arrive in the order of its requests, a read shows
// exactly its earlier writes, zxids never decrease, and a watch fires with the change after the read that set it.
type racer struct {
	c    *client
	path string
	rng  *rand.Rand

	asked, answered int // requests; answered is the outbox's, under c.mu
	writes, applied int
	armed           znode.Zxid // of the shared znode, when a watch was left; 0 none is
	fired           int
	faults          []string
}

func (r *racer) Notify(n *watch.Notification) {
	r.c.mu.Lock()
	defer r.c.mu.Unlock()
	r.zxidLocked(n.Zxid)
	if r.armed == 0 || n.Zxid <= r.armed {
		r.faults = append(r.faults, fmt.Sprintf("event of %v, the watch is of %v", n.Zxid, r.armed))
	}
	r.armed = 0
	r.fired++
}

func (r *racer) Disconnect(why Reason) { r.c.Disconnect(why) }
func (r *racer) Address() string       { return r.c.Address() }

func (r *racer) zxidLocked(z znode.Zxid) {
	if n := len(r.c.zxids); n > 0 && r.c.zxids[n-1] > z {
		r.faults = append(r.faults, fmt.Sprintf("zxid %v after %v", z, r.c.zxids[n-1]))
	}
	r.c.zxids = append(r.c.zxids, z)
}

// racerOp is one request.
type racerOp struct {
	r      *racer
	number int // among the requests
	writes int // asked for before this one
	watch  bool
}

func (o *racerOp) answerLocked(z znode.Zxid) {
	if o.number != o.r.answered {
		o.r.faults = append(o.r.faults, fmt.Sprintf("answer %d came as number %d", o.number, o.r.answered))
	}
	o.r.answered++
	o.r.zxidLocked(z)
}

func (o *racerOp) Weight(*View) int { return 0 }

func (o *racerOp) Read(v *View) {
	r := o.r
	r.c.mu.Lock()
	defer r.c.mu.Unlock()
	o.answerLocked(v.Zxid())
	stat, code := v.Tree().Exists(r.path, nil)
	if code != znode.OK || int(stat.Version) != o.writes || r.applied != o.writes {
		r.faults = append(r.faults, fmt.Sprintf("%v: a read after %d writes shows %d, %d were answered",
			code, o.writes, stat.Version, r.applied))
	}
	if o.watch && r.armed == 0 {
		stat, _ := v.Tree().Exists("/shared", nil)
		r.armed = stat.Mzxid
		if err := v.Watches().Add(r.c.Watcher(), "/shared", watch.Data); err != nil {
			r.faults = append(r.faults, err.Error())
		}
	}
}

func (o *racerOp) Done(_ *View, x *state.Result) {
	r := o.r
	r.c.mu.Lock()
	defer r.c.mu.Unlock()
	o.answerLocked(x.Zxid)
	r.applied++
	if x.Code != znode.OK {
		r.faults = append(r.faults, x.Code.Name())
	}
}

func (r *racer) run(requests int) error {
	for range requests {
		o := &racerOp{r: r, number: r.asked, writes: r.writes, watch: r.rng.IntN(4) == 0}
		r.asked++
		var err error
		if r.rng.IntN(3) > 0 {
			err = r.c.Conn.Read(o)
		} else {
			r.writes++
			cmd := &state.Command{Op: state.OpSetData, Path: r.path, Version: znode.AnyVersion}
			if r.rng.IntN(5) == 0 { // moves the znode that all watch, too
				cmd = &state.Command{Op: state.OpMulti, Ops: []state.Command{*cmd, {
					Op: state.OpSetData, Path: "/shared", Version: znode.AnyVersion,
				}}}
			}
			err = r.c.Conn.Write(cmd, o)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func TestServer_ManyConnections_EachInOrder(t *testing.T) {
	const conns, requests = 16, 600
	seed := seed.Of(t)
	k := newKit(t, nil)
	k.log.from(1, createCommand("/shared"))
	var all []*racer
	for i := range conns {
		r := &racer{path: fmt.Sprint("/own", i), rng: rand.New(rand.NewPCG(seed, uint64(i)))}
		r.c = &client{k: k, gone: make(chan struct{})}
		r.c.Conn = k.srv.NewConn(r, nil)
		k.log.from(1, createCommand(r.path))
		all = append(all, r)
	}
	var log, clients sync.WaitGroup
	k.log.run(&log)
	for i, r := range all {
		clients.Go(func() {
			if err := r.run(requests); err != nil {
				t.Error(err)
			}
			if i%4 == 3 {
				r.c.Close("") // with requests under way
			}
		})
	}
	clients.Go(func() { // an unrelated client
		for range 50 {
			c := k.connect()
			if err := c.OpenSession(4*time.Second, &op{c: c}); err != nil {
				t.Error(err)
			}
			k.srv.Digest()
			c.Close("")
		}
	})
	clients.Wait()
	k.log.stop() // after what has been proposed
	log.Wait()
	fired := 0
	for i, r := range all {
		if len(r.faults) > 0 {
			t.Errorf("connection %d: %s", i, strings.Join(r.faults[:min(5, len(r.faults))], "; "))
		}
		if i%4 != 3 && r.answered != requests {
			t.Errorf("connection %d: %d requests were answered, want %d", i, r.answered, requests)
		}
		fired += r.fired
	}
	if fired == 0 {
		t.Error("no watch has fired: the test shows nothing")
	}
}
