package load

import (
	"os"
	"testing"
	"time"
)

func TestParseStat(t *testing.T) {
	const tail = " S 1 1 1 0 -1 4194560 1 2 3 4 150 50 7 8 20 0 1 0 100 1000 10"
	for _, c := range []struct {
		stat string
		want time.Duration
	}{
		{"42 (zk-lite)" + tail, 2 * time.Second},
		{"42 (a) b) (c)" + tail, 2 * time.Second},
		{"42 (x) S 1", -1},
		{"no brackets", -1},
		{"", -1},
	} {
		got, err := parseStat([]byte(c.stat))
		if err != nil {
			got = -1
		}
		if got != c.want {
			t.Errorf("%q: %v, %v, want %v", c.stat, got, err, c.want)
		}
	}
}

func TestReadProcess_Self(t *testing.T) {
	p, err := ReadProcess(os.Getpid())
	if err != nil || p.RSS < 1<<20 || p.PeakRSS < p.RSS {
		t.Errorf("%+v, %v, want at least 1 MiB, and a peak that is no less", p, err)
	}
	if _, err := ReadProcess(1 << 30); err == nil {
		t.Error("a process that does not exist was read")
	}
}

func TestUsage_Since_NotesTheDead(t *testing.T) {
	before := usage{servers: []Process{{PID: 1, CPU: time.Second}, {PID: 2, CPU: time.Second}}}
	after := usage{servers: []Process{{PID: 1, CPU: 3 * time.Second, RSS: 5}, {PID: 2, Ended: true}}}
	d := after.since(before)
	if d.servers[0].CPU != 2*time.Second || d.servers[0].RSS != 5 || d.servers[1].CPU != 0 {
		t.Errorf("%+v, want 2 s of the first and nothing of the second", d.servers)
	}
}
