package process

import (
	"log/slog"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"testing"
	"time"
)

func TestRoomOf_MemoryOfMachines(t *testing.T) {
	for total, want := range map[int64]int64{
		0: 16 << 20, 1 << 30: 16 << 20, 8 << 30: 32 << 20, 24 << 30: 96 << 20, 1 << 40: 128 << 20,
	} {
		if got := roomOf(total); got != want {
			t.Errorf("%d MiB: room of %d MiB, want %d", total>>20, got>>20, want>>20)
		}
	}
}

func TestPercentFor_LiveHeaps(t *testing.T) {
	const room = 96 << 20
	for live, want := range map[int64]int{
		0: 2400, 4 << 20: 2400, 48 << 20: 200, 96 << 20: 100, 1 << 30: 100, 1 << 40: 100,
	} {
		if got := percentFor(live, room); got != want {
			t.Errorf("%d MiB alive: GOGC %d, want %d", live>>20, got, want)
		}
	}
}

func TestParse_Machines(t *testing.T) {
	for text, want := range map[string]int64{
		"MemTotal:       24683892 kB\nMemFree:        1 kB\n": 24683892 << 10,
		"MemFree: 1 kB\nMemTotal: 2 kB":                       2 << 10,
		"":                                                    0, "MemTotal: x kB": 0, "MemTotal: 5": 0, "MemTotal: -5 kB": 0,
		"MemTotal: 9223372036854775807 kB": 0,
	} {
		if got := parseMemInfo(text); got != want {
			t.Errorf("meminfo %q: %d, want %d", text, got, want)
		}
	}
	for text, want := range map[string]int64{
		"max\n": 0, "536870912\n": 512 << 20, "": 0, "9223372036854771712": 9223372036854771712,
	} {
		if got := parseLimit(text); got != want {
			t.Errorf("limit %q: %d, want %d", text, got, want)
		}
	}
}

// A server in a control group that is not a container's saw the machine's memory only.
func TestLimitFiles_GroupsOfAProcess(t *testing.T) {
	for text, want := range map[string][]string{
		"0::/\n": {"/sys/fs/cgroup/memory.max"},
		"0::/system.slice/zk.service\n": {
			"/sys/fs/cgroup/system.slice/zk.service/memory.max",
			"/sys/fs/cgroup/system.slice/memory.max", "/sys/fs/cgroup/memory.max",
		},
		"7:cpu,cpuacct:/a\n6:memory:/a/b\n1:name=systemd:/\n": {
			"/sys/fs/cgroup/memory/a/b/memory.limit_in_bytes",
			"/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.limit_in_bytes",
		},
		"": nil, "0:memory\n": nil, "::../..\n": {"/sys/fs/cgroup/memory.max"},
	} {
		if got := limitFiles(text); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func gogc() uint64 {
	sample := []metrics.Sample{{Name: "/gc/gogc:percent"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// The heap grows beyond its room, and GOGC follows; later the former value is set again.
func TestTune_HeapGrows_GOGCFollows(t *testing.T) {
	unsetenv(t, "GOGC")
	unsetenv(t, "GOMEMLIMIT")
	before, limit := gogc(), debug.SetMemoryLimit(-1)
	stop := TuneCollector(slog.New(slog.DiscardHandler))
	if gogc() <= usual {
		t.Errorf("GOGC is %d for a small heap", gogc())
	}
	large := make([]byte, 2*maxRoom)
	until := time.Now().Add(time.Minute)
	for gogc() != usual && time.Now().Before(until) {
		runtime.GC() // the finalizer runs some time after
	}
	if got := gogc(); got != usual {
		t.Errorf("GOGC is %d for a large heap", got)
	}
	runtime.KeepAlive(large)
	for gogc() == usual && time.Now().Before(until) {
		runtime.GC()
	}
	if got := gogc(); got == usual {
		t.Errorf("GOGC is still %d for a small heap", got)
	}
	stop()
	runtime.GC()
	if gogc() != before || debug.SetMemoryLimit(-1) != limit {
		t.Errorf("afterwards GOGC is %d, the limit %d; before they were %d and %d",
			gogc(), debug.SetMemoryLimit(-1), before, limit)
	}
}

func TestTune_Environment_HasTheLastWord(t *testing.T) {
	t.Setenv("GOGC", "100")
	t.Setenv("GOMEMLIMIT", "1GiB")
	before, limit := gogc(), debug.SetMemoryLimit(-1)
	defer TuneCollector(slog.New(slog.DiscardHandler))()
	if gogc() != before || debug.SetMemoryLimit(-1) != limit {
		t.Errorf("GOGC %d, limit %d were set though the environment has them",
			gogc(), debug.SetMemoryLimit(-1))
	}
}

// unsetenv removes a variable of the environment until the end of the test.
func unsetenv(t *testing.T, key string) {
	t.Helper()
	t.Setenv(key, "") // which restores it
	if err := os.Unsetenv(key); err != nil {
		t.Fatal(err)
	}
}
