package config

import (
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/zk-lite/zk-lite/consensus/storage"
)

var update = flag.Bool("update", false, "rewrite the golden files and docs/reference/settings.md")

// load runs Load on a zoo.cfg's text (none when empty), an environment and a
// command line, in a directory of its own.
func load(t *testing.T, cfg string, env map[string]string, args ...string) (Settings, []Notice, error) {
	t.Helper()
	fs := pflag.NewFlagSet("server", pflag.ContinueOnError)
	BindFlags(fs)
	if cfg != "" {
		t.Chdir(t.TempDir())
		if err := os.WriteFile("zoo.cfg", []byte(cfg), 0o600); err != nil {
			t.Fatal(err)
		}
		args = append([]string{"--config", "zoo.cfg"}, args...)
	}
	if err := fs.Parse(args); err != nil {
		t.Fatal(err)
	}
	return Load(fs, func(name string) (string, bool) {
		v, ok := env[name]
		return v, ok
	})
}

// TestLoad_Golden reads configurations as they are found in the wild and
// compares every resolved setting and every notice with the golden file.
func TestLoad_Golden(t *testing.T) {
	files, err := filepath.Glob("testdata/*.cfg")
	if err != nil || len(files) < 5 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	members, err := os.ReadFile("testdata/dynamic.cfg.members")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			golden, err := filepath.Abs(strings.TrimSuffix(file, ".cfg") + ".golden")
			if err != nil {
				t.Fatal(err)
			}
			tmp := t.TempDir()
			// A myid of this machine must not play a part.
			cfg := regexp.MustCompile(`(?m)^(dataDir=)/`).ReplaceAllString(string(text), "${1}"+tmp+"/")
			cfg = strings.ReplaceAll(cfg, "testdata/dynamic", tmp+"/dynamic")
			if err := os.WriteFile(tmp+"/dynamic.cfg.members", members, 0o600); err != nil {
				t.Fatal(err)
			}
			env := map[string]string{}
			if strings.Contains(cfg, "server.") || strings.Contains(cfg, "dynamicConfigFile") {
				env["ZK_LITE_MYID"] = "2"
			}
			s, notices, err := load(t, cfg, env)
			if err != nil {
				t.Fatal(err)
			}
			env["ZK_LITE_CONFIG"] = "zoo.cfg"
			values, err := Explain(nil, func(name string) (string, bool) { v, ok := env[name]; return v, ok })
			if err != nil {
				t.Fatal(err)
			}
			got := strings.ReplaceAll(dump(values, s, notices), tmp, "")
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

// dump is every setting by its name, whatever fields hold it, then what follows from several of them.
func dump(values []Value, s Settings, notices []Notice) string {
	var b strings.Builder
	for _, v := range values {
		fmt.Fprintf(&b, "%s = %s\n", v.Name, v.Text)
	}
	fmt.Fprintf(&b, "\nConfigFile = %s\nStandalone = %v\nWanted() = %v\nAdminTLS() = %v\nPeerTLS.Files() = %v\n",
		s.ConfigFile, s.Standalone, s.Wanted(), s.AdminTLS(), s.PeerTLS.Files())
	fmt.Fprintf(&b, "Digest = %v\nAuthSchemes = %v\nEnsembleAuth = %v\nSupers = %v\n",
		s.Auth.Digest, s.Auth.Schemes, s.Auth.Ensemble, s.SASL.Supers)
	fmt.Fprintf(&b, "MinVersion = %#x\nMaxVersion = %#x\nSuites = %v\nCheckClientHost = %v\nHandshakes = %d\n",
		s.TLS.MinVersion, s.TLS.MaxVersion, s.TLS.Suites, s.TLS.CheckClientHost, s.TLS.Handshakes)
	fmt.Fprintf(&b, "ClientListen() = %s\nAdminListen() = %s\nLeaderContactLimit() = %v\n\n",
		s.ClientListen(), s.AdminListen(), s.LeaderContactLimit())
	for _, n := range notices {
		fmt.Fprintln(&b, n)
	}
	return b.String()
}

func TestLoad_WithoutAnything(t *testing.T) {
	s, notices, err := load(t, "", nil)
	if err != nil || len(notices) != 0 {
		t.Fatalf("got notices %v, error %v, want neither", notices, err)
	}
	if s.DataDir != "./zk-lite-data" || s.DataLogDir != s.DataDir || s.ClientListen() != ":2181" ||
		s.AdminListen() != "127.0.0.1:8080" || !s.Standalone || s.MyID != 1 || !s.Server.ExtendedTypes ||
		s.Server.MinSessionTimeout != 4*time.Second || s.Server.MaxSessionTimeout != 40*time.Second {
		t.Errorf("got %+v, want the defaults", s)
	}
}

// TestLoad_Precedence gives one setting to all sources in turn.
func TestLoad_Precedence(t *testing.T) {
	file := "dataDir=data\ntickTime=100\nserver.1=f:1:2\nadmin.enableServer=true\n"
	env := map[string]string{"ZK_LITE_TICK_TIME": "200", "ZK_LITE_SERVERS": "1=e:1:2 server.2=e2:1:2",
		"ZK_LITE_ADMIN_ENABLE_SERVER": "False", "ZK_LITE_MYID": "1", "ZK_LITE_LOG_STORE": ""}
	flags := []string{"--tick-time=300ms", "--server", "1=g:1:2;7", "--server=2=h:1:2",
		"--server=server.3=i:1:2", "--admin-enable-server", "--myid=2"}
	tests := []struct {
		name  string
		cfg   string
		env   map[string]string
		args  []string
		tick  time.Duration
		hosts string
		admin bool
		myid  int
	}{
		{"default", "", nil, nil, 2 * time.Second, "", true, 1},
		{"file", file, nil, nil, 100 * time.Millisecond, "f", true, 1},
		{"environment", file, env, nil, 200 * time.Millisecond, "e e2", false, 1},
		{"flag", file, env, flags, 300 * time.Millisecond, "g h i", true, 2},
		{"flag without file", "", env, flags, 300 * time.Millisecond, "g h i", true, 2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, _, err := load(t, tt.cfg, tt.env, tt.args...)
			if err != nil {
				t.Fatal(err)
			}
			var hosts []string
			for _, srv := range s.Servers {
				hosts = append(hosts, srv.Host)
			}
			if s.Server.Tick != tt.tick || strings.Join(hosts, " ") != tt.hosts ||
				s.AdminEnabled != tt.admin || s.MyID != tt.myid || s.Storage.Kind != storage.LogRaftlog {
				t.Errorf("tick %v, hosts %v, admin %v, myid %d", s.Server.Tick, hosts, s.AdminEnabled, s.MyID)
			}
		})
	}
}

