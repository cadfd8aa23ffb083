package curator_test

import (
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/internal/curator"
)

func FuzzDelayMark(f *testing.F) {
	f.Add([]byte("15s held _c_a-lock-0000000004"))
	f.Add([]byte("1h0m0s lost x y"))
	f.Add([]byte("2h held x"))
	f.Add([]byte("0s lost x"))
	f.Add([]byte("15s gone x"))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := curator.ParseDelayMark(data)
		if err != nil {
			return
		}
		if m.Delay <= 0 || m.Delay > curator.MaxDelay || m.Holder == "" {
			t.Errorf("%q is %+v, want a delay within its bounds and a holder", data, m)
		}
		if again, err := curator.ParseDelayMark(m.Bytes()); err != nil || again != m {
			t.Errorf("%q: %+v, encoded and parsed again %+v, %v", data, m, again, err)
		}
	})
}

func TestDelayMark(t *testing.T) {
	m := curator.DelayMark{Delay: 15 * time.Second, Holder: "h", Lost: true}
	if got := m.Remaining(1000, 4500); got != 11500*time.Millisecond {
		t.Errorf("3.5 s after its loss %v remain, want 11.5s", got)
	}
	if got := m.Remaining(4500, 1000); got != m.Delay {
		t.Errorf("with a clock that was set back %v remain, want all", got)
	}
	if m, err := curator.ParseDelayMark([]byte("garbage")); err == nil {
		t.Errorf("garbage is %+v, want an error", m)
	}
	if _, ok := curator.Parse(curator.DelayName, curator.Lock, curator.KazooLock, curator.Latch); ok {
		t.Error("the mark is in the queue")
	}
}
