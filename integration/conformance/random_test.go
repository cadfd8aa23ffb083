//go:build interop

package conformance_test

import (
	"math/rand/v2"
	"testing"

	"github.com/zk-lite/zk-lite/integration/cluster"
	"github.com/zk-lite/zk-lite/internal/testkit/seed"
	"github.com/zk-lite/zk-lite/internal/wire"
	"github.com/zk-lite/zk-lite/znode"
)

const (
	// randomLength is that of a random script, in steps.
	randomLength = 1500
	// maxBatch bounds the requests of a multi or of a burst.
	maxBatch = 8
)

// TestConformance_Random compares the two sides over a script that no one has thought of.
func TestConformance_Random(t *testing.T) {
	n := seed.Of(t)
	zookeeper, zklite := ensembles(t)
	// A run fills in zxids, so that each has a script of its own.
	want := execute(t, zookeeper, randomScript(n))
	got := execute(t, zklite, randomScript(n))
	compare(t, differences(), randomScript(n), want, got)
	zklite.CheckReplicas()
}

// chance makes a random script. a, b and c leave watches of all kinds, x is the super user;
// d comes and goes.
type chance struct {
	*rand.Rand
	root    string
	servers int
	steps   []step
	d       bool // d is connected
	// private scripts have znodes that not all may read. Of those ZooKeeper's setWatches tells more than ours
	// (docs/protocol.md), so that private scripts have none.
	private bool
}

func randomScript(seed uint64) []step {
	steps := append(opening(3), a.create("/r", null, znode.Persistent))
	return append(steps, randomSteps(seed, "/r", 3, randomLength)...)
}

// opening connects the sessions of random scripts, to so many servers.
func opening(servers int) []step {
	return []step{a.connect(1), b.connect(min(2, servers)), c.connect(servers), x.connect(1),
		x.auth("digest", cluster.SuperCredentials), a.auth("digest", "user:secret")}
}

// randomSteps is what the sessions do below a root.
func randomSteps(seed uint64, root string, servers, length int) []step {
	r := &chance{Rand: rand.New(rand.NewPCG(seed, 0)), root: root, servers: servers}
	r.private = r.IntN(3) == 0
	for len(r.steps) < length {
		r.next()
	}
	if r.d {
		r.steps = append(r.steps, d.close())
	}
	return r.steps
}

func pick[T any](r *chance, all ...T) T { return all[r.IntN(len(all))] }

// next adds a step, or a few that belong together.
func (r *chance) next() {
	who := r.who()
	switch n := r.IntN(100); {
	case n < 52:
		r.steps = append(r.steps, r.request(who))
	case n < 68:
		r.steps = append(r.steps, r.watch(pick(r, a, b, c)))
	case n < 78:
		r.steps = append(r.steps, r.multi(who))
	case n < 86:
		r.steps = append(r.steps, r.burst(who))
	case n < 90:
		r.steps = append(r.steps, r.setACL(pick(r, x, x, a, b)))
	case n < 94:
		r.reconnect(pick(r, a, b, c))
	default:
		r.visit()
	}
}

func (r *chance) who() session {
	if r.d {
		return pick(r, a, b, c, d, d, x)
	}
	return pick(r, a, b, c, x)
}

// visit opens d's session, moves it or ends it.
func (r *chance) visit() {
	server := 1 + r.IntN(r.servers)
	switch {
	case !r.d:
		r.d = true
		r.steps = append(r.steps, d.connect(server))
	case r.IntN(2) == 0:
		r.steps = append(r.steps, d.resume(server))
	default:
		r.d = false
		r.steps = append(r.steps, d.close())
	}
}

// path is one of few, so that requests meet; some are wrong.
func (r *chance) path() string {
	if r.IntN(40) == 0 {
		return pick(r, "", "/", "r", r.root+"/", r.root+"//x", r.root+"/./x", r.root+"/a\x00", "/none/x",
			"/zookeeper")
	}
	path := r.root
	for range r.IntN(4) {
		path += pick(r, "/a", "/b", "/c")
	}
	return path
}

func (r *chance) version() znode.Version {
	return pick[znode.Version](r, -1, -1, -1, 0, 1, 2)
}

func (r *chance) data() []byte { return pick(r, null, empty, str("x"), str("some more")) }

