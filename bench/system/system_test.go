package system

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/internal/testkit/slowdisk"
)

func TestParsePerf(t *testing.T) {
	const good = `Events disabled
123,,syscalls:sys_enter_fdatasync,100,100.00,,
<not counted>,,syscalls:sys_enter_fsync,0,100.00,,
4,,syscalls:sys_enter_msync,100,100.00,,
0,,syscalls:sys_enter_sync_file_range,100,100.00,,
1,,syscalls:sys_enter_io_submit,100,100.00,,
2,,syscalls:sys_enter_pwritev2,100,100.00,,
`
	if n, err := parsePerf(good); n != 130 || err != nil {
		t.Errorf("%d, %v, want 130", n, err)
	}
	for _, bad := range []string{"", "Events disabled\n", strings.Replace(good, "123", "<not supported>", 1)} {
		if n, err := parsePerf(bad); err == nil {
			t.Errorf("%q: %d, want an error", bad, n)
		}
	}
}

// TestZooCfg_Observers: the last servers have no vote, and know it.
func TestZooCfg_Observers(t *testing.T) {
	ports := []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}
	for id, observes := range map[int]bool{3: false, 4: true} {
		text := strings.Join(zooCfg("DIR", id, ports, &Setup{Servers: 4, Observers: 1}), "\n")
		if !strings.Contains(text, "server.3=127.0.0.1:8:9\n") || !strings.Contains(text, "server.4=127.0.0.1:11:12:observer") ||
			strings.Contains(text, "peerType=observer") != observes {
			t.Errorf("server %d:\n%s\nwant server 4 alone to be an observer", id, text)
		}
	}
}

func TestParseTrace_LastCollection(t *testing.T) {
	const log = `time=now level=INFO msg="gc 9 @x, 1->1->999 MB, 2 MB goal"
gc 1 @0.011s 4%: 0.02+1.4+0.02 ms clock, 0.1+1.0/1.2/0.4+0.1 ms cpu, 3->4->2 MB, 4 MB goal, 0 MB stacks, 2 P
gc 2 @0.2s 4%: 0.02+1.4+0.02 ms clock, 0.1+1.0/1.2/0.4+0.1 ms cpu, 110->112->56 MB, 113 MB goal, 2 P
another line
`
	if n, err := parseTrace(log); n != 56<<20 || err != nil {
		t.Errorf("%d, %v, want 56 MiB", n, err)
	}
	if _, err := parseTrace("nothing"); err == nil {
		t.Error("no error without a line of the collector")
	}
}

func TestParseHeapInfo(t *testing.T) {
	const g1 = "123:\n garbage-first heap   total 2097152K, used 49012K [0x0, 0x1)\n" +
		"  region size 1024K, 2 young (2048K), 0 survivors (0K)\n Metaspace       used 20000K, committed 1K\n"
	if n, err := parseHeapInfo(g1); n != 49012<<10 || err != nil {
		t.Errorf("%d, %v, want 49012 KiB", n, err)
	}
	const serial = " def new generation   total 100K, used 10K [0x0\n  eden space 80K,  12% used\n" +
		" tenured generation   total 300K, used 20K [0x1\n"
	if n, err := parseHeapInfo(serial); n != 30<<10 || err != nil {
		t.Errorf("%d, %v, want 30 KiB", n, err)
	}
	if _, err := parseHeapInfo("no such process"); err == nil {
		t.Error("no error without a heap")
	}
}

// TestUp_ServerThatEnds: told at once, with the end of its log.
func TestUp_ServerThatEnds(t *testing.T) {
	_, err := Up(context.Background(), broken{&noop{}}, t.TempDir(), Setup{})
	if err == nil || !strings.Contains(err.Error(), "server 1 has ended") ||
		!strings.Contains(err.Error(), "port in use") {
		t.Errorf("%v, want the end of server 1 and its log", err)
	}
}

// broken is a system whose server ends at once.
type broken struct{ *noop }

func (broken) start(e *Ensemble, _ *Setup) error {
	ports, err := e.take(1)
	if err != nil {
		return err
	}
	return e.spawn(e.dir, fmt.Sprintf("127.0.0.1:%d", ports[0]), "sh", "-c", "echo port in use; exit 1")
}

// TestEnsemble_Restart: the same command in the same directory, on the same disk.
func TestEnsemble_Restart(t *testing.T) {
	e := &Ensemble{dir: t.TempDir(), setup: &Setup{Sync: []slowdisk.Profile{{Delay: time.Microsecond}}}}
	if err := e.spawn(e.dir, "", "sh", "-c", "echo begun; sync log"); err != nil {
		t.Fatal(err)
	}
	<-e.Processes[0].Ended()
	if err := e.Restart(0); err != nil {
		t.Fatal(err)
	}
	<-e.Processes[0].Ended()
	if got := e.Processes[0].Tail(); got != "begun\nbegun\n" {
		t.Errorf("log %q", got)
	}
	if n := e.Disks[0].Syncs(); n != 2 {
		t.Errorf("%d syncs, want 2", n)
	}
}

// TestSetup_Disk: the last one is that of all that follow.
func TestSetup_Disk(t *testing.T) {
	if (&Setup{}).disk(1) != nil {
		t.Error("a disk that nobody asked for")
	}
	o := &Setup{Sync: []slowdisk.Profile{{Delay: time.Hour}, {}}}
	if o.disk(1).Profile() != o.Sync[0] || o.disk(2).Profile() != o.Sync[1] || o.disk(3).Profile() != o.Sync[1] {
		t.Error("another server's disk")
	}
}

func TestZooCfg_SizesAndHTTP(t *testing.T) {
	ports := []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}
	three := strings.Join(zooCfg("DIR", 2, ports, &Setup{Servers: 3, HTTP: true, Lines: []string{"x=y"}}), " ")
	for _, want := range []string{"clientPort=4 ", "admin.serverPort=11 ", "server.3=127.0.0.1:8:9", "x=y"} {
		if !strings.Contains(three, want) {
			t.Errorf("no %q in %s", want, three)
		}
	}
	alone := strings.Join(zooCfg("DIR", 1, ports, &Setup{Servers: 1}), " ")
	if strings.Contains(alone, "server.") || !strings.Contains(alone, "admin.enableServer=false") {
		t.Errorf("%s, want no server.N and no HTTP port", alone)
	}
}

func TestSite_Head_MachineVersionsAndWhatIsMissing(t *testing.T) {
	s := &Site{Machine: []string{"2 x processor", "Linux"}}
	h := &Head{Began: time.Now().Add(-time.Minute), How: "medians of 3 rounds",
		Versions: []string{"etcd: 3.7"}}
	text := s.Head(h)
	if want := ": medians of 3 rounds.\n\n- 2 x processor\n- Linux\n- etcd: 3.7\n\n"; !strings.HasPrefix(text, "\nMeasured on ") ||
		!strings.HasSuffix(text, want) {
		t.Errorf("no %q in:\n%s", want, text)
	}
	h.End = errors.New("interrupted")
	if text := s.Head(h); !strings.Contains(text, "\n\n**Not complete** (interrupted).\n\n- 2 x") {
		t.Errorf("does not say that it is not complete:\n%s", text)
	}
}
