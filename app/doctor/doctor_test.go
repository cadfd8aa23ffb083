//go:build linux

package doctor_test

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/zk-lite/zk-lite/app"
	"github.com/zk-lite/zk-lite/app/config"
	"github.com/zk-lite/zk-lite/app/doctor"
	"github.com/zk-lite/zk-lite/consensus/raftlog"
	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/internal/testkit/certs"
	"github.com/zk-lite/zk-lite/internal/testkit/ports"
	"github.com/zk-lite/zk-lite/internal/testkit/tier"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
	"github.com/zk-lite/zk-lite/zklitetest"
	"github.com/zk-lite/zk-lite/znode"
)

// machine is one on which a server of three will be started, with real files and ports. The other two listen.
type machine struct {
	t         *testing.T
	dir       string
	zoo       map[string]string // zoo.cfg
	environ   []string
	options   doctor.Options
	authority *certs.Pair
	config    os.FileMode
}

func newMachine(t *testing.T) *machine {
	m := &machine{t: t, dir: t.TempDir(), authority: certs.Authority(t, "ours"), config: 0o600}
	port := ports.Take(t, 5)
	m.zoo = map[string]string{
		"dataDir": m.path("data"), "clientPort": strconv.Itoa(port[0]), "clientPortAddress": "127.0.0.1",
		"admin.serverPort": strconv.Itoa(port[1]),
	}
	for i := range 3 {
		m.zoo[fmt.Sprintf("server.%d", i+1)] = fmt.Sprintf("127.0.0.%d:%d:3888", i+1, port[2+i])
	}
	m.secure(m.authority.Issue(t, "server", nil))
	m.write("data/myid", "1\n", 0o600)
	for i := 2; i <= 3; i++ {
		m.peer(i)
	}
	m.options = doctor.Options{Version: "1.0.0", Memory: 1 << 30, Limits: patient()}
	m.options.Limits.Sync, m.options.Limits.Free = time.Minute, 0 // whatever the disk of the tests
	return m
}

// patient are limits for tests, in which no server that is asked is silent, and each may be slow.
func patient() doctor.Limits {
	l := doctor.DefaultLimits()
	l.Answer = 30 * time.Second
	return l
}

func (m *machine) path(name string) string { return filepath.Join(m.dir, name) }

func (m *machine) write(name, text string, mode os.FileMode) string {
	m.t.Helper()
	path := m.path(name)
	err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), mode), os.Chmod(path, mode))
	if err != nil {
		m.t.Fatal(err)
	}
	return path
}

// secure has the peer port speak TLS with a certificate.
func (m *machine) secure(pair *certs.Pair) {
	m.zoo["sslQuorum"] = "true"
	m.zoo["ssl.quorum.keyStore.location"] = m.write("key.pem", string(pair.KeyPEM(m.t)), 0o600)
	m.zoo["ssl.quorum.trustStore.location"] = m.write("ca.pem", string(m.authority.CertPEM()), 0o600)
}

// logged gives the server a log with a command of release 1.0: a client with so many identities has created a znode
// with so many entries "auth" in its ACL.
func (m *machine) logged(identities, entries int) {
	m.t.Helper()
	c := state.Command{Op: state.OpCreate, Path: "/long"}
	for i := range identities {
		c.Identities = append(c.Identities, znode.ID{Scheme: "digest", ID: fmt.Sprint(i, ":x")})
	}
	for i := range entries {
		c.ACL = append(c.ACL, znode.ACL{Perms: znode.Perms(i), ID: znode.AuthIDs})
	}
	batch := state.Batch{Origin: state.Origin{Server: 1, Incarnation: 1}, First: 1, Count: 1,
		Commands: state.AppendCommand(nil, &c)}
	log, err := raftlog.Open(m.path("data/raftlog"), raftlog.Options{})
	if err == nil {
		err = log.StoreLog(&raft.Log{Index: 1, Term: 1, Data: state.AppendEntry(nil, 1, []state.Batch{batch})})
	}
	if err = errors.Join(err, log.Close()); err != nil {
		m.t.Fatal(err)
	}
}

