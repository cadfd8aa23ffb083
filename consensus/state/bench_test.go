package state

import (
	"bytes"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/migration/replica"
	"github.com/zk-lite/zk-lite/session"
	"github.com/zk-lite/zk-lite/znode"
)

// nothing is an Observer that does not look.
type nothing struct{}

func (nothing) Event(*znode.Event)                             {}
func (nothing) Result(Origin, uint64, *Result)                 {}
func (nothing) Gap(Origin, uint64)                             {}
func (nothing) SessionOpened(*session.Session)                 {}
func (nothing) SessionAttached(*session.Session, ServerID)     {}
func (nothing) SessionClosed(*session.Session, []string, bool) {}
func (nothing) QuotaExceeded(string)                           {}
func (nothing) Relayed(uint64, *Result)                        {}

// feeder makes entries of a hundred commands, as a busy leader does.
type feeder struct {
	m     *Machine
	seq   uint64
	index uint64
	buf   []byte
	entry []byte
}

const perEntry = 100

// make encodes the next entry of commands that next makes.
func (f *feeder) make(n int, next func(i int) Command) {
	f.buf = f.buf[:0]
	for i := range n {
		c := next(i)
		f.buf = AppendCommand(f.buf, &c)
	}
	f.entry = AppendEntry(nil, 1000, []Batch{{Origin: Origin{1, 1}, First: f.seq + 1, Count: n, Commands: f.buf}})
	f.seq += uint64(n)
}

func (f *feeder) apply(tb testing.TB) {
	f.index++
	if err := f.m.Apply(f.index, 1, f.entry, nothing{}); err != nil {
		tb.Fatal(err)
	}
}

func nodePath(i int) string { return fmt.Sprintf("/app%04d/node%06d", i/1000, i) }

// million is a machine with n znodes of 100 bytes.
func million(tb testing.TB, n int) *feeder {
	f := &feeder{m: New()}
	data := make([]byte, 100)
	for i := 0; i < n; i += 1000 {
		f.make(1001, func(k int) Command {
			if k == 0 {
				return Command{Op: OpCreate, Path: fmt.Sprintf("/app%04d", i/1000), ACL: znode.OpenACL}
			}
			return Command{Op: OpCreate, Path: nodePath(i + k - 1), Data: data, ACL: znode.OpenACL}
		})
		f.apply(tb)
	}
	return f
}

func setCommand(i int, data []byte) Command {
	return Command{Op: OpSetData, Path: nodePath(i * 7919 % 1_000_000), Data: data, Version: -1}
}

// BenchmarkMachine_Apply applies commands to a machine of a million znodes, a
// hundred in an entry; one iteration is one command.
func BenchmarkMachine_Apply(b *testing.B) {
	f := million(b, 1_000_000)
	data := make([]byte, 100)
	run := func(name string, next func(i int) Command) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			done := 0
			for ; done < b.N; done += perEntry {
				b.StopTimer()
				f.make(perEntry, func(i int) Command { return next(done + i) })
				b.StartTimer()
				f.apply(b)
			}
			b.ReportMetric(float64(done)/b.Elapsed().Seconds(), "applies/s")
		})
	}
	run("set", func(i int) Command { return setCommand(i, data) })
	run("create+delete", func(i int) Command {
		if i%2 == 0 {
			return Command{Op: OpCreate, Path: "/app0001/x", Data: data, ACL: znode.OpenACL}
		}
		return Command{Op: OpDelete, Path: "/app0001/x", Version: -1}
	})
	run("multi of 3", func(i int) Command {
		s := setCommand(i, data)
		return Command{Op: OpMulti, Ops: []Command{{Op: OpCheck, Path: s.Path, Version: -1}, s, setCommand(i+1, data)}}
	})
}

// BenchmarkMachine_Memory reports the live heap of a million znodes of 100 bytes.
func BenchmarkMachine_Memory(b *testing.B) {
	const n = 1_000_000
	for b.Loop() {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		f := million(b, n)
		f.buf, f.entry = nil, nil
		runtime.GC()
		runtime.ReadMemStats(&after)
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/n, "B/znode")
		runtime.KeepAlive(f)
	}
}

// BenchmarkMachine_Snapshot writes a snapshot of a million znodes while sets
// are applied, one command in an entry, and reports the longest of those.
func BenchmarkMachine_Snapshot(b *testing.B) {
	f := million(b, 1_000_000)
	data := make([]byte, 100)
	var freeze, worst, total time.Duration
	var size int
	count := 0
	for b.Loop() {
		start := time.Now()
		s := f.m.Snapshot()
		freeze = max(freeze, time.Since(start))
		done := make(chan int)
		go func() {
			var n counter
			if err := s.Write(&n); err != nil {
				b.Error(err)
			}
			s.Release()
			done <- int(n)
		}()
		for size = 0; size == 0; count++ {
			f.make(1, func(int) Command { return setCommand(count, data) })
			start := time.Now()
			f.apply(b)
			took := time.Since(start)
			worst, total = max(worst, took), total+took
			select {
			case size = <-done:
			default:
			}
		}
	}
	b.ReportMetric(float64(freeze.Microseconds()), "freeze-us")
	b.ReportMetric(float64(worst.Microseconds())/1000, "max-apply-ms")
	b.ReportMetric(float64(total.Nanoseconds())/float64(count), "mean-apply-ns")
	b.ReportMetric(float64(size)/1e6, "snapshot-MB")
}

type counter int

func (c *counter) Write(b []byte) (int, error) { *c += counter(len(b)); return len(b), nil }

