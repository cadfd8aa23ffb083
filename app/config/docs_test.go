package config

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

const docsFile = "../../docs/reference/settings.md"

// TestDocs_Configuration keeps the tables of docs/reference/settings.md equal to
// the tables of this package; -update rewrites them.
func TestDocs_Configuration(t *testing.T) {
	text, err := os.ReadFile(docsFile)
	if err != nil {
		t.Fatal(err)
	}
	want := string(text)
	for name, table := range map[string]string{
		"settings": settingsTable(), "refused": foreignTable(t, refusedKeys()),
		"ignored": foreignTable(t, ignoredKeys()), "tuning": foreignTable(t, tuningKeys()),
	} {
		begin := fmt.Sprintf("<!-- begin %s: written by the test of app/config -->\n", name)
		end := fmt.Sprintf("<!-- end %s -->", name)
		head, rest, ok := strings.Cut(want, begin)
		_, tail, ok2 := strings.Cut(rest, end)
		if !ok || !ok2 {
			t.Fatalf("%s has no marks for the table %s", docsFile, name)
		}
		want = head + begin + table + end + tail
	}
	if want == string(text) {
		return
	}
	if !*update {
		t.Fatalf("%s differs from the package's tables; "+
			"run go test ./app/config -run TestDocs -update", docsFile)
	}
	if err := os.WriteFile(docsFile, []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}

func settingsTable() string {
	var b strings.Builder
	b.WriteString("| zoo.cfg | flag | type | default | range | meaning |\n")
	b.WriteString("|---|---|---|---|---|---|\n")
	for _, st := range table(new(Settings)) {
		if st.kind == kindRetired {
			continue
		}
		names := []string{}
		for _, k := range append([]string{st.key}, st.aliases...) {
			if k != "" {
				names = append(names, code(k))
			}
		}
		def, bounds := "", ""
		if st.def != "" && !(st.minusOne && st.def == "-1") {
			def = code(st.def)
		}
		if st.max != 0 || st.kind == kindServer || st.choices != nil {
			bounds = st.bounds()
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s |\n", strings.Join(names, ", "),
			code("--"+st.flagName()), st.kind.name(), def, bounds, strings.ReplaceAll(st.help, "|", `\|`))
	}
	return b.String()
}

// foreignTable spells out which keys of ZooKeeper's a beginning stands for, so that readers find theirs.
func foreignTable(t *testing.T, families []foreign) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("| keys | because zk-lite |\n|---|---|\n")
	for _, f := range families {
		keys := make([]string, len(f.keys))
		for i, k := range f.keys {
			keys[i] = code(k)
			if all := standsFor(t, k); len(all) > 0 {
				keys[i] += " (" + strings.Join(all, ", ") + ")"
			}
		}
		harmless := strings.Fields(f.harmless)
		if f.verdict == refused {
			harmless = append(harmless, "false")
		}
		why := f.why
		if len(harmless) > 0 {
			why += " (not `" + strings.Join(harmless, "`, `") + "`)"
		}
		fmt.Fprintf(&b, "| %s | %s |\n", strings.Join(keys, ", "), why)
	}
	return b.String()
}

// standsFor lists the keys of ZooKeeper's that a beginning, with its star, is for.
func standsFor(t *testing.T, beginning string) (all []string) {
	t.Helper()
	start, many := strings.CutSuffix(beginning, "*")
	for _, key := range zooKeeperKeys(t) {
		if f := familyOf(key); many && key != start && strings.HasPrefix(key, start) && slices.Contains(f.keys, beginning) {
			all = append(all, code(key))
		}
	}
	return all
}

func code(s string) string { return "`" + s + "`" }

// TestTable_NamesAreUnique: a name stands for one setting everywhere.
func TestTable_NamesAreUnique(t *testing.T) {
	seen := map[string]bool{}
	for _, st := range table(new(Settings)) {
		for _, name := range append([]string{st.key, "--" + st.flagName(), st.envName()}, st.aliases...) {
			if name != "" && seen[name] {
				t.Errorf("%s stands for two settings", name)
			}
			seen[name] = true
		}
		if st.help == "" || !strings.HasSuffix(st.help, ".") {
			t.Errorf("--%s: the help text is not a sentence: %q", st.flagName(), st.help)
		}
	}
}
