package config

import (
	"os"
	"strings"
	"testing"
)

// TestLoad_Errors holds the exact messages. A row's text is a zoo.cfg, to which
// dataDir is added unless it starts with a minus sign.
func TestLoad_Errors(t *testing.T) {
	three := "server.1=a:1:2\nserver.2=b:1:2\nserver.3=c:1:2\n"
	tests := []struct {
		cfg, want string
		args      []string
	}{
		{"-tickTime=2000", "zoo.cfg: dataDir: is missing; name the directory for the data, " +
			"as in dataDir=/var/lib/zookeeper", nil},
		{"tickTime=abc", `zoo.cfg:1: tickTime: "abc" is neither a number of milliseconds ` +
			`nor a duration such as 90s`, nil},
		{"\n\ntickTime=2000 # ms", `zoo.cfg:3: tickTime: "2000 # ms" is neither a number of ` +
			`milliseconds nor a duration such as 90s; a comment needs a line of its own`, nil},
		{"tickTime=0", "zoo.cfg:1: tickTime: 0 is out of range; want 1 to 3600000", nil},
		{"tickTime=1us", "zoo.cfg:1: tickTime: 1us is out of range; want whole milliseconds, 1 to 3600000",
			nil},
		{"tickTime=-5s", "zoo.cfg:1: tickTime: -5s is out of range; want whole milliseconds, " +
			"1 to 3600000", nil},
		{"minSessionTimeout=0", "zoo.cfg:1: minSessionTimeout: 0 is out of range; want 1 to 86400000, " +
			"or -1 for the default", nil},
		{"clientPort=65536", "zoo.cfg:1: clientPort: 65536 is out of range; want 0 to 65535", nil},
		{"clientPort=99999999999999999999", "zoo.cfg:1: clientPort: 99999999999999999999 is out of " +
			"range; want 0 to 65535", nil},
		{"clientPort=2181!", `zoo.cfg:1: clientPort: "2181!" is not a number; ` +
			`a comment needs a line of its own`, nil},
		{"limits.outboxBytes=9999999999GiB", "zoo.cfg:1: limits.outboxBytes: 9999999999GiB is out of " +
			"range; want 65536 to 1099511627776", nil},
		{"admin.serverAddress=0.0.0.0:8080", `zoo.cfg:1: admin.serverAddress: "0.0.0.0:8080" is neither ` +
			`a host name nor an IP address; want one without a port`, nil},
		{"enforceQuota=maybe", `zoo.cfg:1: enforceQuota: "maybe" is neither true nor false`, nil},
		{"standaloneEnabled=yes", `zoo.cfg:1: standaloneEnabled: "yes" is neither true nor false`, nil},
		{"admin.enableServer=off", `zoo.cfg:1: admin.enableServer: "off" is neither true nor false`, nil},
		{"log.store=bolt", `zoo.cfg:1: log.store: "bolt" is not known; want raftlog or boltdb`, nil},
		{"logger.level=loud", `zoo.cfg:1: logger.level: "loud" is no level; ` +
			`want debug, info, warn or error`, nil},
		{"superDigest=super:secret", "zoo.cfg:1: superDigest: the value is not of the form USER:HASH " +
			"(it is not repeated here); `zk-lite digest` makes one", nil},
		{"superDigest=super:AAAA", "zoo.cfg:1: superDigest: the value is not of the form USER:HASH with a hash of " +
			"SHA1 (it is not repeated here); `zk-lite digest` makes one", nil},
		{"minSessionTimeout=50000", "zoo.cfg:1: minSessionTimeout: 50000 ms is more than " +
			"maxSessionTimeout, 40000 ms; the defaults are 2 and 20 times tickTime", nil},

		{"clientprot=2181", "zoo.cfg:1: clientprot: unknown key; did you mean clientPort?", nil},
		{"autopurge.snapRetainCont=3", "zoo.cfg:1: autopurge.snapRetainCont: unknown key; " +
			"did you mean autopurge.snapRetainCount?", nil},
		{"frobnicate.everything=1", "zoo.cfg:1: frobnicate.everything: unknown key; " +
			"docs/reference/settings.md lists the known ones", nil},
		{"=2181", "zoo.cfg:1: no key before the separator", nil},
		{"dataLogDir=\\u12", `zoo.cfg:1: incomplete escape \u12; four hexadecimal digits follow \u`, nil},

		{"secureClientPort=2281\nssl.clientAuth=none", "zoo.cfg:1: ssl.keyStore.location: is missing, and a port is " +
			"to speak TLS; name a file with a private key and its certificate; " +
			"`zk-lite tls init` and `zk-lite tls issue` make one", nil},
		{"ssl.keyStore.location=/k\nclient.portUnification=true", "zoo.cfg: ssl.trustStore.location: is missing, and " +
			"clients are asked for certificates (ssl.clientAuth=need); " +
			"name a file with the authorities that sign them, or set ssl.clientAuth=none", nil},
		{"ssl.keyStore.location=/k\nadmin.needClientAuth=true", "zoo.cfg:2: ssl.trustStore.location: is missing, and " +
			"HTTP clients must show certificates; name a file with the authorities that sign them", nil},
		{"ssl.enabledProtocols=TLSv1.4", `zoo.cfg:1: ssl.enabledProtocols: "TLSv1.4" is no version of TLS; ` +
			"want TLSv1.2 or TLSv1.3", nil},
		{"ssl.protocol=TLSv1.1", "zoo.cfg:1: ssl.protocol: no version is left that zk-lite speaks; " +
			"want TLSv1.2 or TLSv1.3", nil},
		{"ssl.ciphersuites=TLS_RSA_WITH_RC4_128_SHA", "zoo.cfg:1: ssl.ciphersuites: no cipher suite is left that " +
			"zk-lite has; want some of TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, " +
			"TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, ...", nil},
		{"ssl.clientAuth=maybe", `zoo.cfg:1: ssl.clientAuth: "maybe" is not known; want none or want or need`, nil},
		{"zookeeper.ssl.trustore.location=/t", "zoo.cfg:1: zookeeper.ssl.trustore.location: unknown key; " +
			"did you mean ssl.trustStore.location?", nil},
		{"ssl.ocsp=true", "zoo.cfg:1: ssl.ocsp: zk-lite asks no OCSP server during a handshake; use ssl.crl, or " +
			"certificates with a short life", nil},
		{"sslQuorum=true\nssl.quorum.trustStore.location=/t", "zoo.cfg:1: ssl.quorum.keyStore.location: is missing, and " +
			"servers are to speak TLS; name a file with a private key and its certificate; `zk-lite tls init` and " +
			"`zk-lite tls issue` make one", nil},
		{"portUnification=true\nssl.quorum.keyStore.location=/k\nssl.quorum.trustStore.location=/t", "zoo.cfg:1: peer.tls: is on, and portUnification is to " +
			"take certificates of ssl.quorum.*; set sslQuorum=true, or begin with an ensemble that has peer.tls=false", nil},
		{"portUnification=true\npeer.tls=false\nssl.quorum.keyStore.location=/k", "zoo.cfg:1: ssl.quorum.trustStore.location: is missing, " +
			"and servers must show certificates; name a file with the authorities that sign them; `zk-lite tls init` " +
			"and `zk-lite tls issue` make one", nil},
		{"authProvider.x=com.example.Own", `zoo.cfg:1: authProvider.x: zk-lite runs no Java classes, and has nothing ` +
			`like "com.example.Own"; it has the providers Digest, IP, X509, SASL and Ensemble of ` +
			"org.apache.zookeeper.server.auth", nil},
		{"enforce.auth.enabled=true", "zoo.cfg:1: enforce.auth.schemes: is missing, and enforce.auth.enabled is true; " +
			"name schemes: digest, x509, sasl, token, ip", nil},
		{"enforce.auth.enabled=true\nenforce.auth.schemes=x509", "zoo.cfg:2: enforce.auth.schemes: x509 needs a port " +
			"with TLS; set secureClientPort, for one", nil},
		{"admin.identities=CN=ops", `zoo.cfg:1: admin.identities: "CN=ops" is no identity; ` +
			"want digest:USER:HASH, x509:SUBJECT, sasl:NAME or token:NAME", nil},
		{"skipACL=maybe", `zoo.cfg:1: skipACL: "maybe" is neither yes nor no`, nil},
		{"quorum.auth.enableSasl=true", "zoo.cfg:1: quorum.auth.enableSasl: zk-lite has no " +
			"SASL between servers; remove the key, and set sslQuorum=true", nil},
		{"enforce.auth.enabled=true\nenforce.auth.schemes=sasl", "zoo.cfg:2: enforce.auth.schemes: sasl needs users; " +
			"set java.security.auth.login.config", nil},
		{"letAnySaslUserDoX=bob", "zoo.cfg:1: letAnySaslUserDoX: zk-lite gives no SASL user more rights than the ACLs do; " +
			"remove the key", nil},
		{"security.auth_to_local=RULE:[1:$1]", "zoo.cfg:1: security.auth_to_local: zk-lite maps no Kerberos names to " +
			"others; write whole names into ACLs, or shorten them by kerberos.removeHostFromPrincipal and " +
			"removeRealmFromPrincipal", nil},
		{"DigestAuthenticationProvider.digestAlg=MD5", `zoo.cfg:1: DigestAuthenticationProvider.digestAlg: "MD5" is ` +
			"not known, or not safe; want SHA1, SHA-256, SHA-384, SHA-512, SHA3-256, SHA3-384 or SHA3-512", nil},
		{"jute.maxbuffer=44", "zoo.cfg:1: jute.maxbuffer: 44 is out of range; want 45 to 1073741824", nil},
		{"group.1=1:2:3", "zoo.cfg:1: group.1: zk-lite " + oneVote, nil},
		{"weight.1=1\nweight.2=0", "zoo.cfg:2: weight.2: zk-lite " + oneVote, nil},

		{"server.1=a:1", `zoo.cfg:1: server.1: "a:1" is not of the form ` + serverForm, nil},
		{"server.1=:1:2", `zoo.cfg:1: server.1: ":1:2" has no host; the form is ` + serverForm, nil},
		{"server.1=a:x:2", `zoo.cfg:1: server.1: peer port "x" is not a number between 1 and 65535`, nil},
		{"server.1=a:0:2", `zoo.cfg:1: server.1: peer port "0" is not a number between 1 and 65535`, nil},
		{"server.1=a:1:2:voter", `zoo.cfg:1: server.1: "voter" is no role; ` +
			`want participant or observer`, nil},
		{"server.1=a:1:2;b:c:3", `zoo.cfg:1: server.1: client part "b:c:3" is not of the form ` +
			`[host:]port`, nil},
		{"server.1=a:1:2;3;4", "zoo.cfg:1: server.1: the secure client port has a key of its own; " +
			"remove the part after the second ;, and set secureClientPort", nil},
		{"server.1=a:1:2|b:1:2", "zoo.cfg:1: server.1: several addresses for one server (|) are not " +
			"supported; name one", nil},
		{"server.1=2001:db8::1:1:2", `zoo.cfg:1: server.1: "2001:db8::1:1:2" has too many colons; ` +
			`an IPv6 address needs brackets, as in [2001:db8::1]:2888:3888`, nil},
		{"server.1=[::1:1:2", `zoo.cfg:1: server.1: "[::1:1:2" has a [ without a ]`, nil},
		{"server.1=[host]:1:2", `zoo.cfg:1: server.1: "host" in brackets is not an IP address`, nil},
		{"server.1=[::1]", `zoo.cfg:1: server.1: "[::1]" has no :port after the ]`, nil},
		{"server.-1=a:1:2", `zoo.cfg:1: server.-1: "-1" is not a server id; ` +
			`want a number from 0 to 254`, nil},
		{"server.256=a:1:2", `zoo.cfg:1: server.256: "256" is not a server id; ` +
			`want a number from 0 to 254`, nil},
		{"server.1=a:1:2\nserver.1=b:1:2", "zoo.cfg:2: server.1: appears more than once; " +
			"give every server an id of its own", nil},
		{"server.1=a:1:2\nserver.2=A:1:3", "zoo.cfg:2: server.2: peer address a:1 is also that of " +
			"server.1; give every server an address of its own", nil},
		{"server.1=a:1:2:observer", "zoo.cfg:1: server.N: every server is an observer; " +
			"at least one must be a participant", nil},
		{"server.255=a:1:2", `zoo.cfg:1: server.255: "255" is not a server id; ` +
			`want a number from 0 to 254`, nil},
		{"standaloneEnabled=false", "zoo.cfg:1: standaloneEnabled: false asks for an ensemble, but no " +
			"server is listed; add lines server.N=..., or set standaloneEnabled=true", nil},
		{"peerType=observer", "zoo.cfg:1: peerType: an observer has no one to follow; " +
			"list the servers as server.N=..., or remove peerType", nil},
		{three, "data/myid: names no server, or is missing, so this server does not know which of the servers it is; write " +
			"the id of this machine's line there (1 for a, 2 for b, 3 for c), as in: echo N > data/myid; or give --myid or " +
			"ZK_LITE_MYID", nil},
		{three, "flag --myid: myid: 4 is not in the list of servers (1, 2, 3); " +
			"add the line server.4, or correct the id", []string{"--myid=4"}},
		{three, `flag --myid: "one" is not a server id; want a number from 0 to 254`,
			[]string{"--myid=one"}},
		{"server.1=a:1:2\nserver.2=0.0.0.0:1:2", "zoo.cfg:2: server.2: 0.0.0.0 is no address at which " +
			"another server can be reached; only this server's own line may mean all interfaces",
			[]string{"--myid=1"}},
		{"clientPort=2181\nserver.1=a:1:2;2182", "zoo.cfg:1: clientPort: 2181 is not the client port " +
			"2182 of server.1; leave clientPort out, or make them the same", nil},
		{"clientPortAddress=10.0.0.1\nserver.1=a:1:2;10.0.0.2:2182", "zoo.cfg:1: clientPortAddress: " +
			`"10.0.0.1" is not the client address "10.0.0.2" of server.1; ` +
			"leave clientPortAddress out, or make them the same", nil},
		{"admin.serverPort=2181", "zoo.cfg:1: admin.serverPort: port 2181 is also that of clientPort; " +
			"give each a port of its own", nil},
		{three + "clientPort=1", "zoo.cfg:3: server.2: port 1 is also that of clientPort; " +
			"give each a port of its own", []string{"--myid=2"}},
		{"dynamicConfigFile=gone\nserver.1=a:1:2", "zoo.cfg:2: server.1: the list of servers is in " +
			"the dynamicConfigFile; move the line there, or remove dynamicConfigFile\n" +
			"zoo.cfg:1: dynamicConfigFile: gone cannot be read: no such file or directory", nil},
		{"-dataDir=zoo.cfg", "zoo.cfg:1: dataDir: zoo.cfg: not a directory; " +
			"name a directory; it need not be there yet", nil},
		{"dataLogDir=zoo.cfg/below", "zoo.cfg:1: dataLogDir: zoo.cfg/below: not a directory; " +
			"name a directory; it need not be there yet", nil},
		{"clientPort=1", "flag --data-dir: dataDir: zoo.cfg: not a directory; " +
			"name a directory; it need not be there yet", []string{"--data-dir=zoo.cfg"}},
		{"dynamicConfigFile=zoo.cfg", "zoo.cfg:1: dynamicConfigFile: only lines server.N=... belong " +
			"into a dynamic configuration file; move the line to the file that names this one\n" +
			"zoo.cfg:2: dataDir: only lines server.N=... belong into a dynamic configuration file; " +
			"move the line to the file that names this one", nil},
		{"", `flag --server: server.N: "a:1:2" is not of the form N=` + serverForm,
			[]string{"--server=a:1:2"}},
		{"", "flag --tick-time: tickTime: 0 is out of range; want 1 to 3600000", []string{"--tick-time=0"}},
	}
	for _, tt := range tests {
		cfg := tt.cfg + "\ndataDir=data\n"
		if text, bare := strings.CutPrefix(tt.cfg, "-"); bare {
			cfg = text
		}
		_, _, err := load(t, cfg, nil, tt.args...)
		var got []string // the order of independent errors is that of the passes
		if err != nil {
			got = strings.Split(err.Error(), "\n")
		}
		want := strings.Split(tt.want, "\n")
		if !sameLines(got, want) {
			t.Errorf("%q %q\ngot  %v\nwant %v", tt.cfg, tt.args, err, tt.want)
		}
	}
}

func sameLines(a, b []string) bool {
	count := map[string]int{}
	for _, s := range a {
		count[s]++
	}
	for _, s := range b {
		count[s]--
	}
	for _, n := range count {
		if n != 0 {
			return false
		}
	}
	return true
}

func TestLoad_ConfigFileUnreadable(t *testing.T) {
	dir := t.TempDir()
	for path, want := range map[string]string{
		dir + "/none": dir + "/none: cannot be read: no such file or directory",
		dir:           dir + ": cannot be read: is a directory",
	} {
		if _, _, err := load(t, "", nil, "--config", path); err == nil || err.Error() != want {
			t.Errorf("got  %v\nwant %v", err, want)
		}
	}
	big := dir + "/big"
	if err := os.WriteFile(big, make([]byte, maxFileSize+1), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := load(t, "", map[string]string{"ZK_LITE_CONFIG": big}); err == nil ||
		!strings.Contains(err.Error(), "larger than 1048576 bytes") {
		t.Errorf("%v", err)
	}
}
