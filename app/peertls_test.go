package app_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"fmt"
	"io"
	"net"
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
		s.MyID, s.Standalone, s.ElectionTimeout = i, false, 300*time.Millisecond
		for k := range p.options {
			s.Servers = append(s.Servers, config.Server{ID: k, Host: host(k), PeerPort: port[k], ElectionPort: port[k], ClientPort: -1})
		}
		s.PeerTLS.CheckHost = true
		s.PeerTLS.KeyStore.Location = certs.Write(t, t.TempDir()+"/server.pem", p.ca.Issue(t, "server", of(i)).KeyPEM(t))
		s.PeerTLS.TrustStore.Location = certs.Write(t, t.TempDir()+"/ca.pem", p.ca.CertPEM())
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
		t.Fatal(path, r.Code, err)
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
	p := newPeers(t)
	for i := range p.servers {
		p.start(t, i)
	}
	defer func() {
		for i := range p.servers {
			p.stop(t, i)
		}
	}()
	p.serve(t)
	for step, change := range []func(*config.PeerTLS){
		func(c *config.PeerTLS) { c.PlainToo = true },
		func(c *config.PeerTLS) { c.Wanted = true },
		func(c *config.PeerTLS) { c.PlainToo = false },
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
}

// hello is that of a control connection from a server, with a question whose answer would be welcome to a stranger.
func hello(from uint64) []byte {
	b := append([]byte("zkLP"), 1, 0, 33, 3)
	b = append(b, make([]byte, 16)...)
	b = binary.BigEndian.AppendUint64(b, from)
	b = binary.BigEndian.AppendUint64(b, 255)
	return append(b, `{"op":"survey"}`+"\n"...)
}

// What everything on the peer port begins with is refused to strangers, and to a member with another's number.
func TestPeerTLS_Strangers_LearnNothing(t *testing.T) {
	tier.Seconds(t)
	p := newPeers(t)
	for i := range p.servers {
		p.options[i].Settings.PeerTLS.Wanted = true
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
	expired := p.ca.Issue(t, "old", func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Hour) })
	for _, x := range []struct {
		name string
		cfg  *tls.Config // nil: no TLS
		from uint64
		want string // in what comes back; empty: nothing does
	}{
		{"without TLS", nil, 0, ""},
		{"without a certificate", show(nil), 0, ""},
		{"of another authority", show(other.Issue(t, "x", nil)), 0, ""},
		{"signed by itself", show(certs.Authority(t, "x")), 0, ""},
		{"expired", show(expired), 0, ""},
		{"a member with another's number", show(member(1)), 2, "has not proved to be server 2"},
		{"a member without a number", show(member(1)), 255, "only a server of this ensemble may ask"},
		{"a member", show(member(1)), 1, `"standing":"voter"`}, // server 0 need not lead
	} {
		s := p.options[0].Settings.Servers[0]
		c, err := net.Dial("tcp", s.PeerAddress())
		if err != nil {
			t.Fatal(err)
		}
		_ = c.SetDeadline(time.Now().Add(time.Minute))
		if x.cfg != nil {
			x.cfg.ServerName = s.Host
			c = tls.Client(c, x.cfg)
		}
		_, _ = c.Write(hello(x.from))
		answer, _ := io.ReadAll(c) // an alert is an error
		_ = c.Close()
		if x.want == "" && strings.Contains(string(answer), "{") || !strings.Contains(string(answer), x.want) {
			t.Errorf("%s: %q, want %q", x.name, answer, x.want)
		}
	}
	p.write(t, 0, "/end")
}
