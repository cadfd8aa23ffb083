//go:build interop

package mirror

import (
	"context"
	"errors"
	"fmt"
	"testing"

	zk "github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/internal/jute"
	waiting "github.com/zk-lite/zk-lite/internal/testkit/wait"
	"github.com/zk-lite/zk-lite/internal/testkit/zookeeper"
	"github.com/zk-lite/zk-lite/migration/learner"
	"github.com/zk-lite/zk-lite/migration/replica"
	"github.com/zk-lite/zk-lite/znode"
)

// answers is a Handler that passes on what the transactions of a session do.
type answers chan replica.Op

func (answers) Leader(learner.Leader) error             { return nil }
func (answers) Snapshot(*replica.Replica) error         { return nil }
func (answers) Revalidated(znode.SessionID, bool) error { return nil }
func (answers) Synced() error                           { return nil }
func (a answers) Transaction(_ []byte, t *replica.Txn) error {
	if t.Session == itsID {
		a <- t.Op
	}
	return nil
}

// The longest request that is sent is carried out by real ensembles, also if "auth" makes the transaction that long, and
// each of their servers reads it. With more, a leader of 3.4 ends the connection.
func TestReal_Longest(t *testing.T) {
	const limit = 0xfffff + extraBuffer // their jute.maxbuffer is the default
	for _, version := range []string{zookeeper.V34, zookeeper.V39} {
		t.Run(version, func(t *testing.T) {
			e := zookeeper.Run(t, zookeeper.Options{Version: version, Servers: 3})
			var servers []string
			for _, s := range e.Servers {
				servers = append(servers, s.Quorum)
			}
			l, got, ended := learner.New(learner.Config{Servers: servers, ID: 300}), make(answers, 10), make(chan error, 1)
			ctx, cancel := context.WithCancel(t.Context())
			go func() { ended <- l.Follow(ctx, learner.Position{}, got) }()
			waiting.Succeeds(t, "a session is opened", func() error {
				return l.Request(itsID, 1, int32(replica.OpCreateSession), jute.AppendInt32(nil, 30_000), nil)
			})
			ids := []znode.ID{{Scheme: "digest", ID: "me:secret"}, {Scheme: "ip", ID: "127.0.0.1"}}
			ask := func(path string, size int, acl []znode.ACL) {
				t.Helper()
				c := &state.Command{Op: state.OpCreate, Path: path, ACL: acl, Identities: ids}
				_, record := requestOf(c)
				c.Data = make([]byte, size-longest(c, record))
				op, record := requestOf(c)
				if n := longest(c, record); n != size {
					t.Fatalf("the longest field has %d bytes, want %d", n, size)
				}
				if err := l.Request(itsID, 2, int32(op), record, ids); err != nil {
					t.Fatal(err)
				}
			}
			ask("/open", limit, znode.OpenACL)
			ask("/mine", limit, append([]znode.ACL{{Perms: znode.PermAll, ID: znode.AuthIDs}}, znode.ReadACL...))
			for _, want := range []replica.Op{replica.OpCreateSession, replica.OpCreate, replica.OpCreate} {
				select {
				case op := <-got:
					if op != want {
						t.Fatalf("%v, want %v", op, want)
					}
				case err := <-ended:
					t.Fatalf("waiting for %v: the connection has ended: %v", want, err)
				}
			}
			for _, s := range e.Servers {
				waiting.Succeeds(t, "a server has both", func() error { return has(t.Context(), s.Address, "/open", "/mine") })
			}
			if version == zookeeper.V34 {
				ask("/more", limit+100, znode.OpenACL)
				if err := <-ended; errors.Is(err, context.Canceled) {
					t.Errorf("more than that: %v, want that the leader ends the connection", err)
				}
			}
			cancel()
		})
	}
}

// has reports whether a server has znodes.
func has(ctx context.Context, address string, paths ...string) error {
	c, err := zk.Connect(ctx, address)
	if err != nil {
		return err
	}
	defer c.Close()
	for _, path := range paths {
		if found, _, err := c.Exists(ctx, path); err != nil || !found {
			return fmt.Errorf("%s: found %v, %w", path, found, err)
		}
	}
	return nil
}
