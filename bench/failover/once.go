package failover

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/zk-lite/zk-lite/bench/load"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
)

const (
	// Writers write for a random time between these two before the fault.
	leastBefore = 300 * time.Millisecond
	mostBefore  = 900 * time.Millisecond
	// afterAcks and afterTime are how many acknowledgements, and how much time, the writer needs
	// after the fault: a second leader's election soon after the first one's belongs to the gap.
	afterAcks = 20
	afterTime = time.Second
	// servedTime is how long the writer may have no answer.
	servedTime = 2 * time.Minute
)

// outage is the effect of a fault.
type outage struct {
	n         int
	servers   []int    // from 0, that it happened to; the leader first
	gap       load.Gap // of the writer
	fault     time.Time
	took      time.Duration   // to do it
	back      time.Duration   // until all servers served and had caught up, once it was undone
	syncs     []int           // of each server within the gap
	delays    []time.Duration // that were added to those
	campaigns []int           // real elections that each server has started
	dropped   int             // foreign clients of other servers whose connection ended
	lost      int             // requests of foreign clients that were not answered
	unread    int             // of these, those that the server's kernel has discarded unread
	done      int             // of these and of the failed ones, writes that were done nevertheless
	failed    [vias]int       // operations, by the kind of client
	sentAway  int             // operations over HTTP that were sent to another server
	expired   int             // sessions
	wrong     []string
	why       []string // operations have failed
	logs      [][]byte // of all servers, from before the fault on
}

// once makes one fault and waits until it is over.
func (r *runner) once(ctx context.Context, n int) (*outage, error) {
	leader, err := r.settled(ctx)
	if err != nil {
		return nil, err
	}
	o := &outage{n: n, servers: []int{leader}}
	others := r.others(o.servers)
	r.rng.Shuffle(len(others), func(i, k int) { others[i], others[k] = others[k], others[i] })
	o.servers = append(o.servers, others[:r.c.atOnce-1]...)
	survivors := others[r.c.atOnce-1:]
	marks, err := r.logSizes()
	if err != nil {
		return nil, err
	}
	users, err := r.users(ctx, survivors)
	if err != nil {
		return nil, err
	}
	writing, stop := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer stop()
	for _, u := range slices.Concat(users[:]...) {
		running.Go(func() { u.Run(writing) })
	}
	if err := r.during(ctx, o, users); err != nil {
		return nil, err
	}
	stop()
	running.Wait()
	r.measure(o, users)
	// A server that campaigns while servers return does so for another reason.
	meanwhile, err := r.logsSince(marks)
	if err != nil {
		return nil, err
	}
	o.campaigns = campaigns(meanwhile)
	begun := time.Now()
	if err := r.recover(ctx, o); err != nil {
		return nil, err
	}
	if err := r.check(ctx, o, users); err != nil {
		return nil, err
	}
	o.back = time.Since(begun)
	o.logs, err = r.logsSince(marks)
	return o, err
}

// others are the servers that are not in a list.
func (r *runner) others(list []int) (others []int) {
	for i := range r.c.servers {
		if !slices.Contains(list, i) {
			others = append(others, i)
		}
	}
	return others
}

// during injects the fault while clients write, and waits until the measured client is served again.
func (r *runner) during(ctx context.Context, o *outage, users [vias][]user) error {
	before := leastBefore + time.Duration(r.rng.Int64N(int64(mostBefore-leastBefore)))
	select {
	case <-time.After(before):
	case <-ctx.Done():
		return ctx.Err()
	}
	if err := r.settle(ctx); err != nil {
		return err
	}
	measured := users[viaWire][0].Tally()
	for _, u := range slices.Concat(append(users[:], r.sessions)...) {
		u.Tally().Mark()
	}
	o.fault = time.Now()
	acks := measured.Report().Acks
	var faults sync.WaitGroup
	errs := make([]error, len(o.servers))
	for i, server := range o.servers {
		faults.Go(func() { errs[i] = r.fault().do(ctx, r, server) })
	}
	faults.Wait()
	o.took = time.Since(o.fault)
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return wait.For(ctx, "the writer is served again", servedTime, func() error {
		more := measured.Report().Acks - acks
		if more < afterAcks || time.Since(o.fault) < o.took+afterTime {
			return fmt.Errorf("%d writes acknowledged since then", more)
		}
		return nil
	})
}

