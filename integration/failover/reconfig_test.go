package failover_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/integration/cluster"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
	"github.com/zk-lite/zk-lite/internal/wire"
	"github.com/zk-lite/zk-lite/znode"
)

// startSix runs three servers with reconfig, and has three more that they do not know.
func startSix(t *testing.T, config map[string]string) *cluster.Ensemble {
	t.Helper()
	config["reconfigEnabled"] = "true"
	return start(t, 6, cluster.Options{First: 3, Config: config})
}

// super is a connection of the super user.
func super(t *testing.T, s *cluster.Server) *cluster.Conn {
	t.Helper()
	c := s.Connect(t, cluster.ConnectOptions{Timeout: sessionTimeout})
	auth := &wire.AuthRequest{Scheme: "digest", Auth: []byte(cluster.SuperCredentials)}
	if _, err := c.SendAs(wire.XidAuth, wire.OpAuth, auth).Wait(); err != nil {
		t.Fatal(err)
	}
	return c
}

// lines are the servers' lines of /zookeeper/config.
func lines(servers ...*cluster.Server) string {
	var all []string
	for _, s := range servers {
		all = append(all, fmt.Sprintf("server.%d=%s:participant;%s", s.ID, s.PeerAddr(), s.Addr()))
	}
	return strings.Join(all, "\n")
}

// shown is /zookeeper/config without its version, as a server has it.
func shown(s *cluster.Server) (string, error) {
	c, err := cluster.Dial(s.Addr(), cluster.ConnectOptions{})
	if err != nil {
		return "", err
	}
	defer c.Drop()
	got, err := c.Do(wire.OpGetData, &wire.GetDataRequest{Path: znode.ConfigPath})
	if err != nil {
		return "", err
	}
	text, _, _ := strings.Cut(string(got.(*wire.GetDataResponse).Data), "\nversion=")
	return text, nil
}

func waitShown(t *testing.T, s *cluster.Server, want string) {
	t.Helper()
	wait.Succeeds(t, fmt.Sprintf("server %d shows the new servers", s.ID), func() error {
		if got, err := shown(s); err != nil || got != want {
			return fmt.Errorf("%q, %w, want %q", got, err, want)
		}
		return nil
	})
}

// TestReconfig_ThreeByThreeOthers replaces three servers by three others with one request, while clients write to all of
// them: nothing acknowledged is lost, and no session expires; also if the leader is killed meanwhile.
func TestReconfig_ThreeByThreeOthers(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte(strings.Repeat("s", 40)), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, x := range map[string]struct {
		config map[string]string
		kill   bool
	}{
		"without keys":  {map[string]string{"peer.tls": "false"}, false},
		"join secret":   {map[string]string{"peer.joinSecretFile": secret}, false},
		"leader killed": {map[string]string{"peer.tls": "false"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			e := startSix(t, x.config)
			l := startLoad(t, e, "/reconfig")
			l.waitProgress(50)
			old, fresh := e.Servers()[:3], e.Servers()[3:]
			for _, s := range fresh {
				s.Start()
			}
			for _, s := range fresh { // a reconfiguration gives servers five seconds to connect
				wait.Succeeds(t, "an answer of a new server", func() error {
					_, err := askReady(s)
					return err
				})
			}
			leader, followers := e.Leader(), []*cluster.Server{}
			for _, s := range old {
				if s != leader {
					followers = append(followers, s)
				}
			}
			members := strings.ReplaceAll(lines(fresh...), "\n", ",")
			c := super(t, followers[0])
			begun := time.Now()
			call := c.Send(wire.OpReconfig, &wire.ReconfigRequest{NewMembers: &members, CurConfigID: -1})
			if x.kill {
				leader.Kill()
			}
			body, err := call.Wait()
			if err != nil {
				t.Fatalf("reconfig: %v", err)
			}
			t.Logf("it took %v", time.Since(begun))
			if text := string(body.(*wire.ReconfigResponse).Data); !strings.HasPrefix(text, lines(fresh...)+"\nversion=") {
				t.Errorf("the reply has %q", text)
			}
			l.waitProgress(50)
			for _, s := range old {
				if s.Running() && s != leader {
					awaitHalt(t, s, "removed", "was removed from the ensemble")
				}
			}
			l.waitProgress(50)
			for _, s := range old {
				if s.Running() {
					s.Kill()
				}
			}
			l.waitProgress(50)
			l.checkKept(old...)
			l.check()
			waitShown(t, fresh[0], lines(fresh...))
			e.WaitServing()
			e.CheckReplicas()
			e.KillAll(fresh...) // their files do not name each other
			for _, s := range fresh {
				s.Start()
			}
			e.WaitServing()
		})
	}
}

// TestReconfig_Refused: what ZooKeeper refuses, and how. Nothing changes.
func TestReconfig_Refused(t *testing.T) {
	e := startSix(t, map[string]string{"peer.tls": "false"})
	before, err := shown(e.Server(1))
	if err != nil {
		t.Fatal(err)
	}
	joining, leaving, none := lines(e.Server(4)), "1,2", "server.4=nowhere"
	stranger := e.Server(1).Connect(t, cluster.ConnectOptions{})
	for _, x := range []struct {
		name string
		q    wire.ReconfigRequest
		by   *cluster.Conn
		want znode.Error
	}{
		{"no permission", wire.ReconfigRequest{JoiningServers: &joining, CurConfigID: -1}, stranger, znode.ErrNoAuth},
		{"another version", wire.ReconfigRequest{JoiningServers: &joining, CurConfigID: 1}, super(t, e.Server(2)), znode.ErrBadVersion},
		{"no address", wire.ReconfigRequest{JoiningServers: &none, CurConfigID: -1}, super(t, e.Server(2)), znode.ErrBadArguments},
		{"one voter", wire.ReconfigRequest{LeavingServers: &leaving, CurConfigID: -1}, super(t, e.Server(2)), znode.ErrBadArguments},
	} {
		if _, err := x.by.Do(wire.OpReconfig, &x.q); !errors.Is(err, x.want) {
			t.Errorf("%s: %v, want %v", x.name, err, x.want)
		}
	}
	// A majority of the new voters does not run.
	absent := strings.ReplaceAll(lines(e.Server(1), e.Server(4), e.Server(5)), "\n", ",")
	other := super(t, e.Server(2)) // before, since it gives up after five seconds
	call := super(t, e.Server(1)).Send(wire.OpReconfig, &wire.ReconfigRequest{NewMembers: &absent, CurConfigID: -1})
	wait.Succeeds(t, "another one is refused meanwhile", func() error {
		if _, err := other.Do(wire.OpReconfig, &wire.ReconfigRequest{CurConfigID: 1}); !errors.Is(err, znode.ErrReconfigInProgress) {
			return fmt.Errorf("%v, want %w", err, znode.ErrReconfigInProgress)
		}
		return nil
	})
	if _, err := call.Wait(); !errors.Is(err, znode.ErrNewConfigNoQuorum) {
		t.Errorf("nobody comes: %v, want %v", err, znode.ErrNewConfigNoQuorum)
	}
	waitShown(t, e.Server(3), before)
}
