package helm

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/internal/testkit/wait"
)

// stale is for how long DNS gives old answers, in the cases about that.
const stale = 5 * time.Second

// build builds the binary of the image.
func build(t *testing.T) (binary string) {
	t.Helper()
	binary = filepath.Join(t.TempDir(), "zk-lite")
	c := exec.Command("go", "build", "-C", "../..", "-o", binary, "./cmd/zk-lite")
	c.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("building zk-lite: %v\n%s", err, out)
	}
	return binary
}

// step does something while a client writes, waits until these pods serve, and logs what the client has seen.
func (c *kube) step(what string, ready []int, do func()) {
	c.t.Helper()
	l, began := c.newLoad(), time.Now()
	do()
	c.waitReady(ready...)
	c.waitVoters(ready...)
	took := time.Since(began)
	c.t.Logf("CASE %s: %.1f s; %s", what, took.Seconds(), l.end())
	if len(l.failed) > 0 {
		c.t.Errorf("%s: %d writes failed", what, len(l.failed))
	}
}

// waitVoters waits until exactly these servers are the ensemble, and vote.
func (c *kube) waitVoters(want ...int) {
	c.t.Helper()
	wait.Until(c.t, "the members are the pods, and vote", func() bool { return slices.Equal(c.voters(want[0]), want) })
}

// voters are the members as a server sees them; nil if one of them does not vote.
func (c *kube) voters(at int) (ids []int) {
	var list struct {
		Members []struct {
			ID   int
			Role string
		}
	}
	if json.Unmarshal([]byte(c.exec(at, "member", "list", "-o", "json", "--token-file", token)), &list) != nil {
		return nil
	}
	for _, m := range list.Members {
		if m.Role != "leader" && m.Role != "follower" {
			return nil
		}
		ids = append(ids, m.ID)
	}
	return ids
}

// leader is the number of the leader.
func (c *kube) leader() int {
	var list struct{ Leader int }
	if err := json.Unmarshal([]byte(c.exec(0, "member", "list", "-o", "json", "--token-file", token)), &list); err != nil {
		c.t.Fatal(err)
	}
	return list.Leader
}

// empty replaces volumes of pods that are gone by new ones.
func (c *kube) empty(p *pod) {
	if err := os.RemoveAll(filepath.Join(p.root(), "data")); err != nil {
		c.t.Fatal(err)
	}
}

func (c *kube) must(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

func TestKubernetes(t *testing.T) {
	if os.Getenv("ZK_LITE_UNPRIVILEGED") != "" {
		t.Log("ZK_LITE_UNPRIVILEGED is set: NO PODS ARE RUN")
		return
	}
	binary := build(t)
	for name, test := range map[string]func(*kube){
		"Life": life, "Scale": scale, "OneByOne": oneByOne, "VolumesLost": volumesLost,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(newKube(t, binary))
		})
	}
}

// quick lets a new server vote after a second instead of ten.
var quick = object{"autopilot.stableTime": 1000}

// token is the file with the token of the chart's hooks, in a pod.
const token = "/etc/zk-lite/auth/token"

var three = []int{0, 1, 2}

// install starts three pods at once, and waits until they serve.
func (c *kube) install(values object) {
	c.t.Helper()
	began := time.Now()
	c.must(c.apply(values, true))
	c.waitReady(0)
	c.t.Logf("CASE all at once: %.1f s until a client is served", time.Since(began).Seconds())
}

