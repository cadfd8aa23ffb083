package workload

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/zk-lite/zk-lite/integration/check"
	"github.com/zk-lite/zk-lite/znode"
)

// silence is how long a stream may send nothing before it is resumed at another server; a
// server sends a mark every five seconds.
const silence = 7 * time.Second

// follower follows all changes below a window's root, over one server after the other: the
// histories of the other clients are compared with its notes.
type follower struct {
	w      *Window
	client *http.Client
	next   int // the server to ask

	mu       sync.Mutex // protects the fields below
	position string     // where to continue
	zxid     znode.Zxid // everything up to here is known
	changes  []check.Change
	resumed  int
	failed   error
}

// change is an event of the stream.
type change struct {
	Type string `json:"type"`
	Path string `json:"path"`
	Zxid string `json:"zxid"`
}

// run follows until the context ends.
func (f *follower) run(ctx context.Context) {
	for ctx.Err() == nil {
		servers := f.w.e.Servers()
		s := servers[f.next%len(servers)]
		f.next++
		if err := f.follow(ctx, s.HTTPAddr()); err != nil {
			f.mu.Lock()
			f.failed = err
			f.mu.Unlock()
			return
		}
		f.w.Pause(50 * time.Millisecond)
	}
}

// follow reads one stream to its end, for any reason. It returns an error if no server can
// continue the stream.
func (f *follower) follow(parent context.Context, addr string) error {
	ctx, cancel := context.WithCancel(parent)
	defer cancel()
	watchdog := time.AfterFunc(silence, cancel)
	defer watchdog.Stop()
	url := fmt.Sprintf("http://%s/v1/watches%s?kind=recursive&since=%s", addr, f.w.root, f.position)
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		panic(err)
	}
	q.Header.Set("Accept", "text/event-stream")
	r, err := f.client.Do(q)
	if err != nil {
		return nil
	}
	defer r.Body.Close()
	if r.StatusCode == http.StatusGone {
		return errors.New("the stream was told that it is too late")
	}
	if r.StatusCode != http.StatusOK {
		return nil
	}
	f.mu.Lock()
	f.resumed++
	f.mu.Unlock()
	lines := bufio.NewScanner(r.Body)
	var id, name, data string
	for lines.Scan() {
		watchdog.Reset(silence)
		line := lines.Text()
		switch {
		case strings.HasPrefix(line, "id: "):
			id = line[4:]
		case strings.HasPrefix(line, "event: "):
			name = line[7:]
		case strings.HasPrefix(line, "data: "):
			data = line[6:]
		case line == "" && name != "":
			if err := f.event(id, name, data); err != nil {
				return err
			}
			name = ""
		}
	}
	return nil
}

func (f *follower) event(id, name, data string) error {
	var c change
	if err := json.Unmarshal([]byte(data), &c); err != nil {
		return fmt.Errorf("an event of the stream: %q: %w", data, err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	typ := map[string]znode.EventType{"created": znode.EventCreated, "deleted": znode.EventDeleted,
		"changed": znode.EventDataChanged}[name]
	switch {
	case typ != 0:
		f.changes = append(f.changes, check.Change{Zxid: zxidOf(c.Zxid), Type: typ, Path: c.Path})
	case name == "gone":
		return errors.New("the stream was told that it is too late")
	case name == "progress":
		f.zxid = max(f.zxid, zxidOf(c.Zxid))
	case name != "reconnect":
		return fmt.Errorf("an event of the stream has the unknown name %q: %s", name, data)
	}
	f.position = id
	return nil
}

// truth is the changes from the stream, with the values and owners that clients know. A value
// that no answer has shown remains a name of its own.
func (f *follower) truth(h *check.History) []check.Change {
	values := map[string]string{} // by zxid and path
	owners := map[string]znode.SessionID{}
	key := func(z znode.Zxid, path string) string { return fmt.Sprintf("%x %s", int64(z), path) }
	for i := range h.Ops {
		o := &h.Ops[i]
		parts := o.Ops
		if o.Kind != check.Multi {
			parts = h.Ops[i : i+1]
		}
		for k := range parts {
			p := &parts[k]
			path := p.Path
			if p.Created != "" {
				path = p.Created
			}
			if o.Outcome == check.OK && p.Value != "" {
				values[key(o.Zxid, path)] = p.Value
			}
			if p.Kind == check.Create && p.Mode.Ephemeral() {
				owners[path] = o.Session
			}
		}
		if o.Kind == check.Get && o.Outcome == check.OK {
			values[key(o.Stat.Mzxid, o.Path)] = o.Data
		}
	}
	f.completeMultis(h, values, key)
	for i := range f.changes {
		c := &f.changes[i]
		if c.Type == znode.EventDeleted {
			continue
		}
		c.Value = values[key(c.Zxid, c.Path)]
		if c.Value == "" {
			c.Value = "not known, " + key(c.Zxid, c.Path)
		}
		if c.Type == znode.EventCreated {
			c.Owner = owners[c.Path]
		}
	}
	return f.changes
}

// completeMultis gives the parts of multis without an answer the zxid of the part that a read
// has shown: the others, which perhaps no client has read, must be there, too.
func (f *follower) completeMultis(h *check.History, values map[string]string,
	key func(z znode.Zxid, path string) string) {
	shown := map[string]znode.Zxid{} // by value
	for i := range f.changes {
		c := &f.changes[i]
		if v := values[key(c.Zxid, c.Path)]; v != "" {
			shown[v] = c.Zxid
		}
	}
	for i := range h.Ops {
		o := &h.Ops[i]
		if o.Kind != check.Multi || o.Outcome != check.Unknown {
			continue
		}
		for k := range o.Ops {
			z := shown[o.Ops[k].Value]
			if z == 0 || o.Ops[k].Value == "" {
				continue
			}
			for j := range o.Ops {
				if at := key(z, o.Ops[j].Path); values[at] == "" && o.Ops[j].Value != "" {
					values[at] = o.Ops[j].Value
				}
			}
		}
	}
}
