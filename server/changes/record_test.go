package changes

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/zk-lite/zk-lite/znode"
)

// The record returns what was put in, whichever lists and authors the events share, also when older ones are gone. It
// takes no more memory than it reports.
func TestRecord_GivesBackEvents(t *testing.T) {
	lists := [][]znode.ACL{
		nil, {}, znode.OpenACL, slices.Clone(znode.OpenACL),
		{{Perms: znode.PermRead, ID: znode.ID{Scheme: "world", ID: "anyone"}}},
	}
	event := func(n uint64) znode.Event {
		e := znode.Event{
			Type: znode.EventType(1 + n%3), Path: fmt.Sprintf("/%d", n), Zxid: znode.Zxid(10 + n/2),
			ACL: lists[n/7%5], ParentACL: lists[n/11%5], Stat: znode.Stat{Version: znode.Version(n)},
			Data: fmt.Append(nil, n), Mode: znode.Mode(n % 2),
			Txn: &znode.Txn{Session: znode.SessionID(n % 100), Identities: []znode.ID{{Scheme: "ip", ID: fmt.Sprint(n % 100)}}},
		}
		if e.Type == znode.EventDataChanged {
			e.Before = fmt.Append(nil, n-1)
		}
		return e
	}
	c := record{window: 1 << 20, floor: 9}
	for n := range uint64(20_000) {
		e := event(n)
		c.add(&e)
		if c.bytes > c.window {
			t.Fatalf("got %d bytes after %d changes, want at most %d", c.bytes, n, c.window)
		}
	}
	if c.oldest() < 1000 || c.oldest() > 19_000 || c.floor != event(c.oldest()-1).Zxid {
		t.Errorf("the oldest is %d behind %v, want 1000 to 19,000 behind %v", c.oldest(), c.floor, event(c.oldest()-1).Zxid)
	}
	if want := int(c.total/chunkLength-c.oldest()/chunkLength) + 1; len(c.chunks) != want {
		t.Errorf("got %d chunks, want %d", len(c.chunks), want)
	}
	sum, authors := int64(0), map[*Author]bool{}
	for n := c.oldest(); n < c.total; n++ {
		got, want, k := c.event(n), event(n), c.entry(n)
		by := *k.by
		by.uses = 0
		if w := (Author{Session: want.Txn.Session, Identities: want.Txn.Identities}); !reflect.DeepEqual(by, w) {
			t.Fatalf("the author of change %d is %+v, want %+v", n, by, w)
		}
		want.Txn = nil
		if want.ACL, want.ParentACL = k.may.own, k.may.parent; !reflect.DeepEqual(got, want) {
			t.Fatalf("change %d is %+v, want %+v", n, got, want)
		}
		if !slices.Equal(got.ACL, event(n).ACL) || !slices.Equal(got.ParentACL, event(n).ParentACL) {
			t.Fatalf("the lists of change %d are %v and %v, want those of %+v", n, got.ACL, got.ParentACL, event(n))
		}
		if sum += k.bytes(); n == c.oldest() || k.may != c.entry(n-1).may {
			sum += k.may.bytes()
		}
		if !authors[k.by] {
			authors[k.by] = true
			sum += k.by.bytes()
		}
	}
	if c.bytes != sum {
		t.Errorf("got %d bytes, want %d", c.bytes, sum)
	}
	if len(authors) != 100 {
		t.Errorf("a hundred clients are %d authors", len(authors))
	}
	if n := c.seek(event(19_500).Zxid - 1); event(n).Zxid != event(19_500).Zxid || event(n-1).Zxid == event(19_500).Zxid {
		t.Errorf("the changes of zxid %v begin at %d", event(19_500).Zxid, n)
	}
}

// A thousand creates and deletes of names of a megabyte took three gigabytes on every server until 65,536 newer
// changes: only the number of changes was bounded.
func TestRegression_Record_IsBoundedInBytes(t *testing.T) {
	c := record{window: DefaultWindow, floor: 9}
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
		newest := c.event(c.total - 1)
		if c.bytes > c.window || c.bytes < 0 || newest.Path != add(299).Path || newest.Zxid != add(299).Zxid {
			t.Errorf("round %d: got %d bytes, the newest of %v; want at most %d, %v", round, c.bytes, newest.Zxid, c.window,
				add(299).Zxid)
		}
		if n := c.seek(c.floor); n != c.oldest() || n > 0 && c.event(n).Zxid != c.floor+1 {
			t.Errorf("round %d: the record goes on at %d after %v, want %d", round, n, c.floor, c.oldest())
		}
	}
}

// The constants are what the types take.
func TestRecord_Memory(t *testing.T) {
	for what, sizes := range map[string][2]uintptr{
		"an entry":    {entryMemory, reflect.TypeFor[entry]().Size()},
		"an author":   {authorMemory, reflect.TypeFor[Author]().Size()},
		"an identity": {identityMemory, reflect.TypeFor[znode.ID]().Size()},
	} {
		if sizes[0] != sizes[1] {
			t.Errorf("%s counts as %d bytes, and takes %d", what, sizes[0], sizes[1])
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
