package zk

import (
	"io"
	"net"
	"testing"
	"time"
)

// deadlines records the write deadlines of a connection.
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
	o.init(c, &pool, &shares{limit: 1 << 30}, &Config{OutboxBytes: 1 << 20, WriteTimeout: time.Hour}, func() {})
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
