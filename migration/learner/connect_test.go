package learner

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zk-lite/zk-lite/internal/digestmd5"
	"github.com/zk-lite/zk-lite/internal/jute"
	"github.com/zk-lite/zk-lite/internal/testkit/pipenet"
)

// The leader is found wherever it is, soon even behind servers that accept connections and stay silent, and the one
// that answered last is asked first the next time.
func TestFollow_FindsTheLeader(t *testing.T) {
	for _, test := range []struct {
		name string
		// of four servers: leads, silent (paused), old (leads an older epoch), other: refuses connections
		servers string
		within  time.Duration
		want    error
	}{
		{"the first", "leads refuses refuses refuses", 0, io.EOF},
		{"the last", "refuses refuses refuses leads", 0, io.EOF},
		{"behind a silent one", "silent refuses refuses leads", stagger, io.EOF},
		{"behind silent ones", "silent silent silent leads", 3 * stagger, io.EOF},
		{"behind an old one", "old refuses refuses leads", 0, io.EOF},
		{"nowhere", "refuses refuses refuses refuses", 0, ErrNoLeader},
		{"nowhere, and one is silent", "refuses silent refuses refuses", 7 * time.Second, ErrNoLeader},
		{"nowhere, and one is old", "refuses old refuses refuses", 0, ErrOldLeader},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				network := pipenet.New()
				cfg := Config{ID: 200, Timeout: 7 * time.Second, Dial: network.Dialer("learner")}
				for i, kind := range strings.Fields(test.servers) {
					address := string(rune('a'+i)) + ":2888"
					cfg.Servers = append(cfg.Servers, address)
					if kind == "refuses" {
						continue
					}
					host := network.Listen(address)
					defer host.Close()
					go answer(host, kind)
				}
				l := New(cfg)
				start := time.Now()
				r := &recorder{}
				err := l.Follow(t.Context(), Position{Zxid: at(1), Epoch: 5}, r)
				wantError(t, err, test.want)
				if took := time.Since(start); took != test.within {
					t.Errorf("took %v, want %v", took, test.within)
				}
				if test.want == io.EOF {
					start := time.Now()
					err := l.Follow(t.Context(), Position{Zxid: at(1), Epoch: 5}, r)
					wantError(t, err, test.want)
					if took := time.Since(start); took != 0 || len(r.calls) != 2 {
						t.Errorf("the second time took %v, with the calls %v; want none, and the leader", took, r.calls)
					}
				}
			})
		})
	}
}

// answer accepts two connections, and speaks on them like a leader, an old one, or not at all.
func answer(host *pipenet.Host, kind string) {
	for range 2 {
		c, err := host.Accept()
		if err != nil {
			return
		}
		func() {
			s := newScripted(c)
			defer func() {
				_ = recover()
				c.Close()
				s.silent()
			}()
			switch kind {
			case "leads":
				serve(s)
				return
			case "old":
				s.expect(observerInfo)
				s.send(leaderInfo, 4<<32, nil)
			}
			s.silent()
		}()
	}
}

// With credentials both sides prove that they know the password.
func TestFollow_SASL(t *testing.T) {
	for _, test := range []struct {
		name     string
		password string
		proof    string // of the server, if not the right one
		plain    bool   // the server does not know SASL
		want     error
	}{
		{"right", "secret", "", false, io.EOF},
		{"wrong password", "other", "", false, ErrRefused},
		{"a server that does not know it", "secret", "rspauth=00000000000000000000000000000000", false, ErrRefused},
		{"a server without SASL", "secret", "", true, ErrRefused},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				network := pipenet.New()
				host := network.Listen("a:2888")
				defer host.Close()
				ended := make(chan struct{})
				go func() {
					defer close(ended)
					c, _ := host.Accept()
					defer c.Close()
					if test.plain || !authenticate(c, test.proof) {
						return
					}
					s := newScripted(c)
					defer func() { _ = recover(); c.Close(); s.silent() }()
					serve(s)
				}()
				r := &recorder{}
				l := New(Config{Servers: []string{"a:2888"}, ID: 200, Dial: network.Dialer("learner"),
					SASL: &SASL{User: "learner", Password: test.password}})
				err := l.Follow(t.Context(), Position{Zxid: at(1)}, r)
				<-ended
				wantError(t, err, test.want)
				if got := len(r.calls) > 0; got != (test.want == io.EOF) {
					t.Errorf("got the calls %v", r.calls)
				}
			})
		})
	}
}

// authenticate is the server's side, as SaslQuorumAuthServer.
func authenticate(c net.Conn, proof string) bool {
	const host = "zk-quorum-sasl-md5"
	e := digestmd5.New(&digestmd5.Config{Service: "zookeeper-quorum", Host: host, Realm: host,
		Password: func(string) (string, bool) { return "secret", true }})
	in := jute.NewStream(c, 1<<20)
	for {
		in.Int64()
		in.Int32()
		reply, user, err := e.Next(in.Buffer())
		status := int32(authGoesOn)
		switch {
		case err != nil:
			status = -1
		case user != "":
			status = authDone
			if proof != "" {
				reply = []byte(proof)
			}
		}
		_, _ = c.Write(jute.AppendBuffer(jute.AppendInt32(jute.AppendInt64(nil, authMagic), status), reply))
		if status != authGoesOn {
			return status == authDone && proof == ""
		}
	}
}

// The names in a certificate are compared as ZooKeeper does.
func TestNames(t *testing.T) {
	address := &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 2888}
	cert := func(cn string, dns []string, ips ...net.IP) *x509.Certificate {
		return &x509.Certificate{Subject: pkix.Name{CommonName: cn}, DNSNames: dns, IPAddresses: ips}
	}
	for _, test := range []struct {
		name string
		cert *x509.Certificate
		host string
		want bool
	}{
		{"name", cert("", []string{"zk1.example"}), "zk1.example", true},
		{"wildcard", cert("", []string{"*.example"}), "zk1.example", true},
		{"another name", cert("", []string{"zk2.example"}), "zk1.example", false},
		{"address of a name", cert("", nil, address.IP), "zk1.example", true},
		{"another address", cert("", nil, net.IPv4(10, 0, 0, 2)), "zk1.example", false},
		{"address", cert("", nil, address.IP), "10.0.0.1", true},
		{"common name", cert("zk1.example", nil), "zk1.example", true},
		{"common name that is an address", cert("10.0.0.1", nil), "zk1.example", true},
		{"common name with a wildcard", cert("*.example", nil), "zk1.example", true},
		{"another common name", cert("zk2.example", nil), "zk1.example", false},
		{"common name besides other names", cert("zk1.example", []string{"zk2.example"}), "zk1.example", false},
		{"no name", cert("", nil), "zk1.example", false},
	} {
		if err := names(test.cert, test.host, address); (err == nil) != test.want {
			t.Errorf("%s: got %v, want that it is taken: %v", test.name, err, test.want)
		}
	}
}
