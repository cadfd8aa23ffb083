package client

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zk-lite/zk-lite/internal/wire"
)

func TestClient_CreateProtected_ReplyLost_FindsItsZnode(t *testing.T) {
	for _, mode := range []Mode{EphemeralSequential, Ephemeral, PersistentSequential, Persistent} {
		for _, v := range []verdict{swallow, cut} {
			t.Run(fmt.Sprintf("mode=%d/verdict=%d", mode, v), func(t *testing.T) {
				withFake(t, func(t *testing.T, s *fakeServer, c *Client) {
					s.create("/locks", "")
					s.do(func() { s.hook = onFirst(wire.OpCreate2, v) })
					path, stat, err := c.CreateProtected(t.Context(), "/locks/lock-", nil, mode)
					must(t, err)
					children, _, err := c.Children(t.Context(), "/locks")
					must(t, err)
					if len(children) != 1 || path != "/locks/"+children[0] {
						t.Errorf("created %s, and the children are %v; want that one", path, children)
					}
					if !strings.HasPrefix(path, "/locks/_c_") || !strings.Contains(path, "-lock-") {
						t.Errorf("created %s, want a name like Curator's, _c_...-lock-", path)
					}
					if mode.Ephemeral() && stat.EphemeralOwner != c.SessionID() {
						t.Errorf("owner %v, want %v", stat.EphemeralOwner, c.SessionID())
					}
				})
			})
		}
	}
}

func TestClient_CreateProtected_ContextEnds_ZnodeIsDeleted(t *testing.T) {
	withFake(t, func(t *testing.T, s *fakeServer, c *Client) {
		s.create("/locks", "")
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		s.do(func() {
			s.hook = func(_ *fakeConn, h wire.RequestHeader, _ wire.Request) verdict {
				if h.Type == wire.OpCreate2 {
					s.down = true
					return swallow
				}
				return serve
			}
		})
		failed := make(chan error)
		go func() {
			_, _, err := c.CreateProtected(ctx, "/locks/x-", nil, EphemeralSequential)
			failed <- err
		}()
		synctest.Wait()
		cancel()
		wantErr(t, <-failed, ErrOutcomeUnknown, context.Canceled)
		left := 0
		s.do(func() { left = len(s.nodes["/locks"].children); s.down = false })
		if left != 1 {
			t.Fatalf("%d children: the test is wrong", left)
		}
		<-time.After(DefaultBackoffMax)
		synctest.Wait()
		s.do(func() { left = len(s.nodes["/locks"].children) })
		if left != 0 {
			t.Errorf("%d children, want none: the client does not know the znode", left)
		}
	})
}

func TestClient_CreateProtected_SessionLost(t *testing.T) {
	withFake(t, func(t *testing.T, s *fakeServer, c *Client) {
		s.create("/locks", "")
		id := c.SessionID()
		s.do(func() {
			s.hook = func(_ *fakeConn, h wire.RequestHeader, _ wire.Request) verdict {
				if h.Type == wire.OpCreate2 {
					s.sessions[id].expired = true
					return cut
				}
				return serve
			}
		})
		_, _, err := c.CreateProtected(t.Context(), "/locks/x-", nil, EphemeralSequential)
		wantErr(t, err, ErrSessionExpired)
		if n := len(get(s, &s.nodes)["/locks"].children); n != 0 {
			t.Errorf("%d znodes were created in another session, want none", n)
		}
	})
}
