package config

import (
	"crypto/tls"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/zk-lite/zk-lite/internal/tlsfiles"
)

func tlsRows(s *Settings) []setting {
	rows := []setting{
		{key: "secureClientPort", kind: kindPort, min: 0, max: 65535, to: &s.SecureClientPort,
			help: "Port for ZooKeeper clients that speak TLS; 0 is any free port. Without `clientPort` it is the " +
				"only one."},
		{key: "secureClientPortAddress", kind: kindHost, to: &s.SecureClientPortAddress,
			help: "Address of that port. Default: all interfaces."},
		{key: "client.portUnification", kind: kindBool, def: "false", to: &s.PortUnification,
			help: "Take clients with and without TLS on `clientPort`."},
	}
	rows = append(rows, storeRows("ssl.", "keyStore", &s.TLS.Key,
		"File with this server's private key and its certificates: PEM, PKCS12 or JKS.")...)
	rows = append(rows, storeRows("ssl.", "trustStore", &s.TLS.Trust,
		"File with the certificates of the authorities that clients' certificates must lead to.")...)
	return append(append(rows, protocolRows(s)...), verifyRows(s)...)
}

func protocolRows(s *Settings) []setting {
	return []setting{
		{key: "ssl.protocol", kind: kindText, to: &s.words.protocol,
			help: "The only version of TLS, TLSv1.2 or TLSv1.3, unless `ssl.enabledProtocols` is given."},
		{key: "ssl.enabledProtocols", kind: kindText, def: "TLSv1.3,TLSv1.2", to: &s.words.protocols,
			help: "Versions of TLS, separated by commas: TLSv1.2, TLSv1.3."},
		{key: "ssl.ciphersuites", kind: kindText, to: &s.words.suites,
			help: "Cipher suites of TLS 1.2, separated by commas. Default: Go's. Those of TLS 1.3 are always all " +
				"allowed."},
	}
}

func verifyRows(s *Settings) []setting {
	return []setting{
		{key: "ssl.clientAuth", kind: kindChoice, def: ClientAuthNeed,
			choices: []string{ClientAuthNone, ClientAuthWant, ClientAuthNeed}, to: &s.TLS.ClientAuth,
			help: "Whether clients with TLS on the ZooKeeper port show a certificate: never, if they like, always."},
		{key: "ssl.hostnameVerification", kind: kindBool, def: "true", to: &s.words.checkHost,
			help: "With `false`, `ssl.clientHostnameVerification` has no effect, as in ZooKeeper. No other effect on " +
				"servers."},
		{key: "ssl.clientHostnameVerification", kind: kindBool, def: "false", to: &s.TLS.CheckClientHost,
			help: "Take only certificates of clients that name the address that the client comes from."},
		{key: "ssl.crl", kind: kindBool, def: "false", to: &s.TLS.CheckCRL,
			help: "Refuse revoked certificates. Each authority must have a list in force in the trust store (PEM) or " +
				"in `ssl.crl.location`; lists are not fetched."},
		{key: "ssl.crl.location", kind: kindText, to: &s.TLS.CRLs,
			help: "File with lists of revoked certificates (PEM, `X509 CRL`)."},
		{key: "client.certReload", kind: kindBool, def: "true", to: &s.TLS.Reload,
			help: "Follow the files of `ssl.*` while running (ZooKeeper: false)."},
		{key: "netty.server.outstandingHandshake.limit", aliases: []string{"outstandingHandshake.limit"},
			flag: "outstanding-handshake-limit", kind: kindInt, def: "5000", min: -1, max: maxInt,
			to:   &s.TLS.Handshakes,
			help: "Most unfinished TLS handshakes of all ports; beyond it a client is disconnected. -1 is no limit."},
		{key: "admin.forceHttps", flag: "admin-force-https", kind: kindBool, def: "false", to: &s.AdminForceHTTPS,
			help: "Speak only TLS on the HTTP port, with the files of `ssl.*` (ZooKeeper: `ssl.quorum.*`)."},
		{key: "admin.portUnification", kind: kindBool, def: "false", to: &s.AdminPortUnification,
			help: "Speak HTTP with and without TLS on the HTTP port."},
		{key: "admin.needClientAuth", kind: kindBool, def: "false", to: &s.AdminNeedClientAuth,
			help: "Take only HTTP clients with TLS and a certificate."},
	}
}

