package cluster

import (
	"path/filepath"
	"testing"

	"github.com/zk-lite/zk-lite/internal/testkit/certs"
)

// TLSVariable names the directory of ca.pem and client.pem to a client's program that is to speak TLS.
const TLSVariable = "ZK_LITE_INTEROP_TLS"

// TLS writes the files of servers that take TLS beside plain text on their client ports, and of clients, into a
// directory. It returns the lines of zoo.cfg.
func TLS(t testing.TB, dir string) (config map[string]string, ca, client *certs.Pair) {
	t.Helper()
	ca = certs.Authority(t, "interop")
	client = ca.Issue(t, "client", nil)
	certs.Write(t, filepath.Join(dir, "client.pem"), client.KeyPEM(t))
	server := ca.Issue(t, "server", nil)
	return map[string]string{
		"client.portUnification":  "true", // the kit itself asks without TLS
		"ssl.keyStore.location":   certs.Write(t, filepath.Join(dir, "server.pem"), server.KeyPEM(t)),
		"ssl.trustStore.location": certs.Write(t, filepath.Join(dir, "ca.pem"), ca.CertPEM()),
	}, ca, client
}
