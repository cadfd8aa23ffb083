package zk

import (
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zk-lite/zk-lite/internal/testkit/clock"
	"github.com/zk-lite/zk-lite/internal/wire"
)

// spy is a pipe's end that notes what an input does with it before it waits: how
// much it can take, and whether a deadline is set. The input itself belongs to
// its reader.
type spy struct {
	net.Conn
	mu       sync.Mutex // protects the fields below
	room     int
	deadline time.Time
}

func (s *spy) Read(p []byte) (int, error) {
	s.mu.Lock()
	s.room = len(p)
	s.mu.Unlock()
	return s.Conn.Read(p)
}

func (s *spy) SetReadDeadline(t time.Time) error {
	s.mu.Lock()
	s.deadline = t
	s.mu.Unlock()
	return s.Conn.SetReadDeadline(t)
}

// waiting returns the room noted last, the whole buffer if it is empty, and whether a deadline is set.
func (s *spy) waiting() (buffer int, timer bool) {
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.room, !s.deadline.IsZero()
}

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
		if in.fillOpen(time.Now(), new(atomic.Int32), false) != nil {
			return
		}
	}
}

// A connection that has got a large frame gives the buffer back when it is
// idle, and keeps no timer.
func TestInput_LargeBuffer_IsGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pipe, client := net.Pipe()
		server := &spy{Conn: pipe}
		var pool buffers
		var in input
		in.init(server, &pool, noBound(), wire.DefaultMaxFrame)
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
		}
		send(10)
		if n, timer := server.waiting(); n != smallInput || timer {
			t.Errorf("buffer of %d bytes after a small frame, timer %v", n, timer)
		}
		for _, n := range []int{smallInput, bufferBytes, 700_000} {
			send(n)
			if have, _ := server.waiting(); have < bufferBytes || have > max(bufferBytes, n+wire.FrameLengthBytes) {
				t.Errorf("buffer of %d bytes for a frame of %d", have, n)
			}
			clock.Sleep(2*busyFor + time.Millisecond) // of the bubble's clock
			if have, timer := server.waiting(); have != smallInput || timer {
				t.Errorf("idle buffer of %d bytes, timer %v", have, timer)
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
		pipe, client := net.Pipe()
		server := &spy{Conn: pipe}
		var pool buffers
		var in input
		in.init(server, &pool, noBound(), wire.DefaultMaxFrame)
		frames := make(chan int, 10)
		go reading(&in, frames)
		big := append([]byte{0, 1, 0, 0}, make([]byte, 1<<16)...)
		for i := range 30 {
			if _, err := client.Write(big); err != nil {
				t.Fatal(err)
			}
			<-frames
			big = []byte{0, 0, 0, 1, byte(i)}
			clock.Sleep(busyFor / 10)
		}
		if n, _ := server.waiting(); n != smallInput {
			t.Errorf("buffer of %d bytes", n)
		}
		client.Close()
		<-frames
	})
}

// Frames out of range are refused by their first bytes: how long one may be depends on its type.
func TestInput_FrameLength_IsChecked(t *testing.T) {
	for name, c := range map[string]struct {
		head    []byte
		refused bool
	}{
		"negative":       {[]byte{0xff, 0, 0, 101}, true},
		"no type yet":    {[]byte{0, 0, 0, 101}, false},
		"a create":       {[]byte{0, 0, 0, 101, 0, 0, 0, 9, 0, 0, 0, byte(wire.OpCreate)}, true},
		"setWatches":     {[]byte{0, 0, 0, 101, 0, 0, 0, 9, 0, 0, 0, byte(wire.OpSetWatches)}, false},
		"setWatches2":    {[]byte{1, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, byte(wire.OpSetWatches2)}, false},
		"too many of it": {[]byte{1, 0, 0, 1, 0, 0, 0, 9, 0, 0, 0, byte(wire.OpSetWatches2)}, true},
	} {
		server, client := net.Pipe()
		var pool buffers
		var in input
		in.init(server, &pool, noBound(), 100)
		go func() { _, _ = client.Write(c.head) }()
		if err := in.fill(); err != nil {
			t.Fatal(err)
		}
		if f, err := in.frame(); f != nil || errors.Is(err, wire.ErrFrameLength) != c.refused {
			t.Errorf("%s: frame %v, error %v; want no frame, and refused: %t", name, f, err, c.refused)
		}
		client.Close()
	}
}

func noBound() *shares { return &shares{limit: 1 << 30} }

// Frames that were announced and never completed cost their memory for as long as their sessions
// lived: 300 of 1 MB took 375 MB. The connection that began first is closed, and no other.
func TestPartialFrames_BeyondTheBound_TheOldestGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const half, limit = 60_000, 300_000 // a half needs a buffer of 64 KiB, so four fit
		partial := &shares{limit: limit, spare: true, close: func(c net.Conn) { c.Close() }}
		var pool buffers
		type conn struct {
			client net.Conn
			frames chan int
		}
		var all []conn
		begin := func(sent int) {
			t.Helper()
			pipe, client := net.Pipe()
			c := conn{client, make(chan int, 10)}
			in := &input{}
			in.init(pipe, &pool, partial, wire.DefaultMaxFrame)
			go func() {
				defer in.end()
				reading(in, c.frames)
			}()
			n := 2 * half
			if _, err := client.Write(append([]byte{0, byte(n >> 16), byte(n >> 8), byte(n)}, make([]byte, sent)...)); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			all = append(all, c)
		}
		begin(100) // takes no large buffer, and so no part in this
		for range 7 {
			begin(half)
		}
		if partial.bytes > limit || partial.queue.Len() != 4 {
			t.Errorf("%d partial frames take %d bytes; %d are allowed", partial.queue.Len(), partial.bytes, limit)
		}
		for _, i := range []int{7, 0} { // the newest, and one that took no room
			rest := 2*half - map[int]int{0: 100, 7: half}[i]
			if _, err := all[i].client.Write(make([]byte, rest)); err != nil {
				t.Errorf("connection %d: %v", i, err)
			} else if n := <-all[i].frames; n != 2*half {
				t.Errorf("connection %d got a frame of %d bytes", i, n)
			}
		}
		for _, i := range []int{1, 2, 3} {
			if _, err := all[i].client.Write([]byte{0}); err == nil {
				t.Errorf("connection %d is still there", i)
			}
		}
		for _, c := range all {
			c.client.Close()
		}
		synctest.Wait()
		if partial.bytes != 0 || partial.queue.Len() != 0 {
			t.Errorf("%d frames of %d bytes are counted when all have gone", partial.queue.Len(), partial.bytes)
		}
	})
}

// A frame that is larger than the bound has it all to itself.
func TestPartialFrames_LargerThanTheBound_Arrives(t *testing.T) {
	server, client := net.Pipe()
	defer client.Close()
	var pool buffers
	var in input
	in.init(server, &pool, &shares{limit: 1000}, wire.DefaultMaxFrame)
	frames := make(chan int, 1)
	go reading(&in, frames)
	if _, err := client.Write(append([]byte{0, 1, 0, 0}, make([]byte, 1<<16)...)); err != nil {
		t.Fatal(err)
	}
	if n := <-frames; n != 1<<16 {
		t.Errorf("a frame of %d bytes", n)
	}
}
