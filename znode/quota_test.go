package znode

import (
	"slices"
	"testing"
)

// quotaRun is a tree with a quota on /q and one on /q/deep.
type quotaRun struct {
	t    *testing.T
	tree *Tree
	x    Txn
}

func newQuotaRun(t *testing.T, limits string) *quotaRun {
	h := &quotaRun{t: t, tree: NewTree(), x: Txn{Zxid: 1, EnforceQuota: true}}
	h.create("/q", "12345", OK)
	h.create("/q/a", "1", OK)
	h.create("/zookeeper/quota/q", "", OK)
	h.create("/zookeeper/quota/q/zookeeper_limits", limits, OK)
	h.create("/zookeeper/quota/q/zookeeper_stats", "count=0,bytes=0", OK)
	return h
}

func (h *quotaRun) create(path, data string, want Error) {
	h.t.Helper()
	_, _, code := h.tree.Create(&h.x, &CreateRequest{Path: path, Data: []byte(data), ACL: OpenACL})
	if code != want {
		h.t.Errorf("create %s: %v, want %v", path, code.Name(), want.Name())
	}
}

func (h *quotaRun) set(path, data string, want Error) {
	h.t.Helper()
	if _, code := h.tree.SetData(&h.x, path, []byte(data), AnyVersion); code != want {
		h.t.Errorf("set %s: %v, want %v", path, code.Name(), want.Name())
	}
}

func (h *quotaRun) stats(want string) {
	h.t.Helper()
	data, st, code := h.tree.Get("/zookeeper/quota/q/zookeeper_stats", nil)
	if string(data) != want || st.Version != 0 || st.Mzxid != 1 || code != OK {
		h.t.Errorf("stats %q %+v %v, want %q unchanged by version", data, st, code, want)
	}
}

// TestQuota_Stats_FollowTheSubtree: counting when the stats znode is created,
// then in place, without a version or an event.
func TestQuota_Stats_FollowTheSubtree(t *testing.T) {
	h := newQuotaRun(t, "count=-1,bytes=-1")
	h.stats("count=2,bytes=6") // the znode itself counts, and data only
	h.x.Zxid = 2
	h.x.Reset()
	h.create("/q/b", "22", OK)
	h.stats("count=3,bytes=8")
	h.create("/q/b/c", "", OK)
	h.set("/q/b", "7777777", OK)
	h.stats("count=4,bytes=13")
	if code := h.tree.Delete(&h.x, "/q/b/c", -1); code != OK {
		t.Fatalf("delete of /q/b/c: %v, want no error", code)
	}
	h.set("/q", "", OK)
	h.stats("count=3,bytes=8")
	h.create("/other", "123", OK)
	h.create("/qq", "123", OK) // no child of /q
	h.stats("count=3,bytes=8")
	for _, e := range h.x.Events {
		if e.Path == "/zookeeper/quota/q/zookeeper_stats" {
			t.Errorf("event %v", e)
		}
	}
	h.tree = rebuild(t, h.tree)
	h.create("/q/d", "1", OK)
	h.stats("count=4,bytes=9")
}

func TestQuota_Hard_Refuses(t *testing.T) {
	h := newQuotaRun(t, "count=1,bytes=1=;byteHardLimit=10;countHardLimit=3")
	h.create("/q/b", "1234", OK)
	h.create("/q/c", "", ErrQuotaExceeded)   // count
	h.set("/q/b", "12345", ErrQuotaExceeded) // bytes
	h.set("/q/b", "1234", OK)                // equal
	h.set("/q/b", "", OK)                    // less
	h.create("/q/b/c/d", "", ErrNoNode)      // the quota comes last
	if !slices.Equal(h.x.Exceeded, []string{"/q", "/q"}) {
		t.Errorf("exceeded %v", h.x.Exceeded)
	}
	// Inside a multi, what earlier operations used counts.
	h.tree.Begin(&h.x)
	h.set("/q/b", "1234", OK)
	h.set("/q/a", "22", ErrQuotaExceeded)
	h.tree.Rollback(&h.x)
	h.stats("count=3,bytes=6")
	h.x.Reset()
	h.x.EnforceQuota = false
	h.create("/q/c", "123456", OK)
	h.stats("count=4,bytes=12")
	if !slices.Contains(h.x.Exceeded, "/q") {
		t.Errorf("exceeded %v", h.x.Exceeded)
	}
}

