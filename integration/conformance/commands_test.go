//go:build interop

package conformance_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/integration/cluster"
	"github.com/zk-lite/zk-lite/internal/testkit/fourletter"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
	"github.com/zk-lite/zk-lite/internal/testkit/zookeeper"
	"github.com/zk-lite/zk-lite/internal/wire"
	"github.com/zk-lite/zk-lite/znode"
)

// TestConformance_Commands asks a ZooKeeper 3.9 and zk-lite all four-letter words and all commands of AdminServer, a
// standalone server, a leader and a follower, and compares what fields the answers have, and of what type. Each
// difference is a row of commandDifferences, and each row is one.
func TestConformance_Commands(t *testing.T) {
	used := map[int]bool{}
	t.Run("standalone", func(t *testing.T) { compareCommands(t, 1, used) })
	t.Run("ensemble", func(t *testing.T) { compareCommands(t, 3, used) })
	if t.Failed() {
		return
	}
	for i, d := range commandDifferences() {
		if !used[i] {
			t.Errorf("no answer differs as in %+v: remove the row", d)
		}
	}
}

func compareCommands(t *testing.T, servers int, used map[int]bool) {
	theirs := zookeeper.Run(t, zookeeper.Options{Version: zookeeper.Oracle, Servers: servers, Admin: true})
	ours := cluster.Start(t, servers, cluster.Options{Config: map[string]string{"maxSessionTimeout": "60000"}})
	leader, followers := ours.Leader(), ours.Followers()
	pairs := map[string][2]*asked{
		"leader": {askedZooKeeper(t, theirs.Leader()), askedOurs(t, leader)},
	}
	for _, s := range theirs.Servers {
		if s.Mode() == "follower" {
			pairs["follower"] = [2]*asked{askedZooKeeper(t, s), askedOurs(t, followers[0])}
			break
		}
	}
	for _, role := range slices.Sorted(maps.Keys(pairs)) {
		t.Run(role, func(t *testing.T) {
			zk, our := pairs[role][0].fields(t), pairs[role][1].fields(t)
			for _, f := range slices.Sorted(maps.Keys(zk)) {
				if !our[f] && !explained(f, zooKeeperHas, used) {
					t.Errorf("only ZooKeeper has %s", f)
				}
			}
			for _, f := range slices.Sorted(maps.Keys(our)) {
				if !zk[f] && !explained(f, zkLiteHas, used) {
					t.Errorf("only zk-lite has %s", f)
				}
			}
		})
	}
}

func explained(field string, has side, used map[int]bool) (yes bool) {
	for i, d := range commandDifferences() {
		if d.has == has && d.matches(field) {
			used[i], yes = true, true
		}
	}
	return yes
}

// asked is a server with a client that has an ephemeral and watches, so that there is something to tell.
type asked struct {
	address, http string
	super         string // a super user, and its password
}

func askedZooKeeper(t *testing.T, s *zookeeper.Server) *asked {
	return newAsked(t, &asked{s.Address, fmt.Sprintf("127.0.0.1:%d", s.Port), zookeeper.Superuser})
}

func askedOurs(t *testing.T, s *cluster.Server) *asked {
	return newAsked(t, &asked{s.Addr(), s.HTTPAddr(), cluster.SuperCredentials})
}

func newAsked(t *testing.T, a *asked) *asked {
	t.Helper()
	var c *cluster.Conn
	wait.Succeeds(t, "the server takes a client", func() (err error) {
		c, err = cluster.Dial(a.address, cluster.ConnectOptions{Timeout: time.Minute}) // longer than all questions take
		return err
	})
	t.Cleanup(c.Drop)
	name := "/asked-" + digits.FindString(strings.TrimPrefix(a.address, "127.0.0.1:"))
	for _, q := range []struct {
		op   wire.OpCode
		body wire.Request
	}{
		{wire.OpCreate, &wire.CreateRequest{Path: name, ACL: znode.OpenACL, Mode: znode.Ephemeral}},
		{wire.OpGetData, &wire.GetDataRequest{Path: name, Watch: true}},
	} {
		if _, err := c.Do(q.op, q.body); err != nil {
			t.Fatal(err)
		}
	}
	return a
}

// fields are all that the server says: "conf: tickTime number", "GET monitor: znode_count number".
func (a *asked) fields(t *testing.T) map[string]bool {
	t.Helper()
	all := map[string]bool{}
	for _, word := range words() {
		var text string
		wait.Succeeds(t, fmt.Sprintf("an answer to %q", word), func() (err error) { // it has two seconds
			text, err = fourletter.Ask(a.address, word)
			return err
		})
		for _, f := range fieldsOfWord(text) {
			all[strings.TrimRight(word, "\x00")+": "+f] = true
		}
	}
	for _, name := range adminCommands() {
		a.askAdmin(t, http.MethodGet, name, all)
	}
	for alias, name := range aliases() {
		if answer := a.askAdmin(t, http.MethodGet, alias, nil); answer["command"] == name {
			all["GET "+alias+": the same as "+name] = true
		}
	}
	for _, name := range []string{"restore", "unknown"} {
		a.askAdmin(t, http.MethodPost, name, all)
	}
	return all
}

// words are in the order in which they do not disturb each other: those that reset are last.
func words() []string {
	return []string{"conf", "cons", "dirs", "dump", "envi", "gtmk", "hash", "isro", "mntr", "ruok", "srvr", "stat",
		"stmk\x00\x00\x00\x00\x00\x00\x01\x32", "wchc", "wchp", "wchs", "crst", "srst"}
}

