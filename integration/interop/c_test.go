//go:build interop

package interop_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/zk-lite/zk-lite/integration/cluster"
)

// cChecks compiles testdata/c_checks.c with a library of the multi-threaded C client.
func cChecks(t *testing.T, flags ...string) (program string) {
	t.Helper()
	gcc := cluster.NeedTool(t, "/usr/bin/gcc", "gcc libc6-dev")
	cluster.NeedTool(t, "/usr/include/zookeeper/zookeeper.h", "libzookeeper-mt-dev")
	dir := t.TempDir()
	program = filepath.Join(dir, "c_checks")
	run(t, dir, append([]string{gcc, "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-DTHREADED", "-o", program,
		testdata(t, "c_checks.c"), "-lpthread"}, flags...)...)
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
	run(t, dir, build, library)
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
		out := run(t, dir, cli, e.ConnectString(), "cmd:ls /")
		if !strings.Contains(out, "zookeeper") || !strings.Contains(out, "rc = 0") {
			t.Errorf("cli_mt printed %s, want zookeeper and rc = 0", out)
		}
	})
}
