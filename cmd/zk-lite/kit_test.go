package main

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
	"github.com/zk-lite/zk-lite/zklitetest"
)

// TestMain keeps commands, but for those of scripts, away from the files of who runs the tests.
func TestMain(m *testing.M) {
	if dir, err := os.UserCacheDir(); err == nil && os.Getenv("GOCACHE") == "" {
		os.Setenv("GOCACHE", filepath.Join(dir, "go-build")) // for the programs that tests build
	}
	for name, place := range map[string]string{
		"XDG_CACHE_HOME": os.DevNull, "XDG_CONFIG_HOME": filepath.Join(os.TempDir(), "zk-lite-tests-have-none"),
	} {
		if os.Getenv(name) == "" {
			os.Setenv(name, place)
		}
	}
	testscript.Main(m, map[string]func(){"zk-lite": main})
}

// patience bounds every wait of the tests.
const patience = 30 * time.Second

// startServer starts a standalone server that ends with the test, and returns
// its address.
func startServer(t *testing.T) string {
	t.Helper()
	return startEnsemble(t).ConnectString()
}

func startEnsemble(t *testing.T) *zklitetest.Ensemble {
	t.Helper()
	return zklitetest.Start(t, zklitetest.WithSetting("znode.container.checkIntervalMs", "100"))
}

// setUp gives a script its own part of the tree, and its own way to the server.
func setUp(server string) func(*testscript.Env) error {
	return func(env *testscript.Env) error {
		p, err := startProxy(server)
		if err != nil {
			return err
		}
		env.Defer(p.stop)
		env.Values[proxyKey{}] = p
		chroot := "/" + filepath.Base(env.WorkDir)
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		c, err := client.Connect(ctx, server)
		if err != nil {
			return err
		}
		defer c.Close()
		if _, _, err := c.Create(ctx, chroot, nil, client.Persistent); err != nil {
			return err
		}
		env.Setenv("ZK_LITE_SERVER", p.listener.Addr().String()+chroot)
		env.Setenv("GORACE", "atexit_sleep_ms=0") // the race detector's second at the end of each command
		env.Setenv("ADDRESS", server)
		env.Setenv("CHROOT", chroot)
		ownFiles(env)
		return nil
	}
}

// ownFiles gives a script its own history, memory of servers, and contexts.
func ownFiles(env *testscript.Env) {
	for _, kind := range []string{"STATE", "CACHE", "CONFIG"} {
		env.Setenv("XDG_"+kind+"_HOME", filepath.Join(env.WorkDir, strings.ToLower(kind)))
	}
}

