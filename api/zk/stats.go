package zk

import (
	"time"

	"github.com/zk-lite/zk-lite/internal/histogram"
	"github.com/zk-lite/zk-lite/internal/wire"
	"github.com/zk-lite/zk-lite/znode"
)

// counters counts requests and how long they took.
type counters struct {
	received int64
	sent     int64
	bytesIn  int64
	bytesOut int64
	requests int64
	total    time.Duration
	shortest time.Duration
	longest  time.Duration

	lastOut, minOut, maxOut int64     // bytes of a message sent; 0: none yet
	lastAt                  time.Time // when a request was answered
}

// out counts n bytes that are one message.
func (t *counters) out(n int64) {
	t.bytesOut += n
	if t.maxOut == 0 || n < t.minOut {
		t.minOut = n
	}
	t.lastOut, t.maxOut = n, max(t.maxOut, n)
}

// request counts one answered request.
func (t *counters) request(d time.Duration) {
	if t.requests == 0 || d < t.shortest {
		t.shortest = d
	}
	t.longest = max(t.longest, d)
	t.requests++
	t.total += d
}

// add counts all that u did.
func (t *counters) add(u *counters) {
	t.received += u.received
	t.sent += u.sent
	t.bytesIn += u.bytesIn
	t.bytesOut += u.bytesOut
	if u.maxOut > 0 {
		if t.maxOut == 0 || u.minOut < t.minOut {
			t.minOut = u.minOut
		}
		if t.maxOut == 0 || u.lastAt.After(t.lastAt) {
			t.lastOut, t.lastAt = u.lastOut, u.lastAt
		}
		t.maxOut = max(t.maxOut, u.maxOut)
	}
	if u.requests == 0 {
		return
	}
	if t.requests == 0 || u.shortest < t.shortest {
		t.shortest = u.shortest
	}
	t.longest = max(t.longest, u.longest)
	t.requests += u.requests
	t.total += u.total
}

// averageMillis is the mean latency in milliseconds.
func (t *counters) averageMillis() float64 {
	if t.requests == 0 {
		return 0
	}
	return float64(t.total.Microseconds()) / 1000 / float64(t.requests)
}

// timeShards keeps connections on several processors from counting in the same cache lines.
const timeShards = 8

// times are how long requests took, by what they were.
type times struct {
	reads, writes, pings histogram.Histogram
	_                    [64]byte // a cache line
}

func (t *times) of(r *request) *histogram.Histogram {
	switch {
	case r.op == wire.OpPing:
		return &t.pings
	case r.isCommand(), r.op == wire.OpCreateSession:
		return &t.writes
	}
	return &t.reads
}

// stats are one connection's metrics. They change under its outbox's lock, so
// that counting needs no lock of its own; cons shows them, srvr their sum.
type stats struct {
	conn   counters // since the start or crst
	server counters // since the start or srst

	lastOp      wire.OpCode
	lastXid     wire.Xid
	lastZxid    znode.Zxid
	lastAnswer  time.Time
	lastLatency time.Duration
}

// received counts one packet of n bytes.
func (s *stats) received(n int) {
	s.conn.received++
	s.server.received++
	s.server.bytesIn += int64(n)
}

// sent counts one packet; outbox.commit counts its bytes.
func (s *stats) sent() {
	s.conn.sent++
	s.server.sent++
}

// answered counts a request and its reply, and returns when that was.
func (s *stats) answered(r *request, zxid znode.Zxid) time.Time {
	now := time.Now()
	d := now.Sub(r.start)
	s.sent()
	s.conn.request(d)
	s.server.request(d)
	r.c.times.of(r).Observe(d)
	s.lastOp, s.lastZxid = r.op, zxid
	if r.xid >= 0 { // the special ones are not what one wants to know
		s.lastXid = r.xid
	}
	s.lastAnswer, s.lastLatency, s.server.lastAt = now, d, now
	return now
}

// opLetters is what cons calls the last operation (FinalRequestProcessor).
func opLetters(op wire.OpCode) string {
	switch op {
	case wire.OpPing:
		return "PING"
	case wire.OpCreateSession:
		return "SESS"
	case wire.OpMulti:
		return "MULT"
	case wire.OpMultiRead:
		return "MLTR"
	case wire.OpCreate, wire.OpCreate2, wire.OpCreateTTL, wire.OpCreateContainer:
		return "CREA"
	case wire.OpDelete, wire.OpDeleteContainer:
		return "DELE"
	case wire.OpSetData:
		return "SETD"
	case wire.OpReconfig:
		return "RECO"
	case wire.OpSetACL:
		return "SETA"
	case wire.OpCloseSession:
		return "CLOS"
	case wire.OpSync:
		return "SYNC"
	case wire.OpExists:
		return "EXIS"
	case wire.OpGetData:
		return "GETD"
	case wire.OpSetWatches:
		return "SETW"
	case wire.OpSetWatches2:
		return "STW2"
	case wire.OpAddWatch:
		return "ADDW"
	case wire.OpGetACL:
		return "GETA"
	case wire.OpGetChildren, wire.OpGetChildren2:
		return "GETC"
	case wire.OpGetAllChildrenNumber:
		return "GETACN"
	case wire.OpCheckWatches:
		return "CHKW"
	case wire.OpRemoveWatches:
		return "REMW"
	case wire.OpWhoAmI:
		return "HOMI"
	case wire.OpGetEphemerals:
		return "GETE"
	}
	return "NA"
}
