package api

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
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
	run  func(q *request, out object) error
}

func commands() []command {
	list := func(names ...string) []string { return names }
	return []command{
		{list("configuration", "conf", "config"), false, (*request).commandConfiguration},
		{list("connection_stat_reset", "crst"), false, (*request).commandConnectionReset},
		{list("connections", "cons"), false, (*request).commandConnections},
		{list("dirs"), false, (*request).commandDirs},
		{list("dump"), false, (*request).commandDump},
		{list("environment", "env", "envi"), true, (*request).commandEnvironment},
		{list("get_trace_mask", "gtmk"), true, (*request).commandTraceMask},
		{list("hash"), false, (*request).commandHash},
		{list("is_read_only", "isro"), false, (*request).commandReadOnly},
		{list("leader", "lead"), false, (*request).commandLeader},
		{list("monitor", "mntr"), true, (*request).commandMonitor},
		{list("observers", "obsr"), false, (*request).commandObservers},
		{list("ruok"), false, (*request).commandRuok},
		{list("server_stats", "srvr"), false, (*request).commandServerStats},
		{list("set_trace_mask", "stmk"), true, (*request).commandSetTraceMask},
		{list("stat_reset", "srst"), false, (*request).commandStatReset},
		{list("stats", "stat"), false, (*request).commandStats},
		{list("voting_view"), false, (*request).commandVotingView},
		{list("watch_summary", "wchs"), false, (*request).commandWatchSummary},
		{list("watches", "wchc"), false, (*request).commandWatches},
		{list("watches_by_path", "wchp"), false, (*request).commandWatchesByPath},
		{list("zabstate"), true, (*request).commandZabState},
	}
}

// listCommands answers with links to the commands, a page like ZooKeeper's.
func (q *request) listCommands() error {
	var b strings.Builder
	for _, c := range commands() {
		fmt.Fprintf(&b, "<a href=\"/commands/%s\">%s</a>\n<br/>\n", c.names[0], c.names[0])
	}
	q.sendBytes(http.StatusOK, "text/html; charset=utf-8", []byte(b.String()))
	return nil
}

// runCommand carries out a command. Its errors are in the field error, as ZooKeeper's
// are, except that who asks for a command that there is not gets 404.
func (q *request) runCommand() error {
	name := q.vars["command"]
	all := commands()
	i := slices.IndexFunc(all, func(c command) bool { return slices.Contains(c.names, name) })
	if i < 0 {
		var known []string
		for _, c := range all {
			known = append(known, c.names...)
		}
		return q.answer(http.StatusNotFound, object{
			"command": name, "error": "Unknown command: " + name, "commands": known,
		})
	}
	c := all[i]
	out := object{"command": c.names[0], "error": nil}
	if !c.lame && !q.door.srv.Serving() {
		out["error"] = "This ZooKeeper instance is not currently serving requests"
		return q.answer(http.StatusOK, out)
	}
	if err := c.run(q, out); err != nil {
		return err
	}
	return q.answer(http.StatusOK, out)
}

// commandRuok says that the server answers, and no more.
func (q *request) commandRuok(object) error { return nil }
