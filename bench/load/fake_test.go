package load

import (
	"io"
	"net"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/internal/jute"
	"github.com/zk-lite/zk-lite/internal/wire"
	"github.com/zk-lite/zk-lite/znode"
)

// fakeTimeout is that of a fakeServer's session.
const fakeTimeout = 30 * time.Second

// fakeServer answers the other end of a pipe. before is called before each
// answer, with the number of the request, from 1; false ends the connection.
// What a socket would hold waits in channels, as a pipe holds nothing.
func fakeServer(t *testing.T, nc net.Conn, before func(n int) bool) {
	requests, replies := make(chan wire.RequestHeader, 4096), make(chan []byte, 4096)
	frames := wire.NewFrameReader(nc, 1<<20)
	if _, err := frames.Next(); err != nil {
		t.Error("no handshake:", err)
		return
	}
	b, mark := wire.BeginFrame(nil)
	b = (&wire.ConnectResponse{TimeoutMillis: int32(fakeTimeout.Milliseconds()), SessionID: 7,
		Password: make([]byte, znode.PasswordSize)}).Append(b)
	wire.EndFrame(b, mark)
	replies <- b
	go func() {
		defer nc.Close()
		for b := range replies {
			if _, err := nc.Write(b); err != nil {
				return
			}
		}
	}()
	go func() {
		defer close(requests)
		defer nc.Close()
		for {
			nc.SetReadDeadline(time.Now().Add(fakeTimeout)) // then the session has expired
			payload, err := frames.Next()
			if err != nil {
				return
			}
			var h wire.RequestHeader
			h.Decode(jute.NewReader(payload))
			requests <- h
		}
	}()
	defer close(replies)
	n := 0
	for h := range requests {
		if h.Type != wire.OpPing {
			if n++; !before(n) {
				return
			}
		}
		replies <- wire.AppendReply(nil, wire.ReplyHeader{Xid: h.Xid, Zxid: znode.Zxid(n)}, nil)
	}
}

// fakeWorker is a worker that is connected to a fakeServer, for use in a bubble.
func fakeWorker(t *testing.T, cfg Config, before func(n int) bool) *worker {
	t.Helper()
	here, there := net.Pipe()
	go fakeServer(t, there, before)
	c, err := handshake(here, cfg.SessionTimeout, session{})
	if err != nil {
		t.Fatal(err)
	}
	from := time.Now().Add(cfg.WarmUp)
	w := &worker{conn: c, inFlight: cfg.InFlight, timeout: cfg.SessionTimeout,
		requests: newRequester(&cfg, newKeySpace(cfg.Prefix, cfg.Keys), nil, 0),
		rec:      newRecorder(cfg.Mix, from, from.Add(cfg.Duration))}
	if cfg.Rate > 0 {
		w.pace = newPace(time.Now(), cfg.Rate, 0, 1)
	}
	return w
}

// scripted is a connection that reads what it is given and writes nowhere.
type scripted struct {
	net.Conn // nil: nothing else is called
	in       io.Reader
}

func (s *scripted) Read(b []byte) (int, error) { return s.in.Read(b) }