// settle waits until each of the sessions that only send pings has had an answer. Those of a server that died
// earlier notice the end of their connections only then, and would count as dropped by a survivor.
func (r *runner) settle(ctx context.Context) error {
	acks := make([]int64, len(r.sessions))
	for i, u := range r.sessions {
		acks[i] = int64(u.Tally().Report().Acks)
	}
	return wait.For(ctx, "all sessions are heard", servedTime, func() error {
		for i, u := range r.sessions {
			if int64(u.Tally().Report().Acks) <= acks[i] {
				return fmt.Errorf("session %d has had no answer", i)
			}
		}
		return nil
	})
}

func (r *runner) fault() fault { return faults()[r.c.fault] }

// measure reads clients and disks.
func (r *runner) measure(o *outage, users [vias][]user) {
	o.gap = users[viaWire][0].Tally().Report().Longest
	var theirs []string // the hosts whose clients may lose their connection
	for _, i := range o.servers {
		theirs = append(theirs, r.ensemble.Hosts[i])
	}
	for via, all := range append(users[:], r.sessions) {
		via %= vias // sessions that only send pings are foreign, too
		for _, u := range all {
			report := u.Tally().Report()
			if report.First != "" && !slices.Contains(theirs, report.First) {
				o.dropped++
			}
			o.lost, o.unread, o.expired = o.lost+report.Lost, o.unread+report.Unread, o.expired+report.Expired
			if via == viaWire {
				o.done += report.Done
			}
			o.failed[via], o.sentAway = o.failed[via]+len(report.Failed), o.sentAway+report.Sent
			o.wrong, o.why = append(o.wrong, report.Wrong...), append(o.why, report.Failed...)
		}
	}
	for _, disk := range r.ensemble.Disks {
		all, delay := disk.Between(o.gap.From, o.gap.To), time.Duration(0)
		for _, s := range all {
			delay += s.Delay
		}
		o.syncs, o.delays = append(o.syncs, len(all)), append(o.delays, delay)
	}
}

// recover undoes the fault and starts servers that have ended.
func (r *runner) recover(ctx context.Context, o *outage) error {
	for _, server := range o.servers {
		f := r.fault()
		if f.ends && f.undo == nil {
			<-r.ensemble.Processes[server].Ended()
		}
		if f.undo != nil {
			if err := f.undo(ctx, r, server); err != nil {
				return err
			}
		}
	}
	for i, p := range r.ensemble.Processes {
		select {
		case <-p.Ended():
			if err := r.ensemble.Restart(i); err != nil {
				return err
			}
		default:
		}
	}
	_, err := r.settled(ctx)
	return err
}

// check compares the state of every server with the answers that clients got. A server that does not
// catch up in time has lost what it lacks.
func (r *runner) check(ctx context.Context, o *outage, users [vias][]user) error {
	all := slices.Concat(users[:]...)
	var paths []string
	for _, u := range all {
		paths = append(paths, u.Tally().Path())
	}
	for server, host := range r.ensemble.Hosts {
		var have []int64
		err := wait.For(ctx, fmt.Sprintf("server %d shows what it has", server+1), settleTime, func() (err error) {
			have, err = load.Versions(ctx, host, paths, r.c.SessionTimeout)
			return err
		})
		if err != nil {
			return err
		}
		for i, u := range all {
			if report := u.Tally().Report(); have[i] < report.Version || have[i] > report.Most {
				o.wrong = append(o.wrong, fmt.Sprintf("server %d: %s has version %d; %d to %d are right",
					server+1, paths[i], have[i], report.Version, report.Most))
			}
		}
	}
	return nil
}

// settled waits until all servers follow one leader, and returns it.
func (r *runner) settled(ctx context.Context) (leader int, err error) {
	err = wait.For(ctx, "all servers follow one leader", settleTime, func() error {
		leader = -1
		for i, host := range r.ensemble.Hosts {
			text, err := load.FourLetter(ctx, host, "srvr")
			switch {
			case err != nil:
				return err
			case strings.Contains(text, "Mode: leader") && leader < 0:
				leader = i
			case !strings.Contains(text, "Mode: follower"):
				return fmt.Errorf("server %d says: %.200s", i+1, text)
			}
		}
		if leader < 0 {
			return errors.New("nobody leads")
		}
		return nil
	})
	return leader, err
}
