package helm

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// scheduling is how long a new pod takes until its container starts; in a cluster it is rather longer.
const scheduling = time.Second

// pod is a process that runs as its manifest says, as a kubelet would run it: in a root directory with nothing but
// the binary and its volumes, as its user, in a network namespace with a new address. Unlike a kubelet it sets no
// limits, no capabilities and no read-only root (which belongs to another user).
//
// It has one goroutine, which starts the container, again if it ends, and probes it.
type pod struct {
	c     *kube
	name  string
	index int // of the pod in its set
	place int // in the network
	spec  *corev1.PodSpec
	gone  chan struct{} // closed when the pod is no more

	mu       sync.Mutex
	process  *exec.Cmd // nil: not now
	ended    chan struct{}
	exit     error
	ready    bool
	deleting bool
}

func (p *pod) ip() string      { return p.c.network.IP(p.place) }
func (p *pod) root() string    { return filepath.Join(p.c.dir, p.name) }
func (p *pod) logFile() string { return filepath.Join(p.c.dir, p.name+".log") }

// mount makes the root directory. The volume of a claim is what it was.
func (p *pod) mount() error {
	user := int(*p.spec.SecurityContext.FSGroup)
	if err := os.MkdirAll(filepath.Join(p.root(), "etc"), 0o755); err != nil {
		return err
	}
	if err := os.Link(p.c.binary, filepath.Join(p.root(), "zk-lite")); err != nil && !os.IsExist(err) {
		return err
	}
	resolv := fmt.Sprintf("search %[2]s.svc.cluster.local svc.cluster.local cluster.local\nnameserver %[1]s\noptions ndots:5\n",
		p.c.network.IP(0), Namespace)
	if err := os.WriteFile(filepath.Join(p.root(), "etc/resolv.conf"), []byte(resolv), 0o644); err != nil {
		return err
	}
	live := p.c.release()
	for _, m := range p.spec.Containers[0].VolumeMounts {
		dir := filepath.Join(p.root(), m.MountPath)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		files, mode := map[string][]byte{}, os.FileMode(0o644)
		for _, v := range p.spec.Volumes {
			switch {
			case v.Name != m.Name:
			case v.Secret != nil:
				files, mode = live.Secret.Data, os.FileMode(*v.Secret.DefaultMode)
			case v.ConfigMap != nil:
				for name, text := range live.ConfigMap.Data {
					files[name] = []byte(text)
				}
			}
		}
		if m.Name == "data" { // what fsGroup does
			if err := os.Chown(dir, 0, user); err != nil {
				return err
			}
			if err := os.Chmod(dir, 0o775|os.ModeSetgid); err != nil {
				return err
			}
		}
		for name, content := range files {
			file := filepath.Join(dir, name)
			_ = os.Remove(file) // another mode, perhaps
			if err := os.WriteFile(file, content, mode); err != nil {
				return err
			}
			if err := os.Chown(file, 0, user); err != nil {
				return err
			}
		}
	}
	return nil
}

// command is a command where the pod is, with its environment.
func (p *pod) command(args []string) *exec.Cmd {
	s := p.spec.SecurityContext
	args = p.c.network.Command(p.place, append([]string{
		"chroot", fmt.Sprintf("--userspec=%d:%d", *s.RunAsUser, *s.RunAsGroup), p.root(),
	}, args...))
	c := exec.Command(args[0], args[1:]...)
	c.Env = []string{"PATH=" + os.Getenv("PATH"), "HOSTNAME=" + p.name}
	for _, e := range p.spec.Containers[0].Env {
		value := e.Value
		if e.ValueFrom != nil { // the one label that the chart asks for
			if path := e.ValueFrom.FieldRef.FieldPath; path != "metadata.labels['apps.kubernetes.io/pod-index']" {
				panic(path)
			}
			value = strconv.Itoa(p.index)
		}
		c.Env = append(c.Env, e.Name+"="+value)
	}
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	return c
}

