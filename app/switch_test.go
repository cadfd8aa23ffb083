package app_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/app/config"
	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/internal/testkit/certs"
	"github.com/zk-lite/zk-lite/internal/testkit/ports"
	"github.com/zk-lite/zk-lite/internal/testkit/tier"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
)

// served are three servers with ports for clients that stay over restarts, on each server's own address.
type served struct {
	*peers
	client, http []string // HOST:PORT
}

func newServed(t *testing.T) *served {
	s := &served{peers: newPeers(t)}
	port := ports.Take(t, 2*len(s.options))
	for i := range s.options {
		o := &s.options[i].Settings
		o.ZooKeeper.Words = []string{"*"}
		o.ClientPort, o.AdminPort = port[2*i], port[2*i+1]
		o.ClientPortAddress, o.SecureClientPortAddress, o.AdminAddress = host(i), host(i), host(i)
		o.TLS.Key, o.TLS.Trust = o.PeerTLS.Key, o.PeerTLS.Trust
		s.client = append(s.client, fmt.Sprintf("%s:%d", host(i), port[2*i]))
		s.http = append(s.http, fmt.Sprintf("%s:%d", host(i), port[2*i+1]))
	}
	return s
}

// begin starts the servers, which end with the test.
func (s *served) begin(t *testing.T) {
	for i := range s.servers {
		s.start(t, i)
	}
	t.Cleanup(func() {
		for i := range s.servers {
			s.stop(t, i)
		}
	})
	s.serve(t)
}

// restart changes the settings of one server after the other.
func (s *served) restart(t *testing.T, change func(*config.Settings)) {
	t.Helper()
	for i := range s.servers {
		s.stop(t, i)
		change(&s.options[i].Settings)
		s.start(t, i)
		s.serve(t)
	}
}

// clientFiles are those of a client with a certificate.
func clientFiles(t *testing.T, ca *certs.Pair) client.TLSFiles {
	dir := t.TempDir()
	return client.TLSFiles{
		CA:          certs.Write(t, dir+"/ca.pem", ca.CertPEM()),
		Certificate: certs.Write(t, dir+"/client.pem", ca.Issue(t, "client", nil).KeyPEM(t)),
	}
}

// The three steps of docs/security.md, server by server, under load on both ports: no session expires, and nothing
// fails.
func TestSwitch_PlainToTLS(t *testing.T) {
	tier.Seconds(t)
	s := newServed(t)
	s.begin(t)
	files, l := clientFiles(t, s.ca), newLoad(t)
	plain := l.startClient("client without TLS", s.client)
	plainHTTP := l.startHTTP("HTTP without TLS", "http", s.http, client.TLSFiles{})
	s.restart(t, func(o *config.Settings) { o.PortUnification, o.AdminPortUnification = true, true })
	secure := l.startClient("client with TLS", s.client, client.WithTLSFiles(files))
	secureHTTP := l.startHTTP("HTTP with TLS", "https", s.http, files)
	plain()
	plainHTTP()
	s.restart(t, func(o *config.Settings) {
		o.SecureClientPort, o.ClientPort, o.PortUnification = o.ClientPort, config.NoPort, false
		o.AdminPortUnification, o.AdminForceHTTPS, o.AdminNeedClientAuth = false, true, true
	})
	secure()
	secureHTTP()
	l.judge(true)
	if got, err := asks(t, s.servers[0].ClientAddr(), nil, "ruok"); !strings.HasPrefix(got, "\x15\x03") {
		t.Errorf("without TLS at the end: %q, %v", got, err)
	}
	resp, err := http.Get("http://" + s.http[0] + "/livez")
	if err != nil {
		t.Fatal(err)
	}
	if resp.Body.Close(); resp.StatusCode != http.StatusBadRequest {
		t.Errorf("HTTP without TLS at the end: %s", resp.Status)
	}
}

