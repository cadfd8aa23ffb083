package changes

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zk-lite/zk-lite/znode"
)

func (k *kit) subscribe(f Filter, after Position) *Stream {
	k.tb.Helper()
	st, err := k.feed.Subscribe([]Filter{f}, after)
	if err != nil {
		k.tb.Fatal(err)
	}
	k.tb.Cleanup(st.Close)
	return st
}

// read returns the changes that are there, as text, and the last one's position.
func (k *kit) read(st *Stream) (lines []string, at Position) {
	k.tb.Helper()
	ctx, cancel := context.WithCancel(k.tb.Context())
	cancel()
	for {
		changes, err := st.Next(ctx)
		if errors.Is(err, context.Canceled) {
			return lines, at
		}
		if err != nil {
			k.tb.Fatal(err)
		}
		for _, c := range changes {
			lines, at = append(lines, fmt.Sprint(c.Type, " ", c.Path)), c.At
		}
	}
}

func TestStream_Kinds(t *testing.T) {
	want := map[Kind][]string{
		KindData:   {"NodeDataChanged /a", "NodeDeleted /a"},
		KindExists: {"NodeCreated /a", "NodeDataChanged /a", "NodeDeleted /a"},
		KindChildren: {
			"NodeChildrenChanged /a", "NodeChildrenChanged /a", "NodeDeleted /a",
		},
		KindPersistent: {
			"NodeCreated /a", "NodeDataChanged /a", "NodeChildrenChanged /a",
			"NodeChildrenChanged /a", "NodeDeleted /a",
		},
		KindRecursive: {
			"NodeCreated /a", "NodeDataChanged /a", "NodeCreated /a/b", "NodeDataChanged /a/b",
			"NodeCreated /a/b/c", "NodeDeleted /a/b/c", "NodeDeleted /a/b", "NodeDeleted /a",
		},
	}
	k := newKit(t)
	early := map[Kind]*Stream{}
	for kind := range want {
		early[kind] = k.subscribe(Filter{Path: "/a", Kind: kind}, Position{})
	}
	k.do(made("/a"), changed("/a"), made("/ab"), made("/a/b"), changed("/a/b"), made("/a/b/c"),
		gone("/a/b/c"), gone("/a/b"), gone("/ab"), gone("/a"))
	for kind, lines := range want {
		if got, _ := k.read(early[kind]); !slices.Equal(got, lines) {
			t.Errorf("kind %d, waiting: %q, want %q", kind, got, lines)
		}
		late := k.subscribe(Filter{Path: "/a", Kind: kind}, Position{})
		if got, _ := k.read(late); !slices.Equal(got, lines) {
			t.Errorf("kind %d, from the record: %q, want %q", kind, got, lines)
		}
	}
	all, _ := k.read(k.subscribe(Filter{Path: "/", Kind: KindRecursive}, Position{}))
	if len(all) != 10 {
		t.Errorf("below the root: %q", all)
	}
}

// A stream that continues elsewhere, after any of the changes, misses and repeats none, also within a transaction.
func TestStream_Resume_AfterEveryChange(t *testing.T) {
	k := newKit(t)
	var multi []edit
	for i := range 5 {
		multi = append(multi, made(fmt.Sprint("/m/", i)), made(fmt.Sprint("/x/", i)))
	}
	k.do(made("/m"), made("/x"), together(multi...), changed("/m"), gone("/m/3"))
	f := Filter{Path: "/m", Kind: KindRecursive}
	st := k.subscribe(f, Position{})
	changes, err := st.Next(t.Context())
	if err != nil || len(changes) != 8 {
		t.Fatalf("changes %+v (%v), want 8", changes, err)
	}
	for i, c := range changes {
		var want []string
		for _, later := range changes[i+1:] {
			want = append(want, fmt.Sprint(later.Type, " ", later.Path))
		}
		if got, _ := k.read(k.subscribe(f, c.At)); !slices.Equal(got, want) {
			t.Errorf("after %+v: %q, want %q", c, got, want)
		}
	}
}

