package zk

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/zk-lite/zk-lite/internal/crash"
	"github.com/zk-lite/zk-lite/internal/jute"
	"github.com/zk-lite/zk-lite/internal/process"
	"github.com/zk-lite/zk-lite/internal/rawconn"
	"github.com/zk-lite/zk-lite/internal/tlsport"
	"github.com/zk-lite/zk-lite/internal/wire"
	"github.com/zk-lite/zk-lite/server"
	"github.com/zk-lite/zk-lite/server/auth"
	"github.com/zk-lite/zk-lite/znode"
)

// conn is one client's connection. It implements server.Client.
type conn struct {
	listener *Listener
	net      net.Conn
	remote   string
	address  netip.Addr // for the limit; the zero Addr when there is none
	since    time.Time
	gone     chan struct{} // closed when the outbox has ended

	times     *times // shared with other connections
	out       outbox
	pending   atomic.Int32                // requests that are not answered yet
	sc        atomic.Pointer[server.Conn] // nil until the handshake
	lingering atomic.Pointer[time.Timer]
	leaving   atomic.Int32 // why the client is to leave, a server.Reason; 0: it is not

	// The reader's own.
	in            input
	rd            jute.Reader // of the frame that is being executed
	now           time.Time   // when the bytes came that are being executed
	atOnce        int32       // requests since the connection last waited for its client
	idBytes       int32       // of identities added by auth and sasl
	closing       bool        // no further request is executed
	canWait       bool        // without a goroutine
	busy          bool        // requests other than pings have come since it did
	needsIdentity bool        // requests need an identity (enforce.auth.schemes)
	readOnly      bool        // the session is one of read-only mode
	wordsOnly     bool        // it is refused when it asks for a session; set by admit

	exchange auth.Exchange // of SASL; nil until the client begins one
}

func newConn(ln *Listener, nc net.Conn) *conn {
	c := &conn{
		listener: ln, net: nc, remote: nc.RemoteAddr().String(),
		since: time.Now(), gone: make(chan struct{}), needsIdentity: len(ln.srv.Auth().Schemes()) > 0,
		times: &ln.times[ln.nextConn.Add(1)%timeShards],
	}
	if ap, err := netip.ParseAddrPort(c.remote); err == nil {
		c.address = ap.Addr().Unmap().WithZone("")
		c.remote = netip.AddrPortFrom(c.address, ap.Port()).String()
	}
	c.canWait = rawconn.CanWait(nc)
	c.in.init(nc, &ln.buffers, &ln.partial, ln.cfg.MaxFrame)
	c.out.init(nc, &ln.buffers, &ln.outboxes, &ln.cfg, c.ended)
	if ln.cfg.Slow.Threshold() > 0 {
		c.out.isSlow = c.reportSlow
	}
	return c
}

// run is the connection's goroutine, from its beginning until it waits for its client.
func (c *conn) run() {
	defer crash.OnPanic()
	if err := c.serve(); !errors.Is(err, errWaits) {
		c.finish(err)
	}
}

// Ready implements rawconn.Waiter. A ping, which is what most idle clients send, is answered here: a goroutine for it
// would wake another thread.
func (c *conn) Ready() {
	c.now = time.Now()
	if c.in.fillNow() {
		c.sc.Load().Touch()
	}
	if c.listener.slots == nil && c.pending.Load() == 0 && c.leaving.Load() == 0 && c.in.isPing() {
		frame, _ := c.in.frame()
		err := c.execute(frame)
		c.out.flushNow()
		if err == nil && !c.closing && c.wait() {
			return
		}
	}
	c.Wake()
}

// Wake implements rawconn.Waiter: the connection has a goroutine again.
func (c *conn) Wake() {
	go func() {
		defer crash.OnPanic()
		c.now = time.Now()
		if err := c.linger(c.requests()); !errors.Is(err, errWaits) {
			c.finish(err)
		}
	}()
}

// finish ends the connection.
func (c *conn) finish(err error) {
	_ = c.net.Close() // ends a writer that is stuck
	why := c.out.close()
	if sc := c.sc.Load(); sc != nil {
		sc.Close(endReason(err, why))
	}
	if t := c.lingering.Load(); t != nil {
		t.Stop()
	}
	c.in.end()
	c.report(err, why)
	c.listener.remove(c)
}

