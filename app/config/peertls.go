package config

import (
	"github.com/zk-lite/zk-lite/consensus/peerkeys"
	"github.com/zk-lite/zk-lite/internal/tlsfiles"
)

// PeerTLS is what the keys for TLS between servers say, checked.
type PeerTLS struct {
	tlsfiles.Config                 // of an operator's certificates
	Keys            peerkeys.Config // that servers make themselves, unless Files
	Wanted          bool            // sslQuorum: this server speaks TLS to the others
	Reload          bool
}

// Files reports whether the certificates of the peer port are an operator's (ssl.quorum.*).
func (p *PeerTLS) Files() bool { return p.Wanted || p.Keys.PlainToo && p.Key.Location != "" }

func peerTLSRows(s *Settings) []setting {
	rows := []setting{
		{key: "peer.tls", flag: "peer-tls", kind: kindBool, def: "true", to: &s.PeerTLS.Keys.Off, not: true,
			help: "Speak TLS 1.3 between servers, with a key that each makes for itself. With `false`, and without " +
				"`sslQuorum`, whoever reaches the peer port is a member of the ensemble."},
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
			help: "Another server's certificate names the host of its `server.N`. With `false` whoever has a " +
				"certificate may be any server."},
		setting{key: "ssl.quorum.crl", kind: kindBool, def: "false", to: &s.PeerTLS.CheckCRL,
			help: "As `ssl.crl`, for servers."},
		setting{key: "ssl.quorum.crl.location", kind: kindText, to: &s.PeerTLS.CRLs,
			help: "As `ssl.crl.location`, for servers."},
		setting{key: "sslQuorumReloadCertFiles", flag: "ssl-quorum-reload-cert-files", kind: kindBool, def: "true",
			to:   &s.PeerTLS.Reload,
			help: "Follow the files of `ssl.quorum.*` while running (ZooKeeper: false)."},
	)
}

// resolvePeerTLS checks what they say together.
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
