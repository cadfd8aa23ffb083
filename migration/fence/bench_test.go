package fence_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/zk-lite/zk-lite/migration/datadir"
	"github.com/zk-lite/zk-lite/migration/fence"
	"github.com/zk-lite/zk-lite/migration/replica"
	"github.com/zk-lite/zk-lite/session"
	"github.com/zk-lite/zk-lite/znode"
)

// BenchmarkFence fences a server with 100,000 znodes of 100 bytes, and lets it start again: nearly all is reading.
func BenchmarkFence(b *testing.B) {
	const znodes = 100_000
	r := replica.New(znode.NewTree(), session.NewTable(), 1<<32)
	var x znode.Txn
	for i := range znodes {
		t := replica.Txn{Zxid: 1<<32 + 1 + znode.Zxid(i), Change: replica.Change{
			Op: replica.OpCreate, Path: fmt.Sprintf("/n-%d", i), Data: make([]byte, 100), ACL: znode.OpenACL,
			Creates: -1,
		}}
		if err := r.Apply(&x, &t, false); err != nil {
			b.Fatal(err)
		}
	}
	dir := b.TempDir()
	if _, err := datadir.WriteSnapshot(dir, r); err != nil {
		b.Fatal(err)
	}
	log := filepath.Join(dir, "version-2", fmt.Sprintf("log.%x", int64(r.Zxid)+1)) // without a transaction
	if err := os.WriteFile(log, []byte("ZKLG\x00\x00\x00\x02\x00\x00\x00\x00\x00\x00\x00\x00"), 0o600); err != nil {
		b.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "myid"), []byte("1"), 0o600); err != nil {
		b.Fatal(err)
	}
	h := fence.Host{DataDir: dir}
	for b.Loop() {
		if _, err := h.Fence(fence.Point{After: fence.Zxid(r.Zxid), Digest: fence.Digest(r.Digest())}); err != nil {
			b.Fatal(err)
		}
		if err := h.Unfence(); err != nil {
			b.Fatal(err)
		}
	}
}