// commands are what scripts have besides testscript's own:
//
//	exits CODE PROGRAM ARGS...     run a program that ends with a code
//	proxy open|closed              let traffic to the server through, or none
//	proxy cut NUMBER               close behind the next such request, with no reply
//	await PATH present|absent      wait until a znode is there, or gone
//	awaitwatch PATH [SESSIONS]     wait until one, or so many, watch a znode; PATH is a regular expression
//	awaitfile NAME [REGEXP]        wait until a file is there and matches
//	awaitwaiters PATH N            wait until so many stand in a line
//	fakeserver NAME TEXT...        start a server that answers every word so, $NAME
func commands(server string) map[string]func(*testscript.TestScript, bool, []string) {
	type scriptCommand = func(*testscript.TestScript, bool, []string)
	need := func(n int, usage string, f func(*testscript.TestScript, []string)) scriptCommand {
		return func(ts *testscript.TestScript, neg bool, args []string) {
			if neg || len(args) < n {
				ts.Fatalf("usage: %s", usage)
			}
			f(ts, args)
		}
	}
	return map[string]scriptCommand{
		"exits": exits,
		"proxy": need(1, "proxy open|closed", func(ts *testscript.TestScript, args []string) {
			p := ts.Value(proxyKey{}).(*proxy)
			if args[0] == "cut" {
				op, err := strconv.Atoi(args[1])
				ts.Check(err)
				p.cut(op)
				return
			}
			p.set(args[0] == "open")
		}),
		"await": need(2, "await PATH present|absent", func(ts *testscript.TestScript, args []string) {
			awaitZnode(ts, server, args[0], args[1] == "present")
		}),
		"awaitwatch": need(1, "awaitwatch PATH [SESSIONS]", func(ts *testscript.TestScript, args []string) {
			sessions := append(args, "1")[1]
			// wchp has a path in a line, and below it a line for each session.
			want := regexp.MustCompile("(?m)^" + regexp.QuoteMeta(ts.Getenv("CHROOT")) +
				strings.TrimSuffix(args[0], "/") + "$(\n\t0x[0-9a-f]+){" + sessions + "}")
			if !wait.Holds(func() bool { return want.MatchString(ask(server, "wchp")) }) {
				ts.Fatalf("awaitwatch %v does not come", args)
			}
		}),
		"awaitwaiters": need(2, "awaitwaiters PATH N", func(ts *testscript.TestScript, args []string) {
			awaitChildren(ts, server, args[0], args[1])
		}),
		"fakeserver": need(2, "fakeserver NAME TEXT...", func(ts *testscript.TestScript, args []string) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			ts.Check(err)
			answer := strings.ReplaceAll(strings.Join(args[1:], " "), `\n`, "\n")
			var wg sync.WaitGroup
			wg.Go(func() { answerWords(l, answer) })
			ts.Defer(func() { l.Close(); wg.Wait() })
			ts.Setenv(args[0], l.Addr().String())
		}),
		"awaitfile": need(1, "awaitfile NAME [REGEXP]", func(ts *testscript.TestScript, args []string) {
			want := regexp.MustCompile(append(args, "", "")[1])
			if !wait.Holds(func() bool {
				b, err := os.ReadFile(ts.MkAbs(args[0]))
				return err == nil && want.Match(b)
			}) {
				ts.Fatalf("%s does not match %q", args[0], want)
			}
		}),
	}
}

// exits runs a program that is to end with a code.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE PROGRAM ARGS...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	err = ts.Exec(args[1], args[2:]...)
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

func awaitZnode(ts *testscript.TestScript, server, path string, present bool) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c, err := client.Connect(ctx, server+ts.Getenv("CHROOT"))
	ts.Check(err)
	defer c.Close()
	for {
		exists, _, w, err := c.ExistsW(ctx, path)
		ts.Check(err)
		if exists == present {
			w.Cancel()
			return
		}
		select {
		case <-w.C():
		case <-ctx.Done():
			ts.Fatalf("%s: exists is still %v", path, exists)
		}
	}
}

func awaitChildren(ts *testscript.TestScript, server, path, n string) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c, err := client.Connect(ctx, server+ts.Getenv("CHROOT"))
	ts.Check(err)
	defer c.Close()
	for {
		names, _, w, err := c.ChildrenW(ctx, path)
		ts.Check(err)
		if strconv.Itoa(len(names)) == n {
			w.Cancel()
			return
		}
		select {
		case <-w.C():
		case <-ctx.Done():
			ts.Fatalf("%s has the children %q", path, names)
		}
	}
}

// answerWords gives one answer to whatever comes.
func answerWords(l net.Listener, answer string) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		word := make([]byte, 4)
		if _, err := io.ReadFull(conn, word); err == nil {
			text := answer
			if string(word) == "mntr" {
				text = "mntr is not executed because it is not in the whitelist.\n"
			}
			_, _ = io.WriteString(conn, text)
		}
		conn.Close()
	}
}

// ask sends a four-letter word.
func ask(server, word string) string {
	conn, err := net.Dial("tcp", server)
	if err != nil {
		return ""
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, word); err != nil {
		return ""
	}
	answer, _ := io.ReadAll(conn)
	return string(answer)
}
