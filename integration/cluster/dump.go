package cluster

import (
	"errors"
	"fmt"
	"sort"
	"strings"
	"testing"

	"github.com/zk-lite/zk-lite/internal/testkit/wait"
	"github.com/zk-lite/zk-lite/internal/wire"
	"github.com/zk-lite/zk-lite/znode"
)

// Znode is everything a client can learn of one znode.
type Znode struct {
	Path string
	Data []byte
	Null bool // the data is null, not empty
	Stat znode.Stat
	ACL  []znode.ACL
}

func (z *Znode) String() string {
	return fmt.Sprintf("%s data=%q null=%v stat=%+v acl=%v", z.Path, z.Data, z.Null, z.Stat, z.ACL)
}

// Dump reads the whole tree of one server, as the super user, after a sync.
// The tree should be at rest. An election, which may happen on a busy machine, ends connections: then it reads again.
func (s *Server) Dump(t testing.TB) (all []Znode) {
	t.Helper()
	wait.Succeeds(t, fmt.Sprintf("the tree of server %d", s.ID), func() (err error) {
		all, err = s.dump()
		return err
	})
	return all
}

func (s *Server) dump() (all []Znode, err error) {
	c, err := Dial(s.Addr(), ConnectOptions{})
	if err != nil {
		return nil, fmt.Errorf("dumping server %d: %w", s.ID, err)
	}
	_, err = c.Do(wire.OpAuth, &wire.AuthRequest{Scheme: "digest", Auth: []byte(SuperCredentials)})
	if err == nil {
		_, err = c.Do(wire.OpSync, &wire.SyncRequest{Path: "/"})
	}
	if err == nil {
		all, err = c.Dump("/")
	}
	if err == nil {
		err = c.Close()
	}
	if err != nil {
		c.Drop()
		return nil, fmt.Errorf("dumping server %d: %w", s.ID, err)
	}
	return all, nil
}

// dumpAhead is how many requests are sent before the first answer, so that large trees do not
// take a round trip per znode.
const dumpAhead = 500

// znodeCalls are the questions about a znode.
type znodeCalls struct {
	path             string
	data, acl, names *Call
}

// Dump reads the tree at path, sorted by path. A znode that the server cannot show has only its path.
func (c *Conn) Dump(path string) ([]Znode, error) {
	var all []Znode
	paths, asked := []string{path}, []znodeCalls(nil)
	for len(paths)+len(asked) > 0 {
		for len(paths) > 0 && len(asked) < dumpAhead {
			p := paths[0]
			paths = paths[1:]
			asked = append(asked, znodeCalls{p,
				c.Send(wire.OpGetData, &wire.GetDataRequest{Path: p}),
				c.Send(wire.OpGetACL, &wire.GetACLRequest{Path: p}),
				c.Send(wire.OpGetChildren, &wire.GetChildrenRequest{Path: p}),
			})
		}
		z, children, err := asked[0].wait()
		if err != nil {
			return nil, err
		}
		asked = asked[1:]
		all = append(all, z)
		for _, name := range children {
			paths = append(paths, strings.TrimSuffix(z.Path, "/")+"/"+name)
		}
	}
	sort.Slice(all, func(i, j int) bool { return all[i].Path < all[j].Path })
	return all, nil
}

func (z *znodeCalls) wait() (Znode, []string, error) {
	for _, call := range []*Call{z.data, z.acl, z.names} {
		_, err := call.Wait()
		if errors.Is(err, znode.ErrMarshalling) {
			// Of a ZooKeeper that has lost the znode's ACL, as it can after a fuzzy snapshot.
			return Znode{Path: z.path}, nil, nil
		}
		if err != nil {
			return Znode{}, nil, fmt.Errorf("reading %s: %w", z.path, err)
		}
	}
	d := z.data.Body.(*wire.GetDataResponse)
	return Znode{Path: z.path, Data: d.Data, Null: d.Data == nil, Stat: d.Stat,
		ACL: z.acl.Body.(*wire.GetACLResponse).ACL}, z.names.Body.(*wire.GetChildrenResponse).Children, nil
}

// CheckReplicas fails the test unless all running servers have applied the same transactions
// and hold the same znodes, sessions and ephemerals. The clients must be at rest. The ensemble
// may still change, as when a server gets its vote back or a session expires, between two
// servers' answers: so servers that differ are asked again. Those whose states have diverged
// stay different.
func (e *Ensemble) CheckReplicas() {
	e.t.Helper()
	servers := e.Running()
	wait.Succeeds(e.t, "the same znodes on all running servers", func() error {
		first, err := servers[0].dump()
		if err != nil {
			return err
		}
		for _, s := range servers[1:] {
			other, err := s.dump()
			if err != nil {
				return err
			}
			if diff := firstDifference(first, other); diff != "" {
				return fmt.Errorf("servers %d and %d differ: %s", servers[0].ID, s.ID, diff)
			}
		}
		return nil
	})
	wait.Succeeds(e.t, "the same zxid, sessions and digests on all running servers",
		func() error { return e.compareShared(servers) })
}

// compareShared compares the replicated state as four-letter words show it.
func (e *Ensemble) compareShared(servers []*Server) error {
	var first [3]string
	for i, s := range servers {
		zxid, err := s.Zxid()
		if err != nil {
			return err
		}
		hash, err := s.FourLetter("hash")
		if err != nil {
			return err
		}
		sessions, err := s.sessions()
		if err != nil {
			return err
		}
		now := [3]string{zxid.String(), sessions, lastLine(hash)}
		if i == 0 {
			first = now
		} else if now != first {
			return fmt.Errorf("server %d has %q, server %d has %q",
				servers[0].ID, first, s.ID, now)
		}
	}
	return nil
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}

func firstDifference(a, b []Znode) string {
	for i := range min(len(a), len(b)) {
		if x, y := a[i].String(), b[i].String(); x != y {
			return fmt.Sprintf("\n%s\n%s", x, y)
		}
	}
	if len(a) != len(b) {
		return fmt.Sprintf("%d and %d znodes", len(a), len(b))
	}
	return ""
}

// IsUnknown reports whether an error leaves open whether the request was
// executed.
func IsUnknown(err error) bool { return errors.Is(err, ErrNoReply) }
