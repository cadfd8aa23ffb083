package recipes_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
	"github.com/zk-lite/zk-lite/recipes"
)

// sum is what the workers know of additions.
type sum struct{ certain, perhaps atomic.Int64 }

func (x *sum) note(err error) error {
	switch {
	case err == nil:
		x.certain.Add(1)
	case errors.Is(err, client.ErrOutcomeUnknown):
		x.perhaps.Add(1)
	}
	return err
}

func (x *sum) check(s *soak, what string, got int64) {
	low, high := x.certain.Load(), x.certain.Load()+x.perhaps.Load()
	if got < low || got > high || low == 0 {
		s.errorf("%s is %d, want %d to %d", what, got, low, high)
	}
	s.Logf("%s: %d after %d additions and perhaps %d", what, got, low, high-low)
}

// setting is the value of the Config.
type setting struct{ N int64 }

// startValues starts workers that count, change a setting, join and leave a group, and others that watch all of it.
func (s *soak) startValues() {
	var counted, changed sum
	for i, c := range s.clients {
		n := recipes.NewCounter(c, path("counter"))
		s.work(fmt.Sprintf("counter %d", i), func(ctx context.Context) error {
			_, err := n.Add(ctx, 1)
			return counted.note(err)
		})
		var f *recipes.Value[setting]
		s.must(again(s.ctx, func() (err error) {
			f, err = recipes.NewValue(s.ctx, c, path("config"), recipes.JSON[setting]())
			return err
		}))
		s.work(fmt.Sprintf("config %d", i), func(ctx context.Context) error {
			return changed.note(f.Update(ctx, func(v setting) (setting, error) { v.N++; return v, nil }))
		})
		s.atEnd(func() { s.configConverges(i, f) })
		s.startMember(i, c)
		var cache *client.Cache
		s.must(again(s.ctx, func() (err error) {
			cache, err = client.NewCache(s.ctx, c, path("group"))
			return err
		}))
		s.atEnd(func() { s.cacheConverges(i, cache) })
	}
	s.atEnd(func() {
		c := s.connectLong()
		v, err := recipes.NewCounter(c, path("counter")).Get(s.ctx)
		s.must(err)
		counted.check(s, "the counter", v)
		data, _, err := c.Get(s.ctx, path("config"))
		s.must(err)
		var last setting
		s.must(json.Unmarshal(data, &last))
		changed.check(s, "the setting", last.N)
		s.close(c)
	})
}

// configConverges waits until a Config shows what the others have, and closes it.
func (s *soak) configConverges(i int, f *recipes.Value[setting]) {
	s.Helper()
	wait.Succeeds(s, fmt.Sprintf("config %d is that of the znode", i), func() error {
		stat, err := s.read(i, path("config"))
		if have := f.Stat(); err != nil || have.Mzxid != stat.Mzxid {
			return fmt.Errorf("it has %#x, want %#x; %w", int64(have.Mzxid), int64(stat.Mzxid),
				errors.Join(err, f.Err()))
		}
		return nil
	})
	f.Close()
}

// read reads a znode, after a sync.
func (s *soak) read(i int, path string) (client.Stat, error) {
	if err := s.clients[i].Sync(s.ctx, path); err != nil {
		return client.Stat{}, err
	}
	_, stat, err := s.clients[i].Get(s.ctx, path)
	return stat, err
}

// cacheConverges waits until a Cache is what can be read, and closes it. A member that loses its session even now
// joins again.
func (s *soak) cacheConverges(i int, cache *client.Cache) {
	s.Helper()
	wait.Succeeds(s, fmt.Sprintf("cache %d is what can be read", i), func() error {
		names, _, err := s.clients[i].Children(s.ctx, path("group"))
		if err != nil {
			return err
		}
		want, have := map[string]client.Zxid{}, map[string]client.Zxid{}
		for _, name := range names {
			stat, err := s.read(i, path("group/"+name))
			if err != nil {
				return err
			}
			want[path("group/"+name)] = stat.Mzxid
		}
		for node := range cache.All() {
			if node.Path != path("group") {
				have[node.Path] = node.Stat.Mzxid
			}
		}
		if !maps.Equal(have, want) {
			return fmt.Errorf("it has %v, want %v; %w", have, want, cache.Err())
		}
		return nil
	})
	cache.Close()
}

