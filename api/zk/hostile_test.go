package zk_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/api/zk"
	"github.com/zk-lite/zk-lite/consensus"
	"github.com/zk-lite/zk-lite/internal/wire"
	"github.com/zk-lite/zk-lite/znode"
)

// lines collects log lines above debug.
type lines struct {
	mu  sync.Mutex // protects the field below
	buf bytes.Buffer
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(b)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

func logTo(l *lines) option {
	return func(_ *serverConfig, z *zkConfig) { z.Logger = slog.New(slog.NewTextHandler(l, nil)) }
}

// Whatever is no frame ends the connection with one line in the log.
func TestListener_BadFrames_AreClosedWithOneLine(t *testing.T) {
	for name, b := range map[string][]byte{
		"negative length":  {0xff, 0xff, 0xff, 0xff, 0, 0},
		"smallest length":  {0x80, 0, 0, 0},
		"length too large": {0, 0x10, 0, 0, 0, 0, 0, 1, 0x7f, 0, 0, 0},
		"empty frame":      {0, 0, 0, 0},
		"short header":     {0, 0, 0, 7, 0, 0, 0, 1, 0, 0, 0},
		"bad auth":         {0, 0, 0, 9, 0, 0, 0, 1, 0, 0, 0, 100, 7},
		"bad sasl":         {0, 0, 0, 9, 0, 0, 0, 1, 0, 0, 0, 102, 7},
	} {
		for _, session := range []bool{true, false} {
			log := &lines{}
			k := start(t, logTo(log))
			c := k.dial()
			if session {
				c.connect(wire.ConnectRequest{TimeoutMillis: 5000})
			}
			c.raw(b)
			c.closed()
			if k.eventually("the line", func() bool { return log.String() != "" }); strings.Count(
				log.String(), "\n") != 1 || !strings.Contains(log.String(), "remote=127.0.0.1:") {
				t.Errorf("%s, session %v: log %q", name, session, log)
			}
		}
	}
}

// A client that speaks TLS or broken HTTP here gets an answer that its own side shows, and the log names the protocol.
func TestListener_OtherProtocols_AreNamed(t *testing.T) {
	for first, want := range map[string]struct{ answer, line string }{
		"GET / HTTP\r\n\r\n": {"HTTP/1.0 400 Bad Request\r\n", "the client speaks HTTP"},
		"GET /" + strings.Repeat("a", 5000) + " HTTP/1.1\r\n\r\n": {"HTTP/1.0 400 Bad Request\r\n", "the client speaks HTTP"},
		"\x16\x03\x01\x02\x00\x01\x00\x01\xfc":                    {"this port speaks ZooKeeper's protocol without TLS\n", "the client speaks TLS"},
	} {
		log := &lines{}
		k := start(t, logTo(log))
		c := k.dial()
		c.raw([]byte(first))
		if b, err := io.ReadAll(c.c); err != nil || !strings.HasPrefix(string(b), want.answer) {
			t.Errorf("%q is answered with %q, %v", first, b, err)
		}
		c.c.Close()
		k.eventually("the line", func() bool { return strings.Contains(log.String(), want.line) })
	}
}

// An HTTP client is sent to the HTTP port, with what it asks for, in pieces or at once, and nothing is logged.
func TestListener_HTTP_IsRedirected(t *testing.T) {
	log := &lines{}
	k := start(t, logTo(log), func(s *serverConfig, z *zkConfig) {
		z.HTTP = &zk.HTTPPort{Addr: netip.MustParseAddrPort("127.0.0.1:8080"), Plain: true}
	})
	k.log.setStatus(func(s *consensus.Status) { s.Ensemble = [16]byte{0xab} })
	for _, c := range []struct {
		request []string
		body    bool
	}{
		{[]string{"GET /ui/?a=b HTTP/1.1\r\nHost: localhost:2181\r\n\r\n"}, true},
		{[]string{"HEAD", " /ui/?a=b HTTP/1.0\r\n", "Host: localhost\r\n", "\r\n"}, false},
		{[]string{"POST /ui/?a=b HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\nsome data"}, true},
	} {
		conn := k.dial()
		for _, part := range c.request {
			conn.raw([]byte(part))
		}
		resp, err := http.ReadResponse(bufio.NewReader(conn.c), &http.Request{Method: strings.Fields(c.request[0])[0]})
		if err != nil {
			t.Fatalf("%q: %v", c.request, err)
		}
		text, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || c.body != strings.Contains(string(text), "at http://localhost:8080/ui/?a=b\n") {
			t.Errorf("%q: the body is %q, %v", c.request, text, err)
		}
		if got := resp.Header.Get("Location"); resp.StatusCode != http.StatusTemporaryRedirect ||
			got != "http://localhost:8080/ui/?a=b" || !resp.Close ||
			resp.Header.Get(zk.EnsembleHeader) != "ab000000000000000000000000000000" {
			t.Errorf("%q: %s to %q, %v", c.request, resp.Status, got, resp.Header)
		}
		conn.c.Close()
	}
	if log.String() != "" {
		t.Errorf("the log has %q, want nothing", log)
	}
	conn := start(t).dial() // without an HTTP port
	conn.raw([]byte("GET / HTTP/1.1\r\n\r\n"))
	if b, err := io.ReadAll(conn.c); err != nil || !strings.HasPrefix(string(b), "HTTP/1.1 404 Not Found\r\n") ||
		!strings.Contains(string(b), "no HTTP port (admin.enableServer=false)") {
		t.Errorf("without an HTTP port the answer is %q, %v", b, err)
	}
}

// The largest frame is served, also when it comes in pieces.
func TestListener_LargestFrame_IsServed(t *testing.T) {
	k := start(t)
	c := k.connect()
	c.create("/big", "")
	overhead := len(wire.AppendRequest(nil, wire.RequestHeader{},
		&wire.SetDataRequest{Path: "/big", Data: []byte{}})) - wire.FrameLengthBytes
	data := bytes.Repeat([]byte{7}, wire.DefaultMaxFrame-overhead)
	b := wire.AppendRequest(nil, wire.RequestHeader{Xid: 1, Type: wire.OpSetData},
		&wire.SetDataRequest{Path: "/big", Data: data, Version: -1})
	b = wire.AppendRequest(b, wire.RequestHeader{Xid: 2, Type: wire.OpGetData},
		&wire.GetDataRequest{Path: "/big"})
	for len(b) > 0 {
		n := min(len(b), 100_003)
		c.raw(b[:n])
		b = b[n:]
	}
	c.reply(1, wire.OpSetData)
	if _, x := c.reply(2, wire.OpGetData); !bytes.Equal(x.(*wire.GetDataResponse).Data, data) {
		t.Error("the data has changed")
	}
}

// A longer request is answered in its turn; it costs neither the connection nor memory. One that cannot be a
// request ends the connection.
func TestListener_TooLongRequest_IsRefused(t *testing.T) {
	k := start(t)
	c := k.connect()
	before := c.send(wire.OpSync, &wire.SyncRequest{Path: "/"})
	xid := c.send(wire.OpCreate, &wire.CreateRequest{
		Path: "/big", Data: make([]byte, 20*wire.DefaultMaxFrame), ACL: znode.OpenACL,
	})
	after := c.send(wire.OpExists, &wire.ExistsRequest{Path: "/big"})
	c.reply(before, wire.OpSync)
	if h, _ := c.reply(xid, wire.OpCreate); h.Err != znode.ErrBadArguments {
		t.Errorf("answered by %v", h.Err)
	}
	if h, _ := c.reply(after, wire.OpExists); h.Err != znode.ErrNoNode {
		t.Errorf("the request after it is answered by %v", h.Err)
	}
	c.raw(frame(make([]byte, wire.DefaultMaxFrame+1))[:100]) // of type 0
	c.closed()
}

// A length is a claim: until bytes come, it costs nothing.
func TestListener_ClaimedLengths_CostNoMemory(t *testing.T) {
	k := start(t)
	before := heapAndStacks()
	const n = 300
	for range n {
		c := k.connect()
		c.frames = nil
		c.raw([]byte{0, 0xf, 0xff, 0xff, 1, 2})
	}
	k.connect().fence()
	if cost := (heapAndStacks() - before) / n; cost > 64<<10 {
		t.Errorf("%d bytes a connection", cost)
	}
}

// Events that a client does not read end its connection and hold no one up.
func TestListener_DeafWatcher_IsCutOff(t *testing.T) {
	k := start(t, func(_ *serverConfig, z *zkConfig) { z.OutboxBytes = 64 << 10 })
	deaf, c := k.connect(), k.connect()
	if err := deaf.c.(*net.TCPConn).SetReadBuffer(4096); err != nil {
		t.Fatal(err)
	}
	long := "/" + strings.Repeat("x", 50_000)
	deaf.want(znode.OK, wire.OpAddWatch, &wire.AddWatchRequest{Path: long})
	c.create(long, "")
	k.eventually("the deaf client to be cut off", func() bool {
		c.want(znode.OK, wire.OpSetData, set(long))
		return strings.Contains(k.word("wchs"), "0 connections")
	})
	c.fence()
}

// A client that asks for more than it reads is slowed down, not cut off; what
// waits for it is bounded; it gets everything.
func TestListener_SlowReader_IsSlowedDown(t *testing.T) {
	k := start(t, func(_ *serverConfig, z *zkConfig) { z.OutboxBytes = 4 << 20 })
	c := patient(k)
	c.create("/big", string(make([]byte, 500_000)))
	before := heapAndStacks()
	const n = 400 // 200 MB
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		for i := range n {
			c.raw(wire.AppendRequest(nil, wire.RequestHeader{Xid: wire.Xid(i), Type: wire.OpGetData},
				&wire.GetDataRequest{Path: "/big"}))
		}
	}()
	<-sent
	if grown := heapAndStacks() - before; grown > 20<<20 {
		t.Errorf("%d MB wait", grown>>20)
	}
	for i := range n {
		if _, x := c.reply(wire.Xid(i), wire.OpGetData); len(x.(*wire.GetDataResponse).Data) != 500_000 {
			t.Fatal("short data")
		}
	}
}

