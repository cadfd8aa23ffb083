//go:build interop && soak

package migration_test

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/api/body"
	"github.com/zk-lite/zk-lite/integration/cluster"
	"github.com/zk-lite/zk-lite/internal/testkit/certs"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
	"github.com/zk-lite/zk-lite/internal/testkit/zookeeper"
	"github.com/zk-lite/zk-lite/migration/datadir"
)

var (
	mirrorFor   = flag.Duration("mirror.for", time.Minute, "how long a mirror follows an ensemble under load")
	mirrorRate  = flag.Int("mirror.rate", 2000, "writes per second at the origin")
	mirrorKills = flag.Duration("mirror.kills", 11*time.Second, "how often the origin's leader is killed")
)

// mirrorCase is an origin of a mirror, and what happens meanwhile.
type mirrorCase struct {
	version string
	sound   bool // no server of zk-lite is killed
	root    bool // clients write the data of the root
	tls     bool // on the quorum ports
	sasl    bool // there, too
	masters bool // the mirror knows only the ports for observers, at followers, too
}

// TestMirror: three servers of zk-lite mirror three of ZooKeeper, under a load of all transactions, while leaders are
// killed, those of zk-lite, too. Every digest fits, and in the end all servers of both sides have the same.
func TestMirror(t *testing.T) {
	for name, c := range map[string]mirrorCase{
		zookeeper.V34:          {version: zookeeper.V34},
		zookeeper.V38:          {version: zookeeper.V38},
		zookeeper.V39:          {version: zookeeper.V39},
		zookeeper.V39 + " cpu": {version: zookeeper.V39, sound: true},
		"root":                 {version: zookeeper.V39, root: true},
		"sasl":                 {version: zookeeper.V34, sasl: true},
		"tls":                  {version: zookeeper.V36, tls: true},
		"tls and sasl":         {version: zookeeper.V39, tls: true, sasl: true},
		"observer masters":     {version: zookeeper.V38, masters: true},
	} {
		t.Run(name, c.run)
	}
}

func (c *mirrorCase) run(t *testing.T) {
	// A log of each 10,000 transactions would take 64 MiB: 20 GB in ten minutes.
	o := zookeeper.Options{Version: c.version, Servers: 3, Config: config("snapCount=10000"),
		Flags: append(javaFlags(), "-Xmx1200m", "-Dzookeeper.preAllocSize=4096")}
	if c.tls {
		o.WithTLS(t, certs.Authority(t, "quorum"))
	}
	if c.sasl {
		o.WithSASL(t)
	}
	if c.masters {
		o.Config = append(o.Config, "observerMasterPort=$PORT")
	}
	e := zookeeper.Run(t, o)
	ours := map[string]string{"maxSessionTimeout": "60000"}
	if c.tls || c.sasl {
		ours["mirror.config"] = e.Servers[0].ConfigFile()
	}
	z := cluster.Start(t, 3, cluster.Options{Config: ours})
	l := startLoad(t, e, c.version, &load{workers: 16, rate: *mirrorRate, members: true, strict: true, root: c.root})
	l.after(2 * *mirrorRate) // there is something to load
	begin, spent := time.Now(), cpu(t, z)
	from := e.Quorum()
	if c.masters {
		from = fmt.Sprintf("127.0.0.1:%d,127.0.0.1:%d,127.0.0.1:%d", e.Servers[0].Port, e.Servers[1].Port,
			e.Servers[2].Port)
	}
	beginMirror(t, z, from)
	following(t, z)
	t.Logf("follows after %v", time.Since(begin))
	kills := 0
	for ; time.Since(begin) < *mirrorFor; kills++ {
		l.pause(*mirrorKills - 3*time.Second)
		leader := e.Leader()
		leader.Kill()
		l.pause(3 * time.Second)
		leader.Start()
		if !c.sound && kills%2 == 1 {
			s := z.Leader()
			t.Logf("before server %d is killed: %s", s.ID, show(mirrorOf(t, z)))
			s.Restart()
		}
	}
	l.end()
	t.Logf("%d leaders killed, %.0f requests per second in %v", kills,
		float64(l.requests())/time.Since(begin).Seconds(), time.Since(begin))
	if c.sound {
		t.Logf("zk-lite's servers took %v of CPU in %v", cpu(t, z)-spent, time.Since(begin))
	}
	for _, s := range e.Servers {
		s.WaitServing()
	}
	compareMirror(t, e, z, l, c.version)
}

