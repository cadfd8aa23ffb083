package recipes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/internal/memberdata"
	"github.com/zk-lite/zk-lite/znode"
)

// Group is a set of named members, each with data. A member is in it while its
// session lives.
//
// Its znodes are those of Curator's GroupMember: path/<name>, ephemeral.
type Group struct {
	c    *client.Client
	path string
	acl  []client.ACL
}

// NewGroup returns the group at path. Options: WithACL.
func NewGroup(c *client.Client, path string, opts ...Option) *Group {
	return &Group{c: c, path: path, acl: newOptions(opts).acl}
}

// Member is one of a group.
type Member struct {
	Name         string
	Data         []byte
	FencingToken int64 // of the creation of its znode
	Version      client.Version
	Owner        client.SessionID
}

// Unhealthy is why the member's data say that it is not healthy: the mark of zk-lite join --keep, or of the function
// Unhealthy; "" without one.
func (m *Member) Unhealthy() string { return memberdata.Parse(m.Data).Unhealthy }

// Unhealthy returns data with a mark that says that a member is not healthy, and why: JSON with healthy and reason. It
// is for Membership.Set. HTTP shows the mark, and DNS leaves the member out.
func Unhealthy(data []byte, reason string) []byte { return memberdata.Unhealthy(data, reason) }

// Join makes this client a member of the group until Leave or the end of the
// client. If the session is lost, it joins again. If another session has a member
// of that name, it waits until that one leaves.
//
// Errors: client.ErrBadArguments if name is empty or has a slash.
func (g *Group) Join(ctx context.Context, name string, data []byte) (*Membership, error) {
	if err := checkName(name); err != nil {
		return nil, fmt.Errorf("member %q of %s: %w", name, g.path, err)
	}
	return join(ctx, g.c, znode.Join(g.path, name), data, g.acl)
}

// checkName refuses a name that is not one of a single znode.
func checkName(name string) error {
	err := znode.ValidatePath("/" + name)
	if err == nil && (name == "" || strings.Contains(name, "/")) {
		err = fmt.Errorf("want a name that is not empty and has no slash: %w", client.ErrBadArguments)
	}
	return err
}

// Members returns the members, sorted by name. It sees every write that was
// acknowledged before the call.
func (g *Group) Members(ctx context.Context) ([]Member, error) {
	var list []Member
	err := afterSync(ctx, g.c, g.path, func() (err error) {
		list, err = g.read(ctx)
		return err
	}, nil)
	if err != nil {
		return nil, err
	}
	return list, nil
}

// readWindow bounds the concurrent reads when all members are read: enough to
// hide the round trip, and a fraction of what the client may have in flight.
const readWindow = 64

func (g *Group) read(ctx context.Context) ([]Member, error) {
	names, _, err := g.c.Children(ctx, g.path)
	if errors.Is(err, client.ErrNoNode) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	var list []Member
	for part := range slices.Chunk(names, readWindow) {
		pending := make([]*client.Pending[client.GetReply], len(part))
		for i, name := range part {
			pending[i] = g.c.Async().Get(ctx, znode.Join(g.path, name))
		}
		for i, name := range part {
			r, err := pending[i].Wait(ctx)
			if errors.Is(err, client.ErrConnectionLoss) {
				r.Data, r.Stat, err = g.c.Get(ctx, znode.Join(g.path, name))
			}
			if errors.Is(err, client.ErrNoNode) {
				continue // it has left meanwhile
			}
			if err != nil {
				return nil, err
			}
			list = append(list, member(name, r.Data, r.Stat))
		}
	}
	return list, nil
}

func member(name string, data []byte, s client.Stat) Member {
	return Member{name, data, int64(s.Czxid), s.Version, s.EphemeralOwner}
}

// GroupChange is a change of a group.
type GroupChange struct {
	Members []Member // all, sorted by name; not to be modified
	Joined  []Member
	Left    []Member
	Changed []Member // with new data
}

