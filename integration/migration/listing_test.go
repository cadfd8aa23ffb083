//go:build interop

package migration_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/integration/cluster"
	"github.com/zk-lite/zk-lite/internal/testkit/fourletter"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
	"github.com/zk-lite/zk-lite/internal/wire"
	"github.com/zk-lite/zk-lite/migration/replica"
	"github.com/zk-lite/zk-lite/znode"
)

// listing is all that clients can learn of an ensemble.
type listing struct {
	znodes   []cluster.Znode // by path
	sessions []string        // ids, as dump prints them, sorted
	zxid     znode.Zxid
}

// list reads what a server shows to a superuser, with the sessions but its own.
func list(tb testing.TB, addr, superuser string) (l listing, err error) {
	tb.Helper()
	c, err := cluster.Dial(addr, cluster.ConnectOptions{})
	if err != nil {
		return l, err
	}
	defer c.Drop()
	if _, err = c.Do(wire.OpAuth, &wire.AuthRequest{Scheme: "digest", Auth: []byte(superuser)}); err != nil {
		return l, err
	}
	if _, err = c.Do(wire.OpSync, &wire.SyncRequest{Path: "/"}); err != nil {
		return l, err
	}
	if l.znodes, err = c.Dump("/"); err != nil {
		return l, err
	}
	if err = c.Close(); err != nil {
		return l, err
	}
	text, err := fourletter.Ask(addr, "dump")
	if err != nil {
		return l, err
	}
	known, _, _ := strings.Cut(text, "phemeral") // the sessions come before their ephemerals
	l.sessions = regexp.MustCompile("0x[0-9a-f]+").FindAllString(known, -1)
	slices.Sort(l.sessions)
	l.sessions = slices.Compact(l.sessions)
	l.zxid, err = zxid(addr)
	return l, err
}

// zxid is that of the last transaction at a server.
func zxid(addr string) (z znode.Zxid, err error) {
	text, err := fourletter.Ask(addr, "srvr")
	if err != nil {
		return 0, err
	}
	_, text, _ = strings.Cut(text, "Zxid: ")
	_, err = fmt.Sscanf(text, "0x%x", &z)
	return z, err
}

// settled is after how long without a transaction an ensemble is at rest: containers and znodes with a TTL that are
// due, which clients cannot tell from others, have been deleted.
const settled = 3 * time.Second

// listAtRest is list of a server that no client uses but those of the sessions that are held, once others have expired.
// Meanwhile there is no transaction but the two of its own session.
func listAtRest(tb testing.TB, addr, superuser string, held []string) (l listing) {
	tb.Helper()
	var last znode.Zxid
	var since time.Time
	wait.Within(tb, "the ensemble is at rest", 5*time.Minute, func() error {
		now, err := zxid(addr)
		if now != last {
			last, since = now, time.Now()
		}
		if err != nil || time.Since(since) < settled {
			return fmt.Errorf("zxid %v: %w", now, err)
		}
		if l, err = list(tb, addr, superuser); err != nil {
			return err
		}
		if l.zxid != last+2 {
			return fmt.Errorf("zxid %v after %v", l.zxid, last)
		}
		if !slices.Equal(l.sessions, held) {
			return fmt.Errorf("sessions %v, want %v", l.sessions, held)
		}
		return nil
	})
	return l
}

// id is a session's as dump prints it.
func id(session znode.SessionID) string { return fmt.Sprintf("0x%x", uint64(session)) }

// listReplica is the listing of a state in memory.
func listReplica(tb testing.TB, r *replica.Replica) (l listing) {
	tb.Helper()
	snap := r.Tree.Snapshot()
	defer snap.Release()
	err := snap.Walk(func(rec *znode.Record) error {
		z := cluster.Znode{Path: rec.Path, Data: slices.Clone(rec.Data), Null: rec.Data == nil, ACL: rec.ACL}
		stat, code := r.Tree.Exists(rec.Path, []znode.ID{znode.SuperIDs})
		z.Stat = stat
		l.znodes = append(l.znodes, z)
		return code.Err()
	})
	if err != nil {
		tb.Fatal(err)
	}
	slices.SortFunc(l.znodes, func(a, b cluster.Znode) int { return strings.Compare(a.Path, b.Path) })
	for _, s := range r.Sessions.Clone() {
		l.sessions = append(l.sessions, id(s.ID))
	}
	slices.Sort(l.sessions)
	l.zxid = r.Zxid
	return l
}

