//go:build interop

package interop_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/zk-lite/zk-lite/integration/cluster"
	"github.com/zk-lite/zk-lite/internal/testkit/certs"
	"github.com/zk-lite/zk-lite/internal/testkit/ports"
)

// saslEnsemble is an ensemble with a JAAS file for its servers, which takes TLS and plain clients.
func saslEnsemble(t *testing.T, jaas string, config map[string]string) *cluster.Ensemble {
	t.Helper()
	dir, ca := t.TempDir(), certs.Authority(t, "interop")
	certs.Write(t, dir+"/client.pem", ca.Issue(t, "client", nil).KeyPEM(t))
	all := map[string]string{
		"java.security.auth.login.config": writeFile(t, "server.jaas", jaas),
		"client.portUnification":          "true",
		"ssl.clientAuth":                  "none", // no one has another identity
		"ssl.keyStore.location":           certs.Write(t, dir+"/server.pem", ca.Issue(t, "server", nil).KeyPEM(t)),
		"ssl.trustStore.location":         certs.Write(t, dir+"/ca.pem", ca.CertPEM()),
	}
	maps.Copy(all, config)
	t.Setenv(cluster.TLSVariable, dir) // kazoo and Java with TLS; the test takes it away for others
	return cluster.Start(t, 3, cluster.Options{Config: all})
}

func writeFile(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// javaSASL compiles the checks of the Java client and returns its command, without the program's arguments.
func javaSASL(t *testing.T) func(jaas string, tls bool, flags ...string) []string {
	t.Helper()
	java := cluster.Java(t, "JavaChecks.java", "SaslChecks.java")
	return func(jaas string, tls bool, flags ...string) []string {
		command := append(slices.Clone(java), "-Dzookeeper.fips-mode=false",
			"-Djava.security.auth.login.config="+writeFile(t, "client.jaas", jaas))
		if dir := os.Getenv(cluster.TLSVariable); tls {
			const ssl = "-Dzookeeper.ssl."
			command = append(command, "-Dzookeeper.client.secure=true",
				"-Dzookeeper.clientCnxnSocket=org.apache.zookeeper.ClientCnxnSocketNetty",
				ssl+"keyStore.location="+dir+"/client.pem", ssl+"keyStore.type=PEM", ssl+"keyStore.password=",
				ssl+"trustStore.location="+dir+"/ca.pem", ssl+"trustStore.type=PEM", ssl+"trustStore.password=")
		}
		return append(append(command, flags...), "SaslChecks")
	}
}

// kazooSASL is kazoo's command, without the program's arguments.
func kazooSASL(t *testing.T, tls bool) []string {
	t.Helper()
	for dir, name := range map[string]string{
		"puresasl": "python3-pure-sasl", "kerberos*.so": "python3-kerberos",
	} {
		cluster.NeedTool(t, "/usr/lib/python3/dist-packages/"+dir, name)
	}
	command := []string{"env", "PYTHONDONTWRITEBYTECODE=1"}
	if !tls {
		command = append(command, cluster.TLSVariable+"=")
	}
	return append(command, cluster.Kazoo(t, "sasl_checks.py")...)
}

// TestInterop_SASL_Digest: Java and kazoo with DIGEST-MD5, with and without TLS, and C without: ACLs, a watch, a session that moves
// to another server when its own is killed; and with a wrong password.
func TestInterop_SASL_Digest(t *testing.T) {
	e := saslEnsemble(t, `Server {
		org.apache.zookeeper.server.auth.DigestLoginModule required user_bob="it's \"secret\"";
	};`, nil)
	java := javaSASL(t)
	login := func(user, password string) string {
		return fmt.Sprintf("Client { org.apache.zookeeper.server.auth.DigestLoginModule required username=%q password=%q; };",
			user, password)
	}
	options := func(password string) string {
		return fmt.Sprintf(`{"mechanism": "DIGEST-MD5", "username": "bob", "password": %q}`, password)
	}
	const secret = `it's "secret"`
	for _, tls := range []bool{false, true} {
		t.Run(fmt.Sprintf("Java/TLS=%v", tls), func(t *testing.T) {
			drive(t, e, t.TempDir(), append(java(login("bob", secret), tls), e.ConnectString(), "bob",
				fmt.Sprintf("/java-%v", tls))...)
		})
		t.Run(fmt.Sprintf("kazoo/TLS=%v", tls), func(t *testing.T) {
			drive(t, e, t.TempDir(), append(kazooSASL(t, tls), e.ConnectString(), options(secret), "bob",
				fmt.Sprintf("/kazoo-%v", tls))...)
		})
	}
	t.Run("Java/wrong", func(t *testing.T) {
		drive(t, e, t.TempDir(), append(java(login("bob", "wrong"), false), e.ConnectString(), "", "/x")...)
	})
	t.Run("kazoo/wrong", func(t *testing.T) {
		drive(t, e, t.TempDir(), append(kazooSASL(t, false), e.ConnectString(), options("wrong"), "", "/x")...)
	})
	secured(t, e)
	t.Run("C", func(t *testing.T) {
		drive(t, e, t.TempDir(), cSecure(t), e.ConnectString(), "DIGEST-MD5", "bob", writeFile(t, "password", secret),
			"zk-sasl-md5", "/c-sasl")
	})
}

// realm is a Kerberos realm with a KDC of its own.
type realm struct{ dir, krb5conf string }

// newRealm starts Debian's krb5-kdc for the length of the test.
func newRealm(t *testing.T) *realm {
	t.Helper()
	kdb := cluster.NeedTool(t, "/usr/sbin/kdb5_util", "krb5-kdc")
	kdc := cluster.NeedTool(t, "/usr/sbin/krb5kdc", "krb5-kdc")
	cluster.NeedTool(t, "/usr/sbin/kadmin.local", "krb5-admin-server")
	r := &realm{dir: t.TempDir()}
	port := ports.Take(t, 1)[0]
	r.krb5conf = writeFile(t, "krb5.conf", fmt.Sprintf(`[libdefaults]
 default_realm = TEST.ZK
 rdns = false
 dns_canonicalize_hostname = false
[realms]
 TEST.ZK = {
  kdc = 127.0.0.1:%d
 }
`, port))
	t.Setenv("KRB5_CONFIG", r.krb5conf)
	t.Setenv("KRB5_KDC_PROFILE", writeFile(t, "kdc.conf", fmt.Sprintf(`[kdcdefaults]
 kdc_listen = 127.0.0.1:%[1]d
 kdc_tcp_listen = 127.0.0.1:%[1]d
[realms]
 TEST.ZK = {
  database_name = %[2]s/principal
  key_stash_file = %[2]s/stash
 }
`, port, r.dir)))
	cluster.Execute(t, r.dir, kdb, "create", "-s", "-P", "master", "-r", "TEST.ZK")
	server := cluster.Command(t.Context(), r.dir, kdc, "-n", "-r", "TEST.ZK")
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Wait() }) // the context has ended
	return r
}

