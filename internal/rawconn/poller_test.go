package rawconn

import (
	"net"
	"sync"
	"testing"
	"time"
)

// bell is a Waiter that counts. It has room for more wakes than there may be.
type bell chan struct{}

func (b bell) Wake()  { b <- struct{}{} }
func (b bell) Ready() { b <- struct{}{} }

func (b bell) rings(t *testing.T, why string) {
	t.Helper()
	select {
	case <-b:
	case <-time.After(time.Minute):
		t.Fatalf("not woken by %s", why)
	}
}

func TestPoller_WakesOnce(t *testing.T) {
	if !available {
		var p Poller
		ours, _ := pair(t)
		if p.Wait(ours, bell(nil)) {
			t.Error("waits on a system without epoll")
		}
		return
	}
	var p Poller
	defer p.Close()
	for name, end := range map[string]func(ours, theirs net.Conn) error{
		"its end":     func(_, theirs net.Conn) error { return theirs.Close() },
		"half an end": func(_, theirs net.Conn) error { return theirs.(*net.TCPConn).CloseWrite() },
		"Close":       func(ours, _ net.Conn) error { return ours.Close() },
		"Wake":        func(ours, _ net.Conn) error { Wake(ours); return ours.Close() },
	} {
		ours, theirs := pair(t)
		b := make(bell, 10)
		for i := range 3 {
			if !CanWait(ours) || !p.Wait(ours, b) {
				t.Fatal("cannot wait")
			}
			if _, err := theirs.Write([]byte{byte(i)}); err != nil {
				t.Fatal(err)
			}
			b.rings(t, "a byte")
			var got [2]byte
			if n := ReadNow(ours, got[:]); n != 1 || got[0] != byte(i) {
				t.Fatalf("read % x, want %d", got[:n], i)
			}
			if n := ReadNow(ours, got[:]); n != 0 {
				t.Fatalf("read %d bytes out of nothing", n)
			}
		}
		if _, err := theirs.Write(make([]byte, 2)); err != nil { // the end comes while it does not wait
			t.Fatal(err)
		}
		if !p.Wait(ours, b) {
			t.Fatal("cannot wait")
		}
		b.rings(t, "bytes that were there, or come")
		if n, err := ours.Read(make([]byte, 9)); n != 2 || err != nil {
			t.Fatalf("read %d bytes (%v), want 2", n, err)
		}
		if !p.Wait(ours, b) {
			t.Fatal("cannot wait")
		}
		if err := end(ours, theirs); err != nil {
			t.Fatal(err)
		}
		b.rings(t, name)
		_ = ours.Close()
		Wake(ours)
		if p.Wait(ours, b) {
			t.Error("waits when closed")
		}
		if len(b) > 0 {
			t.Errorf("%s: woken %d times more than once", name, len(b))
		}
	}
}

func TestPoller_RefusesWhatCannotWait(t *testing.T) {
	var p Poller
	pipe, other := net.Pipe()
	defer pipe.Close()
	defer other.Close()
	if Wake(pipe); CanWait(pipe) || p.Wait(pipe, bell(nil)) {
		t.Error("a pipe waits")
	}
	ours, _ := pair(t)
	p.Close()
	if p.Wait(ours, bell(nil)) {
		t.Error("waits at a Poller that is closed")
	}
}

// Whatever comes first, Wait or Close: what has been told that it waits is woken, once.
func TestPoller_WaitAndClose_AtOnce(t *testing.T) {
	var p Poller
	defer p.Close()
	for i := range 300 {
		ours, theirs := pair(t)
		b := make(bell, 10)
		var both sync.WaitGroup
		waits := false
		both.Go(func() { waits = p.Wait(ours, b) })
		both.Go(func() {
			if i%2 == 0 {
				_ = theirs.Close()
			}
			_ = ours.Close()
		})
		both.Wait()
		if waits {
			b.rings(t, "Close")
		}
		if _ = theirs.Close(); len(b) > 0 {
			t.Fatalf("waits %v, and was woken %d times too often", waits, len(b))
		}
	}
}