// serve reads until the connection ends.
func (c *conn) serve() error {
	if err := c.net.SetReadDeadline(c.since.Add(c.listener.cfg.HandshakeTimeout)); err != nil {
		return fmt.Errorf("setting the handshake's deadline: %w", err)
	}
	for c.in.have() < wire.FrameLengthBytes {
		if err := c.in.fill(); err != nil {
			return fmt.Errorf("waiting for the first bytes: %w", err)
		}
	}
	if name, ok := c.listener.wordOf(c.in.head()); ok {
		return c.serveWord(name)
	}
	if speech := tlsport.Guess(c.in.waiting()); speech != tlsport.Other {
		return c.serveOther(speech)
	}
	if c.wordsOnly {
		c.listener.refuse(c, process.DescriptorLimit)
		return errors.New("no descriptors are left for clients")
	}
	switch srv := c.listener.srv; {
	case srv.Source.TakesClients():
	case srv.ReadOnly.On():
		c.readOnly = true
	case !srv.Serving():
		return errors.New("this server is not serving")
	default:
		return errMirrors
	}
	if err := c.handshake(); err != nil {
		return c.linger(err)
	}
	if err := c.net.SetReadDeadline(time.Time{}); err != nil {
		return fmt.Errorf("removing the handshake's deadline: %w", err)
	}
	c.now, c.busy = time.Now(), true
	return c.linger(c.requests())
}

// errMirrors ends the connection of a client, without an answer, so that it goes on to the next server that it knows.
var errMirrors = errors.New("this ensemble mirrors ZooKeeper, whose leader is out of reach")

// errWaits means that the connection waits without a goroutine. What is the reader's own may no longer be used.
var errWaits = errors.New("the connection waits")

// freeRequests is how many requests that come together need no turn (server.Conn.Work): to wait for one would cost most
// clients more than it gives to others.
const freeRequests = 8

// requests executes frames until the client closes the connection or breaks the protocol, or the server stops, or the
// connection waits.
func (c *conn) requests() error {
	sc := c.sc.Load()
	served := false           // something since the server stops
	woken := c.in.have() == 0 // and nothing was read yet
	for !c.closing {
		frame, err := c.in.frame()
		if err != nil {
			if err := c.refuseTooLong(err); err != nil {
				return err
			}
			continue
		}
		if frame != nil {
			if c.atOnce++; c.atOnce > freeRequests {
				sc.Work()
			}
			if err := c.execute(frame); err != nil {
				return err
			}
			if c.out.isFull() {
				sc.Rest()
				c.out.slowDown()
			}
			served = c.leaving.Load() != 0
			continue
		}
		c.atOnce = 0
		sc.Rest()
		if c.leaving.Load() != 0 {
			left, err := c.leaveNow(served)
			if left || err != nil {
				return err
			}
		} else {
			c.out.flush()
			if err = errIdle; woken || c.busy || c.in.have() > 0 {
				err = c.in.fillOpen(c.now, &c.leaving, c.busy && c.canWait)
			}
			switch woken = false; {
			case errors.Is(err, errIdle) && c.wait():
				return errWaits
			case errors.Is(err, errIdle), errors.Is(err, errLeaving):
				continue
			case err != nil:
				c.out.flush() // a client that only closed its sending side still reads
				return err
			}
		}
		c.now = time.Now()
		sc.Touch()
	}
	return nil
}

// wait lets the connection wait without a goroutine. It reports false if it goes on with this one.
func (c *conn) wait() bool {
	c.busy = false
	c.sc.Load().Idle()
	if c.in.rest() == nil && c.listener.poller.Wait(c.net, c) {
		if c.leaving.Load() != 0 { // leave may have been too early to wake it
			rawconn.Wake(c.net)
		}
		return true
	}
	c.busy, c.canWait = true, false
	return false
}

