package changes

import (
	"fmt"
	"slices"
	"testing"

	"github.com/zk-lite/zk-lite/znode"
)

// What the record gives back is what was put in, whichever lists the events share, also
// when it has gone round; and it takes no more room than it says.
func TestRecord_GivesBackEvents(t *testing.T) {
	lists := [][]znode.ACL{
		nil, {}, znode.OpenACL, slices.Clone(znode.OpenACL),
		{{Perms: znode.PermRead, ID: znode.ID{Scheme: "world", ID: "anyone"}}},
	}
	event := func(n uint64) znode.Event {
		return znode.Event{
			Type: znode.EventType(1 + n%3), Path: fmt.Sprintf("/%d", n), Zxid: znode.Zxid(10 + n/2),
			ACL: lists[n/7%5], ParentACL: lists[n/11%5],
		}
	}
	c := record{floor: 9}
	const total = capacity + 1000
	for n := range uint64(total) {
		e := event(n)
		c.add(&e)
		if cap(c.ring) > capacity {
			t.Fatalf("room for %d changes", cap(c.ring))
		}
	}
	if c.oldest() != 1000 || c.floor != event(999).Zxid {
		t.Errorf("the oldest is %d behind %v, want 1000 behind %v", c.oldest(), c.floor, event(999).Zxid)
	}
	for n := c.oldest(); n < c.total; n++ {
		got, want := c.at(n), event(n)
		if got.Type != want.Type || got.Path != want.Path || got.Zxid != want.Zxid ||
			!slices.Equal(got.ACL, want.ACL) || !slices.Equal(got.ParentACL, want.ParentACL) {
			t.Fatalf("change %d is %+v, want %+v", n, got, want)
		}
	}
	if n := c.seek(event(5000).Zxid - 1); event(n).Zxid != event(5000).Zxid || event(n-1).Zxid == event(5000).Zxid {
		t.Errorf("the changes of zxid %v begin at %d", event(5000).Zxid, n)
	}
}

// A list that is emptied or ends is not taken for another.
func TestSameList(t *testing.T) {
	a := slices.Clone(znode.OpenACL)
	if !sameList(a, a) || !sameList(nil, nil) || sameList(a, a[:0]) || sameList(a, slices.Clone(a)) {
		t.Error("wrong")
	}
}
