package process

import (
	"path/filepath"
	"runtime"
	"testing"
	"time"
)

func TestNow_GrowsWithWork(t *testing.T) {
	before := Now()
	for Now().CPU <= before.CPU {
		runtime.Gosched()
	}
	if age := time.Since(before.Started); age < 0 || age > time.Hour {
		t.Errorf("started %v ago", age)
	}
	if runtime.GOOS == "linux" && before.Resident < 1<<20 {
		t.Errorf("%d bytes are resident", before.Resident)
	}
}

func TestFreeBytes(t *testing.T) {
	if n, err := FreeBytes(t.TempDir()); n <= 0 || err != nil {
		t.Errorf("%d bytes are free (%v), want some", n, err)
	}
	if _, err := FreeBytes(filepath.Join(t.TempDir(), "missing")); err == nil {
		t.Error("there is room on no disk")
	}
}
