//go:build slow || privileged

package failover_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/integration/cluster"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
)

const (
	streamChanges = 10_000 // of each round
	streamWriters = 8
	streamBatch   = 9 // changes of a transaction, so that some streams break in the middle of one
)

// change is a change as a stream reports it, and as its author knows it.
type change struct {
	Type string `json:"type"`
	Path string `json:"path"`
	Zxid string `json:"zxid"`
}

// TestFailover_Stream_ResumedAfterKill follows ten thousand changes, which are written through another server, by
// server-sent events. Meanwhile the stream's server is killed with SIGKILL, and the client continues at a third one
// with the id of its last event: it must see every change once, in order. First the server is a follower, then the
// leader.
func TestFailover_Stream_ResumedAfterKill(t *testing.T) {
	e := start(t, 3, cluster.Options{})
	for _, kind := range []string{"follower", "leader"} {
		victim, others := e.Roles()
		if kind == "follower" {
			victim, others = others[0], []*cluster.Server{others[1], victim}
		}
		root := "/stream-" + kind
		followThroughKill(t, root, victim, others[0], others[1])
		victim.Start()
		e.WaitServing()
	}
	e.CheckReplicas()
}

// followThroughKill follows the changes below root at one server, which is killed, and
// then at another, while a third takes the writes.
func followThroughKill(t *testing.T, root string, victim, next, written *cluster.Server) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*wait.Patience)
	defer cancel()
	// The root is created through the stream's server: one that applies it later would send an event for it.
	w := &streamLoad{t: t, ctx: ctx, root: root, url: "http://" + victim.HTTPAddr(),
		killed: make(chan struct{})}
	w.write(root, http.MethodPost, "/v1/znodes"+root, "", nil)
	w.url = "http://" + written.HTTPAddr()
	r := &eventReader{t: t, ctx: ctx, root: root, url: "http://" + victim.HTTPAddr()}
	r.open()
	r.until("progress") // from here on the stream misses nothing
	var writers sync.WaitGroup
	for i := range streamWriters {
		writers.Go(func() { w.run(i) })
	}
	seen := r.take(streamChanges / 5)
	victim.Kill()
	close(w.killed)
	seen = append(seen, r.drain()...) // events still under way
	r.url = "http://" + next.HTTPAddr()
	t.Logf("%s: the stream broke after %d changes, at %s", root, len(seen), r.last)
	if len(seen) >= streamChanges {
		t.Fatal("it did not break")
	}
	r.open()
	seen = append(seen, r.take(streamChanges-len(seen))...)
	writers.Wait()
	last := w.create("last")
	if got := r.take(1); got[0] != last {
		t.Errorf("%s: after all changes comes %v, want %v", root, got[0], last)
	}
	r.close()
	want := w.sorted()
	if len(want) != streamChanges {
		t.Fatalf("%s: %d changes were made", root, len(want))
	}
	for i := range want {
		if seen[i] != want[i] {
			t.Fatalf("%s: change %d is %v, want %v", root, i, seen[i], want[i])
		}
	}
}

// streamLoad writes with idempotency keys, so that repeated requests take effect once.
type streamLoad struct {
	t         *testing.T
	ctx       context.Context
	root, url string
	killed    chan struct{} // closed when the stream's server is dead
	begun     atomic.Int64  // changes that were begun

	mu   sync.Mutex // protects the field below
	done []made
}

// made is a change that was acknowledged; part is its place in its transaction.
type made struct {
	change
	zxid uint64
	part int
}

// run makes a share of the changes: one alone, and some in a transaction, by turns. Part
// of them wait until the stream's server is dead, so that it dies while much is to come.
func (w *streamLoad) run(writer int) {
	const share = streamChanges / streamWriters / (1 + streamBatch) * (1 + streamBatch)
	left := share
	if writer == 0 {
		left += streamChanges - streamWriters*share
	}
	for n := 0; left > 0 && !w.t.Failed(); n++ {
		if w.begun.Load() > streamChanges*3/5 {
			select {
			case <-w.killed:
			case <-w.ctx.Done():
				return
			}
		}
		size := 1
		if n%2 == 1 {
			size = min(streamBatch, left)
		}
		w.begun.Add(int64(size))
		left -= size
		w.add(w.batch(fmt.Sprintf("%d-%d", writer, n), size)...)
	}
}

func (w *streamLoad) add(list ...made) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.done = append(w.done, list...)
}

// batch creates some znodes in one transaction.
func (w *streamLoad) batch(name string, size int) (list []made) {
	type op struct {
		Op   string `json:"op"`
		Path string `json:"path"`
	}
	var ops []op
	for i := range size {
		ops = append(ops, op{"create", fmt.Sprintf("%s/%s-%d", w.root, name, i)})
	}
	body, err := json.Marshal(map[string]any{"ops": ops})
	if err != nil {
		w.t.Error(err)
		return nil
	}
	var reply struct{ Zxid string }
	w.write(name, http.MethodPost, "/v1/multi", string(body), &reply)
	for i := range ops {
		list = append(list, w.madeOf(ops[i].Path, reply.Zxid, i))
	}
	return list
}