// execute decodes a request and submits it. An error ends the connection.
func (c *conn) execute(frame []byte) error {
	var header wire.RequestHeader
	rd := &c.rd
	rd.Reset(frame)
	header.Decode(rd)
	if rd.Err() != nil {
		return badf("a frame of %d bytes is too short for a request header", len(frame))
	}
	c.out.countReceived(wire.FrameLengthBytes + len(frame))
	c.busy = c.busy || header.Type != wire.OpPing
	switch header.Type {
	case wire.OpPing, wire.OpCloseSession:
	default:
		if !c.pace(wire.FrameLengthBytes + len(frame)) {
			return errors.New("ended while the client was held back")
		}
	}
	switch header.Type {
	case wire.OpAuth:
		return c.auth(header.Xid, rd)
	case wire.OpSASL:
		return c.sasl(header.Xid, rd)
	}
	if c.needsIdentity && !c.hasIdentity(header.Xid) {
		return nil
	}
	r := c.newRequest(header, wire.FrameLengthBytes+len(frame))
	switch {
	case !header.Type.ClientRequest():
		c.closing = true // answered in its turn, then the connection is closed
		r.refuse(znode.ErrUnimplemented)
	case c.readOnly && (header.Type == wire.OpReconfig || header.Type == wire.OpDeleteContainer):
		r.refuse(znode.ErrNotReadOnly) // as commands are (server.Conn.Write)
	case !r.decode(rd):
		r.refuse(znode.ErrMarshalling)
	}
	c.submit(r)
	return nil
}

// pace holds the client back while it sends more than it may. It reports false if the connection ends meanwhile.
func (c *conn) pace(bytes int) bool {
	sc := c.sc.Load()
	if !sc.HasRates() {
		return true
	}
	c.out.wake() // replies that are ready do not wait
	return sc.Pace(bytes, c.gone)
}

// submit gives a request to the server, which answers requests in their order.
func (c *conn) submit(r *request) {
	if !r.isCommand() {
		c.submitted(c.sc.Load().Read(r))
		return
	}
	r.cmd.Identities, r.quiet = r.ids, false
	c.out.wake() // replies that are ready do not wait for the log
	c.submitted(c.sc.Load().Write(&r.cmd, r))
}

// submitted ends the connection if the server has not taken a request, because the session ends or has ended.
func (c *conn) submitted(err error) {
	if err != nil {
		c.out.end("server: " + err.Error())
		c.closing = true
	}
}

// refuseTooLong reads and forgets a frame longer than jute.maxbuffer, and answers it in its turn with
// BADARGUMENTS, which all clients know. ZooKeeper closes the connection without an answer, and then the client
// sends the same request to the next server. An error ends the connection.
func (c *conn) refuseTooLong(why error) error {
	size := int(int32(c.in.head()))
	if size < 0 {
		return badf("%v", why)
	}
	sc := c.sc.Load()
	more := func() error {
		c.out.flush()
		err := c.in.fillOpen(c.now, &c.leaving, false)
		c.now = time.Now()
		sc.Touch()
		return err
	}
	var header wire.RequestHeader
	c.rd.Reset(c.in.take(wire.FrameLengthBytes + wire.RequestHeaderBytes)[wire.FrameLengthBytes:])
	header.Decode(&c.rd)
	switch header.Type {
	case wire.OpAuth, wire.OpSASL, wire.OpSetWatches, wire.OpSetWatches2:
		return badf("%s: %v", header.Type, why)
	}
	if !header.Type.ClientRequest() {
		return badf("%v", why)
	}
	c.listener.logRefusal("request longer than jute.maxbuffer", "remote", c.remote, "session", c.session(),
		"request", header.Type.String(), "bytes", size, "limit", c.listener.cfg.MaxFrame)
	c.out.countReceived(wire.FrameLengthBytes + size)
	for left := size - wire.RequestHeaderBytes; left > 0; {
		if c.in.have() == 0 {
			if err := more(); err != nil {
				return err
			}
		}
		left -= len(c.in.take(min(left, c.in.have())))
	}
	r := c.newRequest(header, wire.FrameLengthBytes+size)
	r.refuse(znode.ErrBadArguments)
	c.submit(r)
	return nil
}

func (c *conn) session() znode.SessionID {
	if sc := c.sc.Load(); sc != nil {
		id, _ := sc.Session()
		return id
	}
	return 0
}
