package metrics

import (
	"slices"
	"strings"
)

// Metric describes a metric.
type Metric struct {
	Name   string
	Type   Type
	Unit   string // empty: it is a number of what Help names
	Help   string // a sentence
	Source string // the part of the server that has it
	// ZooKeeper is set if the name is ZooKeeper's, which stays as it is. Ours follow
	// Prometheus's rules: base units, and _total after a counter.
	ZooKeeper bool
	// LeaderOnly metrics are reported by a leader of an ensemble.
	LeaderOnly bool
}

// Type is a metric's type, in Prometheus's words.
type Type string

// The types.
const (
	Gauge     Type = "gauge"
	Counter   Type = "counter"
	Histogram Type = "histogram"
	Summary   Type = "summary" // in mntr several numbers: avg_NAME, cnt_, sum_, p50_, p95_, p99_, p999_
	untyped   Type = "untyped" // of a name that is not in the table
)

// The sources, and units.
const (
	state    = "tree and sessions"
	ensemble = "ensemble"
	logStore = "log"
	backups  = "scheduled backups"
	mirror   = "mirror of ZooKeeper"
	zkPort   = "ZooKeeper port"
	httpPort = "HTTP port"
	tlsPorts = "TLS"
	dnsPort  = "DNS port"
	process  = "process"

	seconds, millis, bytesUnit = "seconds", "milliseconds", "bytes"
)

// Table returns all metrics, by source.
func Table() []Metric { return slices.Clone(table) }

// OperationCount begins the names of the counters of each operation.
const OperationCount = "op_count_"

// Operations are the names of the operations that are counted apart, by ZooKeeper 3.10's names.
func Operations() []string {
	return []string{"add_watch", "check", "check_watches", "close_session", "create", "create_session", "delete",
		"exists", "get_acl", "get_all_children_number", "get_children", "get_data", "get_ephemerals", "multi",
		"multi_read", "ping", "reconfig", "remove_watches", "set_acl", "set_data", "set_watches", "sync", "who_am_i"}
}

// ofOperations are the counters of all operations, and of each.
func ofOperations() []Metric {
	rows := []Metric{{OperationCount + "total", Counter, "", "Requests that were answered.", zkPort, zk, false}}
	for _, name := range Operations() {
		help := "Of these, " + strings.ReplaceAll(name, "_", " ") + "."
		rows = append(rows, Metric{OperationCount + name, Counter, "", help, zkPort, zk, false})
	}
	return rows
}

const zk = true

var table = slices.Concat(firstRows, ofOperations(), lastRows)

