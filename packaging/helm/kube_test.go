package helm

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"sync"
	"testing"

	"github.com/zk-lite/zk-lite/internal/testkit/network"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
)

// places is how many addresses there are: more than pods, so that a new pod has one that was not used lately.
const places = 10

// kube stands for a Kubernetes cluster with one release of the chart: what the controllers of StatefulSets and
// endpoints, kubelets and DNS do with it, as far as servers can see it.
type kube struct {
	t       *testing.T
	dir     string // roots and logs of pods
	binary  string
	network *network.Network
	names   *names

	mu   sync.Mutex
	live *Release
	pods map[int]*pod
	next int // place of the next pod
}

func newKube(t *testing.T, binary string) *kube {
	t.Helper()
	w, err := network.New(places, 1)
	if err != nil {
		t.Fatalf("%v; where that cannot be had, set ZK_LITE_UNPRIVILEGED=1", err)
	}
	t.Cleanup(w.Close)
	d, err := newNames(w.IP(network.Host))
	if err != nil {
		t.Fatal(err)
	}
	c := &kube{t: t, dir: t.TempDir(), binary: binary, network: w, names: d, pods: map[int]*pod{}}
	t.Cleanup(func() {
		c.each(func(p *pod) { p.lose() })
		d.close()
		if t.Failed() {
			c.printLogs()
		}
	})
	return c
}

func (c *kube) printLogs() {
	logs, _ := filepath.Glob(filepath.Join(c.dir, "*.log"))
	for _, name := range logs {
		text, _ := os.ReadFile(name)
		c.t.Logf("%s:\n%s", filepath.Base(name), text[max(0, len(text)-6000):])
	}
}

func (c *kube) release() *Release {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.live
}

// all are the pods that exist, by number.
func (c *kube) all() (list []*pod) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.pods {
		list = append(list, p)
	}
	slices.SortFunc(list, func(a, b *pod) int { return a.index - b.index })
	return list
}

// each does something with all pods at once, and waits for its end.
func (c *kube) each(f func(*pod)) {
	var all sync.WaitGroup
	for _, p := range c.all() {
		all.Go(func() { f(p) })
	}
	all.Wait()
}

func (c *kube) pod(index int) *pod {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pods[index]
}

// create makes pods of the set, each with an address of its own.
func (c *kube) create(indexes ...int) {
	for _, i := range indexes {
		set := c.release().StatefulSet
		p := &pod{
			c: c, name: fmt.Sprintf("%s-%d", set.Name, i), index: i, place: c.place(), spec: set.Spec.Template.Spec.DeepCopy(),
			gone: make(chan struct{}),
		}
		c.mu.Lock()
		c.pods[i] = p
		c.mu.Unlock()
		c.publish()
		go p.run()
	}
}

// place is an address that no pod has.
func (c *kube) place() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		c.next = c.next%places + 1
		used := false
		for _, p := range c.pods {
			used = used || p.place == c.next
		}
		if !used {
			return c.next
		}
	}
}

// publish tells DNS where pods are. A pod that is not ready has its name, and no part in the service.
func (c *kube) publish() {
	live := c.release()
	domain := "." + Namespace + ".svc.cluster.local"
	var serving []string
	for _, p := range c.all() {
		c.names.set(p.name+"."+live.Headless.Name+domain, p.ip())
		if p.isReady() {
			serving = append(serving, p.ip())
		}
	}
	c.names.set(live.Service.Name+domain, serving...)
}

// forget takes pods that are gone out of the set and out of DNS.
func (c *kube) forget(pods ...*pod) {
	for _, p := range pods {
		c.mu.Lock()
		delete(c.pods, p.index)
		c.mu.Unlock()
		c.names.set(p.name + "." + c.release().Headless.Name + "." + Namespace + ".svc.cluster.local")
	}
	c.publish()
}

// replace ends pods, all at once, and makes new ones.
func (c *kube) replace(end func(*pod), indexes ...int) {
	var all sync.WaitGroup
	for _, i := range indexes {
		p := c.pod(i)
		all.Go(func() { end(p) })
	}
	all.Wait()
	c.create(indexes...)
}

// apply does what Helm and the controllers do for an installation or an upgrade. Its error is the hook's.
func (c *kube) apply(values object, hooks bool) error {
	was := c.release()
	r, err := Render(values, was)
	if err != nil {
		c.t.Fatal(err)
	}
	hooks = hooks && r.ScaleDown != nil
	if hooks {
		if err := c.hook(r); err != nil {
			return err
		}
	}
	c.mu.Lock()
	c.live = r
	c.mu.Unlock()
	c.scale(int(*r.StatefulSet.Spec.Replicas))
	if was != nil && !reflect.DeepEqual(was.StatefulSet.Spec.Template, r.StatefulSet.Spec.Template) {
		c.restart()
	}
	if hooks {
		return c.hook(r)
	}
	return nil
}

// scale makes the pods that are missing, and evicts those that are too many, all at once.
func (c *kube) scale(n int) {
	var going sync.WaitGroup
	for _, p := range c.all() {
		if p.index >= n {
			going.Go(func() {
				p.remove()
				c.forget(p)
			})
		}
	}
	going.Wait()
	for i := range n {
		if c.pod(i) == nil {
			c.create(i)
		}
	}
}

// restart restarts all pods in turn, the last one first, as a rolling update does.
func (c *kube) restart() {
	for _, p := range slices.Backward(c.all()) {
		c.replace((*pod).remove, p.index)
		c.waitReady(p.index)
	}
}

// hook runs the job that takes members out.
func (c *kube) hook(r *Release) error {
	spec := &r.ScaleDown.Spec.Template.Spec
	p := &pod{c: c, name: r.ScaleDown.Name, place: c.place(), spec: spec}
	if err := p.mount(); err != nil {
		c.t.Fatal(err)
	}
	out, err := p.command(append([]string{"/zk-lite"}, spec.Containers[0].Args...)).CombinedOutput()
	c.t.Logf("%s: %s", p.name, out)
	if err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

// exec runs a command in a pod.
func (c *kube) exec(index int, args ...string) string {
	out, err := c.pod(index).command(append([]string{"/zk-lite"}, args...)).CombinedOutput()
	if err != nil {
		out = fmt.Appendf(out, "(%v)", err)
	}
	return string(out)
}

func (c *kube) waitReady(indexes ...int) {
	c.t.Helper()
	for _, i := range indexes {
		wait.Until(c.t, fmt.Sprintf("pod %d is ready", i), func() bool { p := c.pod(i); return p != nil && p.isReady() })
	}
}

// log is what a pod's containers have printed.
func (c *kube) log(index int) string {
	text, _ := os.ReadFile(c.pod(index).logFile()) // it may not have started yet
	return string(text)
}
