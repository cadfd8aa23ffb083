package zookeeper

import (
	"path/filepath"
	"testing"

	"github.com/zk-lite/zk-lite/internal/testkit/certs"
)

// The name and the password that servers have for each other with SASL.
const (
	QuorumUser     = "quorum"
	QuorumPassword = "of-tests"
)

// WithTLS makes the servers ask for, and show, a certificate of the authority's on their quorum ports (3.5 and newer).
func (o *Options) WithTLS(tb testing.TB, authority *certs.Pair) {
	tb.Helper()
	dir := tb.TempDir()
	key := certs.Write(tb, filepath.Join(dir, "key.pem"), authority.Issue(tb, "quorum", nil).KeyPEM(tb))
	trust := certs.Write(tb, filepath.Join(dir, "trust.pem"), authority.CertPEM())
	o.Config = append(o.Config, "sslQuorum=true", "ssl.quorum.keyStore.location="+key,
		"ssl.quorum.trustStore.location="+trust)
}

// WithSASL makes the servers ask for QuorumUser, with DIGEST-MD5, on their quorum ports. 3.9 has it without FIPS mode
// alone. zoo.cfg names the JAAS file, too, for programs that read it; ZooKeeper itself has the flag.
func (o *Options) WithSASL(tb testing.TB) {
	tb.Helper()
	const module = " { org.apache.zookeeper.server.auth.DigestLoginModule required "
	jaas := certs.Write(tb, filepath.Join(tb.TempDir(), "jaas.conf"), []byte(
		"QuorumServer"+module+`user_`+QuorumUser+`="`+QuorumPassword+`"; };`+"\n"+
			"QuorumLearner"+module+`username="`+QuorumUser+`" password="`+QuorumPassword+`"; };`+"\n"))
	o.Config = append(o.Config, "quorum.auth.enableSasl=true", "quorum.auth.learnerRequireSasl=true",
		"quorum.auth.serverRequireSasl=true", "fips-mode=false", "java.security.auth.login.config="+jaas)
	o.Flags = append(o.Flags, "-Djava.security.auth.login.config="+jaas)
}
