package config

import (
	"strings"

	"github.com/zk-lite/zk-lite/server/auth"
)

// SASL is what the keys about SASL on the ZooKeeper port say, checked.
type SASL struct {
	auth.SASL            // but for its functions
	File, Section string // of Java's login configuration; no File: there is no SASL
	SuperPassword string // of the user super with DIGEST-MD5; "": what the section says
	FIPS          bool   // no DIGEST-MD5
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

// resolveSASL checks what they say together.
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

// superUser takes superUser.N, of which there may be any number.
func (l *loader) superUser(source string, p property) {
	l.s.SASL.Supers = append(l.s.SASL.Supers, strings.TrimSpace(p.value))
	l.source["sasl-super-user"] = source
}