// The authority of everything is replaced in the three steps of docs/security.md, while servers and clients run:
// nothing fails, also not of clients that shake hands all the time, nor when another server leads. Then the old one
// admits no one.
func TestSwitch_AuthorityIsReplaced(t *testing.T) {
	tier.Seconds(t)
	s := newServed(t)
	next := certs.Authority(t, "next")
	for i := range s.options {
		o := &s.options[i].Settings
		o.SecureClientPort, o.ClientPort = o.ClientPort, config.NoPort
		o.AdminForceHTTPS, o.AdminNeedClientAuth, o.PeerTLS.Wanted = true, true, true
		o.Auth.SuperName = "CN=client"
		o.Consensus.ElectionTimeout = 5 * time.Second // no leader is lost, but those that are to hand over
	}
	s.begin(t)
	files, l := clientFiles(t, s.ca), newLoad(t)
	old := s.ca.Issue(t, "old", of(1))
	ends := []func(){
		l.startClient("client", s.client, client.WithTLSFiles(files)),
		l.startReturning("client that comes back", s.client, client.WithTLSFiles(files)),
		l.startHTTP("HTTP", "https", s.http, files),
	}
	trust := func(all ...[]byte) {
		certs.Write(t, files.CA, all...)
		for i := range s.options {
			certs.Write(t, s.options[i].Settings.TLS.Trust.Location, all...)
		}
	}
	for step, change := range []func(){
		func() { trust(s.ca.CertPEM(), next.CertPEM()) },
		func() {
			for i := range s.options {
				certs.Write(t, s.options[i].Settings.TLS.Key.Location, next.Issue(t, "server", of(i)).KeyPEM(t))
			}
			certs.Write(t, files.Certificate, next.Issue(t, "client", nil).KeyPEM(t))
		},
		func() { trust(next.CertPEM()) },
	} {
		change()
		for i := range s.servers {
			s.reloaded(t, i, files, step+1)
		}
		before := l.answered()
		s.moveLeader(t, files)
		wait.Until(t, "the load goes on", func() bool { return l.answered() > before+200 })
	}
	for _, end := range ends {
		end()
	}
	l.judge(false)
	s.refuses(t, next, old)
}

// reloaded waits until a server uses the files of a step on all its ports.
func (s *served) reloaded(t *testing.T, i int, files client.TLSFiles, step int) {
	t.Helper()
	want := []string{fmt.Sprintf("\ntls_reloads_total %d\n", step), fmt.Sprintf("\ntls_peer_reloads_total %d\n", step),
		"\ntls_peer_certificate_expiry_seconds 2"} // 30 days
	wait.Until(t, fmt.Sprintf("server %d has the files of step %d", i, step), func() bool {
		text := s.call(t, i, files, http.MethodGet, "/metrics")
		return !slices.ContainsFunc(want, func(w string) bool { return !strings.Contains(text, w) })
	})
	// A server that has lost its leader for a moment is not ready.
	wait.Succeeds(t, fmt.Sprintf("server %d is ready, and checks peer_certificate", i), func() error {
		text, err := s.ask(t, i, files, http.MethodGet, "/readyz?verbose")
		if err == nil && !strings.Contains(text, `"peer_certificate"`) {
			err = fmt.Errorf("got %s", text)
		}
		return err
	})
}

// moveLeader has another server lead, so that servers shake hands again.
func (s *served) moveLeader(t *testing.T, files client.TLSFiles) {
	t.Helper()
	before := s.servers[0].Server().Status()
	s.call(t, 0, files, http.MethodPost, "/v1/cluster/transfer")
	wait.Until(t, "another server leads", func() bool {
		now := s.servers[0].Server().Status()
		return now.Leader != before.Leader && now.Term > before.Term
	})
	s.serve(t)
}

// call is ask for a request that is to succeed.
func (s *served) call(t *testing.T, i int, files client.TLSFiles, method, target string) string {
	t.Helper()
	text, err := s.ask(t, i, files, method, target)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// ask asks a server over HTTP with the client's certificate. Another status than 200 is an error.
func (s *served) ask(t *testing.T, i int, files client.TLSFiles, method, target string) (string, error) {
	t.Helper()
	q, err := http.NewRequestWithContext(t.Context(), method, "https://"+s.http[i]+target, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := httpClient(files).Do(q)
	if err != nil {
		return "", fmt.Errorf("asking %s: %w", target, err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s: got %s %s, %v, want 200", target, resp.Status, text, err)
	}
	return string(text), nil
}

// refuses checks that no port of a server takes a client with this certificate.
func (s *served) refuses(t *testing.T, ca, client *certs.Pair) {
	t.Helper()
	o, cfg := &s.options[0].Settings, identity(ca, client)
	pair := cfg.Certificates[0] // shown even to a client that does not name its authority
	cfg.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
	for _, addr := range []string{s.client[0], s.http[0], o.Servers[0].PeerAddress()} {
		cfg.ServerName = host(0)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		c, err := (&tls.Dialer{Config: cfg}).DialContext(ctx, "tcp", addr)
		if err == nil { // in TLS 1.3 a client hears by its first Read that it is refused
			_, err = c.Read(make([]byte, 1))
			c.Close()
		}
		cancel()
		if err == nil || !strings.Contains(err.Error(), "unknown certificate authority") {
			t.Errorf("%s: %v, want a refusal of the certificate", addr, err)
		}
	}
}
