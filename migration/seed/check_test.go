package seed

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/migration/replica"
	"github.com/zk-lite/zk-lite/znode"
)

// lenient are limits that no data exceed.
var lenient = Limits{
	MaxBuffer: 1 << 20, MaxTimeout: time.Hour, ExtendedTypes: true, SASL: true, X509: true, Digest: true, SHA1: true,
}

// Each limit that data exceed is found, with its setting and the znodes or sessions; what is within, is not.
func TestSeed_Check(t *testing.T) {
	txns := some()
	acl := func(path string, list ...znode.ACL) replica.Txn {
		return replica.Txn{Zxid: 0x5_0000_0007, Change: replica.Change{Op: replica.OpSetACL, Path: path, ACL: list, Version: 1}}
	}
	of := func(scheme string) znode.ACL {
		return znode.ACL{Perms: znode.PermAll, ID: znode.ID{Scheme: scheme, ID: "u:h"}}
	}
	long := slices.Repeat([]znode.ACL{of("ip")}, znode.MaxACL+1)
	for i := range long {
		long[i].ID.ID = fmt.Sprintf("10.0.%d.%d", i/256, i%256)
	}
	txns = append(txns, acl("/a", of("digest"), of("sasl")), acl("/a/ttl", of("x509"), of("kerberos"), of("sasl")), acl("/c", long...))
	s, err := New(newReplica(t, txns...), 0)
	if err != nil {
		t.Fatal(err)
	}
	for name, x := range map[string]struct {
		change  func(*Limits)
		setting string
		some    string
		refused bool
	}{
		"memory":    {func(l *Limits) { l.TreeBytes = 100 }, "limits.treeBytes", "[]", true},
		"no limit":  {func(l *Limits) { l.TreeBytes = 0 }, "", "", false},
		"data":      {func(l *Limits) { l.MaxBuffer = 6 }, "jute.maxbuffer", "[/a/e /a/ttl /zookeeper/config /zookeeper/quota]", false},
		"shorter":   {func(l *Limits) { l.MinTimeout = 5 * time.Second }, "minSessionTimeout", "[0x9]", false},
		"longer":    {func(l *Limits) { l.MaxTimeout = 3 * time.Second }, "maxSessionTimeout", "[0x9]", false},
		"TTL":       {func(l *Limits) { l.ExtendedTypes = false }, "extendedTypesEnabled", "[/a/ttl]", false},
		"SASL":      {func(l *Limits) { l.SASL = false }, "java.security.auth.login.config", "[/a /a/ttl]", false},
		"x509":      {func(l *Limits) { l.X509 = false }, "ssl.clientAuth", "[/a/ttl]", false},
		"no digest": {func(l *Limits) { l.Digest = false }, "DigestAuthenticationProvider.enabled", "[/a]", false},
		"hash":      {func(l *Limits) { l.SHA1 = false }, "DigestAuthenticationProvider.digestAlg", "[/a]", false},
	} {
		l := lenient
		x.change(&l)
		all, err := s.Check(&l)
		if err != nil {
			t.Fatal(err)
		}
		found := slices.DeleteFunc(slices.Clone(all), func(f Finding) bool { return f.Setting == "none" })
		switch {
		case x.setting == "" && len(found) == 0:
			continue
		case len(found) != 1:
			t.Errorf("%s: %+v, want one more finding, of %q", name, found, x.setting)
			continue
		}
		f := found[0]
		if f.Setting != x.setting || f.Refused != x.refused || name != "data" && fmt.Sprint(f.Some) != x.some || f.Problem == "" {
			t.Errorf("%s: %+v, want %+v", name, f, x)
		}
		if x.refused && all[0].Setting != x.setting {
			t.Errorf("%s: %+v is before what is refused", name, all[0])
		}
	}
	all, err := s.Check(&lenient)
	if err != nil || len(all) != 1 || !strings.Contains(all[0].Problem, "more than 1000 entries") {
		t.Errorf("%+v, %v; want the long ACL, which no setting changes", all, err)
	}
}

// A finding names a few znodes, and counts all.
func TestSeed_Check_NamesAFew(t *testing.T) {
	var txns []replica.Txn
	for i := range 3 * MaxSome {
		txns = append(txns, replica.Txn{Zxid: znode.Zxid(i + 1), Change: replica.Change{
			Op: replica.OpCreateTTL, Path: fmt.Sprintf("/%02d", i), ACL: znode.OpenACL, TTL: 1, Creates: -1,
		}})
	}
	s, err := New(newReplica(t, txns...), 0)
	if err != nil {
		t.Fatal(err)
	}
	l := lenient
	l.ExtendedTypes = false
	found, err := s.Check(&l)
	if err != nil || len(found) != 1 || found[0].Count != 3*MaxSome || len(found[0].Some) != MaxSome || found[0].Some[9] != "/09" {
		t.Errorf("%+v, %v", found, err)
	}
}
