package jaas

import (
	"maps"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	got, err := Parse(`# of ZooKeeper's guide
/* two
   lines */
Server {
       org.apache.zookeeper.server.auth.DigestLoginModule required
       user_super="adminsecret"   // who may do all
       user_bob="b\"o\\b;{ }";
};
"Other one" {
  com.sun.security.auth.module.Krb5LoginModule REQUIRED useKeyTab=true
  keyTab="/etc/zk.keytab" principal="zookeeper/host@EXAMPLE.COM" ;
  a.B optional;
};`)
	if err != nil || len(got) != 2 || len(got["Server"]) != 1 || len(got["Other one"]) != 2 {
		t.Fatalf("parsed %+v (%v), want one module in Server and two in \"Other one\"", got, err)
	}
	digest, kerberos := got["Server"][0], got["Other one"][0]
	if digest.Class != "org.apache.zookeeper.server.auth.DigestLoginModule" ||
		!maps.Equal(digest.Options, map[string]string{"user_super": "adminsecret", "user_bob": `b"o\b;{ }`}) {
		t.Errorf("module %+v, want DigestLoginModule with two users", digest)
	}
	if !maps.Equal(kerberos.Options, map[string]string{
		"useKeyTab": "true", "keyTab": "/etc/zk.keytab", "principal": "zookeeper/host@EXAMPLE.COM",
	}) || got["Other one"][1].Class != "a.B" {
		t.Errorf("modules %+v, want Kerberos with its three options, and a.B", got["Other one"])
	}
}

func TestParse_Errors(t *testing.T) {
	for text, want := range map[string]string{
		"Server":                       `line 1: want "{"`,
		"Server {\n}":                  `line 2: want ";"`,
		"S { };":                       `line 1: the section "S" has no module`,
		"S { a.B; };":                  "line 1: want one of required",
		"S { a.B needed; };":           `line 1: want one of required, requisite, sufficient, optional behind the class "a.B"`,
		"S { a.B required x;}":         `line 1: want "="`,
		"S { a.B required\nx=;};":      "line 2: want a value for x",
		"S { a.B required x=1":         `line 1: want an option or ";"`,
		"S { a.B required x=1 x=2; };": `line 1: the option "x" is there twice`,
		"S { a.B required x=\"secret":  "line 1: a quotation has no end in its line",
		"S { a.B required x=\"${java.home}/secret\";}": `line 1: the value of "x" has ${...}, which is not replaced here`,
		"S { a.B required; }; S { a.B required; };":    `line 1: the section "S" is there twice`,
		"/* secret": "line 1: a comment has no end",
		"= { };":    "line 1: want the name of a section",
	} {
		if _, err := Parse(text); err == nil || !strings.HasPrefix(err.Error(), want) ||
			strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	if got, err := Parse("// nothing"); err != nil || len(got) > 0 {
		t.Errorf("a comment alone: %+v (%v), want nothing and no error", got, err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("S { a.B required x=\"1\"; }; // c")
	f.Add("\"a\" { /* */ b required; };")
	f.Fuzz(func(t *testing.T, text string) {
		sections, err := Parse(text)
		for name, modules := range sections {
			if err == nil && len(modules) == 0 {
				t.Errorf("%q: the section %q is empty", text, name)
			}
		}
	})
}
