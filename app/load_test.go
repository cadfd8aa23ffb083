package app_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/integration/check"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
	"github.com/zk-lite/zk-lite/znode"
)

// load is clients that send requests without a pause, and the history of their answers.
type load struct {
	t     *testing.T
	begin time.Time

	mu      sync.Mutex // protects the fields below
	history check.History
	clients int
	asked   int
	again   int // HTTP requests that another server was asked again
	failed  []string
}

func newLoad(t *testing.T) *load { return &load{t: t, begin: time.Now()} }

// perZnode is how many operations meet at a znode before all go on to the next: it bounds the search for their order.
const perZnode = 100

// next is what a client is to ask.
func (l *load) next(id int) check.Op {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asked++
	o := check.Op{
		ID: l.asked, Client: id, Conn: l.asked, Path: fmt.Sprintf("/r%d", l.asked/perZnode),
		Kind:  []check.Kind{check.Create, check.Set, check.Get}[l.asked%3],
		Value: strconv.Itoa(l.asked), Version: znode.AnyVersion, Synced: l.asked%3 == 2, Call: time.Since(l.begin),
	}
	if o.Kind == check.Get {
		o.Value = ""
	}
	return o
}

// note takes down the answer.
func (l *load) note(o check.Op, who string, stat znode.Stat, err error) {
	o.Return, o.Outcome, o.Stat = time.Since(l.begin), check.OK, stat
	switch {
	case errors.Is(err, client.ErrOutcomeUnknown): // a server that was stopped took the reply with it
		o.Outcome = check.Unknown
	case errors.Is(err, client.ErrNoNode), errors.Is(err, client.ErrNodeExists):
		o.Outcome = check.Failed
		errors.As(err, &o.Code)
	case o.Kind == check.Create:
		o.Created, o.Zxid = o.Path, stat.Czxid
	case o.Kind == check.Set:
		o.Zxid = stat.Mzxid
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil && o.Outcome == check.OK {
		l.failed = append(l.failed, fmt.Sprintf("%s: %v", who, err))
		return
	}
	l.history.Ops = append(l.history.Ops, o)
}

func (l *load) answered() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.history.Ops)
}

// judge fails the test unless all went well, and the answers have an order that explains them.
// With servers that were stopped a reply may be lost, and HTTP clients ask another one.
func (l *load) judge(stopped bool) {
	l.t.Helper()
	unknown := 0
	for i := range l.history.Ops {
		if l.history.Ops[i].Outcome == check.Unknown {
			unknown++
		}
	}
	l.t.Logf("%d operations, %d without a reply, %d HTTP requests sent again", len(l.history.Ops), unknown, l.again)
	if len(l.failed) > 0 || unknown+l.again > 0 && !stopped {
		l.t.Errorf("%d failed: %v", len(l.failed), l.failed)
	}
	for _, v := range check.All(&l.history) {
		l.t.Errorf("the history is not consistent: %v", v)
	}
}

// start runs ask until the function that it returns is called.
func (l *load) start(who string, ask func(ctx context.Context, id int)) (end func()) {
	l.mu.Lock()
	l.clients++
	id := l.clients
	l.mu.Unlock()
	ctx, stop := context.WithCancel(l.t.Context())
	done, n := make(chan struct{}), 0
	go func() {
		defer close(done)
		for ; ctx.Err() == nil; n++ {
			ask(l.t.Context(), id)
		}
	}()
	end = sync.OnceFunc(func() {
		stop()
		<-done
		l.t.Logf("%s: %d times", who, n)
	})
	l.t.Cleanup(end)
	return end
}

// connect returns nil if it has failed the test.
func (l *load) connect(servers []string, opts ...client.Option) *client.Client {
	ctx, cancel := context.WithTimeout(l.t.Context(), time.Minute)
	defer cancel()
	c, err := client.Connect(ctx, strings.Join(servers, ","), append(opts,
		client.WithBackoff(time.Millisecond, 20*time.Millisecond), client.WithSessionTimeout(10*time.Second))...)
	if err != nil {
		l.t.Error(err)
	}
	return c
}

func (l *load) ask(ctx context.Context, id int, who string, c *client.Client) {
	o := l.next(id)
	var stat client.Stat
	var data []byte
	var err error
	switch o.Kind {
	case check.Create:
		_, stat, err = c.Create(ctx, o.Path, []byte(o.Value), client.Persistent)
	case check.Set:
		stat, err = c.Set(ctx, o.Path, []byte(o.Value), -1)
	default:
		if err = c.Sync(ctx, o.Path); err == nil {
			data, stat, err = c.Get(ctx, o.Path)
		}
		o.Data = string(data)
	}
	l.note(o, who, stat, err)
}

