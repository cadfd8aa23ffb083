package app_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/app"
	"github.com/zk-lite/zk-lite/app/config"
	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/internal/testkit/certs"
	"github.com/zk-lite/zk-lite/internal/testkit/ports"
	"github.com/zk-lite/zk-lite/internal/testkit/tier"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
	"github.com/zk-lite/zk-lite/znode"
)

// peers are the settings of three servers on addresses of their own, 127.0.0.1 to 127.0.0.3, with a certificate each.
type peers struct {
	ca      *certs.Pair
	options [3]app.Options
	servers [3]*app.Server
}

func newPeers(t *testing.T) *peers {
	p := &peers{ca: certs.Authority(t, "ca")}
	port := ports.Take(t, 3)
	for i := range p.options {
		o := options(t, t.TempDir())
		s := &o.Settings
		s.MyID, s.Standalone, s.Consensus.ElectionTimeout = i, false, 300*time.Millisecond
		for k := range p.options {
			s.Servers = append(s.Servers, config.Server{ID: k, Host: host(k), PeerPort: port[k], ElectionPort: port[k], ClientPort: -1})
		}
		s.PeerTLS.AnyHost, s.PeerTLS.Keys.Off = false, true
		s.PeerTLS.Key.Location = certs.Write(t, t.TempDir()+"/server.pem", p.ca.Issue(t, "server", of(i)).KeyPEM(t))
		s.PeerTLS.Trust.Location = certs.Write(t, t.TempDir()+"/ca.pem", p.ca.CertPEM())
		p.options[i] = o
	}
	return p
}

func host(i int) string { return fmt.Sprintf("127.0.0.%d", i+1) }

// of has a certificate name a server's host.
func of(i int) func(*x509.Certificate) {
	return func(c *x509.Certificate) { c.DNSNames, c.IPAddresses = nil, []net.IP{net.ParseIP(host(i))} }
}

func (p *peers) start(t *testing.T, i int) {
	t.Helper()
	p.servers[i] = open(t, p.options[i])
}

func (p *peers) stop(t *testing.T, i int) {
	t.Helper()
	if err := p.servers[i].Close(); err != nil {
		t.Error(err)
	}
}

// write creates a znode through a server.
func (p *peers) write(t *testing.T, i int, path string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	r, err := p.servers[i].Server().Do(ctx, &state.Command{Op: state.OpCreate, Path: path, ACL: znode.OpenACL})
	if err != nil || r.Code != znode.OK {
		t.Fatalf("creating %s: got %v, %v, want OK", path, r.Code, err)
	}
}

// serve waits until all serve.
func (p *peers) serve(t *testing.T) {
	t.Helper()
	for i, s := range p.servers {
		wait.Until(t, fmt.Sprintf("server %d serves", i), s.Server().Serving)
	}
}

// An ensemble without TLS is switched over one server after the other: first all take both, then all speak TLS, then
// they take nothing else.
func TestPeerTLS_SwitchedOverWhileItRuns(t *testing.T) {
	tier.Seconds(t)
	for name, on := range map[string]func(*config.PeerTLS){
		"to certificates from files": func(c *config.PeerTLS) { c.Wanted = true },
		"to keys of their own":       func(c *config.PeerTLS) { c.Keys.Off = false },
	} {
		t.Run(name, func(t *testing.T) {
			p := newPeers(t)
			for i := range p.servers {
				if name == "to keys of their own" {
					p.options[i].Settings.PeerTLS.Key.Location = ""
				}
				p.start(t, i)
			}
			defer func() {
				for i := range p.servers {
					p.stop(t, i)
				}
			}()
			p.serve(t)
			for step, change := range []func(*config.PeerTLS){
				func(c *config.PeerTLS) { c.Keys.PlainToo = true },
				on,
				func(c *config.PeerTLS) { c.Keys.PlainToo = false },
			} {
				for i := range p.servers {
					p.stop(t, i)
					p.write(t, (i+1)%3, fmt.Sprintf("/s%d-%d", step, i)) // the others go on
					change(&p.options[i].Settings.PeerTLS)
					p.start(t, i)
					p.serve(t)
				}
			}
			p.write(t, 0, "/end")
		})
	}
}

// hello is that of a connection of a kind from a server, with a question whose answer would be welcome to a stranger.
func hello(kind byte, from uint64) []byte {
	b := append([]byte("zkLP"), 1, 0, 33, kind)
	b = append(b, make([]byte, 16)...)
	b = binary.BigEndian.AppendUint64(b, from)
	b = binary.BigEndian.AppendUint64(b, 255)
	return append(b, `{"version":1,"op":"survey"}`+"\n"...)
}

