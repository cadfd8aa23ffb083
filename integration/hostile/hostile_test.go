//go:build privileged

package hostile_test

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/integration/cluster"
	"github.com/zk-lite/zk-lite/internal/wire"
)

var (
	release = flag.String("hostile.release", "", "a commit of this repository to attack, instead of this checkout")

	source        string // the checkout that is attacked
	countedBinary string
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

// run builds both servers.
func run(m *testing.M) int {
	flag.Parse()
	dir, err := os.MkdirTemp("", "zk-lite-hostile-")
	if err == nil {
		defer os.RemoveAll(dir)
		err = buildServers(dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "hostile:", err)
		return 1
	}
	return cluster.Main(m)
}

func buildServers(dir string) error {
	mod, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		return fmt.Errorf("looking for the top of this checkout: %w", err)
	}
	source, countedBinary = filepath.Dir(strings.TrimSpace(string(mod))), filepath.Join(dir, "counted")
	if *release == "" {
		return nil
	}
	clone := filepath.Join(dir, "release")
	for _, args := range [][]string{
		{"clone", "-q", "--shared", "--no-checkout", source, clone}, {"-C", clone, "checkout", "-q", *release},
	} {
		if out, err := exec.Command("git", args...).CombinedOutput(); err != nil {
			return fmt.Errorf("getting %s: %w\n%s", *release, err, out)
		}
	}
	source = clone
	binary := filepath.Join(dir, "zk-lite")
	if err := build(source, binary); err != nil {
		return err
	}
	return os.Setenv(cluster.BinaryVariable, binary)
}

// TestHostile lets each campaign loose on servers of its own.
func TestHostile(t *testing.T) {
	if !cluster.Privileged() {
		t.Logf("%s is set: hostile clients are NOT TESTED", cluster.UnprivilegedVariable)
		return
	}
	for _, c := range campaigns {
		t.Run(c.name, func(t *testing.T) {
			begin := time.Now()
			a := enter(t, 3)
			a.watchOver()
			calm := a.calm()
			c.attack(a)
			a.endure(c.noMajority)
			late, memory := a.late(), a.memory()
			a.rest()
			a.startAgain()
			t.Logf("%v; the 99th percentile of what others wait is %v%s; memory: %s", time.Since(begin).Round(time.Second),
				late.Round(time.Millisecond), ratio(late, calm), strings.Join(memory, ", "))
		})
	}
}

// calm is what others wait without an attacker: with -hostile.all, since it takes time.
func (a *arena) calm() time.Duration {
	const rounds = 200
	least := 20
	if *everything {
		least = rounds
	}
	a.rounds(least)
	late := a.late()
	for _, w := range a.witnesses {
		w.forget()
	}
	return late
}

func ratio(late, calm time.Duration) string {
	if !*everything || calm == 0 {
		return ""
	}
	return fmt.Sprintf(", %.1f times that without the attacker", float64(late)/float64(calm))
}

// rounds waits until each witness has been answered n times more.
func (a *arena) rounds(n int) {
	begin := time.Now()
	until := map[*witness]int{}
	for _, w := range a.witnesses {
		_, have, _ := w.wait()
		until[w] = have + n
	}
	poll := time.NewTicker(5 * time.Millisecond)
	defer poll.Stop()
	for range poll.C {
		waiting := ""
		for w, n := range until {
			if _, have, harm := w.wait(); have < n && harm == nil {
				waiting = w.name
			}
		}
		if waiting == "" || len(a.dead()) > 0 {
			return
		}
		if time.Since(begin) > 3*sessionTimeout {
			a.errorf("%s is not answered", waiting)
			return
		}
	}
}

// endure checks that no one has been harmed. Without a majority others wait, too: then it checks only their data.
func (a *arena) endure(noMajority bool) {
	a.t.Helper()
	a.rounds(3)
	if dead := a.dead(); len(dead) > 0 {
		a.errorf("servers have ended: %v; memory: %v", dead, a.memory())
		return
	}
	for _, w := range a.witnesses {
		longest, _, harm := w.wait()
		if harm != nil {
			a.errorf("%s: %v", w.name, harm)
		}
		if longest > sessionTimeout && !noMajority {
			a.errorf("%s has waited for %v; its session ends after %v", w.name, longest.Round(time.Millisecond), sessionTimeout)
		}
	}
}

// startAgain starts all servers again, and compares what others have.
func (a *arena) startAgain() {
	a.t.Helper()
	for _, s := range a.e.Servers() {
		if s.Running() {
			s.Kill()
		}
	}
	a.e.StartAll()
	a.e.WaitServing()
	for _, s := range a.e.Servers() {
		c := s.Connect(a.t, cluster.ConnectOptions{})
		a.must(c, wire.OpAuth, digest(ownerCredentials))
		a.must(c, wire.OpSync, &wire.SyncRequest{Path: "/"})
		for path, now := range a.inventory(c) {
			if now != a.belongs[path] {
				a.t.Errorf("server %d: %s is no longer what it was:\nis  %.300s\nwas %.300s", s.ID, path, now, a.belongs[path])
			}
		}
		for _, w := range a.witnesses {
			r := a.must(c, wire.OpGetData, &wire.GetDataRequest{Path: w.path}).(*wire.GetDataResponse)
			if n, err := strconv.Atoi(string(r.Data)); err != nil || n < w.rounds || n > w.rounds+1 {
				a.t.Errorf("server %d: %s has %q, and %d writes were acknowledged", s.ID, w.path, r.Data, w.rounds)
			}
		}
	}
}
