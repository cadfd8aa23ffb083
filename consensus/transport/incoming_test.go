package transport

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/hashicorp/raft"

	"github.com/zk-lite/zk-lite/consensus/transport/mux"
	"github.com/zk-lite/zk-lite/internal/testkit/clock"
)

// link looks at the snapshots on the connections that servers dial.
type link struct {
	each  int64 // a connection breaks after so many bytes; 0: never
	older bool  // the others are of a release that does not know the kind

	sent, conns atomic.Int64
	begun       atomic.Pointer[time.Time]
}

const helloKind = 7 // where a hello has the kind

func (l *link) dialled(_ *server, c net.Conn) net.Conn { return &linkConn{Conn: c, l: l} }

type linkConn struct {
	net.Conn
	l     *link
	said  bool
	watch bool
	sent  int64
}

func (c *linkConn) Write(b []byte) (int, error) {
	if !c.said {
		c.said = true
		if c.watch = b[helloKind] == byte(mux.KindSnapshot); c.watch {
			c.l.conns.Add(1)
		}
		if c.watch && c.l.older {
			b = slices.Clone(b)
			b[helloKind] = 200
		}
		return c.Conn.Write(b)
	}
	if c.watch {
		if now := time.Now(); c.sent == 0 {
			c.l.begun.CompareAndSwap(nil, &now)
		}
		if c.l.each > 0 && c.sent+int64(len(b)) > c.l.each {
			c.Close()
			return 0, net.ErrClosed
		}
		c.sent += int64(len(b))
		c.l.sent.Add(int64(len(b)))
	}
	return c.Conn.Write(b)
}

// behind starts a cluster in which the last server lacks some megabytes that the leader has in a snapshot only.
func behind(t *testing.T, l *link) (c *cluster, leader, away *server, last string) {
	t.Helper()
	c = newCluster(t, clusterOptions{
		config: func(_ uint64, conf *raft.Config) { conf.TrailingLogs = 1 }, dialled: l.dialled,
	})
	leader = c.leader()
	c.apply(leader, "first")
	away = c.others(leader)[0]
	away.end()
	for i := range 6 {
		last = fmt.Sprint(i, strings.Repeat("x", 1<<20))
		c.apply(leader, last)
	}
	if err := leader.raft().Snapshot().Error(); err != nil {
		t.Fatal(err)
	}
	return c, leader, away, last
}

func has(s *server, data string) bool {
	s.fsm.mu.Lock()
	defer s.fsm.mu.Unlock()
	return slices.Contains(s.fsm.data, data)
}

// Goal: a transfer whose connection breaks again and again goes on where it broke: each time at most a chunk is sent
// twice. And it keeps to its pace.
func TestSnapshot_BrokenConnection_Resumes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &link{each: 5 << 19} // in the middle of a chunk
		c, leader, away, last := behind(t, l)
		c.start(away, nil)
		c.await("the follower has the snapshot", func() bool { return has(away, last) })
		list, err := leader.store.List()
		if err != nil {
			t.Fatal(err)
		}
		size := list[0].Size
		broken := l.conns.Load() - 1
		if broken < 2 {
			t.Errorf("the connection broke %d times, want 2 or more", broken)
		}
		const slack = 64 << 10 // requests and answers
		if sent := l.sent.Load(); sent > size+broken*chunkSize+slack {
			t.Errorf("%d bytes were sent for a snapshot of %d, with %d breaks", sent, size, broken)
		}
		least := time.Duration(size-pieceSize) * time.Second / snapshotRate
		if took := time.Since(*l.begun.Load()); took < least {
			t.Errorf("%d bytes took %v, want %v or more", size, took, least)
		}
		if away.t.Stats().Stale != 0 {
			t.Error("the snapshot was sent twice")
		}
	})
}

// Goal: a server of release 1.0 gets raft's own stream.
func TestSnapshot_OlderServer_GetsRaftsStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &link{older: true}
		c, _, away, last := behind(t, l)
		c.start(away, nil)
		c.await("the follower has the snapshot", func() bool { return has(away, last) })
		if l.conns.Load() == 0 || l.sent.Load() != 0 {
			t.Errorf("%d connections, %d bytes on them; want a refusal", l.conns.Load(), l.sent.Load())
		}
	})
}

// claim is a snapshot of a JSON state that raft has never made.
func claim(c *cluster, from *server, data []byte) *raft.InstallSnapshotRequest {
	var servers []raft.Server
	for _, s := range c.servers {
		servers = append(servers, raft.Server{ID: RaftID(s.id), Address: rafts(s.addr)})
	}
	term := from.raft().CurrentTerm()
	return &raft.InstallSnapshotRequest{
		RPCHeader: raft.RPCHeader{
			ProtocolVersion: raft.ProtocolVersionMax, ID: []byte(RaftID(from.id)), Addr: []byte(from.addr),
		},
		SnapshotVersion: 1, Term: term, LastLogIndex: 1000, LastLogTerm: term, Size: int64(len(data)),
		Configuration: raft.EncodeConfiguration(raft.Configuration{Servers: servers}), ConfigurationIndex: 1,
	}
}

