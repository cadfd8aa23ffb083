package app_test

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
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
	e.Stop(running[0]) // which may be in the middle of a backup
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

// A backup that fails is counted, and reported by /readyz, which stays well: clients are served.
func TestServer_Backups_FailureIsReported(t *testing.T) {
	tier.Seconds(t)
	dir := filepath.Join(t.TempDir(), "missing")
	e := zklitetest.Start(t, zklitetest.WithSetting("backup.directory", dir), zklitetest.WithSetting("backup.interval", "1s"))
	report := func(want string) {
		wait.Until(t, want, func() bool {
			resp, err := http.Get("http://" + e.HTTPAddrs()[0] + "/readyz?verbose")
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			text, err := io.ReadAll(resp.Body)
			return err == nil && resp.StatusCode == http.StatusOK && strings.Contains(string(text), want)
		})
	}
	report(`{"name":"backup","ok":false,"detail":"open ` + dir)
	if n := metric(t, e.HTTPAddrs()[0], "backup_failures_total"); n == 0 {
		t.Error("it is not counted")
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	report(`{"name":"backup","ok":true}`)
	if n := metric(t, e.HTTPAddrs()[0], "backup_last_success_timestamp_seconds"); n == 0 {
		t.Error("the time of the good backup is not known")
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
