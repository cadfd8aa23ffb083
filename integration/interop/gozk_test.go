//go:build interop

package interop_test

import (
	"os"
	"path/filepath"
	"testing"
)

// TestInterop_GoZookeeper builds and runs the module gozk: the operations,
// watches and lock of github.com/go-zookeeper/zk.
func TestInterop_GoZookeeper(t *testing.T) {
	program := filepath.Join(t.TempDir(), "gozk")
	// Away from any workspace, whose modules would choose other versions.
	t.Setenv("GOWORK", "off")
	t.Setenv("GOFLAGS", "-mod=readonly")
	dir, err := filepath.Abs("gozk")
	if err != nil {
		t.Fatal(err)
	}
	run(t, dir, "go", "build", "-o", program, ".")
	if _, err := os.Stat(program); err != nil {
		t.Fatal(err)
	}
	e := ensemble(t)
	drive(t, e, t.TempDir(), program, e.ConnectString())
}
