package sim

import (
	"fmt"
	"log/slog"
	"math/rand"
	"runtime"
	"slices"
	"testing"
	"testing/cryptotest"
	"testing/synctest"
	"time"

	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/internal/testkit/clock"
	"github.com/zk-lite/zk-lite/internal/testkit/slowdisk"
)

const (
	// deaths is how often an ensemble of TestFailover loses its leader.
	deaths = 3
	// aftermath is how long campaigns are counted after the first answer that follows a death: a second
	// election soon after the first one is the same trouble.
	aftermath = 2 * electionTimeout
	// behindFor is for how long the leader does not reach a server whose log should be behind: less
	// than the time after which that server would campaign.
	behindFor = electionTimeout / 4
)

// loss is a way to lose a leader.
type loss struct {
	servers int
	disks   []slowdisk.Profile // the last is that of all that follow
	behind  bool               // the log of the survivor with the lowest id, which campaigns first, is behind
	two     bool               // another server dies at the same moment
}

func (f *loss) String() string {
	text := fmt.Sprintf("%d voters, syncs of %v", f.servers, f.disks)
	if f.behind {
		text += ", the first candidate's log behind"
	}
	if f.two {
		text += ", two die"
	}
	return text
}

func losses() (all []loss) {
	const us, ms = time.Microsecond, time.Millisecond
	at := func(delays ...time.Duration) (disks []slowdisk.Profile) {
		for _, d := range delays {
			disks = append(disks, slowdisk.Profile{Delay: d})
		}
		return disks
	}
	tail := func(d time.Duration) []slowdisk.Profile { return []slowdisk.Profile{{Delay: d, Tail: true}} }
	for _, n := range []int{3, 5, 7} {
		for _, disks := range [][]slowdisk.Profile{at(200 * us), at(ms), at(5 * ms), at(15 * ms), at(50 * ms), tail(ms),
			tail(5 * ms), at(15*ms, 200*us), at(200*us, 15*ms), at(200*us, 200*us, 15*ms)} {
			all = append(all, loss{servers: n, disks: disks})
		}
		for _, disks := range [][]slowdisk.Profile{at(200 * us), at(5 * ms), at(15*ms, 200*us)} {
			all = append(all, loss{servers: n, disks: disks, behind: true})
			if n > 3 {
				all = append(all, loss{servers: n, disks: disks, two: true}, loss{servers: n, disks: disks, behind: true, two: true})
			}
		}
	}
	return all
}

// deathToll is what came of one death.
type deathToll struct {
	campaigned int           // survivors
	leaderless time.Duration // until a survivor led
	unanswered time.Duration // between two acknowledged writes of a client of a survivor
}

// TestFailover_LeaderKilled counts in virtual time who campaigns when a leader dies, and for how long there is no
// leader and no answer. -sim.seed begins with another seed, and -sim.seeds has each ensemble live as often.
func TestFailover_LeaderKilled(t *testing.T) {
	for i, f := range losses() {
		var all []deathToll
		for k := range max(1, *flagSeeds) {
			seed := max(1, *flagSeed) + uint64(1000*k+i)
			all = append(all, f.run(t, seed)...)
		}
		var campaigned [8]int // deaths by the number of survivors
		var leaderless, unanswered []time.Duration
		for _, d := range all {
			campaigned[d.campaigned]++
			leaderless, unanswered = append(leaderless, d.leaderless), append(unanswered, d.unanswered)
		}
		slices.Sort(leaderless)
		slices.Sort(unanswered)
		n := len(all)
		several := n - campaigned[0] - campaigned[1]
		t.Logf("%s: %d deaths, %d duels; without a leader %v, at most %v; without an answer %v, at most %v", &f, n, several,
			leaderless[n/2], leaderless[n-1], unanswered[n/2], unanswered[n-1])
		// A sync that takes a hundred times longer than those before may outlast a promise (ADR 0020).
		if tail := slices.ContainsFunc(f.disks, func(p slowdisk.Profile) bool { return p.Tail }); several > 0 && !tail {
			t.Errorf("%s: several survivors campaigned after one death, %d times of %d", &f, several, n)
		}
	}
}

