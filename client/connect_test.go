package client

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestClient_Reconnect_StickyAndBackoff(t *testing.T) {
	withFake(t, func(t *testing.T, s *fakeServer, c *Client) {
		w := c.States()
		nextState(t, w, StateConnected)
		<-time.After(testTimeout)
		s.do(func() { s.down = true; s.dials = s.dials[:1] })
		s.cutAll()
		nextState(t, w, StateSuspended)
		<-time.After(testTimeout / 3)
		dials := get(s, &s.dials)
		if dials[0] != dials[1] {
			t.Errorf("first %s is tried, want the last good server %s", dials[1], dials[0])
		}
		// In 3 s: the pauses are 50 ms, 100, ... 2 s, each between its half and
		// itself: 6 to 8 rounds of 3 servers.
		if n := (len(dials) - 1) / 3; n < 6 || n > 8 {
			t.Errorf("%d rounds in %v, want 6 to 8: %v", n, testTimeout/3, dials)
		}
		s.do(func() { s.down = false })
		nextState(t, w, StateReconnected)
	})
}

func TestConnect_NoServer_ErrorNamesLastAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeServer(t)
		s.down = true
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := Connect(ctx, "10.0.0.1", WithDialer(s.dial))
		wantErr(t, err, context.DeadlineExceeded, errRefused)
		s.stop()
	})
}

func TestConnect_WrongCredentials_Final(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeServer(t)
		s.credentials = map[string]bool{"u:right": true}
		_, err := Connect(t.Context(), "10.0.0.1", WithDialer(s.dial),
			WithAuth("digest", []byte("u:wrong")))
		wantErr(t, err, ErrAuthFailed)
		s.stop()
	})
}

func TestClient_Close_WithoutConnectionSaysSo(t *testing.T) {
	withFake(t, func(t *testing.T, s *fakeServer, c *Client) {
		s.do(func() { s.down = true })
		s.cutAll()
		synctest.Wait()
		p := c.Async().Set(t.Context(), "/", nil, AnyVersion)
		wantErr(t, c.Close(), ErrNotClosed)
		_, err := p.Wait(t.Context())
		wantErr(t, err, ErrClosed)
		must(t, c.Close())
	})
}

func TestClient_Close_SilentServerDoesNotHang(t *testing.T) {
	withFake(t, func(t *testing.T, s *fakeServer, c *Client) {
		s.do(func() { s.silent = true })
		p := c.Async().Set(t.Context(), "/", nil, AnyVersion)
		start := time.Now()
		wantErr(t, c.Close(), ErrNotClosed)
		if d := time.Since(start); d > maxCloseWait {
			t.Errorf("Close took %v, want at most %v", d, maxCloseWait)
		}
		_, err := p.Wait(t.Context())
		wantErr(t, err, ErrClosed, ErrOutcomeUnknown)
	})
}

// A client says that no server can be reached: after one round, and then more and more rarely.
func TestConnect_NoServer_Warns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log lockedBuffer
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Second)
		defer cancel()
		_, err := Connect(ctx, "10.0.0.1,10.0.0.2", withSeed(1, 2),
			WithDialer(func(context.Context, string, string) (net.Conn, error) { return nil, errRefused }),
			WithLogger(slog.New(warnings{slog.NewTextHandler(&log, nil)})))
		wantErr(t, err, context.DeadlineExceeded, errRefused)
		lines := strings.Split(strings.TrimSpace(log.String()), "\n")
		// At 0, from 10, from 20, from 40 and from 80 seconds on.
		if len(lines) != 5 || !strings.Contains(lines[0], "server=10.0.0.1,10.0.0.2 for=0s error=") {
			t.Errorf("the log of 100 seconds without a server is %q, want 5 warnings, the first at once", lines)
		}
	})
}

// By default that goes to the program's own logger; a nil logger silences it.
func TestWithLogger(t *testing.T) {
	var log lockedBuffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	defer slog.SetDefault(before)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for want, opts := range map[string][]Option{"level=WARN msg=loud\n": nil, "": {WithLogger(nil)}} {
		c, err := Connect(ctx, "10.0.0.1", append(opts, WithBackgroundConnect(),
			WithDialer(func(ctx context.Context, _, _ string) (net.Conn, error) { <-ctx.Done(); return nil, ctx.Err() }))...)
		must(t, err)
		log.Reset()
		c.cfg.logger.Info("quiet")
		c.cfg.logger.Warn("loud")
		if got := log.String(); !strings.HasSuffix(got, want) || (got == "") != (want == "") {
			t.Errorf("slog.Default has %q, want %q", got, want)
		}
		must(t, c.Close())
	}
}

// lockedBuffer is a buffer for the client's goroutines and the test's.
type lockedBuffer struct {
	mu sync.Mutex
	bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.Write(p)
}

