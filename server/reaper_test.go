package server

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/znode"
)

// reapKit has a reaper that works every 10 s.
func reapKit(t *testing.T, change func(*ReapConfig)) *kit {
	return started(t, func(c *Config) {
		c.Reap = ReapConfig{Interval: 10 * time.Second}
		if change != nil {
			change(&c.Reap)
		}
	})
}

func (k *kit) make(mode znode.Mode, ttl time.Duration, kind znode.CreateKind, paths ...string) {
	for _, p := range paths {
		k.log.from(1, &state.Command{
			Op: state.OpCreate, Path: p, Mode: mode, TTL: ttl.Milliseconds(), Kind: kind,
			ACL: znode.OpenACL, Flags: state.FlagExtendedTypes,
		})
	}
}

func (k *kit) exists(path string) (yes bool) {
	k.srv.View(func(v *View) {
		_, code := v.Tree().Exists(path, nil)
		yes = code == znode.OK
	})
	return yes
}

func (k *kit) expectPaths(when string, want map[string]bool) {
	k.tb.Helper()
	for path, there := range want {
		if k.exists(path) != there {
			k.tb.Errorf("%s: %s exists: %v, want %v", when, path, !there, there)
		}
	}
}

func TestServer_Reap_ContainersAfterUseOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := reapKit(t, nil)
		k.make(znode.Container, 0, znode.CreateContainer, "/never", "/emptied", "/used")
		k.make(znode.Persistent, 0, znode.CreatePlain, "/emptied/x", "/used/x", "/plain", "/plain/x")
		for _, p := range []string{"/emptied/x", "/plain/x"} {
			k.log.from(1, &state.Command{Op: state.OpDelete, Path: p, Version: -1})
		}
		k.until(9 * time.Second)
		k.expectPaths("before the first sweep", map[string]bool{"/emptied": true})
		k.until(2 * time.Second)
		after := map[string]bool{"/never": true, "/emptied": false, "/used": true, "/plain": true}
		k.expectPaths("after the first sweep", after)
		k.until(time.Hour)
		k.expectPaths("an hour later", after)
	})
}

func TestServer_Reap_NeverUsedContainersWhenSet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := reapKit(t, func(c *ReapConfig) { c.NeverUsed = time.Minute })
		k.make(znode.Container, 0, znode.CreateContainer, "/never")
		k.until(59 * time.Second)
		k.expectPaths("before its time", map[string]bool{"/never": true})
		k.until(12 * time.Second)
		k.expectPaths("after its time", map[string]bool{"/never": false})
	})
}

func TestServer_Reap_TTLAfterItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := reapKit(t, nil)
		k.make(znode.PersistentTTL, 30*time.Second, znode.CreateTTL, "/ttl", "/changed", "/parent")
		k.make(znode.Persistent, 0, znode.CreatePlain, "/parent/x")
		k.until(25 * time.Second)
		k.log.from(1, &state.Command{Op: state.OpSetData, Path: "/changed", Version: -1})
		k.expectPaths("before its time", map[string]bool{"/ttl": true})
		k.until(16 * time.Second)
		k.expectPaths("after its time", map[string]bool{"/ttl": false, "/changed": true, "/parent": true})
		k.until(30 * time.Second)
		k.expectPaths("after the time of the changed one", map[string]bool{"/changed": false, "/parent": true})
	})
}

func TestServer_Reap_BoundedAndByTheLeaderOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := reapKit(t, func(c *ReapConfig) { c.MaxPerMinute = 30 }) // one every 2 s
		k.srv.Handler().Lead(0)
		for i := range 12 {
			k.make(znode.PersistentTTL, time.Second, znode.CreateTTL, fmt.Sprint("/ttl", i))
		}
		left := func() (n int) {
			for i := range 12 {
				if k.exists(fmt.Sprint("/ttl", i)) {
					n++
				}
			}
			return n
		}
		k.until(35 * time.Second)
		if n := left(); n != 12 {
			t.Errorf("a server that does not lead has reaped %d", 12-n)
		}
		k.srv.Handler().Lead(1)
		for _, want := range []int{9, 4, 0} { // the first sweep is 5 s away
			k.until(10 * time.Second)
			if n := left(); n != want {
				t.Errorf("%d are left, want %d", n, want)
			}
		}
	})
}

// With an interval of 1 ms, as Curator's tests have it, 48 of 60 expired znodes were still there after
// 5.5 s: a sweep came only with the server's tick, and could remove no more than one.
func TestServer_Reap_PaceOfItsSettings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := reapKit(t, func(c *ReapConfig) { c.Interval = time.Millisecond })
		for i := range 60 {
			k.make(znode.PersistentTTL, time.Millisecond, znode.CreateTTL, fmt.Sprint("/ttl", i))
		}
		k.until(500 * time.Millisecond) // ZooKeeper needs as long: 60 pauses of 6 ms
		for i := range 60 {
			if path := fmt.Sprint("/ttl", i); k.exists(path) {
				t.Errorf("%s is still there", path)
			}
		}
	})
}
