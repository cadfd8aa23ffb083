package rawconn

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"
)

// pair returns the two ends of a connection over loopback: the first accepted by Listener, the second dialed with net.
func pair(t testing.TB) (ours, theirs net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	theirs, err = net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	ours, err = Listener(l).Accept()
	if err != nil {
		t.Fatal(err)
	}
	if _, isOurs := ours.(*conn); isOurs != available {
		t.Fatalf("Listener accepted a %T", ours)
	}
	t.Cleanup(func() { ours.Close(); theirs.Close() })
	return ours, theirs
}

func TestNew_OtherConnections_AreLeftAlone(t *testing.T) {
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	if New(a) != a {
		t.Error("a pipe was wrapped")
	}
}

// More than the buffers of both sockets hold goes through, in order, in both directions at once.
func TestConn_ManyBytes_BothWays(t *testing.T) {
	ours, theirs := pair(t)
	want := make([]byte, 32<<20)
	for i := range want {
		want[i] = byte(i * 7 >> 3)
	}
	var all sync.WaitGroup
	for _, way := range [][2]net.Conn{{ours, theirs}, {theirs, ours}} {
		all.Go(func() {
			if n, err := way[0].Write(want); n != len(want) || err != nil {
				t.Errorf("%T wrote %d bytes: %v", way[0], n, err)
			}
		})
		all.Go(func() {
			got := make([]byte, len(want))
			if _, err := io.ReadFull(way[1], got); err != nil || !bytes.Equal(got, want) {
				t.Errorf("%T read something else: %v", way[1], err)
			}
		})
	}
	all.Wait()
}

// Each Write is in one piece, however many write at once.
func TestConn_ConcurrentWrites_DoNotMix(t *testing.T) {
	ours, theirs := pair(t)
	const writers, size = 8, 1 << 20
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			if _, err := ours.Write(bytes.Repeat([]byte{byte(w)}, size)); err != nil {
				t.Error(err)
			}
		})
	}
	piece := make([]byte, size)
	for range writers {
		if _, err := io.ReadFull(theirs, piece); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(piece, bytes.Repeat(piece[:1], size)) {
			t.Fatal("two writes were mixed")
		}
	}
	all.Wait()
}

func TestConn_Read_AtTheEnd(t *testing.T) {
	ours, theirs := pair(t)
	if n, err := ours.Read(nil); n != 0 || err != nil {
		t.Errorf("reading nothing: %d, %v", n, err)
	}
	_, _ = theirs.Write([]byte("last"))
	theirs.Close()
	got, err := io.ReadAll(ours)
	if string(got) != "last" || err != nil {
		t.Errorf("read %q, %v", got, err)
	}
	if _, err := ours.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("after the end: %v", err)
	}
}

func TestConn_Deadlines(t *testing.T) {
	ours, theirs := pair(t)
	past := time.Now().Add(-time.Second)
	much := make([]byte, 64<<20) // takes longer to make than the deadline
	for name, try := range map[string]func() error{
		"read, past":   func() error { ours.SetReadDeadline(past); _, err := ours.Read(make([]byte, 1)); return err },
		"write, past":  func() error { ours.SetWriteDeadline(past); _, err := ours.Write([]byte("x")); return err },
		"read, silent": func() error { soon(ours.SetReadDeadline); _, err := ours.Read(make([]byte, 1)); return err },
		"write, never read": func() error {
			n, err := 0, error(nil)
			for i := 0; i < 100 && n == 0; i++ { // again where the deadline has passed before the write begins
				soon(ours.SetWriteDeadline)
				n, err = ours.Write(much)
			}
			if n == 0 || n == len(much) {
				t.Errorf("%d bytes were written to a client that does not read", n)
			}
			return err
		},
	} {
		err := try()
		timeout, isNet := err.(net.Error)
		if !errors.Is(err, os.ErrDeadlineExceeded) || !isNet || !timeout.Timeout() {
			t.Errorf("%s: error %v (%T), want the net.Error of a deadline", name, err, err)
		}
	}
	ours.SetDeadline(time.Time{})
	_, _ = theirs.Write([]byte("y"))
	if n, err := ours.Read(make([]byte, 1)); n != 1 || err != nil {
		t.Errorf("afterwards, a read gave %d, %v", n, err)
	}
}

func soon(set func(time.Time) error) { _ = set(time.Now().Add(20 * time.Millisecond)) }

// WriteNow writes what fits, whatever the client does, and Write continues where it ended.
func TestWriteNow(t *testing.T) {
	ours, theirs := pair(t)
	want := make([]byte, 64<<20) // more than the buffers of both sockets hold
	for i := range want {
		want[i] = byte(i * 7 >> 3)
	}
	n, err := WriteNow(ours, want)
	if err != nil || (n == 0) == available || n == len(want) {
		t.Fatalf("a client that does not read was written %d bytes: %v", n, err)
	}
	if more, err := WriteNow(ours, want[n:]); err != nil || more == len(want)-n {
		t.Fatalf("and %d more: %v", more, err)
	} else {
		n += more
	}
	var all sync.WaitGroup
	all.Go(func() {
		got := make([]byte, len(want))
		if _, err := io.ReadFull(theirs, got); err != nil || !bytes.Equal(got, want) {
			t.Errorf("read something else: %v", err)
		}
	})
	if _, err := ours.Write(want[n:]); err != nil {
		t.Error(err)
	}
	all.Wait()

	ours.Close()
	if _, err := WriteNow(ours, want); available && !errors.Is(err, net.ErrClosed) {
		t.Errorf("on a closed connection: %v", err)
	}
	if n, err := WriteNow(theirs, want); n != 0 || err != nil {
		t.Errorf("on a connection that New did not make: %d, %v", n, err)
	}
}

// Close ends a Read and a Write that wait.
func TestConn_Close_EndsWhatWaits(t *testing.T) {
	ours, _ := pair(t)
	ended := make(chan error, 2)
	go func() { _, err := ours.Read(make([]byte, 1)); ended <- err }()
	go func() { _, err := ours.Write(make([]byte, 64<<20)); ended <- err }()
	ours.Close()
	for range 2 {
		if err := <-ended; !errors.Is(err, net.ErrClosed) {
			t.Errorf("a call on a closed connection gave %v", err)
		}
	}
}

// A reset connection returns the error of package net.
func TestConn_Reset(t *testing.T) {
	ours, theirs := pair(t)
	_ = theirs.(*net.TCPConn).SetLinger(0)
	theirs.Close()
	_, err := ours.Read(make([]byte, 1))
	var op *net.OpError
	if !errors.Is(err, syscall.ECONNRESET) || !errors.As(err, &op) || op.Op != "read" || op.Addr == nil {
		t.Errorf("reading gave %v (%T)", err, err)
	}
	for err = nil; err == nil; { // the first may still be taken
		_, err = ours.Write([]byte("x"))
	}
	if !errors.Is(err, syscall.EPIPE) && !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("writing gave %v", err)
	}
}

// Reading and writing allocate nothing.
func TestConn_Allocations(t *testing.T) {
	ours, theirs := pair(t)
	b := make([]byte, 16)
	if n := testing.AllocsPerRun(100, func() {
		if _, err := ours.Write(b); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(theirs, b); err != nil {
			t.Fatal(err)
		}
		if _, err := theirs.Write(b); err != nil {
			t.Fatal(err)
		}
		if _, err := ours.Read(b); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("a round trip allocates %v times", n)
	}
}
