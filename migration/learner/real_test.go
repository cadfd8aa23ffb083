//go:build interop

package learner

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/internal/jute"
	"github.com/zk-lite/zk-lite/internal/testkit/certs"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
	"github.com/zk-lite/zk-lite/internal/testkit/zookeeper"
	"github.com/zk-lite/zk-lite/migration/replica"
	"github.com/zk-lite/zk-lite/znode"
)

// A learner follows real ensembles under load, while their leaders are killed. Each digest that a transaction brings is
// that of the state after it, and in the end a client sees the same as the state has.
func TestReal_Follow(t *testing.T) {
	for _, test := range []struct {
		name      string
		options   zookeeper.Options
		observers bool // of followers, not of the leader
		tls, sasl bool
		digests   bool
	}{
		{name: "3.4", options: zookeeper.Options{Version: zookeeper.V34}},
		{name: "3.5", options: zookeeper.Options{Version: zookeeper.V35}},
		{name: "3.6", options: zookeeper.Options{Version: zookeeper.V36}, digests: true},
		{name: "3.7", options: zookeeper.Options{Version: zookeeper.V37}, digests: true},
		{name: "3.8", options: zookeeper.Options{Version: zookeeper.V38}, digests: true},
		{name: "3.9", options: zookeeper.Options{Version: zookeeper.V39}, digests: true},
		{name: "Debian", digests: true},
		{name: "observerMasterPort", options: zookeeper.Options{Version: zookeeper.V39,
			Config: []string{"observerMasterPort=$PORT"}}, observers: true, digests: true},
		{name: "TLS", options: zookeeper.Options{Version: zookeeper.V39}, tls: true, digests: true},
		{name: "SASL", options: zookeeper.Options{Version: zookeeper.V39}, sasl: true, digests: true},
	} {
		t.Run(test.name, func(t *testing.T) {
			cfg := Config{ID: 200}
			test.options.Servers = 3
			if test.tls {
				authority := certs.Authority(t, "tests")
				test.options.WithTLS(t, authority)
				cfg.TLS = quorumTLS(t, authority)
			}
			if test.sasl {
				test.options.WithSASL(t)
				cfg.SASL = &SASL{User: zookeeper.QuorumUser, Password: zookeeper.QuorumPassword}
			}
			e := zookeeper.Run(t, test.options)
			for _, s := range e.Servers {
				address := s.Quorum
				if test.observers {
					address = fmt.Sprintf("127.0.0.1:%d", s.Port)
				}
				cfg.Servers = append(cfg.Servers, address)
			}
			m := newMirror(cfg)
			stop := m.start(t)
			m.waitFollowed(t, 1)
			stopLoad := m.load(t)
			m.waitFollowed(t, 500)
			cfg.ID++
			late := newMirror(cfg) // its snapshot is written while there is load
			stopLate := late.start(t)
			for range 2 {
				m.waitFollowed(t, 500)
				leader := e.Leader()
				leader.Kill()
				m.waitFollowed(t, 500)
				leader.Start()
				leader.WaitServing()
			}
			m.waitFollowed(t, 500)
			stopLoad()
			m.sync(t)
			m.revalidate(t)
			late.sync(t)
			stopLate()
			stop()
			m.check(t, e, test.digests)
			late.checkSame(t, m)
		})
	}
}

func quorumTLS(t *testing.T, authority *certs.Pair) func(string) *tls.Config {
	pem := authority.Issue(t, "learner", nil).KeyPEM(t)
	pair, err := tls.X509KeyPair(pem, pem)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority.CertPEM())
	return func(string) *tls.Config {
		return &tls.Config{Certificates: []tls.Certificate{pair}, RootCAs: roots, MinVersion: tls.VersionTLS12}
	}
}

// mirror is a Handler that keeps a state in step with an ensemble.
type mirror struct {
	l *Learner

	mu                                      sync.Mutex // protects the fields below
	recorder                                recorder
	followed, compared, snapshots, restarts int
	synced                                  int
	answered                                map[int32]replica.Op // by cxid: of our session
	revalidated                             []string
	truncated                               error
	ends                                    []string
	last                                    string
}

func newMirror(cfg Config) *mirror { return &mirror{l: New(cfg), answered: map[int32]replica.Op{}} }

