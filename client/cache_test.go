package client

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zk-lite/zk-lite/internal/testkit/seed"
	"github.com/zk-lite/zk-lite/internal/wire"
	"github.com/zk-lite/zk-lite/znode"
)

// wantSame compares a cache of / with the server's tree.
func wantSame(t *testing.T, k *Cache, s *fakeServer) {
	t.Helper()
	have := map[string]string{}
	for n := range k.All() {
		have[n.Path] = fmt.Sprint(string(n.Data), n.Stat.Version, k.Children(n.Path))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for path, n := range s.nodes {
		names := sortedNames(n.children)
		if want := fmt.Sprint(string(n.data), n.stat.Version, names); have[path] != want {
			t.Errorf("%s is %q in the cache, want %q", path, have[path], want)
		}
		delete(have, path)
	}
	for path := range have {
		t.Errorf("%s is in the cache and not on the server", path)
	}
}

func newTestCache(t *testing.T, c *Client, opts ...CacheOption) *Cache {
	t.Helper()
	k, err := NewCache(t.Context(), c, "/", opts...)
	must(t, err)
	return k
}

func TestCache_FollowsChanges(t *testing.T) {
	withFake(t, func(t *testing.T, s *fakeServer, c *Client) {
		s.create("/a", "1")
		s.create("/a/b", "2")
		k := newTestCache(t, c)
		wantSame(t, k, s)
		if k.Zxid() != get(s, &s.zxid) || !k.Fresh() {
			t.Errorf("zxid %v, fresh %t; want %v, true", k.Zxid(), k.Fresh(), get(s, &s.zxid))
		}
		changed := k.Changed()
		s.set("/a/b", "3")
		<-changed
		synctest.Wait()
		wantSame(t, k, s)
		s.remove("/a/b")
		s.remove("/a")
		s.create("/c", "")
		synctest.Wait()
		wantSame(t, k, s)
		if k.Zxid() != get(s, &s.zxid) {
			t.Errorf("zxid %v, want the server's, %v", k.Zxid(), get(s, &s.zxid))
		}
		k.Close()
		wantErr(t, k.Err(), ErrCacheClosed)
		synctest.Wait()
		wantNoWatches(t, c)
	})
}

func TestCache_WaitZxid_OfAnUnrelatedWrite(t *testing.T) {
	withFake(t, func(t *testing.T, s *fakeServer, c *Client) {
		s.create("/a", "")
		k, err := NewCache(t.Context(), c, "/a")
		must(t, err)
		_, stat, err := c.Create(t.Context(), "/other", nil, Persistent)
		must(t, err)
		must(t, k.WaitZxid(t.Context(), stat.Czxid))
		if k.Zxid() < stat.Czxid {
			t.Errorf("zxid %v, want %v", k.Zxid(), stat.Czxid)
		}
		ctx, cancel := contextWithTimeout(t, time.Second)
		defer cancel()
		wantErr(t, k.WaitZxid(ctx, stat.Czxid+1000), ctx.Err())
	})
}

func TestCache_Reconnect_ReadsAgain(t *testing.T) {
	withFake(t, func(t *testing.T, s *fakeServer, c *Client) {
		s.create("/a", "1")
		k := newTestCache(t, c)
		s.do(func() { s.down = true })
		s.cutAll()
		synctest.Wait()
		if k.Fresh() {
			t.Error("the cache is fresh without a connection, want not")
		}
		s.set("/a", "2")
		s.create("/b", "")
		s.do(func() { s.down = false })
		<-time.After(DefaultBackoffMax)
		synctest.Wait()
		wantSame(t, k, s)
		if !k.Fresh() {
			t.Error("the cache is not fresh after the reconnection, want it to be")
		}
		s.expire(c.SessionID())
		s.create("/c", "")
		<-time.After(DefaultBackoffMax)
		synctest.Wait()
		wantSame(t, k, s)
	})
}

func TestCache_Overflow_ReadsAgain(t *testing.T) {
	withFake(t, func(t *testing.T, s *fakeServer, c *Client) {
		s.create("/a", "")
		k := newTestCache(t, c)
		s.do(func() {
			// More events than the queue holds, before the answer to any read.
			s.hook = func(_ *fakeConn, h wire.RequestHeader, _ wire.Request) verdict {
				s.hook = nil
				for range cacheQueue + 2 {
					s.zxid++
					s.setLocked("/a", []byte("x"))
				}
				return serve
			}
		})
		_, _, err := c.Get(t.Context(), "/a")
		must(t, err)
		synctest.Wait()
		wantSame(t, k, s)
		must(t, k.Err())
	})
}

func TestCache_Limits(t *testing.T) {
	withFake(t, func(t *testing.T, s *fakeServer, c *Client) {
		for i := range 10 {
			s.create(fmt.Sprintf("/%d", i), "")
		}
		_, err := NewCache(t.Context(), c, "/", WithCacheNodes(10))
		wantErr(t, err, ErrCacheFull)
		k := newTestCache(t, c, WithCacheNodes(11))
		s.create("/more", "")
		<-k.Done()
		wantErr(t, k.Err(), ErrCacheFull)
		s.do(func() { s.noAddWatch = true })
		_, err = NewCache(t.Context(), c, "/")
		wantErr(t, err, ErrUnimplemented)
	})
}

func TestCache_Close_WithTheClient(t *testing.T) {
	withFake(t, func(t *testing.T, s *fakeServer, c *Client) {
		k := newTestCache(t, c)
		must(t, c.Close())
		<-k.Done()
		wantErr(t, k.Err(), ErrClosed)
	})
}

// TestCache_Random_Converges changes the tree at random, also while connections
// break, and compares when all is quiet.
func TestCache_Random_Converges(t *testing.T) {
	withFake(t, func(t *testing.T, s *fakeServer, c *Client) {
		random := seed.Rand(t)
		k := newTestCache(t, c)
		for range 30 {
			for range random.IntN(60) {
				s.do(func() { randomChange(s, random) })
			}
			if random.IntN(5) == 0 {
				s.cutAll()
			}
			<-time.After(time.Duration(random.IntN(200)) * time.Millisecond)
			for range random.IntN(60) {
				s.do(func() { randomChange(s, random) })
			}
			<-time.After(DefaultBackoffMax)
			synctest.Wait()
			wantSame(t, k, s)
			if k.Zxid() != get(s, &s.zxid) || !k.Fresh() {
				t.Fatalf("zxid %v, fresh %t; want %v, true", k.Zxid(), k.Fresh(), get(s, &s.zxid))
			}
		}
	})
}

func randomChange(s *fakeServer, random *rand.Rand) {
	path := ""
	for range 1 + random.IntN(3) {
		path += fmt.Sprintf("/%d", random.IntN(3))
	}
	n, parent := s.nodes[path], s.nodes[znode.Parent(path)]
	s.zxid++
	switch {
	case n == nil && parent != nil:
		s.createLocked(path, []byte(path), 0)
	case n != nil && random.IntN(2) == 0:
		s.setLocked(path, fmt.Append(nil, random.IntN(100)))
	case n != nil && len(n.children) == 0:
		s.removeLocked(path)
	default:
		s.zxid--
	}
}