// peer has another server listen, with TLS.
func (m *machine) peer(id int) {
	address := m.address(id)
	host, _, _ := net.SplitHostPort(address)
	pair := m.authority.Issue(m.t, host, func(c *x509.Certificate) { c.IPAddresses = []net.IP{net.ParseIP(host)} })
	l, err := tls.Listen("tcp", address, &tls.Config{Certificates: []tls.Certificate{{
		Certificate: [][]byte{pair.Cert.Raw}, PrivateKey: pair.Key}}})
	if err != nil {
		m.t.Fatal(err)
	}
	m.serve(l, func(c net.Conn) { _ = c.(*tls.Conn).Handshake() })
}

func (m *machine) serve(l net.Listener, f func(net.Conn)) {
	m.t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			f(c)
			c.Close()
		}
	}()
}

func (m *machine) address(id int) string {
	return strings.TrimSuffix(m.zoo[fmt.Sprintf("server.%d", id)], ":3888")
}

// free is an address without a listener.
func (m *machine) free(host string) string { return fmt.Sprintf("%s:%d", host, ports.Take(m.t, 1)[0]) }

// another answers as a server of zk-lite over HTTP.
func (m *machine) another(version string, ahead time.Duration) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Date", time.Now().Add(ahead).UTC().Format(http.TimeFormat))
		fmt.Fprintf(w, `{"status":"ok","version":%q,"server":2,"leader":2,"term":1}`, version)
	}))
	m.t.Cleanup(s.Close)
	m.options.HTTP = []string{s.URL}
}

func (m *machine) examine() []doctor.Finding {
	var text strings.Builder
	for _, key := range slices.Sorted(maps.Keys(m.zoo)) {
		fmt.Fprintf(&text, "%s=%s\n", key, m.zoo[key])
	}
	path := m.write("zoo.cfg", text.String(), m.config)
	s, notices, err := config.Load(nil, func(name string) (string, bool) { return path, name == "ZK_LITE_CONFIG" })
	found := doctor.Configuration(err, append(notices, config.UnknownVariables(m.environ)...))
	if err == nil {
		m.options.Settings = s
		more := doctor.Examine(m.t.Context(), m.options)
		running, _ := doctor.Runs(m.t.Context(), m.options)
		if running {
			m.t.Error("a server runs")
		}
		found = append(found, more...)
	}
	return found
}

