package config

import (
	"crypto"
	"slices"
	"testing"
)

func TestLoad_Auth(t *testing.T) {
	s, notices, err := load(t, "dataDir=d\nauthProvider.1=org.apache.zookeeper.server.auth.EnsembleAuthenticationProvider\n"+
		"authProvider.x509=org.apache.zookeeper.server.auth.X509AuthenticationProvider\n"+
		"zookeeper.enforce.auth.enabled=true\nenforce.auth.schemes=digest, ip\nskipACL=yes\n"+
		"DigestAuthenticationProvider.digestAlg=sha3-256\n"+
		"superDigest=admin:7SNb2PG4qHSVVIsYwTDPUvHTXiJm0LxDbDjg3DA6Xn8=\n"+
		"admin.identities=x509:CN=ops,O=Example; token:ops\nensembleAuthName=a,b\n", nil)
	if err != nil || len(notices) > 0 {
		t.Fatal(err, notices)
	}
	if !s.EnsembleAuth || !s.SkipACL || s.Digest != crypto.SHA3_256 || !slices.Equal(s.AuthSchemes, []string{"digest", "ip"}) ||
		!slices.Equal(s.AdminIdentities, []string{"x509:CN=ops,O=Example", "token:ops"}) ||
		!slices.Equal(s.EnsembleNames, []string{"a", "b"}) {
		t.Errorf("%+v", s)
	}
	s, notices, err = load(t, "dataDir=d\nenforce.auth.schemes=digest\nDigestAuthenticationProvider.enabled=false\n"+
		"superDigest=super:lK75jTNcA+U9vtVEw5vB51mj/w4=\n", nil)
	if err != nil || len(s.AuthSchemes) > 0 || s.DigestEnabled || s.SuperDigest != "" || len(notices) != 1 {
		t.Errorf("%+v, %v, %v", s, notices, err)
	}
}