// TestLoad_EverySettingFromEverySource sets each row of the table by its key,
// its variable and its flag, and finds it changed.
func TestLoad_EverySettingFromEverySource(t *testing.T) {
	for i, st := range table(new(Settings)) {
		if st.kind == kindServers || st.kind == kindFile || st.kind == kindRetired || st.flagName() == "data-dir" {
			continue // TestLoad_Precedence and all others have them
		}
		if st.key == "enforce.auth.enabled" || st.key == "sessionRequireClientSASLAuth" {
			continue // TestLoad_Auth, TestLoad_SASL
		}
		value := map[kind]string{kindText: "x", kindSecret: "x", kindPort: "4321", kindYes: "yes", kindFloat: "0.5", kindWordList: "x509", kindIdentities: "token:ops", kindHost: "::1", kindBool: "true", kindInt: "4321", kindBytes: "3MiB",
			kindMillis: "23456", kindWords: "wchp", kindRole: "observer", kindLevel: "debug",
			kindServer: "7", kindOrigins: "https://example.org", kindHosts: "zk.example.org", kindDigest: "super:Y+4oAfIPWvJrxDGwNmxPgI6ZmOs="}[st.kind]
		switch {
		case st.kind == kindBool && st.def == "true":
			value = "false"
		case st.kind == kindChoice, st.kind == kindFormat:
			value = st.choices[1]
		case st.kind == kindInt && st.max < 4321:
			value = fmt.Sprint(st.max)
		case st.key == "ssl.protocol" || st.key == "ssl.enabledProtocols":
			value = "TLSv1.2"
		case st.key == "DigestAuthenticationProvider.digestAlg":
			value = "sha-256"
		case st.key == "ssl.ciphersuites":
			value = "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"
		}
		const files = "ssl.keyStore.location=k\nssl.trustStore.location=t\nssl.quorum.keyStore.location=k\n" +
			"ssl.quorum.trustStore.location=t\nsecureClientPort=9\nclientPort=8\n" +
			"enforce.auth.enabled=true\nenforce.auth.schemes=ip\n" // without which other keys are refused
		servers := "server.7=a:1:2\nserver.8=b:1:2\n"
		if st.kind == kindRole {
			servers = "server.7=a:1:2:observer\nserver.8=b:1:2\n"
		}
		base := map[string]string{"ZK_LITE_MYID": "7"}
		if st.key == "portUnification" {
			base["ZK_LITE_PEER_TLS"] = "false" // or it is refused
		}
		before, _, err := load(t, "dataDir=d\nserver.8=b:1:2\n"+files, map[string]string{"ZK_LITE_MYID": "8"})
		if err != nil {
			t.Fatal(err)
		}
		want := table(&before)[i].to
		for _, source := range []string{"key", "variable", "flag"} {
			cfg, env, args := "dataDir=d\n"+servers+files, map[string]string{}, []string(nil)
			for k, v := range base {
				env[k] = v
			}
			switch {
			case source == "key" && st.key == "":
				continue
			case source == "key":
				cfg += st.key + "=" + value + "\n"
			case source == "variable":
				env[st.envName()] = value
			default:
				args = []string{"--" + st.flagName() + "=" + value}
			}
			after, _, err := load(t, cfg, env, args...)
			if err != nil {
				t.Errorf("--%s by %s: %v", st.flagName(), source, err)
				continue
			}
			if reflect.DeepEqual(want, table(&after)[i].to) {
				t.Errorf("--%s by %s: has no effect", st.flagName(), source)
			}
		}
	}
}

