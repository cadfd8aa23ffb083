package load

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"time"

	"github.com/zk-lite/zk-lite/internal/jute"
	"github.com/zk-lite/zk-lite/internal/wire"
	"github.com/zk-lite/zk-lite/znode"
)

// Writer is a client that sets one znode of its own over and over, one write at a time, and comes back to
// its session at another host when a connection ends. Without a znode it sends pings only, as a client does
// that has nothing to say. Run is for one goroutine.
type Writer struct {
	home
	tally *Tally
	pause time.Duration // between two requests
}

// NewWriter connects to the first host and creates the znode if it is not there. An empty path is none.
func NewWriter(
	ctx context.Context, hosts []string, path string, pause, timeout time.Duration,
) (*Writer, error) {
	c, err := connect(ctx, hosts[0], timeout, nil, session{})
	if err != nil {
		return nil, err
	}
	w := &Writer{home: home{hosts: hosts, conn: c, timeout: timeout}, tally: NewTally(path), pause: pause}
	if path == "" {
		return w, nil
	}
	w.expect(time.Now())
	_, err = c.do(wire.OpCreate, &wire.CreateRequest{Path: path, ACL: znode.OpenACL})
	if err != nil && !errors.Is(err, znode.ErrNodeExists) {
		c.nc.Close()
		return nil, fmt.Errorf("creating the znode of a writer: %w", err)
	}
	return w, nil
}

// Tally is what it has met.
func (w *Writer) Tally() *Tally { return w.tally }

// Close ends the session of a Writer that does not run.
func (w *Writer) Close() error { return w.conn.closeSession() }

// Run writes until ctx ends, and then closes the session.
func (w *Writer) Run(ctx context.Context) {
	for ctx.Err() == nil && (w.conn != nil || w.comeBack(ctx, w.tally.Expired)) {
		if err := w.write(); err != nil {
			w.tally.Lost(w.hosts[w.at], w.conn.goAway || unread(w.conn.nc, err))
			w.leave()
		}
		if w.pause > 0 {
			select {
			case <-time.After(w.pause):
			case <-ctx.Done():
			}
		}
	}
	if w.conn != nil {
		_ = w.conn.closeSession() // what is broken has no session to end in good order
	}
}

// write sends one request and waits for the answer; the error is that of the connection.
func (w *Writer) write() error {
	w.expect(time.Now())
	if w.tally.path == "" {
		if _, err := w.conn.nc.Write(w.conn.appendPing(nil)); err != nil {
			return err
		}
		_, err := w.conn.frame()
		if err == nil {
			w.tally.Pinged()
		}
		return err
	}
	a, err := w.conn.do(wire.OpSetData, &wire.SetDataRequest{Path: w.tally.path, Version: znode.AnyVersion})
	var code znode.Error
	switch {
	case errors.As(err, &code):
		w.tally.Failed(code)
		return nil
	case err != nil:
		return err
	}
	var response wire.SetDataResponse
	r := jute.NewReader(a.body)
	response.Decode(r)
	if r.Err() != nil {
		return r.Err()
	}
	w.tally.Acknowledged(int64(response.Stat.Version))
	return nil
}

// resetSoon is how long after the end of a connection the kernel of a server on this machine takes to
// say that it has thrown something away.
const resetSoon = 20 * time.Millisecond

// unread reports whether the server's kernel says that the program has not read the request with which a
// connection ended: it resets a connection that is closed with something unread, or to which something
// comes later.
func unread(nc net.Conn, err error) bool {
	if errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) {
		return true
	}
	c, ok := nc.(syscall.Conn)
	if !errors.Is(err, io.EOF) || !ok {
		return false
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return false
	}
	reset := false
	err = raw.Control(func(fd uintptr) { reset = resetWithin(fd, resetSoon) })
	return err == nil && reset
}

// Versions asks a server for the versions of znodes, after a sync.
func Versions(ctx context.Context, host string, paths []string, timeout time.Duration) (all []int64, err error) {
	c, err := connect(ctx, host, timeout, nil, session{})
	if err != nil {
		return nil, err
	}
	defer func() { _ = c.closeSession() }() // it has nothing that must end
	c.patience = timeout
	if _, err := c.do(wire.OpSync, &wire.SyncRequest{Path: znode.RootPath}); err != nil {
		return nil, err
	}
	for _, path := range paths {
		a, err := c.do(wire.OpExists, &wire.ExistsRequest{Path: path})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		var response wire.ExistsResponse
		r := jute.NewReader(a.body)
		if response.Decode(r); r.Err() != nil {
			return nil, fmt.Errorf("%s: %w", path, r.Err())
		}
		all = append(all, int64(response.Stat.Version))
	}
	return all, nil
}
