package insight

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zk-lite/zk-lite/internal/testkit/clock"
	"github.com/zk-lite/zk-lite/znode"
)

var client = netip.MustParseAddr("192.0.2.1")

// At a low rate counts are exact; a window expires after its time.
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
				t.Errorf("at once: %d in %v s, want 1 in 1", r.Total, r.Seconds)
			}
			clock.Sleep(time.Second)
		}
		r := table.Top(ByRequests, 10)
		if want := []User{{Name: "0x1", Count: 20}, {Name: "0x2", Count: 10}}; !slices.Equal(r.Sessions, want) {
			t.Errorf("sessions %+v, want %+v", r.Sessions, want)
		}
		if want := []User{{Name: "192.0.2.1", Count: 30}}; !slices.Equal(r.Addresses, want) {
			t.Errorf("addresses %+v, want %+v", r.Addresses, want)
		}
		if r.Total != 30 || r.Seconds != 30 {
			t.Errorf("%d requests in %v s, want 30 in 30", r.Total, r.Seconds)
		}
		if len(r.Paths) != 2 || len(r.Paths[1].Name) != maxPath {
			t.Errorf("paths %+v, want 2, the second cut to %d bytes", r.Paths, maxPath)
		}
		r = table.Top(ByBytes, 1)
		if want := []User{{Name: "0x1", Count: 2000}}; !slices.Equal(r.Sessions, want) || r.Total != 4000 {
			t.Errorf("sessions %+v of %d bytes, want %+v of 4000", r.Sessions, r.Total, want)
		}
		clock.Sleep(windowTime)
		if r := table.Top(ByRequests, 10); r.Total != 30 || r.Seconds != 90 {
			t.Errorf("after one window: %d in %v s, want 30 in 90", r.Total, r.Seconds)
		}
		clock.Sleep(2 * windowTime)
		if r := table.Top(ByRequests, 10); r.Total != 0 || len(r.Sessions) != 0 {
			t.Errorf("after three windows: %+v, want none", r)
		}
	})
}

// Under load a sample of the requests is counted for all of them; after it, every request is counted again.
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

// With far more keys than counters the frequent ones are listed. No count is too small, or too large by more than its
// Over.
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

// BenchmarkTable measures what counting costs a request.
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