// startClient is a Go client whose session must last.
func (l *load) startClient(who string, servers []string, opts ...client.Option) (end func()) {
	c := l.connect(servers, opts...)
	session := c.SessionID()
	stop := l.start(who, func(ctx context.Context, id int) { l.ask(ctx, id, who, c) })
	return sync.OnceFunc(func() {
		stop()
		if now := c.SessionID(); now != session {
			l.t.Errorf("%s: session %v was replaced by %v", who, session, now)
		}
		if err := c.Close(); err != nil {
			l.t.Error(err)
		}
	})
}

// startReturning is a Go client that leaves after each request, and comes back with its session, which must last.
func (l *load) startReturning(who string, servers []string, opts ...client.Option) (end func()) {
	c := l.connect(servers, opts...)
	session := c.Credentials()
	return l.start(who, func(ctx context.Context, id int) {
		l.ask(ctx, id, who, c)
		if err := c.Detach(); err != nil {
			l.t.Errorf("%s: detaching: %v", who, err)
		}
		again := l.connect(servers, append(opts, client.WithSession(session))...)
		if again == nil {
			return
		}
		if c = again; c.SessionID() != session.ID {
			l.t.Errorf("%s: session %v was replaced by %v", who, session.ID, c.SessionID())
		}
	})
}

// httpClient makes a connection for each request, with what the files hold then.
func httpClient(files client.TLSFiles) *http.Client {
	return &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{
		DisableKeepAlives: true,
		DialTLSContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			cfg, err := files.Config()
			if err != nil {
				return nil, err
			}
			cfg.ServerName, _, _ = net.SplitHostPort(addr)
			return (&tls.Dialer{Config: cfg}).DialContext(ctx, network, addr)
		},
	}}
}

// startHTTP is a client of the HTTP ports. One that stops or has no leader is no failure: it asks the next, with the
// same key.
func (l *load) startHTTP(who, scheme string, hosts []string, files client.TLSFiles) (end func()) {
	c, at := httpClient(files), 0
	return l.start(who, func(ctx context.Context, id int) {
		o := l.next(id)
		var stat znode.Stat
		last := wait.For(ctx, "an answer", wait.Patience, func() (err error) {
			url := scheme + "://" + hosts[at%len(hosts)]
			if stat, o.Data, err = httpAsk(ctx, c, &o, url, who); errors.Is(err, errElsewhere) {
				at++
				l.mu.Lock()
				l.again++
				l.mu.Unlock()
				return err
			}
			l.note(o, who, stat, err)
			return nil
		})
		if last != nil {
			l.note(o, who, stat, last)
		}
	})
}

// errElsewhere reports that the client should ask another server.
var errElsewhere = errors.New("not answered")

func httpAsk(ctx context.Context, c *http.Client, o *check.Op, url, who string) (s znode.Stat, data string, err error) {
	method := map[check.Kind]string{check.Create: "POST", check.Set: "PUT", check.Get: "GET"}[o.Kind]
	url += "/v1/znodes" + o.Path
	if o.Kind == check.Get {
		url += "?consistency=linearizable"
	}
	q, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(o.Value))
	if err != nil {
		return s, "", err
	}
	if o.Kind != check.Get {
		q.Header.Set("Idempotency-Key", fmt.Sprintf("%s-%d", who, o.ID))
	}
	resp, err := c.Do(q)
	if err != nil {
		return s, "", fmt.Errorf("%w: %w", errElsewhere, err)
	}
	defer resp.Body.Close()
	var body struct {
		Data string
		Code int32
		Stat struct {
			Czxid, Mzxid string
			Version      znode.Version
		}
	}
	err = json.NewDecoder(resp.Body).Decode(&body)
	switch {
	case err != nil || resp.StatusCode >= 500:
		return s, "", fmt.Errorf("%w: %s, %w", errElsewhere, resp.Status, err)
	case resp.StatusCode >= 400:
		return s, "", fmt.Errorf("%s: %w", resp.Status, znode.Error(body.Code))
	}
	s.Czxid, s.Mzxid, s.Version = zxid(body.Stat.Czxid), zxid(body.Stat.Mzxid), body.Stat.Version
	return s, body.Data, nil
}

func zxid(text string) znode.Zxid {
	n, _ := strconv.ParseInt(text, 0, 64)
	return znode.Zxid(n)
}