// mistakes are what operators do wrong, and what is found then.
var mistakes = map[string]struct {
	plant    func(*machine)
	severity doctor.Severity
	check    string
	problem  string
}{
	"unknown setting": {func(m *machine) { m.zoo["clientport"] = "1" }, doctor.Error, "configuration", "unknown key"},
	"misspelt variable": {func(m *machine) { m.environ = []string{"ZK_LITE_TICKTIME=1"} },
		doctor.Warning, "configuration", "did you mean ZK_LITE_TICK_TIME?"},
	"no myid": {func(m *machine) { os.Remove(m.path("data/myid")) }, doctor.Error, "configuration", "myid: names no server"},
	"port in use": {func(m *machine) {
		l, err := net.Listen("tcp", "127.0.0.1:"+m.zoo["clientPort"])
		if err != nil {
			m.t.Fatal(err)
		}
		m.serve(l, func(net.Conn) {})
	}, doctor.Error, "ports", "given by the setting clientPort: "},
	"address of another machine": {func(m *machine) { m.zoo["clientPortAddress"] = "192.0.2.1" },
		doctor.Error, "ports", "192.0.2.1"},
	"directory that cannot be written": {func(m *machine) { m.zoo["dataLogDir"] = "/proc/log" },
		doctor.Error, "disks", "no file can be made"},
	"directory of another server": {func(m *machine) {
		m.write("data/identity.json", `{"version":1,"ensemble":"`+strings.Repeat("ab", 16)+`","server":2}`, 0o600)
	}, doctor.Error, "start", "belongs to server 2"},
	"directory of ZooKeeper": {func(m *machine) { m.write("data/version-2/snapshot.1", "", 0o600) },
		doctor.Error, "start", "Apache ZooKeeper"},
	"name without an address": {func(m *machine) { m.zoo["server.3"] = "zk3.invalid:2888:3888" },
		doctor.Error, "names", "zk3.invalid leads to no address"},
	"two names of one machine": {func(m *machine) {
		_, port, _ := net.SplitHostPort(m.address(2))
		m.zoo["server.3"], m.zoo["server.2"] = "localhost:"+port+":3888", "127.0.0.1:"+port+":3888"
	}, doctor.Error, "names", "localhost lead to the same address"},
	"two servers on one machine": {func(m *machine) { m.zoo["server.3"] = m.free("127.0.0.2") + ":3888" },
		doctor.Warning, "names", "server.2 and server.3 are on the same machine"},
	"other server that is down": {func(m *machine) { m.zoo["server.3"] = m.free("127.0.0.3") + ":3888" },
		doctor.Warning, "peers", "no one listens there"},
	"other server without TLS": {func(m *machine) {
		m.zoo["server.3"] = m.free("127.0.0.3") + ":3888"
		l, err := net.Listen("tcp", m.address(3))
		if err != nil {
			m.t.Fatal(err)
		}
		m.serve(l, func(c net.Conn) { _, _ = c.Write([]byte("zkLP")) })
	}, doctor.Error, "peers", "TLS: "},
	"other server's certificate for another host": {func(m *machine) {
		m.zoo["server.3"] = "localhost" + strings.TrimPrefix(m.zoo["server.2"], "127.0.0.2")
		m.zoo["server.2"] = m.free("127.0.0.2") + ":3888"
		_, port, _ := net.SplitHostPort(m.address(3))
		pair := m.authority.Issue(m.t, "x", func(c *x509.Certificate) { c.DNSNames = []string{"elsewhere"} })
		l, err := tls.Listen("tcp", "127.0.0.1:"+port, &tls.Config{Certificates: []tls.Certificate{{
			Certificate: [][]byte{pair.Cert.Raw}, PrivateKey: pair.Key}}})
		if err != nil {
			m.t.Fatal(err)
		}
		m.serve(l, func(c net.Conn) { _ = c.(*tls.Conn).Handshake() })
	}, doctor.Error, "peers", "elsewhere"},
	"certificate of another host": {func(m *machine) {
		m.secure(m.authority.Issue(m.t, "x", func(c *x509.Certificate) { c.IPAddresses, c.DNSNames = nil, []string{"other"} }))
	}, doctor.Error, "certificates", "127.0.0.1"},
	"certificate that has expired": {func(m *machine) {
		m.secure(m.authority.Issue(m.t, "x", func(c *x509.Certificate) {
			c.NotBefore, c.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(-time.Minute)
		}))
	}, doctor.Error, "certificates", "the certificate expired at"},
	"certificate of tomorrow": {func(m *machine) {
		m.secure(m.authority.Issue(m.t, "x", func(c *x509.Certificate) { c.NotBefore = time.Now().Add(time.Hour) }))
	}, doctor.Error, "certificates", "is not good before"},
	"certificate that expires soon": {func(m *machine) {
		m.secure(m.authority.Issue(m.t, "x", func(c *x509.Certificate) { c.NotAfter = time.Now().Add(time.Hour) }))
	}, doctor.Warning, "certificates", "the certificate expires at"},
	"certificate of another authority": {func(m *machine) {
		m.secure(certs.Authority(m.t, "theirs").Issue(m.t, "x", nil))
	}, doctor.Error, "certificates", "would refuse this one"},
	"key of another certificate": {func(m *machine) {
		a, b := m.authority.Issue(m.t, "a", nil), m.authority.Issue(m.t, "b", nil)
		m.secure(&certs.Pair{Cert: a.Cert, Key: b.Key})
	}, doctor.Error, "start", "ssl.quorum.keyStore.location"},
	"key that everybody reads": {func(m *machine) { os.Chmod(m.path("key.pem"), 0o644) },
		doctor.Warning, "modes", "which has a private key"},
	"configuration with a secret": {func(m *machine) {
		m.config = 0o644
		m.zoo["ssl.quorum.keyStore.password"] = "x"
	}, doctor.Warning, "modes", "zoo.cfg, which has secrets"},
	"snapshots that everybody reads": {func(m *machine) {
		os.Mkdir(m.path("data/snapshots"), 0o755)
		os.Chmod(m.path("data/snapshots"), 0o755)
	}, doctor.Warning, "modes", "the data of all znodes"},
	"one disk for two directories": {func(m *machine) { m.zoo["dataLogDir"] = m.path("log") },
		doctor.Warning, "disks", "on the same disk"},
	"slow disk":    {func(m *machine) { m.options.Limits.Sync = 1 }, doctor.Warning, "disks", "a sync in"},
	"full disk":    {func(m *machine) { m.options.Limits.Free = 1 << 60 }, doctor.Warning, "disks", "MiB are free"},
	"many clients": {func(m *machine) { m.zoo["maxCnxns"] = "2147483647" }, doctor.Warning, "descriptors", "maxCnxns"},
	"tree without room": {func(m *machine) { m.zoo["limits.treeBytes"] = "1GiB" },
		doctor.Error, "memory", "the server would be killed"},
	"little memory": {func(m *machine) { m.options.Memory = 120 << 20; m.zoo["largeRequestMaxBytes"] = "1048576" },
		doctor.Warning, "memory", "may use 120 MiB"},
	"a long ACL": {func(m *machine) { m.logged(5, 500) }, doctor.Warning, "data",
		`the ACL of "/long", set by entry 1 of the log: 2500 entries`},
	"an ACL that takes all memory": {func(m *machine) { m.logged(400, 4000) }, doctor.Error, "data", "1600000 entries"},
	"half of TLS": {func(m *machine) { m.zoo["portUnification"] = "true" },
		doctor.Warning, "settings", "servers without a certificate are taken"},
	"no names in certificates": {func(m *machine) { m.zoo["ssl.quorum.hostnameVerification"] = "false" },
		doctor.Warning, "settings", "may be any server"},
	"peers without TLS": {func(m *machine) {
		m.zoo["peer.tls"] = "false"
		delete(m.zoo, "sslQuorum")
	}, doctor.Warning, "settings", "is a member of the ensemble"},
	"HTTP in the open": {func(m *machine) { m.zoo["admin.serverAddress"] = "0.0.0.0" },
		doctor.Warning, "settings", "HTTP port is open"},
	"sessions that end in an election": {func(m *machine) { m.zoo["minSessionTimeout"] = "1500" },
		doctor.Warning, "settings", "sessions may expire"},
	"short syncLimit": {func(m *machine) {
		m.zoo["syncLimit"], m.zoo["tickTime"], m.zoo["minSessionTimeout"] = "1", "1000", "4000"
	},
		doctor.Warning, "settings", "clients are let go"},
	"no ACLs":         {func(m *machine) { m.zoo["skipACL"] = "yes" }, doctor.Warning, "settings", "skipACL"},
	"another version": {func(m *machine) { m.another("0.9.0", 0) }, doctor.Warning, "versions", "0.9.0"},
	"another time": {func(m *machine) { m.another("1.0.0", -time.Hour) },
		doctor.Warning, "clock", "differs from this one by 1h0m"},
	"another URL": {func(m *machine) { m.options.HTTP = []string{"http://" + m.free("127.0.0.1")} },
		doctor.Warning, "ensemble", "--http: "},
}

