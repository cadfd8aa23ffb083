package tlsport

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/internal/rawconn"
	"github.com/zk-lite/zk-lite/internal/testkit/certs"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
)

// port echoes what its clients send, and collects why their first Read failed.
type port struct {
	addr   string
	client *tls.Config
	failed chan error
	conns  chan *Conn
}

func listen(t *testing.T, o Options) *port {
	t.Helper()
	ca := certs.Authority(t, "ca")
	server := ca.Issue(t, "server", nil)
	o.Config = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{server.Cert.Raw}, PrivateKey: server.Key}}}
	if o.Handshakes == nil {
		o.Handshakes = NewHandshakes(0, 10*time.Second)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(ca.Cert)
	p := &port{l.Addr().String(), &tls.Config{RootCAs: roots, ServerName: "localhost"},
		make(chan error, 100), make(chan *Conn, 100)}
	l = New(rawconn.Listener(l), o)
	var all sync.WaitGroup
	t.Cleanup(func() { l.Close(); all.Wait() })
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() { p.echo(c.(*Conn)) })
		}
	})
	return p
}

func (p *port) echo(c *Conn) {
	defer c.Close()
	b := make([]byte, 64)
	n, err := c.Read(b)
	if err != nil {
		p.failed <- err
		return
	}
	p.conns <- c
	if _, err := c.Write(b[:n]); err == nil {
		_, _ = io.Copy(c, c)
	}
	_ = c.CloseWrite()
}

func (p *port) dial(t *testing.T) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", p.addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	_ = c.SetDeadline(time.Now().Add(wait.Patience))
	return c
}

// exchange sends text and reads until the end.
func exchange(t *testing.T, c net.Conn, text string) string {
	t.Helper()
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
	if err := c.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(c)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestConn_TLSAndPlainOnOnePort(t *testing.T) {
	p := listen(t, Options{PlainToo: true})
	long := strings.Repeat("0123456789", 100_000)
	if got := exchange(t, tls.Client(p.dial(t), p.client), long); got != long {
		t.Errorf("%d bytes came back through TLS", len(got))
	}
	if _, ok := State(<-p.conns); !ok {
		t.Error("the state of TLS is not known")
	}
	if got := exchange(t, p.dial(t), long); got != long {
		t.Errorf("%d bytes came back without TLS", len(got))
	}
	if _, ok := State(<-p.conns); ok {
		t.Error("a plain connection has TLS")
	}
}

// A client that speaks without TLS where there is only TLS gets that answer in its own
// protocol.
func TestConn_PlainOnATLSPort_IsToldSo(t *testing.T) {
	p := listen(t, Options{})
	for first, want := range map[string]struct {
		answer string
		speech Speech
	}{
		"GET / HTTP/1.1\r\n\r\n":            {"HTTP/1.0 400 Bad Request\r\n", HTTP},
		"\x00\x00\x00\x2d\x00\x00\x00\x00.": {alert, Other},
		"srvr":                              {alert, Other},
		"x":                                 {alert, Other},
	} {
		if got := exchange(t, p.dial(t), first); !strings.HasPrefix(got, want.answer) {
			t.Errorf("%q is answered with %q", first, got)
		}
		var plain *PlainError
		if err := <-p.failed; !errors.As(err, &plain) || plain.Speech != want.speech {
			t.Errorf("%q: %v", first, err)
		}
	}
}

// Every TLS client reports of this answer that it is no TLS.
func TestAnswerPlain_TLSClientUnderstands(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		ours, err := l.Accept()
		if err != nil {
			return
		}
		b := make([]byte, headBytes)
		n, _ := ours.Read(b)
		AnswerPlain(ours, Guess(b[:n]))
		ours.Close()
	}()
	theirs, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer theirs.Close()
	var header tls.RecordHeaderError
	if err := tls.Client(theirs, &tls.Config{ServerName: "x"}).Handshake(); !errors.As(err, &header) {
		t.Errorf("%v (%T)", err, err)
	}
}

// A handshake that makes no progress ends, whatever the reader's own deadline.
func TestHandshake_IsBoundedInTime(t *testing.T) {
	h := NewHandshakes(0, 50*time.Millisecond)
	p := listen(t, Options{Handshakes: h})
	c := p.dial(t)
	if _, err := c.Write([]byte{recordHandshake, 3, 1, 1, 0}); err != nil {
		t.Fatal(err)
	}
	if b, err := io.ReadAll(c); err != nil && !errors.Is(err, net.ErrClosed) || len(b) > 0 {
		t.Errorf("%q, %v", b, err)
	}
	var unshaken *HandshakeError
	if err := <-p.failed; !errors.As(err, &unshaken) {
		t.Errorf("error %T %v, want one of a handshake", err, err)
	}
	if done, failed, refused := h.Counts(); done != 0 || failed != 1 || refused != 0 {
		t.Errorf("handshakes: %d done, %d failed, %d refused; want 0, 1, 0", done, failed, refused)
	}
}

