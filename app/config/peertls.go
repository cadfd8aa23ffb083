package config

// PeerTLS is what the keys for TLS between servers say, checked.
type PeerTLS struct {
	Wanted               bool // sslQuorum: this server speaks TLS to the others
	PlainToo             bool // portUnification: others may also come without, while the ensemble is switched over
	KeyStore, TrustStore Store
	CRLFile              string
	CheckCRL             bool
	CheckHost            bool // certificates name the hosts of their servers
	Reload               bool
}

// Listens reports whether the peer port takes TLS.
func (p *PeerTLS) Listens() bool { return p.Wanted || p.PlainToo }

func peerTLSRows() []setting {
	rows := []setting{
		{key: "sslQuorum", flag: "ssl-quorum", kind: kindBool, def: "false",
			field: func(s *Settings) any { return &s.PeerTLS.Wanted },
			help:  "Speak TLS 1.3 between servers; both sides show a certificate."},
		{key: "portUnification", kind: kindBool, def: "false",
			field: func(s *Settings) any { return &s.PeerTLS.PlainToo },
			help:  "Take other servers with and without TLS, while an ensemble is switched over."},
	}
	keys, trusted := func(s *Settings) *Store { return &s.PeerTLS.KeyStore },
		func(s *Settings) *Store { return &s.PeerTLS.TrustStore }
	rows = append(rows, storeRows("ssl.quorum.", "keyStore", keys,
		"File with this server's private key and its certificates for the peer port: PEM, PKCS12 or JKS.")...)
	rows = append(rows, storeRows("ssl.quorum.", "trustStore", trusted,
		"File with the authorities that servers' certificates must lead to. They should sign nothing else.")...)
	return append(rows,
		setting{key: "ssl.quorum.hostnameVerification", kind: kindBool, def: "true",
			field: func(s *Settings) any { return &s.PeerTLS.CheckHost },
			help: "Another server's certificate names the host of its `server.N`. With `false` whoever has a " +
				"certificate may be any server."},
		setting{key: "ssl.quorum.crl", kind: kindBool, def: "false",
			field: func(s *Settings) any { return &s.PeerTLS.CheckCRL },
			help:  "As `ssl.crl`, for servers."},
		setting{key: "ssl.quorum.crl.location", kind: kindText,
			field: func(s *Settings) any { return &s.PeerTLS.CRLFile },
			help:  "As `ssl.crl.location`, for servers."},
		setting{key: "sslQuorumReloadCertFiles", flag: "ssl-quorum-reload-cert-files", kind: kindBool, def: "true",
			field: func(s *Settings) any { return &s.PeerTLS.Reload },
			help:  "Follow the files of `ssl.quorum.*` while running (ZooKeeper: false)."},
	)
}

// resolvePeerTLS checks what they say together.
func (l *loader) resolvePeerTLS() {
	p := &l.s.PeerTLS
	if !p.Listens() {
		return
	}
	user, files := l.where("ssl-quorum"), "; `zk-lite tls init` and `zk-lite tls issue` make one"
	if !p.Wanted {
		user = l.where("port-unification")
	}
	if p.KeyStore.Location == "" {
		l.fail(user, "ssl.quorum.keyStore.location", "is missing, and servers are to speak TLS",
			"name a file with a private key and its certificate"+files)
	}
	if p.TrustStore.Location == "" {
		l.fail(user, "ssl.quorum.trustStore.location", "is missing, and servers must show certificates",
			"name a file with the authorities that sign them"+files)
	}
}