// adminCommands are those of Commands.java by their first names, and the page of them.
func adminCommands() []string {
	return []string{"", "configuration", "connections", "hash", "dirs", "dump", "environment", "get_trace_mask",
		"initial_configuration", "is_read_only", "last_snapshot", "leader", "monitor", "observers",
		"observer_connection_stat_reset", "restore", "ruok", "set_trace_mask", "set_trace_mask?traceMask=306", "snapshot",
		"server_stats", "stats", "system_properties", "voting_view", "watches", "watches_by_path", "watch_summary",
		"zabstate", "connection_stat_reset", "stat_reset", "unknown"}
}

// aliases are their other names.
func aliases() map[string]string {
	return map[string]string{"conf": "configuration", "config": "configuration", "cons": "connections",
		"env": "environment", "envi": "environment", "gtmk": "get_trace_mask", "icfg": "initial_configuration",
		"isro": "is_read_only", "lsnp": "last_snapshot", "lead": "leader", "mntr": "monitor", "obsr": "observers",
		"orst": "observer_connection_stat_reset", "rest": "restore", "stmk": "set_trace_mask", "snap": "snapshot",
		"srvr": "server_stats", "stat": "stats", "sysp": "system_properties", "wchc": "watches",
		"wchp": "watches_by_path", "wchs": "watch_summary", "crst": "connection_stat_reset", "srst": "stat_reset"}
}

// askAdmin asks a command, as a super user unless it would change the tree, and adds what is in the answer to all.
func (a *asked) askAdmin(t *testing.T, method, name string, all map[string]bool) (fields map[string]any) {
	t.Helper()
	q, err := http.NewRequest(method, "http://"+a.http+"/commands/"+name, nil)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(name, "rest") {
		q.Header.Set("Authorization", "digest "+a.super)
	}
	answer, err := http.DefaultClient.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	kind, _, _ := strings.Cut(answer.Header.Get("Content-Type"), ";")
	said := []string{fmt.Sprint("status ", answer.StatusCode), "content " + kind}
	if json.Unmarshal(body, &fields) == nil {
		said = append(said, fieldsOfJSON("", fields)...)
	}
	for _, f := range said {
		if all != nil {
			all[method+" "+cmp.Or(name, "commands")+": "+f] = true
		}
	}
	return fields
}

var (
	separated = regexp.MustCompile(`^([^=:\t]+?)(=|: |\t|:$|:)(.*)$`)
	ids       = regexp.MustCompile(`0x[0-9a-f]+`)
	digits    = regexp.MustCompile(`\d+`)
	number    = regexp.MustCompile(`^-?\d+$`)
	fraction  = regexp.MustCompile(`^-?\d+\.\d+$`)
	hex       = regexp.MustCompile(`^0x[0-9a-f]+$`)
	clientRow = regexp.MustCompile(`^\s*/[^ ]+\[\d\]\((.*)\)$`)
)

// fieldsOfWord are the lines of an answer without what differs from server to server.
func fieldsOfWord(text string) (all []string) {
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		if m := clientRow.FindStringSubmatch(line); m != nil {
			for pair := range strings.SplitSeq(m[1], ",") {
				name, value, _ := strings.Cut(pair, "=")
				all = append(all, "client "+name+" "+typeOf(value))
			}
			continue
		}
		indent := strings.Repeat("-", len(line)-len(strings.TrimLeft(line, "\t ")))
		m := separated.FindStringSubmatch(strings.TrimSpace(line))
		switch {
		case strings.TrimSpace(line) == "":
		case m == nil || hex.MatchString(m[1]) || strings.HasPrefix(m[1], "/"):
			plain := regexp.MustCompile(`/\S+`).ReplaceAllString(strings.Join(strings.Fields(line), " "), "/PATH")
			all = append(all, indent+digits.ReplaceAllString(ids.ReplaceAllString(plain, "ID"), "N"))
		default:
			name := digits.ReplaceAllString(strings.TrimPrefix(m[1], "zk_"), "N")
			all = append(all, indent+name+" "+typeOf(strings.TrimSpace(m[3])))
		}
	}
	return all
}

func typeOf(value string) string {
	switch {
	case value == "":
		return "nothing"
	case number.MatchString(value):
		return "number"
	case fraction.MatchString(value):
		return "fraction"
	case hex.MatchString(value):
		return "hexadecimal"
	}
	return "text"
}

// fieldsOfJSON are the fields of an object, with its objects'. Keys that are sessions, servers or paths are "*".
func fieldsOfJSON(path string, value any) (all []string) {
	switch v := value.(type) {
	case map[string]any:
		for key, x := range v {
			if number.MatchString(key) || strings.HasPrefix(key, "/") {
				key = "*"
			}
			all = append(all, fieldsOfJSON(strings.TrimPrefix(path+"."+key, "."), x)...)
		}
		if len(v) == 0 {
			all = append(all, path+" {}")
		}
	case []any:
		for _, x := range v {
			all = append(all, fieldsOfJSON(path+"[]", x)...)
		}
		if len(v) == 0 && !strings.HasSuffix(path, "*") { // as a time at which no session expires now
			all = append(all, path+" []")
		}
	case nil:
		all = append(all, path+" null")
	case float64:
		all = append(all, path+" number")
	case string:
		all = append(all, path+" text")
	default:
		all = append(all, fmt.Sprintf("%s %T", path, v))
	}
	return all
}

// matches reports whether the row is for a field as in "conf: tickTime number".
func (d *commandDifference) matches(field string) bool {
	in, what, _ := strings.Cut(field, ": ")
	return anyOf(strings.Split(d.in, ", "), in) && anyOf(strings.Split(d.fields, ", "), what)
}

func anyOf(patterns []string, text string) bool {
	for _, p := range patterns {
		if regexp.MustCompile("^" + strings.ReplaceAll(regexp.QuoteMeta(p), `\*`, ".*") + "$").MatchString(text) {
			return true
		}
	}
	return false
}