// create creates one znode.
func (w *streamLoad) create(name string) change {
	var reply struct{ Stat struct{ Czxid string } }
	w.write(name, http.MethodPost, "/v1/znodes"+w.root+"/"+name, "", &reply)
	return w.madeOf(w.root+"/"+name, reply.Stat.Czxid, 0).change
}

func (w *streamLoad) madeOf(path, zxid string, part int) made {
	n, err := strconv.ParseUint(strings.TrimPrefix(zxid, "0x"), 16, 64)
	if err != nil {
		w.t.Errorf("zxid %q of %s: %v", zxid, path, err)
	}
	return made{change{"created", path, zxid}, n, part}
}

// sorted returns the changes in the order of their zxids.
func (w *streamLoad) sorted() (list []change) {
	slices.SortFunc(w.done, func(a, b made) int {
		if a.zxid != b.zxid {
			return int(int64(a.zxid) - int64(b.zxid))
		}
		return a.part - b.part
	})
	for _, m := range w.done {
		list = append(list, m.change)
	}
	return list
}

// write sends a request until it is answered with success, each time with the same key.
func (w *streamLoad) write(key, method, target, body string, reply any) {
	wait := time.NewTimer(0)
	defer wait.Stop()
	for last := error(nil); ; {
		select {
		case <-wait.C:
		case <-w.ctx.Done():
			w.t.Errorf("%s %s: %v; at the end: %v", method, target, w.ctx.Err(), last)
			return
		}
		status, text, err := w.once(w.root+key, method, target, body)
		switch {
		case err == nil && status/100 == 2:
			if reply != nil {
				err = json.Unmarshal(text, reply)
			}
			if err != nil {
				w.t.Errorf("%s %s: request failed: %v", method, target, err)
			}
			return
		case err == nil && status != 429 && status != 503 && status != 504:
			w.t.Errorf("%s %s: status %d, want a success or a reason to try again: %s", method, target, status, text)
			return
		}
		last = fmt.Errorf("%d %s: %w", status, text, err)
		wait.Reset(20 * time.Millisecond)
	}
}

func (w *streamLoad) once(key, method, target, body string) (int, []byte, error) {
	req, err := http.NewRequestWithContext(w.ctx, method, w.url+target, strings.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("Idempotency-Key", key)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return resp.StatusCode, text, err
}

// eventReader is a client of a stream of server-sent events, as browsers are.
type eventReader struct {
	t         *testing.T
	ctx       context.Context
	root, url string
	last      string // the id of the last event that has come as a whole
	body      io.Closer
	lines     *bufio.Reader
}

// open connects, with the last event's id if there is one, until a server takes it.
func (r *eventReader) open() {
	r.t.Helper()
	wait.Succeeds(r.t, "a stream at "+r.url, func() error {
		req, err := http.NewRequestWithContext(r.ctx, http.MethodGet,
			r.url+"/v1/watches"+r.root+"?kind=recursive", nil)
		if err != nil {
			return err
		}
		req.Header.Set("Accept", "text/event-stream")
		if r.last != "" {
			req.Header.Set("Last-Event-ID", r.last)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return err
		}
		if resp.StatusCode != http.StatusOK {
			text, _ := io.ReadAll(resp.Body)
			resp.Body.Close()
			return fmt.Errorf("%s: %s", resp.Status, text)
		}
		r.body, r.lines = resp.Body, bufio.NewReader(resp.Body)
		return nil
	})
}

func (r *eventReader) close() { _ = r.body.Close() }

// next reads an event; false when the stream has ended, maybe in the midst of one.
func (r *eventReader) next() (name string, c change, ok bool) {
	var id, data []byte
	for {
		line, err := r.lines.ReadBytes('\n')
		if err != nil {
			return "", c, false
		}
		line = bytes.TrimSuffix(line, []byte("\n"))
		field, value, _ := bytes.Cut(line, []byte(": "))
		switch string(field) {
		case "id":
			id = value
		case "event":
			name = string(value)
		case "data":
			data = value
		case "":
			if name == "" {
				continue // earlier changes had no event
			}
			if err := json.Unmarshal(data, &c); err != nil {
				r.t.Errorf("event %s: %v in %q", name, err, data)
			}
			r.last = string(id)
			return name, c, true
		}
	}
}

// until reads to an event of some name.
func (r *eventReader) until(want string) {
	r.t.Helper()
	for {
		name, _, ok := r.next()
		if !ok {
			r.t.Fatalf("%s: the stream ended before %s", r.root, want)
		}
		if name == want {
			return
		}
	}
}

// take reads n changes.
func (r *eventReader) take(n int) (list []change) {
	r.t.Helper()
	for len(list) < n {
		name, c, ok := r.next()
		switch {
		case !ok:
			r.t.Fatalf("%s: the stream at %s ended after %d of %d changes", r.root, r.url, len(list), n)
		case name == "progress":
		case name == c.Type:
			list = append(list, c)
		case name == "reconnect": // this server, too, has no leader for a moment
			r.close()
			r.open()
		default:
			r.t.Fatalf("%s: event %s %v", r.root, name, c)
		}
	}
	return list
}

// drain reads the remaining changes of a stream whose server is dead.
func (r *eventReader) drain() (list []change) {
	defer r.close()
	for {
		name, c, ok := r.next()
		if !ok {
			return list
		}
		if name == c.Type {
			list = append(list, c)
		}
	}
}
