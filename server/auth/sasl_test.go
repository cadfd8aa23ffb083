package auth

import (
	"slices"
	"testing"

	"github.com/zk-lite/zk-lite/znode"
)

func TestSASL_Identities(t *testing.T) {
	sasl := func(name string) []znode.ID { return []znode.ID{{Scheme: "sasl", ID: name}} }
	boss := append(sasl("boss"), znode.SuperIDs)
	for _, x := range []struct {
		user        string
		host, realm bool // are removed
		want        []znode.ID
	}{
		{"bob", false, false, sasl("bob")}, {"bob", true, true, sasl("bob")}, {"a/b/c", true, true, sasl("a/b/c")},
		{"hbase/h1@HERE", false, false, sasl("hbase/h1@HERE")}, {"hbase/h1@HERE", true, false, sasl("hbase@HERE")},
		{"hbase/h1@HERE", false, true, sasl("hbase/h1")}, {"hbase/h1@HERE", true, true, sasl("hbase")},
		{"boss@HERE", false, false, sasl("boss@HERE")}, {"boss@HERE", false, true, boss}, {"boss", false, false, boss},
		{"boss@THERE", true, true, sasl("boss@THERE")}, // somebody else
		{"boss/h@THERE", true, true, sasl("boss/h@THERE")},
		{"", true, true, nil}, {"a@b@c", true, true, nil}, {"a/b/c@HERE", true, true, nil}, {"@HERE", true, true, nil},
		{"/h@HERE", true, true, nil}, {"boss@", true, true, sasl("boss@")},
	} {
		s := &SASL{Realm: func() string { return "HERE" }, RemoveHost: x.host, RemoveRealm: x.realm, Supers: []string{"boss"}}
		if ids, err := s.Identities(x.user); !slices.Equal(ids, x.want) || (err == nil) != (x.want != nil) {
			t.Errorf("%+v: %v, %v", x, ids, err)
		}
	}
	if !New(Config{SASL: &SASL{Supers: []string{"boss"}}}).Configured() || New(Config{SASL: &SASL{}}).Configured() {
		t.Error("who has named super users is not known")
	}
}