// life is what happens to pods that are neither more nor fewer.
func life(c *kube) {
	c.install(object{"config": quick})
	c.waitReady(three...)
	c.step("a pod lost with its node, back at a new address", three, func() { c.replace((*pod).lose, 1) })
	c.step("the leader's pod the same", three, func() { c.replace((*pod).lose, c.leader()) })
	c.step("node drain: the leader's pod evicted", three, func() { c.replace((*pod).remove, c.leader()) })
	c.step("rolling restart: a changed setting", three, func() {
		c.must(c.apply(object{"config": object{"snapCount": 1000, "autopilot.stableTime": 1000}}, true))
	})
	c.step("a pod with an empty volume", three, func() {
		c.replace(func(p *pod) { p.lose(); c.empty(p) }, 2)
	})
	c.step("the first pod with an empty volume", three, func() {
		c.replace(func(p *pod) { p.lose(); c.empty(p) }, 0)
	})
	c.step("two of three pods lost at once", three, func() { c.replace((*pod).lose, 0, 1) })
	c.step("all pods lost at once", three, func() { c.replace((*pod).lose, three...) })
	c.step("the same, and DNS answers with the old addresses for 5 s", three, func() {
		c.names.hold(stale)
		c.replace((*pod).lose, three...)
	})
	c.step("the same, and the old addresses are now other pods'", three, func() {
		c.names.hold(stale)
		for _, p := range c.all() {
			p.lose()
		}
		c.mu.Lock()
		c.next = c.pods[1].place - 1
		c.mu.Unlock()
		c.forget(c.all()...)
		c.create(2, 0, 1)
	})
}

// scale is what happens when there are more pods, or fewer.
func scale(c *kube) {
	five := []int{0, 1, 2, 3, 4}
	set := func(n int) func() { return func() { c.must(c.apply(object{"replicas": n, "config": quick}, true)) } }
	c.install(object{"config": quick})
	c.waitReady(three...)
	c.step("3 to 5", five, set(5))
	c.step("5 to 3", three, set(3))
	c.step("3 to 5, with the volumes of before", five, set(5))
	c.step("5 to 3, the second time", three, set(3))
	c.step("3 to 1", []int{0}, set(1))
	c.step("1 to 3, with the volumes of before", three, set(3))
}

// oneByOne starts pods one after the other, with names that DNS does not know at first.
func oneByOne(c *kube) {
	r, err := Render(object{"config": quick}, nil)
	c.must(err)
	c.live = r
	c.names.hold(stale)
	c.create(0)
	c.waitLog(0, "waiting to form the ensemble")
	c.create(1)
	c.waitLog(1, "waiting to form the ensemble")
	c.create(2)
	began := time.Now()
	c.waitReady(three...)
	c.t.Logf("CASE one by one, names late: %.1f s after the last", time.Since(began).Seconds())
	c.waitVoters(three...)
}

func (c *kube) waitLog(index int, text string) {
	c.t.Helper()
	wait.Until(c.t, "pod "+string(rune('0'+index))+" logs: "+text, func() bool { return strings.Contains(c.log(index), text) })
}

// volumesLost loses a majority of the volumes: nothing forms, until an operator has decided what is
// lost.
func volumesLost(c *kube) {
	c.install(object{"config": quick})
	c.waitReady(three...)
	l := c.newLoad()
	c.replace(func(p *pod) { p.lose(); c.empty(p) }, 1, 2)
	for _, i := range []int{1, 2} {
		c.waitLog(i, "zk-lite recover")
	}
	for _, p := range c.all() {
		if p.isReady() {
			c.t.Errorf("%s serves", p.name)
		}
	}
	// kubectl scale --replicas=0, recover, empty volumes, kubectl scale --replicas=3
	c.each(func(p *pod) { p.lose() })
	began := time.Now()
	keep := c.pod(0)
	decided := keep.command([]string{"/zk-lite", "recover", "--config", "/etc/zk-lite/config/zoo.cfg", "--yes"})
	out, err := decided.CombinedOutput()
	if err != nil {
		c.t.Fatalf("zk-lite recover: %v: %s", err, out)
	}
	c.empty(c.pod(1))
	c.empty(c.pod(2))
	c.forget(c.all()...)
	c.create(three...)
	c.waitReady(three...)
	c.waitVoters(three...)
	c.t.Logf("CASE two of three volumes lost: recovered %.1f s after the decision; %s", time.Since(began).Seconds(), l.end())
}