// pause keeps loops from being busy.
const pause = 20 * time.Millisecond

// ourSession is that of load.
const ourSession znode.SessionID = 200<<56>>8 | 0x1234

func (m *mirror) Leader(l Leader) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.synced = 0
	return m.recorder.Leader(l)
}

func (m *mirror) Snapshot(s *replica.Replica) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.snapshots++
	m.followed++
	return m.recorder.Snapshot(s)
}

func (m *mirror) Transaction(raw []byte, x *replica.Txn) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.followed++
	if x.HasDigest {
		m.compared++
	}
	if x.Session == ourSession {
		m.answered[x.Cxid] = x.Op
	}
	return m.recorder.Transaction(raw, x)
}

func (m *mirror) Revalidated(id znode.SessionID, valid bool) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.revalidated = append(m.revalidated, fmt.Sprintf("%v %v", id, valid))
	return nil
}

func (m *mirror) Synced() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.synced++
	return nil
}

// start follows until stop is called, from wherever the last connection has ended.
func (m *mirror) start(t *testing.T) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			m.mu.Lock()
			from := m.recorder.position
			m.mu.Unlock()
			err := m.l.Follow(ctx, from, m)
			m.mu.Lock()
			m.last = err.Error()
			if !errors.Is(err, ErrNoLeader) {
				m.ends = append(m.ends, err.Error())
			}
			switch lost := new(TruncatedError); {
			case errors.As(err, &lost):
				m.truncated = err
				cancel()
			case errors.Is(err, ErrGap), errors.Is(err, ErrFar):
				m.restarts++
				m.recorder.position.Zxid = 0
			}
			m.mu.Unlock()
			if errors.Is(err, ErrNoLeader) {
				_ = wait.For(ctx, "", pause, func() error { return err })
			}
		}
	}()
	stop = func() { cancel(); <-done }
	t.Cleanup(stop)
	return stop
}

// waitFollowed waits for n more transactions.
func (m *mirror) waitFollowed(t *testing.T, n int) {
	t.Helper()
	m.mu.Lock()
	goal := m.followed + n
	m.mu.Unlock()
	wait.Succeeds(t, "transactions arrive", func() error {
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.followed < goal {
			return fmt.Errorf("%d transactions, want %d; the connections ended with %q, and last %s", m.followed, goal,
				m.ends, m.last)
		}
		return nil
	})
}

// sync waits until all that the leader has proposed has arrived.
func (m *mirror) sync(t *testing.T) {
	t.Helper()
	wait.Succeeds(t, "sync", func() error {
		m.mu.Lock()
		before := m.synced
		m.mu.Unlock()
		if err := m.l.Sync(ourSession, 0, "/"); err != nil {
			return err
		}
		return wait.For(context.Background(), "the answer", wait.Patience, func() error {
			m.mu.Lock()
			defer m.mu.Unlock()
			if m.synced == before {
				return errors.New("none")
			}
			return nil
		})
	})
}

// revalidate asks for a session that lives and for one that never did.
func (m *mirror) revalidate(t *testing.T) {
	t.Helper()
	const never = ourSession + 1
	if err := errors.Join(m.l.Revalidate(ourSession, 30000), m.l.Revalidate(never, 30000)); err != nil {
		t.Fatal(err)
	}
	want := []string{ourSession.String() + " true", never.String() + " false"}
	wait.Succeeds(t, "the sessions are revalidated", func() error {
		m.mu.Lock()
		defer m.mu.Unlock()
		if !slices.Equal(m.revalidated, want) {
			return fmt.Errorf("got %q, want %q", m.revalidated, want)
		}
		return nil
	})
}

// load writes through the learner until stop is called: a session with znodes of its own.
func (m *mirror) load(t *testing.T) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		var cxid int32
		for ctx.Err() == nil {
			if cxid%1000 == 0 { // the first may be lost with its leader
				_ = m.l.Request(ourSession, 0, int32(replica.OpCreateSession), jute.AppendInt32(nil, 30000), nil)
			}
			cxid++
			op, record := randomWrite(cxid)
			err := m.l.Request(ourSession, cxid, op, record, []znode.ID{{Scheme: "ip", ID: "127.0.0.1"}})
			if err == nil {
				err = m.l.Touch(ourSession, 30000)
			}
			if err != nil || cxid%20 == 0 {
				_ = wait.For(ctx, "", pause, func() error { return errors.New("the load is bounded") })
			}
		}
	}()
	return func() { cancel(); <-done }
}