// run has an ensemble lose its leader several times.
func (f *loss) run(t *testing.T, seed uint64) (all []deathToll) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	var w *world
	synctest.Test(t, func(t *testing.T) {
		cryptotest.SetGlobalRandom(t, seed)
		rand.Seed(int64(seed)) //nolint:staticcheck // raft's timeouts, as in simulate
		w = newWorld(options{servers: f.servers, disks: f.disks, snapshot: 100_000, log: *flagLog}, seed)
		campaigns := &campaigns{Handler: w.logger.Handler(), server: -1, voted: &voted{all: map[int]bool{}}}
		w.logger = slog.New(campaigns)
		for _, m := range w.servers {
			w.boot(m)
		}
		first := make(chan struct{})
		newClient(w, 0, first).prepare()
		close(first)
		for range deaths {
			all = append(all, f.lose(t, w, campaigns))
		}
		for _, m := range w.servers {
			m.busy <- struct{}{}
			m.stop()
			<-m.busy
		}
		w.ended.Wait()
	})
	if v := w.record.violations; len(v) > 0 {
		t.Fatalf("seed %d: %v", seed, v)
	}
	return all
}

// lose kills the leader while a client of a survivor writes.
func (f *loss) lose(t *testing.T, w *world, campaigns *campaigns) (d deathToll) {
	leader := w.settle(t)
	survivors := f.survivors(w, leader)
	a := &acks{}
	stop, ended := make(chan struct{}), make(chan struct{})
	writer := newClient(w, 1, stop)
	go func() {
		defer close(ended)
		a.write(writer, survivors[len(survivors)-1])
	}()
	clock.Sleep(time.Duration(300+w.rng.IntN(200)) * time.Millisecond)
	if f.behind {
		w.leaveBehind(leader, survivors[0])
	}
	a.mark()
	campaigns.voted.reset()
	at := time.Now()
	var dead []*machine
	for i, m := range w.servers {
		if !slices.Contains(survivors, i) {
			dead = append(dead, m)
			m.busy <- struct{}{}
			w.ended.Go(func() { m.crash(false) })
		}
	}
	for d.leaderless == 0 || a.since() < aftermath {
		clock.Sleep(time.Millisecond)
		if time.Since(at) > healLimit {
			t.Fatalf("%s: nobody is answered %v after the death of server %d: %s", f, healLimit, leader, w.stand())
		}
		if d.leaderless == 0 && slices.ContainsFunc(survivors, w.leads) {
			d.leaderless = time.Since(at)
		}
	}
	d.campaigned, d.unanswered = campaigns.voted.servers(), a.longestNow()
	close(stop)
	<-ended
	for _, m := range dead {
		w.boot(m)
		<-m.busy
	}
	return d
}

// survivors are the servers that are not to die, in the order of their ids.
func (f *loss) survivors(w *world, leader int) (list []int) {
	for i := range w.servers {
		if i != leader {
			list = append(list, i)
		}
	}
	if f.two { // not the first, which campaigns
		k := 1 + w.rng.IntN(len(list)-2)
		list = slices.Delete(list, k, k+1)
	}
	return list
}

// leads reports whether a server believes that it leads.
func (w *world) leads(i int) bool {
	l := w.servers[i].running()
	return l != nil && l.node.Status().Leader == state.ServerID(i)
}

// settle waits until all have applied the same and follow one leader, and returns that.
func (w *world) settle(t *testing.T) int {
	limit := time.Now().Add(healLimit)
	for {
		leader, same := -1, true
		index := uint64(0)
		for i, m := range w.servers {
			s := m.running().node.Status()
			if i == 0 {
				leader, index = int(s.Leader), s.AppliedIndex
			}
			same = same && s.Leader != state.NoServer && int(s.Leader) == leader && s.AppliedIndex == index
		}
		if same {
			return leader
		}
		if time.Now().After(limit) {
			t.Fatalf("not one leader after %v: %s", healLimit, w.stand())
		}
		clock.Sleep(5 * time.Millisecond)
	}
}

// leaveBehind cuts a server off from its leader for a moment, and what is on its way there is lost.
func (w *world) leaveBehind(leader, server int) {
	between := func(from, to int) bool { return from == leader && to == server || from == server && to == leader }
	link := [][2]int{{leader, server}, {server, leader}}
	w.net.change(func() { w.net.blocked[link[0]]++; w.net.blocked[link[1]]++ })
	clock.Sleep(behindFor)
	w.net.reset(between)
	w.net.change(func() { w.net.blocked[link[0]]--; w.net.blocked[link[1]]-- })
}
