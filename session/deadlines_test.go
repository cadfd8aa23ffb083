package session

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/znode"
)

func TestClock_Deadlines_ListsWhatExpires(t *testing.T) {
	c := NewClock(time.Second)
	now := time.Unix(1000, 0)
	list := func() map[time.Time][]znode.SessionID {
		all := map[time.Time][]znode.SessionID{}
		c.Deadlines(func(at time.Time, ids []znode.SessionID) {
			slices.Sort(ids)
			all[at] = ids
		})
		return all
	}
	if got := list(); len(got) != 0 {
		t.Errorf("an empty clock: %v", got)
	}
	c.Track(1, 2*time.Second, now)
	c.Track(2, 2*time.Second, now)
	c.Track(3, 4*time.Second, now)
	c.Track(4, 9*time.Second, now)
	c.Remove(4) // its bucket stays, empty
	got := list()
	if len(got) != 2 {
		t.Errorf("%v", got)
	}
	moments := slices.SortedFunc(maps.Keys(got), time.Time.Compare)
	for _, at := range moments { // the clock itself agrees
		if early := idsOf(c.Expire(at.Add(-time.Millisecond))); len(early) != 0 {
			t.Errorf("%v expire before %v", early, at)
		}
		ids := idsOf(c.Expire(at))
		if slices.Sort(ids); !slices.Equal(ids, got[at]) {
			t.Errorf("at %v expire %v, not %v", at, ids, got[at])
		}
	}
}