// start starts the container.
func (p *pod) start() error {
	if err := p.mount(); err != nil {
		return err
	}
	log, err := os.OpenFile(p.logFile(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	fmt.Fprintf(log, "--- %s starts at %s\n", p.name, p.ip())
	cmd := p.command(append([]string{"/zk-lite"}, p.spec.Containers[0].Args...))
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan struct{})
	p.mu.Lock()
	p.process, p.ended = cmd, ended
	p.mu.Unlock()
	go func() {
		err := cmd.Wait()
		p.mu.Lock()
		p.exit = err
		p.mu.Unlock()
		close(ended)
	}()
	return nil
}

// run keeps the container running, and probes it, until the pod is deleted.
func (p *pod) run() {
	defer close(p.gone)
	<-time.After(scheduling)
	for !p.isDeleting() {
		if err := p.start(); err != nil {
			p.c.t.Errorf("starting %s: %v", p.name, err)
			return
		}
		p.probe()
		p.setReady(false)
		if p.isDeleting() {
			return
		}
		<-time.After(time.Second) // a kubelet waits ten, and longer each time
	}
}

// probe probes the container until it has ended.
func (p *pod) probe() {
	c := &p.spec.Containers[0]
	started, failed := false, map[*corev1.Probe]int32{}
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for second := int32(0); ; second++ {
		select {
		case <-p.ended:
			return
		case <-tick.C:
		}
		probes := []*corev1.Probe{c.StartupProbe}
		if started {
			probes = []*corev1.Probe{c.ReadinessProbe, c.LivenessProbe}
		}
		for _, probe := range probes {
			if second%max(1, probe.PeriodSeconds) != 0 {
				continue
			}
			ok := p.get(probe)
			if failed[probe]++; ok {
				failed[probe] = 0
			}
			switch {
			case probe == c.StartupProbe && ok:
				started = true
			case probe == c.ReadinessProbe && (ok || failed[probe] >= probe.FailureThreshold):
				p.setReady(ok)
			case probe != c.ReadinessProbe && failed[probe] >= probe.FailureThreshold:
				p.c.t.Errorf("%s is not alive: it is restarted", p.name)
				p.kill()
			}
		}
	}
}

// insecure is how a kubelet looks at a port with TLS.
var insecure = &http.Client{Transport: &http.Transport{
	TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true,
}}

func (p *pod) get(probe *corev1.Probe) bool {
	for _, port := range p.spec.Containers[0].Ports {
		if port.Name != probe.HTTPGet.Port.StrVal {
			continue
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Duration(max(1, probe.TimeoutSeconds))*time.Second)
		defer cancel()
		url := fmt.Sprintf("%s://%s:%d%s", strings.ToLower(string(probe.HTTPGet.Scheme)), p.ip(), port.ContainerPort, probe.HTTPGet.Path)
		q, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return false
		}
		reply, err := insecure.Do(q)
		if err != nil {
			return false
		}
		reply.Body.Close()
		return reply.StatusCode < 400
	}
	return false
}

func (p *pod) setReady(ready bool) {
	p.mu.Lock()
	changed := p.ready != (ready && !p.deleting)
	p.ready = ready && !p.deleting
	p.mu.Unlock()
	if changed {
		p.c.publish()
	}
}

func (p *pod) isReady() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ready
}

func (p *pod) isDeleting() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.deleting
}

func (p *pod) signal(s syscall.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.process != nil {
		_ = p.process.Process.Signal(s) // an error: it has ended
	}
}

func (p *pod) kill() { p.signal(syscall.SIGKILL) }

// lose ends the pod as a node does that loses its power.
func (p *pod) lose() {
	p.mu.Lock()
	p.deleting = true
	p.mu.Unlock()
	p.kill()
	<-p.gone
}

// remove ends the pod as an eviction does: its hook, SIGTERM, and SIGKILL when its time is over.
func (p *pod) remove() {
	p.mu.Lock()
	p.deleting = true
	p.mu.Unlock()
	p.setReady(false)
	grace := time.NewTimer(time.Duration(*p.spec.TerminationGracePeriodSeconds) * time.Second)
	defer grace.Stop()
	hook := p.command(p.spec.Containers[0].Lifecycle.PreStop.Exec.Command)
	if out, err := hook.CombinedOutput(); err != nil {
		p.c.t.Logf("%s: its hook: %v: %s", p.name, err, out)
	}
	p.signal(syscall.SIGTERM)
	select {
	case <-p.gone:
	case <-grace.C:
		p.c.t.Errorf("%s does not stop in time", p.name)
		p.kill()
		<-p.gone
	}
}