func TestQuota_Soft_OnlyReports(t *testing.T) {
	h := newQuotaRun(t, "count=2,bytes=100")
	h.create("/q/b", "", OK)
	if !slices.Equal(h.x.Exceeded, []string{"/q"}) {
		t.Errorf("exceeded %v", h.x.Exceeded)
	}
	h.x.Reset()
	h.set("/q/b", "more", OK) // the bytes are far from their limit
	if len(h.x.Exceeded) != 0 {
		t.Errorf("exceeded %v", h.x.Exceeded)
	}
}

// TestQuota_Limits_FollowTheZnode: nearest ancestor counts; limits that are
// changed, deleted or rolled back take effect at once.
func TestQuota_Limits_FollowTheZnode(t *testing.T) {
	const limits = "/zookeeper/quota/q/zookeeper_limits"
	h := newQuotaRun(t, "countHardLimit=2")
	h.create("/q/b", "", ErrQuotaExceeded)
	h.set(limits, "countHardLimit=3", OK)
	h.create("/q/b", "", OK)
	h.create("/q/c", "", ErrQuotaExceeded)
	h.tree.Begin(&h.x)
	h.set(limits, "countHardLimit=9", OK)
	h.create("/q/c", "", OK)
	h.tree.Rollback(&h.x)
	h.create("/q/c", "", ErrQuotaExceeded)
	h.tree.Begin(&h.x)
	if code := h.tree.Delete(&h.x, limits, -1); code != OK {
		t.Fatalf("delete of the limits: %v, want no error", code)
	}
	h.create("/q/c", "", OK)
	h.tree.Rollback(&h.x)
	h.create("/q/c", "", ErrQuotaExceeded)
	h.tree.Delete(&h.x, limits, -1)
	h.create("/q/c", "", OK)
	h.stats("count=3,bytes=6") // without limits nothing is counted
	h.create("/zookeeper/quota/q/a", "", OK)
	h.create("/zookeeper/quota/q/a/zookeeper_limits", "countHardLimit=1", OK)
	h.create("/q/a/x", "", OK) // no stats znode: nothing to compare with
	h.create("/zookeeper/quota/q/a/zookeeper_stats", "", OK)
	h.create("/q/a/y", "", ErrQuotaExceeded)
	h.create("/zookeeper/quota/zookeeper_limits", "countHardLimit=0", OK)
	h.create("/free", "", OK) // the root has no quota
}

func TestParseQuota_Texts(t *testing.T) {
	for text, want := range map[string]quotaLimits{
		"":                 {-1, -1, -1, -1},
		"count=5,bytes=-1": {5, -1, -1, -1},
		"count=5,bytes=7=;byteHardLimit=9;countHardLimit=8": {5, 7, 8, 9},
		"count=x,bytes=,=,;;":                               {-1, -1, -1, -1},
		"bytes=3":                                           {-1, 3, -1, -1},
	} {
		q := parseQuota([]byte(text))
		got := quotaLimits{q.get("count"), q.get("bytes"), q.get("countHardLimit"), q.get("byteHardLimit")}
		if got != want {
			t.Errorf("%q reads as %+v, want %+v", text, got, want)
		}
		if text == "count=5,bytes=7=;byteHardLimit=9;countHardLimit=8" && string(q.format()) != text {
			t.Errorf("%q: formatted as %q", text, q.format())
		}
		if back := parseQuota(q.format()); back.get("count") != got.count || back.get("byteHardLimit") != got.bytesHard {
			t.Errorf("%q: formatted as %q", text, q.format())
		}
	}
}

