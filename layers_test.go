package zklite_test

import (
	"encoding/json"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/zk-lite/zk-lite"

// layers is the table of docs/reference/packages.md: which packages of ours each package
// may import, and why not more. A pattern that ends in /... covers that package and all below
// it that have no row of their own.
//
// The layers order the rows: an import points to a package with a lower number. Packages of the
// same row may import each other, since Go forbids cycles among them.
var layers = []struct {
	layer int // above those of all that it imports
	pkg   string
	may   []string
	why   string
}{
	{0, "znode", nil, "the data model depends on nothing, so that it can be tested alone"},
	{0, "internal/jute", nil, "an encoding knows nothing of what it encodes"},
	{0, "internal/testkit/...", []string{"internal/testkit/..."}, "kits for tests know no package of the product"},
	{0, "internal/memberdata", nil, "reads a text; knows no tree and no check"},
	{0, "internal/rawconn", nil, "reads and writes bytes, and interprets none"},
	{1, "internal/tlsfiles", []string{"internal/follow"}, "keys and certificates; knows no server and no client"},
	{1, "internal/tlsport", []string{"internal/rawconn"}, "TLS on a listener; knows no protocol above it"},
	{0, "internal/supervise", nil, "runs commands; knows nothing of their purpose"},
	{0, "internal/durable", nil, "writes files; knows nothing of their content"},
	{0, "internal/digestmd5", nil, "a SASL mechanism; knows no users"},
	{0, "internal/gssapi", nil, "a SASL mechanism; knows nothing of how contexts are made"},
	{1, "internal/kerberos", []string{"internal/gssapi"}, "Kerberos tickets and keys; knows no protocol"},
	{0, "internal/jaas", nil, "reads a syntax, and knows no module"},
	{0, "internal/follow", nil, "files that change; knows nothing of their content"},
	{0, "internal/crash", nil, "ends the process after a panic; knows no lock"},
	{0, "internal/histogram", nil, "counts durations; reads no clock"},
	{0, "internal/process", nil, "measures the process; knows nothing of its work"},
	{0, "internal/sdnotify", nil, "sends messages to the service manager, and knows no server"},
	{0, "internal/repeats", nil, "selects messages to leave out of a log; knows nothing of their content"},
	{0, "internal/fifo", nil, "a queue of any type"},
	{0, "internal/fair", nil, "an order of those who wait; knows no clients and no requests"},
	{0, "internal/journal", nil, "keeps records of any type"},
	{0, "internal/structure", nil, "reads source code, and runs none of it"},
	{0, "docs", nil, "the pages, without code"},
	{0, "internal/site", nil, "makes web pages of Markdown; knows no server and no page"},
	{0, "internal/fault", nil, "deliberate faults, for builds that show that tests notice"},
	{1, "session", []string{"znode", "internal/fault"}, "the tables do not know each other"},
	{3, "watch", []string{"znode"}, "the tables do not know each other"},
	{3, "internal/curator", []string{"znode"}, "names of queues; its users read the tree and wait"},
	{3, "internal/wire", []string{"znode", "internal/jute"}, "messages only: it serves server, client and tools"},
	{1, "consensus/state/backup", []string{"znode"}, "turns trees into a tree, and knows no log"},
	{2, "migration/replica", []string{"znode", "session", "internal/jute"}, "ZooKeeper's state and its encoding; knows no file and no connection"},
	{3, "migration/datadir", []string{"migration/replica", "znode", "session", "internal/jute", "internal/durable"}, "ZooKeeper's files; knows no connection and no log of ours"},
	{3, "consensus/state", []string{"znode", "session", "consensus/state/backup", "internal/fault", "internal/jute", "migration/replica"}, "the state machine is pure: no raft, no network"},
	{4, "migration/fence", []string{"internal/durable", "migration/datadir", "migration/replica", "znode"}, "what fenced servers prove; knows no connection, and decides no take-over"},
	{4, "migration/seed", []string{"consensus/state", "internal/durable", "migration/replica", "session", "znode"}, "the state that an ensemble is founded with; knows neither ZooKeeper's files nor servers"},
	{3, "migration/learner", []string{"migration/replica", "session", "znode", "internal/digestmd5", "internal/fifo", "internal/jute"}, "speaks to a ZooKeeper leader; knows no log and no tree of ours"},
	{4, "consensus/raftlog/...", []string{"consensus/raftlog", "internal/histogram", "internal/repeats"}, "a log store knows no state"},
	{4, "consensus/transport/mux", []string{"internal/repeats"}, "carries connections, and reads nothing on them but the hello"},
	{4, "consensus/transport/appendrpc", nil, "encodes one message, on its caller's connections"},
	{5, "consensus/transport", []string{"consensus/transport/mux", "consensus/transport/appendrpc", "internal/fault", "internal/repeats"}, "a transport knows no state"},
	{4, "consensus/leadership", []string{"consensus/state"}, "keeps who leads; the node finds it out"},
	{4, "consensus/selfcheck", []string{"consensus/state", "internal/crash"}, "compares servers; the node asks and halts them"},
	{4, "consensus/raftlogger", []string{"internal/repeats"}, "converts log lines"},
	{4, "consensus/peerkeys", []string{"consensus/state", "internal/durable", "internal/tlsport"}, "binds keys to servers; its callers decide membership"},
	{5, "migration/inspect", []string{"consensus/raftlog", "consensus/state", "migration/datadir", "migration/replica", "znode"}, "prints files; changes none, and asks no server"},
	{5, "consensus/storage", []string{"internal/durable", "consensus/raftlog", "consensus/raftlogger", "consensus/state", "internal/fault", "internal/repeats", "consensus/selfcheck"}, "files; knows nothing of their content"},
	{5, "consensus/forward", []string{"consensus/state", "internal/fair", "internal/crash", "internal/histogram", "internal/repeats", "znode", "consensus/leadership"}, "raft and the network come in as interfaces"},
	{6, "consensus/membership", []string{"consensus/selfcheck", "consensus/peerkeys", "consensus/state", "consensus/storage", "consensus/transport", "consensus/transport/mux", "znode", "consensus/leadership", "consensus/forward"}, "changes of the ensemble; leadership and connections are below"},
	{7, "consensus/recovery", []string{"consensus/membership", "consensus/state", "consensus/storage", "consensus/transport", "znode"}, "works on files while no server runs"},
	{8, "consensus", []string{"consensus/selfcheck", "consensus/peerkeys", "consensus/state", "consensus/forward", "consensus/membership", "consensus/transport", "consensus/transport/mux", "consensus/raftlogger", "consensus/storage", "internal/crash", "internal/histogram", "internal/repeats", "session", "znode", "consensus/leadership", "consensus/founding", "migration/seed"}, "agreement knows no clients"},
	{4, "client/...", []string{"internal/digestmd5", "internal/fifo", "internal/wire", "internal/jute", "internal/tlsfiles", "znode", "client/..."}, "the client is a library of its own"},
	{7, "consensus/founding", []string{"migration/seed", "consensus/membership", "consensus/peerkeys", "consensus/state", "consensus/storage", "consensus/transport", "consensus/transport/mux", "internal/durable"}, "the first start; changes of an ensemble that exists are membership's"},
	{9, "server/changes", []string{"internal/fault", "watch", "znode"}, "the record of changes; the server applies them"},
	{9, "server/audit", []string{"consensus/state", "znode"}, "writes lines about requests; the request path passes it all facts"},
	{9, "server/auth", []string{"internal/follow", "znode"}, "authenticates clients; ACLs decide what they may do"},
	{9, "server/backup", []string{"consensus", "consensus/forward", "consensus/membership", "consensus/state", "consensus/state/backup", "internal/durable", "internal/supervise", "znode"}, "takes backups and sends them into the log; the state machine restores them"},
	{9, "server/insight", []string{"consensus", "consensus/forward", "consensus/state", "internal/journal", "internal/process", "internal/repeats", "session", "znode"}, "keeps measurements of other packages"},
	{10, "server", []string{"consensus", "consensus/state", "server/auth", "server/changes", "server/backup", "server/insight", "session", "watch", "znode", "internal/fair", "internal/fault", "internal/fifo", "internal/repeats", "consensus/forward"}, "the request path knows no protocol"},
	{11, "migration/mirror", []string{"consensus", "consensus/forward", "consensus/state", "internal/fifo", "internal/histogram", "internal/jute", "internal/repeats", "internal/wire", "migration/fence", "migration/learner", "migration/replica", "migration/seed", "server", "znode"}, "brings what the learner hears into the log; the state machine applies it"},
	{11, "api/metrics", []string{"internal/histogram", "internal/journal", "server", "watch", "znode", "consensus"}, "the table of metrics; other packages count"},
	{0, "api/body", nil, "types of the contract, for both sides: it knows neither"},
	{12, "api/rest", []string{"api/body", "api/metrics", "internal/histogram", "internal/tlsport", "server", "server/audit", "server/auth", "server/changes", "server/insight", "consensus/state", "session", "watch", "znode", "consensus"}, "the shared part of all operations; it has none of its own"},
	{13, "api/data", []string{"api/body", "api/rest", "server", "server/changes", "consensus/state", "znode"}, "the operations' packages do not know each other"},
	{13, "api/coordination", []string{"api/body", "api/rest", "internal/curator", "internal/memberdata", "server", "server/changes", "consensus/state", "znode"}, "the operations' packages do not know each other"},
	{13, "api/admin", []string{"api/body", "api/rest", "api/metrics", "internal/process", "server", "server/backup", "server/insight", "consensus/state", "migration/fence", "migration/mirror", "session", "watch", "znode", "consensus", "consensus/membership"}, "the operations' packages do not know each other"},
	{13, "api/ui", []string{"api/rest"}, "files of a page, which is a client like any other"},
	{12, "api/dns", []string{"internal/memberdata", "internal/process", "server", "znode"}, "a server for clients of its own; knows no other"},
	{14, "api", []string{"api/rest", "api/ui", "api/data", "api/coordination", "api/admin", "internal/crash", "internal/repeats", "server", "server/insight", "consensus/membership", "internal/process"}, "puts the operations together"},
	{12, "api/zk/...", []string{"server", "server/audit", "server/auth", "server/changes", "server/insight", "consensus", "consensus/state", "session", "watch", "znode", "internal/wire", "internal/jute", "internal/crash", "internal/histogram", "internal/repeats", "internal/rawconn", "internal/tlsport", "api/metrics", "api/zk/...", "consensus/forward", "internal/process"}, "the two servers for clients do not know each other"},
	{5, "recipes", []string{"client", "internal/curator", "internal/memberdata", "znode"}, "the recipes are built on the client alone"},
	{18, "recipes/internal/zktest", []string{"client", "zklitetest", "internal/testkit/..."}, "starts the servers for tests of the recipes"},
	{6, "lab/ensemble", []string{"lab/election", "lab/sim", "lab/trace", "client", "recipes", "internal/wire", "internal/jute", "znode"}, "the one part of the lab that meets real servers"},
	{0, "lab/...", []string{"lab/..."}, "a step of the simulator is a pure function of a state; the product's state is changed in place"},
	{8, "cmd/zk-lite/cli", []string{"api/body", "client", "consensus/state/backup", "internal/supervise", "recipes", "znode", "cmd/zk-lite/cli/..."}, "the commands are clients like any other: no server runs in them"},
	{6, "cmd/zk-lite/cli/authority", nil, "makes certificates, and knows no server"},
	{6, "cmd/zk-lite/cli/manpage", nil, "writes the commands' own descriptions, and knows no command"},
	{6, "cmd/zk-lite/cli/subtree", []string{"client", "znode"}, "knows no command line"},
	{7, "cmd/zk-lite/cli/locate", []string{"api/body", "cmd/zk-lite/cli/httpapi"}, "asks one server for the others; knows no command"},
	{6, "cmd/zk-lite/cli/httpapi", []string{"api/body"}, "a client of the HTTP API; knows no resource, and of the bodies only the problem"},
	{6, "cmd/zk-lite/cli/backupfile", []string{"consensus/state", "consensus/state/backup"}, "restores backups in memory, and knows no server"},
	{6, "cmd/zk-lite/cli/fourletter", nil, "sends four-letter words, without a session"},
	{6, "cmd/zk-lite/cli/lineedit", nil, "reads lines, and knows no commands"},
	{4, "bench/load", []string{"internal/wire", "internal/jute", "internal/rawconn", "internal/tlsfiles", "znode"}, "a generator of load is a client that costs as little as possible"},
	{4, "bench/noop", []string{"internal/wire", "internal/rawconn", "znode"}, "a server that does no work needs no package that does any"},
	{5, "bench/httpload", []string{"bench/load"}, "the same for HTTP, where there are no frames to share"},
	{5, "bench/report", []string{"bench/load"}, "shows results, and measures nothing"},
	{6, "bench/benchcli", []string{"bench/load", "bench/httpload", "bench/report", "bench/noop"}, "the flags of the load generators"},
	{6, "bench/system", []string{"bench/load", "bench/report", "internal/testkit/network", "internal/testkit/ports", "internal/testkit/process", "internal/testkit/slowdisk", "internal/testkit/zookeeper"}, "treats all servers alike, as processes"},
	{8, "bench", []string{"bench/compare", "bench/failover", "bench/growth", "bench/overload", "bench/report", "bench/scale", "bench/system"}, "the program: suites and their defaults"},
	{7, "bench/compare", []string{"bench/load", "bench/httpload", "bench/report", "bench/system", "internal/testkit/process"}, "tables of results"},
	{7, "bench/failover", []string{"bench/load", "client", "bench/report", "bench/system", "internal/testkit/network", "internal/testkit/slowdisk", "internal/testkit/wait"}, "kills the leaders of real server processes"},
	{7, "bench/overload", []string{"bench/load", "bench/report", "bench/system"}, "puts too much on real server processes"},
	{7, "bench/scale", []string{"bench/load", "bench/report", "bench/system", "internal/sizing"}, "costs that are measured, and arithmetic with them"},
	{7, "bench/growth", []string{"bench/httpload", "bench/load", "bench/report", "bench/system", "client", "internal/testkit/process"}, "curves of results"},
	{15, "app/config", []string{"api/dns", "api/rest", "api/zk", "consensus", "consensus/peerkeys", "consensus/state", "consensus/storage", "internal/memberdata", "internal/tlsfiles", "server", "server/audit", "server/auth", "server/backup", "znode"}, "a setting is a field of the Config of the package that obeys it; this package reads settings into them, and starts nothing"},
	{3, "internal/sizing", []string{"znode"}, "arithmetic with measured figures; znode has the sizes that the server counts"},
	{16, "app", []string{"migration/seed", "consensus/peerkeys", "consensus/membership", "consensus/recovery", "api", "api/admin", "api/dns", "api/metrics", "api/zk", "server", "server/audit", "server/auth", "server/backup", "server/changes", "consensus", "consensus/storage", "consensus/state", "app/config", "internal/digestmd5", "internal/follow", "internal/gssapi", "internal/jaas", "internal/kerberos", "internal/process", "internal/rawconn", "internal/repeats", "internal/tlsfiles", "internal/tlsport", "internal/sdnotify", "consensus/founding", "migration/learner", "migration/mirror", "api/body"}, "puts one server together"},
	{17, "app/doctor", []string{"app", "app/config", "internal/process", "internal/tlsfiles", "consensus/storage", "api/body"}, "checks a server from outside; runs none"},
	{18, "cmd/zk-lite", []string{"..."}, "the program"},
	{19, "integration/...", []string{"..."}, "tests of the whole"},
	{6, "examples/...", []string{"client", "recipes", "znode"}, "imports only what programs of other modules can import"},
	{18, "examples/internal/testserver", []string{"client", "app/config", "app", "zklitetest", "internal/testkit/..."}, "starts the servers for tests of the examples"},
	{17, "zklitetest", []string{"app", "app/config", "internal/testkit/ports"}, "starts servers in the tests of other programs, and knows no client"},
}

// raftImporters are the only packages that may touch hashicorp/raft.
var raftImporters = []string{"consensus", "consensus/transport", "consensus/transport/appendrpc", "consensus/raftlog", "consensus/raftlog/faultfs", "consensus/raftlogger", "consensus/recovery", "consensus/storage", "consensus/membership", "consensus/founding"}

// znodeForbidden are imports that the tree must not need: its callers pass it decisions.
var znodeForbidden = []string{"time", "math/rand", "math/rand/v2", "crypto/rand", "net", "log", "log/slog", "os", "sync"}

// unsafeImporters are the packages whose code the compiler does not check in full, each with the reason.
var unsafeImporters = map[string]string{
	"api/rest":                  "what the kernel reports of a connection; the names of types in errors about JSON",
	"consensus/raftlog":         "aligned memory for direct writes",
	"consensus/state":           "strings that share the memory of the entry they were read from",
	"integration/cluster":       "a clock in shared memory",
	"internal/testkit/network":  "a network device of the kernel's",
	"internal/process":          "the CPU time of the process, without an allocation",
	"internal/testkit/slowdisk": "a seccomp filter, and the kernel's reports from it",
	"internal/rawconn":          "reads and writes of sockets that Go's scheduler does not notice",
	"lab/sim":                   "compares the states of processes, which are of any type",
	"znode":                     "znodes packed into one block of memory",
}

type goPackage struct {
	ImportPath string
	Imports    []string
}

func TestLayers_ImportsFollowTheTable(t *testing.T) {
	pkgs := list(t)
	used := map[string]bool{}
	for _, p := range pkgs {
		name := strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, module), "/")
		row := rowOf(name)
		if row < 0 {
			t.Errorf("package %q is not in the table of layers: add a row with what it may import, and why", name)
			continue
		}
		used[layers[row].pkg] = true
		for _, imp := range p.Imports {
			own, ok := strings.CutPrefix(imp, module+"/")
			if to := rowOf(own); ok && to >= 0 && to != row && layers[to].layer >= layers[row].layer {
				t.Errorf("%s (layer %d) imports %s (layer %d): an import must point to a lower layer",
					name, layers[row].layer, own, layers[to].layer)
			}
			switch {
			case ok && !allowed(layers[row].may, own):
				t.Errorf("%s imports %s: %s", name, own, layers[row].why)
			case strings.HasPrefix(imp, "github.com/hashicorp/raft") && !slices.Contains(raftImporters, name):
				t.Errorf("%s imports %s: only package consensus and those below it touch raft", name, imp)
			case (imp == "unsafe" || imp == "reflect") && unsafeImporters[name] == "":
				t.Errorf("%s imports %s: add it to unsafeImporters with the reason, or do without", name, imp)
			case name == "znode" && slices.Contains(znodeForbidden, imp):
				t.Errorf("znode imports %s: the tree makes no decisions of its own and holds no lock", imp)
			}
		}
	}
	for _, l := range layers {
		if !used[l.pkg] {
			t.Errorf("the table lists %q, which does not exist", l.pkg)
		}
	}
}

// rowOf finds the most specific row for a package.
func rowOf(name string) int {
	best := -1
	for i, l := range layers {
		if matches(l.pkg, name) && (best < 0 || len(l.pkg) > len(layers[best].pkg)) {
			best = i
		}
	}
	return best
}

func allowed(may []string, name string) bool {
	return slices.ContainsFunc(may, func(pattern string) bool { return matches(pattern, name) })
}

func matches(pattern, name string) bool {
	prefix, below := strings.CutSuffix(pattern, "...")
	if !below {
		return pattern == name
	}
	return strings.HasPrefix(name, prefix) || name == strings.TrimSuffix(prefix, "/")
}

func list(t *testing.T) []goPackage {
	t.Helper()
	out, err := exec.Command("go", "list", "-json=ImportPath,Imports", "./...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var pkgs []goPackage
	for dec := json.NewDecoder(strings.NewReader(string(out))); dec.More(); {
		var p goPackage
		if err := dec.Decode(&p); err != nil {
			t.Fatal(err)
		}
		if p.ImportPath != module {
			pkgs = append(pkgs, p)
		}
	}
	return pkgs
}
