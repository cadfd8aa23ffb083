package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A zoo.cfg of ZooKeeper's says how its servers speak to each other; the rest of it is not looked at.
func TestReadOrigin(t *testing.T) {
	dir := t.TempDir()
	read := func(text string) (Origin, error) {
		path := filepath.Join(dir, "zoo.cfg")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return ReadOrigin(path)
	}
	const rest = "tickTime=none\nclientPort=x\nserver.1=zk1:2888:3888\nunknown=1\ngroup.1=1:2\n"
	if o, err := read(rest); err != nil || o.TLS.Wanted || o.SASL {
		t.Errorf("%+v, %v, want neither TLS nor SASL", o, err)
	}
	o, err := read(rest + "sslQuorum=true\nssl.quorum.keyStore.location=/k.pem\nssl.quorum.trustStore.location=/t.jks\n" +
		"zookeeper.ssl.quorum.trustStore.password=secret\nssl.quorum.hostnameVerification=false\n")
	if err != nil || !o.TLS.Wanted || o.TLS.Key.Location != "/k.pem" || o.TLS.Trust.Password != "secret" || !o.TLS.AnyHost {
		t.Errorf("%+v, %v, want TLS with the files", o, err)
	}
	o, err = read("quorum.auth.enableSasl=true\nquorum.auth.learner.saslLoginContext=Mine\n" + JAASKey + "=/j.conf\n")
	if err != nil || !o.SASL || o.JAAS != "/j.conf" || o.Section != "Mine" {
		t.Errorf("%+v, %v, want SASL with the file and its section", o, err)
	}
	if o, err = read("quorum.auth.enableSasl=true\n" + JAASKey + "=/j.conf\n"); err != nil || o.Section != "QuorumLearner" {
		t.Errorf("%+v, %v, want ZooKeeper's section", o, err)
	}
	for text, want := range map[string]string{
		"sslQuorum=true\n":              "ssl.quorum.keyStore.location: is missing",
		"sslQuorum=perhaps\n":           "sslQuorum",
		"quorum.auth.enableSasl=true\n": JAASKey + ": is missing",
	} {
		if _, err := read(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want an error with %q", text, err, want)
		}
	}
	if _, err := ReadOrigin(filepath.Join(dir, "none")); err == nil || !strings.Contains(err.Error(), "none: cannot be read") {
		t.Errorf("a file that is not there: %v, want an error that names it", err)
	}
}
