package app_test

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/internal/testkit/tier"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
	"github.com/zk-lite/zk-lite/zklitetest"
)

// One server of an ensemble takes the backups, and when it stops another one goes on.
func TestServer_Backups_OneServerTakesThem(t *testing.T) {
	tier.Seconds(t)
	dir := t.TempDir()
	e := zklitetest.Start(t, zklitetest.WithServers(3), zklitetest.WithSetting("backup.directory", dir),
		zklitetest.WithSetting("backup.interval", "1s"), zklitetest.WithSetting("backup.keepCount", "2"))
	running := []int{0, 1, 2}
	for range 2 {
		who := -1
		before := map[int]int{}
		for _, i := range running {
			before[i] = metric(t, e.HTTPAddrs()[i], "backups_total")
		}
		wait.Until(t, "a server takes backups", func() bool {
			for _, i := range running {
				if metric(t, e.HTTPAddrs()[i], "backups_total") >= before[i]+2 {
					who = i
				}
			}
			return who >= 0
		})
		if who == e.Leader() {
			t.Errorf("the leader takes the backups, and there are others")
		}
		for at, i := range running {
			if n := metric(t, e.HTTPAddrs()[i], "backup_failures_total"); n > 0 {
				t.Errorf("server %d: %d failures", i, n)
			}
			if i == who {
				running = append(running[:at:at], running[at+1:]...)
			}
		}
		e.Stop(who)
		if len(running) == 1 {
			break
		}
	}
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) == 0 || len(files) > 3 {
		t.Fatalf("%q, %v", files, err)
	}
	for _, name := range files {
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if _, err := state.ReadBackup(f); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// metric is a metric of the server at this address, without labels.
func metric(t *testing.T, addr, name string) int {
	t.Helper()
	resp, err := http.Get("http://" + addr + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(fmt.Sprintf(`(?m)^%s (\d+)$`, name)).FindSubmatch(text)
	if found == nil {
		t.Fatalf("no metric %s", name)
	}
	n, err := strconv.Atoi(string(found[1]))
	if err != nil {
		t.Fatal(err)
	}
	return n
}
