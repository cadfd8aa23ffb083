package curator_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/zk-lite/zk-lite/internal/curator"
	"github.com/zk-lite/zk-lite/znode"
)

// placesOf describes the places below /p: kind, and each user with its session, or with whom it waits for.
func placesOf(ephemerals map[string]znode.SessionID, items ...string) string {
	var all []string
	places := curator.Places("/p", ephemerals, items)
	for i := range places {
		p := &places[i]
		text := p.Kind
		for j, u := range p.Users {
			text += fmt.Sprintf(" %d", u.Session)
			if u.Waits {
				text += strings.ReplaceAll(fmt.Sprint("→", p.WaitsFor(j)), "0x", "")
			}
		}
		all = append(all, text)
	}
	return strings.Join(all, "; ")
}

func TestPlaces_OfAllLayouts(t *testing.T) {
	type sessions = map[string]znode.SessionID
	for name, c := range map[string]struct {
		ephemerals sessions
		want       string
	}{
		"Curator's lock":  {sessions{"_c_a-lock-0000000003": 1, "_c_b-lock-0000000004": 2, "_c_c-lock-0000000005": 3}, "lock 1 2→[1] 3→[1 2]"},
		"kazoo's lock":    {sessions{"b__lock__0000000003": 1, "a__lock__0000000004": 2}, "lock 1 2→[1]"},
		"both":            {sessions{"b__lock__0000000003": 1, "_c_a-lock-0000000004": 2}, "lock 1 2→[1]"},
		"past the wrap":   {sessions{"lock-2147483647": 1, "lock--2147483648": 2, "lock--2147483647": 3}, "lock 1 2→[1] 3→[1 2]"},
		"threads of one":  {sessions{"lock-0000000001": 1, "lock-0000000002": 1, "lock-0000000003": 2}, "lock 1 1→[1] 2→[1]"},
		"one not known":   {sessions{"lock-0000000001": 0, "lock-0000000002": 2}, "lock 0 2→[]"},
		"readers":         {sessions{"__READ__0000000001": 1, "__READ__0000000002": 2, "__WRIT__0000000003": 3, "__READ__0000000004": 4}, "read-write lock 1 2 3→[1 2] 4→[3]"},
		"a writer":        {sessions{"__WRIT__0000000001": 1, "__READ__0000000002": 2, "__READ__0000000003": 3, "__WRIT__0000000004": 4}, "read-write lock 1 2→[1] 3→[1] 4→[1 2 3]"},
		"a downgrade":     {sessions{"__WRIT__0000000001": 1, "__WRIT__0000000002": 2, "__READ__0000000003": 1}, "read-write lock 1 1 2→[1]"},
		"kazoo's readers": {sessions{"a__rlock__0000000001": 1, "b__rlock__0000000002": 2, "c__lock__0000000003": 3}, "read-write lock 1 2 3→[1 2]"},
		"an election":     {sessions{"_c_a-latch-0000000001": 1, "_c_b-latch-0000000002": 2}, "election 1 2→[1]"},
		"kazoo's, mixed":  {sessions{"a__lock__0000000001": 1, "_c_b-latch-0000000002": 2}, "election 1 2→[1]"},
		"a semaphore":     {sessions{"_c_a-lease-0000000001": 1, "_c_b-lease-0000000002": 2}, "semaphore 1 2"},
		"a group":         {sessions{"web-2": 2, "web-1": 1}, "group 1 2"},
		"lock and group":  {sessions{"lock-0000000001": 2, "web-1": 1}, "lock 2; group 1"},
		"nothing":         {nil, ""},
	} {
		if got := placesOf(c.ephemerals); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

func TestPlaces_Queues(t *testing.T) {
	for _, names := range [][]string{ // in their order
		{"queue-2147483647", "queue--2147483648"},
		{curator.Prioritized.Name(-1) + "0000000002", curator.Prioritized.Name(3) + "0000000000", curator.Prioritized.Name(3) + "0000000001"},
		{curator.Delayed.Name(7) + "0000000002", curator.Delayed.Name(8) + "0000000000"},
		{curator.KazooItems.Name(5) + "0000000002", curator.KazooItems.Name(100) + "0000000000", "entry-1000-0000000001"},
	} {
		shuffled := slices.Clone(names)
		slices.Reverse(shuffled)
		places := curator.Places("/p", nil, shuffled)
		if len(places) != 1 || places[0].Kind != curator.QueueKind || places[0].Waiting() != 0 {
			t.Fatalf("%q are %+v, want one queue in which nobody waits", names, places)
		}
		for i, u := range places[0].Users {
			if u.Name != names[i] || !curator.IsItem(u.Name) {
				t.Errorf("item %d is %s, want %s", i, u.Name, names[i])
			}
		}
	}
	for _, name := range []string{"queue-", "queue-1", "entry-1-0000000001", "entry-100", "lock-0000000001"} {
		if curator.IsItem(name) {
			t.Errorf("%s is an item", name)
		}
	}
}

// When some have left, those behind them hold the lock.
func TestPlace_Confirm(t *testing.T) {
	ephemerals := map[string]znode.SessionID{}
	for i := range 9 {
		ephemerals[fmt.Sprintf("lock-%010d", i)] = znode.SessionID(i)
	}
	p := curator.Places("/p", ephemerals, nil)[0]
	looked := 0
	p.Confirm(3, func(u *curator.User) bool {
		looked++
		return u.Session != 0 && u.Session != 2
	})
	if looked != 5 || len(p.Users) != 7 || p.Users[0].Session != 1 || p.Users[0].Waits || p.Waiting() != 6 || p.Users[3].Session != 5 {
		t.Errorf("looked at %d: %+v, want a place without 0 and 2, after a look at 5", looked, p.Users)
	}
	p.Confirm(3, func(*curator.User) bool { return false })
	if len(p.Users) != 0 {
		t.Errorf("%+v, want nobody", p.Users)
	}
}

// circlesIn are the circles of sessions in places, each given by its path and the sessions in their order: r1 reads.
func circlesIn(places ...string) (found []string) {
	var all []curator.Place
	for _, text := range places {
		words := strings.Fields(text)
		ephemerals := map[string]znode.SessionID{}
		for i, word := range words[2:] {
			marker := words[1]
			if rest, read := strings.CutPrefix(word, "r"); read {
				marker, word = curator.ReadLock, rest
			}
			var id int
			fmt.Sscan(word, &id)
			ephemerals[fmt.Sprintf("%s%010d", marker, i)] = znode.SessionID(id)
		}
		all = append(all, curator.Places(words[0], ephemerals, nil)...)
	}
	for _, circle := range curator.Deadlocks(all) {
		text := ""
		for i, e := range circle {
			next := circle[(i+1)%len(circle)].Session
			text += fmt.Sprintf("%d[%s→%s]%d ", e.Session, e.Waiter, e.Holder, next)
		}
		found = append(found, strings.TrimSpace(text))
	}
	return found
}

func TestDeadlocks(t *testing.T) {
	for name, c := range map[string]struct{ places, want []string }{
		"none": {[]string{"/a lock- 1 2", "/b lock- 1 3"}, nil},
		"two": {[]string{"/a lock- 1 2", "/b lock- 2 1"},
			[]string{"1[/b/lock-0000000001→/b/lock-0000000000]2 2[/a/lock-0000000001→/a/lock-0000000000]1"}},
		"three": {[]string{"/a lock- 1 3", "/b lock- 2 1", "/c lock- 3 2"}, []string{
			"1[/b/lock-0000000001→/b/lock-0000000000]2 2[/c/lock-0000000001→/c/lock-0000000000]3 " +
				"3[/a/lock-0000000001→/a/lock-0000000000]1"}},
		"behind another": {[]string{"/a lock- 1 9 2", "/b lock- 2 8 1"},
			[]string{"1[/b/lock-0000000002→/b/lock-0000000000]2 2[/a/lock-0000000002→/a/lock-0000000000]1"}},
		"two circles": {[]string{"/a lock- 1 2", "/b lock- 2 1", "/c lock- 3 4", "/d lock- 4 3", "/e lock- 1 3"}, []string{
			"1[/b/lock-0000000001→/b/lock-0000000000]2 2[/a/lock-0000000001→/a/lock-0000000000]1",
			"3[/d/lock-0000000001→/d/lock-0000000000]4 4[/c/lock-0000000001→/c/lock-0000000000]3"}},
		"readers held together": {[]string{"/a __WRIT__ r1 r2", "/b __WRIT__ r2 r1"}, nil},
		"a writer for a reader": {[]string{"/a __WRIT__ r1 r2 3", "/b lock- 3 2"},
			[]string{"2[/b/lock-0000000001→/b/lock-0000000000]3 3[/a/__WRIT__0000000002→/a/__READ__0000000001]2"}},
		"two that upgrade": {[]string{"/a __WRIT__ r1 r2 1 2"},
			[]string{"1[/a/__WRIT__0000000002→/a/__READ__0000000001]2 2[/a/__WRIT__0000000003→/a/__READ__0000000000]1"}},
		"threads of one":     {[]string{"/a lock- 1 2 1"}, nil},
		"threads of one, ii": {[]string{"/a lock- 1 1", "/b lock- 1 1"}, nil},
		"an election":        {[]string{"/a latch- 1 2", "/b lock- 2 1"}, nil},
		"semaphores":         {[]string{"/a lease- 1 2", "/b lease- 2 1"}, nil},
		"kazoo":              {[]string{"/a __lock__ 1 2", "/b __lock__ 2 1"}, []string{"1[/b/__lock__0000000001→/b/__lock__0000000000]2 2[/a/__lock__0000000001→/a/__lock__0000000000]1"}},
		"not known":          {[]string{"/a lock- 0 2", "/b lock- 2 0"}, nil},
	} {
		if got := circlesIn(c.places...); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// A chain of many sessions that ends in a circle is searched in time that grows with its length.
func TestDeadlocks_OfMany(t *testing.T) {
	const n = 50_000
	var all []curator.Place
	for i := range n {
		next := (i + 1) % n
		all = append(all, curator.Places(fmt.Sprint("/", i), map[string]znode.SessionID{
			"lock-0000000000": znode.SessionID(next + 1), "lock-0000000001": znode.SessionID(i + 1),
		}, nil)...)
	}
	circles := curator.Deadlocks(all)
	if len(circles) != 1 || len(circles[0]) != n || circles[0][n-1].Session != n {
		t.Errorf("%d circles, want one of %d sessions", len(circles), n)
	}
}

// Whatever the names are, each is in one place, and the first one there does not wait.
func FuzzPlaces(f *testing.F) {
	f.Add("_c_a-lock-0000000001\n__lock__--2147483648\nx__rlock__0000000003\nweb\n_c_a-latch-0000000009")
	f.Add("__READ__0000000001\n__WRIT__0000000001\nlease-0000000000\nqueue-|7F|0000000001\nentry-100-0000000002")
	f.Fuzz(func(t *testing.T, text string) {
		names := map[string]znode.SessionID{}
		var items []string
		for i, name := range strings.Split(text, "\n") {
			if names[name] = znode.SessionID(i % 3); curator.IsItem(name) {
				items = append(items, name)
			}
		}
		places, users := curator.Places("/p", names, nil), 0
		for i := range places {
			if users += len(places[i].Users); places[i].Users[0].Waits {
				t.Errorf("%q: the first waits in %+v", text, places[i])
			}
			for j := range places[i].Users {
				places[i].WaitsFor(j)
			}
		}
		if users != len(names) {
			t.Errorf("%q: %d users of %d names", text, users, len(names))
		}
		curator.Deadlocks(places)
		curator.Places("/p", nil, items)
	})
}
