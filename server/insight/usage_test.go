package insight

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zk-lite/zk-lite/internal/testkit/clock"
	"github.com/zk-lite/zk-lite/znode"
)

var client = netip.MustParseAddr("192.0.2.1")

// At a low rate all is counted as it is; a window is forgotten after its time.
func TestTable_FewRequests_AreExact(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var table Usage
		for i := range 30 {
			if table.Skip() {
				t.Fatal("a request is left out")
			}
			table.Count(Use{Session: znode.SessionID(1 + i%3/2), Address: client, Path: "/" + strings.Repeat("x", 1000*(i%2)),
				Bytes: 100 * (1 + i%3/2)})
			if r := table.Top(ByRequests, 1); i == 0 && (r.Total != 1 || r.Seconds != 1) {
				t.Errorf("at once: %d in %v s", r.Total, r.Seconds)
			}
			clock.Sleep(time.Second)
		}
		r := table.Top(ByRequests, 10)
		if fmt.Sprint(r.Sessions, r.Addresses, r.Total, r.Seconds) != "[{0x1 20 0} {0x2 10 0}] [{192.0.2.1 30 0}] 30 30" {
			t.Errorf("%+v", r)
		}
		if len(r.Paths) != 2 || len(r.Paths[1].Name) != maxPath {
			t.Errorf("paths: %+v", r.Paths)
		}
		if r := table.Top(ByBytes, 1); fmt.Sprint(r.Sessions, r.Total) != "[{0x1 2000 0}] 4000" {
			t.Errorf("%+v", r)
		}
		clock.Sleep(windowTime)
		if r := table.Top(ByRequests, 10); r.Total != 30 || r.Seconds != 90 {
			t.Errorf("after one window: %d in %v s", r.Total, r.Seconds)
		}
		clock.Sleep(2 * windowTime)
		if r := table.Top(ByRequests, 10); r.Total != 0 || len(r.Sessions) != 0 {
			t.Errorf("after three windows: %+v", r)
		}
	})
}

// Under load few requests are looked at, and they stand for all; when the load has gone, all are again.
func TestTable_ManyRequests_AreSampled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var table Usage
		const seconds, perMilli = 20, 100
		looked := 0
		for range seconds * 1000 {
			for i := range perMilli {
				if !table.Skip() {
					looked++
					table.Count(Use{Session: znode.SessionID(1 + i%4/3), Address: client, Path: "/a", Bytes: 10})
				}
			}
			clock.Sleep(time.Millisecond)
		}
		if looked > 2*seconds*maxSamples {
			t.Errorf("%d were looked at in %d s", looked, seconds)
		}
		r := table.Top(ByRequests, 10)
		const all = seconds * 1000 * perMilli
		if got := float64(r.Total) / all; got < 0.9 || got > 1.1 {
			t.Errorf("%d requests counted, of %d", r.Total, all)
		}
		if got := float64(r.Sessions[0].Count) / float64(r.Total); got < 0.7 || got > 0.8 {
			t.Errorf("%v of all are of a session that made 0.75", got)
		}
		for range 2 {
			clock.Sleep(10 * time.Second)
			table.Top(ByRequests, 1)
		}
		if table.Skip() {
			t.Error("left out although there is no load any more")
		}
	})
}

// With far more keys than counters the frequent ones are there, and no count is too small, nor too large by more than
// it says.
func TestSketch_Bounds(t *testing.T) {
	const seed = 1
	random := rand.New(rand.NewPCG(seed, 0))
	var s, later sketch[string]
	truth := map[string]int64{}
	for i := range 100_000 {
		key := fmt.Sprint("/rare/", random.IntN(50_000))
		if i%10 == 0 {
			key = fmt.Sprint("/hot/", i%30)
		}
		truth[key]++
		if i < 60_000 {
			s.add(key, 1)
		} else {
			later.add(key, 1)
		}
	}
	if len(s.counters) != sketchSize || len(s.at) != sketchSize {
		t.Errorf("%d counters, %d keys", len(s.counters), len(s.at))
	}
	users := rank(2*sketchSize, &s, &later)
	for _, u := range users {
		if n := truth[u.Name]; u.Count < n || u.Count-u.Over > n {
			t.Errorf("%s: %d, too large by %d at most, and there were %d", u.Name, u.Count, u.Over, n)
		}
	}
	for i, u := range users[:3] {
		if !strings.HasPrefix(u.Name, "/hot/") {
			t.Errorf("place %d: %+v", i, u)
		}
	}
}

// BenchmarkTable is what counting costs a request.
func BenchmarkTable(b *testing.B) {
	var table Usage
	b.RunParallel(func(pb *testing.PB) {
		for i := 0; pb.Next(); i++ {
			if !table.Skip() {
				table.Count(Use{Session: znode.SessionID(i), Address: client, Path: "/some/path", Bytes: 100})
			}
		}
	})
}
