package api_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/zk-lite/zk-lite/server/auth"
)

// sendRaw sends bytes as they are. It returns the first answer's status and body.
func sendRaw(t *testing.T, url, text string) (int, string) {
	t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(body)
}

// A proxy on the server's machine that passes a stranger's request on cannot be made to hide that: however the header
// is written, and whatever else the request pretends, it is not local.
func TestHostile_SmuggledProxyHeaders(t *testing.T) {
	local, err := auth.NewLocal(t.TempDir(), 1)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(local.Path())
	if err != nil {
		t.Fatal(err)
	}
	token, _, _ := strings.Cut(string(text), "\n")
	url := serveAs(t, auth.Config{Local: local}).url
	ask := func(more string) string {
		return "GET /v1/cluster HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " + token + "\r\n" + more
	}
	if code, body := sendRaw(t, url, ask("\r\n")); code != http.StatusOK {
		t.Fatalf("the request without tricks: %d %s, want 200", code, body)
	}
	for _, h := range []string{
		"forwarded: for=192.0.2.1", "FORWARDED: for=192.0.2.1", "Forwarded:", "Forwarded: for=_hidden",
		"x-forwarded-for: ", "X-Forwarded-For:\t127.0.0.1", "X-Forwarded-For: 192.0.2.1\r\nX-Forwarded-For: 127.0.0.1",
		"X-Forwarded-Proto: http", "X-Forwarded-Server: x", "via: 1.1 x", "Client-IP: 127.0.0.1", "X-Client-IP: ::1",
		"True-Client-IP: 127.0.0.1", "CF-Connecting-IP: 127.0.0.1", "X-Real-IP: 127.0.0.1",
		"Connection: close, Forwarded\r\nForwarded: for=192.0.2.1", // which a proxy drops
		"Forwarded : for=192.0.2.1", " Forwarded: for=192.0.2.1", "X: y\r\n Forwarded: x\r\nVia: 1.1 x", "\x00Forwarded: x",
	} {
		// A line that begins with a blank continues the one before, which is the token.
		if code, body := sendRaw(t, url, ask(h+"\r\n\r\n")); !slices.Contains([]int{400, 401, 403}, code) {
			t.Errorf("with %q: %d %s, want 400, 401 or 403", h, code, body)
		}
	}
	// Requests of which a proxy and a server could disagree where they end.
	for _, h := range []string{
		"Content-Length: 3\r\nContent-Length: 5\r\n\r\nabcde", "Content-Length: 5, 3\r\n\r\nabcde",
		"Content-Length: +3\r\n\r\nabc", "Transfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n\r\n0\r\n\r\n",
		"Transfer-Encoding: identity, chunked\r\n\r\n0\r\n\r\n", "Host: evil.example\r\n\r\n",
	} {
		if code, body := sendRaw(t, url, ask(h)); code != http.StatusBadRequest && code != http.StatusNotImplemented {
			t.Errorf("with %q: %d %s, want 400 or 501", h, code, body)
		}
	}
}

// Each operation demands the identity that the OpenAPI document states: of a stranger, and of an identity that is no
// administrator.
func TestHostile_EveryOperation_WithoutCredentials(t *testing.T) {
	stranger := serveAs(t, auth.Config{Schemes: []string{"digest"}, SuperName: "CN=admin"})
	ann := stranger.with(basic("ann:secret"))
	paths, _ := stranger.get("/openapi.json").want(200).json["paths"].(map[string]any)
	counts := map[string]int{}
	for path, item := range paths {
		target := strings.NewReplacer("{path}", "hostile", "{", "", "}", "").Replace(path)
		for method, x := range item.(map[string]any) {
			op, ok := x.(map[string]any)
			if !ok || method == "parameters" {
				continue
			}
			method = strings.ToUpper(method)
			needs, _ := op["security"].([]any)
			switch got := stranger.do(method, target, "").status; {
			case len(needs) == 1: // {}: nothing
				counts["open"]++
				if got == 401 || got == 403 {
					t.Errorf("%s %s is open, and says %d", method, target, got)
				}
			case got != 401:
				t.Errorf("%s %s without credentials: %d", method, target, got)
			}
			if text, _ := op["description"].(string); !strings.HasSuffix(text, "Needs an administrator.") {
				continue
			}
			counts["administrators"]++
			if got := ann.do(method, target, "").status; got != 403 {
				t.Errorf("%s %s by who is no administrator: %d", method, target, got)
			}
		}
	}
	if len(paths) < 20 || counts["open"] < 5 || counts["administrators"] < 8 {
		t.Errorf("%d paths, %v: is this the document?", len(paths), counts)
	}
}