var firstRows = []Metric{
	{"znode_count", Gauge, "", "Znodes in the tree; as in ZooKeeper the root counts twice.", state, zk, false},
	{"ephemerals_count", Gauge, "", "Ephemeral znodes in the tree.", state, zk, false},
	{"approximate_data_size", Gauge, bytesUnit, "Size of all paths and data.", state, zk, false},
	{"tree_memory_bytes", Gauge, bytesUnit, "Memory that the tree and the sessions take, about.", state, false, false},
	{"tree_memory_limit_bytes", Gauge, bytesUnit,
		"Memory that they may take: the least of all voters; 0: no limit.", state, false, false},
	{"refused_writes_total", Counter, "", "Writes refused because the tree had no room.", state, false, false},
	{"refused_acls_total", Counter, "", "Writes refused because an ACL had too many entries.", state, false, false},
	{"sessions_expired_total", Counter, "", "Sessions of the whole ensemble that have expired.", state, false, false},
	{"watch_count", Gauge, "", "Watches of this server's ZooKeeper clients.", state, zk, false},
	{"global_sessions", Gauge, "", "Sessions of the whole ensemble.", state, zk, false},
	{"local_sessions", Gauge, "", "Sessions that this server alone knows (localSessionsEnabled).", state, zk, false},
	{"last_zxid", Gauge, "", "Zxid of the last transaction that this server has applied.", state, false, false},

	{"quorum_size", Gauge, "", "Voters in the ensemble.", ensemble, zk, false},
	{"learners", Gauge, "", "Followers and observers that are connected to this leader.", ensemble, zk, true},
	{"synced_followers", Gauge, "", "Voters that are connected to this leader.", ensemble, zk, true},
	{"synced_observers", Gauge, "", "Observers that are connected to this leader.", ensemble, zk, true},
	{"synced_non_voting_followers", Gauge, "", "Always 0: a server is a voter or an observer.", ensemble, zk, true},
	{"pending_syncs", Gauge, "", "Always 0: a sync waits in the log like any other command.", ensemble, zk, true},
	{"leader_uptime", Gauge, millis, "Time since this server began to lead.", ensemble, zk, true},
	{"last_proposal_size", Gauge, bytesUnit, "Size of the last entry proposed; -1: none yet.", ensemble, zk, true},
	{"min_proposal_size", Gauge, bytesUnit, "Size of the smallest entry proposed; -1: none yet.", ensemble, zk, true},
	{"max_proposal_size", Gauge, bytesUnit, "Size of the largest entry proposed; -1: none yet.", ensemble, zk, true},
	{"failures_tolerated_now", Gauge, "",
		"Connected voters that may fail without the loss of the majority.", ensemble, false, true},
	{"serving", Gauge, "", "1 while this server serves clients, else 0.", ensemble, false, false},
	{"draining", Gauge, "", "1 while this server is drained, to be stopped, else 0.", ensemble, false, false},
	{"halted", Gauge, "", "1 if this server takes no part in its ensemble any more, else 0.", ensemble, false, false},
	{"halt_reason", Gauge, "",
		"Always 1; the label reason says why it is halted: none, removed, diverged or forked.", ensemble, false, false},
	{"check_alarm", Gauge, "", "1 if the servers' states or histories differ though they should not, else 0.",
		ensemble, false, false},
	{"check_last_index", Gauge, "",
		"Index of the last entry after which a majority had the same state as this server; 0: none yet.",
		ensemble, false, false},
	{"check_age_seconds", Gauge, seconds, "Time since that was seen; -1: never.", ensemble, false, false},
	{"check_digest_seconds", Gauge, seconds, "Duration of the last digest of the state.", ensemble, false, false},
	{"pending_commands", Gauge, "",
		"Commands of this server's clients that await their result.", ensemble, false, false},
	{"raft_role", Gauge, "", "Always 1; the label role has this server's role.", ensemble, false, false},
	{"raft_term", Gauge, "", "Raft's term.", ensemble, false, false},
	{"raft_leader", Gauge, "", "Id of the leader; -1: unknown.", ensemble, false, false},
	{"raft_last_index", Gauge, "", "Index of the last entry in this server's log.", ensemble, false, false},
	{"raft_applied_index", Gauge, "",
		"Index of the last entry that this server has applied.", ensemble, false, false},
	{"raft_contact_seconds", Gauge, seconds,
		"Time since this server last had contact with a majority; -1: never.", ensemble, false, false},
	{"raft_commit_seconds", Histogram, seconds,
		"Time from the proposal of an entry by this leader until a majority had it.", ensemble, false, false},
	{"raft_apply_seconds", Histogram, seconds, "Time that the application of a committed entry took.",
		ensemble, false, false},
	{"forward_queue_seconds", Histogram, seconds,
		"Time that the commands of this server's clients waited to be sent to the leader.", ensemble, false, false},
	{"leader_changes_total", Counter, "", "Times that this server found another leader than before.",
		ensemble, false, false},
	{"election_last_timestamp_seconds", Gauge, seconds,
		"When this server first saw the winner of the last election serve, since 1970; 0: none since its start.",
		ensemble, false, false},
	{"election_last_outage_seconds", Gauge, seconds,
		"For how long this server had seen no leader serve then: at most so long nobody was served.",
		ensemble, false, false},
	{"raft_follower_contact_seconds", Gauge, seconds,
		"Time since this leader last heard from the server of the label server.", ensemble, false, true},
	{"peer_connections_refused_total", Counter, "",
		"Connections to the peer port that were refused, or did not say who they were.", ensemble, false, false},
	{"raft_append_entries_total", Counter, "",
		"AppendEntries requests with entries that this server has sent.", ensemble, false, false},
	{"raft_heartbeats_total", Counter, "", "Heartbeats of Raft that this server has sent.", ensemble, false, false},
	{"raft_commit_pushes_total", Counter, "",
		"Commit indexes that this leader has sent to followers at once.", ensemble, false, false},
	{"raft_commit_push_failures_total", Counter, "",
		"Commit indexes that could not be sent to a follower at once.", ensemble, false, false},
	{"raft_disk_stalls_total", Counter, "",
		"Requests to followers that were not sent because this server's disk had stalled.", ensemble, false, false},
	{"raft_stale_snapshots_total", Counter, "",
		"Snapshots that were not installed, because this server had all that they hold.", ensemble, false, false},
	{"raft_fast_elections_total", Counter, "",
		"Elections that this server has started because the leader's process had ended.", ensemble, false, false},

	{"disk_fault", Gauge, "",
		"1 if the last write of this server's log, vote or term failed, or its data directory is gone, else 0.",
		logStore, false, false},
	{"log_fsyncs_total", Counter, "", "Times that the log was synced to disk.", logStore, false, false},
	{"log_fsync_seconds", Histogram, seconds, "Time that a sync of the log took.", logStore, false, false},
	{"fsynctime", Summary, millis, "The same as ZooKeeper reports it.", logStore, zk, false},
	{"log_fsync_last_seconds", Gauge, seconds, "Duration of the last sync of the log.", logStore, false, false},
	{"log_fsync_max_seconds", Gauge, seconds,
		"Duration of the longest sync of the log since the start.", logStore, false, false},
	{"raft_log_bytes", Gauge, bytesUnit, "Size of the log on disk.", logStore, false, false},
	{"raft_log_segments", Gauge, "", "Files that the log consists of.", logStore, false, false},
	{"raft_log_first_index", Gauge, "",
		"Index of the oldest entry in the log; 0: it is empty.", logStore, false, false},
	{"raft_log_last_index", Gauge, "",
		"Index of the newest entry in the log on disk; 0: it is empty.", logStore, false, false},

	{"disk_free_bytes", Gauge, bytesUnit, "Room on the disk of the label directory: of the data, or of backups.",
		logStore, false, false},
	{"snapshot_last_success_timestamp_seconds", Gauge, seconds,
		"When this server wrote its newest snapshot, since 1970; 0: it has none.", logStore, false, false},
	{"snapshot_failures_total", Counter, "", "Snapshots that this server could not write.", logStore, false, false},
	{"backups_total", Counter, "", "Scheduled backups that this server has taken and verified.", backups, false, false},
	{"backup_failures_total", Counter, "", "Scheduled backups of this server that have failed.", backups, false, false},
	{"backup_last_success_timestamp_seconds", Gauge, seconds,
		"When the last good backup was begun that this server knows of, since 1970; 0: it knows of none.", backups,
		false, false},
	{"backup_downloads_total", Counter, "", "Backups that were taken from this server over HTTP.",
		logStore, false, false},
	{"backup_download_failures_total", Counter, "", "Backups over HTTP that were begun and not delivered.",
		logStore, false, false},

	{"mirror_on", Gauge, "", "1 while the ensemble mirrors a ZooKeeper ensemble, else 0.", mirror, false, false},
	{"mirror_following", Gauge, "",
		"1 if this server, as the leader, is connected to that ensemble and up to date, else 0.",
		mirror, false, false},
	{"mirror_stopped", Gauge, "", "1 if the mirror has stopped, until the operator begins it again.",
		mirror, false, false},
	{"mirror_zxid", Gauge, "", "Zxid of that ensemble's last transaction that this server has applied.",
		mirror, false, false},
	{"mirror_origin_zxid", Gauge, "", "Zxid of its last transaction that is known here; 0: none.",
		mirror, false, false},
	{"mirror_relays", Gauge, "", "Writes, syncs and moves of clients' sessions that wait for that ensemble's answer.",
		mirror, false, false},
	{"mirror_lag_seconds", Histogram, seconds,
		"Time from the stamp of its leader until a transaction was applied here.", mirror, false, false},
	{"mirror_transactions_total", Counter, "", "Transactions that this server has followed.", mirror, false, false},
	{"mirror_connections_total", Counter, "", "Connections to that ensemble's leader.", mirror, false, false},
	{"mirror_snapshots_total", Counter, "", "Its states that this server has received and loaded.",
		mirror, false, false},
	{"mirror_digests_compared", Gauge, "", "Its digests that were compared since the mirror was begun.",
		mirror, false, false},
	{"mirror_digests_differing", Gauge, "", "Those of them that were not those of our znodes.", mirror, false, false},

	// srst resets those from here to max_client_response_size.
	{"avg_latency", Gauge, millis, "Mean time from a request's arrival to its reply.", zkPort, zk, false},
	{"min_latency", Gauge, millis, "Shortest time from a request's arrival to its reply.", zkPort, zk, false},
	{"max_latency", Gauge, millis, "Longest time from a request's arrival to its reply.", zkPort, zk, false},
	{"packets_received", Counter, "", "Requests received.", zkPort, zk, false},
	{"packets_sent", Counter, "", "Replies and notifications sent.", zkPort, zk, false},
	{"bytes_received_count", Counter, bytesUnit, "Size of all requests.", zkPort, zk, false},
	{"response_bytes", Counter, bytesUnit, "Size of all replies and notifications.", zkPort, zk, false},
	{"last_client_response_size", Gauge, bytesUnit, "Size of the last reply; -1: none yet.", zkPort, zk, false},
	{"min_client_response_size", Gauge, bytesUnit, "Size of the smallest reply; -1: none yet.", zkPort, zk, false},
	{"max_client_response_size", Gauge, bytesUnit, "Size of the largest reply; -1: none yet.", zkPort, zk, false},
	{"num_alive_connections", Gauge, "", "Open connections.", zkPort, zk, false},
	{"outstanding_requests", Gauge, "", "Requests that are not answered yet.", zkPort, zk, false},
	{"connection_rejected", Counter, "", "Connections that were closed because of a limit.", zkPort, zk, false},
	{"large_requests_rejected", Counter, "",
		"Connections that were closed because a request that had arrived in part took room that others needed.",
		zkPort, zk, false},
	{"request_duration_seconds", Histogram, seconds,
		"Time from a request's arrival to its reply, by kind: read, write or ping.", zkPort, false, false},
	{"readlatency", Summary, millis, "The same of reads.", zkPort, zk, false},
	{"updatelatency", Summary, millis, "The same of writes.", zkPort, zk, false},
	{"operation_duration_seconds", Histogram, seconds, "Time from a request's arrival to its reply, by operation.",
		zkPort, false, false},
}

