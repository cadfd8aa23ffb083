package zk_test

import (
	"fmt"
	"net/netip"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/zk-lite/zk-lite/internal/wire"
	"github.com/zk-lite/zk-lite/znode"
)

func BenchmarkListener_Get(b *testing.B) {
	benchmark(b, wire.OpGetData, &wire.GetDataRequest{Path: "/bench/znode"})
}

func BenchmarkListener_Set(b *testing.B) {
	benchmark(b, wire.OpSetData, &wire.SetDataRequest{
		Path: "/bench/znode", Data: make([]byte, 100), Version: znode.AnyVersion,
	})
}

// benchmark measures one connection over loopback with 1 and 64 requests in
// flight. The client's own work and its two system calls are in the metrics;
// its allocations are not: it reuses everything.
func benchmark(b *testing.B, op wire.OpCode, body wire.Request) {
	for _, inFlight := range []int{1, 64} {
		b.Run(fmt.Sprintf("inflight=%d", inFlight), func(b *testing.B) {
			c := start(b).connect()
			if err := c.c.SetDeadline(noDeadline); err != nil {
				b.Fatal(err)
			}
			c.create("/bench", "")
			c.create("/bench/znode", string(make([]byte, 100)))
			var batch []byte
			for range inFlight {
				batch = wire.AppendRequest(batch, wire.RequestHeader{Xid: 1, Type: op}, body)
			}
			b.ReportAllocs()
			b.ResetTimer()
			for sent := 0; sent < b.N; sent += inFlight {
				c.raw(batch)
				for range inFlight {
					if p := c.next(); len(p) < wire.ReplyHeaderBytes {
						b.Fatal("short reply")
					}
				}
			}
		})
	}
}

// BenchmarkListener_IdleConnection measures the memory of a connection with an idle session: the listener's, the
// server's, net's, the goroutine's stack and the session's replicated record. The clients are bare sockets, whose
// memory is the kernel's. Each has sent two requests.
func BenchmarkListener_IdleConnection(b *testing.B) {
	k := start(b, func(s *serverConfig, _ *zkConfig) { s.Tick = idleTick; s.Grace = idleTick })
	const n = 3000
	q := wire.ConnectRequest{TimeoutMillis: 40_000, Password: make([]byte, 16)}
	hello := frame(q.Append(nil))
	ping := wire.AppendRequest(nil, wire.RequestHeader{Xid: -2, Type: wire.OpPing}, nil)
	get := wire.AppendRequest(nil, wire.RequestHeader{Xid: 1, Type: wire.OpGetData},
		&wire.GetDataRequest{Path: "/"})
	for b.Loop() {
		before := heapAndStacks()
		sockets := make([]int, 0, n)
		for range n {
			s := bareSocket(b, k.addr)
			for _, request := range [][]byte{hello, ping, get} {
				exchangeBare(b, s, request)
			}
			sockets = append(sockets, s)
		}
		b.ReportMetric(float64(heapAndStacks()-before)/n, "B/connection")
		for _, s := range sockets {
			if err := syscall.Close(s); err != nil {
				b.Fatal(err)
			}
		}
		k.eventually("the connections to go", func() bool {
			return !strings.Contains(k.word("wchs")+k.word("srvr"), "Connections: 3")
		})
	}
}

func bareSocket(b *testing.B, addr string) int {
	ap := netip.MustParseAddrPort(addr)
	s, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err == nil {
		err = syscall.Connect(s, &syscall.SockaddrInet4{Port: int(ap.Port()), Addr: ap.Addr().As4()})
	}
	if err != nil {
		b.Fatal(err)
	}
	return s
}

func exchangeBare(b *testing.B, s int, request []byte) {
	if _, err := syscall.Write(s, request); err != nil {
		b.Fatal(err)
	}
	var reply [256]byte
	if n, err := syscall.Read(s, reply[:]); err != nil || n < wire.ReplyHeaderBytes {
		b.Fatalf("read %d bytes (%v), want at least %d", n, err, wire.ReplyHeaderBytes)
	}
}

func heapAndStacks() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}

// BenchmarkListener_Session connects, opens a session, closes it and waits for the
// server to hang up. The client's own work is in the metrics.
func BenchmarkListener_Session(b *testing.B) {
	k := start(b)
	q := wire.ConnectRequest{TimeoutMillis: 30_000, Password: make([]byte, 16)}
	hello := frame(q.Append(nil))
	bye := wire.AppendRequest(nil, wire.RequestHeader{Xid: 1, Type: wire.OpCloseSession}, nil)
	b.ReportAllocs()
	for b.Loop() {
		s := bareSocket(b, k.addr)
		exchangeBare(b, s, hello)
		exchangeBare(b, s, bye)
		var end [1]byte
		if n, err := syscall.Read(s, end[:]); n != 0 || err != nil {
			b.Fatal("the server goes on:", n, err)
		}
		if err := syscall.Close(s); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkListener_Ping measures a heartbeat of an idle connection.
func BenchmarkListener_Ping(b *testing.B) {
	k := start(b)
	s := bareSocket(b, k.addr)
	q := wire.ConnectRequest{TimeoutMillis: 30_000, Password: make([]byte, 16)}
	exchangeBare(b, s, frame(q.Append(nil)))
	ping := wire.AppendRequest(nil, wire.RequestHeader{Xid: wire.XidPing, Type: wire.OpPing}, nil)
	b.ReportAllocs()
	for b.Loop() {
		exchangeBare(b, s, ping)
	}
	if err := syscall.Close(s); err != nil {
		b.Fatal(err)
	}
}
