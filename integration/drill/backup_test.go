package drill

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/integration/cluster"
	"github.com/zk-lite/zk-lite/internal/testkit/tier"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
)

// znodesVariable is how many znodes there are; `make drill-backup` sets it to a million.
const znodesVariable = "ZK_LITE_TEST_DRILL_ZNODES"

func TestMain(m *testing.M) { os.Exit(cluster.Main(m)) }

// TestBackup is the drill for backups: one is taken by the servers, verified and compared; then all is lost, and it is
// restored into a new ensemble.
func TestBackup(t *testing.T) {
	tier.Seconds(t)
	znodes, err := strconv.Atoi(cmp.Or(os.Getenv(znodesVariable), "2000"))
	if err != nil {
		t.Fatal(err)
	}
	d := &drill{t: t, dir: t.TempDir()}
	interval := "1s"
	if znodes > 100_000 {
		interval = "20s"
	}
	d.e = cluster.Start(t, 3, cluster.Options{Config: map[string]string{
		"backup.directory": d.dir, "backup.interval": interval, "backup.keepCount": "2",
	}})
	d.e.WaitServing()
	d.step("znodes are created", func() { d.fill(znodes) })
	file := d.scheduled(znodes)
	d.step("backup verify", func() { d.command(0, "", "backup", "verify", file) })
	d.step("backup diff with the ensemble", func() { d.command(0, "", "backup", "diff", file) })
	for _, s := range d.e.Servers() {
		s.Kill()
		s.Wipe()
	}
	d.step("an empty ensemble is started", func() {
		for _, s := range d.e.Servers() {
			s.Start()
		}
		d.e.WaitServing()
	})
	d.command(4, "another ensemble", "restore", "--yes", file)
	d.step("restore", func() { d.command(0, "restored", "restore", "--yes", "--other-ensemble", file) })
	d.step("backup diff with the ensemble", func() { d.command(0, "", "backup", "diff", file) })
}

type drill struct {
	t   *testing.T
	e   *cluster.Ensemble
	dir string // of the backups
}

// step does something, and logs how long it took.
func (d *drill) step(what string, do func()) {
	d.t.Helper()
	begin := time.Now()
	do()
	d.t.Logf("%-32s %6.1f s", what, time.Since(begin).Seconds())
}

// fill creates that many znodes of 100 bytes.
func (d *drill) fill(znodes int) {
	const atOnce, clients = 500, 4
	var addrs []string
	for _, s := range d.e.Servers() {
		addrs = append(addrs, s.Addr())
	}
	work := make(chan int)
	var all sync.WaitGroup
	for range clients {
		c, err := client.Connect(d.t.Context(), strings.Join(addrs, ","))
		if err != nil {
			d.t.Fatal(err)
		}
		defer c.Close()
		all.Go(func() {
			for first := range work {
				m := c.Multi()
				for i := first; i < min(first+atOnce, znodes); i++ {
					m.Create(fmt.Sprintf("/n%07d", i), make([]byte, 100), client.Persistent)
				}
				if err := m.Commit(d.t.Context()); err != nil {
					d.t.Errorf("creating znodes from %d: %v", first, err)
				}
			}
		})
	}
	for first := 0; first < znodes; first += atOnce {
		work <- first
	}
	close(work)
	all.Wait()
}

// scheduled waits until the servers have taken a backup with all znodes, and returns a copy that they do not remove.
func (d *drill) scheduled(znodes int) (file string) {
	took := regexp.MustCompile(`msg="backup taken and verified" zxid=(\w+) took=(\S+)`)
	wait.Within(d.t, "a backup with all znodes", 5*wait.Patience, func() error {
		for _, line := range strings.Split(d.command(-1, "", "backup", "ls", "-o", "json", d.dir), "\n") {
			var f struct {
				File, Zxid string
				Znodes     int
			}
			if json.Unmarshal([]byte(line), &f) != nil || f.Znodes < znodes {
				continue
			}
			for _, s := range d.e.Servers() {
				for _, m := range took.FindAllStringSubmatch(s.Log(), -1) {
					if m[1] == f.Zxid {
						d.t.Logf("%-32s %6s, server %d", "a server takes and verifies it", m[2], s.ID)
					}
				}
			}
			file = filepath.Join(d.t.TempDir(), "zk.backup")
			return os.Link(f.File, file)
		}
		return errors.New("there is none yet")
	})
	info, err := os.Stat(file)
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Logf("%-32s %6d KiB", "its size", info.Size()>>10)
	return file
}

// command runs a command of zk-lite that must end with a code (-1: any) and print a text, and returns its output.
func (d *drill) command(code int, says string, args ...string) string {
	d.t.Helper()
	if args[0] == "restore" || args[1] == "diff" {
		args = append(args, "--auth", "digest:"+cluster.SuperCredentials, "--http", "http://"+d.e.Server(1).HTTPAddr())
	}
	c := exec.Command(os.Getenv(cluster.BinaryVariable), args...)
	out, err := c.CombinedOutput()
	if got := c.ProcessState.ExitCode(); code >= 0 && (got != code || !strings.Contains(string(out), says)) {
		d.t.Fatalf("%q: code %d, %v, %s; want code %d, %q", args, got, err, out, code, says)
	}
	return string(out)
}
