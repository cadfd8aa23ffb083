//go:build interop

package interop_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/zk-lite/zk-lite/integration/cluster"
)

// zkCLI is ZooKeeper's command line client, as Debian installs it.
const zkCLI = "/usr/share/zookeeper/bin/zkCli.sh"

// cliStep is a command and its expected output.
type cliStep struct {
	command string
	// want matches the output until the next command; empty: none.
	want string
	// event matches the output of a watch, at any time after the command.
	event string
}

// statLines match what the -s options print.
func statLines(version, cversion, length, children string) string {
	return fmt.Sprintf(`cZxid = 0x[0-9a-f]+\nctime = \w+ \w+ \d\d .*\nmZxid = 0x[0-9a-f]+\nmtime = .*\n`+
		`pZxid = 0x[0-9a-f]+\ncversion = %s\ndataVersion = %s\naclVersion = \d+\n`+
		`ephemeralOwner = 0x[0-9a-f]+\ndataLength = %s\nnumChildren = %s\n`,
		cversion, version, length, children)
}

func cliSteps(e *cluster.Ensemble) []cliStep {
	return []cliStep{
		{command: "create /cli hello", want: `^Created /cli\n`},
		{command: "create /cli hello", want: `^Node already exists: /cli\n`},
		{command: "create /cli/none/x", want: `^Node does not exist: /cli/none/x\n`},
		{command: "create -e /cli/e x", want: `^Created /cli/e\n`},
		{command: "create /cli/e/x", want: `^Ephemerals cannot have children: /cli/e/x\n`},
		{command: "create -s /cli/s- y", want: `^Created /cli/s-0000000001\n`},
		{command: "create -s -e /cli/se- y", want: `^Created /cli/se-0000000002\n`},
		{command: "create -c /cli/container", want: `^Created /cli/container\n`},
		{command: "create -t 600000 /cli/ttl z", want: `^Created /cli/ttl\n`},
		{command: "create -s -t 600000 /cli/ttl- z", want: `^Created /cli/ttl-0000000005\n`},
		{command: "get /cli", want: `^hello\n$`},
		{command: "get -s /cli", want: `^hello\n` + statLines("0", "6", "5", "6")},
		{command: "stat /cli/ttl", want: statLines("0", "0", "1", "0")},
		{command: "set -v 0 -s /cli world", want: `^` + statLines("1", "6", "5", "6")},
		{command: "set -v 0 /cli wrong", want: `^version No is not valid : /cli\n`},
		{command: "get -w /cli", want: `^world\n`,
			event: `WatchedEvent state:SyncConnected type:NodeDataChanged path:/cli\n`},
		{command: "set /cli again", want: `^$`},
		{command: "ls -w /cli", want: `^\[container, e, s-0000000001, se-0000000002, ttl, ttl-0000000005\]\n`,
			event: `WatchedEvent state:SyncConnected type:NodeChildrenChanged path:/cli\n`},
		{command: "create /cli/last", want: `Created /cli/last\n`},
		{command: "ls -s /cli", want: `^\[container, e, last,.*\]\n` + statLines("2", "7", "5", "7")},
		{command: "ls /none", want: `^Node does not exist: /none\n`},
		{command: "create /cli/last/deep", want: `^Created /cli/last/deep\n`},
		{command: "ls -R /cli", want: `^/cli\n/cli/container\n/cli/e\n/cli/last\n/cli/s-0000000001\n` +
			`/cli/se-0000000002\n/cli/ttl\n/cli/ttl-0000000005\n/cli/last/deep\n`},
		{command: "stat -w /cli/last/deep", want: statLines("0", "0", "0", "0"),
			event: `WatchedEvent state:SyncConnected type:NodeDeleted path:/cli/last/deep\n`},
		{command: "delete /cli/last", want: `^Node not empty: /cli/last\n`},
		{command: "delete -v 9 /cli/last/deep", want: `^version No is not valid : /cli/last/deep\n`},
		{command: "delete -v 0 /cli/last/deep", want: `^$`},
		{command: "getEphemerals", want: `^\[/cli/(e|se-0000000002), /cli/(e|se-0000000002)\]\n`},
		{command: "getEphemerals /cli/e", want: `^\[/cli/e\]\n`},
		{command: "getAllChildrenNumber /cli", want: `^7\n`},
		{command: "getAcl -s /cli", want: `^'world,'anyone\n: cdrwa\n` + statLines("2", "7", "5", "7")},
		{command: "addauth digest user:secret"},
		{command: "whoami", want: `^Auth scheme: User\n(.*\n)*digest: user\n`},
		{command: "create /cli/acl d auth:user:cdrwa", want: `^Created /cli/acl\n`},
		{command: "getAcl /cli/acl", want: `^'digest,'user:\S{28}\n: cdrwa\n`},
		{command: "setAcl -v 0 -s /cli/acl world:anyone:r,auth:user:cdrwa", want: `^` +
			strings.Replace(statLines("0", "0", "1", "0"), `aclVersion = \d+`, `aclVersion = 1`, 1)},
		{command: "setAcl -v 0 /cli/acl world:anyone:r", want: `^version No is not valid : /cli/acl\n`},
		{command: "getAcl /cli/acl", want: `^'world,'anyone\n: r\n'digest,'user:\S{28}\n: cdrwa\n`},
		{command: "setAcl /cli/acl what:ever:r", want: `^Acl is not valid : /cli/acl\n`},
		{command: "sync /cli", want: `^Sync is OK\n`},
		{command: "setquota -n 20 /cli", want: `^$`},
		{command: "setquota -B 1000 /cli", want: `^$`},
		{command: "listquota /cli", want: `^absolute path is /zookeeper/quota/cli/zookeeper_limits\n` +
			`Output quota for /cli count=20,bytes=-1.*byteHardLimit=1000;countHardLimit=-1\n` +
			`Output stat for /cli count=9,bytes=\d+\n`},
		{command: "delquota -n /cli", want: `^$`},
		{command: "listquota /cli", want: `Output quota for /cli count=-1,`},
		{command: "delquota /cli", want: `^$`},
		{command: "listquota /cli", want: `quota for /cli does not exist.\n`},
		{command: "addWatch -m PERSISTENT /cli/last", want: `^$`,
			event: `type:NodeDataChanged path:/cli/last\n(.*\n)*.*type:NodeDataChanged path:/cli/last\n`},
		{command: "set /cli/last 1"},
		{command: "set /cli/last 2", event: `type:PersistentWatchRemoved path:/cli/last\n`},
		{command: "removewatches /cli/last"},
		{command: "addWatch -m PERSISTENT_RECURSIVE /cli/last", event: `type:NodeCreated path:/cli/last/a\n(.*\n)*` +
			`.*type:NodeCreated path:/cli/last/a/b\n`},
		{command: "create /cli/last/a", want: `Created /cli/last/a\n`},
		{command: "create /cli/last/a/b", want: `Created /cli/last/a/b\n`},
		{command: "removewatches /cli/none", want: `^KeeperErrorCode = No such watcher for /cli/none\n`},
		{command: "version", want: `^ZooKeeper CLI version: `},
		{command: "config", want: `(?s)^server.1=127.0.0.1:.*server.2=.*server.3=.*version=`},
		{command: "config -c", want: `^[0-9a-f]+ .*,.*,.*\n`},
		{command: "reconfig -remove 1", want: `^KeeperErrorCode = Reconfig is disabled\n`},
		{command: "history", want: `\d+ - config -c\n(.*\n)*\d+ - reconfig -remove 1\n`},
		{command: "nosuch", want: `Command not found nosuch`},
		{command: "deleteall /cli/last"},
		{command: "ls /cli/last", want: `Node does not exist: /cli/last\n`},
		{command: "connect " + e.Server(3).Addr(), event: `state:Closed type:None(.*\n)*.*state:SyncConnected type:None`},
		{command: "sync /", want: `Sync is OK\n`},
		{command: "ls /cli", want: `^\[acl, container, s-0000000001, ttl, ttl-0000000005\]\n`},
		{command: "getEphemerals", want: `^\[\]\n`},
		{command: "deleteall /cli"},
		{command: "ls /", want: `^\[zookeeper\]\n`},
	}
}