// keytab makes a principal and returns the file with its keys.
func (r *realm) keytab(t *testing.T, principal string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "keytab")
	cluster.Execute(t, r.dir, "/usr/sbin/kadmin.local", "-r", "TEST.ZK", "addprinc", "-randkey", principal)
	cluster.Execute(t, r.dir, "/usr/sbin/kadmin.local", "-r", "TEST.ZK", "ktadd", "-k", path, principal)
	return path
}

// TestInterop_SASL_Kerberos is the same with GSSAPI and a real KDC; what fails is a client with the ticket of another
// service.
func TestInterop_SASL_Kerberos(t *testing.T) {
	r := newRealm(t)
	const service = "zookeeper/localhost@TEST.ZK"
	bob := r.keytab(t, "bob@TEST.ZK")
	r.keytab(t, "other/localhost@TEST.ZK")
	const module = "com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true storeKey=true"
	e := saslEnsemble(t, fmt.Sprintf("Server { %s keyTab=%q principal=%q; };", module, r.keytab(t, service), service),
		map[string]string{"kerberos.removeRealmFromPrincipal": "true"})
	java := javaSASL(t)
	clientJAAS := fmt.Sprintf("Client { %s keyTab=%q principal=\"bob@TEST.ZK\"; };", module, bob)
	flags := func(principal string) []string {
		return []string{"-Djava.security.krb5.conf=" + r.krb5conf, "-Dzookeeper.server.principal=" + principal}
	}
	t.Setenv("KRB5_CLIENT_KTNAME", bob)
	t.Setenv("KRB5CCNAME", "FILE:"+filepath.Join(r.dir, "cache"))
	options := func(service string) string { return fmt.Sprintf(`{"mechanism": "GSSAPI", "service": %q}`, service) }
	// kazoo asks for the service on the host by its name in the connect string.
	hosts := strings.ReplaceAll(e.ConnectString(), "127.0.0.1", "localhost")
	for _, tls := range []bool{false, true} {
		t.Run(fmt.Sprintf("Java/TLS=%v", tls), func(t *testing.T) {
			drive(t, e, t.TempDir(), append(java(clientJAAS, tls, flags(service)...), e.ConnectString(), "bob",
				fmt.Sprintf("/java-%v", tls))...)
		})
		t.Run(fmt.Sprintf("kazoo/TLS=%v", tls), func(t *testing.T) {
			drive(t, e, t.TempDir(), append(kazooSASL(t, tls), hosts, options("zookeeper"), "bob",
				fmt.Sprintf("/kazoo-%v", tls))...)
		})
	}
	t.Run("Java/wrong", func(t *testing.T) {
		drive(t, e, t.TempDir(), append(java(clientJAAS, false, flags("other/localhost@TEST.ZK")...), e.ConnectString(), "",
			"/x")...)
	})
	t.Run("kazoo/wrong", func(t *testing.T) {
		drive(t, e, t.TempDir(), append(kazooSASL(t, false), hosts, options("other"), "", "/x")...)
	})
	secured(t, e)
	t.Run("C", func(t *testing.T) {
		drive(t, e, t.TempDir(), cSecure(t), e.ConnectString(), "GSSAPI", "bob", "/dev/null", "localhost", "/c-sasl")
	})
}
