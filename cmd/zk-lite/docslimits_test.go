package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zk-lite/zk-lite/api/rest"
	"github.com/zk-lite/zk-lite/app/config"
	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/internal/sizing"
	"github.com/zk-lite/zk-lite/recipes"
)

// TestDocs_Limits: the figures of docs/limits.md are those of the code.
func TestDocs_Limits(t *testing.T) {
	page, err := os.ReadFile("../../docs/limits.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "\n## How large\n")
	table, _, _ = strings.Cut(table, "\n## ")
	rows := map[string]string{}
	for line := range strings.Lines(table) {
		if cells := strings.SplitN(line, "|", 3); len(cells) == 3 {
			rows[strings.TrimSpace(cells[1])] = cells[2]
		}
	}
	s, _, err := config.Load(nil, func(string) (string, bool) { return "", false })
	if err != nil {
		t.Fatal(err)
	}
	each := func(l sizing.Load) int64 { // bytes in use for one of a million
		l.Servers = 1
		e, none := l.Estimate(), sizing.Load{Servers: 1}
		return (e.Live - none.Estimate().Live) / 1_000_000
	}
	for row, want := range map[string]string{
		"data of a znode, with path and ACL": grouped(s.ZooKeeper.MaxFrame) + " bytes",
		"a value in parts":                   fmt.Sprintf("%d GiB", recipes.MaxBlob>>30),
		"children of a znode":                "pages of " + grouped(rest.MaxPage),
		"a multi":                            fmt.Sprintf("%s operations, 4 MiB | up to %d MiB", grouped(state.MaxSubtree), state.MaxCommand>>20),
		"connections":                        fmt.Sprintf("%d of an address", s.ZooKeeper.MaxPerAddress),
		"watches":                            grouped(s.Server.WatchLimit) + " of a connection",
		"sessions":                           fmt.Sprintf("%d bytes each", each(sizing.Load{Sessions: 1_000_000})-3000),
	} {
		if !strings.Contains(rows[row], want) {
			t.Errorf("docs/limits.md says of %s: %q; want %q", row, rows[row], want)
		}
	}
}

// grouped writes a number with commas.
func grouped(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", grouped(n/1000), n%1000)
}

// TestDocs_FirmConfiguration: a server takes the configuration of docs/security.md as it is, beside the certificates of
// the three commands.
func TestDocs_FirmConfiguration(t *testing.T) {
	dir := t.TempDir()
	var zoo string
	for _, block := range blocksOf(t, "../../docs/security.md", "") {
		if strings.Contains(block, "server.1=") && strings.Contains(block, "admin.forceHttps=true") {
			zoo = block
		}
	}
	zoo = strings.NewReplacer("/var/lib/zk-lite", dir, "/etc/zk-lite/server.pem", dir+"/tls/zk1.pem",
		"/etc/zk-lite/ca.pem", dir+"/tls/ca.pem", "/etc/zk-lite/join.secret", dir+"/join.secret").Replace(zoo)
	for name, text := range map[string]string{"zoo.cfg": zoo, "myid": "1\n", "join.secret": "sixteen characters and more\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range []string{"tls init", "tls issue zk1 --host zk1.example", "server --config zoo.cfg --check"} {
		c := exec.CommandContext(t.Context(), "zk-lite", strings.Fields(args)...)
		c.Dir = dir
		if out, err := c.CombinedOutput(); err != nil || strings.Contains(string(out), "warning") {
			t.Errorf("zk-lite %s: %v\n%s", args, err, out)
		}
	}
}