// TestInterop_ZkCLI types every command of zkCli.sh. After each, it asks for a missing znode, whose name in the error
// marks the end of the command's output.
func TestInterop_ZkCLI(t *testing.T) {
	cluster.NeedTool(t, zkCLI, "zookeeper default-jdk-headless")
	e := ensemble(t)
	steps := cliSteps(e)
	var script strings.Builder
	for i, s := range steps {
		fmt.Fprintf(&script, "%s\nstat /marker-%d\n", s.command, i)
	}
	script.WriteString("quit\n")
	c := cluster.Command(t.Context(), t.TempDir(), zkCLI, "-waitforconnection", "-server", e.Server(2).Addr())
	c.Stdin = strings.NewReader(script.String())
	output, err := c.CombinedOutput()
	text := string(output)
	// It ends with 1 if any command has failed, as some should.
	if c.ProcessState.ExitCode() != 1 {
		t.Errorf("zkCli.sh: %v", err)
	}
	for i, s := range steps {
		printed, rest, ok := strings.Cut(text, fmt.Sprintf("Node does not exist: /marker-%d\n", i))
		if !ok {
			t.Fatalf("zkCli.sh did not come to the end of %q: %s", s.command, text)
		}
		if i == 0 {
			_, printed, _ = strings.Cut(printed, "JLine support is disabled\n")
		}
		t.Run(s.command, func(t *testing.T) { checkCLI(t, s, printed, text) })
		text = rest
	}
	t.Run("one command", func(t *testing.T) {
		out := cluster.Execute(t, t.TempDir(), zkCLI, "-server", e.ConnectString(), "get", "/zookeeper/config")
		for i, s := range e.Servers() { // whose zoo.cfgs have no client parts
			if line := fmt.Sprintf("participant;%s\n", s.Addr()); !strings.Contains(out, line) {
				t.Errorf("the configuration of server %d is not there: %s", i+1, out)
			}
		}
	})
	atRest(t, e)
}

// cliEvent matches an event as zkCli.sh prints it, in two parts, each anywhere in its output.
var cliEvent = regexp.MustCompile(`\nWATCHER::\n|\nWatchedEvent .*\n`)

func checkCLI(t *testing.T, s cliStep, printed, later string) {
	t.Helper()
	printed = cliEvent.ReplaceAllString(printed, "")
	if s.want != "" && !regexp.MustCompile(s.want).MatchString(printed) {
		t.Errorf("printed %q, want %s", printed, s.want)
	}
	if s.want == "" && strings.Contains(printed, "Error") {
		t.Errorf("printed %q", printed)
	}
	if s.event != "" && !regexp.MustCompile(s.event).MatchString(later) {
		t.Errorf("no event %s in %q", s.event, later)
	}
}
