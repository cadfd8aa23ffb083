package config

import (
	"math"
	"slices"
	"strings"
	"unicode"

	"github.com/zk-lite/zk-lite/consensus/storage"
)

// setting is one row of the table.
type setting struct {
	key     string   // the name in zoo.cfg; "" for one that has none
	aliases []string // other names of it in zoo.cfg
	flag    string   // without the dashes; made from key when empty
	kind    kind
	def     string // the default as text; "" leaves the field as it is
	// min and max bound numbers, bytes and milliseconds; both inclusive.
	min, max int64
	minusOne bool     // -1 means the default, as in ZooKeeper
	choices  []string // of kindChoice
	help     string
	to       any  // a pointer to the field that has the value; nil for servers, the file and what is retired
	not      bool // the field of a bool is true for false
}

// flagName is the flag of the row: admin.serverPort becomes admin-server-port.
func (st *setting) flagName() string {
	if st.flag != "" {
		return st.flag
	}
	var b strings.Builder
	for _, r := range st.key {
		switch {
		case r == '.':
			b.WriteByte('-')
		case unicode.IsUpper(r):
			b.WriteByte('-')
			b.WriteRune(unicode.ToLower(r))
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// envName is the environment variable of the row.
func (st *setting) envName() string {
	if st.kind == kindServers {
		return "ZK_LITE_SERVERS" // ZK_LITE_SERVER is the connect string of the client commands
	}
	return "ZK_LITE_" + strings.ToUpper(strings.ReplaceAll(st.flagName(), "-", "_"))
}

const (
	hour   = 60 * 60 * 1000 // milliseconds
	day    = 24 * hour
	maxInt = math.MaxInt32 // ZooKeeper's own numbers are Java ints

	connectRequestBytes = 45 // with less no client could connect
)

// table is every setting of a server, in the order of the documentation, and last those that are retired. The rows
// fill in s.
func table(s *Settings) []setting {
	return slices.Concat(basicRows(s), ensembleRows(s), clientRows(s), znodeRows(s), storageRows(s), httpRows(s),
		tlsRows(s), peerTLSRows(s), authRows(s), saslRows(s), auditRows(s), throttleRows(s), backupRows(s),
		runtimeRows(s), loggerRows(s), retiredRows())
}

func basicRows(s *Settings) []setting {
	return []setting{
		{flag: "config", kind: kindFile,
			help: "zoo.cfg to read. Default: none, a standalone server with the defaults."},
		{key: "tickTime", kind: kindMillis, def: "2000", min: 1, max: hour, to: &s.Server.Tick,
			help: "Unit of the other limits. Sessions expire at multiples of it."},
		{key: "dataDir", kind: kindText, to: &s.DataDir,
			help: "Directory of the data and of the file `myid`. A zoo.cfg must set it. Default without a zoo.cfg: " +
				"`./zk-lite-data`."},
		{key: "dataLogDir", kind: kindText, to: &s.DataLogDir,
			help: "Directory of Raft's log, best on a separate disk. Default: `dataDir`."},
		{key: "minSessionTimeout", kind: kindMillis, def: "-1", min: 1, max: day, minusOne: true,
			to:   &s.Server.MinSessionTimeout,
			help: "Shortest session timeout that a client gets. Default: 2 ticks."},
		{key: "maxSessionTimeout", kind: kindMillis, def: "-1", min: 1, max: day, minusOne: true,
			to:   &s.Server.MaxSessionTimeout,
			help: "Longest session timeout that a client gets. Default: 20 ticks."},
	}
}

func ensembleRows(s *Settings) []setting {
	return []setting{
		{key: "server.N", flag: "server", kind: kindServers,
			help: "A server of the ensemble: `" + serverForm + "`. Repeat the flag for each server " +
				"(`--server 1=host:2888:3888`). The variable is ZK_LITE_SERVERS, " +
				"with all servers separated by blanks."},
		{flag: "myid", kind: kindServer, to: &s.MyID,
			help: "This server's id in the list. Default: the first line of the file `dataDir/myid`."},
		{key: "peerType", kind: kindRole, def: "participant", to: &s.PeerType,
			help: "Role of this server. If the list of servers names another role, the list counts, as in ZooKeeper."},
		{key: "initLimit", kind: kindInt, def: "10", min: 1, max: maxInt, to: &s.ZooKeeper.Settings.InitLimit,
			help: "Shown by `conf`. No other effect: a joining server takes the time that it needs."},
		{key: "syncLimit", kind: kindInt, def: "5", min: 1, max: maxInt, to: &s.SyncLimit,
			help: "Ticks without contact to a leader after which a server stops serving."},
		{key: "standaloneEnabled", kind: kindBool, def: "true", to: &s.StandaloneEnabled,
			help: "Whether a server alone in the list is a standalone server, which needs no `myid`, and to which no " +
				"other can be added."},
		{key: "quorumListenOnAllIPs", flag: "quorum-listen-on-all-ips", kind: kindBool, def: "false",
			to: &s.QuorumListenOnAllIPs,
			help: "Listen for the other servers on all interfaces, " +
				"instead of the address in this server's `server.N` line."},
		{key: "raft.electionTimeout", kind: kindMillis, def: "1000", min: 50, max: 60_000,
			to: &s.Consensus.ElectionTimeout,
			help: "Time without a message from the leader after which another one is elected. A dead process is " +
				"noticed at once."},
		{key: "check.interval", kind: kindMillis, def: "10000", min: 0, max: day, to: &s.Consensus.CheckInterval,
			help: "How often the servers compare their states, at least; 0: never. A server that differs from a " +
				"majority is halted."},
		{key: "autopilot", kind: kindBool, def: "true", to: &s.Autopilot,
			help: "Whether the leader follows the three settings below. Otherwise a server gets its vote as soon as " +
				"it has caught up, and none is removed."},
		{key: "autopilot.stableTime", kind: kindMillis, def: "10000", min: 0, max: day,
			to: &s.Consensus.Autopilot.StableTime,
			help: "For how long a server that is to vote must be connected and caught up, without a break, before it " +
				"gets its vote."},
		{key: "autopilot.removeAfter", kind: kindMillis, def: "0", min: 0, max: 365 * day,
			to: &s.Consensus.Autopilot.RemoveAfter,
			help: "Time without a connection to the leader after which a server is removed from the ensemble, for " +
				"good; 0: never. A new leader counts anew. Servers that may be down for a weekend need longer."},
		{key: "autopilot.minVoters", kind: kindInt, def: "3", min: 1, max: maxInt, to: &s.Consensus.Autopilot.MinVoters,
			help: "A voter is removed after `autopilot.removeAfter` only if so many are left, and a majority of them " +
				"is connected."},
	}
}

func clientRows(s *Settings) []setting {
	return []setting{
		{key: "clientPort", kind: kindPort, def: "2181", min: 0, max: 65535, to: &s.ClientPort,
			help: "Port for ZooKeeper clients; 0 is any free port. With `secureClientPort` alone there is none."},
		{key: "clientPortAddress", kind: kindHost, to: &s.ClientPortAddress,
			help: "Address for ZooKeeper clients. Default: all interfaces."},
		{key: "clientPortListenBacklog", kind: kindInt, def: "-1", min: -1, max: maxInt,
			to:   &s.ZooKeeper.Settings.ListenBacklog,
			help: "Shown by `conf`. No other effect: the operating system's limit applies."},
		{key: "maxClientCnxns", kind: kindInt, def: "60", min: 0, max: maxInt, to: &s.ZooKeeper.MaxPerAddress,
			help: "Most connections from one address; 0 is no limit."},
		{key: "maxCnxns", kind: kindInt, def: "0", min: 0, max: maxInt, to: &s.ZooKeeper.MaxConnections,
			help: "Most connections in total; 0 is no limit."},
		{key: "4lw.commands.whitelist", kind: kindWords, def: "srvr", to: &s.ZooKeeper.Words,
			help: "Four-letter words that the server answers, separated by commas; `*` is all of them."},
		{key: "nio.sessionlessCnxnTimeout", kind: kindMillis, def: "10000", min: 1, max: day,
			to:   &s.ZooKeeper.HandshakeTimeout,
			help: "Time after which a connection without a session is closed."},
		{key: "jute.maxbuffer", kind: kindBytes, def: "1048575", min: connectRequestBytes, max: 1 << 30,
			to:   &s.ZooKeeper.MaxFrame,
			help: "Largest request in bytes. A znode's data can be nearly as large, but a write has 60 MiB at most."},
		{key: "largeRequestMaxBytes", kind: kindBytes, def: "64MiB", min: 1 << 20, max: 1 << 40,
			to: &s.ZooKeeper.PartialBytes,
			help: "Memory for requests of all clients that have arrived in part. Beyond it the connection whose " +
				"request began first is closed (ZooKeeper: 100 MiB, and the newest)."},
		{key: "globalOutstandingLimit", kind: kindInt, def: "100000", min: 1, max: maxInt, to: &s.Consensus.MaxPending,
			help: "Most uncommitted writes of all clients. Beyond it the server stops reading from clients " +
				"(ZooKeeper: 1000)."},
		{key: "limits.pendingBytes", kind: kindBytes, min: 1 << 20, max: 1 << 40, to: &s.Consensus.MaxPendingBytes,
			help: "The same limit in bytes. Default: 64 MiB, or a sixteenth of the memory of machine or control " +
				"group if that is less."},
		{key: "limits.treeBytes", kind: kindBytes, min: 1 << 20, max: 1 << 50, to: &s.Consensus.TreeLimit,
			help: "Memory that the tree may take. The smallest limit of all voters counts. Beyond it writes that " +
				"add to the tree are refused. Default: two fifths of the memory of machine or control group, " +
				"without 32 MiB."},
		{key: "limits.outboxBytes", kind: kindBytes, def: "16MiB", min: 64 << 10, max: 1 << 40,
			to: &s.ZooKeeper.OutboxBytes,
			help: "Most bytes of replies and events that wait for a slow client. " +
				"Beyond it the client is disconnected."},
		{key: "limits.outboxTotalBytes", kind: kindBytes, min: 1 << 20, max: 1 << 40, to: &s.ZooKeeper.OutboxTotal,
			help: "Most bytes of replies and events that wait for all clients. Beyond it those are disconnected " +
				"who have taken nothing for the longest time. Default: a sixteenth of the memory of machine or " +
				"control group."},
		{key: "limits.watchesPerConnection", kind: kindInt, def: "262144", min: 1, max: maxInt,
			to:   &s.Server.WatchLimit,
			help: "Most paths that one connection can watch."},
		{key: "limits.watchBytes", kind: kindBytes, min: 1 << 20, max: 1 << 40, to: &s.Server.WatchBytes,
			help: "Memory that the watches of all connections may take. Beyond it each connection may still have " +
				"1 MiB of them. Default: a sixteenth of the memory of machine or control group."},
	}
}

func znodeRows(s *Settings) []setting {
	return []setting{
		{key: "extendedTypesEnabled", kind: kindBool, to: &s.Server.ExtendedTypes,
			help: "Allow TTL znodes. Default: false with a zoo.cfg, as in ZooKeeper, true without."},
		{key: "enforceQuota", kind: kindBool, def: "false", to: &s.Server.EnforceQuota,
			help: "Refuse writes that exceed a hard quota. Soft quotas only warn."},
		{key: "znode.container.checkIntervalMs", flag: "container-check-interval", kind: kindMillis,
			def: "60000", min: 1, max: day, to: &s.Server.Reap.Interval,
			help: "Time between two searches for empty containers and expired TTL znodes."},
		{key: "znode.container.maxPerMinute", flag: "container-max-per-minute", kind: kindInt,
			def: "10000", min: 1, max: maxInt, to: &s.Server.Reap.MaxPerMinute,
			help: "Most containers and TTL znodes that are deleted per minute."},
		{key: "znode.container.maxNeverUsedIntervalMs", flag: "container-max-never-used",
			kind: kindMillis, def: "0", min: 0, max: 365 * day, to: &s.Server.Reap.NeverUsed,
			help: "Age at which a container that never had a child is deleted; 0 is never."},
	}
}

func storageRows(s *Settings) []setting {
	return []setting{
		{key: "snapCount", kind: kindInt, def: "100000", min: 0, max: maxInt, to: &s.Consensus.SnapshotCommands,
			help: "Transactions between two snapshots. Less than 2 counts as 2, as in ZooKeeper."},
		{key: "autopurge.snapRetainCount", kind: kindInt, def: "3", min: 0, max: maxInt, to: &s.Storage.Retain,
			help: "Snapshots to keep. Less than 3 counts as 3, as in ZooKeeper."},
		{key: "log.store", kind: kindChoice, def: string(storage.LogRaftlog),
			choices: []string{string(storage.LogRaftlog), string(storage.LogBolt)}, to: &s.Storage.Kind,
			help: "Store of Raft's log. `raftlog` checks every record and syncs once per append. `boltdb` is " +
				"deprecated, and goes with the next release: it returns a damaged entry as if it were right."},
		{key: "log.direct", kind: kindBool, def: "true", to: &s.Storage.NoDirectLog, not: true,
			help: "Write the log of `raftlog` past the page cache, on ext4 and XFS under Linux."},
	}
}

func httpRows(s *Settings) []setting {
	return []setting{
		{key: "admin.enableServer", kind: kindBool, def: "true", to: &s.AdminEnabled,
			help: "Open the HTTP port."},
		{key: "admin.serverPort", kind: kindInt, def: "8080", min: 0, max: 65535, to: &s.AdminPort,
			help: "The HTTP port; 0 is any free port."},
		{key: "admin.serverAddress", kind: kindHost, def: "127.0.0.1", to: &s.AdminAddress,
			help: "Address of the HTTP port (ZooKeeper: all interfaces)."},
		{key: "admin.allowedOrigins", kind: kindOrigins, to: &s.HTTP.Origins,
			help: "Origins of web pages that may call the HTTP port, separated by commas, such as " +
				"`https://example.org`. Others are refused."},
		{key: "admin.allowedHosts", kind: kindHosts, to: &s.HTTP.Hosts,
			help: "Host names, separated by commas and without ports, that requests to an HTTP port on loopback may " +
				"use, besides localhost and IP addresses; `*` is any name. See docs/configuration.md."},
	}
}

func runtimeRows(s *Settings) []setting {
	return []setting{
		{key: "runtime.adjustProcessors", kind: kindBool, def: "true", to: &s.AdjustProcessors,
			help: "Run on one processor while one is enough, which costs less CPU. The environment variable " +
				"GOMAXPROCS turns this off too."},
		{key: "net.rawSystemCalls", kind: kindBool, def: "true", to: &s.RawSystemCalls,
			help: "Read and write sockets in system calls that cost Go's scheduler nothing, under Linux."},
	}
}

func loggerRows(s *Settings) []setting {
	return []setting{
		{key: "logger.format", kind: kindFormat, def: formatText, choices: []string{formatText, formatJSON},
			to:   &s.LoggerJSON,
			help: "Format of the log."},
		{key: "logger.level", kind: kindLevel, def: "info",
			choices: []string{"debug", "info", "warn", "error"}, to: &s.LoggerLevel,
			help: "Lowest level that is logged. Above debug at most 20 lines a second are, after 1,000 at once; " +
				"`lines_left_out` counts the others."},
		{key: "logger.slowRequests", kind: kindMillis, def: "300", min: 0, max: hour, to: &s.Server.SlowRequest,
			help: "Time from which on a request is slow: it is logged, and shown by `zk-lite slow`, with the " +
				"stages of its way. 0 is never."},
	}
}
