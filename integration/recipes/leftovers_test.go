package recipes_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"runtime"
	"strings"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
	"github.com/zk-lite/zk-lite/recipes"
	"github.com/zk-lite/zk-lite/znode"
)

// permanent are the znodes that may be left when no one uses a recipe: containers, which the
// server deletes sooner or later, the parents of queues, and the values.
var permanent = regexp.MustCompile(`^/soak(/(mutex|election|rw|semaphore(/(locks|leases))?|` +
	`(queue|priority|delay)(-claims|-tickets|-waiters)?|gate|counter|config|group|registry(/s)?))?$`)

// Goroutines of the recipes, and of the client.
var (
	recipesCode = regexp.MustCompile(`zk-lite/recipes\.\(?\*?\w`)
	clientCode  = regexp.MustCompile(`zk-lite/client\.\(?\*?\w`)
)

// nothingLeft checks that, while the clients are still connected, no znode, no watch
// and no goroutine of the recipes is left, and that no goroutine of the clients is
// when they have been closed.
func (s *soak) nothingLeft() {
	s.Helper()
	if s.failed() {
		return
	}
	s.lastRound()
	for _, leave := range s.leave {
		leave()
	}
	wait.Succeeds(s, "no goroutine of the recipes is left", func() error {
		return running(recipesCode)
	})
	probe := s.connectLong()
	wait.Succeeds(s, "no znode is left", func() error {
		return errors.Join(probe.Sync(s.ctx, root), left(s.ctx, probe, root))
	})
	s.close(probe)
	wait.Succeeds(s, "no watch is left at the servers", s.noWatches)
	for _, c := range s.clients {
		s.close(c)
	}
	wait.Succeeds(s, "no goroutine of the clients is left", func() error {
		return running(clientCode)
	})
}

// lastRound sends all through the double barrier once more, without faults: that removes what a lost session may have
// left there.
func (s *soak) lastRound() {
	s.Helper()
	errs := make(chan error)
	for _, c := range s.clients {
		go func() {
			errs <- again(s.ctx, func() error {
				in, err := recipes.NewDoubleBarrier(c, path("gate"), clients).Enter(s.ctx)
				if err != nil {
					return err
				}
				return ignored(in.Leave(s.ctx), client.ErrSessionExpired, recipes.ErrLost) // which is to have left
			})
		}()
	}
	for range s.clients {
		s.must(<-errs)
	}
}

// running is an error if there is a goroutine in some code.
func running(code *regexp.Regexp) error {
	buf := make([]byte, 8<<20)
	for _, stack := range strings.Split(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
		if code.MatchString(stack) {
			return errors.New(stack)
		}
	}
	return nil
}

// left returns an error if a znode remains that should not.
func left(ctx context.Context, c *client.Client, at string) error {
	names, stat, err := c.Children(ctx, at)
	if errors.Is(err, client.ErrNoNode) {
		return nil // just now
	}
	if err != nil {
		return err
	}
	if stat.EphemeralOwner > 0 || !permanent.MatchString(at) {
		return fmt.Errorf("%s is left, of session %#x", at, int64(stat.EphemeralOwner))
	}
	for _, name := range names {
		if err := left(ctx, c, znode.Join(at, name)); err != nil {
			return err
		}
	}
	return nil
}

// noWatches is an error if a server has a watch of any client.
func (s *soak) noWatches() error {
	for _, server := range s.e.Servers() {
		metrics, err := server.Metrics()
		if err != nil {
			return err
		}
		if metrics["watch_count"] != "0" {
			paths, err := server.FourLetter("wchp")
			return errors.Join(fmt.Errorf("server %d has %s watches: %s",
				server.ID, metrics["watch_count"], paths), err)
		}
	}
	return nil
}
