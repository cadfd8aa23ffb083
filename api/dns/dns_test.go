package dns_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/zk-lite/zk-lite/api/dns"
	"github.com/zk-lite/zk-lite/client"
)

// Go's resolver finds the healthy members of a group, and each by its name; and none that it may not.
func TestServer_Resolver(t *testing.T) {
	k := newKit(t)
	k.make("/app", "/app/web",
		"/app/web!/w1=10.0.0.1:80", "/app/web!/w2=http://[2001:db8::2]:8080/x", "/app/web!/host.example=10.0.0.3:80",
		"/app/web!/named={\"address\":\"db.example.org\",\"port\":5432}", "/app/web!/twin=10.0.0.1:81",
		"/app/web!/sick={\"healthy\":false,\"reason\":\"full\",\"data\":\"10.0.0.9:80\"}",
		"/app/web!/words=host:4711", "/app/web!/B b=10.0.0.4:80",
		"/app/web/lasting=10.0.0.8:80", "/app/empty")
	ctx := context.Background()
	if err := k.AddAuth(ctx, "digest", []byte("u:p")); err != nil {
		t.Fatal(err)
	}
	for path, mode := range map[string]client.Mode{"/app/web/secret": client.Ephemeral, "/app/hidden": client.Persistent} {
		k.create(path, "10.0.0.7:80", mode, secret...)
	}
	k.make("/app/hidden!/m=10.0.0.7:80")
	r, _ := resolver()
	sorted := func(all []string, err error) string {
		slices.Sort(all)
		var missing *net.DNSError
		if errors.As(err, &missing) && missing.IsNotFound {
			return "not found"
		}
		if err != nil {
			return err.Error()
		}
		return strings.Join(all, " ")
	}
	for name, want := range map[string]string{
		"web.app":              "10.0.0.1 10.0.0.3 10.0.0.4 2001:db8::2",
		"w1.web.app":           "10.0.0.1",
		"W1.Web.App":           "10.0.0.1",
		"w2.web.app":           "2001:db8::2",
		"host.example.web.app": "10.0.0.3",
		"sick.web.app":         "not found",
		"words.web.app":        "not found",
		"named.web.app":        "not found",
		"lasting.web.app":      "not found",
		"secret.web.app":       "not found",
		"empty.app":            "not found",
		"hidden.app":           "not found",
		"m.hidden.app":         "not found",
		"app":                  "not found",
	} {
		if got := sorted(r.LookupHost(ctx, name+"."+domain+".")); got != want {
			t.Errorf("%s has the addresses %s, want %s", name, got, want)
		}
	}
	for _, service := range []string{"", "http"} {
		proto := map[string]string{"": "", "http": "tcp"}[service]
		_, all, err := r.LookupSRV(ctx, service, proto, "web.app."+domain+".")
		var got []string
		for _, s := range all {
			got = append(got, fmt.Sprintf("%s:%d", s.Target, s.Port))
		}
		want := "db.example.org.:5432 host.example.web.app.zk-lite.internal.:80 twin.web.app.zk-lite.internal.:81 " +
			"w1.web.app.zk-lite.internal.:80 w2.web.app.zk-lite.internal.:8080"
		if list := sorted(got, err); list != want {
			t.Errorf("service %q has the members %s, want %s", service, list, want)
		}
	}
	if got := sorted(r.LookupTXT(ctx, "w1.web.app."+domain+".")); got != "w1=10.0.0.1:80" {
		t.Errorf("the text of w1 is %s, want w1=10.0.0.1:80", got)
	}
	// A member that leaves is gone at once.
	if err := k.Delete(ctx, "/app/web/w1", client.AnyVersion); err != nil {
		t.Fatal(err)
	}
	if got := sorted(r.LookupHost(ctx, "w1.web.app."+domain+".")); got != "not found" {
		t.Errorf("after it has left w1 has the addresses %s, want none", got)
	}
}

