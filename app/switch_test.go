package app_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/app"
	"github.com/zk-lite/zk-lite/app/config"
	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/internal/testkit/certs"
	"github.com/zk-lite/zk-lite/internal/testkit/ports"
	"github.com/zk-lite/zk-lite/internal/testkit/tier"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
)

// writer is a client that writes without a pause, and whose session must last.
type writer struct {
	c       *client.Client
	session string
	stop    context.CancelFunc
	ended   chan struct{}
	done    int // acknowledged writes
	unknown int // whose reply did not come
	failed  []error
}

func startWriter(t *testing.T, servers, path string, opts ...client.Option) *writer {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c, err := client.Connect(ctx, servers, append(opts, client.WithBackoff(time.Millisecond, 20*time.Millisecond),
		client.WithSessionTimeout(10*time.Second))...)
	if err != nil {
		t.Fatal(err)
	}
	w := &writer{c: c, session: fmt.Sprint(c.SessionID()), ended: make(chan struct{})}
	ctx, w.stop = context.WithCancel(t.Context())
	if _, _, err := c.Create(ctx, path, nil, client.Persistent); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(w.ended)
		for ctx.Err() == nil {
			_, err := c.Set(ctx, path, nil, -1)
			switch {
			case err == nil:
				w.done++
			case errors.Is(err, client.ErrOutcomeUnknown): // a stopped server took the reply with it
				w.unknown++
			case ctx.Err() == nil:
				w.failed = append(w.failed, err)
			}
		}
	}()
	return w
}

// end stops the writer, and fails the test unless all went well.
func (w *writer) end(t *testing.T, what string) {
	t.Helper()
	w.stop()
	<-w.ended
	if now := fmt.Sprint(w.c.SessionID()); now != w.session {
		t.Errorf("%s: session %s was replaced by %s", what, w.session, now)
	}
	if len(w.failed) > 0 || w.done == 0 {
		t.Errorf("%s: %d writes done, %d without a reply, %d failed: %v", what, w.done, w.unknown, len(w.failed), w.failed)
	}
	t.Logf("%s: %d writes done, %d without a reply", what, w.done, w.unknown)
	if err := w.c.Close(); err != nil {
		t.Error(err)
	}
}

// The three steps of docs/security.md, server by server, under load: no session expires, and no write fails.
func TestSwitch_PlainToTLS(t *testing.T) {
	tier.Seconds(t)
	const n = 3
	ca := certs.Authority(t, "ca")
	port, all := ports.Take(t, 2*n), make([]app.Options, n)
	var members []config.Server
	var hosts []string
	for i := range n {
		members = append(members, config.Server{ID: i + 1, Host: "127.0.0.1", PeerPort: port[2*i], Role: config.Participant})
		hosts = append(hosts, fmt.Sprintf("127.0.0.1:%d", port[2*i+1]))
	}
	servers := make([]*app.Server, n)
	for i := range n {
		o := secured(t, ca)
		o.Settings.MyID, o.Settings.Standalone, o.Settings.Servers = i+1, false, slices.Clone(members)
		o.Settings.ClientPort = port[2*i+1]
		all[i] = o
	}
	for i := range n {
		servers[i] = open(t, all[i])
	}
	serving := func(i int) { wait.Until(t, "clients are served", servers[i].Server().Serving) }
	t.Cleanup(func() {
		for _, s := range servers {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
	})
	restart := func(change func(*config.Settings)) {
		t.Helper()
		for i := range n {
			serving(i)
			if err := servers[i].Close(); err != nil {
				t.Fatal(err)
			}
			change(&all[i].Settings)
			servers[i] = open(t, all[i])
			serving(i)
		}
	}
	for i := range n {
		serving(i)
	}
	dir := t.TempDir()
	plain := startWriter(t, strings.Join(hosts, ","), "/plain")
	restart(func(s *config.Settings) { s.PortUnification = true })
	secure := startWriter(t, strings.Join(hosts, ","), "/secure", client.WithTLSFiles(client.TLSFiles{
		CA:          certs.Write(t, dir+"/ca.pem", ca.CertPEM()),
		Certificate: certs.Write(t, dir+"/client.pem", ca.Issue(t, "client", nil).KeyPEM(t)),
	}))
	plain.end(t, "without TLS")
	restart(func(s *config.Settings) {
		s.SecureClientPort, s.SecureClientPortAddress, s.ClientPort = s.ClientPort, s.ClientPortAddress, config.NoPort
		s.PortUnification = false
	})
	secure.end(t, "with TLS")
	if got, err := asks(t, servers[0].ClientAddr(), nil, "ruok"); !strings.HasPrefix(got, "\x15\x03") {
		t.Errorf("without TLS at the end: %q, %v", got, err)
	}
}