// compareMirror compares all servers of both sides, once the origin is at rest.
func compareMirror(t *testing.T, e *zookeeper.Ensemble, z *cluster.Ensemble, l *load, version string) {
	t.Helper()
	h := hold(t, e.Leader().Address, 10*time.Second, 60*time.Second)
	want := listAtRest(t, e.Leader().Address, zookeeper.Superuser, h.ids)
	l.checkKept(want.znodes)
	var m body.Mirror
	wait.Succeeds(t, "the mirror has all transactions", func() error {
		if m = mirrorOf(t, z); m.Zxid != want.zxid.String() {
			return fmt.Errorf("%s, want zxid %v", show(m), want.zxid)
		}
		return nil
	})
	t.Logf("at the end: %s", show(m))
	if digests := version != zookeeper.V34; m.Digests.Compared > 0 != digests || m.Digests.Differing > 0 && !l.root ||
		m.Digests.Since != "" {
		t.Errorf("digests %+v; want some compared (%v), none differing", m.Digests, digests)
	}
	z.WaitServing()
	for i, s := range z.Servers() {
		r, _, err := datadir.Load(exported(t, s), "")
		if err != nil {
			t.Fatal(err)
		}
		got := listReplica(t, r)
		all := len(got.sessions)
		got.sessions = slices.DeleteFunc(got.sessions, func(id string) bool { return !slices.Contains(want.sessions, id) })
		if own := all - len(got.sessions); own > i+1 { // an export has its server ask ZooKeeper, in a session of its own
			t.Errorf("mirrored at server %d: %d sessions that no client has; want at most %d", s.ID, own, i+1)
		}
		compare(t, fmt.Sprintf("mirrored at server %d", s.ID), want, got, nil)
	}
	for _, s := range e.Servers {
		got, err := list(t, s.Address, zookeeper.Superuser)
		if err != nil {
			t.Fatal(err)
		}
		got.sessions = want.sessions // a follower does not know them
		compare(t, "the origin's other server "+s.Address, want, got, nil)
	}
}

// cpu is the time that the processors have spent on all servers' present processes.
func cpu(t *testing.T, z *cluster.Ensemble) (sum time.Duration) {
	t.Helper()
	for _, s := range z.Running() {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.PID()))
		if err != nil {
			t.Fatal(err)
		}
		_, after, _ := strings.Cut(string(text), ") ")
		var user, system int64
		fields := strings.Fields(after)
		if _, err := fmt.Sscan(strings.Join(fields[11:13], " "), &user, &system); err != nil {
			t.Fatal(err)
		}
		sum += time.Duration(user+system) * 10 * time.Millisecond // USER_HZ is 100
	}
	return sum
}

// TestMirror_Million: what it takes to begin with a million znodes.
func TestMirror_Million(t *testing.T) {
	const n = 1_000_000
	dir, r := znodes(t, n)
	want := r.Digest()
	e := zookeeper.Run(t, zookeeper.Options{Version: zookeeper.V39, Servers: 3, Data: dir,
		Flags: append(javaFlags(), "-Xmx1500m")})
	z := cluster.Start(t, 3, cluster.Options{})
	begin, spent := time.Now(), cpu(t, z)
	beginMirror(t, z, e.Quorum())
	following(t, z)
	t.Logf("%d znodes after %v, %v of CPU", n, time.Since(begin), cpu(t, z)-spent)
	for _, s := range z.Servers() {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.PID()))
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("server %d: %s", s.ID, regexp.MustCompile("Vm(HWM|RSS):.*").FindAllString(string(text), -1))
	}
	got, _, err := datadir.Load(exported(t, z.Leader()), "")
	if err != nil {
		t.Fatal(err)
	}
	if got.Digest() != want || got.Tree.Size().Znodes != r.Tree.Size().Znodes {
		t.Errorf("%d znodes with the digest %x, want %d and %x", got.Tree.Size().Znodes, got.Digest(),
			r.Tree.Size().Znodes, want)
	}
}