// A reply that is too long over UDP is cut, and complete over TCP; of more members than are read there is a part.
func TestServer_Large(t *testing.T) {
	k := newKit(t)
	k.make("/large")
	other := newKit(t) // whose members go with it
	const members = 600
	pending := make([]*client.Pending[client.CreateReply], members)
	for i := range pending {
		pending[i] = other.Async().Create(context.Background(), fmt.Sprintf("/large/m%04d", i),
			fmt.Appendf(nil, "10.1.%d.%d:80", i/250, i%250+1), client.Ephemeral)
	}
	for _, p := range pending {
		if _, err := p.Wait(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	r, over := resolver()
	seen := map[string]bool{}
	for range 30 {
		all, err := r.LookupHost(context.Background(), "large."+domain+".")
		if err != nil || len(all) != dns.MaxMembers {
			t.Fatalf("%d addresses (%v), want %d", len(all), err, dns.MaxMembers)
		}
		for _, a := range all {
			seen[a] = true
		}
	}
	if len(seen) != members || !strings.Contains(over(), "tcp") {
		t.Errorf("thirty answers have %d members, over %.20s; want all %d, over tcp at last", len(seen), over(), members)
	}
	s := local(t)
	for size, limit := range map[int]int{0: 512, 100: 512, 700: 700, 65535: dns.MaxUDP} {
		question := ask("large."+domain, dnsmessage.TypeSRV)
		if size > 0 {
			question = ask("large."+domain, dnsmessage.TypeSRV, edns(size, 0))
		}
		reply := s.Answer(question, someone, false)
		if got := summary(t, reply); len(reply) > limit || len(reply) < limit/2 || !strings.HasPrefix(got, "Success TC; SRV") {
			t.Errorf("a client with room for %d gets %d bytes, %.40s; want %d at most, cut", size, len(reply), got, limit)
		}
	}
	if reply := s.Answer(ask("large."+domain, dnsmessage.TypeSRV), someone, true); len(reply) > 65535 {
		t.Errorf("over TCP there are %d bytes, want 65535 at most", len(reply))
	}
}

func TestServer_Replies(t *testing.T) {
	k := newKit(t)
	k.make("/r", "/r!/m=10.0.0.1:80", "/r!/long="+strings.Repeat("x", 1200), "/r!/text="+strings.Repeat("y", 600))
	s := local(t)
	in := func(name string) string { return name + "." + domain }
	class := func(c dnsmessage.Class) func(*dnsmessage.Message) {
		return func(m *dnsmessage.Message) { m.Questions[0].Class = c }
	}
	twice := func(m *dnsmessage.Message) { m.Questions = append(m.Questions, m.Questions[0]) }
	none := func(m *dnsmessage.Message) { m.Questions = nil }
	for _, test := range []struct {
		about    string
		question []byte
		want     string
	}{
		{"a member", ask(in("m.r"), dnsmessage.TypeA), "Success; A 5"},
		{"with EDNS", ask(in("m.r"), dnsmessage.TypeA, edns(1232, 0)), "Success; A 5; OPT"},
		{"its service", ask(in("_x._tcp.r"), dnsmessage.TypeSRV), "Success; SRV 5; more A 5"},
		{"a service has no address", ask(in("_x._tcp.r"), dnsmessage.TypeA), "Success; authority SOA 5"},
		{"between both", ask(in("_UDP.r"), dnsmessage.TypeA), "Success; authority SOA 5"},
		{"a service of nothing", ask(in("_x._tcp"), dnsmessage.TypeSRV), "NameError; authority SOA 5"},
		{"no such type", ask(in("m.r"), dnsmessage.TypeAAAA), "Success; authority SOA 5"},
		{"another type", ask(in("m.r"), dnsmessage.TypeMX), "Success; authority SOA 5"},
		{"no such member", ask(in("x.r"), dnsmessage.TypeA), "NameError; authority SOA 5"},
		{"a slash", ask(in("r/m"), dnsmessage.TypeA), "NameError; authority SOA 5"},
		{"no such group", ask(in("x.y"), dnsmessage.TypeA), "NameError; authority SOA 5"},
		{"the root", ask(domain, dnsmessage.TypeA), "Success; authority SOA 5"},
		{"its authority", ask(domain, dnsmessage.TypeSOA), "Success; SOA 5"},
		{"long texts are left out", ask(in("long.r"), dnsmessage.TypeTXT), "Success; authority SOA 5"},
		{"texts in parts, too long", ask(in("text.r"), dnsmessage.TypeTXT), "Success TC"},
		{"texts in parts", ask(in("text.r"), dnsmessage.TypeTXT, edns(1232, 0)), "Success; TXT 5; OPT"},
		{"another domain", ask("m.r.example", dnsmessage.TypeA), "Refused"},
		{"one that ends alike", ask("r.x"+domain, dnsmessage.TypeA), "Refused"},
		{"a part of it", ask("internal", dnsmessage.TypeA), "Refused"},
		{"another class", ask(in("m.r"), dnsmessage.TypeA, class(dnsmessage.ClassCHAOS)), "Refused"},
		{"a transfer", ask(domain, dnsmessage.TypeAXFR), "Refused"},
		{"everything", ask(in("r"), dnsmessage.TypeALL), "NotImplemented"},
		{"an update", ask(in("r"), dnsmessage.TypeA, func(m *dnsmessage.Message) { m.OpCode = 5 }), "NotImplemented"},
		{"two questions", ask(in("r"), dnsmessage.TypeA, twice), "FormatError"},
		{"no question", ask(in("r"), dnsmessage.TypeA, none), "FormatError"},
		{"two OPT records", ask(in("r"), dnsmessage.TypeA, edns(512, 0), edns(512, 0)), "FormatError; OPT"},
		{"EDNS of the future", ask(in("r"), dnsmessage.TypeA, edns(512, 1)), "16; OPT"},
		{"cut short", ask(in("r"), dnsmessage.TypeA)[:20], "FormatError"},
		{"a name that contains itself", []byte("\x00\x07\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\xc0\x0c\x00\x01\x00\x01"), "FormatError"},
		{"a dot in a label", []byte("\x00\x07\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x03a.b\x00\x00\x01\x00\x01"), "FormatError"},
		{"records that are missing", []byte("\x00\x07\x00\x00\x00\x01\xff\xff\xff\xff\xff\xff\x01a\x00\x00\x01\x00\x01"), "FormatError"},
		{"a reply", ask(in("r"), dnsmessage.TypeA, func(m *dnsmessage.Message) { m.Response = true }), "none"},
		{"no header", []byte("\x00\x07\x00"), "none"},
		{"nothing", nil, "none"},
	} {
		if got := summary(t, s.Answer(test.question, someone, false)); got != test.want {
			t.Errorf("%s: got %s, want %s", test.about, got, test.want)
		}
	}
}

// A flood in the name of a network gets no more bytes than it has sent, and TCP serves clients that are real;
// others have their answers.
func TestServer_Flood(t *testing.T) {
	k := newKit(t)
	k.make("/flood", "/flood!/m=10.0.0.1:80")
	s := local(t)
	// In a bubble all questions come in one second.
	synctest.Test(t, func(t *testing.T) { flood(t, s) })
}

func flood(t *testing.T, s *dns.Server) {
	question := ask("flood."+domain, dnsmessage.TypeA)
	full, cut := 0, 0
	for i := range 3 * dns.PerSecond {
		reply := s.Answer(question, netip.AddrFrom4([4]byte{198, 51, 100, byte(i)}), false)
		switch got := summary(t, reply); {
		case got == "Success; A 5":
			full++
		case got == "Success TC" && len(reply) <= len(question):
			cut++
		default:
			t.Fatalf("question %d: %s, of %d bytes", i, got, len(reply))
		}
	}
	if full != dns.PerSecond || cut != 2*dns.PerSecond {
		t.Errorf("%d answers in full and %d cut, want %d in full", full, cut, dns.PerSecond)
	}
	for _, other := range []struct {
		from string
		tcp  bool
	}{{"198.51.100.7", true}, {"203.0.113.7", false}, {"2001:db8::1", false}} {
		if got := summary(t, s.Answer(question, netip.MustParseAddr(other.from), other.tcp)); got != "Success; A 5" {
			t.Errorf("%v: got %s, want the answer", other, got)
		}
	}
	refused := false
	for range 3 * dns.PerSecond {
		refused = refused || summary(t, s.Answer(question, someone, true)) == "Refused"
	}
	if !refused {
		t.Error("a flood over TCP is answered in full, want that it is refused")
	}
}

// One address has some of the connections; those above are closed, and those that end make room.
func TestServer_Connections_AreBounded(t *testing.T) {
	newKit(t)
	dial := func() net.Conn {
		c, err := net.Dial("tcp", shared().DNSAddr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
	question := ask(domain, dnsmessage.TypeSOA)
	var open []net.Conn
	for range dns.MaxPerAddress {
		c := dial()
		exchange(t, c, question)
		exchange(t, c, question) // a connection may have several
		open = append(open, c)
	}
	closed := func(c net.Conn) bool {
		if err := c.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		_, err := c.Read(make([]byte, 1))
		return err != nil && !errors.Is(err, os.ErrDeadlineExceeded)
	}
	if !closed(dial()) {
		t.Errorf("connection %d stays open, want that it is closed", dns.MaxPerAddress+1)
	}
	// A question that is longer than any is not waited for.
	if _, err := open[0].Write([]byte{0xff, 0xff}); err != nil {
		t.Fatal(err)
	}
	if !closed(open[0]) {
		t.Error("a question of 65,535 bytes is waited for, want that its connection is closed")
	}
}

// A connection on which no whole question comes in time is closed.
func TestServer_SlowConnection_IsClosed(t *testing.T) {
	s := local(t)
	for _, sent := range []string{"", "\x00", "\x00\x20\x00\x07\x00"} {
		synctest.Test(t, func(t *testing.T) {
			here, there := net.Pipe()
			begin := time.Now()
			go func() { _, _ = io.WriteString(here, sent) }()
			s.Converse(there)
			if took := time.Since(begin); took != 10*time.Second {
				t.Errorf("after %q the connection lasted %v, want 10s", sent, took)
			}
			here.Close()
		})
	}
}

func FuzzAnswer(f *testing.F) {
	k := newKit(f)
	k.make("/fuzz", "/fuzz!/m=10.0.0.1:80", "/fuzz!/host.example={\"address\":\"a.example\",\"port\":1}")
	s := local(f)
	f.Add(ask("fuzz."+domain, dnsmessage.TypeSRV, edns(1232, 0)), false)
	f.Add(ask("_a._tcp.m.fuzz."+domain, dnsmessage.TypeSRV), true)
	f.Add(ask("host.example.fuzz."+domain, dnsmessage.TypeTXT), true)
	f.Add(ask(domain, dnsmessage.TypeSOA), false)
	f.Fuzz(func(t *testing.T, question []byte, tcp bool) {
		reply := s.Answer(question, someone, tcp)
		if reply == nil {
			return
		}
		var m dnsmessage.Message
		if err := m.Unpack(reply); err != nil || !m.Response || !tcp && len(reply) > dns.MaxUDP {
			t.Errorf("to %x the reply is %x: %v", question, reply, err)
		}
	})
}

// The questions of docs/recipes.md have the answers that it shows.
func TestDocs_Questions(t *testing.T) {
	k := newKit(t)
	k.make("/app", "/app/web", "/app/web!/w1=10.0.0.1:80", "/app/web!/w2=http://10.0.0.2:8080")
	page, err := os.ReadFile("../../docs/recipes.md")
	if err != nil {
		t.Fatal(err)
	}
	s := local(t)
	all := regexp.MustCompile(`(?m)^\$ dig .* (\S+) (\S+)\n((?:[^$`+"`"+`].*\n)+)`).FindAllStringSubmatch(string(page), -1)
	if len(all) != 3 {
		t.Fatalf("%d questions, want 3", len(all))
	}
	types := map[string]dnsmessage.Type{"A": dnsmessage.TypeA, "SRV": dnsmessage.TypeSRV, "TXT": dnsmessage.TypeTXT}
	for _, m := range all {
		var reply dnsmessage.Message
		if err := reply.Unpack(s.Answer(ask(m[1], types[m[2]]), someone, false)); err != nil {
			t.Fatal(err)
		}
		var lines []string
		for _, r := range reply.Answers {
			switch r := r.Body.(type) {
			case *dnsmessage.AResource:
				lines = append(lines, netip.AddrFrom4(r.A).String())
			case *dnsmessage.SRVResource:
				lines = append(lines, fmt.Sprintf("%d %d %d %s", r.Priority, r.Weight, r.Port, r.Target))
			case *dnsmessage.TXTResource:
				lines = append(lines, strconv.Quote(strings.Join(r.TXT, "")))
			}
		}
		slices.Sort(lines)
		if got := strings.Join(lines, "\n") + "\n"; got != m[3] {
			t.Errorf("%s %s: got\n%swant\n%s", m[1], m[2], got, m[3])
		}
	}
}

// What an answer costs, and so what a flood can take of the processor that answers.
func BenchmarkAnswer(b *testing.B) {
	k := newKit(b)
	for _, members := range []int{3, 256} {
		path := fmt.Sprintf("/bench%d", members)
		k.make(path)
		other := newKit(b)
		for i := range members {
			if _, _, err := other.Create(context.Background(), fmt.Sprintf("%s/m%d", path, i),
				fmt.Appendf(nil, `{"name":"web","id":"m","address":"10.0.%d.%d","port":80}`, i/250, i%250+1), client.Ephemeral); err != nil {
				b.Fatal(err)
			}
		}
		for _, tcp := range []bool{false, true} {
			b.Run(fmt.Sprintf("members=%d/tcp=%t", members, tcp), func(b *testing.B) {
				s := local(b)
				question := ask(path[1:]+"."+domain, dnsmessage.TypeSRV, edns(1232, 0))
				for i := 0; b.Loop(); i++ { // each from another network
					s.Answer(question, netip.AddrFrom4([4]byte{10, byte(i >> 8), byte(i), 1}), tcp)
				}
			})
		}
	}
}