func peerTLSRows(s *Settings) []setting {
	rows := []setting{
		{key: "peer.tls", flag: "peer-tls", kind: kindBool, def: "true", to: &s.PeerTLS.Keys.Off, not: true,
			help: "Speak TLS 1.3 between servers, with a key that each makes for itself. With `false`, and without " +
				"`sslQuorum`, anyone who reaches the peer port is a member of the ensemble."},
		{key: "peer.joinSecretFile", kind: kindText, to: &s.PeerTLS.Keys.SecretFile,
			help: "File with a one-time token (`zk-lite member token`), or with the join secret of the ensemble, " +
				"with which servers of any number let themselves in: 32 characters or more, the same on all. Not " +
				"readable by others."},
		{key: "sslQuorum", flag: "ssl-quorum", kind: kindBool, def: "false", to: &s.PeerTLS.Wanted,
			help: "Speak TLS 1.3 between servers with the certificates of `ssl.quorum.*`, in place of `peer.tls`."},
		{key: "portUnification", kind: kindBool, def: "false", to: &s.PeerTLS.Keys.PlainToo,
			help: "Take other servers with and without TLS, while an ensemble is switched over."},
	}
	rows = append(rows, storeRows("ssl.quorum.", "keyStore", &s.PeerTLS.Key,
		"File with this server's private key and its certificates for the peer port: PEM, PKCS12 or JKS.")...)
	rows = append(rows, storeRows("ssl.quorum.", "trustStore", &s.PeerTLS.Trust,
		"File with the authorities that servers' certificates must lead to. They should sign nothing else.")...)
	return append(rows,
		setting{key: "ssl.quorum.hostnameVerification", kind: kindBool, def: "true", to: &s.PeerTLS.AnyHost, not: true,
			help: "Another server's certificate names the host of its `server.N`. With `false` the owner of " +
				"any certificate may be any server."},
		setting{key: "ssl.quorum.crl", kind: kindBool, def: "false", to: &s.PeerTLS.CheckCRL,
			help: "As `ssl.crl`, for servers."},
		setting{key: "ssl.quorum.crl.location", kind: kindText, to: &s.PeerTLS.CRLs,
			help: "As `ssl.crl.location`, for servers."},
		setting{key: "sslQuorumReloadCertFiles", flag: "ssl-quorum-reload-cert-files", kind: kindBool, def: "true",
			to:   &s.PeerTLS.Reload,
			help: "Follow the files of `ssl.quorum.*` while running (ZooKeeper: false)."},
	)
}

func storeRows(prefix, name string, store *tlsfiles.Store, help string) []setting {
	prefix += name + "."
	return []setting{
		{key: prefix + "location", kind: kindText, to: &store.Location, help: help},
		{key: prefix + "password", kind: kindSecret,
			to: &store.Password, help: "Password of that file. Default: none."},
		{key: prefix + "passwordPath", kind: kindText, to: &store.PasswordFile,
			help: "File with that password in its first line. It counts more than the password itself."},
		{key: prefix + "type", kind: kindChoice, choices: []string{"PEM", "PKCS12", "JKS"}, to: &store.Type,
			help: "Type of that file. Default: by its content."},
	}
}

// resolveTLS checks the keys ssl.* together.
func (l *loader) resolveTLS() {
	s, t := &l.s, &l.s.TLS
	t.CheckClientHost = t.CheckClientHost && s.words.checkHost
	t.Handshakes = max(t.Handshakes, 0)
	l.resolveVersions()
	l.resolveSuites()
	if !s.Wanted() {
		return
	}
	if t.Key.Location == "" {
		l.fail(l.tlsUser(), "ssl.keyStore.location", "is missing, and a port is to speak TLS",
			"name a file with a private key and its certificate; `zk-lite tls init` and `zk-lite tls issue` make one")
	}
	clients := s.SecureClientPort != NoPort || s.PortUnification
	switch {
	case t.Trust.Location != "":
	case clients && t.ClientAuth != ClientAuthNone:
		l.fail(l.where("ssl-client-auth"), "ssl.trustStore.location",
			"is missing, and clients are asked for certificates (ssl.clientAuth="+t.ClientAuth+")",
			"name a file with the authorities that sign them, or set ssl.clientAuth=none")
	case s.AdminNeedClientAuth && s.AdminEnabled:
		l.fail(l.where("admin-need-client-auth"), "ssl.trustStore.location",
			"is missing, and HTTP clients must show certificates", "name a file with the authorities that sign them")
	}
	if s.AdminNeedClientAuth && s.AdminPortUnification && !s.AdminForceHTTPS && s.AdminEnabled {
		l.fail(l.where("admin-need-client-auth"), "admin.needClientAuth",
			"is of no use with admin.portUnification, which takes clients without TLS", "remove one of them")
	}
}

// tlsUser is the place of the setting that asks for TLS.
func (l *loader) tlsUser() string {
	for _, flag := range []string{"secure-client-port", "client-port-unification", "admin-force-https",
		"admin-port-unification"} {
		if l.given(flag) {
			return l.where(flag)
		}
	}
	return l.where("admin-need-client-auth")
}

