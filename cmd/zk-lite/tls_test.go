package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zk-lite/zk-lite/cmd/zk-lite/cli"
	"github.com/zk-lite/zk-lite/internal/testkit/ports"
	"github.com/zk-lite/zk-lite/internal/testkit/tier"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
)

// zkLite runs the program's command line in this process.
func zkLite(ctx context.Context, args ...string) (out *output, err error) {
	out = &output{}
	root := rootCommand()
	root.SetOut(out)
	root.SetErr(out)
	root.SetArgs(args)
	return out, root.ExecuteContext(ctx)
}

// The whole of dev --tls: an ensemble that speaks only TLS, and commands of all kinds by the same few flags.
func TestDev_TLS(t *testing.T) {
	tier.Seconds(t)
	dir, port := t.TempDir(), ports.Take(t, 9)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	out := &output{}
	root := rootCommand()
	root.SetOut(out)
	root.SetArgs([]string{"dev", "--tls", "--servers", "1", "--data-dir", dir, "--client-port", fmt.Sprint(port[0]),
		"--http-port", fmt.Sprint(port[1])})
	go func() { ended <- root.ExecuteContext(ctx) }()
	defer func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	wait.Until(t, "the ensemble serves", func() bool { return strings.Contains(out.String(), "Ctrl-C stops it") })
	file := func(name string) string { return filepath.Join(dir, "tls", name) }
	if !strings.Contains(out.String(), "ZK_LITE_TLS_CA="+file("ca.pem")) {
		t.Errorf("got %q, want ZK_LITE_TLS_CA with its file", out.String())
	}
	server := fmt.Sprintf("--server=127.0.0.1:%d", port[0])
	http := fmt.Sprintf("--http=https://localhost:%d", port[1])
	ca, cert := "--tls-ca="+file("ca.pem"), "--tls-cert="+file("client.pem")
	for _, x := range []struct {
		args []string
		want string // in the output or the error
		exit int
	}{
		{[]string{"create", "/secret", "x", server, ca, cert}, "", 0},
		{[]string{"setacl", "/secret", "auth::cdrwa", server, ca, cert}, "", 0},
		{[]string{"getacl", "/secret", server, ca, cert}, "x509:CN=client:cdrwa", 0},
		{[]string{"status", server, ca, cert}, "expires in 365 days", 0},
		{[]string{"member", "list", http, ca}, "leader", 0}, // with the token in the data directory
		{[]string{"backup", filepath.Join(dir, "x.zkb"), http, ca}, "", 0},
		{[]string{"bench", "--mix=get", "--duration=100ms", "--warm-up=0s", "--connections=2", "--keys=10", "-q", server, ca, cert},
			"get", 0},
		{[]string{"bench", "http", "--mix=get", "--duration=100ms", "--warm-up=0s", "--connections=2", "--keys=10", "-q",
			fmt.Sprintf("--server=localhost:%d", port[1]), ca}, "get", 0},
		{[]string{"ls", "/", server, "--timeout=1s"}, "speaks TLS: give --tls-ca", cli.ExitNoServer},
		{[]string{"ls", "/", server, "--tls", "--timeout=1s"}, "the server's certificate is refused", cli.ExitNoServer},
		{[]string{"ls", "/", server, ca, "--timeout=1s"}, "does it ask for a certificate (--tls-cert)?", cli.ExitNoServer},
		{[]string{"ls", "/", server, ca, cert, "--tls-server-name=example.org", "--timeout=1s"},
			"the server's certificate is refused", cli.ExitNoServer},
		{[]string{"status", server}, "speaks TLS: give --tls-ca", cli.ExitNoServer},
		{[]string{"ls", "/", fmt.Sprintf("--server=localhost:%d", port[1]), ca}, "speaks HTTP: --server takes", cli.ExitNoServer},
	} {
		out, err := zkLite(ctx, x.args...)
		text := out.String() + cli.Message(err)
		if cli.ExitCode(err) != x.exit || !strings.Contains(text, x.want) {
			t.Errorf("%q: exit %d: %s; want %d, %q", x.args, cli.ExitCode(err), text, x.exit, x.want)
		}
	}
	var open []string
	err := filepath.WalkDir(filepath.Join(dir, "tls"), func(path string, d os.DirEntry, err error) error {
		if info, infoErr := d.Info(); infoErr == nil && info.Mode().Perm()&0o077 != 0 && d.Name() != "ca.pem" {
			open = append(open, path)
		}
		return err
	})
	if err != nil || len(open) > 0 {
		t.Errorf("others can read %v, %v", open, err)
	}
}