// TestQuota_Check_Table: each limit at its bound and beyond it, alone. /q and /q/a
// are two znodes with 6 bytes.
func TestQuota_Check_Table(t *testing.T) {
	create := func(data string) func(*quotaRun) Error {
		return func(h *quotaRun) Error {
			_, _, code := h.tree.Create(&h.x, &CreateRequest{Path: "/q/new", Data: []byte(data), ACL: OpenACL})
			return code
		}
	}
	set := func(data string) func(*quotaRun) Error {
		return func(h *quotaRun) Error {
			_, code := h.tree.SetData(&h.x, "/q/a", []byte(data), AnyVersion)
			return code
		}
	}
	for _, c := range []struct {
		limits   string
		do       func(*quotaRun) Error
		code     Error
		reported bool
	}{
		{"countHardLimit=3", create(""), OK, false},
		{"countHardLimit=2", create(""), ErrQuotaExceeded, true},
		{"countHardLimit=0", create(""), ErrQuotaExceeded, true},
		{"countHardLimit=2,byteHardLimit=100", create("1"), ErrQuotaExceeded, true},
		{"countHardLimit=0", set("12"), OK, false}, // the count stays
		{"byteHardLimit=7", set("12"), OK, false},
		{"byteHardLimit=6", set("12"), ErrQuotaExceeded, true},
		{"byteHardLimit=0", set("12"), ErrQuotaExceeded, true},
		{"byteHardLimit=0", set("2"), OK, false}, // as many as before
		{"byteHardLimit=0", create(""), OK, false},
		{"count=3", create(""), OK, false},
		{"count=2", create(""), OK, true},
		{"count=0", create(""), OK, true},
		{"count=2,bytes=100", create("1"), OK, true},
		{"bytes=7", set("12"), OK, false},
		{"bytes=6", set("12"), OK, true},
		{"bytes=0", set("12"), OK, true},
		{"count=0,countHardLimit=3", create(""), OK, false}, // the hard limit counts, not the soft one
		{"", create("1"), OK, false},
	} {
		h := newQuotaRun(t, c.limits)
		h.x.Reset()
		code := c.do(h)
		if reported := len(h.x.Exceeded) > 0; code != c.code || reported != c.reported {
			t.Errorf("%q: %v, reported %v; want %v, %v", c.limits, code.Name(), reported, c.code.Name(), c.reported)
		}
	}
}

// TestQuota_OfTheSystem: nothing below /zookeeper is counted or limited, whatever the
// quota says; nor is what has no quota, when there is a stats znode of the empty path.
func TestQuota_OfTheSystem(t *testing.T) {
	h := newQuotaRun(t, "count=-1,bytes=-1")
	for _, path := range []string{
		"/zookeeper/quota/zookeeper", "/zookeeper/quota/zookeeper/zookeeper_limits",
		"/zookeeper/quota/zookeeper/zookeeper_stats",
		"/zookeeper/quota/zookeeper_limits", "/zookeeper/quota/zookeeper_stats",
	} {
		h.create(path, "countHardLimit=0", OK)
	}
	h.create("/zookeeper/x", "1", OK)
	h.create("/elsewhere", "1", OK)
	data, _, _ := h.tree.Get("/zookeeper/quota/zookeeper_stats", nil)
	if string(data) != "countHardLimit=0" || len(h.x.Exceeded) != 0 {
		t.Errorf("stats %q, exceeded %v", data, h.x.Exceeded)
	}
}

// A client may write the stats znode; only when it is new is the subtree counted.
func TestQuota_Stats_WrittenByAClient(t *testing.T) {
	h := newQuotaRun(t, "count=-1,bytes=-1")
	h.set("/zookeeper/quota/q/zookeeper_stats", "count=7,bytes=8", OK)
	data, _, _ := h.tree.Get("/zookeeper/quota/q/zookeeper_stats", nil)
	if string(data) != "count=7,bytes=8" {
		t.Errorf("the counts are %q, want those that the client wrote", data)
	}
	if code := h.tree.Delete(&h.x, "/zookeeper/quota/q/zookeeper_stats", AnyVersion); code != OK {
		t.Errorf("delete of the counts: %v, want no error", code)
	}
}
