package config

import (
	"slices"
	"strings"
)

// verdict is how a key of ZooKeeper's that is no setting here is treated.
type verdict int

const (
	tuning    verdict = iota + 1 // accepted; one Notice for all of them together
	ignored                      // accepted with a Notice, unless the value is harmless
	refused                      // an error, unless the value is harmless, false, no or off
	forbidden                    // an error, unless the value is harmless
)

// foreign is a family of keys of ZooKeeper's that are no settings here.
type foreign struct {
	verdict verdict
	// keys are names, or beginnings of names when they end in *.
	keys []string
	// why goes after "zk-lite ..."; for a refusal it includes the remedy.
	why string
	// harmless are the values, separated by blanks, that ask for what zk-lite does anyway.
	harmless string
}

// off reports whether a value asks for nothing that zk-lite does not do anyway.
func (f *foreign) off(value string) bool {
	v := strings.ToLower(value)
	return f.verdict == refused && (v == "false" || v == "no" || v == "off") ||
		slices.Contains(strings.Fields(f.harmless), v)
}

// matches reports whether the family has a key.
func (f *foreign) matches(key string) bool {
	return slices.ContainsFunc(f.keys, func(k string) bool {
		if beginning, ok := strings.CutSuffix(k, "*"); ok {
			return strings.HasPrefix(key, beginning)
		}
		return k == key
	})
}

// foreignKeys follows the parameters of ZooKeeper's Administrator's Guide and the
// system properties of its source. The first family that matches counts.
func foreignKeys() []foreign {
	return slices.Concat(refusedKeys(), ignoredKeys(), tuningKeys())
}

// oneVote is why there are neither groups nor weights: Raft's majorities count servers, and a vote that weighs nothing
// would become one that counts.
const oneVote = "gives each voter one vote, so the key would change what a majority is; remove it. A server that is " +
	"to have no vote is an observer (server.N=...:observer), and an ensemble that is to outlive a site has its " +
	"voters on three"

// familyOf is the family of a key; nil: none.
func familyOf(key string) *foreign {
	for _, f := range foreignKeys() {
		if f.matches(key) {
			return &f
		}
	}
	return nil
}

func refusedKeys() []foreign {
	return []foreign{
		{refused, []string{"ssl.quorum.ocsp"},
			"asks no OCSP server during a handshake; use ssl.quorum.crl, or certificates with a short life", ""},
		{forbidden, []string{"ssl.quorum.context.supplier.class"}, "runs no Java classes; remove the key", ""},
		{refused, []string{"ssl.ocsp"},
			"asks no OCSP server during a handshake; use ssl.crl, or certificates with a short life", ""},
		{refused, []string{"ssl.allowReverseDnsLookup", "ssl.quorum.allowReverseDnsLookup"},
			"does not look up the name of a client's address, which the owner of the address chooses; put the " +
				"address into the certificate", ""},
		{forbidden, []string{"ssl.context.supplier.class"}, "runs no Java classes; remove the key", ""},
		{forbidden, []string{"ssl.authProvider"}, "has the provider x509 only; remove the key", "x509"},
		{refused, []string{"quorum.auth.*"},
			"has no SASL between servers; remove the key, and set sslQuorum=true", ""},
		{forbidden, []string{"authProvider"}, "needs a name: authProvider.NAME=CLASS, for ZooKeeper's own classes", ""},
		{forbidden, []string{"security.auth_to_local"},
			"maps no Kerberos names to others; write whole names into ACLs, or shorten them by " +
				"kerberos.removeHostFromPrincipal and removeRealmFromPrincipal", "default"},
		{refused, []string{"letAnySaslUserDoX"}, "gives no SASL user more rights than the ACLs do; remove the key", ""},
		{forbidden, []string{"weight.*"}, oneVote, "1"},
		{forbidden, []string{"group.*"}, oneVote, ""},
		{forbidden, []string{"oraclePath"},
			"asks no oracle which of two servers may go on alone; remove the key, and add a third voter, which may " +
				"be a small machine", ""},
	}
}

// ignoredKeys are those whose owner may rely on an effect that does not come.
func ignoredKeys() []foreign {
	return []foreign{
		{ignored, []string{"largeRequestThreshold"},
			"bounds all requests that have arrived in part (largeRequestMaxBytes), whatever their size", "-1"},
		{ignored, []string{"IPAuthenticationProvider.*"},
			"takes the address of the connection for the client's, also behind a proxy", "false"},
		{ignored, []string{"admin.snapshot.enabled", "admin.restore.enabled"},
			"has its own backup and restore on the HTTP port, for administrators", ""},
		{ignored, []string{"ssl.quorum.protocol", "ssl.quorum.enabledProtocols", "ssl.quorum.ciphersuites"},
			"speaks TLS 1.3 between servers", "tlsv1.3"},
		{ignored, []string{"ssl.quorum.clientAuth", "ssl.quorum.clientHostnameVerification"},
			"has servers show certificates that name their hosts (ssl.quorum.hostnameVerification)", "need true"},
		{tuning, []string{"ssl.quorum.handshakeDetectionTimeoutMillis", "ssl.quorum.sslProvider"},
			"needs no such tuning", ""},
		{ignored, []string{"leaderServes"}, "lets the leader serve clients", "yes"},
		{ignored, []string{"metricsProvider.*"},
			"has its metrics at /metrics of the HTTP port (admin.serverPort), for all who reach it " +
				"(admin.serverAddress), and by mntr",
			"org.apache.zookeeper.metrics.impl.defaultmetricsprovider " +
				"org.apache.zookeeper.metrics.impl.nullmetricsprovider"},
		{ignored, []string{"multiAddress.enabled"}, "uses one address per server", "false"},
		{ignored, []string{"forceSync"}, "always syncs before it acknowledges", "yes"},
		{ignored, []string{"emulate353TTLNodes"},
			"has TTL znodes in ZooKeeper's current format only", "false"},
	}
}

