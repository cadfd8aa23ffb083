package config

import (
	"fmt"
	"strings"

	"github.com/zk-lite/zk-lite/internal/memberdata"
)

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
		{key: "globalOutstandingLimit", kind: kindInt, def: "1000", min: 1, max: maxInt, to: &s.Consensus.MaxPending,
			help: "Most uncommitted writes of all clients, and twice the most of one client. Beyond it the server " +
				"reads no further writes; those who have written least go first."},
		{key: "session.compatiblePasswords", flag: "compatible-sessions", kind: kindBool, def: "false",
			to: &s.Server.CompatiblePasswords,
			help: "Give new sessions the passwords that ZooKeeper computes from their ids, so that they can go on " +
				"after an export. Who learns or guesses an id can then take the session over, as in ZooKeeper."},
		{key: "localSessionsEnabled", flag: "local-sessions", kind: kindBool, def: "false", to: &s.Server.LocalSessions,
			help: "Keep a new session of the ZooKeeper port on this server alone, which costs no write. It cannot " +
				"move, and ends with the server's process."},
		{key: "localSessionsUpgradingEnabled", flag: "local-sessions-upgrading", kind: kindBool, def: "false",
			to: &s.Server.UpgradeLocalSessions,
			help: "Replicate a local session when its client creates an ephemeral znode. Otherwise the create gets " +
				"EPHEMERALONLOCALSESSION."},
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
		{key: "limits.clientRequests", kind: kindInt, def: "0", min: 0, max: maxInt, to: &s.Server.Rates.Requests,
			help: "Most requests in a second of one client, by proved identity or address, on each port of this " +
				"server. More wait; over HTTP they get 429. 0: no bound, clients take turns."},
		{key: "limits.clientBytes", kind: kindBytes, def: "0", min: 0, max: 1 << 40, to: &s.Server.Rates.Bytes,
			help: "Most bytes of requests in a second of one client, likewise."},
		{key: "limits.watchesPerConnection", kind: kindInt, def: "262144", min: 1, max: maxInt,
			to:   &s.Server.WatchLimit,
			help: "Most paths that one connection can watch."},
		{key: "limits.watchBytes", kind: kindBytes, min: 1 << 20, max: 1 << 40, to: &s.Server.WatchBytes,
			help: "Memory that the watches of all connections may take. Beyond it each connection may still have " +
				"1 MiB of them. Default: a sixteenth of the memory of machine or control group."},
		{key: "limits.changesBytes", kind: kindBytes, min: 1 << 20, max: 1 << 40, to: &s.Server.ChangesWindow,
			help: "Memory of the latest changes, with their values, from which feeds and streams continue. " +
				"The oldest are forgotten beyond it. Default: 16 MiB, or a sixty-fourth of the memory of machine " +
				"or control group if that is less."},
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

func dnsRows(s *Settings) []setting {
	return []setting{
		{key: "dns.port", kind: kindPort, min: 0, max: 65535, to: &s.DNSPort,
			help: "Port, of UDP and TCP, for DNS questions about the members of groups that world:anyone may read. " +
				"Default: none. See docs/recipes.md."},
		{key: "dns.address", kind: kindHost, def: "127.0.0.1", to: &s.DNSAddress,
			help: "Address of the DNS port. On a machine with several, name one: replies over UDP may come from " +
				"another."},
		{key: "dns.domain", kind: kindText, def: "zk-lite.internal", to: &s.DNS.Domain,
			help: "Domain of the names that are answered: `w1.web.app.zk-lite.internal` is /app/web/w1."},
		{key: "dns.ttl", kind: kindMillis, def: "5000", min: 0, max: day, to: &s.DNS.TTL,
			help: "For how long others may keep an answer; DNS has whole seconds."},
	}
}

// resolveDNS checks the domain.
func (l *loader) resolveDNS() {
	to := &l.s.DNS.Domain
	domain := strings.ToLower(strings.TrimSuffix(*to, "."))
	if !memberdata.ValidHost(domain) {
		l.fail(l.where("dns-domain"), "dns.domain", fmt.Sprintf("%q is no DNS name", shorten(*to)),
			"want labels of letters, digits, - and _, with dots between them, such as zk-lite.internal")
	}
	*to = domain
}