func (l *loader) resolveVersions() {
	t, w, flag, key := &l.s.TLS, &l.s.words, "ssl-enabled-protocols", "ssl.enabledProtocols"
	if w.protocol != "" && !l.given(flag) {
		w.protocols, flag, key = w.protocol, "ssl-protocol", "ssl.protocol"
	}
	known := map[string]uint16{"TLSv1.2": tls.VersionTLS12, "TLSv1.3": tls.VersionTLS13}
	for name := range strings.SplitSeq(w.protocols, ",") {
		name = strings.TrimSpace(name)
		v, ok := known[name]
		switch {
		case ok && t.MinVersion == 0:
			t.MinVersion, t.MaxVersion = v, v
		case ok:
			t.MinVersion, t.MaxVersion = min(t.MinVersion, v), max(t.MaxVersion, v)
		case slices.Contains([]string{"TLSv1", "TLSv1.1", "TLS", "SSLv2Hello", "SSLv3"}, name):
			l.warn(l.where(flag), key, "%s is not spoken: it is not safe, or names no version", name)
		default:
			l.fail(l.where(flag), key, fmt.Sprintf("%q is no version of TLS", shorten(name)), "want TLSv1.2 or TLSv1.3")
		}
	}
	if t.MinVersion == 0 && len(l.errs) == 0 {
		l.fail(l.where(flag), key, "no version is left that zk-lite speaks", "want TLSv1.2 or TLSv1.3")
	}
}

// resolveSuites takes Java's names, which are IANA's. Old ones that Go does not have, or takes for unsafe,
// are left out with a warning.
func (l *loader) resolveSuites() {
	t, suites := &l.s.TLS, l.s.words.suites
	if suites == "" {
		return
	}
	const flag, key = "ssl-ciphersuites", "ssl.ciphersuites"
	of13 := false
	for name := range strings.SplitSeq(suites, ",") {
		name = strings.TrimSpace(name)
		i := slices.IndexFunc(tls.CipherSuites(), func(c *tls.CipherSuite) bool { return c.Name == name })
		switch {
		case i < 0:
			l.warn(l.where(flag), key, "%q is left out: zk-lite does not have it", shorten(name))
		case slices.Contains(tls.CipherSuites()[i].SupportedVersions, tls.VersionTLS12):
			t.Suites = append(t.Suites, tls.CipherSuites()[i].ID)
		default:
			of13 = true
		}
	}
	switch {
	case len(t.Suites) > 0:
	case of13 && t.MaxVersion == tls.VersionTLS13:
		t.MinVersion = tls.VersionTLS13
	case len(l.errs) == 0:
		l.fail(l.where(flag), key, "no cipher suite is left that zk-lite has",
			"want some of TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, ...")
	}
}

// resolvePeerTLS checks the settings of TLS between servers together.
func (l *loader) resolvePeerTLS() {
	p := &l.s.PeerTLS
	if !p.Files() {
		return
	}
	user, files := l.where("ssl-quorum"), "; `zk-lite tls init` and `zk-lite tls issue` make one"
	if !p.Wanted {
		user = l.where("port-unification")
		if !p.Keys.Off {
			l.fail(user, "peer.tls", "is on, and portUnification is to take certificates of ssl.quorum.*",
				"set sslQuorum=true, or begin with an ensemble that has peer.tls=false")
		}
	}
	if p.Key.Location == "" {
		l.fail(user, "ssl.quorum.keyStore.location", "is missing, and servers are to speak TLS",
			"name a file with a private key and its certificate"+files)
	}
	if p.Trust.Location == "" {
		l.fail(user, "ssl.quorum.trustStore.location", "is missing, and servers must show certificates",
			"name a file with the authorities that sign them"+files)
	}
}

// Origin is what a zoo.cfg of ZooKeeper's says of the connections among its servers: how a mirror joins them.
type Origin struct {
	TLS  PeerTLS // with Wanted, if its servers speak it to each other
	SASL bool    // whether its servers prove who they are to each other
	JAAS string  // the file with the credentials
	// Section is that of a server that connects to another one.
	Section string
}

// ReadOrigin reads the file. Keys that mean nothing for a mirror are ignored.
//
// The error joins all problems, each an *Error.
func ReadOrigin(path string) (Origin, error) {
	var o Origin
	l := &loader{source: map[string]string{}}
	l.s.ConfigFile, l.s.PeerTLS.Prefix = path, "ssl.quorum."
	l.rows = append(peerTLSRows(&l.s), []setting{
		{key: JAASKey, flag: "jaas-file", kind: kindText, to: &o.JAAS},
		{key: "quorum.auth.enableSasl", kind: kindBool, def: "false", to: &o.SASL},
		{key: "quorum.auth.learner.saslLoginContext", flag: "quorum-section", kind: kindText, def: "QuorumLearner",
			to: &o.Section},
	}...)
	l.defaults()
	if props, ok := l.read(path, "", ""); ok {
		l.properties(path, slices.DeleteFunc(props, func(p property) bool {
			return l.known(strings.TrimPrefix(p.key, "zookeeper.")) == nil
		}))
	}
	if o.SASL && o.JAAS == "" {
		l.fail(path, JAASKey, "is missing, and quorum.auth.enableSasl is true",
			"add a line "+JAASKey+"=FILE: for ZooKeeper it is a flag of the JVM")
	}
	if len(l.errs) == 0 && l.s.PeerTLS.Wanted {
		l.resolvePeerTLS()
	}
	o.TLS = l.s.PeerTLS
	return o, errors.Join(l.errs...)
}