// A write that makes no progress ends that connection only.
func TestListener_StuckClient_IsCut(t *testing.T) {
	k := start(t, func(_ *serverConfig, z *zkConfig) { z.WriteTimeout = 100 * time.Millisecond })
	c, other := k.connect(), k.connect()
	c.create("/big", string(make([]byte, 1_000_000)))
	var b []byte
	for range 50 {
		b = wire.AppendRequest(b, wire.RequestHeader{Xid: 1, Type: wire.OpGetData},
			&wire.GetDataRequest{Path: "/big"})
	}
	c.raw(b)
	k.eventually("the stuck client to go", func() bool {
		other.fence()
		return strings.Contains(k.word("srvr"), "Connections: 2\n")
	})
}

// More requests than the server's queue takes: the reader waits, and is freed
// when the connection is ended while it does.
func TestListener_FullQueue_HoldsTheReader(t *testing.T) {
	k := start(t)
	c := k.connect()
	release := k.log.block()
	const n = 10_000
	var b []byte
	for i := range n {
		b = wire.AppendRequest(b, wire.RequestHeader{Xid: wire.Xid(i), Type: wire.OpSync},
			&wire.SyncRequest{Path: "/"})
	}
	c.raw(b)
	k.eventually("the queue to be full", func() bool {
		return strings.Contains(k.word("srvr"), "Outstanding: 4097\n")
	})
	release()
	for i := range n {
		c.reply(wire.Xid(i), wire.OpSync)
	}
}

