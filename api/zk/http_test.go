package zk

import (
	"bufio"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"
)

func TestHTTPPort_Locate(t *testing.T) {
	const here, there = "10.0.0.1", "10.0.0.9"
	for name, c := range map[string]struct {
		port              string // that HTTP listens on; empty: none
		tls, plain        bool
		host, client, own string
		secure            bool
		want              string // or a part of why not
	}{
		"all interfaces":        {"[::]:8080", false, true, "zk1:2181", there, here, false, "http://zk1:8080/v1/x?y=%20"},
		"the same address":      {here + ":8080", false, true, "zk1", there, here, false, "http://zk1:8080/v1/x?y=%20"},
		"another address":       {"10.1.0.1:8080", false, true, "zk1", there, here, false, "http://10.1.0.1:8080/v1/x?y=%20"},
		"IPv6":                  {"[::]:8080", false, true, "[fe80::1]:2181", there, here, false, "http://[fe80::1]:8080/v1/x?y=%20"},
		"no host":               {"0.0.0.0:8080", false, true, "", there, here, false, "http://10.0.0.1:8080/v1/x?y=%20"},
		"a host that is none":   {"0.0.0.0:8080", false, true, "[zk", there, here, false, "http://10.0.0.1:8080/v1/x?y=%20"},
		"loopback, from there":  {"127.0.0.1:8080", false, true, "zk1", there, here, false, "listens on 127.0.0.1:8080 only"},
		"loopback, from here":   {"127.0.0.1:8080", false, true, "zk1", here, here, false, "http://127.0.0.1:8080/v1/x?y=%20"},
		"loopback, by its name": {"127.0.0.1:8080", false, true, "localhost", "127.0.0.1", "127.0.0.1", false, "http://localhost:8080/v1/x?y=%20"},
		"TLS only":              {"[::]:8080", true, false, "zk1", there, here, false, "https://zk1:8080/v1/x?y=%20"},
		"both, from TLS":        {"[::]:8080", true, true, "zk1", there, here, true, "https://zk1:8080/v1/x?y=%20"},
		"both, from plain":      {"[::]:8080", true, true, "zk1", there, here, false, "http://zk1:8080/v1/x?y=%20"},
		"plain only, from TLS":  {"[::]:8080", false, true, "zk1", there, here, true, "http://zk1:8080/v1/x?y=%20"},
		"no HTTP":               {"", false, false, "zk1", there, here, false, "no HTTP port"},
	} {
		var p *HTTPPort
		if c.port != "" {
			p = &HTTPPort{Addr: netip.MustParseAddrPort(c.port), TLS: c.tls, Plain: c.plain}
		}
		q := httptest.NewRequest(http.MethodGet, "/v1/x?y=%20", nil)
		q.Host = c.host
		at, why := p.locate(q, netip.MustParseAddr(c.own), netip.MustParseAddr(c.client), c.secure)
		if at != c.want && (why == "" || !strings.Contains(why, c.want)) {
			t.Errorf("%s: got %q, %q, want %q", name, at, why, c.want)
		}
	}
}

// Whatever a client sends, it is sent to the HTTP port, and cannot add to the header.
func FuzzHTTPPort_Locate(f *testing.F) {
	f.Add("GET /v1/servers HTTP/1.1\r\nHost: zk1:2181\r\n\r\n")
	f.Add("GET //evil.example/%2f HTTP/1.1\r\nHost: a@b\r\n\r\n")
	f.Add("PRI * HTTP/2.0\r\n\r\n")
	f.Add("CONNECT a:1 HTTP/1.1\r\n\r\n")
	f.Add("GET http://evil.example/ HTTP/1.1\r\n\r\n")
	p := &HTTPPort{Addr: netip.MustParseAddrPort("[::]:8080"), Plain: true}
	f.Fuzz(func(t *testing.T, text string) {
		q, err := http.ReadRequest(bufio.NewReader(strings.NewReader(text)))
		if err != nil {
			return
		}
		at, _ := p.locate(q, netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.9"), false)
		u, err := url.Parse(at)
		if err != nil || u.Scheme != "http" || u.Port() != "8080" || u.User != nil || strings.ContainsAny(at, "\r\n") {
			t.Errorf("%q leads to %q, %v", text, at, err)
		}
	})
}