// BenchmarkRestore reads a snapshot of a million znodes.
func BenchmarkRestore(b *testing.B) {
	var file bytes.Buffer
	s := million(b, 1_000_000).m.Snapshot()
	if err := s.Write(&file); err != nil {
		b.Fatal(err)
	}
	s.Release()
	for b.Loop() {
		if _, err := ReadSnapshot(bytes.NewReader(file.Bytes())); err != nil {
			b.Fatal(err)
		}
	}
	b.SetBytes(int64(file.Len()))
}

// BenchmarkMachine_Restore is the commit of a restore of a million znodes of 100
// bytes, which is how long nothing else is applied, nor read: into an empty tree, in
// the place of the same tree, and of one in which every znode has other data.
func BenchmarkMachine_Restore(b *testing.B) {
	const count = 1_000_000
	fill := func(m *Machine, data byte) {
		for i := range count {
			x := &znode.Txn{Zxid: znode.Zxid(i + 1)}
			path := fmt.Sprintf("/d%03d/z%06d", i%1000, i)
			if i < 1000 {
				path = path[:5]
			}
			_, _, code := m.tree.Create(x, &znode.CreateRequest{
				Path: path, Data: bytes.Repeat([]byte{data, byte(i)}, 50), ACL: znode.OpenACL,
			})
			if code != znode.OK {
				b.Fatalf("create of %s: %v, want no error", path, code)
			}
		}
		m.zxid = count
	}
	then := New()
	fill(then, 1)
	file := write(b, then)
	for _, c := range []struct {
		name string
		data byte // 0: nothing is there
	}{{"empty", 0}, {"same", 1}, {"different", 2}} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportMetric(float64(len(file)), "file-bytes")
			for b.Loop() {
				b.StopTimer()
				g := newRig(b)
				if c.data != 0 {
					fill(g.m, c.data)
				}
				cmds := restoreCommands(1, file, MaxBackupPart, true)
				last := len(cmds) - 1
				g.do(1, cmds[:last]...)
				entry := AppendEntry(nil, g.time, []Batch{g.batch(Origin{1, 1}, cmds[last])})
				runtime.GC()
				b.StartTimer()
				if err := g.m.Apply(g.index+1, 1, entry, nothing{}); err != nil {
					b.Fatal(err)
				}
				if g.m.tree.Size().Znodes != count+4 {
					b.Fatalf("%d znodes, want %d", g.m.tree.Size().Znodes, count+4)
				}
			}
		})
	}
}

// BenchmarkMirror_Follow applies a source's writes of data, with their digests, a hundred in a command; one iteration
// is one transaction. The first command after a start also computes the digest of all znodes: 100,000 here.
func BenchmarkMirror_Follow(b *testing.B) {
	const znodes, perCommand = 100_000, 100
	s, g := mirroring(b)
	for i := range znodes {
		s.commit(1, replica.Change{Op: replica.OpCreate, Path: fmt.Sprintf("/n%06d", i), ACL: znode.OpenACL, Creates: -1})
	}
	g.must(1, follow(1, s.sent...))
	data := make([]byte, 100)
	s.sent = nil
	for i := range b.N {
		path := fmt.Sprintf("/n%06d", i*7919%znodes)
		s.commit(1, replica.Change{Op: replica.OpSetData, Path: path, Data: data, Version: 1})
	}
	var entries [][]byte
	for txns := range slices.Chunk(s.sent, perCommand) {
		entries = append(entries, AppendEntry(nil, 1, []Batch{g.batch(Origin{1, 1}, follow(1, txns...))}))
	}
	b.ReportAllocs()
	g.m.mirror.replica = nil
	begun := time.Now()
	g.must(2, follow(1))
	first := time.Since(begun)
	b.ResetTimer()
	for _, e := range entries {
		g.index++
		if err := g.m.Apply(g.index, 1, e, Unobserved{}); err != nil {
			b.Fatal(err)
		}
	}
	b.StopTimer()
	b.ReportMetric(float64(first.Milliseconds()), "ms-to-first")
	s.same(g.m)
}

// BenchmarkMirror_Load loads a source's 200,000 znodes: what is decoded before readers have to wait, and how long they do.
func BenchmarkMirror_Load(b *testing.B) {
	const znodes = 200_000
	s := newSource(b)
	for i := range znodes {
		s.commit(1, replica.Change{Op: replica.OpCreate, Path: fmt.Sprintf("/n%06d", i), ACL: znode.OpenACL, Creates: -1})
	}
	load := s.upload(1, 9, MaxBackupPart)
	var prepared, applied time.Duration
	for b.Loop() {
		g := newRig(b)
		g.must(1, start("source"))
		for _, c := range load[:len(load)-1] {
			g.must(1, c)
		}
		entry := AppendEntry(nil, 1, []Batch{g.batch(Origin{1, 1}, load[len(load)-1])})
		begun := time.Now()
		g.m.Prepare(entry)
		prepared += time.Since(begun)
		begun = time.Now()
		if err := g.m.Apply(g.index+1, 1, entry, Unobserved{}); err != nil {
			b.Fatal(err)
		}
		applied += time.Since(begun)
		if x, _ := g.m.Mirror(); !x.Loaded {
			b.Fatalf("%+v, want it loaded", x)
		}
	}
	b.ReportMetric(float64(prepared.Milliseconds())/float64(b.N), "ms-before")
	b.ReportMetric(float64(applied.Milliseconds())/float64(b.N), "ms-alone")
}