// Shutdown also ends connections that wait for the log.
func TestListener_Shutdown_FreesWhoWaits(t *testing.T) {
	k := start(t)
	c := k.connect()
	k.log.block()
	var b []byte
	for i := range 5000 {
		b = wire.AppendRequest(b, wire.RequestHeader{Xid: wire.Xid(i), Type: wire.OpPing}, nil)
		b = wire.AppendRequest(b, wire.RequestHeader{Xid: wire.Xid(i), Type: wire.OpGetData},
			&wire.GetDataRequest{Path: "/"})
	}
	c.send(wire.OpSync, &wire.SyncRequest{Path: "/"})
	c.raw(b)
	h := k.dial() // in its handshake
	h.raw(frame((&wire.ConnectRequest{TimeoutMillis: 1000, Password: make([]byte, 16)}).Append(nil)))
	k.dial() // before it
	k.eventually("the requests to wait", func() bool {
		return strings.Contains(k.word("srvr"), "Outstanding: 4097\n")
	})
}

// Thousands of connections come and go without leaving anything.
func TestListener_Churn_LeavesNothing(t *testing.T) {
	k := start(t)
	k.connect().close()
	before := runtime.NumGoroutine()
	var clients sync.WaitGroup
	for w := range 8 {
		clients.Go(func() {
			for i := range 50 {
				c := k.connect()
				c.want(znode.OK, wire.OpCreate, create(fmt.Sprintf("/%d-%d", w, i), "", znode.Ephemeral))
				if i%2 == 0 {
					c.close()
				}
				c.c.Close()
			}
		})
	}
	clients.Wait()
	k.eventually("all goroutines to end", func() bool { return runtime.NumGoroutine() <= before })
}

