package load

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/zk-lite/zk-lite/internal/testkit/clock"
)

// TestWorker_Open_CountsWaitingAsLatency: a server that stands still for a
// second delays everything that was to be sent meanwhile, and that must show
// ("coordinated omission" is to leave it out). 100 requests a second for 3
// seconds: a hundred of them wait, the first for 1 s, the next for 0.99 s.
func TestWorker_Open_CountsWaitingAsLatency(t *testing.T) {
	for _, inFlight := range []int{1, 8, 1024} {
		synctest.Test(t, func(t *testing.T) {
			cfg := Default()
			cfg.Rate, cfg.Duration, cfg.WarmUp, cfg.InFlight = 100, 3*time.Second, 0, inFlight
			w := fakeWorker(t, cfg, func(n int) bool {
				if n == 101 {
					clock.Sleep(time.Second) // of the bubble's clock
				}
				return true
			})
			if err := w.run(); err != nil {
				t.Fatal(err)
			}
			w.conn.nc.Close()
			var res Result
			w.rec.fill(&res)
			l := res.Total.Latency
			if l.Count != 300 {
				t.Errorf("%d requests, want 300", l.Count)
			}
			for _, c := range []struct {
				percent float64
				want    time.Duration
			}{{66, 0}, {75, 250 * time.Millisecond}, {90, 700 * time.Millisecond}, {100, time.Second}} {
				counts, _ := w.rec.sums()
				got := counts.Percentile(c.percent)
				if off := (got - c.want).Abs(); off > 15*time.Millisecond {
					t.Errorf("%d in flight: p%g is %v, want %v", inFlight, c.percent, got, c.want)
				}
			}
		})
	}
}

// TestWorker_Closed_SeesAStallOnce is the counterpart: the closed loop sends
// nothing while it waits.
func TestWorker_Closed_SeesAStallOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := Default()
		cfg.Duration, cfg.WarmUp = 3*time.Second, 0
		w := fakeWorker(t, cfg, func(n int) bool {
			clock.Sleep(10 * time.Millisecond)
			if n == 101 {
				clock.Sleep(time.Second)
			}
			return true
		})
		if err := w.run(); err != nil {
			t.Fatal(err)
		}
		w.conn.nc.Close()
		counts, _ := w.rec.sums()
		if n := counts.N(); n != 200 || counts.Percentile(99) > 11*time.Millisecond ||
			counts.Max() != 1010*time.Millisecond {
			t.Errorf("%d requests, p99 %v, longest %v", n, counts.Percentile(99), counts.Max())
		}
	})
}

// TestWorker_Open_Rate: requests come at the fixed rate, evenly, and sessions
// with nothing to say are kept alive by pings.
func TestWorker_Open_Rate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := Default()
		cfg.Rate, cfg.Duration, cfg.WarmUp, cfg.InFlight = 0.01, 1000*time.Second, 0, 4
		start := time.Now()
		var at []time.Duration
		w := fakeWorker(t, cfg, func(int) bool {
			at = append(at, time.Since(start))
			return true
		})
		if err := w.run(); err != nil {
			t.Fatal(err)
		}
		w.conn.nc.Close()
		if took := time.Since(start); took != cfg.Duration {
			t.Errorf("the run has taken %v", took)
		}
		if len(at) != 10 {
			t.Fatalf("%d requests in 1000 s at one every 100 s: %v", len(at), at)
		}
		for i, a := range at {
			if a != time.Duration(i)*100*time.Second {
				t.Errorf("request %d after %v", i, a)
			}
		}
	})
}

// TestWorker_InFlight_IsTheBound: neither loop has more under way than allowed.
func TestWorker_InFlight_IsTheBound(t *testing.T) {
	for _, rate := range []float64{0, 10_000} {
		synctest.Test(t, func(t *testing.T) {
			const bound = 5
			cfg := Default()
			cfg.Rate, cfg.Duration, cfg.WarmUp, cfg.InFlight = rate, time.Second, 0, bound
			w := fakeWorker(t, cfg, func(int) bool {
				clock.Sleep(10 * time.Millisecond)
				return true
			})
			if err := w.run(); err != nil {
				t.Fatal(err)
			}
			w.conn.nc.Close()
			var res Result
			w.rec.fill(&res)
			n, longest := res.Total.Latency.Count, res.Total.Latency.Max.Duration()
			// One answer every 10 ms; in the closed loop each request waits for the
			// four before it.
			if n < 100 || n > 100+bound {
				t.Errorf("rate %g: %d requests, want about 100", rate, n)
			}
			if rate == 0 && longest > bound*10*time.Millisecond {
				t.Errorf("longest %v: more than %d were in flight", longest, bound)
			}
			// At a hundred times what the server can do, each answer comes later, and
			// what never got its turn is not forgotten.
			if rate > 0 && (longest < 900*time.Millisecond || n+res.Unanswered != uint64(rate)) {
				t.Errorf("longest %v, %d answered, %d not", longest, n, res.Unanswered)
			}
		})
	}
}

// TestWorker_WindowFull_SessionIsKept: a connection that may send nothing because its window is
// full keeps its session by pings.
func TestWorker_WindowFull_SessionIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := Default()
		cfg.Duration, cfg.WarmUp, cfg.InFlight = 5*fakeTimeout, 0, 400
		w := fakeWorker(t, cfg, func(n int) bool {
			clock.Sleep(10 * time.Millisecond)
			if n == 1 {
				clock.Sleep(4 * fakeTimeout)
			}
			return true
		})
		if err := w.run(); err != nil {
			t.Error(err)
		}
		w.conn.nc.Close()
	})
}