// A port of HTTP is no reason to wait: that of Go's own server, which would wait for a line's end, and that of any
// address of a name.
func TestConnect_PortOfHTTP_FailsAtOnce(t *testing.T) {
	web := httptest.NewServer(http.NotFoundHandler())
	defer web.Close()
	_, port, err := net.SplitHostPort(web.Listener.Addr().String())
	must(t, err)
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		if strings.HasPrefix(address, "10.") {
			return nil, errRefused
		}
		return new(net.Dialer).DialContext(ctx, network, address)
	}
	names := lookups{"web": {"10.0.0.1", "127.0.0.1"}}
	for _, background := range []bool{false, true} {
		opts := []Option{WithDialer(dial), WithResolver(names.lookup)}
		if background {
			opts = append(opts, WithBackgroundConnect())
		}
		c, err := Connect(t.Context(), "web:"+port+",127.0.0.1:"+port, opts...)
		if background {
			must(t, err)
			_, _, err = c.Get(t.Context(), "/")
			_ = c.Close()
		}
		wantErr(t, err, ErrPortSpeaksHTTP)
	}
}

// One wrong address does not end the search for the others.
func TestConnect_OnePortOfHTTP_OthersAreAwaited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeServer(t)
		defer s.stop()
		s.down = true
		dial := func(ctx context.Context, network, address string) (net.Conn, error) {
			if address != "10.0.0.1:2181" {
				return s.dial(ctx, network, address)
			}
			ours, theirs := net.Pipe()
			go func() {
				defer ours.Close()
				_, _ = ours.Read(make([]byte, 1<<10))
				_, _ = ours.Write([]byte("HTTP/1.1 400 Bad Request\r\n\r\n"))
			}()
			return theirs, nil
		}
		defer time.AfterFunc(time.Minute, func() { s.do(func() { s.down = false }) }).Stop()
		c, err := Connect(t.Context(), "10.0.0.1,10.0.0.2", WithDialer(dial), WithLogger(nil))
		must(t, err)
		must(t, c.Close())
	})
}

// lookups is a resolver whose answers change.
type lookups map[string][]string

func (l lookups) lookup(_ context.Context, host string) ([]string, error) {
	if l[host] == nil {
		return nil, errors.New("no such host")
	}
	return slices.Clone(l[host]), nil
}

// tried lists the addresses of a round, and counts the names that fail.
func tried(t *testing.T, h *hosts) (addresses []string, failed int) {
	t.Helper()
	for target, err := range h.round(t.Context(), time.Second) {
		if err != nil {
			failed++
			continue
		}
		addresses = append(addresses, target.address)
	}
	return addresses, failed
}

func newTestHosts(t *testing.T, seed uint64, l lookups, servers string) *hosts {
	t.Helper()
	list, _, err := parseConnectString(servers)
	if err != nil {
		t.Fatal(err)
	}
	return newHosts(list, l.lookup, rand.New(rand.NewPCG(seed, 0)))
}

// A name is looked up in every round: the client finds a server that has moved,
// and a name that fails does not delay the others.
func TestHosts_Round_NamesAreLookedUpAnew(t *testing.T) {
	l := lookups{"a": {"10.0.0.1"}, "b": {"10.0.0.2", "10.0.0.3"}}
	h := newTestHosts(t, 1, l, "a,b:2000,10.0.0.9")
	for _, step := range []struct {
		change func()
		want   []string
		failed int
	}{
		{func() {}, []string{"10.0.0.1:2181", "10.0.0.2:2000", "10.0.0.3:2000", "10.0.0.9:2181"}, 0},
		{func() { l["a"] = []string{"10.0.0.7"} },
			[]string{"10.0.0.2:2000", "10.0.0.3:2000", "10.0.0.7:2181", "10.0.0.9:2181"}, 0},
		{func() { delete(l, "b") }, []string{"10.0.0.7:2181", "10.0.0.9:2181"}, 1},
		{func() { l["b"] = []string{"::1"} }, []string{"10.0.0.7:2181", "10.0.0.9:2181", "[::1]:2000"}, 0},
	} {
		step.change()
		got, failed := tried(t, h)
		slices.Sort(got)
		if !slices.Equal(got, step.want) || failed != step.failed {
			t.Errorf("tried %v, %d failed; want %v, %d", got, failed, step.want, step.failed)
		}
	}
}

// Clients spread over the servers: each begins with any of them, in an order of its
// own, also among the addresses of one name.
func TestHosts_Round_Shuffled(t *testing.T) {
	const trials = 600
	first := map[string]int{}
	l := lookups{"many": {"10.0.0.1", "10.0.0.2", "10.0.0.3"}}
	for seed := range uint64(trials) {
		for _, servers := range []string{"10.1.0.1,10.1.0.2,10.1.0.3", "many"} {
			got, _ := tried(t, newTestHosts(t, seed, l, servers))
			first[got[0]]++
		}
	}
	for address, n := range first {
		// A third each; the seeds are fixed, so this does not change.
		if n < trials/4 || n > trials/2 {
			t.Errorf("%s is the first of %d rounds in %d, want about a third", address, n, trials)
		}
	}
	if len(first) != 6 {
		t.Errorf("the first are %v, want any of six", first)
	}
}