// offer sends the request and one chunk with a sum, and returns both answers.
func offer(t *testing.T, from, to *server, req *raft.InstallSnapshotRequest, chunk []byte, sum uint64) (kinds [2]byte) {
	t.Helper()
	conn, err := from.mux.DialMember(mux.KindSnapshot, to.addr, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	head, err := json.Marshal(req)
	if err != nil {
		t.Fatal(err)
	}
	b := append(binary.BigEndian.AppendUint32(nil, uint32(len(head))), head...)
	for i, b := range [][]byte{b, slices.Concat(make([]byte, 8), binary.BigEndian.AppendUint64(
		binary.BigEndian.AppendUint32(nil, uint32(len(chunk))), sum), chunk)} {
		if _, err := conn.Write(b); err != nil {
			t.Fatal(err)
		}
		if kinds[i], _, _, err = readAnswer(conn); err != nil {
			t.Fatal(err)
		}
		if kinds[i] != answerHas {
			break
		}
	}
	return kinds
}

// Goal: what a server has of a snapshot is never the beginning of another, and a chunk that arrives changed is refused.
func TestSnapshot_ChangedBytes_AreNotGlued(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, clusterOptions{})
		l := c.leader()
		c.apply(l, "first")
		f := c.others(l)[0]
		state := func(of string) []byte { return []byte(`["` + strings.Repeat(of, 5<<19) + `"]`) }
		wrong, right := state("w"), state("r")
		req := claim(c, l, right)

		chunk := wrong[:chunkSize]
		if got := offer(t, l, f, req, chunk, 1); got != [2]byte{answerHas, answerFailed} {
			t.Errorf("a chunk with a wrong sum is answered with %v", got)
		}
		if got := offer(t, l, f, req, chunk, xxhash.Sum64(chunk)); got != [2]byte{answerHas, answerHas} {
			t.Fatalf("a chunk is answered with %v", got)
		}
		send := func() (resp raft.InstallSnapshotResponse, err error) {
			o := &outgoing{t: l.t, id: RaftID(f.id), target: rafts(f.addr), req: req, data: bytes.NewReader(right)}
			return resp, o.send(&resp)
		}
		if _, err := send(); !errors.Is(err, errStartOver) {
			t.Fatalf("the rest of another snapshot: %v, want %v", err, errStartOver)
		}
		if resp, err := send(); err != nil || !resp.Success {
			t.Fatalf("the snapshot after that: %+v, %v", resp, err)
		}
		if !has(f, string(right[2:len(right)-2])) {
			t.Error("the follower has another state than the snapshot")
		}
		if resp, err := send(); err != nil || !resp.Success || f.t.Stats().Stale != 1 {
			t.Errorf("the snapshot again: %+v, %v", resp, err)
		}
	})
}

// Goal: what was begun is kept for a while, also for raft's next call, and then dropped.
func TestSnapshot_BegunOne_IsDroppedAfterAWhile(t *testing.T) {
	for _, x := range []struct {
		wait time.Duration
		kept bool
	}{{keepIncoming / 2, true}, {2 * keepIncoming, false}} {
		synctest.Test(t, func(t *testing.T) {
			l := &link{}
			c := newCluster(t, clusterOptions{dialled: l.dialled})
			leader := c.leader()
			c.apply(leader, "first")
			f := c.others(leader)[0]
			data := []byte(`["` + strings.Repeat("r", 5<<19) + `"]`)
			req := claim(c, leader, data)
			offer(t, leader, f, req, data[:chunkSize], xxhash.Sum64(data[:chunkSize]))
			clock.Sleep(x.wait)
			l.sent.Store(0)
			var resp raft.InstallSnapshotResponse
			if err := leader.t.InstallSnapshot(RaftID(f.id), rafts(f.addr), req, &resp, bytes.NewReader(data)); err != nil {
				t.Fatal(err)
			}
			if kept := l.sent.Load() < int64(len(data)); kept != x.kept {
				t.Errorf("after %v: %d of %d bytes were sent", x.wait, l.sent.Load(), len(data))
			}
		})
	}
}

// Goal: no request of a snapshot makes the decoder fail otherwise than by an error, or hold more than its bound.
func FuzzReadSnapshotRequest(f *testing.F) {
	f.Add([]byte{0, 0, 0, 2, '{', '}'})
	f.Add([]byte("\x00\x00\x00\x0b{\"Size\": -1}"))
	f.Add([]byte{255, 255, 255, 255})
	f.Fuzz(func(t *testing.T, b []byte) {
		req, key, err := readSnapshotRequest(bytes.NewReader(b))
		if err == nil && (req.Size < 0 || req.Size > maxSnapshotSize || len(key) > maxSnapshotRequest) {
			t.Errorf("%+v with a key of %d bytes was taken", req, len(key))
		}
		if _, _, err := readSnapshotRequest(io.LimitReader(bytes.NewReader(b), 3)); err == nil {
			t.Error("a cut request was taken")
		}
	})
}
