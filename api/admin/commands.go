package admin

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/user"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/zk-lite/zk-lite/api/metrics"
	"github.com/zk-lite/zk-lite/api/rest"
	"github.com/zk-lite/zk-lite/consensus"
	"github.com/zk-lite/zk-lite/consensus/membership"
	"github.com/zk-lite/zk-lite/server"
	"github.com/zk-lite/zk-lite/znode"
)

// compatibleVersion is the version of ZooKeeper whose commands these are; its tools
// choose features by it.
const compatibleVersion = "3.9.5"

// Settings are settings of the whole server that the command configuration shows.
type Settings struct {
	ClientPort     func() int
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

// commands are those of AdminServer.
type commands struct {
	server   Server
	ensemble *membership.Ensemble
	cfg      *Config
	measures *monitor
}

func (h *commands) all() []command {
	list := func(names ...string) []string { return names }
	return []command{
		{list("configuration", "conf", "config"), false, h.configuration},
		{list("connection_stat_reset", "crst"), false, h.connectionReset},
		{list("connections", "cons"), false, h.connections},
		{list("dirs"), false, h.dirs},
		{list("dump"), false, h.dump},
		{list("environment", "env", "envi"), true, h.environment},
		{list("get_trace_mask", "gtmk"), true, h.traceMask},
		{list("hash"), false, h.hash},
		{list("is_read_only", "isro"), false, commandReadOnly(h.cfg.ReadOnly)},
		{list("leader", "lead"), false, h.leader},
		{list("monitor", "mntr"), true, h.monitor},
		{list("observers", "obsr"), false, h.observers},
		{list("ruok"), false, commandRuok},
		{list("server_stats", "srvr"), false, h.serverStats},
		{list("set_trace_mask", "stmk"), true, h.setTraceMask},
		{list("stat_reset", "srst"), false, h.statReset},
		{list("stats", "stat"), false, h.stats},
		{list("voting_view"), false, h.votingView},
		{list("watch_summary", "wchs"), false, commandWatchSummary},
		{list("watches", "wchc"), false, commandWatches},
		{list("watches_by_path", "wchp"), false, commandWatchesByPath},
		{list("zabstate"), true, h.zabState},
	}
}

// list answers with links to the commands, a page like ZooKeeper's.
func (h *commands) list(q *rest.Request) error {
	var b strings.Builder
	for _, c := range h.all() {
		fmt.Fprintf(&b, "<a href=\"/commands/%s\">%s</a>\n<br/>\n", c.names[0], c.names[0])
	}
	q.SendBytes(http.StatusOK, "text/html; charset=utf-8", []byte(b.String()))
	return nil
}

// run carries out a command. Its errors are in the field error, as ZooKeeper's
// are, except that an unknown command is 404.
func (h *commands) run(q *rest.Request) error { return runCommand(q, h.cfg.ReadOnly, h.all()) }

func runCommand(q *rest.Request, readOnly *server.ReadOnlyMode, all []command) error {
	name := q.Vars["command"]
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
	if srv := q.Core.Server; !c.lame && !srv.Serving() && !readOnly.On() {
		out["error"] = "This ZooKeeper instance is not currently serving requests"
		return q.Answer(http.StatusOK, out)
	}
	if err := c.run(q, out); err != nil {
		return err
	}
	return q.Answer(http.StatusOK, out)
}

// commandRuok reports that the server answers, and no more.
func commandRuok(*rest.Request, object) error { return nil }

// The commands about this server and the ensemble.

// configuration shows the settings (ZooKeeperServerConf.toMap).
func (h *commands) configuration(q *rest.Request, out object) error {
	c := h.cfg.Server
	out["tick_time"] = c.Tick.Milliseconds()
	out["min_session_timeout"] = c.MinSessionTimeout.Milliseconds()
	out["max_session_timeout"] = c.MaxSessionTimeout.Milliseconds()
	out["server_id"] = c.ID
	if s := h.cfg.Settings; s != nil {
		out["client_port"] = s.ClientPort()
		out["data_dir"], out["data_log_dir"] = s.DataDir, s.DataLogDir
		out["max_client_cnxns"] = s.MaxClientCnxns
		out["client_port_listen_backlog"] = s.ListenBacklog
	}
	return nil
}

// environment shows the process's surroundings, without those of a JVM.
func (h *commands) environment(q *rest.Request, out object) error {
	out["zookeeper.version"] = h.fullVersion()
	out["go.version"], out["os.name"], out["os.arch"] = runtime.Version(), runtime.GOOS, runtime.GOARCH
	set := func(key, value string, err error) {
		if err == nil && value != "" {
			out[key] = value
		}
	}
	host, err := os.Hostname()
	set("host.name", host, err)
	dir, err := os.Getwd()
	set("user.dir", dir, err)
	release, err := os.ReadFile("/proc/sys/kernel/osrelease")
	set("os.version", strings.TrimSpace(string(release)), err)
	var mem runtime.MemStats
	runtime.ReadMemStats(&mem)
	const mb = 1 << 20
	set("os.memory.free", fmt.Sprintf("%dMB", (mem.HeapIdle-mem.HeapReleased)/mb), nil)
	set("os.memory.max", fmt.Sprintf("%dMB", debug.SetMemoryLimit(-1)/mb), nil)
	set("os.memory.total", fmt.Sprintf("%dMB", mem.Sys/mb), nil)
	if u, err := user.Current(); err == nil {
		out["user.name"], out["user.home"] = u.Username, u.HomeDir
	}
	return nil
}

// hash shows the state's digest, which servers share that are at the same
// zxid. It reads every znode, so it is for operators.
func (h *commands) hash(q *rest.Request, out object) error {
	if err := q.NeedAdministrator(); err != nil {
		return err
	}
	zxid, digest := h.server.Digest()
	q.SetZxid(zxid)
	out["digests"] = []object{{"zxid": int64(zxid), "digest": int64(digest), "digest_version": 0}}
	return nil
}

// commandReadOnly reports whether read-only mode is on.
func commandReadOnly(mode *server.ReadOnlyMode) func(*rest.Request, object) error {
	return func(_ *rest.Request, out object) error {
		out["read_only"] = mode.On()
		return nil
	}
}

// leader shows the leader.
func (h *commands) leader(q *rest.Request, out object) error {
	s := q.Core.Server.Status()
	if s.Role == consensus.RoleStandalone {
		out["error"] = "server is not initialized"
		return nil
	}
	host, _, _ := net.SplitHostPort(electionAddress(h.ensemble.Members()[s.Leader].Peer))
	out["is_leader"], out["leader_id"], out["leader_ip"] = s.Role == consensus.RoleLeader, s.Leader, host
	return nil
}

// monitor shows all metrics, as mntr does.
func (h *commands) monitor(q *rest.Request, out object) error {
	out["version"] = h.fullVersion()
	role := q.Core.Server.Status().Role
	out["server_state"] = h.cfg.ReadOnly.Mode()
	if role != consensus.RoleStandalone && !h.cfg.ReadOnly.On() {
		out["peer_state"] = metrics.PeerState(role)
	}
	h.measures.measure().JSON(out)
	return nil
}

// serverStats is how the server is (ServerStats). Of what ZooKeeper has there, the
// counts of slow syncs and of connections without TLS are missing.
func (h *commands) serverStats(q *rest.Request, out object) error {
	var zxid znode.Zxid
	var size znode.Size
	q.View(func(v *server.View) { zxid, size = v.Zxid(), v.Tree().Size() })
	s := q.Core.Server.Status()
	stats := object{
		"server_state": h.cfg.ReadOnly.Mode(), "last_processed_zxid": int64(zxid), "provider_null": false,
		"uptime": time.Since(h.measures.started).Milliseconds(), "outstanding_requests": s.Pending,
	}
	if p := h.cfg.Port; p != nil {
		t := p.Totals()
		stats["min_latency"] = t.MinLatency.Milliseconds()
		stats["max_latency"] = metrics.WholeMillis(t.MaxLatency)
		stats["avg_latency"] = t.AvgLatencyMillis
		stats["packets_received"], stats["packets_sent"] = t.PacketsReceived, t.PacketsSent
		stats["num_alive_client_connections"] = t.Connections
		stats["outstanding_requests"], stats["auth_failed_count"] = t.Outstanding, t.AuthFailed
		stats["data_dir_size"], stats["log_dir_size"] = p.DirSizes()
		response := object{
			"last_buffer_size": t.LastReplyBytes,
			"min_buffer_size":  t.MinReplyBytes, "max_buffer_size": t.MaxReplyBytes,
		}
		stats["client_response_stats"], out["client_response"] = response, response
	}
	if s.Role == consensus.RoleLeader {
		sizes := object{}
		h.measures.measure().JSON(sizes)
		out["proposal_stats"] = object{"last_buffer_size": sizes["last_proposal_size"],
			"min_buffer_size": sizes["min_proposal_size"], "max_buffer_size": sizes["max_proposal_size"]}
	}
	out["version"], out["read_only"] = h.fullVersion(), h.cfg.ReadOnly.On()
	out["server_stats"], out["node_count"] = stats, size.Znodes+1
	return nil
}

// votingView shows who votes, and where it is.
func (h *commands) votingView(q *rest.Request, out object) error {
	view := object{}
	for id, m := range h.ensemble.Members() {
		if !m.Voter || m.Peer == "" { // a standalone server is in no ensemble
			continue
		}
		one := object{"server_addresses": []string{}, "election_addresses": []string{},
			"client_address": m.Client, "learner_type": "participant"}
		if quorum, election := splitPeer(m.Peer); election != "" {
			one["server_addresses"] = []string{quorum}
			one["election_addresses"] = []string{election}
		}
		view[strconv.FormatUint(uint64(id), 10)] = one
	}
	out["current_config"] = view
	return nil
}

// splitPeer splits host:port:port into the two addresses; both are empty if it is none.
func splitPeer(peer string) (quorum, election string) {
	election = electionAddress(peer)
	if election == "" {
		return "", ""
	}
	return peer[:strings.LastIndexByte(peer, ':')], election
}

// electionAddress takes the first port out of host:port:port.
func electionAddress(peer string) string {
	last := strings.LastIndexByte(peer, ':')
	if last < 0 {
		return ""
	}
	first := strings.LastIndexByte(peer[:last], ':')
	if first < 0 {
		return ""
	}
	return peer[:first] + peer[last:]
}

// zabState is the state of the agreement in the words of ZooKeeper's protocol:
// the epoch is Raft's term.
func (h *commands) zabState(q *rest.Request, out object) error {
	s := q.Core.Server.Status()
	if s.Role == consensus.RoleStandalone {
		out["voting"], out["zabstate"] = false, ""
		return nil
	}
	var zxid znode.Zxid
	q.View(func(v *server.View) { zxid = v.Zxid() })
	own := h.ensemble.Members()[q.Core.Config.ID]
	quorum, election := splitPeer(own.Peer)
	out["myid"], out["client_address"] = q.Core.Config.ID, own.Client
	out["quorum_address"], out["election_address"] = quorum, election
	out["is_leader"] = s.Role == consensus.RoleLeader
	out["voting"] = own.Voter
	out["last_zxid"] = zxid.String()
	out["zab_epoch"], out["zab_counter"] = uint64(zxid)>>32, uint32(zxid)
	out["zabstate"] = "broadcast"
	if s.Role == consensus.RoleNone {
		out["zabstate"] = "election"
	}
	return nil
}

func (h *commands) fullVersion() string {
	return compatibleVersion + "-zk-lite-" + h.cfg.Version + ", built on " + h.cfg.BuildDate
}
