package replica_test

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/migration/replica"
	"github.com/zk-lite/zk-lite/session"
	"github.com/zk-lite/zk-lite/znode"
)

// exported is a state with two sessions, of which one has the password that ZooKeeper computes, and more records.
func exported(t *testing.T, zxid znode.Zxid, timeout time.Duration, more ...znode.Record) *replica.Replica {
	t.Helper()
	b := znode.NewBuilder()
	for _, path := range []string{znode.RootPath, znode.SystemPath, znode.QuotaPath, znode.ConfigPath} {
		more = append(more, znode.Record{Path: path, ACL: znode.OpenACL})
	}
	for i := range more {
		if err := b.Add(&more[i]); err != nil {
			t.Fatal(err)
		}
	}
	tree, err := b.Tree()
	if err != nil {
		t.Fatal(err)
	}
	sessions := session.NewTable()
	sessions.Add(session.Session{ID: 0x100, Timeout: timeout, Password: session.CompatiblePassword(0x100)})
	sessions.Add(session.Session{ID: 0x200, Timeout: timeout, Password: session.Password{1}})
	return replica.New(tree, sessions, zxid)
}

func owned(path string, owner znode.SessionID) znode.Record {
	return znode.Record{Path: path, ACL: znode.OpenACL, Stat: znode.Stat{EphemeralOwner: owner}}
}

func TestReplica_Export_Describes(t *testing.T) {
	large := owned("/large", 0)
	large.Data = make([]byte, 1000)
	e, err := exported(t, 0x7ffffffe_00000001, time.Second, owned("/e", 0x100), owned("/c", math.MinInt64),
		owned("/ttl", -1<<56|5), owned("/longest", -1<<56|(1<<40-1)), large).Export()
	if err != nil {
		t.Fatal(err)
	}
	if e.Znodes != 9 || e.Sessions != 2 || e.Containers != 1 || e.TTLs != 2 || e.Largest != 1000 || e.LargestPath != "/large" {
		t.Errorf("Export() = %+v, want 9 znodes, 2 sessions, 1 container, 2 TTLs, 1000 bytes in /large", e)
	}
	if len(e.Lost) != 1 || e.Lost[0].ID != 0x200 {
		t.Errorf("lost are %+v, want session 0x200 alone, whose password is random", e.Lost)
	}
}

// What servers of ZooKeeper could not read, or would delete at their start, is refused by name.
func TestReplica_Export_Refuses(t *testing.T) {
	noText := owned("/x", 0)
	noText.ACL = []znode.ACL{{Perms: 1, ID: znode.ID{Scheme: "digest", ID: "\xff:x"}}}
	for want, r := range map[string]*replica.Replica{
		"zxid 0x8000000000000001 leaves no epoch":  exported(t, math.MinInt64+1, time.Second),
		"zxid 0x7fffffff00000000 leaves no epoch":  exported(t, math.MaxInt32<<32, time.Second),
		"has a timeout of 720h0m0s":                exported(t, 1, 30*24*time.Hour),
		`znode "/x": owner 0xff00010000000005`:     exported(t, 1, time.Second, owned("/x", -1<<56|1<<40|5)),
		`"/x": it belongs to session 0x300, which`: exported(t, 1, time.Second, owned("/x", 0x300)),
		`"/x": its ACL has an identity that is no`: exported(t, 1, time.Second, noText),
	} {
		if _, err := r.Export(); !errors.Is(err, replica.ErrNotExportable) || !strings.Contains(err.Error(), want) {
			t.Errorf("Export() = %v, want ErrNotExportable with %q", err, want)
		}
	}
}