// startMember keeps a member of the group, whose data changes, another that joins and leaves, an instance of a service,
// and a watcher of each.
func (s *soak) startMember(i int, c *client.Client) {
	group := recipes.NewGroup(c, path("group"))
	var stays *recipes.Membership
	s.must(again(s.ctx, func() (err error) {
		stays, err = group.Join(s.ctx, fmt.Sprintf("stays-%d", i), []byte("0"))
		return err
	}))
	n := 0
	s.work(fmt.Sprintf("member %d", i), func(ctx context.Context) error {
		n++
		return stays.Set(ctx, fmt.Append(nil, n))
	})
	s.work(fmt.Sprintf("guest %d", i), func(ctx context.Context) error {
		m, err := group.Join(ctx, fmt.Sprintf("guest-%d", i), nil)
		if err != nil {
			return err
		}
		return m.Leave(s.ctx)
	})
	registry := recipes.NewRegistry(c, path("registry"))
	s.work(fmt.Sprintf("instance %d", i), func(ctx context.Context) error {
		r, err := registry.Register(ctx, recipes.Instance{Service: "s", ID: fmt.Sprint(i), Address: "a"})
		if err != nil {
			return err
		}
		return r.Leave(s.ctx)
	})
	s.watchGroup(i, group, registry)
	s.atEnd(func() {
		if err := stays.Err(); err != nil {
			s.errorf("member %d is not kept: %v", i, err)
		}
	})
	s.leave = append(s.leave, func() { s.must(stays.Leave(s.ctx)) })
}

// watchGroup follows group and registry until the end, and checks that the reported changes add
// up to the state.
func (s *soak) watchGroup(i int, group *recipes.Group, registry *recipes.Registry) {
	ctx, stop := context.WithCancel(s.ctx)
	var members, instances atomic.Pointer[[]string]
	var ended atomic.Int32
	go func() {
		defer ended.Add(1)
		view := map[string]int64{}
		for change, err := range group.Watch(ctx) {
			if err != nil {
				s.watchEnded(ctx, err)
				return
			}
			s.addUp(view, change)
			names := slices.Sorted(maps.Keys(view))
			members.Store(&names)
		}
	}()
	go func() {
		defer ended.Add(1)
		for change, err := range registry.Watch(ctx, "s") {
			if err != nil {
				s.watchEnded(ctx, err)
				return
			}
			names := []string{}
			for _, x := range change.Instances {
				names = append(names, x.ID)
			}
			instances.Store(&names)
		}
	}()
	s.atEnd(func() {
		var want []string
		for j := range s.clients {
			want = append(want, fmt.Sprintf("stays-%d", j))
		}
		wait.Succeeds(s, fmt.Sprintf("watcher %d sees what there is", i), func() error {
			have, found := members.Load(), instances.Load()
			if have == nil || found == nil || !slices.Equal(*have, want) || len(*found) > 0 {
				return fmt.Errorf("it sees %v and %v, want %v and nobody", have, found, want)
			}
			return nil
		})
		stop()
		wait.Succeeds(s, "the watchers end", func() error {
			if ended.Load() != 2 {
				return errors.New("not yet")
			}
			return nil
		})
	})
}

func (s *soak) watchEnded(ctx context.Context, err error) {
	if ctx.Err() == nil {
		s.errorf("a watch has ended: %v", err)
	}
}

// addUp applies a change to the view so far, and compares with the state.
func (s *soak) addUp(view map[string]int64, change recipes.GroupChange) {
	for _, m := range change.Left {
		if view[m.Name] != m.FencingToken {
			s.errorf("member %s has left that was not there", m.Name)
		}
		delete(view, m.Name)
	}
	for _, m := range change.Joined {
		if view[m.Name] != 0 {
			s.errorf("member %s has joined that was there", m.Name)
		}
		view[m.Name] = m.FencingToken
	}
	for _, m := range change.Changed {
		if view[m.Name] != m.FencingToken {
			s.errorf("member %s has changed that was not there", m.Name)
		}
	}
	for _, m := range change.Members {
		if view[m.Name] != m.FencingToken {
			s.errorf("member %s is there, and nobody has told", m.Name)
		}
	}
	if len(view) != len(change.Members) {
		s.errorf("%d members are there, %d were told of", len(change.Members), len(view))
	}
}
