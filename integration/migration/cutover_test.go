//go:build interop

package migration_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/api/body"
	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/integration/cluster"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
	"github.com/zk-lite/zk-lite/internal/testkit/zookeeper"
	"github.com/zk-lite/zk-lite/migration/fence"
)

// cutover is three servers of ZooKeeper and three of zk-lite that are to take over from them, with the commands of an
// operator.
type cutover struct {
	*testing.T
	e      *zookeeper.Ensemble
	z      *cluster.Ensemble
	dir    string        // for receipts
	plan   body.Takeover // the last one that was made
	fenced []int         // servers, from 0
}

// startCutover starts both sides; version "" is Debian's, and data what ZooKeeper begins with.
func startCutover(t *testing.T, version, data string) *cutover {
	t.Helper()
	return &cutover{T: t, dir: t.TempDir(),
		e: zookeeper.Run(t, zookeeper.Options{Servers: 3, Version: version, Data: data, Flags: javaFlags()}),
		z: cluster.Start(t, 3, cluster.Options{Config: map[string]string{"maxSessionTimeout": "60000"}})}
}

// mirror begins the mirror, and waits until clients may connect to zk-lite.
func (x *cutover) mirror() {
	x.Helper()
	beginMirror(x.T, x.z, x.e.Quorum())
	following(x.T, x.z)
}

// servers is what clients connect to, before and after: zk-lite's servers run beside ZooKeeper's, so they have other
// ports.
func (x *cutover) servers() string { return x.e.ConnectString() + "," + x.z.ConnectString() }

// urls are those of zk-lite's servers that run.
func (x *cutover) urls() string {
	var urls []string
	for _, s := range x.z.Running() {
		urls = append(urls, "http://"+s.HTTPAddr())
	}
	return strings.Join(urls, ",")
}

// try runs a command, and returns what it prints; with an error also what it complains of.
func (x *cutover) try(args ...string) ([]byte, error) {
	c := exec.Command(os.Getenv(cluster.BinaryVariable), args...)
	var complaint strings.Builder
	c.Stderr = &complaint
	out, err := c.Output()
	if err != nil {
		err = fmt.Errorf("zk-lite %q: %w: %s", args, err, complaint.String())
	}
	return out, err
}

// ask runs a command at zk-lite's servers, by their URLs.
func (x *cutover) ask(urls string, v any, args ...string) error {
	out, err := x.try(append(args, "-o", "json", "--http", urls, "--auth", "digest:"+cluster.SuperCredentials)...)
	if err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return json.Unmarshal(out, v)
}

// ready makes a plan, once nothing is in the way.
func (x *cutover) ready() {
	x.Helper()
	wait.Succeeds(x.T, "nothing is in the way", func() error {
		return x.ask(x.urls(), &x.plan, "takeover", "--plan")
	})
	if len(x.plan.Voters) != 3 || x.plan.Need != 2 {
		x.Fatalf("the plan is %+v; want three voters, two of them to be fenced", x.plan)
	}
}

func (x *cutover) receipt(i int) string {
	return filepath.Join(x.dir, fmt.Sprintf("receipt-%d.json", i+1))
}

// fence fences servers that have stopped, at the same time, as on hosts of their own, and keeps the receipts.
func (x *cutover) fence(servers ...int) {
	x.Helper()
	var all sync.WaitGroup
	errs := make([]error, len(servers))
	for k, i := range servers {
		all.Go(func() {
			var out []byte
			if out, errs[k] = x.tryFence(i); errs[k] == nil {
				errs[k] = os.WriteFile(x.receipt(i), out, 0o600)
			}
		})
	}
	all.Wait()
	for _, err := range errs {
		if err != nil {
			x.Fatal(err)
		}
	}
	x.fenced = append(x.fenced, servers...)
}

func (x *cutover) tryFence(i int) ([]byte, error) {
	return x.try("takeover", "fence", "--data-dir", x.e.Servers[i].DataDir(), "--after", x.plan.Zxid, "--digest",
		x.plan.Digest, "--voters", "1,2,3")
}

// kill kills servers of ZooKeeper at the same time.
func (x *cutover) kill(servers ...int) {
	var all sync.WaitGroup
	for _, i := range servers {
		all.Go(x.e.Servers[i].Kill)
	}
	all.Wait()
}

