package data

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zk-lite/zk-lite/api/rest"
	"github.com/zk-lite/zk-lite/internal/testkit/clock"
	"github.com/zk-lite/zk-lite/znode"
)

// sleepyClient takes 20 seconds to read what it is sent.
type sleepyClient struct {
	*httptest.ResponseRecorder
	deadline time.Time
	read     int
}

func (c *sleepyClient) SetWriteDeadline(t time.Time) error { c.deadline = t; return nil }

func (c *sleepyClient) Write(b []byte) (int, error) {
	clock.Sleep(20 * time.Second)
	if time.Now().After(c.deadline) {
		return 0, os.ErrDeadlineExceeded
	}
	c.read++
	return len(b), nil
}

// A client that reads, but too slowly, is cut off: its snapshot keeps what was replaced since.
func TestListing_CutsOffSlowReaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &sleepyClient{ResponseRecorder: httptest.NewRecorder()}
		q := &rest.Request{Core: &rest.Core{Stopping: t.Context()}, W: w}
		l := &listing{Subtree: new(znode.Subtree), until: time.Now().Add(50 * time.Second)}
		defer func() {
			if why := recover(); why != http.ErrAbortHandler || w.read != 2 {
				t.Errorf("after %d parts %v, want %v after 2", w.read, why, http.ErrAbortHandler)
			}
		}()
		for {
			l.send(q, bytes.NewBufferString("part"))
		}
	})
}