// tuningKeys ask for nothing that a client or an owner would miss.
func tuningKeys() []foreign {
	return []foreign{
		{tuning, []string{"electionAlg"}, "elects and replicates with Raft", "3"},
		{tuning, []string{"electionPort*", "fastleader.*", "cnxTimeout",
			"quorumCnxnTimeoutMs", "quorum.cnxn.threads.size", "observer.*", "leader.*", "learner.*",
			"follower.*", "leaderConnectDelayDuringRetryMs", "connectToLearnerMasterLimit",
			"maxConcurrentSnapSyncs", "maxConcurrentDiffSyncs", "maxTimeToWaitForEpoch",
			"forceSnapshotSync", "forward_learner_requests_to_commit_processor_disabled",
			"testingonly.*", "test.*"},
			"elects and replicates with Raft", ""},
		{tuning, []string{"observerMasterPort", "observerMaster.*"},
			"replicates to observers from the leader", ""},
		{tuning, []string{"syncEnabled"}, "lets observers store what they receive", "true"},
		{tuning, []string{"multiAddress.*"}, "uses one address per server", ""},
		{tuning, []string{"autopurge.purgeInterval"},
			"removes old snapshots and log segments as soon as a newer snapshot is complete", ""},
		{tuning, []string{"preAllocSize", "snapSizeLimitInKb", "snapshotSizeFactor",
			"txnLogSizeLimitInKb", "commitLogCount", "fsync.warningthresholdms", "snapshot.*",
			"db.autocreate", "datadir.autocreate", "digest.enabled",
			"serializeLastProcessedZxid.enabled", "closeSessionTxn.enabled", "bitHashCacheSize"},
			"has its own file format, always complete and checked", ""},
		{tuning, []string{"flushDelay", "maxBatchSize", "maxWriteQueuePollTime", "commitProcessor.*",
			"request_stale_*", "request_throttle_drop_stale", "request_throttle_stall_time", "request_throttler.*",
			"requestThrottleStallTime", "requestThrottleDropStale", "requestStale*", "request.timeout",
			"throttled_op_wait_time", "throttledOpWaitTime", "connection_throttle_local_session_weight",
			"maxResponseCacheSize", "maxGetChildrenResponseCacheSize", "intBufferStartingSizeBytes",
			"watchManagerName", "watcherClean*", "maxInProcessingDeadWatchers",
			"enableEagerACLCheck", "jute.maxbuffer.extrasize"},
			"needs no such tuning; its own limits are the settings limits.*", ""},
		{tuning, []string{"serverCnxnFactory", "nio.numSelectorThreads", "nio.numWorkerThreads",
			"nio.directBufferBytes", "nio.shutdownTimeout", "netty.advancedFlowControl.enabled",
			"netty.server.earlyDropSecureConnectionHandshakes", "clientCnxnSocket",
			"advancedFlowControlEnabled", "disableAutoWatchReset",
			"shuffleDnsResponse", "hostProvider.*", "client.secure", "ssl.sslProvider",
			"ssl.handshakeDetectionTimeoutMillis"},
			"has its own network code", ""},
		{tuning, []string{"tcpKeepAlive"}, "always has TCP's keep-alive on between servers", "true"},
		{tuning, []string{"clientTcpKeepAlive"},
			"has TCP's keep-alive off for clients, because they send pings", "false"},
		{tuning, []string{"jvm.*", "jdk.*", "sun.*", "com.sun.*", "jmx.*", "log4j.*", "root.logger",
			"console.threshold", "kinit", "jaasLoginRenew", "requireKerberosConfig",
			"kerberos.canonicalizeHostNames", "kerberos.minReLoginTimeMs", "sasl.client*", "server.principal",
			"server.realm", "java.security.krb5.*", "java.net.*", "java.io.*"},
			"runs on no Java virtual machine, and asks no KDC for anything", ""},
		{tuning, []string{"pathStats.*", "messageTracker.*", "audit.impl.class"},
			"has its own reports (zk-lite top, zk-lite slow, audit.*)", ""},
		{tuning, []string{"controllerPort"}, "has no controller, which is a test of ZooKeeper's own", ""},
		{tuning, []string{"admin.commandURL", "admin.idleTimeout", "admin.httpVersion",
			"admin.rateLimiterIntervalInMS"},
			"has an HTTP API of its own", ""},
	}
}

// nearest is the known name with the fewest edits from key, "" when none is
// near enough to be meant.
func nearest(key string, names []string) string {
	if len(key) > 100 {
		return "" // nothing known is as long
	}
	best, at := "", max(2, len(key)/3)+1
	for _, name := range names {
		if d := distance(strings.ToLower(key), strings.ToLower(name)); d < at {
			best, at = name, d
		}
	}
	return best
}

// distance is Levenshtein's.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