// execute takes over with all receipts, at the servers with these URLs.
func (x *cutover) execute(urls string) (done body.TakenOver, err error) {
	args := []string{"takeover", "--go"}
	for _, i := range x.fenced {
		args = append(args, "--receipt", x.receipt(i))
	}
	err = x.ask(urls, &done, args...)
	return done, err
}

// last is the zxid of the last transaction that ZooKeeper has acknowledged, or would have.
func (x *cutover) last() (last client.Zxid) {
	x.Helper()
	for _, i := range x.fenced {
		text, err := os.ReadFile(x.receipt(i))
		r := new(fence.Receipt)
		if err == nil {
			err = json.Unmarshal(text, r)
		}
		if err != nil {
			x.Fatal(err)
		}
		last = max(last, client.Zxid(r.Zxid))
	}
	return last
}

// onlyOurs checks that zk-lite alone serves: fenced servers of ZooKeeper, started once more, end by themselves, and the
// others find no quorum. The movers' writes have shown that zk-lite serves.
func (x *cutover) onlyOurs() {
	x.Helper()
	for _, i := range x.fenced {
		s := x.e.Servers[i]
		s.Start()
		wait.Until(x.T, "a fenced server ends", func() bool { return s.EndedEarly() != nil })
	}
	wait.Steadily(x.T, "no server of ZooKeeper takes a client", time.Second, func() error {
		for _, s := range x.e.Servers {
			c, err := cluster.Dial(s.Address, cluster.ConnectOptions{HandshakeTimeout: time.Second})
			if err == nil {
				c.Drop()
				return fmt.Errorf("%s has taken a client", s.Address)
			}
		}
		return nil
	})
	x.z.StartAll()
	x.z.WaitServing()
	x.z.CheckReplicas()
}

// TestTakeover_Time measures the time without service: from the last write that ZooKeeper acknowledged to the first that
// zk-lite did, by the clock of the machine, and how long each kind of client took to come back. An operator's script
// could do what it does: kill the servers, fence all at the same time, take over.
func TestTakeover_Time(t *testing.T) {
	for _, version := range timed() {
		t.Run("ZooKeeper "+cmp.Or(version, "of Debian"), func(t *testing.T) {
			x := startCutover(t, version, "")
			x.mirror()
			m := startMovers(t, x.servers(), 9, true)
			m.each(20)
			x.ready()
			m.each(20)
			times := []time.Time{time.Now()}
			for _, step := range []func(){
				func() { x.kill(0, 1, 2) },
				func() { x.fence(0, 1, 2) },
				func() {
					if _, err := x.execute(x.urls()); err != nil {
						t.Fatal(err)
					}
				},
			} {
				step()
				times = append(times, time.Now())
			}
			m.each(20)
			x.logTimes(m, times)
			m.check(x.z.ConnectString())
			x.onlyOurs()
		})
	}
}

// logTimes logs what was measured; times are when the servers were to be killed, were dead, fenced, and taken over.
func (x *cutover) logTimes(m *movers, times []time.Time) {
	x.Helper()
	last := x.last()
	type gap struct{ from, to time.Time }
	of := func(all ...*mover) (g gap) {
		for _, one := range all {
			one.mu.Lock()
			for _, a := range one.acked {
				if a.zxid <= last && a.at.After(g.from) {
					g.from = a.at
				} else if a.zxid > last && (g.to.IsZero() || a.at.Before(g.to)) {
					g.to = a.at
				}
			}
			one.mu.Unlock()
		}
		return g
	}
	ms := func(from, to time.Time) string { return fmt.Sprintf("%d ms", to.Sub(from).Milliseconds()) }
	whole := of(m.all...)
	load, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		x.Fatal(err)
	}
	x.Logf("load %.4s: %s from the last write that ZooKeeper acknowledged to the first that zk-lite did; from the kill on: "+
		"dead %s, fenced %s, taken over %s, the first write %s", load, ms(whole.from, whole.to), ms(times[0], times[1]),
		ms(times[0], times[2]), ms(times[0], times[3]), ms(times[0], whole.to))
	var back []string
	for _, one := range m.all {
		g := of(one)
		back = append(back, one.name+" "+ms(g.from, g.to))
	}
	x.Logf("each client, from its last write there to its first here: %s", strings.Join(back, ", "))
}
