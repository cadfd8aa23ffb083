package app

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zk-lite/zk-lite/app/config"
)

// mirror.config gives a mirror the name and the password of a server, or says what is wrong with its files.
func TestLearnerConfig(t *testing.T) {
	dir := t.TempDir()
	cfg, jaas := filepath.Join(dir, "zoo.cfg"), filepath.Join(dir, "jaas.conf")
	read := func(zoo, login string) (user, password string, err error) {
		for name, text := range map[string]string{cfg: zoo, jaas: login} {
			if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		c, err := learnerConfig(&config.Settings{Mirror: config.Mirror{Config: cfg}})
		if c.SASL != nil {
			user, password = c.SASL.User, c.SASL.Password
		}
		return user, password, err
	}
	sasl := "quorum.auth.enableSasl=true\n" + config.JAASKey + "=" + jaas + "\n"
	const digest = ` { org.apache.zookeeper.server.auth.DigestLoginModule required username="zk" password="pw"; };`
	if user, password, err := read(sasl, "QuorumLearner"+digest); err != nil || user != "zk" || password != "pw" {
		t.Errorf("user %q, password %q, %v; want zk and pw", user, password, err)
	}
	if user, _, err := read("tickTime=2000\n", ""); err != nil || user != "" {
		t.Errorf("without SASL: user %q, %v; want none", user, err)
	}
	for _, tt := range []struct{ zoo, login, want string }{
		{sasl, "Server" + digest, "want a section QuorumLearner with the module DigestLoginModule"},
		{sasl, `QuorumLearner { com.sun.security.auth.module.Krb5LoginModule required; };`, "cannot prove itself by Kerberos"},
		{sasl, strings.Replace("QuorumLearner"+digest, "username", "user", 1), "section QuorumLearner has no username"},
		{sasl, "QuorumLearner {", jaas + ": line 1"},
		{strings.Replace(sasl, "jaas.conf", "none", 1), "", "none: no such file"},
		{"sslQuorum=true\n", "", "ssl.quorum.keyStore.location: is missing"},
		{"sslQuorum=true\nssl.quorum.keyStore.location=/none.pem\nssl.quorum.trustStore.location=/none.pem\n", "", "/none.pem"},
	} {
		_, _, err := read(tt.zoo, tt.login)
		if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.HasPrefix(err.Error(), "mirror.config: ") {
			t.Errorf("%s\n%s: %v, want an error with %q", tt.zoo, tt.login, err, tt.want)
		}
	}
}