// TestLoad_Retired: what the last release had is accepted from every source, with a warning that names it.
func TestLoad_Retired(t *testing.T) {
	for _, st := range retiredRows() {
		for name, x := range map[string]struct {
			cfg  string
			env  map[string]string
			args []string
		}{
			"key":      {cfg: st.key + "=false\n"},
			"variable": {env: map[string]string{st.envName(): "false"}},
			"flag":     {args: []string{"--" + st.flagName() + "=false"}},
			"switch":   {args: []string{"--" + st.flagName()}},
		} {
			_, notices, err := load(t, "dataDir=d\n"+x.cfg, x.env, x.args...)
			if err != nil || len(notices) != 1 || notices[0].Key != st.key || notices[0].Level != slog.LevelWarn {
				t.Errorf("%s by %s: %v, %v, want one warning", st.key, name, notices, err)
			}
		}
	}
}

func TestLoad_MyIDFile(t *testing.T) {
	servers := "server.1=a:1:2\nserver.3=c:1:2\nserver.2=b:1:2\n"
	dir := t.TempDir()
	write := func(text string) {
		if err := os.WriteFile(filepath.Join(dir, "myid"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, text := range []string{"3", "3\n", " 3 \r\nmore\n"} {
		write(text)
		s, _, err := load(t, "dataDir="+dir+"\n"+servers, nil)
		if err != nil || s.MyID != 3 || s.Servers[1].ID != 3 || s.Standalone {
			t.Errorf("myid %q: %d, %v", text, s.MyID, err)
		}
	}
	write("-1") // ZooKeeper reads a standalone server's file, and believes anything
	if s, _, err := load(t, "dataDir="+dir, nil); err != nil || s.MyID != 1 {
		t.Errorf("-1 of a standalone server: %d, %v", s.MyID, err)
	}
	if _, _, err := load(t, "dataDir="+dir+"\n"+servers, nil); err == nil || !strings.Contains(err.Error(), "names no server") {
		t.Errorf("-1 in an ensemble: %v", err)
	}
	write("0")
	s, _, err := load(t, "dataDir="+dir+"\nserver.0=a:1:2\nserver.1=b:1:2\nserver.2=c:1:2", nil)
	if own, ok := s.Own(); err != nil || s.MyID != 0 || !ok || own.Host != "a" {
		t.Errorf("server 0: %d, %+v, %v", s.MyID, own, err)
	}
	write("3")
	s, notices, err := load(t, "dataDir="+dir+"\n"+servers, nil, "--myid=2")
	if err != nil || s.MyID != 2 || len(notices) != 1 ||
		!strings.Contains(notices[0].Text, "2 counts, not the 3") {
		t.Errorf("flag against file: %d, %v, %v", s.MyID, notices, err)
	}
	write("replace this text with the instance id (1-255)")
	_, _, err = load(t, "dataDir="+dir+"\n"+servers, nil)
	want := filepath.Join(dir, "myid") + `: "replace this text with the instance id (1-255)" ` +
		`is not a server id; want a number from 0 to 254`
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %v", err, want)
	}
}

// TestLoad_AcceptedAsInZooKeeper: each of these stopped the start, and does not stop ZooKeeper's. One
// of Curator's base classes sets the last, and 64 of its tests failed by it.
func TestLoad_AcceptedAsInZooKeeper(t *testing.T) {
	const digest = "curator-test:zghsj3JfJqK7DbWf0RQ1BgbJH9w="
	tests := []struct {
		line    string
		want    func(*Settings) bool
		warning string // that is given; "": none
	}{
		{"4lw.commands.whitelist=foo, srvr", func(s *Settings) bool {
			return slices.Equal(s.ZooKeeper.Words, []string{"srvr"})
		}, `WARN zoo.cfg:2: 4lw.commands.whitelist: "foo" is no four-letter word and has no effect; ` +
			`want *, or some of ` + strings.Join(fourLetterWords(), ", ")},
		{"jute.maxbuffer=100", func(s *Settings) bool { return s.ZooKeeper.MaxFrame == 100 }, ""},
		{"zookeeper.foo=1", func(*Settings) bool { return true },
			"WARN zoo.cfg:2: zookeeper.foo: unknown key without effect; docs/reference/settings.md lists the known ones"},
		{"zookeeper.snapCont=1", func(s *Settings) bool { return s.Consensus.SnapshotCommands == 100000 },
			"WARN zoo.cfg:2: zookeeper.snapCont: unknown key without effect; did you mean snapCount?"},
		{"snapCount=1", func(s *Settings) bool { return s.Consensus.SnapshotCommands == 2 },
			"WARN zoo.cfg:2: snapCount: 1 counts as 2, the least"},
		{"ssl.keyStore.location=/k\nssl.trustStore.location=/t\nsecureClientPort=2281\nclient.portUnification=true",
			func(s *Settings) bool { return s.ClientPort == NoPort && s.SecureClientPort == 2281 },
			"WARN zoo.cfg:5: client.portUnification: is about clientPort, and there is none: " +
				"secureClientPort takes TLS only"},
		{"sessionRequireClientSASLAuth=true", func(s *Settings) bool { return slices.Equal(s.Auth.Schemes, []string{"sasl"}) },
			"WARN zoo.cfg:2: sessionRequireClientSASLAuth: refuses every client, as there are no users: " +
				"set java.security.auth.login.config"},
		{"superDigest=" + digest, func(s *Settings) bool { return s.Auth.SuperDigest == digest }, ""},
	}
	for _, tt := range tests {
		s, notices, err := load(t, "dataDir=data\n"+tt.line+"\n", nil)
		if err != nil || !tt.want(&s) {
			t.Errorf("%s: got %+v, %v, want it accepted", tt.line, s, err)
		}
		switch {
		case tt.warning == "" && len(notices) == 0:
		case len(notices) == 1 && notices[0].String() == tt.warning:
		default:
			t.Errorf("%s: got %v, want %q", tt.line, notices, tt.warning)
		}
	}
}

// TestLoad_KeysWithoutEffect: what its owner may rely on is a warning of its own, tuning is one line
// for all, and what asks for nothing is silent.
func TestLoad_KeysWithoutEffect(t *testing.T) {
	_, notices, err := load(t, "dataDir=data\nconnectionMaxTokens=5\npreAllocSize=64\nleaderServes=yes\n"+
		"zookeeper.nio.numWorkerThreads=4\nsslQuorum=false\nrequestThrottleLimit=0\nmultiAddress.enabled=true\n"+
		"forceSync=yes\nclientPortListenBacklog=50\nDigestAuthenticationProvider.enabled=true\n", nil)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"WARN zoo.cfg:8: multiAddress.enabled: has no effect: zk-lite uses one address per server",
		"WARN zoo.cfg: preAllocSize, zookeeper.nio.numWorkerThreads: have no effect: zk-lite needs no such tuning " +
			"(docs/reference/settings.md, \"Keys without effect\")",
		"WARN zoo.cfg:10: clientPortListenBacklog: has no effect but to be shown by conf: the operating system's " +
			"limit applies",
	}
	var got []string
	for _, n := range notices {
		got = append(got, n.String())
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestLoad_OneVoterWithObservers: ZooKeeper refuses it unless standaloneEnabled=false, because its one
// server would start alone and follow no leader. Here it is an ensemble, of which the owner is warned.
func TestLoad_OneVoterWithObservers(t *testing.T) {
	s, notices, err := load(t, "dataDir=data\nserver.1=a:1:2\nserver.2=b:1:2:observer\n", nil, "--myid=1")
	if err != nil || s.Standalone {
		t.Errorf("%v, standalone %v", err, s.Standalone)
	}
	const want = "WARN zoo.cfg:3: server.N: with 1 voting server none may fail, whatever the number of observers"
	if len(notices) != 1 || notices[0].String() != want {
		t.Errorf("got %v, want %s", notices, want)
	}
}

// TestLoad_KubernetesServiceVariables: a Service zk-lite-client puts
// ZK_LITE_CLIENT_PORT=tcp://... into every pod of its namespace.
func TestLoad_KubernetesServiceVariables(t *testing.T) {
	s, notices, err := load(t, "", map[string]string{"ZK_LITE_CLIENT_PORT": "tcp://10.0.0.1:2181"})
	if err != nil || s.ClientPort != 2181 || len(notices) != 1 {
		t.Errorf("got port %d, notices %v, error %v, want 2181 and one notice", s.ClientPort, notices, err)
	}
}

func TestLoad_NoFlags(t *testing.T) {
	if _, _, err := Load(nil, func(string) (string, bool) { return "", false }); err != nil {
		t.Error(err)
	}
}

func TestLoad_JoinsAllErrors(t *testing.T) {
	_, _, err := load(t, "tickTime=x\nclientPort=y\n", map[string]string{"ZK_LITE_SNAP_COUNT": "z"})
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok || len(joined.Unwrap()) != 3 {
		t.Fatalf("%v", err)
	}
	var e *Error
	if !errors.As(err, &e) || e.Source != "zoo.cfg:1" || e.Key != "tickTime" {
		t.Errorf("got %+v, want an error of tickTime at zoo.cfg:1", e)
	}
}
