package conformance_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite docs/reference/commands.md")

// side is who has a field.
type side bool

const (
	zooKeeperHas side = true
	zkLiteHas    side = false
)

// commandDifference is what one side alone says in a four-letter word or a command of AdminServer.
type commandDifference struct {
	// in are words and commands, and fields what is in their answers; separated by blanks and by commas, with * for
	// any text.
	in, fields string
	has        side
	why        string
}

// commandDifferences is the whole table.
func commandDifferences() []commandDifference {
	const measures = "mntr, GET monitor"
	return []commandDifference{
		{measures, "*_jvm_*, jvm_*", zooKeeperHas, "there is no JVM"},
		{measures, "*commit_proc*, *commitproc_*, *commit_propagation_latency *, *propagation_latency *, *_om_*, " +
			"*proposal_*latency *, *proposal_process_time *, *quorum_ack_latency *, *prep_process*, *sync_process*, " +
			"*_issued*, *session_queue*, *final_proc_time_ms *, *write_committed_time_ms *, *learner_*, *inflight_*, " +
			"*_sync_time *, *time_waiting_empty_pool_*, *close_session_prep_time *, outstanding_changes_*, " +
			"request_commit_queued *, requests_not_forwarded_*, diff_count *, snap_count *, " +
			"quit_leading_due_to_disloyal_voter *, looking_count *, proposal_count *, commit_count *, *revalidate_count *, " +
			"*election_time *, *unavailable_time *", zooKeeperHas,
			"Zab and its chain of processors; `raft_*`, `forward_*` and `log_*` say where a write waits"},
		{measures, "*snapshottime *, snapshot_*_count *, restore_*_count *, *restore_time *, *startup_*, " +
			"*dbinittime *, digest_mismatches_count *", zooKeeperHas,
			"other files: `log_fsync_seconds`, `snapshot_last_success_timestamp_seconds`, `check_alarm`"},
		{measures, "min_readlatency *, max_readlatency *, min_updatelatency *, max_updatelatency *, min_fsynctime *, " +
			"max_fsynctime *", zooKeeperHas, "quantiles are counted, and the extremes of all requests"},
		{measures, "p*_fsynctime *", zkLiteHas, "as for latencies"},
		{measures, "connection_drop_*, connection_request_count *, *connection_token_deficit *, *request_throttle_*, " +
			"throttled_ops *, stale_*, cnxn_closed_without_zk_server_running *, sessionless_connections_expired *, " +
			"unsuccessful_handshake *, tls_handshake_exceeded *, outstanding_tls_handshake *, insecure_admin_count *, " +
			"non_mtls_*, *socket_closing_time *, *netty_*, ensemble_auth_*, unrecoverable_error_count *", zooKeeperHas,
			"other network code: `connection_rejected`, `tls_*`, `http_*`, `outbox_*`"},
		{measures, "*node_*_watch_count *, *dead_watcher*, watch_bytes *, response_packet_*", zooKeeperHas,
			"other tables of watches, and no cache of replies: they are encoded in place"},
		{measures, "*_per_namespace *", zooKeeperHas, "`zk-lite top` says who makes the load"},
		{measures, "audit_*, backup_*, check_*, descriptors_*, disk_*, draining *, election_last_*, failures_tolerated_now *, " +
			"go_*, halted *, http_*, last_zxid *, leader_changes_total *, log_*, mirror_*, op_count_*, outbox_*, peer_*, " +
			"pending_commands *, process_*, raft_*, refused_*, serving *, sessions_expired_total *, slow_*, " +
			"snapshot_failures_total *, snapshot_last_*, dns_*, tree_*", zkLiteHas,
			"its own measures; `op_count_*` are those of ZooKeeper 3.10"},
		{"envi, GET environment", "java.*", zooKeeperHas, "there is no JVM"},
		{"envi, GET environment", "go.version *", zkLiteHas, "there is Go"},
		{"dump", "Session Sets *, N expire at *, -ID", zooKeeperHas, "a follower's form, on all servers"},
		{"dump", "Global Sessions*, ID Nms", zkLiteHas, "the same"},
		{"hash", "*", zkLiteHas, "the digest of now; ZooKeeper keeps those of each 128th transaction"},
		{"GET hash", "digests []", zooKeeperHas, "the same"},
		{"GET hash", "digests[].*", zkLiteHas, "the same"},
		{"GET commands", "content ", zooKeeperHas, "the page says what it is"},
		{"GET commands", "content text/html", zkLiteHas, "the same"},
		{"GET initial_configuration, GET last_snapshot, GET observer_connection_stat_reset, GET system_properties, " +
			"GET snapshot, GET restore", "*", zooKeeperHas,
			"not offered: the settings are printed by `zk-lite server --check`, the age of the newest snapshot is the metric " +
				"`snapshot_last_success_timestamp_seconds`, backup and restore are `GET` and `POST /v1/snapshot`"},
		{"GET icfg, GET lsnp, GET orst, GET sysp, GET snap, GET rest", "the same as *", zooKeeperHas, "their other names"},
		{"GET initial_configuration, GET last_snapshot, GET observer_connection_stat_reset, GET system_properties, " +
			"GET snapshot, GET restore, GET unknown, POST unknown", "status 404, commands[] *, command *, error *, content *",
			zkLiteHas, "an unknown command is 404, with the names of those that there are"},
		{"GET unknown, POST unknown", "status 200", zooKeeperHas, "the same"},
		{"POST restore", "*", zooKeeperHas, "not offered, as above"},
		{"POST restore", "*", zkLiteHas, "what takes a body is for administrators: 401 and a problem document (RFC 9457)"},
		{"GET zabstate", "quorum_address.*, election_address.*", zooKeeperHas,
			"a server has one address, which is a text, and not the fields of a Java object"},
		{"GET zabstate", "quorum_address text, election_address text", zkLiteHas, "the same"},
		{"GET server_stats, GET stats", "server_stats.fsync_threshold_exceed_count *, server_stats.non_mtls*", zooKeeperHas,
			"not counted: `log_fsync_seconds` and the audit log say more"},
	}
}

const commandsPage = "../../docs/reference/commands.md"

// TestDocs_Commands keeps the table of docs/reference/commands.md equal to this one; -update rewrites it.
func TestDocs_Commands(t *testing.T) {
	text, err := os.ReadFile(commandsPage)
	if err != nil {
		t.Fatal(err)
	}
	const begin, end = "<!-- begin differences: written by the test of integration/conformance -->\n",
		"<!-- end differences -->"
	head, rest, ok := strings.Cut(string(text), begin)
	_, tail, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no marks for the table", commandsPage)
	}
	var b strings.Builder
	b.WriteString("| in | ZooKeeper has | zk-lite has | why |\n|---|---|---|---|\n")
	for _, d := range commandDifferences() {
		theirs, ours := code(d.fields), ""
		if d.has == zkLiteHas {
			theirs, ours = "", theirs
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", code(d.in), theirs, ours, d.why)
	}
	want := head + begin + b.String() + end + tail
	switch {
	case want == string(text):
	case !*update:
		t.Fatalf("%s differs from the table; run go test ./integration/conformance -run TestDocs -update", commandsPage)
	default:
		if err := os.WriteFile(commandsPage, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// code puts each of a list into code.
func code(list string) string {
	return "`" + strings.ReplaceAll(list, ", ", "`, `") + "`"
}
