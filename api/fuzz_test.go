package api_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/api"
)

// fuzzer sends requests byte for byte, as no HTTP library would let one.
type fuzzer struct {
	address string
	server  *api.Server
}

// newFuzzer starts an HTTP server of its own for the shared ensemble, without a grace for
// what waits.
func newFuzzer(f *testing.F) *fuzzer {
	d, url := serve(f, shared().nodes[0])
	c := newClient(f, url)
	c.put("/v1/znodes/fuzz?create=true", "x")
	return &fuzzer{strings.TrimPrefix(url, "http://"), d}
}

// send sends a request and fails the test on a panic (no answer at all), a 500, and
// anything that differs from the OpenAPI document. It reads no streams.
func (z *fuzzer) send(t *testing.T, method, target, headers, body string) {
	t.Helper()
	conn, err := net.DialTimeout("tcp", z.address, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(time.Minute))
	text := fmt.Sprintf("%s %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: %d\r\n%s\r\n%s",
		method, target, len(body), headers, body)
	if _, err := io.WriteString(conn, text); err != nil {
		return // refused while it was sent; the answer is lost with it
	}
	// The method tells the reader whether there is a body.
	answered := &http.Request{Method: method}
	resp, err := http.ReadResponse(bufio.NewReader(conn), answered)
	if err != nil {
		t.Fatalf("no answer to %q: %v", text, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusInternalServerError {
		b, _ := io.ReadAll(resp.Body)
		t.Fatalf("%q is answered with 500: %s", text, b)
	}
	if resp.Header.Get("Zk-Server") == "" || resp.Header.Get("Content-Type") == "text/event-stream" {
		return // net/http's own refusal, or a stream
	}
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	req, err := http.NewRequest(method, "http://x"+target, nil)
	if err != nil || req.URL.EscapedPath() == "" {
		return // only the server could make sense of it
	}
	if err := validate(req, resp, b); err != nil {
		t.Errorf("the answer to %q, %s %s, differs from the document: %v", text, resp.Status, b, err)
	}
}

// oneLine keeps the fuzzer from starting a second request.
func oneLine(s string) bool { return !strings.ContainsAny(s, " \r\n\x00") && len(s) < 4096 }

// below keeps it from what waits, from what empties the tree for the other tests,
// and from other people's resources.
func below(path string) string { return "/v1/znodes/fuzz" + path }

func FuzzPath(f *testing.F) {
	z := newFuzzer(f)
	for _, s := range []string{
		"", "/", "//", "/a", "/%2F", "/%", "/%zz", "/%00", "/..", "/./a", "/%ff", "/a%20b", "/%F0%9F%92%A9",
		"?", "?a=b;c", "?children&limit=-1", "#x", "/{path}", "/*", "/\\", "/a?raw&acl", "/%252f", "/é",
	} {
		f.Add("GET", s)
		f.Add("PUT", s)
	}
	f.Fuzz(func(t *testing.T, method, path string) {
		switch method {
		case "GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH":
		default:
			return
		}
		if oneLine(path) {
			z.send(t, method, below(path), "", "x")
		}
	})
}

func FuzzQuery(f *testing.F) {
	z := newFuzzer(f)
	for _, s := range []string{
		"children&stat&data&limit=3&after=x", "acl=world:anyone:r", "acl=::,::", "version=99999999999",
		"mode=ttl&ttl=1h", "mode=persistent_sequential", "ttl=-1s", "consistency=linearizable", "min_zxid=0x0",
		"min_zxid=0xffffffffffffffff", "parents&mode=container", "recursive=1&version=-1", "create=%00", "&&&", "=",
		"since=0x1.1&kind=children", "since=.", "watch=x:/", "acl=digest:a:b:cdrwa,ip:1:r", "children&match=x&limit=1",
		"children&offset=99999999999", "name=f&name=u&owner=any&limit=1", "after=1.1/x", "after=.65535", "server=2", "server=0",
	} {
		for which := range uint8(9) {
			f.Add(which, s)
		}
	}
	f.Fuzz(func(t *testing.T, which uint8, query string) {
		if !oneLine(query) || strings.Contains(query, "#") {
			return
		}
		switch which % 9 {
		case 0:
			z.send(t, "GET", below("?"+query), "", "")
		case 1:
			z.send(t, "POST", below("/q?"+query), "", "x")
		case 2:
			z.send(t, "PUT", below("?"+query), "", "x")
		case 3:
			z.send(t, "DELETE", below("/q?"+query), "", "")
		case 4:
			if strings.Contains(query, "wait") {
				return // it would
			}
			z.send(t, "GET", "/v1/watches/fuzz?wait=0s&"+query, "", "")
		case 5:
			z.send(t, "GET", "/v1/search/fuzz?"+query, "", "")
		case 6:
			z.send(t, "GET", "/v1/watchers/fuzz?"+query, "", "")
		case 7:
			z.send(t, "GET", "/v1/acl/fuzz?"+query, "", "")
		case 8:
			z.send(t, "GET", "/v1/subtrees/fuzz?"+query, "", "")
		}
	})
}

func FuzzBody(f *testing.F) {
	z := newFuzzer(f)
	for _, s := range []string{
		``, `{}`, `[]`, `null`, `{"ops": null}`, `{"ops": [null]}`, `{"ops": [{}]}`, `{"ops": [{"op": "check", "path": "/"}]}`,
		`{"ops": [{"op": "create", "path": "/fuzz/b", "data": "\ud800", "mode": "ttl", "ttl": "1s"}]}`,
		`{"ops": [{"op": "set", "path": "/fuzz", "version": 2147483648}]}`,
		`{"ops": [{"op": "delete", "path": "/zookeeper"}, {"op": "check_not_exists", "path": "/x"}]}`,
		`{"timeout": "1s"}`, `{"timeout": ""}`, `{"timeout": "1e9h"}`, `{"acl": [{"scheme": "world", "id": "anyone", "perms": "r"}]}`,
		`{"acl": [{}]}`, `{"acl": []}`, "\xff", `{"ops": [{"op": "create", "path": "/fuzz/n-", "mode": "persistent_sequential", "acl": "auth::r"}]}`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, body string) {
		if len(body) > 64<<10 {
			return
		}
		z.send(t, "POST", "/v1/multi", "", body)
		z.send(t, "POST", "/v1/sessions", "", body)
		z.send(t, "PUT", below("?acl"), "", body)
	})
}

func FuzzHeader(f *testing.F) {
	z := newFuzzer(f)
	for _, s := range []string{
		"Zk-Session: x", "Zk-Session: 0x1.00112233445566778899aabbccddeeff", "If-Match: \"0x0\"", "If-Match: *",
		"If-None-Match: *", "If-None-Match: W/\"0x1\", ,", "Idempotency-Key: k", "Idempotency-Key: \x7f", "Origin: null",
		"Authorization: Basic Og==", "Authorization: x", "Last-Event-ID: 0x1.1", "Accept: text/event-stream;q=0",
		"Accept: ,;", "Expect: 100-continue", "Content-Encoding: gzip", "Range: bytes=0-1", "Transfer-Encoding: x",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, header string) {
		if strings.ContainsAny(header, "\r\n") || len(header) > 4096 ||
			strings.HasPrefix(strings.ToLower(header), "content-length") ||
			strings.Contains(strings.ToLower(header), "chunked") { // its body would be waited for
			return
		}
		for _, r := range [][2]string{
			{"GET", below("")}, {"PUT", below("")}, {"POST", below("/h-?mode=persistent_sequential")},
			{"GET", "/v1/watches/fuzz?wait=0s"}, {"DELETE", "/v1/sessions/0x1"}, {"OPTIONS", below("")},
		} {
			z.send(t, r[0], r[1], header+"\r\n", "")
		}
	})
}
