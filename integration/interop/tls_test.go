//go:build interop

package interop_test

import (
	"crypto/x509"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/pavlo-v-chernykh/keystore-go/v4"

	"github.com/zk-lite/zk-lite/integration/cluster"
	"github.com/zk-lite/zk-lite/internal/testkit/certs"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
)

// secure is an ensemble that takes TLS on its client ports, and a directory with what clients need for it.
func secure(t *testing.T) (e *cluster.Ensemble, dir string, ca, client *certs.Pair) {
	t.Helper()
	dir = t.TempDir()
	config, ca, client := cluster.TLS(t, dir)
	t.Setenv(cluster.TLSVariable, dir)
	return cluster.Start(t, 3, cluster.Options{Config: config}), dir, ca, client
}

var handshakes = regexp.MustCompile(`zk_tls_handshakes_total\t(\d+)`)

// secured fails the test if no client has spoken TLS.
func secured(t *testing.T, e *cluster.Ensemble) {
	t.Helper()
	all := 0
	for _, s := range e.Servers() {
		var text string
		wait.Succeeds(t, "mntr", func() (err error) {
			text, err = s.FourLetter("mntr")
			return err
		})
		if m := handshakes.FindStringSubmatch(text); m != nil {
			n, err := strconv.Atoi(m[1])
			if err != nil {
				t.Fatal(err)
			}
			all += n
		}
	}
	if all == 0 {
		t.Error("no client has spoken TLS")
	}
}

// TestInterop_TLS_Kazoo, and the next ones, run all checks of a client over TLS with certificates on both sides:
// operations, watches, sessions that move to another server when theirs is killed.
func TestInterop_TLS_Kazoo(t *testing.T) {
	kazoo := cluster.Kazoo(t, "kazoo_checks.py")
	e, _, _, _ := secure(t)
	drive(t, e, t.TempDir(), append(kazoo, e.ConnectString())...)
	secured(t, e)
}

func TestInterop_TLS_GoZookeeper(t *testing.T) {
	program := filepath.Join(t.TempDir(), "gozk")
	t.Setenv("GOWORK", "off")
	t.Setenv("GOFLAGS", "-mod=readonly")
	dir, err := filepath.Abs("gozk")
	if err != nil {
		t.Fatal(err)
	}
	cluster.Execute(t, dir, "go", "build", "-o", program, ".")
	e, _, _, _ := secure(t)
	drive(t, e, t.TempDir(), program, e.ConnectString())
	secured(t, e)
}

// The Java client takes PEM and JKS.
func TestInterop_TLS_Java(t *testing.T) {
	java := cluster.Java(t, "JavaChecks.java")
	for _, kind := range []string{"PEM", "JKS"} {
		t.Run(kind, func(t *testing.T) {
			e, dir, ca, client := secure(t)
			key, trust, password := dir+"/client.pem", dir+"/ca.pem", ""
			if kind == "JKS" {
				key, trust, password = dir+"/client.jks", dir+"/ca.jks", "interop"
				writeJKS(t, key, trust, password, ca, client)
			}
			const ssl = "-Dzookeeper.ssl."
			drive(t, e, t.TempDir(), append(slices.Clone(java), "-Dzookeeper.client.secure=true",
				"-Dzookeeper.clientCnxnSocket=org.apache.zookeeper.ClientCnxnSocketNetty",
				ssl+"keyStore.location="+key, ssl+"keyStore.password="+password, ssl+"keyStore.type="+kind,
				ssl+"trustStore.location="+trust, ssl+"trustStore.password="+password, ssl+"trustStore.type="+kind,
				"JavaChecks", e.ConnectString())...)
			secured(t, e)
		})
	}
}

// writeJKS writes a client's key store and trust store in Java's own format.
func writeJKS(t *testing.T, key, trust, password string, ca, client *certs.Pair) {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(client.Key)
	if err != nil {
		t.Fatal(err)
	}
	keys, trusted := keystore.New(), keystore.New()
	err = keys.SetPrivateKeyEntry("client", keystore.PrivateKeyEntry{
		CreationTime: time.Now(), PrivateKey: der,
		CertificateChain: []keystore.Certificate{{Type: "X509", Content: client.Cert.Raw}},
	}, []byte(password))
	if err != nil {
		t.Fatal(err)
	}
	err = trusted.SetTrustedCertificateEntry("ca", keystore.TrustedCertificateEntry{
		CreationTime: time.Now(), Certificate: keystore.Certificate{Type: "X509", Content: ca.Cert.Raw},
	})
	if err != nil {
		t.Fatal(err)
	}
	for path, store := range map[string]keystore.KeyStore{key: keys, trust: trusted} {
		f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		if err := store.Store(f, []byte(password)); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