// compare fails the test unless two listings have the same znodes and sessions. Each server has its own
// /zookeeper/config, which 3.4 lacks: the znode and what it adds to its parent are left out. lost, unless it is nil,
// says whether the one that is wanted may have lost the ACL of a znode, and the other's is good.
func compare(tb testing.TB, what string, want, got listing, lost func(z *cluster.Znode) bool) {
	tb.Helper()
	a, b := byPath(want.znodes), byPath(got.znodes)
	differ, lostACLs := 0, 0
	report := func(format string, args ...any) {
		if differ++; differ <= 10 {
			tb.Errorf(what+": "+format, args...)
		}
	}
	for path, w := range a {
		g, ok := b[path]
		switch {
		case !ok:
			report("%.500s is missing", &w)
		case w.String() == g.String():
		case lost != nil && (withoutACL(w) == withoutACL(g) || unreadable(&w)) && lost(&g):
			lostACLs++
		default:
			report("%s:\ngot  %.700s\nwant %.700s", path, &g, &w)
		}
	}
	for path := range b {
		parent := a[znode.Parent(path)]
		if _, ok := a[path]; !ok && (lost == nil || !unreadable(&parent)) {
			report("%s should not be there", path)
		}
	}
	if !slices.Equal(want.sessions, got.sessions) {
		report("sessions %v, want %v", got.sessions, want.sessions)
	}
	tb.Logf("%s: %d znodes and %d sessions compared, %d differences; the origin has lost %d ACLs", what, len(a),
		len(want.sessions), differ, lostACLs)
}

// unreadable reports whether its server could not show a znode.
func unreadable(z *cluster.Znode) bool { return z.Path != "/" && z.Stat == znode.Stat{} }

func withoutACL(z cluster.Znode) string {
	z.ACL = nil
	return z.String()
}

func byPath(all []cluster.Znode) map[string]cluster.Znode {
	m := map[string]cluster.Znode{}
	for _, z := range all {
		switch z.Path {
		case znode.ConfigPath:
			continue
		case znode.SystemPath:
			z.Stat.NumChildren, z.Stat.Cversion, z.Stat.Pzxid = 0, 0, 0
		}
		m[z.Path] = z
	}
	return m
}

// held are sessions whose clients stay connected, with ephemerals.
type held struct {
	conns []*cluster.Conn
	ids   []string // sorted
}

// hold opens a session for each timeout, and keeps it until its server ends.
func hold(tb testing.TB, addr string, timeouts ...time.Duration) *held {
	tb.Helper()
	h := new(held)
	for i, timeout := range timeouts {
		c, err := cluster.Dial(addr, cluster.ConnectOptions{Timeout: timeout})
		if err != nil {
			tb.Fatal(err)
		}
		tb.Cleanup(c.Drop)
		for _, mode := range []znode.Mode{znode.Ephemeral, znode.EphemeralSequential} {
			q := create(fmt.Sprintf("/held-%d-%d-", i, mode), fmt.Append(nil, c.Session.ID), mode)
			if _, err := c.Do(wire.OpCreate, q); err != nil {
				tb.Fatal(err)
			}
		}
		h.conns = append(h.conns, c)
		h.ids = append(h.ids, id(c.Session.ID))
		go ping(c, timeout/4)
	}
	slices.Sort(h.ids)
	return h
}

// ping keeps a session until its connection ends.
func ping(c *cluster.Conn, every time.Duration) {
	for tick := time.NewTicker(every); ; {
		select {
		case <-c.Ended():
			tick.Stop()
			return
		case <-tick.C:
			c.Send(wire.OpPing, &wire.EmptyRequest{})
		}
	}
}

// resume gives each session to a server, with the id and the password of its origin, and checks that it has its
// timeout and its ephemerals, and that these end with it.
func (h *held) resume(tb testing.TB, addr string) {
	tb.Helper()
	for _, old := range h.conns {
		asked := time.Duration(old.Response.TimeoutMillis) * time.Millisecond
		var c *cluster.Conn
		wait.Succeeds(tb, "a session is resumed", func() (err error) {
			c, err = cluster.Dial(addr, cluster.ConnectOptions{Timeout: asked, Session: old.State()})
			return err
		})
		if c.Session.ID != old.Session.ID || c.Response.TimeoutMillis != old.Response.TimeoutMillis {
			tb.Errorf("session %v resumed as %v with %d ms, want %d", old.Session.ID, c.Session.ID,
				c.Response.TimeoutMillis, old.Response.TimeoutMillis)
		}
		if err := c.Close(); err != nil {
			tb.Errorf("closing session %v: %v", old.Session.ID, err)
		}
	}
	c, err := cluster.Dial(addr, cluster.ConnectOptions{})
	if err != nil {
		tb.Fatal(err)
	}
	defer c.Drop()
	body, err := c.Do(wire.OpGetChildren, &wire.GetChildrenRequest{Path: "/"})
	if err != nil {
		tb.Fatal(err)
	}
	for _, name := range body.(*wire.GetChildrenResponse).Children {
		if strings.HasPrefix(name, "held-") {
			tb.Errorf("/%s is there, although its session was resumed and closed", name)
		}
	}
}
