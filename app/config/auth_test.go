package config

import (
	"crypto"
	"slices"
	"testing"

	"github.com/zk-lite/zk-lite/server/auth"
	"github.com/zk-lite/zk-lite/znode"
)

func TestLoad_Auth(t *testing.T) {
	s, notices, err := load(t, "dataDir=d\nauthProvider.1=org.apache.zookeeper.server.auth.EnsembleAuthenticationProvider\n"+
		"authProvider.x509=org.apache.zookeeper.server.auth.X509AuthenticationProvider\n"+
		"zookeeper.enforce.auth.enabled=true\nenforce.auth.schemes=digest, ip\nskipACL=yes\n"+
		"DigestAuthenticationProvider.digestAlg=sha3-256\n"+
		"superDigest=admin:7SNb2PG4qHSVVIsYwTDPUvHTXiJm0LxDbDjg3DA6Xn8=\n"+
		"admin.identities=x509:CN=ops,O=Example; token:ops\nensembleAuthName=a,b\n", nil)
	if err != nil || len(notices) > 0 {
		t.Fatalf("got notices %v, error %v, want neither", notices, err)
	}
	if !s.Auth.Ensemble || !s.Auth.SkipACL || s.Auth.Digest != crypto.SHA3_256 || !slices.Equal(s.Auth.Schemes, []string{"digest", "ip"}) ||
		!slices.Equal(s.Auth.Administrators, []znode.ID{{Scheme: "x509", ID: "CN=ops,O=Example"}, {Scheme: "token", ID: "ops"}}) ||
		!slices.Equal(s.Auth.Ensembles, []string{"a", "b"}) {
		t.Errorf("got %+v, want what the file has", s.Auth)
	}
	s, notices, err = load(t, "dataDir=d\nenforce.auth.schemes=digest\nDigestAuthenticationProvider.enabled=false\n"+
		"superDigest=super:lK75jTNcA+U9vtVEw5vB51mj/w4=\n", nil)
	if err != nil || len(s.Auth.Schemes) > 0 || !s.Auth.NoDigest || s.Auth.SuperDigest != "" || len(notices) != 1 {
		t.Errorf("got %+v, notices %v, error %v, want no schemes, no super user and one notice", s.Auth, notices, err)
	}
}

func TestLoad_SASL(t *testing.T) {
	s, notices, err := load(t, "dataDir=d\njava.security.auth.login.config=/etc/jaas.conf\nsuperUser=a\n"+
		"zookeeper.superUser.2=b@R\nsessionRequireClientSASLAuth=true\nkerberos.removeHostFromPrincipal=true\n"+
		"authProvider.sasl=org.apache.zookeeper.server.auth.SASLAuthenticationProvider\nadmin.identities=sasl:c/h@R\n"+
		"SASLAuthenticationProvider.superPassword=secret\nsecurity.auth_to_local=DEFAULT\n", nil)
	if err != nil || len(notices) > 0 {
		t.Fatalf("got notices %v, error %v, want neither", notices, err)
	}
	if s.SASL.File != "/etc/jaas.conf" || s.SASL.Section != "Server" || !s.SASL.RemoveHost || s.SASL.RemoveRealm ||
		!slices.Equal(s.SASL.Supers, []string{"b@R", "a"}) || !slices.Equal(s.Auth.Schemes, []string{"sasl"}) ||
		!slices.Equal(s.Auth.Administrators, []znode.ID{{Scheme: "sasl", ID: "c/h@R"}}) || s.SASL.SuperPassword != "secret" {
		t.Errorf("got %+v and %+v, want what the file has", s.SASL, s.Auth)
	}
	s, notices, err = load(t, "dataDir=d\nsuperUser=a\nsasl.serverconfig=S\njaasLoginRenew=3\n", nil)
	if err != nil || len(s.SASL.Supers) > 0 || len(notices) != 3 {
		t.Errorf("got %+v, notices %v, error %v, want no super users and three notices", s.SASL, notices, err)
	}
}

func TestLoad_AlternativeNames(t *testing.T) {
	s, notices, err := load(t, "dataDir=d\nssl.x509.clientCertIdType=SAN\n"+
		"ssl.x509.clientCertIdSanExtractRegex=/sa/(.+)\nssl.x509.clientCertIdSanExtractMatcherGroupIndex=1\n", nil)
	if san := s.Auth.SAN; err != nil || len(notices) > 0 || san == nil || san.Kind != auth.SANURI || san.Group != 1 ||
		san.Extract.String() != "/sa/(.+)" {
		t.Errorf("got %+v, notices %v, error %v, want URIs and group 1", s.Auth.SAN, notices, err)
	}
	for cfg, want := range map[string]string{
		"ssl.x509.clientCertIdSanMatchType=0":         "zoo.cfg:3: ssl.x509.clientCertIdSanMatchType: 0 is out of range; want 1 to 7",
		"ssl.x509.clientCertIdSanMatchType=3":         "zoo.cfg:3: ssl.x509.clientCertIdSanMatchType: 3 is no kind that zk-lite reads; want 1, 2, 6 or 7",
		"ssl.x509.clientCertIdSanMatchRegex=(":        "zoo.cfg:3: ssl.x509.clientCertIdSanMatchRegex: error parsing regexp: missing closing ): `(`",
		"ssl.x509.clientCertIdSanExtractRegex=(?<=a)": "zoo.cfg:3: ssl.x509.clientCertIdSanExtractRegex: error parsing regexp: invalid named capture: `(?<=a)`",
		"ssl.x509.clientCertIdSanExtractMatcherGroupIndex=2": "zoo.cfg:3: ssl.x509.clientCertIdSanExtractMatcherGroupIndex: " +
			"the expression .* has no group 2",
	} {
		_, _, err := load(t, "dataDir=d\nssl.x509.clientCertIdType=SAN\n"+cfg+"\n", nil)
		if err == nil || err.Error() != want {
			t.Errorf("%s:\ngot  %v\nwant %s", cfg, err, want)
		}
	}
	s, notices, err = load(t, "dataDir=d\nssl.x509.clientCertIdSanMatchType=6\n", nil)
	const want = "WARN zoo.cfg:2: ssl.x509.clientCertIdSanMatchType: has no effect without ssl.x509.clientCertIdType=SAN"
	if err != nil || s.Auth.SAN != nil || len(notices) != 1 || notices[0].String() != want {
		t.Errorf("got notices %v, error %v, want %s", notices, err, want)
	}
}