// Beyond the limit of unfinished handshakes the newest is refused; one that is over makes room.
func TestHandshake_IsBoundedInNumber(t *testing.T) {
	h := NewHandshakes(1, 10*time.Second)
	p := listen(t, Options{Handshakes: h})
	slow := p.dial(t)
	if _, err := slow.Write([]byte{recordHandshake, 3, 1, 1, 0}); err != nil {
		t.Fatal(err)
	}
	wait.Until(t, "the slow one is read", func() bool { return h.open.Load() == 1 })
	if err := tls.Client(p.dial(t), p.client).Handshake(); err == nil {
		t.Error("a second one was done")
	}
	if _, _, refused := h.Counts(); refused == 0 {
		t.Error("nothing was counted")
	}
	slow.Close()
	wait.Until(t, "the slow one has ended", func() bool { return h.open.Load() == 0 })
	if got := exchange(t, tls.Client(p.dial(t), p.client), "x"); got != "x" {
		t.Errorf("afterwards %q", got)
	}
}

// Silent strangers in the middle of a handshake hold no slot: with one slot only, other clients are served.
func TestHandshake_WaitingHoldsNoSlot(t *testing.T) {
	h := NewHandshakes(0, 10*time.Second)
	h.slots = make(chan struct{}, 1)
	p := listen(t, Options{Handshakes: h})
	hello := &bytes.Buffer{}
	_ = tls.Client(recorder{hello}, p.client).Handshake()
	for range 20 {
		c := p.dial(t)
		if _, err := c.Write(hello.Bytes()); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(c, make([]byte, 5)); err != nil { // the server's part has come: it waits for ours
			t.Fatal(err)
		}
	}
	if got := exchange(t, tls.Client(p.dial(t), p.client), "x"); got != "x" {
		t.Errorf("echo %q, want x", got)
	}
}

// recorder records what is written, and has nothing to read.
type recorder struct{ b *bytes.Buffer }

func (r recorder) Read([]byte) (int, error)         { return 0, io.EOF }
func (r recorder) Write(b []byte) (int, error)      { return r.b.Write(b) }
func (r recorder) Close() error                     { return nil }
func (r recorder) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (r recorder) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (r recorder) SetDeadline(time.Time) error      { return nil }
func (r recorder) SetReadDeadline(time.Time) error  { return nil }
func (r recorder) SetWriteDeadline(time.Time) error { return nil }

// A read deadline that passes before anything has come leaves the connection usable.
func TestConn_DeadlineBeforeTheFirstByte(t *testing.T) {
	ours, theirs := net.Pipe()
	defer theirs.Close()
	c := newConn(ours, &Options{PlainToo: true, Handshakes: NewHandshakes(0, time.Second)})
	_ = c.SetReadDeadline(time.Now().Add(-time.Second))
	if _, err := c.Read(make([]byte, 1)); err == nil {
		t.Fatal("something was read")
	}
	_ = c.SetReadDeadline(time.Time{})
	go func() { _, _ = theirs.Write([]byte("yz")) }()
	b := make([]byte, 1)
	for _, want := range "yz" {
		if n, err := c.Read(b); n != 1 || err != nil || b[0] != byte(want) {
			t.Fatalf("read %q, %d bytes, error %v; want %q", b, n, err, want)
		}
	}
}

func FuzzConn(f *testing.F) {
	f.Add([]byte{recordHandshake, 3, 1, 0, 4, 1, 0, 0, 0}, true)
	f.Add([]byte("GET / HTTP/1.1\r\n"), false)
	f.Add([]byte{0, 0, 0, 45, 0}, false)
	f.Fuzz(func(t *testing.T, first []byte, plainToo bool) {
		ours, theirs := net.Pipe()
		c := newConn(ours, &Options{Config: &tls.Config{}, PlainToo: plainToo, Handshakes: NewHandshakes(1, time.Second)})
		go func() {
			go func() { _, _ = io.Copy(io.Discard, theirs) }()
			_, _ = theirs.Write(first)
			theirs.Close()
		}()
		got, err := io.ReadAll(c)
		if plainToo && len(first) > 0 && first[0] != recordHandshake && (err != nil || !bytes.Equal(got, first)) {
			t.Errorf("%q became %q, %v", first, got, err)
		}
		ours.Close()
	})
}

// ZooKeeper's C client waits for the socket between two replies, so a record ends where a frame does.
func TestConn_WriteFrames_ARecordEach(t *testing.T) {
	var stream []byte
	for _, body := range []string{"one", "", "three", strings.Repeat("x", 40_000), "five"} {
		stream = append(binary.BigEndian.AppendUint32(stream, uint32(len(body))), body...)
	}
	for _, part := range []int{len(stream), 2, 5, 4096} { // the bytes of each write
		p := listen(t, Options{})
		client := tls.Client(p.dial(t), p.client)
		if _, err := client.Write([]byte("hello")); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(client, make([]byte, 5)); err != nil {
			t.Fatal(err)
		}
		server := <-p.conns
		go func() {
			for b := range slices.Chunk(stream, part) {
				if _, err := server.WriteFrames(b); err != nil {
					t.Error(err)
				}
			}
		}()
		got, frame := make([]byte, len(stream)), frames{}
		for n := 0; n < len(got); {
			// crypto/tls returns at most the rest of one record.
			k, err := client.Read(got[n:])
			if err != nil {
				t.Fatal(err)
			}
			if of := frame.next(got[n : n+k]); of != k {
				t.Errorf("writes of %d bytes: a record of %d bytes has %d of one frame, and of the next", part, k, of)
			}
			n += k
		}
		if !bytes.Equal(got, stream) {
			t.Errorf("writes of %d bytes: the stream differs", part)
		}
	}
}