func TestWorker_Closed_ConnectionEnds(t *testing.T) {
	for _, rate := range []float64{0, 1000} {
		synctest.Test(t, func(t *testing.T) {
			cfg := Default()
			cfg.Rate, cfg.Duration, cfg.WarmUp, cfg.InFlight = rate, 10*time.Second, 0, 3
			w := fakeWorker(t, cfg, func(n int) bool {
				clock.Sleep(time.Second)
				return n < 3
			})
			if err := w.run(); err == nil {
				t.Error("no error though the connection has ended")
			}
			var res Result
			w.rec.fill(&res)
			if res.Dropped != 1 || res.Unanswered == 0 || res.Total.Latency.Count != 2 {
				t.Errorf("dropped %d, unanswered %d, answered %d", res.Dropped, res.Unanswered,
					res.Total.Latency.Count)
			}
		})
	}
}

// TestWorker_Closed_ServerFallsSilent: the run ends, and tells.
func TestWorker_Closed_ServerFallsSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := Default()
		cfg.Duration, cfg.WarmUp, cfg.InFlight = time.Second, 0, 2
		w := fakeWorker(t, cfg, func(n int) bool {
			clock.Sleep(time.Hour)
			return false
		})
		start := time.Now()
		if err := w.run(); err == nil {
			t.Error("no error though nothing was answered")
		}
		w.conn.nc.Close()
		if took := time.Since(start); took != cfg.Duration+drainTimeout {
			t.Errorf("gave up after %v", took)
		}
		if n := w.rec.unanswered.Load(); n != 2 {
			t.Errorf("%d unanswered, want 2", n)
		}
		clock.Sleep(time.Hour) // the server's goroutine ends
	})
}

func TestPace_Start_LateTimerIsNotLatency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPace(time.Now(), 1000, 0, 1)
		p.woke = p.at(3).Add(500 * time.Microsecond)
		if got := p.start(3); got != p.woke {
			t.Errorf("a timer half a millisecond late counts from %v, want %v", got, p.woke)
		}
		if got := p.start(4); got != p.at(4) {
			t.Errorf("what is due later counts from %v, want %v", got, p.at(4))
		}
		p.woke = p.at(9)
		if got := p.start(3); got != p.at(3).Add(timerSlack) {
			t.Errorf("a very late timer is forgiven more than %v", timerSlack)
		}
	})
}

func TestPace_Shift_ConnectionsTakeTurns(t *testing.T) {
	start := time.Unix(0, 0)
	for i := range 4 {
		p := newPace(start, 400, i, 4)
		if want := start.Add(time.Duration(i) * 2500 * time.Microsecond); p.at(0) != want {
			t.Errorf("connection %d begins at %v, want %v", i, p.at(0), want)
		}
		if p.interval != 10*time.Millisecond {
			t.Errorf("interval %v", p.interval)
		}
	}
}

// TestWorker_Again_GoesOnWhereItWas: with another connection an open loop sends what was due meanwhile, late, and
// loses only what was under way.
func TestWorker_Again_GoesOnWhereItWas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := Default()
		cfg.Rate, cfg.Duration, cfg.WarmUp, cfg.InFlight = 100, 10*time.Second, 0, 50
		w := fakeWorker(t, cfg, func(n int) bool { return n < 101 })
		w.again = func(c *conn) *conn {
			c.nc.Close()
			clock.Sleep(2 * time.Second)
			return fakeWorker(t, cfg, func(int) bool { return true }).conn
		}
		if err := w.run(); err != nil {
			t.Fatal(err)
		}
		w.conn.nc.Close()
		var res Result
		w.rec.fill(&res)
		n, longest := res.Total.Latency.Count, res.Total.Latency.Max.Duration()
		if res.Dropped != 1 || n+res.Unanswered != 1000 || res.Unanswered == 0 || res.Unanswered > 3 {
			t.Errorf("dropped %d, answered %d, lost %d, want 1, and a few of 1000 lost", res.Dropped, n, res.Unanswered)
		}
		if longest < 1900*time.Millisecond || longest > 2100*time.Millisecond {
			t.Errorf("longest latency %v, want the 2 s without a connection", longest)
		}
	})
}

// TestWorker_Again_NoConnectionLeft: what was due until the end counts as unanswered.
func TestWorker_Again_NoConnectionLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := Default()
		cfg.Rate, cfg.Duration, cfg.WarmUp, cfg.InFlight = 100, 10*time.Second, 0, 50
		w := fakeWorker(t, cfg, func(n int) bool { return n < 101 })
		w.again = func(c *conn) *conn {
			c.nc.Close()
			clock.Sleep(cfg.Duration)
			return nil
		}
		if err := w.run(); err == nil {
			t.Error("no error though the connection has ended")
		}
		var res Result
		w.rec.fill(&res)
		if res.Total.Latency.Count != 100 || res.Unanswered != 900 {
			t.Errorf("%d answered, %d not, want 100 and 900", res.Total.Latency.Count, res.Unanswered)
		}
	})
}
