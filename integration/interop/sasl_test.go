//go:build interop

package interop_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/zk-lite/zk-lite/integration/cluster"
	"github.com/zk-lite/zk-lite/internal/testkit/certs"
)

// saslEnsemble is an ensemble with a JAAS file for its servers, which takes TLS and plain clients.
func saslEnsemble(t *testing.T, jaas string, config map[string]string) *cluster.Ensemble {
	t.Helper()
	dir, ca := t.TempDir(), certs.Authority(t, "interop")
	certs.Write(t, dir+"/client.pem", ca.Issue(t, "client", nil).KeyPEM(t))
	all := map[string]string{
		"java.security.auth.login.config": writeFile(t, "server.jaas", jaas),
		"client.portUnification":          "true",
		"ssl.clientAuth":                  "none", // nobody has another identity
		"ssl.keyStore.location":           certs.Write(t, dir+"/server.pem", ca.Issue(t, "server", nil).KeyPEM(t)),
		"ssl.trustStore.location":         certs.Write(t, dir+"/ca.pem", ca.CertPEM()),
	}
	maps.Copy(all, config)
	t.Setenv(tlsVariable, dir) // kazoo and Java with TLS; the test takes it away for others
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
	javac := cluster.NeedTool(t, "/usr/bin/javac", "default-jdk-headless")
	classPath, classes := cluster.ClassPath(t), t.TempDir()
	run(t, classes, javac, "-encoding", "UTF-8", "-cp", classPath, "-d", classes,
		testdata(t, "JavaChecks.java"), testdata(t, "SaslChecks.java"))
	return func(jaas string, tls bool, flags ...string) []string {
		command := []string{"java", "-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
			"-Dfile.encoding=UTF-8", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-Dzookeeper.fips-mode=false",
			"-Djava.security.auth.login.config=" + writeFile(t, "client.jaas", jaas)}
		if dir := os.Getenv(tlsVariable); tls {
			const ssl = "-Dzookeeper.ssl."
			command = append(command, "-Dzookeeper.client.secure=true",
				"-Dzookeeper.clientCnxnSocket=org.apache.zookeeper.ClientCnxnSocketNetty",
				ssl+"keyStore.location="+dir+"/client.pem", ssl+"keyStore.type=PEM", ssl+"keyStore.password=",
				ssl+"trustStore.location="+dir+"/ca.pem", ssl+"trustStore.type=PEM", ssl+"trustStore.password=")
		}
		return append(append(command, flags...), "-cp", classes+":"+classPath, "SaslChecks")
	}
}

// kazooSASL is kazoo's command, without the program's arguments.
func kazooSASL(t *testing.T, tls bool) []string {
	t.Helper()
	cluster.NeedTool(t, python, "python3")
	for dir, name := range map[string]string{
		"kazoo": "python3-kazoo", "puresasl": "python3-pure-sasl", "kerberos*.so": "python3-kerberos",
	} {
		cluster.NeedTool(t, "/usr/lib/python3/dist-packages/"+dir, name)
	}
	command := []string{"env", "PYTHONDONTWRITEBYTECODE=1"}
	if !tls {
		command = append(command, tlsVariable+"=")
	}
	return append(command, python, testdata(t, "sasl_checks.py"))
}

// TestInterop_SASL_Digest: Java and kazoo with DIGEST-MD5, with and without TLS: ACLs, a watch, a session that moves
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
}
