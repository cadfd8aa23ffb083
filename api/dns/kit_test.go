package dns_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/zk-lite/zk-lite/api/dns"
	"github.com/zk-lite/zk-lite/app"
	"github.com/zk-lite/zk-lite/app/config"
	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
	"github.com/zk-lite/zk-lite/znode"
)

const domain = "zk-lite.internal"

// dir has the data of the shared server.
var dir string

func TestMain(m *testing.M) {
	var err error
	if dir, err = os.MkdirTemp("", "dns"); err != nil {
		panic(err)
	}
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// shared is a server for all tests, which have groups of their own.
var shared = sync.OnceValue(func() *app.Server {
	s, _, err := config.Load(nil, func(string) (string, bool) { return "", false })
	if err != nil {
		panic(err)
	}
	s.MyID, s.Standalone, s.DataDir, s.DataLogDir = 1, true, dir, dir
	s.ClientPortAddress, s.ClientPort, s.AdminEnabled, s.DNSPort = "127.0.0.1", 0, false, 0
	n, err := app.Open(app.Options{Settings: s, Version: "test", Logger: slog.New(slog.DiscardHandler),
		Fatal: func(err error) { panic(err) }})
	if err != nil {
		panic(err)
	}
	return n
})

// kit is a client of the shared server, and its session.
type kit struct {
	testing.TB
	*client.Client
}

func newKit(tb testing.TB) *kit {
	n := shared()
	wait.Until(tb, "clients are served", n.Server().Serving)
	c, err := client.Connect(context.Background(), n.ClientAddr().String())
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = c.Close() })
	return &kit{tb, c}
}

// make creates znodes, with their data; those with a name that begins with ! are ephemeral.
func (k *kit) make(paths ...string) {
	k.Helper()
	for _, p := range paths {
		path, data, _ := strings.Cut(p, "=")
		mode := client.Persistent
		if i := strings.Index(path, "!"); i >= 0 {
			path, mode = path[:i]+path[i+1:], client.Ephemeral
		}
		k.create(path, data, mode)
	}
}

// create creates a znode, until the end of the test.
func (k *kit) create(path, data string, mode client.Mode, acl ...client.ACL) {
	k.Helper()
	if _, _, err := k.Create(context.Background(), path, []byte(data), mode, acl...); err != nil {
		k.Fatalf("creating %s: %v", path, err)
	}
	k.Cleanup(func() {
		err := k.Delete(context.Background(), path, client.AnyVersion)
		if err != nil && !errors.Is(err, client.ErrNoNode) {
			k.Errorf("deleting %s: %v", path, err)
		}
	})
}

// resolver is Go's, which asks the shared server only; over is the networks that it has used.
func resolver() (r *net.Resolver, over func() string) {
	var mu sync.Mutex
	var used []string
	r = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		mu.Lock()
		used = append(used, network)
		mu.Unlock()
		return new(net.Dialer).DialContext(ctx, network, shared().DNSAddr().String())
	}}
	return r, func() string {
		mu.Lock()
		defer mu.Unlock()
		return strings.Join(used, " ")
	}
}

// local is a server without a port.
func local(tb testing.TB) *dns.Server {
	newKit(tb)
	return dns.New(shared().Server(), dns.Config{Domain: domain, TTL: 5 * time.Second})
}

// ask makes a question.
func ask(name string, typ dnsmessage.Type, change ...func(*dnsmessage.Message)) []byte {
	m := dnsmessage.Message{Header: dnsmessage.Header{ID: 7, RecursionDesired: true}, Questions: []dnsmessage.Question{
		{Name: dnsmessage.MustNewName(name + "."), Type: typ, Class: dnsmessage.ClassINET},
	}}
	for _, f := range change {
		f(&m)
	}
	b, err := m.Pack()
	if err != nil {
		panic(err)
	}
	return b
}

// edns adds an OPT record.
func edns(size int, version uint32) func(*dnsmessage.Message) {
	return func(m *dnsmessage.Message) {
		var h dnsmessage.ResourceHeader
		if err := h.SetEDNS0(size, 0, false); err != nil {
			panic(err)
		}
		h.TTL |= version << 16
		m.Additionals = append(m.Additionals, dnsmessage.Resource{Header: h, Body: &dnsmessage.OPTResource{}})
	}
}

var someone = netip.MustParseAddr("192.0.2.1")

// summary is a reply as a line: rcode, bits, types and names of its records.
func summary(tb testing.TB, reply []byte) string {
	tb.Helper()
	if reply == nil {
		return "none"
	}
	var m dnsmessage.Message
	if err := m.Unpack(reply); err != nil {
		tb.Fatalf("the reply %x cannot be read: %v", reply, err)
	}
	rcode := m.RCode
	var b strings.Builder
	for _, part := range []struct {
		name string
		all  []dnsmessage.Resource
	}{{"", m.Answers}, {"authority ", m.Authorities}, {"more ", m.Additionals}} {
		for _, r := range part.all {
			if r.Header.Type == dnsmessage.TypeOPT {
				rcode = r.Header.ExtendedRCode(rcode)
				b.WriteString("; OPT")
				continue
			}
			fmt.Fprintf(&b, "; %s%s %d", part.name, strings.TrimPrefix(r.Header.Type.String(), "Type"), r.Header.TTL)
		}
	}
	if m.ID != 7 || !m.Response || m.RecursionAvailable || !m.Authoritative && len(m.Answers)+len(m.Authorities) > 0 {
		tb.Errorf("the header is %+v, want that of an authoritative reply to 7", m.Header)
	}
	head := strings.TrimPrefix(rcode.String(), "RCode")
	if m.Truncated {
		head += " TC"
	}
	return head + b.String()
}

// exchange asks over TCP, on a connection of its own or one that there is.
func exchange(tb testing.TB, c net.Conn, question []byte) []byte {
	tb.Helper()
	if _, err := c.Write(append([]byte{byte(len(question) >> 8), byte(len(question))}, question...)); err != nil {
		tb.Fatal(err)
	}
	head := make([]byte, 2)
	if _, err := io.ReadFull(c, head); err != nil {
		tb.Fatal(err)
	}
	reply := make([]byte, int(head[0])<<8|int(head[1]))
	if _, err := io.ReadFull(c, reply); err != nil {
		tb.Fatal(err)
	}
	return reply
}

var secret = []client.ACL{{Perms: znode.PermAll, ID: znode.ID{Scheme: "auth"}}}