func TestExamine_FindsEachMistake(t *testing.T) {
	healthy := newMachine(t)
	healthy.another("1.0.0", 0)
	sound := healthy.examine()
	for _, f := range sound {
		if f.Severity == doctor.Error || f.Check != "clock" && f.Check != "swap" && f.Check != "disks" && f.Check != "descriptors" {
			t.Errorf("without a mistake: %+v", f) // the others are about the machine that runs the test
		}
	}
	is := func(f doctor.Finding, severity doctor.Severity, check, problem string) bool {
		return f.Severity == severity && f.Check == check && strings.Contains(f.Problem, problem)
	}
	for name, want := range mistakes {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			want.plant(m)
			this := func(f doctor.Finding) bool { return is(f, want.severity, want.check, want.problem) }
			found := m.examine()
			switch i := slices.IndexFunc(found, this); {
			case i < 0:
				t.Errorf("not found: %+v", found)
			case found[i].Do == "":
				t.Errorf("nothing to do about %q", found[i].Problem)
			case slices.ContainsFunc(sound, this):
				t.Error("found without the mistake, too")
			}
			if _, err := os.Stat(m.path("data/stable.db")); err == nil {
				t.Error("it has made files of a server")
			}
			left, err := filepath.Glob(m.path("data/.zk-lite-doctor-*"))
			if err != nil || len(left) > 0 {
				t.Errorf("it has left %v", left)
			}
		})
	}
}

