//go:build interop

package interop_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zk-lite/zk-lite/integration/cluster"
)

// TestInterop_Java compiles and runs testdata/JavaChecks.java: the operations,
// watches and recipes of ZooKeeper's own client.
func TestInterop_Java(t *testing.T) {
	java := cluster.Java(t, "JavaChecks.java")
	e := ensemble(t)
	drive(t, e, t.TempDir(), append(java, "JavaChecks", e.ConnectString())...)
}

// cChecks compiles testdata/c_checks.c with a library of the multi-threaded C client.
func cChecks(t *testing.T, flags ...string) (program string) {
	t.Helper()
	gcc := cluster.NeedTool(t, "/usr/bin/gcc", "gcc libc6-dev")
	cluster.NeedTool(t, "/usr/include/zookeeper/zookeeper.h", "libzookeeper-mt-dev")
	dir := t.TempDir()
	program = filepath.Join(dir, "c_checks")
	cluster.Execute(t, dir, append([]string{gcc, "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-DTHREADED", "-o", program,
		cluster.Testdata(t, "c_checks.c"), "-lpthread"}, flags...)...)
	return program
}

// cSecure compiles it with a library that has TLS and SASL.
func cSecure(t *testing.T) (program string) {
	t.Helper()
	build, err := filepath.Abs("build-c-client")
	if err != nil {
		t.Fatal(err)
	}
	cluster.NeedTool(t, "/usr/include/sasl/sasl.h", "libsasl2-dev libsasl2-modules libsasl2-modules-gssapi-mit libssl-dev dpkg-dev")
	dir := t.TempDir()
	library := filepath.Join(dir, "libzookeeper_secure.so")
	cluster.Execute(t, dir, build, library)
	return cChecks(t, "-DHAVE_OPENSSL_H", "-DHAVE_CYRUS_SASL_H", library, "-lsasl2")
}

// TestInterop_TLS_C runs the C client's checks over TLS, with certificates on both sides.
func TestInterop_TLS_C(t *testing.T) {
	program := cSecure(t)
	e, _, _, _ := secure(t)
	drive(t, e, t.TempDir(), program, e.ConnectString())
	secured(t, e)
}

// TestInterop_C runs the operations and watches of the client without TLS.
func TestInterop_C(t *testing.T) {
	dir, program := t.TempDir(), cChecks(t, "-lzookeeper_mt")
	e := ensemble(t)
	drive(t, e, dir, program, e.ConnectString())
	t.Run("cli_mt", func(t *testing.T) {
		cli := cluster.NeedTool(t, "/usr/lib/zookeeper/bin/cli_mt", "zookeeper-bin")
		out := cluster.Execute(t, dir, cli, e.ConnectString(), "cmd:ls /")
		if !strings.Contains(out, "zookeeper") || !strings.Contains(out, "rc = 0") {
			t.Errorf("cli_mt printed %s, want zookeeper and rc = 0", out)
		}
	})
}

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
	cluster.Execute(t, dir, "go", "build", "-o", program, ".")
	if _, err := os.Stat(program); err != nil {
		t.Fatal(err)
	}
	e := ensemble(t)
	drive(t, e, t.TempDir(), program, e.ConnectString())
}

// TestInterop_Kazoo runs testdata/kazoo_checks.py: kazoo's operations, watches
// and recipes.
func TestInterop_Kazoo(t *testing.T) {
	kazoo := cluster.Kazoo(t, "kazoo_checks.py")
	e := ensemble(t)
	drive(t, e, t.TempDir(), append(kazoo, e.ConnectString())...)
}
