package zk

import (
	"errors"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zk-lite/zk-lite/internal/wire"
)

// reading runs an input's reader over a pipe: it takes every frame and reports
// the size of the buffer after each read.
func reading(in *input, frames chan<- int) {
	defer close(frames)
	for {
		for {
			f, err := in.frame()
			if err != nil {
				return
			}
			if f == nil {
				break
			}
			frames <- len(f)
		}
		if in.fillOpen(time.Now()) != nil {
			return
		}
	}
}

// A connection that has got a large frame gives the buffer back when it is
// idle, and keeps no timer.
func TestInput_LargeBuffer_IsGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, client := net.Pipe()
		var pool buffers
		var in input
		in.init(server, &pool, wire.DefaultMaxFrame)
		frames := make(chan int, 10)
		go reading(&in, frames)
		send := func(n int) {
			t.Helper()
			if _, err := client.Write(append([]byte{0, byte(n >> 16), byte(n >> 8), byte(n)},
				make([]byte, n)...)); err != nil {
				t.Fatal(err)
			}
			if have := <-frames; have != n {
				t.Fatalf("a frame of %d bytes, want %d", have, n)
			}
			synctest.Wait()
		}
		send(10)
		if len(in.buf) != smallInput || !in.until.IsZero() {
			t.Errorf("buffer of %d bytes after a small frame", len(in.buf))
		}
		for _, n := range []int{smallInput, bufferBytes, 700_000} {
			send(n)
			if len(in.buf) < bufferBytes || len(in.buf) > max(bufferBytes, n+wire.FrameLengthBytes) {
				t.Errorf("buffer of %d bytes for a frame of %d", len(in.buf), n)
			}
			time.Sleep(2*busyFor + time.Millisecond) // of the bubble's clock
			synctest.Wait()
			if len(in.buf) != smallInput || !in.until.IsZero() {
				t.Errorf("idle buffer of %d bytes", len(in.buf))
			}
			send(7)
		}
		client.Close()
		if _, more := <-frames; more {
			t.Error("a frame out of nothing")
		}
	})
}

// A small exchange now and then does not keep a large buffer alive.
func TestInput_SmallFrames_DoNotKeepALargeBuffer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, client := net.Pipe()
		var pool buffers
		var in input
		in.init(server, &pool, wire.DefaultMaxFrame)
		frames := make(chan int, 10)
		go reading(&in, frames)
		big := append([]byte{0, 1, 0, 0}, make([]byte, 1<<16)...)
		for i := range 30 {
			if _, err := client.Write(big); err != nil {
				t.Fatal(err)
			}
			<-frames
			big = []byte{0, 0, 0, 1, byte(i)}
			time.Sleep(busyFor / 10)
		}
		synctest.Wait()
		if len(in.buf) != smallInput {
			t.Errorf("buffer of %d bytes", len(in.buf))
		}
		client.Close()
		<-frames
	})
}

// Frames out of range are refused by their first four bytes.
func TestInput_FrameLength_IsChecked(t *testing.T) {
	server, client := net.Pipe()
	defer client.Close()
	var pool buffers
	var in input
	in.init(server, &pool, 100)
	go func() {
		_, _ = client.Write([]byte{0, 0, 0, 101})
	}()
	if err := in.fill(); err != nil && !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	if f, err := in.frame(); f != nil || !errors.Is(err, wire.ErrFrameLength) {
		t.Errorf("%v %v", f, err)
	}
}