// Sessions that begin large requests and stop do not keep others from large and small requests, and lose
// their connections one after the other, with one line in the log.
func TestListener_PartialRequests_AreBounded(t *testing.T) {
	log := &lines{}
	k := start(t, logTo(log), func(_ *serverConfig, z *zkConfig) { z.PartialBytes = 1 << 20 })
	for range 20 {
		c := k.connect()
		// One that loses its connection early cannot write all of it.
		_, _ = c.c.Write(append([]byte{0, 0x0f, 0, 0}, make([]byte, 500_000)...))
	}
	// The server first drops the connection whose request began first, counted from when it reads the request. On a
	// busy machine it may read an honest request before one that was sent earlier, so all must be read by now: two fit.
	k.eventually("all but two have gone", func() bool { return k.listener.Totals().Connections <= 2 })
	honest := k.connect()
	for i := range 5 {
		honest.create(fmt.Sprintf("/large-%d", i), strings.Repeat("x", 900_000))
		honest.create(fmt.Sprintf("/small-%d", i), "x")
	}
	honest.want(znode.OK, wire.OpExists, &wire.ExistsRequest{Path: "/"})
	if text := log.String(); strings.Count(text, "limit=largeRequestMaxBytes") != 1 {
		t.Errorf("log: %s", text)
	}
}

// reads appends n requests for a znode's data, with xids from first on.
func reads(b []byte, first, n int, path string) []byte {
	for i := range n {
		b = wire.AppendRequest(b, wire.RequestHeader{Xid: wire.Xid(first + i), Type: wire.OpGetData},
			&wire.GetDataRequest{Path: path})
	}
	return b
}

// patient is a client that sends no pings, and may be busy for longer than ten seconds with the race detector.
func patient(k *kit) *client {
	return k.dial().connect(wire.ConnectRequest{TimeoutMillis: 60_000, HasReadOnly: true})
}

// The server dropped a client that read as fast as it could: it answered all reads after a write at once, into an
// outbox to which the limit for clients that do not read applied.
func TestRegression_ReadsBehindAWrite_AreNotHeldAgainstTheClient(t *testing.T) {
	for size, n := range map[int]int{900_000: 40, 100_000: 340, 5000: 4000} {
		c := patient(start(t))
		c.create("/large", strings.Repeat("x", size))
		sync := wire.AppendRequest(nil, wire.RequestHeader{Xid: 1, Type: wire.OpSync}, &wire.SyncRequest{Path: "/"})
		go c.raw(reads(sync, 2, n, "/large"))
		c.reply(1, wire.OpSync)
		for i := range n {
			if _, x := c.reply(wire.Xid(2+i), wire.OpGetData); len(x.(*wire.GetDataResponse).Data) != size {
				t.Fatalf("read %d of %d bytes: got %d", i, size, len(x.(*wire.GetDataResponse).Data))
			}
		}
	}
}

