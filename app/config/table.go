package config

import (
	"slices"

	"github.com/zk-lite/zk-lite/consensus/storage"
)

// group is a subject of settings.
type group struct {
	title string
	rows  []setting
}

// groups are the settings in the order of the documentation. The rows fill in s.
func groups(s *Settings) []group {
	return []group{
		{"Basics", basicRows(s)},
		{"The ensemble", ensembleRows(s)},
		{"The ZooKeeper port", clientRows(s)},
		{"Znodes", znodeRows(s)},
		{"Storage", storageRows(s)},
		{"The HTTP port", httpRows(s)},
		{"DNS", dnsRows(s)},
		{"TLS for clients", tlsRows(s)},
		{"TLS between servers", peerTLSRows(s)},
		{"Identities", slices.Concat(authRows(s), sanRows(s), saslRows(s))},
		{"Audit", auditRows(s)},
		{"Throttling", throttleRows(s)},
		{"Backups", backupRows(s)},
		{"Mirroring ZooKeeper", mirrorRows(s)},
		{"The process and its log", slices.Concat(runtimeRows(s), loggerRows(s))},
	}
}

// table is every setting of a server, in the order of the groups, and last those that are retired.
func table(s *Settings) (all []setting) {
	for _, g := range groups(s) {
		all = append(all, g.rows...)
	}
	return append(all, retiredRows()...)
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
		{key: "readonlymode.enabled", kind: kindBool, def: "false", to: &s.Server.ReadOnly,
			help: "Whether a server that is out of touch with a majority serves reads to clients that allow it. What " +
				"they see may be old."},
		{key: "standaloneEnabled", kind: kindBool, def: "true", to: &s.StandaloneEnabled,
			help: "Whether a server alone in the list is a standalone server, which needs no `myid`, and to which no " +
				"other can be added. With `true` a `reconfig` must leave two servers that vote, as in ZooKeeper."},
		{key: "reconfigEnabled", kind: kindBool, def: "false", to: &s.ZooKeeper.Reconfig,
			help: "Answer `reconfig` on the ZooKeeper port, for clients that may write /zookeeper/config. Members " +
				"may be changed over HTTP anyway."},
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
				"good; 0: never. A new leader starts at zero. Servers that may be down for a weekend need longer."},
		{key: "autopilot.minVoters", kind: kindInt, def: "3", min: 1, max: maxInt, to: &s.Consensus.Autopilot.MinVoters,
			help: "A voter is removed after `autopilot.removeAfter` only if so many are left, and a majority of them " +
				"is connected."},
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
			help: "Transactions between two snapshots, for each 64 MiB of the state. " +
				"Less than 2 counts as 2, as in ZooKeeper."},
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

// AuditFile is the name of the audit log unless it has another.
const AuditFile = "zookeeper_audit.log"

func auditRows(s *Settings) []setting {
	return []setting{
		{key: "audit.enable", kind: kindBool, def: "false", to: &s.AuditEnabled,
			help: "Write an audit log: ZooKeeper's lines, failed logins, refused requests, what administrators do."},
		{key: "audit.file", kind: kindText, to: &s.Audit.File,
			help: "File of the audit log. Default: `dataDir/" + AuditFile + "`."},
		{key: "audit.format", kind: kindFormat, def: formatText, choices: []string{formatText, formatJSON},
			to:   &s.Audit.JSON,
			help: "Format of its lines: ZooKeeper's, or JSON."},
		{key: "audit.maxFileBytes", kind: kindBytes, def: "10MiB", min: 1 << 20, max: 1 << 40, to: &s.Audit.MaxBytes,
			help: "Size at which the file is rotated, in whole MiB."},
		{key: "audit.maxFiles", kind: kindInt, def: "10", min: 1, max: 10_000, to: &s.Audit.Keep,
			help: "Rotated files that are kept."},
	}
}

func backupRows(s *Settings) []setting {
	return []setting{
		{key: "backup.directory", kind: kindText, to: &s.Backup.Directory,
			help: "Directory into which one server of the ensemble, now this one, now that, writes a verified " +
				"backup at intervals; it may be shared."},
		{key: "backup.command", kind: kindSecret, to: &s.Backup.Command,
			help: "Command for /bin/sh that gets the backup on standard input instead, and its name in " +
				"`ZK_LITE_BACKUP`. It may encrypt and upload."},
		{key: "backup.interval", kind: kindMillis, def: "24h", min: 1000, max: 365 * day, to: &s.Backup.Interval,
			help: "Time between two backups."},
		{key: "backup.timeout", kind: kindMillis, def: "1h", min: 1000, max: day, to: &s.Backup.Timeout,
			help: "Time after which a backup has failed, and its command is ended."},
		{key: "backup.keepCount", kind: kindInt, def: "14", min: 0, max: maxInt, to: &s.Backup.KeepCount,
			help: "Backups that are kept in the directory; 0 is all."},
		{key: "backup.keepAge", kind: kindMillis, def: "0", min: 0, max: 3650 * day, to: &s.Backup.KeepAge,
			help: "Age from which on a backup is removed from the directory, except the newest; 0 is never."},
	}
}

func mirrorRows(s *Settings) []setting {
	return []setting{
		{key: "mirror.from", kind: kindWordList, to: &s.Mirror.From,
			help: "Voters of a ZooKeeper ensemble, `host:peerPort,...`, which an ensemble that is empty mirrors from " +
				"its start on, as `zk-lite mirror` begins it. It has no effect where there are znodes."},
		{key: "mirror.config", kind: kindText, to: &s.Mirror.Config,
			help: "A zoo.cfg of that ensemble with `sslQuorum` and `ssl.quorum.*`, or `quorum.auth.*` and " +
				"`" + JAASKey + "`: how a mirror proves itself to its servers. Default: neither TLS nor SASL."},
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

// retiredRows are settings of the last release that this one accepts without effect.
func retiredRows() (rows []setting) {
	for _, key := range []string{"raft.fastFailover", "raft.commitPush", "log.overlapSync"} {
		rows = append(rows, setting{key: key, kind: kindRetired, help: "No longer has any effect."})
	}
	return rows
}