func throttleRows(s *Settings) []setting {
	return []setting{
		{key: "connectionMaxTokens", aliases: []string{"connection_throttle_tokens"},
			kind: kindInt, def: "0", min: 0, max: maxInt, to: &s.ZooKeeper.Throttle.MaxTokens,
			help: "Sessions that may be opened at once before they are throttled; 0 is no throttle."},
		{key: "connectionTokenFillTime", aliases: []string{"connection_throttle_fill_time"},
			kind: kindMillis, def: "1", min: 1, max: day, to: &s.ZooKeeper.Throttle.FillTime,
			help: "Time after which `connectionTokenFillCount` more may."},
		{key: "connectionTokenFillCount", aliases: []string{"connection_throttle_fill_count"},
			kind: kindInt, def: "1", min: 1, max: maxInt, to: &s.ZooKeeper.Throttle.FillCount,
			help: "How many more."},
		{key: "connectionFreezeTime", aliases: []string{"connection_throttle_freeze_time"},
			kind: kindMillis, def: "-1", min: 0, max: day, minusOne: true, to: &s.ZooKeeper.Throttle.Freeze,
			help: "Time between two changes of the chance to be refused beyond that; -1 is no chance."},
		{key: "connectionDropIncrease", aliases: []string{"connection_throttle_drop_increase"},
			kind: kindFloat, def: "0.02", min: 0, max: 1, to: &s.ZooKeeper.Throttle.DropIncrease,
			help: "How much the chance rises while no session may be opened."},
		{key: "connectionDropDecrease", aliases: []string{"connection_throttle_drop_decrease"},
			kind: kindFloat, def: "0.002", min: 0, max: 1, to: &s.ZooKeeper.Throttle.Decrease,
			help: "How much it falls again."},
		{key: "connectionDecreaseRatio", aliases: []string{"connection_throttle_decrease_ratio"},
			kind: kindFloat, def: "0", min: 0, max: 1, to: &s.ZooKeeper.Throttle.DecreaseRatio,
			help: "Part of `connectionMaxTokens` that may be in use while it falls."},
		{key: "connection_throttle_weight_enabled", flag: "connection-throttle-weight-enabled",
			kind: kindBool, def: "false", to: &s.words.weighted,
			help: "Let new sessions, and those that come back, count more than one."},
		{key: "connection_throttle_global_session_weight", flag: "connection-throttle-global-session-weight",
			kind: kindInt, def: "3", min: 1, max: maxInt,
			to: &s.words.newWeight, help: "What a new session counts then."},
		{key: "connection_throttle_renew_session_weight", flag: "connection-throttle-renew-session-weight",
			kind: kindInt, def: "2", min: 1, max: maxInt, to: &s.words.renewWeight,
			help: "What a session counts that comes back."},
		{key: "requestThrottleLimit", aliases: []string{"request_throttle_max_requests"},
			kind: kindInt, def: "0", min: 0, max: maxInt, to: &s.ZooKeeper.MaxRequests,
			help: "Most requests of all clients that wait for their result; beyond it the server stops reading. " +
				"0 is no limit."},
	}
}

// resolveClientPort lets the own line's client part count, and refuses one that
// contradicts clientPort or clientPortAddress (QuorumPeerConfig.setupClientPort).
func (l *loader) resolveClientPort() {
	s := &l.s
	if own, ok := s.Own(); ok && own.ClientPort >= 0 {
		if l.given("client-port") && s.ClientPort != own.ClientPort {
			l.fail(l.where("client-port"), "clientPort",
				fmt.Sprintf("%d is not the client port %d of server.%d",
					s.ClientPort, own.ClientPort, own.ID),
				"leave clientPort out, or make them the same")
		}
		if !unspecified(s.ClientPortAddress) && s.ClientPortAddress != own.ClientHost {
			l.fail(l.where("client-port-address"), "clientPortAddress",
				fmt.Sprintf("%q is not the client address %q of server.%d",
					s.ClientPortAddress, own.ClientHost, own.ID),
				"leave clientPortAddress out, or make them the same")
		}
		s.ClientPort, s.ClientPortAddress = own.ClientPort, own.ClientHost
		l.source["client-port"], l.source["client-port-address"] = l.ownSource(own.ID), l.ownSource(own.ID)
	}
	if unspecified(s.ClientPortAddress) {
		s.ClientPortAddress = "" // so that both IPv4 and IPv6 are served, as by Java
	}
	if s.SecureClientPort == NoPort || l.given("client-port") {
		return
	}
	if s.PortUnification { // ZooKeeper's NettyServerCnxnFactory does not look at it on secureClientPort
		l.warn(l.where("client-port-unification"), "client.portUnification",
			"is about clientPort, and there is none: secureClientPort takes TLS only")
	}
	s.ClientPort = NoPort
}

// checkPorts finds two settings that want the same port of this machine.
func (l *loader) checkPorts() {
	s := &l.s
	type use struct {
		flag, key, host string
		port            int
	}
	uses := []use{
		{"client-port", "clientPort", s.ClientPortAddress, s.ClientPort},
		{"secure-client-port", "secureClientPort", s.SecureClientPortAddress, s.SecureClientPort},
	}
	if own, ok := s.Own(); ok && !s.Standalone {
		host := own.Host
		if s.QuorumListenOnAllIPs {
			host = ""
		}
		uses = append(uses, use{"server", fmt.Sprintf("server.%d", own.ID), host, own.PeerPort})
	}
	if s.AdminEnabled {
		uses = append(uses, use{"admin-server-port", "admin.serverPort", s.AdminAddress, s.AdminPort})
	}
	uses = append(uses, use{"dns-port", "dns.port", s.DNSAddress, s.DNSPort})
	for i, a := range uses {
		for _, b := range uses[:i] {
			meet := a.host == b.host || unspecified(a.host) || unspecified(b.host)
			if a.port > 0 && a.port == b.port && meet {
				l.fail(l.where(a.flag), a.key, fmt.Sprintf("port %d is also that of %s", a.port, b.key),
					"give each a port of its own")
			}
		}
	}
}

// resolveThrottle has a session count one unless weights are on.
func (l *loader) resolveThrottle() {
	if w := &l.s.words; w.weighted {
		l.s.ZooKeeper.Throttle.New, l.s.ZooKeeper.Throttle.Renewed = w.newWeight, w.renewWeight
	}
}
