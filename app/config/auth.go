package config

import (
	"crypto"
	"encoding/base64"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/zk-lite/zk-lite/server/auth"
)

func authRows(s *Settings) []setting {
	return []setting{
		{key: "DigestAuthenticationProvider.superDigest", aliases: []string{"superDigest"},
			flag: "super-digest", kind: kindDigest, to: &s.Auth.SuperDigest,
			help: "The super user, `USER:HASH` with HASH = base64(SHA-1(\"USER:PASSWORD\")); `zk-lite digest` makes " +
				"it. Default: none."},
		{key: "DigestAuthenticationProvider.digestAlg", flag: "digest-alg", kind: kindText, def: "SHA1",
			to: &s.words.digestAlg,
			help: "Hash of passwords in ids of scheme digest: SHA1, SHA-256, SHA-384, SHA-512, SHA3-256, SHA3-384 or " +
				"SHA3-512. The same on all servers; ids with another one lose access."},
		{key: "DigestAuthenticationProvider.enabled", flag: "digest-enabled", kind: kindBool, def: "true",
			to: &s.Auth.NoDigest, not: true,
			help: "Whether passwords prove anything: the scheme digest, and HTTP Basic."},
		{key: "X509AuthenticationProvider.superUser", flag: "x509-super-user", kind: kindText, to: &s.Auth.SuperName,
			help: "Subject of a certificate whose owner is a super user, as in `CN=admin,O=Example`; with " +
				"`ssl.x509.clientCertIdType=SAN` the id from there."},
		{key: "http.tokenFile", kind: kindText, to: &s.TokenFile,
			help: "File with bearer tokens for the HTTP port, lines `NAME TOKEN` or `NAME sha256:HASH`. Each is the " +
				"id `token:NAME`. It is followed while running."},
		{key: "admin.identities", kind: kindIdentities, to: &s.Auth.Administrators,
			help: "Identities that may run the ensemble over HTTP besides super users, `SCHEME:ID`, separated by " +
				"semicolons, as in `x509:CN=ops,O=Example;token:ops`. Without any administrator, who can read " +
				"`dataDir/admin.token` on the server's machine is one."},
		{key: "enforce.auth.enabled", kind: kindBool, def: "false", to: &s.words.enforceAuth,
			help: "Refuse requests of clients without an identity of `enforce.auth.schemes`."},
		{key: "enforce.auth.schemes", kind: kindWordList, to: &s.Auth.Schemes,
			help: "Schemes, separated by commas, of which one is enough: digest, x509, sasl, token, ip."},
		{key: "ensembleAuthName", kind: kindWordList, to: &s.Auth.Ensembles,
			help: "Names of this ensemble, separated by commas. A client that asks for another " +
				"(`addauth ensemble NAME`) is disconnected."},
		{key: "skipACL", kind: kindYes, def: "no", to: &s.Auth.SkipACL,
			help: "With `yes` this server checks no ACLs. It makes no one an administrator."},
	}
}

// sanRows are keys of ZooKeeper's that are in none of its releases, but in wide use.
func sanRows(s *Settings) []setting {
	w := &s.words.san
	return []setting{
		{key: "ssl.x509.clientCertIdType", kind: kindChoice, def: subject, choices: []string{subject, alternative},
			to: &w.idType,
			help: "Whence a client's id of scheme x509 is: its certificate's subject, or one of its subject " +
				"alternative names. The same on all servers. A certificate without such a name has no id."},
		{key: "ssl.x509.clientCertIdSanMatchType", kind: kindInt, def: "6", min: auth.SANEmail, max: auth.SANAddress,
			to:   &w.kind,
			help: "Kind of the name: 6 is a URI, as in SPIFFE, 1 an email address, 2 a DNS name, 7 an IP address."},
		{key: "ssl.x509.clientCertIdSanMatchRegex", kind: kindText, def: ".*", to: &w.match,
			help: "Regular expression (RE2) of which exactly one of the names must have a match."},
		{key: "ssl.x509.clientCertIdSanExtractRegex", kind: kindText, def: ".*", to: &w.extract,
			help: "Regular expression whose match in that name is the id."},
		{key: "ssl.x509.clientCertIdSanExtractMatcherGroupIndex", kind: kindInt, def: "0", min: 0, max: 99,
			to:   &w.group,
			help: "Group of that expression that is the id; 0 is the whole match."},
	}
}

