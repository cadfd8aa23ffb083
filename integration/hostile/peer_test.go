//go:build privileged

package hostile_test

import (
	"bufio"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"time"

	"github.com/zk-lite/zk-lite/internal/jute"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
	"github.com/zk-lite/zk-lite/internal/wire"
	"github.com/zk-lite/zk-lite/znode"
)

// peer is a hostile connection. It discards what it reads, and counts the replies.
type peer struct {
	nc      net.Conn
	sent    int64
	replies atomic.Int64
	bytes   atomic.Int64  // of replies
	ended   chan struct{} // closed when it reads no more
}

// dialPatience is how long a busy server may take for a connection and its session.
const dialPatience = 30 * time.Second

// dial opens a session. A client that does not read begins to do so with drain. A server that is out of touch with its
// leader, as may happen on a busy machine, ends connections before they have one: dial tries again.
func dial(addr string, identities int) (p *peer, err error) {
	var gone error
	err = wait.For(context.Background(), "a session at "+addr, dialPatience, func() (err error) {
		var nc net.Conn
		if nc, gone = net.DialTimeout("tcp", addr, dialPatience); gone == nil {
			p, err = open(nc, identities)
		}
		return err
	})
	return p, cmp.Or(gone, err)
}

// open opens a session over a connection.
func open(nc net.Conn, identities int) (p *peer, err error) {
	p = &peer{nc: nc, ended: make(chan struct{})}
	hello := wire.ConnectRequest{TimeoutMillis: 10_000, Password: make([]byte, znode.PasswordSize)}
	b, mark := wire.BeginFrame(nil)
	b = hello.Append(b)
	wire.EndFrame(b, mark)
	_ = nc.SetDeadline(time.Now().Add(dialPatience))
	if _, err = nc.Write(b); err == nil {
		err = p.session()
	}
	if err == nil {
		err = p.identify(identities)
	}
	_ = nc.SetDeadline(time.Time{})
	if err != nil {
		nc.Close()
		return nil, err
	}
	return p, nil
}

// frame reads a frame of a few bytes, not one byte more.
func (p *peer) frame() ([]byte, error) {
	var length [4]byte
	if _, err := io.ReadFull(p.nc, length[:]); err != nil {
		return nil, err
	}
	b := make([]byte, min(binary.BigEndian.Uint32(length[:]), 1<<10))
	_, err := io.ReadFull(p.nc, b)
	return b, err
}

func (p *peer) session() error {
	b, err := p.frame()
	if err != nil {
		return err
	}
	var r wire.ConnectResponse
	if r.Decode(jute.NewReader(b)); r.SessionID == 0 {
		return errors.New("refused")
	}
	return nil
}

// mostIdentities is about how many identities fit into what a connection may have of them.
const mostIdentities = 440

// identify proves that many identities, each of few bytes.
func (p *peer) identify(n int) error {
	for i := range n {
		q := wire.AuthRequest{Scheme: "digest", Auth: fmt.Appendf(nil, ":%d", i)}
		if _, err := p.nc.Write(wire.AppendRequest(nil, wire.RequestHeader{Xid: wire.XidAuth, Type: wire.OpAuth}, &q)); err != nil {
			return err
		}
		switch b, err := p.frame(); {
		case err != nil:
			return err
		case len(b) < wire.ReplyHeaderBytes || binary.BigEndian.Uint32(b[12:]) != 0:
			return fmt.Errorf("identity %d is refused", i)
		}
	}
	return nil
}

// drain reads until the connection ends. Replies are counted, events are not.
func (p *peer) drain() {
	defer close(p.ended)
	r := bufio.NewReaderSize(p.nc, 256<<10)
	var head [8]byte // length and xid
	for {
		if _, err := io.ReadFull(r, head[:]); err != nil {
			return
		}
		n := int64(binary.BigEndian.Uint32(head[:]))
		if _, err := io.CopyN(io.Discard, r, n-4); err != nil {
			return
		}
		p.bytes.Add(n + 4)
		if wire.Xid(int32(binary.BigEndian.Uint32(head[4:]))) != wire.XidNotification {
			p.replies.Add(1)
		}
	}
}

// frames returns n copies of a request, pipelined.
func (p *peer) frames(b []byte, op wire.OpCode, q wire.Request, n int) []byte {
	for range n {
		p.sent++
		b = wire.AppendRequest(b, wire.RequestHeader{Xid: wire.Xid(p.sent), Type: op}, q)
	}
	return b
}

// write sends what it can until the time is over: a server stops reading from a client that does not read. It
// reports whether all was sent.
func (p *peer) write(b []byte, limit time.Duration) bool {
	_ = p.nc.SetWriteDeadline(time.Now().Add(limit))
	_, err := p.nc.Write(b)
	return err == nil
}

// answered waits until every request has its reply. The error states how many have none.
func (p *peer) answered(limit time.Duration) error {
	deadline := time.Now().Add(limit)
	poll := time.NewTicker(200 * time.Microsecond)
	defer poll.Stop()
	for p.replies.Load() < p.sent {
		select {
		case <-p.ended:
			if p.replies.Load() < p.sent {
				return fmt.Errorf("disconnected with %d of %d replies", p.replies.Load(), p.sent)
			}
		case <-poll.C:
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%d of %d replies after %v", p.replies.Load(), p.sent, limit)
		}
	}
	return nil
}

func (p *peer) close() { p.nc.Close() }