func TestStream_TooOld(t *testing.T) {
	k := newKit(t)
	k.do(made("/a"), made("/b"))
	start := Position{Zxid: 1}
	quiet := k.subscribe(Filter{Path: "/b", Kind: KindData}, start)
	slow := k.subscribe(Filter{Path: "/a", Kind: KindData}, start)
	k.read(quiet)
	k.read(slow)
	for k.feed.record.oldest() < 3 {
		k.do(changed("/a"))
	}
	if _, err := slow.Next(t.Context()); !errors.Is(err, ErrTooOld) {
		t.Errorf("a stream that is too late: %v", err)
	}
	if _, err := k.feed.Subscribe([]Filter{{Path: "/a"}}, start); !errors.Is(err, ErrTooOld) {
		t.Errorf("a new stream from too long ago: %v", err)
	}
	k.do(changed("/b"))
	if got, _ := k.read(quiet); !slices.Equal(got, []string{"NodeDataChanged /b"}) {
		t.Errorf("a stream that had nothing to report is not late: %q", got)
	}
	k.mu.Lock()
	k.feed.Restart(k.zxid)
	k.mu.Unlock()
	if _, err := quiet.Next(t.Context()); !errors.Is(err, ErrTooOld) {
		t.Errorf("after a snapshot came: %v", err)
	}
}

func TestStream_WaitsForAServerThatIsBehind(t *testing.T) {
	k := newKit(t)
	k.do(made("/a"))
	now := k.zxid
	st := k.subscribe(Filter{Path: "/a", Kind: KindData}, Position{Zxid: now + 2})
	k.do(changed("/a"), changed("/a")) // the client has seen these elsewhere
	if got, _ := k.read(st); len(got) != 0 {
		t.Errorf("repeated: %q", got)
	}
	k.do(changed("/a"))
	if got, at := k.read(st); len(got) != 1 || at.Zxid != now+3 {
		t.Errorf("%q at %v", got, at)
	}
}

func TestStream_HidesWhatMayNotBeRead(t *testing.T) {
	k := newKit(t)
	k.do(createWith("/s", []znode.ACL{{Perms: znode.PermAll, ID: znode.ID{Scheme: "digest", ID: "u:x"}}}))
	stranger, _ := k.read(k.subscribe(Filter{Path: "/s", Kind: KindExists}, Position{}))
	owner, _ := k.read(k.subscribe(Filter{
		Path: "/s", Kind: KindExists, Identities: []znode.ID{{Scheme: "digest", ID: "u:x"}},
	}, Position{}))
	if len(stranger) != 0 || len(owner) != 1 {
		t.Errorf("a stranger sees %q, the owner %q", stranger, owner)
	}
}

func TestStream_Next_WakesAndProgresses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t)
		k.do(made("/a"))
		st, err := k.feed.Subscribe([]Filter{{Path: "/a", Kind: KindData}}, Position{Zxid: 100})
		if err != nil {
			t.Fatal(err)
		}
		defer st.Close()
		st.after, st.seen = Position{Zxid: 1}, 1
		got := make(chan []Change)
		go func() {
			c, _ := st.Next(context.Background())
			got <- c
		}()
		synctest.Wait()
		k.do(changed("/a"))
		if c := <-got; len(c) != 1 {
			t.Errorf("changes %+v, want one", c)
		}
		k.do(made("/elsewhere"))
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if _, err := st.Next(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("nothing to report: %v", err)
		}
		if st.Zxid() != k.zxid {
			t.Errorf("progress %v, the server is at %v", st.Zxid(), k.zxid)
		}
	})
}

// Several filters are one stream: in one order, nothing twice, resumable anywhere.
func TestStream_SeveralFilters_OneOrder(t *testing.T) {
	k := newKit(t)
	filters := []Filter{
		{Path: "/a", Kind: KindChildren}, {Path: "/a", Kind: KindPersistent},
		{Path: "/a/b", Kind: KindExists}, {Path: "/c", Kind: KindRecursive},
	}
	waiting, err := k.feed.Subscribe(filters, Position{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(waiting.Close)
	multi := together(made("/a/b"), made("/c"), changed("/a/b"), made("/c/d"))
	k.do(made("/a"), multi, changed("/a"), gone("/a/b"))
	want := []string{
		"NodeCreated /a", "NodeCreated /a/b", "NodeChildrenChanged /a", "NodeCreated /c",
		"NodeDataChanged /a/b", "NodeCreated /c/d", "NodeDataChanged /a", "NodeDeleted /a/b",
		"NodeChildrenChanged /a",
	}
	changes, err := waiting.Next(t.Context())
	if err != nil || len(changes) != len(want) {
		t.Fatalf("changes %+v (%v), want %d", changes, err, len(want))
	}
	for i, c := range changes {
		if got := fmt.Sprint(c.Type, " ", c.Path); got != want[i] {
			t.Errorf("change %d: %s, want %s", i, got, want[i])
		}
		st, err := k.feed.Subscribe(filters, c.At)
		if err != nil {
			t.Fatal(err)
		}
		if got, _ := k.read(st); !slices.Equal(got, want[i+1:]) {
			t.Errorf("after %+v: %q, want %q", c, got, want[i+1:])
		}
		st.Close()
	}
}