// resolveSAN checks the keys ssl.x509.* together.
func (l *loader) resolveSAN() {
	w, rows := &l.s.words.san, sanRows(&l.s)
	if w.idType == subject {
		for i := range rows[1:] {
			if st := &rows[1+i]; l.given(st.flagName()) {
				l.warn(l.where(st.flagName()), st.key, "has no effect without ssl.x509.clientCertIdType="+alternative)
			}
		}
		return
	}
	if !slices.Contains([]int{auth.SANEmail, auth.SANDNS, auth.SANURI, auth.SANAddress}, w.kind) {
		l.fail(l.where(rows[1].flagName()), rows[1].key, fmt.Sprintf("%d is no kind that zk-lite reads", w.kind),
			"want 1, 2, 6 or 7")
	}
	match, err := regexp.Compile(w.match)
	if err != nil {
		l.fail(l.where(rows[2].flagName()), rows[2].key, err.Error(), "")
	}
	extract, err := regexp.Compile(w.extract)
	switch {
	case err != nil:
		l.fail(l.where(rows[3].flagName()), rows[3].key, err.Error(), "")
	case w.group > extract.NumSubexp():
		l.fail(l.where(rows[4].flagName()), rows[4].key, fmt.Sprintf("the expression %s has no group %d",
			shorten(w.extract), w.group), "")
	}
	l.s.Auth.SAN = &auth.SAN{Kind: w.kind, Match: match, Extract: extract, Group: w.group}
}

// JAASKey names the JAAS file. It is a property of the Java virtual machine, and no key of zoo.cfg for ZooKeeper.
const JAASKey = "java.security.auth.login.config"

func saslRows(s *Settings) []setting {
	return []setting{
		{key: JAASKey, flag: "jaas-file", kind: kindText, to: &s.SASL.File,
			help: "File with ZooKeeper's login configuration (JAAS) for SASL: users for DIGEST-MD5, or a keytab for " +
				"Kerberos. It is followed while running. For ZooKeeper this is a flag of the JVM. Default: no SASL."},
		{key: "sasl.serverconfig", kind: kindText, def: "Server", to: &s.SASL.Section,
			help: "Section of that file that is for this server."},
		{key: "superUser", flag: "sasl-super-user", kind: kindText, to: &s.words.superUser,
			help: "SASL user who is a super user; further ones in zoo.cfg as `superUser.1`, ..."},
		{key: "SASLAuthenticationProvider.superPassword", flag: "sasl-super-password", kind: kindSecret,
			to:   &s.SASL.SuperPassword,
			help: "DIGEST-MD5 password of the user `super`, in the place of that in the file."},
		{key: "kerberos.removeHostFromPrincipal", kind: kindBool, def: "false", to: &s.SASL.RemoveHost,
			help: "Leave the host out of Kerberos names of the server's realm: `hbase@REALM` for `hbase/host@REALM`."},
		{key: "kerberos.removeRealmFromPrincipal", kind: kindBool, def: "false", to: &s.SASL.RemoveRealm,
			help: "Leave out the realm, if it is the server's: `hbase/host`. Names of other realms stay whole."},
		{key: "sessionRequireClientSASLAuth", flag: "session-require-client-sasl-auth", kind: kindBool, def: "false",
			to:   &s.words.requireSASL,
			help: "The same as `enforce.auth.enabled` with the scheme sasl alone."},
		{key: "allowSaslFailedClients", kind: kindBool, def: "false", to: &s.SASL.AllowFailed,
			help: "Keep clients that fail to prove who they are, without an identity."},
		{key: "fips-mode", kind: kindBool, def: "false", to: &s.SASL.FIPS,
			help: "Refuse DIGEST-MD5, which is not of FIPS 140 (ZooKeeper: true)."},
	}
}

