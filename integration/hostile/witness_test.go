//go:build privileged

package hostile_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/zk-lite/zk-lite/integration/cluster"
	"github.com/zk-lite/zk-lite/internal/wire"
	"github.com/zk-lite/zk-lite/znode"
)

// sessionTimeout is the witnesses', and the longest that any of them may wait.
const sessionTimeout = 10 * time.Second

// witness is a client with few requests, one at a time, which measures how long it waits. It uses one server and
// reconnects to it as soon as it can, with the same session.
type witness struct {
	name string
	path string            // the znode that it writes
	ask  func(n int) error // writes n, and reads it; an error that is errFinal is a harm that remains
	stop func()

	done chan struct{}
	quit chan struct{}

	mu      sync.Mutex // protects the fields below
	began   time.Time  // begin of the present wait; zero: it has ended
	took    []time.Duration
	rounds  int
	longest time.Duration
	harm    error
}

var errFinal = errors.New("harmed for good")

// watchOver starts the witnesses.
func (a *arena) watchOver() {
	for _, s := range a.e.Servers() {
		a.witnesses = append(a.witnesses, sessionWitness(s), httpWitness(s))
	}
	for _, w := range a.witnesses {
		w.done, w.quit = make(chan struct{}), make(chan struct{})
		w.began = time.Now()
		go w.run()
	}
}

// rest ends the witnesses.
func (a *arena) rest() {
	for _, w := range a.witnesses {
		close(w.quit)
		w.stop()
		<-w.done
	}
}

func (w *witness) run() {
	defer close(w.done)
	for n := 1; ; {
		err := w.ask(n)
		select {
		case <-w.quit:
			return
		default:
		}
		w.mu.Lock()
		if took := time.Since(w.began); err == nil {
			n++
			w.rounds++
			w.took = append(w.took, took)
			w.longest = max(w.longest, took)
			w.began = time.Now()
		}
		if errors.Is(err, errFinal) {
			w.harm = err
			w.mu.Unlock()
			return
		}
		w.mu.Unlock()
		select {
		case <-w.quit:
			return
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// wait is the longest so far.
func (w *witness) wait() (longest time.Duration, rounds int, harm error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return max(w.longest, time.Since(w.began)), w.rounds, w.harm
}

// forget begins a new measurement.
func (w *witness) forget() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.longest, w.took, w.began = 0, nil, time.Now()
}

// late is the 99th percentile of all that the witnesses waited for.
func (a *arena) late() time.Duration {
	var all []time.Duration
	for _, w := range a.witnesses {
		w.mu.Lock()
		all = append(all, w.took...)
		w.mu.Unlock()
	}
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return all[len(all)*99/100]
}

// sessionClient is a session at one server, on one connection after the other.
type sessionClient struct {
	s       *cluster.Server
	session cluster.Session

	mu      sync.Mutex // protects the fields below
	c       *cluster.Conn
	stopped bool
}

// sessionWitness is at the ZooKeeper port.
func sessionWitness(s *cluster.Server) *witness {
	k := &sessionClient{s: s}
	return &witness{name: fmt.Sprintf("the session at server %d", s.ID), path: k.path(), ask: k.ask, stop: k.stop}
}

func (k *sessionClient) path() string { return fmt.Sprintf("%s/session-%d", others, k.s.ID) }

func (k *sessionClient) ask(n int) error {
	path, data := k.path(), fmt.Sprint(n)
	if _, err := k.do(wire.OpSetData, &wire.SetDataRequest{Path: path, Data: []byte(data), Version: znode.AnyVersion}); err != nil {
		return err
	}
	r, err := k.do(wire.OpGetData, &wire.GetDataRequest{Path: path})
	if err == nil && string(r.(*wire.GetDataResponse).Data) != data {
		err = fmt.Errorf("%w: it reads %q after it wrote %q", errFinal, r.(*wire.GetDataResponse).Data, data)
	}
	return err
}

func (k *sessionClient) do(op wire.OpCode, q wire.Request) (wire.Response, error) {
	c, err := k.connection()
	if err != nil {
		return nil, err
	}
	r, err := c.Do(op, q)
	k.session = c.State()
	if errors.Is(err, cluster.ErrNoReply) {
		k.mu.Lock()
		k.c = nil
		k.mu.Unlock()
	} else if err != nil {
		err = fmt.Errorf("%w: %s is answered by %w", errFinal, op, err)
	}
	return r, err
}

// connection returns the one there is, or another one of the same session.
func (k *sessionClient) connection() (*cluster.Conn, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.c != nil {
		return k.c, nil
	}
	c, err := cluster.Dial(k.s.Addr(), cluster.ConnectOptions{
		Timeout: sessionTimeout, Session: k.session, HandshakeTimeout: sessionTimeout})
	switch {
	case errors.Is(err, cluster.ErrExpired) && k.session.ID != 0:
		return nil, fmt.Errorf("%w: its session has expired", errFinal)
	case err != nil:
		return nil, err
	case k.stopped:
		c.Drop()
	}
	c.Send(wire.OpAuth, digest(ownerCredentials))
	k.c, k.session = c, c.State()
	return c, nil
}

func (k *sessionClient) stop() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.stopped = true; k.c != nil {
		k.c.Drop()
	}
}

// httpWitness is at the HTTP port, with a connection for each request, as probes are.
func httpWitness(s *cluster.Server) *witness {
	client := &http.Client{
		Timeout:   sessionTimeout,
		Transport: &http.Transport{DisableKeepAlives: true},
	}
	user, password, _ := strings.Cut(ownerCredentials, ":")
	do := func(method, path, body string) error {
		q, err := http.NewRequest(method, "http://"+s.HTTPAddr()+path, strings.NewReader(body))
		if err != nil {
			return err
		}
		q.SetBasicAuth(user, password)
		r, err := client.Do(q)
		if err != nil {
			return err
		}
		defer r.Body.Close()
		if r.StatusCode != http.StatusOK {
			return fmt.Errorf("%s %s: %s", method, path, r.Status)
		}
		return nil
	}
	path := fmt.Sprintf("%s/http-%d", others, s.ID)
	return &witness{
		name: fmt.Sprintf("the HTTP client of server %d", s.ID),
		path: path,
		ask: func(n int) error {
			if err := do(http.MethodGet, "/livez", ""); err != nil {
				return err
			}
			return do(http.MethodPut, "/v1/znodes"+path, fmt.Sprint(n))
		},
		stop: client.CloseIdleConnections,
	}
}
