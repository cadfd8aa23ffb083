package datadir_test

import (
	"bytes"
	"errors"
	"path/filepath"
	"testing"

	"github.com/zk-lite/zk-lite/migration/datadir"
	"github.com/zk-lite/zk-lite/migration/replica"
	"github.com/zk-lite/zk-lite/znode"
)

// TestSince: what real servers have left behind is compared with each of their own states of the newest log, and with
// others; what follows the state is the log's, byte for byte.
func TestSince(t *testing.T) {
	for _, dir := range origins(t) {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			all := transactions(t, dir)
			if len(all) < 10 {
				t.Fatalf("%d transactions in the logs, want more", len(all))
			}
			end, _ := load(t, dir)
			for _, back := range []int{0, 1, 5} {
				at := all[len(all)-1-back].Zxid
				p, err := datadir.Since(dir, "", at, 1, 1<<20)
				if err != nil {
					t.Fatal(err)
				}
				if p.Equal || !p.Reached || p.Zxid != end.Zxid {
					t.Errorf("%d before the end, a wrong digest: equal %v, reached %v, zxid %v; want false, true, %v",
						back, p.Equal, p.Reached, p.Zxid, end.Zxid)
				}
				if back == 0 {
					if p, err = datadir.Since(dir, "", at, p.Digest, 1<<20); err != nil || !p.Equal {
						t.Errorf("the last state: equal %v, error %v; want true and none", p.Equal, err)
					}
				}
				if len(p.Tail) != back {
					t.Fatalf("%d transactions after the one %d before the end", len(p.Tail), back)
				}
				for i, raw := range p.Tail {
					if want := all[len(all)-back+i].Raw; !bytes.Equal(raw, want) {
						t.Errorf("transaction %d of the tail: %x, want %x", i, raw, want)
					}
				}
			}
			ahead, err := datadir.Since(dir, "", end.Zxid+5, 1, 1<<20)
			if err != nil || ahead.Reached || ahead.Equal {
				t.Errorf("a state that is ahead: %+v, %v; want not reached", ahead, err)
			}
			if _, err := datadir.Since(dir, "", all[len(all)-6].Zxid, 1, 40); !errors.Is(err, datadir.ErrNewer) {
				t.Errorf("a tail of more than 40 bytes: %v, want ErrNewer", err)
			}
		})
	}
}

// TestSince_DigestOnTheWay: the digests that 3.6 and newer put into transactions are those that the states compare
// equal with, from each snapshot that is old enough.
func TestSince_DigestOnTheWay(t *testing.T) {
	compared := 0
	for _, dir := range origins(t) {
		all := transactions(t, dir)
		for _, e := range all[max(0, len(all)-20):] {
			if !e.HasDigest || e.Op == replica.OpError {
				continue
			}
			p, err := datadir.Since(dir, "", e.Zxid, e.Digest, 1<<20)
			switch {
			case errors.Is(err, datadir.ErrNewer):
			case err != nil || !p.Equal:
				t.Errorf("%s at %v: equal %v, error %v; want true and none", dir, e.Zxid, p.Equal, err)
			default:
				compared++
			}
		}
	}
	if compared < 10 {
		t.Errorf("%d states compared, want 10 or more", compared)
	}
}

// transactions are those of all logs, in their order.
func transactions(t *testing.T, dir string) (all []datadir.Entry) {
	t.Helper()
	logs, err := filepath.Glob(filepath.Join(dir, "version-2", "log.*"))
	if err != nil {
		t.Fatal(err)
	}
	var last znode.Zxid
	for _, path := range logs {
		for _, e := range entries(t, path) {
			if e.Zxid > last {
				all, last = append(all, e), e.Zxid
			}
		}
	}
	return all
}
