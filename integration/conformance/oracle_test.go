//go:build interop

package conformance_test

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/integration/cluster"
	"github.com/zk-lite/zk-lite/internal/testkit/seed"
	"github.com/zk-lite/zk-lite/internal/wire"
	"github.com/zk-lite/zk-lite/znode"
)

const (
	// scriptsVariable is how many short scripts the oracle judges; a run in CI has
	// less time than "make oracle".
	scriptsVariable = "ZK_LITE_ORACLE_SCRIPTS"
	defaultScripts  = 1500
	// oracleLength is that of a short script, in steps: long enough for watches to be
	// left, lost and set again, and short enough to be read.
	oracleLength = 30
	// maxDifferent is how many scripts may differ before a run ends.
	maxDifferent = 10
)

// lane is a server of each side, and their sessions, which play one script after
// the other.
type lane struct {
	t                 *testing.T
	zookeeper, zklite *cluster.Ensemble
	want, got         *run
}

// TestConformance_Oracle plays thousands of short random scripts, each below a root
// of its own, to a ZooKeeper and to zk-lite. Each side is one server, so that a step
// takes little time; TestConformance_Random has three.
func TestConformance_Oracle(t *testing.T) {
	first := seed.Of(t)
	scripts := defaultScripts
	if text := os.Getenv(scriptsVariable); text != "" {
		var err error
		if scripts, err = strconv.Atoi(text); err != nil || scripts < 1 {
			t.Fatalf("%s is %q; want how many scripts", scriptsVariable, text)
		}
	}
	var next, steps, different atomic.Int64
	begin := time.Now()
	t.Run("lanes", func(t *testing.T) {
		for i := range runtime.NumCPU() {
			t.Run(fmt.Sprint(i), func(t *testing.T) {
				t.Parallel()
				l := newLane(t)
				for {
					n := next.Add(1)
					if n > int64(scripts) || different.Load() >= maxDifferent {
						break
					}
					count, same := l.play(first, uint64(n))
					steps.Add(int64(count))
					if !same {
						different.Add(1)
					}
				}
				l.zklite.CheckReplicas()
			})
		}
	})
	done := min(next.Load(), int64(scripts))
	t.Logf("%d scripts, %d steps, %d scripts differ, in %v", done, steps.Load(), different.Load(),
		time.Since(begin).Round(time.Second))
	if done == 0 || steps.Load() == 0 {
		t.Error("nothing was compared")
	}
}

func newLane(t *testing.T) *lane {
	t.Helper()
	l := &lane{t: t}
	l.zookeeper = cluster.StartZooKeeper(t, 1, cluster.Options{Quiet: true,
		Config: settings(), JavaFlags: []string{"-Dznode.container.checkIntervalMs=" + never}})
	l.zklite = cluster.Start(t, 1, cluster.Options{Quiet: true, Config: settings()})
	l.open()
	return l
}

// open begins with new sessions on both sides.
func (l *lane) open() {
	l.want, l.got = newRun(l.t, l.zookeeper), newRun(l.t, l.zklite)
	for _, r := range []*run{l.want, l.got} {
		r.play(opening(1))
	}
}

// play plays a script on both sides and returns its length, and whether they were
// the same.
func (l *lane) play(first, number uint64) (steps int, same bool) {
	root := fmt.Sprintf("/s%d", number)
	// A run fills in zxids, so that each has a script of its own.
	script := func() []step {
		return append([]step{x.create(root, null, znode.Persistent)},
			randomSteps(first+number, root, 1, oracleLength)...)
	}
	want, end := l.want.short(script(), root)
	got, otherEnd := l.got.short(script(), root)
	all := append(script(), end...)
	if !slices.EqualFunc(end, otherEnd, func(a, b step) bool { return a.String() == b.String() }) {
		l.t.Errorf("script %d: other znodes are left", number)
	}
	wrong := differ(l.t, differences(), all[:min(len(all), len(want), len(got))], want, got)
	if wrong == 0 && len(want) == len(got) {
		return len(all), true
	}
	l.t.Errorf("script %d of %s=%d differs in %d steps", number, seed.Variable, first, wrong)
	l.want.close()
	l.got.close()
	l.open() // a new comparison begins here
	return len(all), false
}

// short plays a script, then reads and deletes everything below its root.
func (r *run) short(script []step, root string) ([]record, []step) {
	r.ends = r.ends[len(r.ends)-1:]
	clear(r.times)
	clear(r.pings)
	records := r.play(script)
	paths, err := r.below(root)
	if err != nil {
		r.t.Fatalf("%s: listing %s: %v", r.e.Name, root, err)
	}
	var end []step
	for _, path := range paths {
		end = append(end, x.burst(x.get(path, false), x.getACL(path), x.ls2(path, false)))
	}
	for _, path := range slices.Backward(paths) {
		end = append(end, x.delete(path, -1))
	}
	return append(records, r.play(end)...), end
}

// below lists a subtree, parents first, with a session of its own.
func (r *run) below(root string) ([]string, error) {
	c, err := cluster.Dial(r.e.Server(1).Addr(), cluster.ConnectOptions{})
	if err != nil {
		return nil, err
	}
	_, err = c.Do(wire.OpAuth, &wire.AuthRequest{Scheme: "digest", Auth: []byte(cluster.SuperCredentials)})
	paths := []string{root}
	for i := 0; err == nil && i < len(paths); i++ {
		var body wire.Response
		body, err = c.Do(wire.OpGetChildren, &wire.GetChildrenRequest{Path: paths[i]})
		if err == nil {
			for _, name := range sorted(body.(*wire.GetChildrenResponse).Children) {
				paths = append(paths, paths[i]+"/"+name)
			}
		} else if i == 0 && errors.Is(err, znode.ErrNoNode) {
			return nil, c.Close() // the script has deleted its root
		}
	}
	return paths, errors.Join(err, c.Close())
}
