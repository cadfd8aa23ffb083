package admin

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/zk-lite/zk-lite/api/rest"
)

// compatibleVersion is the version of ZooKeeper whose commands these are; its tools
// choose features by it.
const compatibleVersion = "3.9.4"

// Settings are settings of the whole server that the command configuration shows.
type Settings struct {
	ClientPort     int
	DataDir        string
	DataLogDir     string
	MaxClientCnxns int
	ListenBacklog  int // -1: the system's
}

// command is one of ZooKeeper's AdminServer (org.apache.zookeeper.server.admin): what
// existing tools ask for, in its shape. Offered are those that mean something here: there
// is no snapshot or restore, which GET and POST /v1/snapshot are, nothing of the JVM, and
// no initial configuration, since a zk-lite server does not need a file.
type command struct {
	names []string // the first is the primary one
	// lame commands are answered by a server that does not serve, too.
	lame bool
	run  func(q *rest.Request, out object) error
}

func (h *handlers) commands() []command {
	list := func(names ...string) []string { return names }
	return []command{
		{list("configuration", "conf", "config"), false, h.commandConfiguration},
		{list("connection_stat_reset", "crst"), false, h.commandConnectionReset},
		{list("connections", "cons"), false, h.commandConnections},
		{list("dirs"), false, h.commandDirs},
		{list("dump"), false, h.commandDump},
		{list("environment", "env", "envi"), true, h.commandEnvironment},
		{list("get_trace_mask", "gtmk"), true, h.commandTraceMask},
		{list("hash"), false, h.commandHash},
		{list("is_read_only", "isro"), false, commandReadOnly},
		{list("leader", "lead"), false, h.commandLeader},
		{list("monitor", "mntr"), true, h.commandMonitor},
		{list("observers", "obsr"), false, h.commandObservers},
		{list("ruok"), false, commandRuok},
		{list("server_stats", "srvr"), false, h.commandServerStats},
		{list("set_trace_mask", "stmk"), true, h.commandSetTraceMask},
		{list("stat_reset", "srst"), false, h.commandStatReset},
		{list("stats", "stat"), false, h.commandStats},
		{list("voting_view"), false, h.commandVotingView},
		{list("watch_summary", "wchs"), false, commandWatchSummary},
		{list("watches", "wchc"), false, commandWatches},
		{list("watches_by_path", "wchp"), false, commandWatchesByPath},
		{list("zabstate"), true, h.commandZabState},
	}
}

// listCommands answers with links to the commands, a page like ZooKeeper's.
func (h *handlers) listCommands(q *rest.Request) error {
	var b strings.Builder
	for _, c := range h.commands() {
		fmt.Fprintf(&b, "<a href=\"/commands/%s\">%s</a>\n<br/>\n", c.names[0], c.names[0])
	}
	q.SendBytes(http.StatusOK, "text/html; charset=utf-8", []byte(b.String()))
	return nil
}

// runCommand carries out a command. Its errors are in the field error, as ZooKeeper's
// are, except that who asks for a command that there is not gets 404.
func (h *handlers) runCommand(q *rest.Request) error {
	name := q.Vars["command"]
	all := h.commands()
	i := slices.IndexFunc(all, func(c command) bool { return slices.Contains(c.names, name) })
	if i < 0 {
		var known []string
		for _, c := range all {
			known = append(known, c.names...)
		}
		return q.Answer(http.StatusNotFound, object{
			"command": name, "error": "Unknown command: " + name, "commands": known,
		})
	}
	c := all[i]
	out := object{"command": c.names[0], "error": nil}
	if !c.lame && !q.Core.Server.Serving() {
		out["error"] = "This ZooKeeper instance is not currently serving requests"
		return q.Answer(http.StatusOK, out)
	}
	if err := c.run(q, out); err != nil {
		return err
	}
	return q.Answer(http.StatusOK, out)
}

// commandRuok says that the server answers, and no more.
func commandRuok(*rest.Request, object) error { return nil }