// resolveAuth checks the settings of identities together.
func (l *loader) resolveAuth() {
	a, alg := &l.s.Auth, l.s.words.digestAlg
	if a.Digest = hashes[strings.ToUpper(alg)]; a.Digest == 0 {
		l.fail(l.where("digest-alg"), "DigestAuthenticationProvider.digestAlg",
			fmt.Sprintf("%q is not known, or not safe", shorten(alg)),
			"want SHA1, SHA-256, SHA-384, SHA-512, SHA3-256, SHA3-384 or SHA3-512")
		return
	}
	_, hash, _ := strings.Cut(a.SuperDigest, ":")
	b, err := base64.StdEncoding.DecodeString(hash)
	if a.SuperDigest != "" && (err != nil || len(b) != a.Digest.Size()) {
		l.fail(l.where("super-digest"), "superDigest",
			"the value is not of the form USER:HASH with a hash of "+alg+" (it is not repeated here)",
			"`zk-lite digest` makes one")
	}
	if a.NoDigest && a.SuperDigest != "" {
		l.warn(l.where("super-digest"), "superDigest",
			"has no effect with DigestAuthenticationProvider.enabled=false: passwords prove nothing")
		a.SuperDigest = ""
	}
	a.Ensemble = a.Ensemble || len(a.Ensembles) > 0
	l.resolveSAN()
	l.resolveSASL()
	l.resolveSchemes()
}

// hashes are the values of DigestAuthenticationProvider.digestAlg, in Java's names.
var hashes = map[string]crypto.Hash{
	"SHA1": crypto.SHA1, "SHA-1": crypto.SHA1, "SHA-256": crypto.SHA256, "SHA-384": crypto.SHA384,
	"SHA-512": crypto.SHA512, "SHA3-256": crypto.SHA3_256, "SHA3-384": crypto.SHA3_384, "SHA3-512": crypto.SHA3_512,
}

func (l *loader) resolveSchemes() {
	s := &l.s
	if !s.words.enforceAuth {
		s.Auth.Schemes = nil
		return
	}
	if len(s.Auth.Schemes) == 0 {
		l.fail(l.where("enforce-auth-enabled"), "enforce.auth.schemes", "is missing, and enforce.auth.enabled is true",
			"name schemes: digest, x509, sasl, token, ip")
	}
	for _, scheme := range s.Auth.Schemes {
		at := l.where("enforce-auth-schemes")
		switch scheme {
		case "ip", "token":
		case "digest":
			if s.Auth.NoDigest {
				l.fail(at, "enforce.auth.schemes",
					"digest proves nothing (DigestAuthenticationProvider.enabled=false)", "")
			}
		case "x509":
			if !s.Wanted() {
				l.fail(at, "enforce.auth.schemes", "x509 needs a port with TLS", "set secureClientPort, for one")
			}
		case "sasl":
			if s.SASL.File == "" && !s.words.requireSASL {
				l.fail(at, "enforce.auth.schemes", "sasl needs users", "set "+JAASKey)
			}
		default:
			l.fail(at, "enforce.auth.schemes", fmt.Sprintf("%q is no scheme", shorten(scheme)),
				"want some of digest, x509, sasl, token, ip")
		}
	}
}

// resolveSASL checks the settings of SASL together.
func (l *loader) resolveSASL() {
	s := &l.s
	if s.words.superUser != "" {
		s.SASL.Supers = append(s.SASL.Supers, s.words.superUser)
	}
	if s.words.requireSASL {
		s.words.enforceAuth, s.Auth.Schemes = true, []string{"sasl"}
		if s.SASL.File == "" {
			l.warn(l.where("session-require-client-sasl-auth"), "sessionRequireClientSASLAuth",
				"refuses every client, as there are no users: set "+JAASKey)
		}
	}
	if s.SASL.File != "" {
		return
	}
	for _, flag := range []string{"sasl-serverconfig", "sasl-super-password"} {
		if l.given(flag) {
			l.warn(l.where(flag), l.row(flag).key, "has no effect without "+JAASKey+": there is no SASL")
		}
	}
	if len(s.SASL.Supers) > 0 {
		l.warn(l.where("sasl-super-user"), "superUser", "has no effect without "+JAASKey+": there is no SASL")
		s.SASL.Supers = nil
	}
}
