package datadir_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/zk-lite/zk-lite/migration/datadir"
	"github.com/zk-lite/zk-lite/migration/replica"
	"github.com/zk-lite/zk-lite/session"
	"github.com/zk-lite/zk-lite/znode"
)

// A million znodes of 100 bytes: time of a Load, and the memory that the state keeps.
func BenchmarkLoad(b *testing.B) {
	const znodes = 1_000_000
	r := replica.New(znode.NewTree(), session.NewTable(), 0)
	x := new(znode.Txn)
	data := make([]byte, 100)
	apply := func(path string) {
		t := &replica.Txn{Zxid: r.Zxid + 1, Time: 1, Change: replica.Change{
			Op: replica.OpCreate, Path: path, Data: data, ACL: znode.OpenACL, Creates: -1}}
		if err := r.Apply(x, t, false); err != nil {
			b.Fatal(err)
		}
	}
	for i := range znodes {
		if i%1000 == 0 {
			apply(fmt.Sprintf("/dir%06d", i/1000))
		}
		apply(fmt.Sprintf("/dir%06d/znode%06d", i/1000, i))
	}
	dir := b.TempDir()
	if _, err := datadir.WriteSnapshot(dir, r); err != nil {
		b.Fatal(err)
	}
	r = nil
	for b.Loop() {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		r, report, err := datadir.Load(dir, "")
		if err != nil || report.Digests.Equal != 1 {
			b.Fatalf("Load = %v, report %+v; want one digest that is equal", err, report)
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/1e6, "MB-kept")
		b.ReportMetric(float64(after.TotalAlloc-before.TotalAlloc)/1e6, "MB-allocated")
		runtime.KeepAlive(r)
	}
}
