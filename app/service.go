package app

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/internal/sdnotify"
	"github.com/zk-lite/zk-lite/server"
)

const (
	// startLimit is for how long after its ports are open a server that serves nobody counts as starting. It is
	// bounded, because a start that waits for other machines would hang the installation of the first one.
	startLimit = 10 * time.Second
	// startPoll and statusPoll are how often the server is looked at while it starts, and later.
	startPoll, statusPoll = 100 * time.Millisecond, time.Second
	// watchdogMargin is how often the service manager hears from a server within the time in which it must.
	watchdogMargin = 3
)

// reporter tells the service manager how a server is.
type reporter struct {
	send      func(what ...string) error
	watchdog  time.Duration                      // 0: none
	condition func() (text string, serving bool) // a line
	alive     func(context.Context) error        // blocks while the server does not answer
}

// report starts a reporter and returns what ends it: a function that says that the server stops, and returns one that
// waits for the reporter.
func (s *Server) report(o *Options) (stop func() (wait func())) {
	if o.Manager == nil {
		return func() func() { return func() {} }
	}
	r := &reporter{o.Manager.Send, o.Manager.WatchdogTimeout(), s.condition, s.alive}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := r.run(ctx); err != nil {
			o.Logger.Error("the service manager is told nothing more", "error", err)
		}
	}()
	return func() func() {
		cancel()
		if err := r.send(sdnotify.Stopping, sdnotify.Status+"handing over leadership and clients"); err != nil {
			o.Logger.Warn("the service manager does not know of the stop", "error", err)
		}
		return func() { <-done }
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
	return fmt.Sprintf("serving clients as %s; server %d leads", x.Role, x.Leader), true
}

// alive returns nil when no entry is being applied, and raft's main loop has answered.
func (s *Server) alive(ctx context.Context) error {
	s.server.View(func(*server.View) {})
	return s.consensus.Alive(ctx)
}