func (r *chance) acl() []znode.ACL {
	var all []znode.ACL
	if !r.private {
		all = znode.ReadACL
	}
	switch r.IntN(8) {
	case 0:
		return append(acl(znode.Perms(r.IntN(32)), "world", "anyone"), all...)
	case 1:
		return append(pick(r, acl(31, "auth", ""), acl(31, "digest", userDigest), acl(31, "ip", "127.0.0.1"),
			acl(1, "ip", "127.0.0.0/8"), acl(31, "what", "ever"), acl(31, "digest", otherDigest)), all...)
	case 2:
		return pick(r, nil, []znode.ACL{})
	}
	return znode.OpenACL
}

func (r *chance) mode() znode.Mode {
	return pick(r, znode.Persistent, znode.Persistent, znode.Persistent, znode.Ephemeral,
		znode.PersistentSequential, znode.EphemeralSequential)
}

// write is a request that a multi may contain.
func (r *chance) write(who session) step {
	const hour = 3_600_000
	switch path := r.path(); r.IntN(17) {
	case 0, 1, 2, 3:
		return who.createACL(path, r.data(), r.mode(), r.acl())
	case 4:
		return who.create2(path, r.data(), r.mode())
	case 5:
		return who.createContainer(path, znode.Container)
	case 6:
		return who.createTTL(path, pick(r, znode.PersistentTTL, znode.PersistentSequentialTTL), pick[int64](r, 0, hour, hour))
	case 7, 8, 9, 10:
		return who.delete(path, r.version())
	case 11:
		return who.check(path, r.version())
	case 12:
		return who.create2(path, r.data(), znode.Container)
	default:
		return who.set(path, r.data(), r.version())
	}
}

func (r *chance) read(who session) step {
	path := r.path()
	if path == "" {
		// ZooKeeper takes it for the root, but counts one descendant more.
		return pick(r, who.get(path, false), who.ls2(path, false), who.getACL(path),
			who.descendants(path))
	}
	return pick(r, who.get(path, false), who.exists(path, false), who.ls(path, false),
		who.ls2(path, false), who.getACL(path), who.descendants(path), who.ephemerals(path), who.whoAmI(), who.sync(path))
}

func (r *chance) request(who session) step {
	if r.IntN(3) == 0 {
		return r.read(who)
	}
	for {
		// A check is no request of its own.
		if s := r.write(who); s.requests[0].op != wire.OpCheck {
			return s
		}
	}
}

func (r *chance) multi(who session) step {
	all := make([]step, r.IntN(maxBatch))
	if r.IntN(5) == 0 {
		for i := range all {
			all[i] = pick(r, who.get(r.path(), false), who.ls(r.path(), false))
		}
		return who.multiRead(all...)
	}
	for i := range all {
		all[i] = r.write(who)
		// ZooKeeper does not answer a multi with a list of null (doc.go).
		if q, ok := all[i].requests[0].body.(*wire.CreateRequest); ok && q.ACL == nil {
			q.ACL = []znode.ACL{}
		}
	}
	return who.multi(all...)
}

// burst has no setACL: after one, ZooKeeper checks the old list until it has applied the new one, which is a matter of
// time.
func (r *chance) burst(who session) step {
	all := make([]step, 1+r.IntN(maxBatch))
	for i := range all {
		all[i] = r.request(who)
	}
	return who.burst(all...)
}

func (r *chance) setACL(who session) step {
	return who.setACL(r.path(), r.acl(), r.version())
}

func (r *chance) watch(who session) step {
	path := r.path()
	kind := znode.WatcherType(1 + r.IntN(5))
	return pick(r, who.get(path, true), who.exists(path, true), who.ls(path, true), who.ls2(path, true),
		who.addWatch(path, persistent), who.addWatch(path, recursive), who.addWatch(path, recursive),
		who.removeWatches(path, znode.WatcherAny), who.removeWatches(path, kind), who.checkWatches(path, kind))
}

func (r *chance) paths() (all []string) {
	for range r.IntN(4) {
		all = append(all, r.root+pick(r, "", "/a", "/b", "/a/b", "/c/c"))
	}
	return all
}

// reconnect takes a session's connection away while others write, and lets it
// leave its watches again at any server.
func (r *chance) reconnect(who session) {
	r.steps = append(r.steps, who.drop())
	for range r.IntN(4) {
		r.steps = append(r.steps, r.request(x))
	}
	r.steps = append(r.steps, who.resume(1+r.IntN(r.servers)))
	if who == a {
		r.steps = append(r.steps, a.auth("digest", "user:secret"))
	}
	switch {
	case r.private:
	case r.IntN(3) == 0:
		r.steps = append(r.steps, who.setWatches(r.paths(), r.paths(), r.paths()))
	default:
		r.steps = append(r.steps, who.setWatches2(r.paths(), r.paths(), r.paths(), r.paths(), r.paths()))
	}
}
