//go:build upgrade

package upgrade_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/integration/cluster"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
)

// patience is how long one operation may take, whatever happens to servers.
const patience = 30 * time.Second

// pace is how long a client waits between two requests, so that trees stay small.
const pace = 5 * time.Millisecond

// load is clients that create znodes: through the Go client, one whose first server is each of the ensemble's, over
// HTTP at all servers, and foreign ones.
type load struct {
	t    *testing.T
	e    *cluster.Ensemble
	ctx  context.Context // ends with the load
	stop context.CancelFunc
	done sync.WaitGroup

	mu      sync.Mutex     // protects the fields below
	written []string       // acknowledged
	unknown []string       // of Go clients whose server was killed
	unread  []string       // of foreign clients whose connection was lost: done only if their server was killed
	each    map[string]int // requests of each client
}

func startLoad(t *testing.T, e *cluster.Ensemble, others []foreign) *load {
	t.Helper()
	l := &load{t: t, e: e, each: map[string]int{}}
	l.ctx, l.stop = context.WithCancel(t.Context())
	c := l.connect(0)
	if _, _, err := c.Create(t.Context(), "/load", nil, client.Persistent); err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	for i := range e.Servers() {
		l.run(fmt.Sprintf("client-%d", i), func(who string) { l.useClient(who, i) })
		l.run(fmt.Sprintf("http-%d", i), func(who string) { l.useHTTP(who, i) })
	}
	for _, f := range others {
		l.run(f.name, func(who string) { l.useForeign(who, f.args) })
	}
	t.Cleanup(l.end)
	return l
}

func (l *load) run(who string, client func(who string)) {
	l.mu.Lock()
	l.each[who] = 0
	l.mu.Unlock()
	l.done.Go(func() { client(who) })
}

func (l *load) end() {
	l.stop()
	l.done.Wait()
}

// wait is a client's pause.
func (l *load) wait() {
	select {
	case <-l.ctx.Done():
	case <-time.After(pace):
	}
}

// connect is a client that tries the servers from one on.
func (l *load) connect(first int) *client.Client {
	addrs := strings.Split(l.e.ConnectString(), ",")
	addrs = slices.Concat(addrs[first:], addrs[:first])
	c, err := client.Connect(l.t.Context(), strings.Join(addrs, ","), client.WithFinalExpiry(),
		client.WithSessionTimeout(10*time.Second))
	if err != nil {
		l.t.Errorf("connecting: %v", err)
	}
	return c
}

func (l *load) note(list *[]string, who, path string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	*list = append(*list, path)
	l.each[who]++
}

// useClient has one session, which must not expire.
func (l *load) useClient(who string, i int) {
	c := l.connect(i)
	if c == nil {
		return
	}
	for n := 0; l.ctx.Err() == nil; n++ {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(l.ctx), patience)
		path := fmt.Sprintf("/load/%s-%d", who, n)
		_, _, err := c.Create(ctx, path, []byte(path), client.Persistent)
		switch {
		case errors.Is(err, client.ErrOutcomeUnknown):
			l.note(&l.unknown, who, path)
		case err != nil:
			l.t.Errorf("%s: creating %s: %v", who, path, err)
		default:
			l.note(&l.written, who, path)
			if data, _, err := c.Get(ctx, path); err != nil || string(data) != path {
				l.t.Errorf("%s: reading %s, which it has written: %q, %v", who, path, data, err)
			}
		}
		cancel()
		l.wait()
	}
	if err := c.Session().Err(); err != nil {
		l.t.Errorf("%s: its session has ended: %v", who, err)
	}
	if err := c.Close(); err != nil {
		l.t.Errorf("%s: closing: %v", who, err)
	}
}

// useHTTP follows the rules of docs/http.md for clients: it sends a request again, with its key, to the next server.
func (l *load) useHTTP(who string, i int) {
	servers := l.e.Servers()
	for n := 0; l.ctx.Err() == nil; n++ {
		path := fmt.Sprintf("/load/%s-%d", who, n)
		var err error
		for begin := time.Now(); time.Since(begin) < patience; i++ {
			if err = post(servers[i%len(servers)], path); err == nil {
				break
			}
		}
		if err != nil {
			l.t.Errorf("%s: creating %s: %v", who, path, err)
			continue
		}
		l.note(&l.written, who, path)
		l.wait()
	}
}

func post(s *cluster.Server, path string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+s.HTTPAddr()+"/v1/znodes"+path,
		strings.NewReader(path))
	if err != nil {
		return err
	}
	r.Header.Set("Idempotency-Key", path)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusCreated {
		return fmt.Errorf("%s: %s, %w", answer.Status, text, errors.Join(err))
	}
	return nil
}

// progress waits until every client has done more.
func (l *load) progress() {
	l.t.Helper()
	counts := func() map[string]int {
		l.mu.Lock()
		defer l.mu.Unlock()
		return maps.Clone(l.each)
	}
	before := counts()
	wait.Succeeds(l.t, "every client goes on", func() error {
		for who, n := range counts() {
			if n < before[who]+5 {
				return fmt.Errorf("%s has done %d since", who, n-before[who])
			}
		}
		return nil
	})
}

// check ends the load and compares its answers with the state of all servers: nothing is missing, nothing is there
// that was not written.
func (l *load) check(kills bool) {
	l.t.Helper()
	l.end()
	l.e.CheckReplicas()
	there := map[string]bool{}
	for _, z := range l.e.Servers()[0].Dump(l.t) {
		if strings.HasPrefix(z.Path, "/load/") {
			there[z.Path] = true
		}
	}
	for _, path := range l.written {
		if !there[path] {
			l.t.Errorf("%s was acknowledged and is missing", path)
		}
		delete(there, path)
	}
	if kills {
		for _, path := range slices.Concat(l.unknown, l.unread) {
			delete(there, path)
		}
	} else if len(l.unknown) > 0 {
		l.t.Errorf("%d operations failed though all servers were stopped in good order: %v", len(l.unknown), l.unknown)
	}
	for path := range there {
		l.t.Errorf("nobody wrote %s", path)
	}
	l.t.Logf("%d operations acknowledged; without an answer %d of Go clients, %d of foreign ones; %v",
		len(l.written), len(l.unknown), len(l.unread), l.each)
}