// Watch yields the members first, all as Joined, and then every change. It
// combines changes that come faster than they are read; a member that left and
// joined again in between is in both Left and Joined. The last item is an error,
// that of ctx if nothing else fails.
//
// It sets one persistent watch, which servers have since ZooKeeper 3.6. The
// loss of the watching client's own session is not a change of the group.
func (g *Group) Watch(ctx context.Context) iter.Seq2[GroupChange, error] {
	return func(yield func(GroupChange, error) bool) {
		view := &groupView{group: g}
		for {
			err := view.follow(ctx, yield)
			if err == nil {
				return // the consumer has stopped
			}
			if !startAgain(ctx, g.c, err) {
				yield(GroupChange{}, err)
				return
			}
		}
	}
}

// groupView is the state of one Watch.
type groupView struct {
	group   *Group
	members []Member
	shown   bool
}

// follow keeps the view current until an error; nil means that the consumer has
// stopped.
func (v *groupView) follow(ctx context.Context, yield func(GroupChange, error) bool) error {
	w, err := v.group.c.AddWatch(ctx, v.group.path, client.ModeRecursive)
	if err != nil {
		return err
	}
	defer w.Cancel()
	dirty, all := map[string]bool{}, true
	for {
		change, err := v.refresh(ctx, dirty, all)
		if err != nil {
			return err
		}
		some := len(change.Joined)+len(change.Left)+len(change.Changed) > 0
		if some || !v.shown {
			v.shown = true
			if !yield(change, nil) {
				return nil
			}
		}
		dirty = map[string]bool{}
		if all, err = v.group.gather(ctx, w, dirty); err != nil {
			return err
		}
	}
}

// gather waits for an event, takes all that have arrived, and adds the names of
// their members to dirty. It reports whether all members must be read.
func (g *Group) gather(
	ctx context.Context, w *client.Watch, dirty map[string]bool,
) (all bool, err error) {
	for wait := true; wait || len(w.C()) > 0; wait = false {
		select {
		case e, ok := <-w.C():
			switch {
			case !ok || e.Type == client.EventEnded:
				return false, errPositionLost
			case e.Type == client.EventRearmed:
				all = true
			case znode.Parent(e.Path) == g.path && e.Path != g.path:
				dirty[znode.Base(e.Path)] = true
			}
		case <-ctx.Done():
			return false, contextError(ctx)
		}
	}
	return all, nil
}

// refresh reads the members that changed, and returns the difference.
func (v *groupView) refresh(
	ctx context.Context, dirty map[string]bool, all bool,
) (GroupChange, error) {
	var now []Member
	if all {
		list, err := v.group.read(ctx)
		if err != nil {
			return GroupChange{}, err
		}
		now = list
	} else {
		for _, m := range v.members {
			if !dirty[m.Name] {
				now = append(now, m)
			}
		}
		for name := range dirty {
			data, stat, err := v.group.c.Get(ctx, znode.Join(v.group.path, name))
			if errors.Is(err, client.ErrNoNode) {
				continue
			}
			if err != nil {
				return GroupChange{}, err
			}
			now = append(now, member(name, data, stat))
		}
		slices.SortFunc(now, func(a, b Member) int { return cmp.Compare(a.Name, b.Name) })
	}
	change := compare(v.members, now)
	v.members = now
	return change, nil
}

// compare returns the difference between two lists of members.
func compare(was, now []Member) GroupChange {
	change := GroupChange{Members: now}
	old := make(map[string]Member, len(was))
	for _, m := range was {
		old[m.Name] = m
	}
	for _, m := range now {
		before, ok := old[m.Name]
		delete(old, m.Name)
		switch {
		case !ok:
			change.Joined = append(change.Joined, m)
		case before.FencingToken != m.FencingToken:
			change.Left = append(change.Left, before)
			change.Joined = append(change.Joined, m)
		case before.Version != m.Version:
			change.Changed = append(change.Changed, m)
		}
	}
	for _, m := range was {
		if _, ok := old[m.Name]; ok {
			change.Left = append(change.Left, m)
		}
	}
	return change
}
