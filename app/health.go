package app

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/zk-lite/zk-lite/api/body"
	"github.com/zk-lite/zk-lite/api/metrics"
	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/internal/process"
	"github.com/zk-lite/zk-lite/internal/sdnotify"
	"github.com/zk-lite/zk-lite/migration/mirror"
	"github.com/zk-lite/zk-lite/server"
)

// metrics adds the metrics of consensus and of descriptors to mntr.
func (s *Server) metrics(emit func(key string, value any)) {
	emit("descriptors_refused_total", s.descriptors.Refused())
	s.tls.metrics(emit)
	s.peerTLS.metrics(emit)
	emit("audit_events_left_out_total", s.audit.LeftOut())
	emit("slow_requests_total", s.server.Slow().Count())
	emit("sessions_expired_total", s.server.Expired().Count())
	emit("disk_free_bytes", s.free())
	if s.backups != nil {
		s.backups.Metrics(emit)
	}
	s.mirror.Metrics(emit)
	s.dns.Metrics(emit)
	for _, m := range s.consensus.Metrics() {
		if byServer, is := m.Value.(map[state.ServerID]float64); is {
			emit(m.Key, labelled(byServer))
			continue
		}
		emit(m.Key, m.Value)
	}
}

func labelled(byServer map[state.ServerID]float64) (all []metrics.Labelled) {
	for _, id := range slices.Sorted(maps.Keys(byServer)) {
		all = append(all, metrics.Labelled{Labels: fmt.Sprintf("server=\"%d\"", id), Value: byServer[id]})
	}
	return all
}

// free is the room on the disks of the data directories and of the backups.
func (s *Server) free() (all []metrics.Labelled) {
	for _, dir := range s.dirs {
		if n, err := process.FreeBytes(dir); err == nil {
			all = append(all, metrics.Labelled{Labels: "directory=" + metrics.Quote(dir), Value: n})
		}
	}
	return all
}

// leastRoom is what a disk should have: a few segments of the log, and snapshots.
const leastRoom = 256 << 20

// checks are those of the disks, the backups and the mirror.
func (s *Server) checks() (all []body.Check) {
	space := body.Check{Name: "disk_space", OK: true}
	for _, dir := range s.dirs {
		if n, err := process.FreeBytes(dir); err == nil && n < leastRoom {
			space.OK = false
			space.Detail += fmt.Sprintf("%s has room for %d bytes, and should have %d; ", dir, n, leastRoom)
		}
	}
	space.Detail = strings.TrimSuffix(space.Detail, "; ")
	if all = append(all, space); s.backups != nil {
		fault := s.backups.Fault()
		all = append(all, body.Check{Name: "backup", OK: fault == "", Detail: fault})
	}
	if s.mirror.Status().Phase != mirror.Off {
		fault := s.mirror.Fault()
		all = append(all, body.Check{Name: "mirror", OK: fault == "", Detail: fault})
	}
	return all
}

const (
	// startLimit is for how long after its ports are open a server that serves no one counts as starting. It is
	// bounded, because a start that waits for other machines would hang the installation of the first one.
	startLimit = 10 * time.Second
	// startPoll and statusPoll are how often the server is looked at while it starts, and later.
	startPoll, statusPoll = 100 * time.Millisecond, time.Second
	// watchdogMargin is how often the service manager hears from a server within the time in which it must.
	watchdogMargin = 3
)

// reporter tells the service manager how a server is. Its methods stop and wait are usable on nil.
type reporter struct {
	send      func(what ...string) error
	watchdog  time.Duration                      // 0: none
	condition func() (text string, serving bool) // a line
	alive     func(context.Context) error        // blocks while the server does not answer
	logger    *slog.Logger

	cancel context.CancelFunc
	done   chan struct{} // closed when nothing more is sent
}

// report starts a reporter; nil without a service manager.
func (s *Server) report(o *Options) *reporter {
	if o.Manager == nil {
		return nil
	}
	ctx, cancel := context.WithCancel(context.Background())
	r := &reporter{
		send: o.Manager.Send, watchdog: o.Manager.WatchdogTimeout(), condition: s.condition, alive: s.alive,
		logger: o.Logger, cancel: cancel, done: make(chan struct{}),
	}
	go func() {
		defer close(r.done)
		if err := r.run(ctx); err != nil {
			r.logger.Error("the service manager gets no more reports", "error", err)
		}
	}()
	return r
}

// stop tells the service manager that the server stops.
func (r *reporter) stop() {
	if r == nil {
		return
	}
	r.cancel()
	if err := r.send(sdnotify.Stopping, sdnotify.Status+"handing over leadership and clients"); err != nil {
		r.logger.Warn("the service manager does not know of the stop", "error", err)
	}
}

// wait returns when nothing more is sent.
func (r *reporter) wait() {
	if r != nil {
		<-r.done
	}
}

// run reports until ctx ends, or until the service manager cannot be reached, which it returns. A server that does not
// answer is not reported as alive; the manager then kills it, with SIGABRT, which prints what its goroutines wait for.
func (r *reporter) run(ctx context.Context) error {
	began := time.Now()
	var told string
	var watched time.Time // zero: not ready
	for {
		var news []string
		text, serving := r.condition()
		if text != told {
			told, news = text, append(news, sdnotify.Status+text)
		}
		pause := startPoll
		switch {
		case !watched.IsZero():
			pause = statusPoll
			if r.watchdog > 0 {
				pause = min(pause, r.watchdog/watchdogMargin)
			}
		case serving || time.Since(began) >= startLimit:
			watched, news = time.Now(), append(news, sdnotify.Ready)
		}
		if r.watchdog > 0 && !watched.IsZero() && time.Since(watched) >= r.watchdog/watchdogMargin {
			if r.alive(ctx) != nil {
				return nil // the server stops
			}
			watched, news = time.Now(), append(news, sdnotify.Watchdog)
		}
		if len(news) > 0 {
			if err := r.send(news...); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
	}
}

// condition is a line for an operator, and whether clients are served.
func (s *Server) condition() (string, bool) {
	x := s.server.Status()
	switch {
	case x.Halt != nil:
		return "not serving clients: halted: " + string(x.Halt.Kind) + ": " + x.Halt.Reason, false
	case x.Ensemble == [16]byte{}:
		return strings.TrimSpace("not serving clients: waiting to form or join the ensemble " + x.Waiting), false
	case s.server.Draining():
		return "drained: no new clients are taken", false
	case !s.server.Serving() || x.Leader == state.NoServer:
		return "not serving clients: no leader with a majority is known", false
	}
	mirrors := false
	s.server.View(func(v *server.View) { _, mirrors = v.Machine().Mirror() })
	switch {
	case mirrors && s.server.Source.Lost():
		return fmt.Sprintf("mirroring ZooKeeper, whose leader is out of reach, as %s, and taking no clients; server "+
			"%d leads", x.Role, x.Leader), true
	case mirrors:
		return fmt.Sprintf("mirroring ZooKeeper as %s, and serving clients; server %d leads", x.Role, x.Leader), true
	}
	return fmt.Sprintf("serving clients as %s; server %d leads", x.Role, x.Leader), true
}

// alive returns nil when no entry is being applied, and raft's main loop has answered.
func (s *Server) alive(ctx context.Context) error {
	s.server.View(func(*server.View) {})
	return s.consensus.Alive(ctx)
}
