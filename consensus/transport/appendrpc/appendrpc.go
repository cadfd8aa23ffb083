// Package appendrpc carries raft's AppendEntries, with connections and an encoding of its own. A write
// consists of AppendEntries, and raft.NetworkTransport spends a tenth of an entry's CPU on msgpack.
// Nothing else changes: a request has one answer, and a connection has one request at a time.
//
// A notice is a request without an answer. It takes the same connections, so a notice that is sent
// before a request on the same connection is also read before it.
//
// The package makes no connection itself and starts no goroutine: Client calls the dial function that
// it was given, and Serve runs on its caller's goroutine. It has one lock, which is held over neither
// network nor another lock.
package appendrpc

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

const (
	// maxIdle is how many connections to a server are kept: replication, heartbeat and push take
	// one each.
	maxIdle = 3
	// bufferSize is how much is sent and read in one system call.
	bufferSize = 64 << 10
	// slowest is the minimum rate at which a server must take requests, in bytes per second.
	slowest = 4 << 20
)

// Client is the leader's side. Its methods are safe for concurrent use.
type Client struct {
	// set at construction
	dial    func(target raft.ServerAddress) (net.Conn, error)
	timeout time.Duration

	mu   sync.Mutex // protects the field below
	idle map[raft.ServerAddress][]*clientConn
}

// clientConn belongs to one goroutine at a time.
type clientConn struct {
	net.Conn
	r *bufio.Reader
	w *bufio.Writer
}

// NewClient returns a client that makes connections by dial. The timeout is that of one short request.
func NewClient(dial func(raft.ServerAddress) (net.Conn, error), timeout time.Duration) *Client {
	return &Client{dial: dial, timeout: timeout, idle: map[raft.ServerAddress][]*clientConn{}}
}

// Call sends a request and waits for its answer.
func (cl *Client) Call(
	target raft.ServerAddress, req *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse,
) error {
	return cl.with(target, req, func(c *clientConn) error {
		if err := writeRequest(c.w, formRequest, req); err != nil {
			return err
		}
		return readAnswer(c.r, resp)
	})
}

// Notify sends a request that is not answered. No error does not mean that it arrives.
func (cl *Client) Notify(target raft.ServerAddress, req *raft.AppendEntriesRequest) error {
	return cl.with(target, req, func(c *clientConn) error { return writeRequest(c.w, formNotice, req) })
}

// timeoutOf is longer for a long request, which the network and the other server's disk take longer for.
func (cl *Client) timeoutOf(req *raft.AppendEntriesRequest) time.Duration {
	return cl.timeout + time.Duration(requestSize(req))*time.Second/slowest
}

// with has f use a connection to target, which is kept if nothing broke.
func (cl *Client) with(
	target raft.ServerAddress, req *raft.AppendEntriesRequest, f func(*clientConn) error,
) error {
	c, err := cl.take(target)
	if err != nil {
		return err
	}
	if err = c.SetDeadline(time.Now().Add(cl.timeoutOf(req))); err == nil {
		err = f(c)
	}
	if err != nil {
		if _, ok := errors.AsType[*DeclinedError](err); !ok {
			_ = c.Close()
			return err
		}
	}
	cl.put(target, c)
	return err
}

// take gives the connection that was used last, or a new one.
func (cl *Client) take(target raft.ServerAddress) (*clientConn, error) {
	cl.mu.Lock()
	if idle := cl.idle[target]; len(idle) > 0 {
		last := len(idle) - 1
		c := idle[last]
		cl.idle[target] = idle[:last]
		cl.mu.Unlock()
		return c, nil
	}
	cl.mu.Unlock()
	c, err := cl.dial(target)
	if err != nil {
		return nil, err
	}
	return &clientConn{Conn: c, r: bufio.NewReaderSize(c, maxAnswer),
		w: bufio.NewWriterSize(c, bufferSize)}, nil
}

func (cl *Client) put(target raft.ServerAddress, c *clientConn) {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	if len(cl.idle[target]) < maxIdle {
		cl.idle[target] = append(cl.idle[target], c)
		return
	}
	_ = c.Close()
}

// Serve is the follower's side: it hands the requests of a connection to raft, one after the other, and
// calls before before each answer. It returns nil when done is closed, else why it ended: the connection
// has, or carries something else (ErrMalformed). The caller closes the connection.
func Serve(conn io.ReadWriter, hand func(raft.RPC), before func(), done <-chan struct{}) error {
	r := bufio.NewReaderSize(conn, bufferSize)
	answer := make(chan raft.RPCResponse, 1) // room for one: raft never waits for us
	for {
		form, req, err := readRequest(r)
		if err != nil {
			return fmt.Errorf("reading a request: %w", err)
		}
		hand(raft.RPC{Command: req, RespChan: answer})
		select {
		case <-done:
			return nil
		case resp := <-answer:
			if form == formNotice {
				continue
			}
			before()
			if err := writeAnswer(conn, resp); err != nil {
				return fmt.Errorf("answering a request: %w", err)
			}
		}
	}
}