// lastRows are what follows the counters of operations.
var lastRows = []Metric{
	{"outbox_bytes", Gauge, bytesUnit, "Replies and events that wait for clients.", zkPort, false, false},
	{"outbox_overflows_total", Counter, "", "Clients disconnected because they did not read.", zkPort, false, false},
	{"refused_replies_total", Counter, "", "Requests refused for a reply that is too long.", zkPort, false, false},
	{"auth_failed_count", Counter, "", "Authentications that failed.", zkPort, zk, false},

	{"http_requests_total", Counter, "",
		"Requests that were answered, by method, route and status code.", httpPort, false, false},
	{"http_request_duration_seconds", Histogram, seconds,
		"Time until the answer began; a long poll's includes its wait.", httpPort, false, false},
	{"http_streams", Gauge, "", "Streams and long polls that are open.", httpPort, false, false},
	{"http_writes", Gauge, "", "Commands of HTTP clients that await their result.", httpPort, false, false},
	{"http_body_bytes", Gauge, bytesUnit, "Memory that the bodies of HTTP requests take.", httpPort, false, false},

	{"tls_certificate_expiry_seconds", Gauge, seconds,
		"Time until this server's certificate expires; negative: since then.", tlsPorts, false, false},
	{"tls_reloads_total", Counter, "", "Changes of the TLS files that are in use.", tlsPorts, false, false},
	{"tls_reload_failures_total", Counter, "",
		"Changes of the TLS files that could not be used.", tlsPorts, false, false},
	{"tls_peer_certificate_expiry_seconds", Gauge, seconds,
		"Time until the certificate that it shows other servers expires.", tlsPorts, false, false},
	{"tls_peer_reloads_total", Counter, "",
		"Changes of the `ssl.quorum.*` files that are in use.", tlsPorts, false, false},
	{"tls_peer_reload_failures_total", Counter, "",
		"Changes of the `ssl.quorum.*` files that could not be used.", tlsPorts, false, false},
	{"tls_handshakes_total", Counter, "", "TLS handshakes that succeeded.", tlsPorts, false, false},
	{"tls_handshake_failures_total", Counter, "", "TLS handshakes that failed.", tlsPorts, false, false},
	{"tls_handshakes_refused_total", Counter, "",
		"Clients that were disconnected because too many handshakes were unfinished.", tlsPorts, false, false},

	{"dns_questions_total", Counter, "", "DNS questions that had a reply.", dnsPort, false, false},
	{"dns_limited_total", Counter, "",
		"Those that had none but that there are too many of one network.", dnsPort, false, false},

	{"audit_events_left_out_total", Counter, "",
		"Events that are not in the audit log, because its disk was too slow or has refused them.",
		process, false, false},
	{"uptime", Gauge, millis, "Time since the start of the server.", process, zk, false},
	{"open_file_descriptor_count", Gauge, "", "Open file descriptors of the process.", process, zk, false},
	{"max_file_descriptor_count", Gauge, "", "Limit of the process's open file descriptors.", process, zk, false},
	{"slow_requests_total", Counter, "", "Requests of both ports that were slow (`logger.slowRequests`).",
		process, false, false},
	{"descriptors_refused_total", Counter, "",
		"Clients of both ports that were refused, since the process may open too few files.",
		process, false, false},
	{"process_start_time_seconds", Gauge, seconds, "When the process started, since 1970.", process, false, false},
	{"process_cpu_seconds_total", Counter, seconds, "CPU time that the process has used.", process, false, false},
	{"process_resident_memory_bytes", Gauge, bytesUnit,
		"Memory of the process that is not paged out; 0: not known on this system.", process, false, false},
	{"go_goroutines", Gauge, "", "Goroutines of the process.", process, false, false},
	{"zk_lite_info", Gauge, "", "Always 1; the label version has version and commit.", process, false, false},
}
