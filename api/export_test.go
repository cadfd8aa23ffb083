package api

import (
	"bytes"
	"net/http"
	"time"

	"github.com/zk-lite/zk-lite/znode"
)

// Kill cuts all connections, as the end of the process does.
func (d *Door) Kill() {
	d.stop()
	_ = d.http.Close()
}

// Handler is what answers requests.
func (d *Door) Handler() http.Handler { return d.http.Handler }

// Conns is how many connections are open; FillConns opens more than there may be.
func (d *Door) Conns() int64      { return d.conns.Load() }
func (d *Door) FillConns(n int64) { d.conns.Add(n * maxConns) }

// OpenStreams is how many streams and long polls are open, from how many addresses.
func (d *Door) OpenStreams() (streams, addresses int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.open, len(d.streams)
}

// The door as it is under the heaviest load.
func (d *Door) FillStreams(address string) { d.streams[address] = maxStreamsPerAddress }
func (d *Door) FillWrites(n int64)         { d.writes.Add(n * maxWrites) }
func (d *Door) FillBodies(n int64)         { d.bodies.Add(n * maxBodies) }
func (d *Door) Held() int64                { return d.bodies.Load() }

// CountLatencies is the histogram x of answers that took so long.
func CountLatencies(took ...time.Duration) string {
	t := newTraffic("GET", "/")
	for _, d := range took {
		t.count(http.StatusOK, d)
	}
	var b bytes.Buffer
	t.writeSeconds(&b, "x")
	return b.String()
}

// LargeFamily is more children than are sorted while the state is held still.
const LargeFamily = smallFamily + 10

// The codes that have an explanation of their own, for a test that all have.
func StatusOf(code znode.Error) int { return explain(code, "", false).Status }