// One reply of more than the outbox's limit was held against whatever followed it: a watch's event, or a write's answer.
func TestRegression_LargeReply_IsNotHeldAgainstWhatFollows(t *testing.T) {
	k := start(t, func(_ *serverConfig, z *zkConfig) { z.OutboxBytes = 64 << 10 })
	c := patient(k)
	c.create("/large", strings.Repeat("x", 900_000))
	b := wire.AppendRequest(nil, wire.RequestHeader{Xid: 1, Type: wire.OpSync}, &wire.SyncRequest{Path: "/"})
	b = reads(b, 2, 1, "/large")
	for i := range 100 {
		b = wire.AppendRequest(b, wire.RequestHeader{Xid: wire.Xid(3 + i), Type: wire.OpSync}, &wire.SyncRequest{Path: "/"})
	}
	release := k.log.block()
	c.raw(b)
	k.eventually("all to wait", func() bool { return strings.Contains(k.word("srvr"), "Outstanding: 102\n") })
	release()
	c.reply(1, wire.OpSync)
	c.reply(2, wire.OpGetData)
	for i := range 100 {
		c.reply(wire.Xid(3+i), wire.OpSync)
	}
}

// While no write is applied, one connection's reads of paths of a megabyte took more than a gigabyte in eleven seconds:
// only their number was bounded.
func TestRegression_ReadsBehindAWrite_AreBoundedInBytes(t *testing.T) {
	k := start(t)
	c := patient(k)
	release := k.log.block()
	b := wire.AppendRequest(nil, wire.RequestHeader{Xid: 1, Type: wire.OpSync}, &wire.SyncRequest{Path: "/"})
	const n = 200
	b = reads(b, 2, n, "/"+strings.Repeat("x", 1_000_000))
	before := heapAndStacks()
	sent := make(chan struct{})
	go func() { defer close(sent); c.raw(b) }()
	k.eventually("reads to wait", func() bool { return strings.Contains(k.word("srvr"), "Outstanding: 4\n") })
	if grown := heapAndStacks() - before; grown > 20<<20 {
		t.Errorf("got %d MB more, want less than 20", grown>>20)
	}
	release()
	c.reply(1, wire.OpSync)
	for i := range n {
		if h, _ := c.reply(wire.Xid(2+i), wire.OpGetData); h.Err != znode.ErrNoNode {
			t.Fatalf("read %d: got %s, want NONODE", i, h.Err.Name())
		}
	}
	<-sent
}

// Sixty connections of one address could have 16 MiB each wait for them. When all outboxes are full, the clients
// with the fullest ones are cut off; those that read are not.
func TestRegression_Outboxes_AreBoundedInAll(t *testing.T) {
	k := start(t, func(_ *serverConfig, z *zkConfig) { z.OutboxTotal = 8 << 20 })
	long := "/" + strings.Repeat("x", 900_000)
	c := patient(k)
	c.create("/large", strings.Repeat("x", 900_000))
	const clients = 8
	var all []*client
	for range clients {
		deaf := k.connect()
		all = append(all, deaf)
		if err := deaf.c.(*net.TCPConn).SetReadBuffer(4096); err != nil {
			t.Fatal(err)
		}
		deaf.want(znode.OK, wire.OpAddWatch, &wire.AddWatchRequest{Path: long})
	}
	c.create(long, "")
	k.eventually("deaf clients to be cut off", func() bool { // each would have 16 MiB otherwise
		c.want(znode.OK, wire.OpSetData, set(long))
		return !strings.Contains(k.word("wchs"), fmt.Sprint(clients, " connections"))
	})
	go c.raw(reads(nil, 1000, 100, "/large"))
	for i := range 100 {
		c.reply(wire.Xid(1000+i), wire.OpGetData)
	}
	metric := func(name string) (n int64) {
		k.listener.Metrics(func(have string, value any) {
			if have == name {
				n = value.(int64)
			}
		})
		return n
	}
	if waiting, cut := metric("outbox_bytes"), metric("outbox_overflows_total"); waiting > (8+clients*3)<<20 || cut == 0 {
		t.Errorf("got %d bytes waiting and %d cut off, want at most 8 MiB beside 3 MiB a client, and at least one", waiting, cut)
	}
	for _, deaf := range all {
		_ = deaf.c.Close()
	}
	k.eventually("nothing to wait", func() bool { return metric("outbox_bytes") == 0 })
}
