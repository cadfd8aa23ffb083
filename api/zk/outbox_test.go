package zk

import (
	"bytes"
	"io"
	"net"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/watch"
	"github.com/zk-lite/zk-lite/znode"
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

// The first watcher of a change encodes the event, the others copy its frame.
func TestConn_Notify_EncodesOnce(t *testing.T) {
	m := watch.New()
	conns := make([]*conn, 100)
	made := 0
	var last *byte
	for i := range conns {
		conns[i] = stageConn(nil)
		conns[i].out.writing = true // only what waits is looked at
		if err := m.Add(m.NewWatcher(counted(func(n *watch.Notification) {
			conns[i].Notify(n)
			if frame := n.Frame(nil); &frame[0] != last {
				last = &frame[0]
				made++
				frame[len(frame)-1] = '!' // in what the others send, if they copy it
			}
		})), "/a", watch.Data); err != nil {
			t.Fatal(err)
		}
	}
	m.Trigger(&znode.Event{Type: znode.EventDataChanged, Path: "/a"})
	copied := 0
	for _, c := range conns {
		if bytes.HasSuffix(c.out.buf.b, []byte("/!")) {
			copied++
		}
	}
	if made != 1 || copied != len(conns)-1 {
		t.Errorf("%d encodings for %d watchers, %d copied", made, len(conns), copied)
	}
}

// counted is a watch.Sink.
type counted func(*watch.Notification)

func (f counted) Notify(n *watch.Notification) { f(n) }
