//go:build interop

package interop_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/integration/cluster"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
	"github.com/zk-lite/zk-lite/internal/testkit/zookeeper"
)

// TestInterop_Reconfig replaces three servers by three others, with one command of each tool, while a client writes:
// nothing acknowledged is lost, and its session goes on.
func TestInterop_Reconfig(t *testing.T) {
	jars, err := zookeeper.Jars(zookeeper.Oracle)
	if err != nil {
		t.Fatal(err)
	}
	javac, dir := cluster.NeedTool(t, "/usr/bin/javac", "default-jdk-headless"), t.TempDir()
	curator := cluster.ClassPath(t)
	for _, jar := range []string{"curator-framework", "curator-client", "guava"} {
		curator += ":" + cluster.NeedTool(t, "/usr/share/java/"+jar+".jar", "libcurator-framework-java libcurator-client-java")
	}
	cluster.Execute(t, dir, javac, "-encoding", "UTF-8", "-nowarn", "-cp", curator, "-d", dir, cluster.Testdata(t, "Reconfig.java"))
	java := func(classPath string, args ...string) []string {
		return append([]string{"java", "-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
			"-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp", dir + ":" + classPath}, args...)
	}
	for _, tool := range []struct {
		name    string
		replace func(t *testing.T, servers, members string) (output string)
	}{
		{"zkCli", func(t *testing.T, servers, members string) string {
			c := cluster.Command(t.Context(), dir, java(jars, "org.apache.zookeeper.ZooKeeperMain", "-waitforconnection", "-server", servers)...)
			c.Stdin = strings.NewReader("addauth digest " + cluster.SuperCredentials + "\nreconfig -v 1 -members " + members +
				"\nreconfig -members " + members + "\nconfig\nquit\n")
			out, err := c.CombinedOutput()
			if err != nil {
				t.Logf("zkCli: %v", err) // it ends with 1 if any command has failed
			}
			if !strings.Contains(string(out), "version No is not valid") || !strings.Contains(string(out), "Committed new configuration:") {
				t.Errorf("zkCli has printed %s", out)
			}
			return string(out)
		}},
		{"kazoo", func(t *testing.T, servers, members string) string {
			return cluster.Execute(t, dir, append(cluster.Kazoo(t, "kazoo_reconfig.py"), servers, members)...)
		}},
		{"ZooKeeperAdmin", func(t *testing.T, servers, members string) string {
			return cluster.Execute(t, dir, java(jars+":"+curator, "Reconfig", "admin", servers, members)...)
		}},
		{"Curator", func(t *testing.T, servers, members string) string {
			return cluster.Execute(t, dir, java(curator, "Reconfig", "curator", servers, members)...)
		}},
	} {
		t.Run(tool.name, func(t *testing.T) {
			e := cluster.Start(t, 6, cluster.Options{First: 3,
				Config: map[string]string{"reconfigEnabled": "true", "peer.tls": "false"}})
			w := startWriter(t, e)
			var lines []string
			for _, s := range e.Servers()[3:] {
				s.Start()
				lines = append(lines, fmt.Sprintf("server.%d=%s:participant;%s", s.ID, s.PeerAddr(), s.Addr()))
			}
			begun := time.Now()
			out := tool.replace(t, e.ConnectString(), strings.Join(lines, ","))
			t.Logf("it took %v", time.Since(begun))
			if want := strings.Join(lines, "\n") + "\nversion="; !strings.Contains(out, want) {
				t.Errorf("%s has printed %s, want %s", tool.name, out, want)
			}
			for _, s := range e.Servers()[:3] {
				s.Kill()
			}
			w.check()
			e.WaitServing()
			e.CheckReplicas()
		})
	}
}

// writer is a client that writes without a pause.
type writer struct {
	t       *testing.T
	c       *client.Client
	session client.SessionID
	stop    context.CancelFunc
	done    sync.WaitGroup
	acked   []string
}

func startWriter(t *testing.T, e *cluster.Ensemble) *writer {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	c, err := client.Connect(ctx, e.ConnectString(), client.WithSessionTimeout(10*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	w := &writer{t: t, c: c, session: c.SessionID(), stop: stop}
	if _, _, err := c.Create(ctx, "/written", nil, client.Ephemeral); err != nil {
		t.Fatal(err)
	}
	if _, _, err := c.Create(ctx, "/load", nil, client.Persistent); err != nil {
		t.Fatal(err)
	}
	w.done.Go(func() {
		for i := 0; ; i++ {
			path := fmt.Sprint("/load/", i)
			switch _, _, err := c.Create(ctx, path, nil, client.Persistent); {
			case err == nil:
				w.acked = append(w.acked, path)
			case ctx.Err() != nil:
				return
			case !errors.Is(err, client.ErrOutcomeUnknown):
				t.Errorf("creating %s: %v", path, err)
				return
			}
		}
	})
	t.Cleanup(func() {
		stop()
		w.done.Wait()
		_ = c.Close()
	})
	return w
}

// check ends the writes, and looks for each that was acknowledged.
func (w *writer) check() {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), wait.Patience)
	defer cancel()
	if err := w.c.Sync(ctx, "/"); err != nil { // through a server that is left
		w.t.Fatal(err)
	}
	w.stop()
	w.done.Wait()
	names, _, err := w.c.Children(ctx, "/load")
	if err != nil {
		w.t.Fatal(err)
	}
	there := map[string]bool{}
	for _, name := range names {
		there["/load/"+name] = true
	}
	for _, path := range w.acked {
		if !there[path] {
			w.t.Errorf("%s was acknowledged, and is lost", path)
		}
	}
	is, _, err := w.c.Exists(ctx, "/written")
	if err != nil || !is || w.c.SessionID() != w.session {
		w.t.Errorf("the session is %v, want %v; its ephemeral is there: %v, %v", w.c.SessionID(), w.session, is, err)
	}
	w.t.Logf("%d writes were acknowledged", len(w.acked))
}