// Sticky: the last server that worked is tried first, once; a round that goes on
// begins after the server that accepted.
func TestHosts_Round_LastGoodServerFirst(t *testing.T) {
	h := newTestHosts(t, 1, nil, "10.0.0.1,10.0.0.2,10.0.0.3")
	all, _ := tried(t, h)
	h.preferred = target{host: "10.0.0.2", address: "10.0.0.2:2181"}
	got, _ := tried(t, h)
	if got[0] != "10.0.0.2:2181" || len(got) != len(all) {
		t.Errorf("the round is %v, want the good one first and all once", got)
	}
	h.preferred = target{}
	var accepted string
	for target, err := range h.round(t.Context(), time.Second) {
		if err != nil {
			t.Fatal(err)
		}
		accepted = target.address
		break
	}
	if next, _ := tried(t, h); next[0] == accepted || next[2] != accepted {
		t.Errorf("after %s was taken the round is %v, want it last", accepted, next)
	}
}

// The servers of a service are looked up in every round, in the order that DNS gives them; while DNS fails, or has none,
// those that are known are tried.
func TestHosts_Round_ServersOfAService(t *testing.T) {
	var records []*net.SRV
	var broken error
	h := newHosts(nil, lookups{"zk1.example.org": {"10.0.0.1"}, "zk2.example.org": {"10.0.0.2"}}.lookup,
		rand.New(rand.NewPCG(1, 0)))
	h.service = "_zookeeper._tcp.example.org"
	h.lookupSRV = func(_ context.Context, name string) ([]*net.SRV, error) {
		if name != h.service {
			t.Errorf("looked up %q, want %q", name, h.service)
		}
		return records, broken
	}
	for _, step := range []struct {
		change func()
		want   []string
		failed int
	}{
		{func() {}, nil, 1},
		{func() { records = []*net.SRV{{Target: "zk2.example.org.", Port: 2182}, {Target: ".", Port: 2181}} },
			[]string{"10.0.0.2:2182"}, 0},
		{func() {
			records = []*net.SRV{{Target: "zk1.example.org.", Port: 2181}, {Target: "zk2.example.org.", Port: 2182}}
		}, []string{"10.0.0.1:2181", "10.0.0.2:2182"}, 0},
		{func() { records, broken = nil, errors.New("no answer") }, []string{"10.0.0.1:2181", "10.0.0.2:2182"}, 1},
	} {
		step.change()
		if got, failed := tried(t, h); !slices.Equal(got, step.want) || failed != step.failed {
			t.Errorf("tried %v, %d failed; want %v, %d", got, failed, step.want, step.failed)
		}
	}
}

func TestParseServers(t *testing.T) {
	for s, want := range map[string]struct {
		service, chroot string
		servers         int
	}{
		"dns-srv://_zookeeper._tcp.example.org":       {"_zookeeper._tcp.example.org", "", 0},
		"dns-srv://_zookeeper._tcp.example.org/kafka": {"_zookeeper._tcp.example.org", "/kafka", 0},
		"a,b/c": {"", "/c", 2},
	} {
		list, service, chroot, err := parseServers(s)
		if err != nil || service != want.service || chroot != want.chroot || len(list) != want.servers {
			t.Errorf("%q: %v, service %q, chroot %q, %v; want %+v", s, list, service, chroot, err, want)
		}
	}
	for _, s := range []string{"dns-srv://", "dns-srv://a,b", "dns-srv://a:2181", "dns-srv:///a", "a,dns-srv://b"} {
		if list, service, _, err := parseServers(s); err == nil {
			t.Errorf("%q reads as %v, service %q", s, list, service)
		}
	}
}

// Whatever is given as servers, it is refused or has hosts, each with a port, and a
// chroot that is a path.
func FuzzParseConnectString(f *testing.F) {
	for _, s := range []string{"a", "a:1,b/c", "dns-srv://a/b", "[::1]:2181,[fe80::1]/", "1.2.3.4:65536", ":1", "a,,b", "/x", "a/../b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		hosts, service, chroot, err := parseServers(s)
		if err != nil {
			return
		}
		if (len(hosts) == 0) == (service == "") || chroot != "" && (chroot[0] != '/' || chroot == "/") {
			t.Errorf("%q reads as hosts %v, chroot %q; want hosts, and no chroot or a path", s, hosts, chroot)
		}
		for _, h := range hosts {
			if h.host == "" || h.port == "" {
				t.Errorf("%q reads as %+v, want a host and a port", s, h)
			}
		}
	})
}
