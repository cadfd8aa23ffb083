package config

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// zooKeeperKeys are the names of all that configures a server of ZooKeeper 3.9.5, from testdata/zookeeper-keys.sh.
func zooKeeperKeys(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile("testdata/zookeeper-3.9.5.keys")
	if err != nil {
		t.Fatal(err)
	}
	keys := strings.Fields(string(text))
	if len(keys) < 280 {
		t.Fatalf("only %d keys", len(keys))
	}
	return keys
}

// readElsewhere are those that the loader reads without a row, by their names in the list.
func readElsewhere() []string { return []string{"server.", "dynamicConfigFile", "authProvider."} }

// TestKeys_EachOfZooKeeperHasItsPlace: each is a setting, or without effect or refused for a reason that the table has;
// and docs/reference/settings.md has its name.
func TestKeys_EachOfZooKeeperHasItsPlace(t *testing.T) {
	page, err := os.ReadFile(docsFile)
	if err != nil {
		t.Fatal(err)
	}
	l := &loader{rows: table(new(Settings))}
	for _, key := range zooKeeperKeys(t) {
		if !slices.Contains(readElsewhere(), key) && l.known(key) == nil && familyOf(key) == nil {
			t.Errorf("%s is unknown", key)
		}
		name := key
		if strings.HasSuffix(key, ".") {
			name += "N"
		}
		if !strings.Contains(string(page), code(name)) && !strings.Contains(string(page), code(key+"*")) {
			t.Errorf("%s has no %s", docsFile, name)
		}
	}
}

// TestKeys_ReasonsSaySomething: a reason is a phrase, and a refusal says what to do.
func TestKeys_ReasonsSaySomething(t *testing.T) {
	for _, f := range foreignKeys() {
		remedy := strings.Contains(f.why, "; ") || strings.Contains(f.why, ": ")
		if len(strings.Fields(f.why)) < 3 || (f.verdict == refused || f.verdict == forbidden) && !remedy {
			t.Errorf("%q: zk-lite %s", f.keys, f.why)
		}
	}
}

// TestForeignKeys_NoneIsASetting: a key that has become a setting must leave
// the lists of those that are none.
func TestForeignKeys_NoneIsASetting(t *testing.T) {
	for _, st := range table(new(Settings)) {
		for _, fk := range foreignKeys() {
			if st.key != "" && fk.matches(st.key) {
				t.Errorf("%s is a setting and matches %q", st.key, fk.keys)
			}
		}
	}
}