// In memory is what some systems have at /dev/shm.
func TestExamine_DiskInMemory(t *testing.T) {
	dir, err := os.MkdirTemp("/dev/shm", "zk-lite")
	if err != nil {
		t.Logf("not looked at: %v", err)
		return
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	m := newMachine(t)
	m.zoo["dataLogDir"] = dir
	if !slices.ContainsFunc(m.examine(), func(f doctor.Finding) bool { return strings.Contains(f.Problem, "tmpfs") }) {
		t.Error("a log in memory is not found")
	}
}

// A server that runs is asked, and so are the others.
func TestExamine_Running(t *testing.T) {
	e := zklitetest.Start(t, zklitetest.WithServers(3))
	o := doctor.Options{Limits: patient(), HTTP: []string{"http://" + e.HTTPAddrs()[1], "http://" + e.HTTPAddrs()[2]}}
	o.Settings, _, _ = config.Load(nil, func(string) (string, bool) { return "", false })
	o.Settings.MyID, o.Settings.DataDir, o.Settings.DataLogDir = 1, t.TempDir(), t.TempDir()
	_, port, _ := net.SplitHostPort(e.HTTPAddrs()[0])
	o.Settings.AdminPort, _ = strconv.Atoi(port)
	examine := func() (problems []string) {
		found := doctor.Examine(t.Context(), o)
		if running, err := doctor.Runs(t.Context(), o); !running || err != nil {
			t.Errorf("no server is found: %v", err)
		}
		for _, f := range found {
			if f.Check == "ready" || f.Check == "ensemble" || f.Check == "ports" || f.Check == "versions" {
				problems = append(problems, f.Check+": "+f.Problem)
			}
		}
		return problems
	}
	if all := examine(); len(all) > 0 {
		t.Errorf("of a server that serves: %q", all)
	}
	e.Stop(1)
	e.Stop(2)
	all := strings.Join(examine(), "\n")
	for !strings.Contains(all, "ready: leader fails") && t.Context().Err() == nil {
		all = strings.Join(examine(), "\n") // until the silence of the others is noticed
	}
	if strings.Count(all, "ensemble: --http: ") != 2 {
		t.Errorf("without the others: %s", all)
	}
}

// The log knew why a server did not serve; the doctor said something else, of what followed from it.
func TestRegression_Examine_SaysWhatTheServerWaitsFor(t *testing.T) {
	tier.Seconds(t)
	o := doctor.Options{Limits: patient()}
	o.Settings, _, _ = config.Load(nil, func(string) (string, bool) { return "", false })
	s, port := &o.Settings, ports.Take(t, 8)
	s.MyID, s.DataDir, s.Standalone = 1, t.TempDir(), false
	s.DataLogDir = s.DataDir
	s.ClientPortAddress, s.ClientPort, s.AdminAddress, s.AdminPort = "127.0.0.1", port[6], "127.0.0.1", port[7]
	for i := range 3 {
		s.Servers = append(s.Servers, config.Server{ID: i + 1, Host: "127.0.0.1", PeerPort: port[2*i],
			ElectionPort: port[2*i+1], Role: config.Participant})
	}
	n, err := app.Open(app.Options{Settings: *s, Version: "test", Logger: slog.New(slog.DiscardHandler),
		Fatal: func(err error) { t.Error(err) }})
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	wait.Until(t, "the server has asked the others", func() bool { return n.Server().Status().Waiting != "" })
	found := doctor.Examine(t.Context(), o)
	var ready []string
	for _, f := range found {
		if f.Check == "ready" {
			ready = append(ready, f.Problem)
		}
	}
	if all := strings.Join(ready, "\n"); len(ready) != 2 || !strings.Contains(ready[0], "waiting to form or join the ensemble: for server 2") ||
		!strings.Contains(ready[1], "formed fails: for server 2") || !strings.Contains(all, "for server 3") {
		t.Errorf("got %q, want that servers 2 and 3 are waited for, and that the check fails", all)
	}
}
