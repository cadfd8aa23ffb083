package changes

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/zk-lite/zk-lite/znode"
)

// The record returns what was put in, whichever lists the events share, also when it has wrapped around. It takes no
// more memory than it reports.
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
	sum := int64(0)
	for n := c.oldest(); n < c.total; n++ {
		k := &c.ring[n%capacity]
		if sum += int64(len(k.path)); n == c.oldest() || k.may != c.ring[(n-1)%capacity].may {
			sum += k.may.bytes()
		}
	}
	if c.bytes != sum {
		t.Errorf("got %d bytes, want %d", c.bytes, sum)
	}
	if n := c.seek(event(5000).Zxid - 1); event(n).Zxid != event(5000).Zxid || event(n-1).Zxid == event(5000).Zxid {
		t.Errorf("the changes of zxid %v begin at %d", event(5000).Zxid, n)
	}
}

// A thousand creates and deletes of names of a megabyte took three gigabytes on every server until 65,536 newer
// changes: only the number of changes was bounded.
func TestRegression_Record_IsBoundedInBytes(t *testing.T) {
	c := record{floor: 9}
	long := strings.Repeat("x", 1<<20)
	list := func(n int) []znode.ACL {
		return []znode.ACL{{ID: znode.ID{Scheme: "digest", ID: fmt.Sprint(n) + long[:1<<18]}}}
	}
	for round, add := range []func(n int) znode.Event{
		func(n int) znode.Event { return znode.Event{Path: long, Zxid: znode.Zxid(10 + n)} },
		func(n int) znode.Event { return znode.Event{Path: "/a", Zxid: znode.Zxid(1000 + n), ACL: list(n)} },
		func(n int) znode.Event {
			return znode.Event{Path: "/a", Zxid: znode.Zxid(2000 + n), ACL: znode.OpenACL}
		},
	} {
		for n := range 300 {
			e := add(n)
			c.add(&e)
		}
		newest := c.at(c.total - 1)
		if c.bytes > maxBytes || c.bytes < 0 || newest.Path != add(299).Path || newest.Zxid != add(299).Zxid {
			t.Errorf("round %d: got %d bytes, the newest of %v; want at most %d, %v", round, c.bytes, newest.Zxid, maxBytes,
				add(299).Zxid)
		}
		if n := c.seek(c.floor); n != c.oldest() || n > 0 && c.at(n).Zxid != c.floor+1 {
			t.Errorf("round %d: the record goes on at %d after %v, want %d", round, n, c.floor, c.oldest())
		}
	}
}

// A list that is emptied or ends is not taken for another.
func TestSameList(t *testing.T) {
	a := slices.Clone(znode.OpenACL)
	if !sameList(a, a) || !sameList(nil, nil) || sameList(a, a[:0]) || sameList(a, slices.Clone(a)) {
		t.Error("wrong")
	}
}
