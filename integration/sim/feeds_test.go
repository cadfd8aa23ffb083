package sim

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/zk-lite/zk-lite/integration/check"
	"github.com/zk-lite/zk-lite/internal/testkit/clock"
	"github.com/zk-lite/zk-lite/server"
	"github.com/zk-lite/zk-lite/server/changes"
	"github.com/zk-lite/zk-lite/znode"
)

// followers is how many clients follow changes.
const followers = 3

// follower is a client of the change feed, which goes from server to server. It uses what both listeners do: streams,
// as over HTTP, and single questions, as at the ZooKeeper port.
type follower struct {
	w       *world
	rng     *rand.Rand
	now     check.Feed // Start is nil before the first listing
	before  []check.Feed
	server  int // the one that it was at last
	resumed int // at another one
	late    int // told that it is too late
}

func newFollower(w *world, i int) *follower {
	paths := []string{"/", "/r0", "/r1", "/e", "/q0", "/lock", expiringPath, rightsPath}
	f := &follower{w: w, rng: rand.New(rand.NewPCG(w.seed, uint64(50+i))), server: -1}
	f.now = check.Feed{Client: -1 - i, Path: paths[f.rng.IntN(len(paths))]}
	if i == 0 {
		f.now.Path = "/"
	}
	return f
}

// run follows until it is stopped, now and then after a pause in which servers may have forgotten where it was.
func (f *follower) run(stop <-chan struct{}) {
	for {
		f.visit(f.rng.IntN(len(f.w.servers)))
		pause := 300
		if f.rng.IntN(8) == 0 {
			pause = 15_000
		}
		t := time.NewTimer(time.Duration(f.rng.IntN(pause)) * time.Millisecond)
		select {
		case <-t.C:
		case <-stop:
			t.Stop()
			return
		}
	}
}

// finish follows up to a zxid, when everything works.
func (f *follower) finish(zxid znode.Zxid) {
	for end := time.Now().Add(healLimit); f.now.UpTo < zxid; {
		if time.Now().After(end) {
			f.w.record.violation("Availability", "the feed of %s is at %v, %v after the end of all faults, and not at "+
				"%v: %s", f.now.Path, f.now.UpTo, healLimit, zxid, f.w.stand())
			return
		}
		f.visit(f.rng.IntN(len(f.w.servers)))
	}
}

// visit asks a server for a while.
func (f *follower) visit(i int) {
	l := f.w.servers[i].running()
	if l == nil || f.w.clientsCut[i].Load() || l.freeze.closed() != nil || !l.srv.Serving() {
		clock.Sleep(10 * time.Millisecond)
		return
	}
	if f.now.Start == nil {
		f.list(l)
		return
	}
	if i != f.server {
		f.resumed++
	}
	f.server = i
	all := changes.Filter{Path: f.now.Path, Kind: changes.KindRecursive, Identities: everybody()}
	if f.rng.IntN(3) == 0 {
		for more := true; more; {
			var found []changes.Change
			var upTo znode.Zxid
			var err error
			l.srv.View(func(v *server.View) {
				found, upTo, more, err = v.Changes().Read(all, f.now.UpTo, v.Zxid())
			})
			more = f.take(l, found, upTo, err) && more
		}
		return
	}
	stream, err := l.srv.Subscribe([]changes.Filter{all}, changes.Position{Zxid: f.now.UpTo})
	if err != nil {
		f.take(l, nil, 0, err)
		return
	}
	defer stream.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(f.rng.IntN(3000))*time.Millisecond)
	defer cancel()
	for {
		found, err := stream.Next(ctx)
		if !f.take(l, found, stream.Zxid(), err) || err != nil {
			return
		}
	}
}

// list reads all znodes at one moment, from which the feed begins.
func (f *follower) list(l *life) {
	all, zxid := f.w.final(l)
	if l.dead.Load() {
		return
	}
	f.now.Since, f.now.UpTo, f.now.Start = zxid, zxid, map[string]string{}
	for _, z := range all {
		if f.now.Path == "/" || z.Path == f.now.Path || strings.HasPrefix(z.Path, f.now.Path+"/") {
			f.now.Start[z.Path] = z.Value
		}
	}
}

// take notes what a server says, whole transactions, and sometimes not all of it, as if the connection had ended. It
// reports whether the client goes on there.
func (f *follower) take(l *life, found []changes.Change, upTo znode.Zxid, err error) bool {
	switch {
	case l.dead.Load():
		return false // a dead process says nothing
	case errors.Is(err, changes.ErrTooOld):
		f.late++
		f.before = append(f.before, f.now)
		f.now = check.Feed{Client: f.now.Client, Path: f.now.Path}
		return false
	}
	for len(found) > 0 {
		if f.rng.IntN(50) == 0 {
			return false
		}
		var of []changes.Change
		of, found = changes.NextTransaction(found)
		for i := range of {
			e := &of[i].Edit
			f.now.Got = append(f.now.Got, check.Fed{
				Change: check.Change{Zxid: e.Zxid, Type: e.Type, Path: strings.Clone(e.Path), Value: string(e.Data)},
				Before: string(e.Before), Server: l.i,
			})
		}
		f.now.UpTo = of[0].At.Zxid
	}
	f.now.UpTo = max(f.now.UpTo, upTo)
	return true
}

// feeds are all that the followers got, up to a zxid if there is one.
func feeds(all []*follower, zxid znode.Zxid, counts map[string]int) (list []check.Feed) {
	for _, f := range all {
		counts["feed resumed at another server"] += f.resumed
		counts["feed too late, and begun with a listing"] += f.late
		for _, x := range append(f.before, f.now) {
			if x.Start == nil || zxid != 0 && x.Since > zxid {
				continue
			}
			if zxid != 0 {
				x.UpTo = min(x.UpTo, zxid)
				x.Got = slices.DeleteFunc(x.Got, func(c check.Fed) bool { return c.Zxid > zxid })
			}
			counts["change of a feed"] += len(x.Got)
			list = append(list, x)
		}
	}
	return list
}
