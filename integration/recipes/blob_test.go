package recipes_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/integration/cluster"
	"github.com/zk-lite/zk-lite/internal/testkit/tier"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
	"github.com/zk-lite/zk-lite/recipes"
)

// contentOf is a content of n bytes in which each eight name the writer and its count: any
// mixture shows.
func contentOf(n int, writer, count uint32) []byte {
	word := binary.BigEndian.AppendUint64(nil, uint64(writer)<<32|uint64(count))
	return bytes.Repeat(word, n/len(word)+1)[:n]
}

// midway is a content, or what takes it, that calls a function once half of it has gone by.
type midway struct {
	left int
	call func()
}

func (m *midway) Write(p []byte) (int, error) {
	if m.left > 0 && m.left <= len(p) {
		m.call()
	}
	m.left -= len(p)
	return len(p), nil
}

// Fifty megabytes are written while the leader is killed, and read while the next one is: they
// arrive whole, and until the last moment readers get all of the old version.
func TestBlob_LeadersKilledMidway(t *testing.T) {
	tier.Seconds(t)
	const size = 50_000_000
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	// The sessions outlive two elections on a busy machine.
	e := cluster.Start(t, 3, cluster.Options{Config: map[string]string{"maxSessionTimeout": "60000"}})
	connect := func() *client.Client {
		c, err := client.Connect(ctx, e.ConnectString(), client.WithSessionTimeout(time.Minute),
			client.WithBackoff(10*time.Millisecond, 100*time.Millisecond))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() }) // servers may be down
		return c
	}
	writer, reader := recipes.NewBlob(connect(), "/b"), recipes.NewBlob(connect(), "/b")
	read := func(want []byte, watch io.Writer) {
		t.Helper()
		r, err := reader.Open(ctx)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(io.TeeReader(r, watch))
		if err != nil || !bytes.Equal(got, want) {
			t.Fatalf("got %d bytes and the error %v, want the %d that were written", len(got), err, len(want))
		}
	}
	write := func(data []byte, watch io.Writer) {
		t.Helper()
		began := time.Now()
		_, err := writer.Write(ctx, io.TeeReader(bytes.NewReader(data), watch), client.AnyVersion)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%d bytes were written in %v", len(data), time.Since(began).Round(time.Millisecond))
	}
	old, data := contentOf(size, 1, 1), contentOf(size, 1, 2)
	write(old, io.Discard)
	write(data, &midway{size / 2, func() {
		leader := e.Leader()
		leader.Kill()
		read(old, io.Discard)
		leader.Start()
		e.WaitServing()
	}})
	began := time.Now()
	read(data, &midway{size / 2, func() { e.Leader().Kill() }})
	t.Logf("and read in %v", time.Since(began).Round(time.Millisecond))
	e.StartAll()
	e.WaitServing()
	e.CheckReplicas()
}

// startBlobs starts workers that replace a blob of some parts, and others that read it.
func (s *soak) startBlobs() {
	const least = 300_000
	for i, c := range s.clients {
		b := recipes.NewBlob(c, path("blob"))
		count := uint32(0)
		s.work(fmt.Sprintf("blob writer %d", i), func(ctx context.Context) error {
			count++
			data := contentOf(least+int(count), uint32(i), count)
			_, err := b.Write(ctx, bytes.NewReader(data), client.AnyVersion)
			return err
		})
		s.work(fmt.Sprintf("blob reader %d", i), func(ctx context.Context) error {
			r, err := b.Open(ctx)
			if err != nil {
				return ignored(err, client.ErrNoNode, recipes.ErrNoBlob) // no writer has succeeded yet
			}
			got, err := io.ReadAll(r)
			if err != nil {
				return ignored(err, recipes.ErrBlobReplaced)
			}
			word := binary.BigEndian.Uint64(got)
			if want := contentOf(len(got), uint32(word>>32), uint32(word)); !bytes.Equal(got, want) ||
				len(got) != least+int(uint32(word)) {
				s.errorf("%d bytes of a blob were read that nobody wrote", len(got))
			}
			return nil
		})
	}
	s.atEnd(func() {
		c := s.connectLong()
		b := recipes.NewBlob(c, path("blob"))
		// The marks of writers that lost their sessions go when these expire.
		wait.Succeeds(s, "the blob is deleted with all of its versions", func() error {
			if err := b.Delete(s.ctx); !errors.Is(err, client.ErrNoNode) {
				return fmt.Errorf("the last Delete: %v", err)
			}
			return nil
		})
		s.close(c)
	})
}

// ignored is nil for an error that faults explain.
func ignored(err error, expected ...error) error {
	for _, e := range expected {
		if errors.Is(err, e) {
			return nil
		}
	}
	return err
}