// randomWrite is a request of some kind, which may fail.
func randomWrite(n int32) (op int32, record []byte) {
	path := fmt.Sprintf("/n%d", uint32(n)*2654435761>>16%200) // as good as random
	switch n % 5 {
	case 0:
		return int32(replica.OpDelete), jute.AppendInt32(jute.AppendUstring(nil, path), -1)
	case 1:
		return int32(replica.OpSetData), jute.AppendInt32(jute.AppendBuffer(jute.AppendUstring(nil, path),
			fmt.Appendf(nil, "é%d", n)), -1)
	case 2:
		path += "é"
	}
	b := jute.AppendBuffer(jute.AppendUstring(nil, path), fmt.Append(nil, n))
	b = jute.AppendInt32(jute.AppendInt32(b, 1), 31)
	b = jute.AppendUstring(jute.AppendUstring(b, "world"), "anyone")
	return int32(replica.OpCreate), jute.AppendInt32(b, n%2) // half are ephemeral
}

// checkSame compares the states of two mirrors.
func (m *mirror) checkSame(t *testing.T, other *mirror) {
	t.Helper()
	ours, theirs := &m.recorder, &other.recorder
	t.Logf("%d followed after %q, %d digests", m.followed, ours.calls[:2], m.compared)
	if ours.wrong > 0 || m.snapshots != 1 || m.restarts > 0 || m.followed < 500 {
		t.Errorf("the second: %d followed, %d snapshots, %d restarts, %d digests that differ, want one snapshot, and none",
			m.followed, m.snapshots, m.restarts, ours.wrong)
	}
	if ours.state.Zxid != theirs.state.Zxid || ours.state.Digest() != theirs.state.Digest() {
		t.Errorf("the second: digest %x at %v, want %x at %v", ours.state.Digest(), ours.state.Zxid,
			theirs.state.Digest(), theirs.state.Zxid)
	}
}

// check compares the state with what clients see.
func (m *mirror) check(t *testing.T, e *zookeeper.Ensemble, digests bool) {
	t.Helper()
	r := &m.recorder
	t.Logf("%d followed, %d digests, %d of our requests answered, %q at first, ends: %s", m.followed, m.compared,
		len(m.answered), r.calls[:2], strings.Join(m.ends, "\n"))
	if m.truncated != nil || m.restarts > 0 || m.snapshots > 1 || r.wrong > 0 {
		t.Errorf("got %v, %d restarts, %d snapshots, %d digests that differ, want none but one snapshot", m.truncated,
			m.restarts, m.snapshots, r.wrong)
	}
	if (m.compared > 1000) != digests || len(m.answered) < 1000 {
		t.Errorf("compared %d digests, the version has them: %v; %d of our requests answered, want 1000 at least",
			m.compared, digests, len(m.answered))
	}
	c, err := client.Connect(t.Context(), e.Leader().Address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.Sync(t.Context(), "/"); err != nil {
		t.Fatal(err)
	}
	seen := 0
	snapshot := r.state.Tree.Snapshot()
	defer snapshot.Release()
	err = snapshot.Walk(func(rec *znode.Record) error {
		if strings.HasPrefix(rec.Path, znode.SystemPath) {
			return nil
		}
		seen++
		data, stat, err := c.Get(t.Context(), rec.Path)
		ours, _ := r.state.Tree.Exists(rec.Path, nil)
		if err != nil || !bytes.Equal(data, rec.Data) || rec.Path != "/" && stat != ours {
			t.Errorf("%s: a client sees %q, %+v, %v; the state has %q, %+v", rec.Path, data, stat, err, rec.Data, ours)
		}
		return nil
	})
	children, _, listErr := c.Children(t.Context(), "/")
	if err != nil || listErr != nil || len(children) != seen || seen < 100 {
		t.Errorf("compared %d znodes, %v; a client sees %d, %v", seen, err, len(children), listErr)
	}
}
