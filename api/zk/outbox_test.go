package zk

import (
	"bytes"
	"io"
	"net"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/internal/socket"
)

// deadlines notes the write deadlines of a connection.
type deadlines struct {
	net.Conn
	set []time.Time
}

func (d *deadlines) SetWriteDeadline(t time.Time) error {
	d.set = append(d.set, t)
	return d.Conn.SetWriteDeadline(t)
}

// A client that had no room once is not cut off by that deadline when it is answered long afterwards.
func TestOutbox_Deadline_EndsWithTheWrite(t *testing.T) {
	ours, theirs := net.Pipe() // takes nothing without waiting
	defer ours.Close()
	defer theirs.Close()
	go func() { _, _ = io.Copy(io.Discard, theirs) }()
	c := &deadlines{Conn: ours}
	var pool buffers
	var o outbox
	o.init(c, &pool, &Config{OutboxBytes: 1 << 20, WriteTimeout: time.Hour}, func() {})
	b, ok := o.begin()
	if !ok {
		t.Fatal("the outbox has ended")
	}
	o.commit(append(b, make([]byte, writeChunk+1)...), false)
	o.flush()
	if len(c.set) != 4 { // of two chunks
		t.Fatalf("the deadlines set: %v", c.set)
	}
	for i, at := range c.set {
		if at.IsZero() != (i%2 == 1) {
			t.Errorf("deadline %d of %v, want that each is taken back", i, c.set)
		}
	}
}

// nudge sends what the client has room for and leaves the rest to a writer, in order.
func TestOutbox_Nudge_NeverBlocks(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	theirs, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer theirs.Close()
	ours, err := socket.Listener(l).Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer ours.Close()
	var pool buffers
	var o outbox
	o.init(ours, &pool, &Config{OutboxBytes: 64 << 20, WriteTimeout: time.Minute}, func() {})
	want := make([]byte, 32<<20) // more than the system's buffers hold
	for i := range want {
		want[i] = byte(i * 7 >> 3)
	}
	for _, part := range [][]byte{want[:20], want[20:]} {
		b, ok := o.begin()
		if !ok {
			t.Fatal("the outbox has ended")
		}
		o.commit(append(b, part...), false)
		o.nudge() // or this test would end here: nobody reads yet
	}
	got := make([]byte, len(want))
	if _, err := io.ReadFull(theirs, got); err != nil || !bytes.Equal(got, want) {
		t.Errorf("something else came: %v", err)
	}
}