// What everything on the peer port begins with is refused to strangers, and to a member with another's number.
func TestPeerTLS_Strangers_LearnNothing(t *testing.T) {
	tier.Seconds(t)
	p := newPeers(t)
	revoked := p.ca.Issue(t, "revoked", of(1))
	crl := certs.Write(t, t.TempDir()+"/crl.pem", p.ca.Revoke(t, time.Now().Add(time.Hour), revoked))
	for i := range p.servers {
		s := &p.options[i].Settings.PeerTLS
		s.Wanted, s.CheckCRL, s.CRLs = true, true, crl
		p.start(t, i)
	}
	defer func() {
		for i := range p.servers {
			p.stop(t, i)
		}
	}()
	p.serve(t)
	other := certs.Authority(t, "other")
	show := func(pair *certs.Pair) *tls.Config { return identity(p.ca, pair) }
	member := func(i int) *certs.Pair { return p.ca.Issue(t, "member", of(i)) }
	numbered := p.ca.Issue(t, "numbered", func(c *x509.Certificate) {
		of(2)(c)
		c.URIs = []*url.URL{{Scheme: "urn", Opaque: "zk-lite:server:1"}}
	})
	expired := p.ca.Issue(t, "old", func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Hour) })
	const raft, stream, control, appends = 1, 2, 3, 4
	old := show(member(1))
	old.MaxVersion = tls.VersionTLS12
	for _, x := range []struct {
		name string
		cfg  *tls.Config // nil: no TLS
		kind byte
		from uint64
		want string // in what comes back; empty: nothing does
	}{
		{"without TLS", nil, control, 0, ""},
		{"without a certificate", show(nil), control, 0, ""},
		{"of another authority", show(other.Issue(t, "x", nil)), control, 0, ""},
		{"signed by itself", show(certs.Authority(t, "x")), control, 0, ""},
		{"expired", show(expired), control, 0, ""},
		{"revoked", show(revoked), control, 1, ""},
		{"a certificate of another host", show(p.ca.Issue(t, "client", nil)), control, 1, "has not proved to be server 1"},
		{"of TLS 1.2", old, control, 1, ""},
		{"a member with another's number, for raft", show(member(1)), raft, 2, "has not proved to be server 2"},
		{"a member with another's number, for commands", show(member(1)), stream, 2, "has not proved to be server 2"},
		{"a member with another's number, for entries", show(member(1)), appends, 2, "has not proved to be server 2"},
		{"a member with another's number", show(member(1)), control, 2, "has not proved to be server 2"},
		{"a member without a number", show(member(1)), control, 255, "only a server of this ensemble may ask"},
		{"a member", show(member(1)), control, 1, `"standing":"voter"`}, // server 0 need not lead
		{"a member whose certificate has another number, on the same host", show(numbered), control, 2,
			"its certificate is for urn:zk-lite:server:1, not for server 2"},
	} {
		s := p.options[0].Settings.Servers[0]
		c, err := net.Dial("tcp", s.PeerAddress())
		if err != nil {
			t.Fatal(err)
		}
		_ = c.SetDeadline(time.Now().Add(time.Minute))
		if x.cfg != nil {
			x.cfg.ServerName = s.Host
			if len(x.cfg.Certificates) > 0 { // shown even to a client that does not name its authority
				pair := x.cfg.Certificates[0]
				x.cfg.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
			}
			c = tls.Client(c, x.cfg)
		}
		_, _ = c.Write(hello(x.kind, x.from))
		answer, _ := io.ReadAll(c) // an alert is an error
		_ = c.Close()
		if x.want == "" && strings.Contains(string(answer), "{") || !strings.Contains(string(answer), x.want) {
			t.Errorf("%s: %q, want %q", x.name, answer, x.want)
		}
	}
	p.write(t, 0, "/end")
}

// A server that listens at a member's address with another certificate learns nothing.
func TestPeerTLS_Impostor_IsToldNothing(t *testing.T) {
	tier.Seconds(t)
	p := newPeers(t)
	for i := range p.servers {
		p.options[i].Settings.PeerTLS.Wanted = true
	}
	stranger := certs.Authority(t, "stranger")
	for _, pair := range []*certs.Pair{p.ca.Issue(t, "another member", of(1)), stranger.Issue(t, "server", of(2))} {
		cfg := &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{pair.Cert.Raw}, PrivateKey: pair.Key}}}
		l, err := tls.Listen("tcp", p.options[0].Settings.Servers[2].PeerAddress(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		s := open(t, p.options[0])
		for range 3 {
			c, err := l.Accept()
			if err != nil {
				t.Fatal(err)
			}
			_ = c.SetDeadline(time.Now().Add(time.Minute))
			b, err := io.ReadAll(c)
			if len(b) > 0 || err == nil || !strings.Contains(err.Error(), "bad certificate") {
				t.Errorf("%s: got %q, %v, want the alert \"bad certificate\" alone", pair.Cert.Subject, b, err)
			}
			c.Close()
		}
		if err := errors.Join(l.Close(), s.Close()); err != nil {
			t.Error(err)
		}
	}
}
