package api_test

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/zk-lite/zk-lite/api"
	"github.com/zk-lite/zk-lite/server/auth"
)

// asked returns the status of a request with the given Host.
func asked(t *testing.T, url, target, host string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+target, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Host = host
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	return resp.StatusCode
}

func TestServer_Host_OnLoopback(t *testing.T) {
	_, url := serve(t, shared().nodes[0],
		func(c *api.Config) { c.REST.Hosts = []string{"console.example", "zk.example"} })
	for _, host := range []string{
		"localhost", "localhost:8080", "LOCALHOST", "localhost.", "localhost.:8080", "zk1.localhost",
		"127.0.0.1", "127.0.0.1:8080", "127.1.2.3:1", "[::1]", "[::1]:8080", "10.0.0.1:8080",
		"192.168.1.1", "console.example", "Console.Example:8443", "zk.example.",
	} {
		if got := asked(t, url, "/v1/znodes/", host); got != 200 {
			t.Errorf("Host: %s: %d", host, got)
		}
	}
	for _, host := range []string{
		"evil.example", "evil.example:8080", "localhost.evil.example", "notlocalhost", "xlocalhost:1",
		"127.0.0.1.evil.example", "sub.console.example", "consoleexample", "1", "0x7f000001",
	} {
		for _, target := range []string{"/v1/znodes/", "/v1/cluster", "/livez", "/docs", "/nothing"} {
			if got := asked(t, url, target, host); got != 403 {
				t.Errorf("%s with Host: %s: %d", target, host, got)
			}
		}
	}
	req := newClient(t, url).request("PUT", "/v1/znodes/", "x")
	req.Host = "evil.example"
	req.Header.Set("Origin", "http://evil.example") // the same origin, as the browser sees it
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusForbidden {
		t.Errorf("a rebound page may write: %d", resp.StatusCode)
	}
}

// A client of HTTP/1.0, which is no browser, sends no Host.
func TestServer_Host_None(t *testing.T) {
	_, url := serve(t, shared().nodes[0])
	c, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprint(c, "GET /livez HTTP/1.0\r\n\r\n")
	line, err := bufio.NewReader(c).ReadString('\n')
	if err != nil || !strings.Contains(line, " 200 ") {
		t.Errorf("%q %v", line, err)
	}
}

// A server at a public address has names that it does not know; "*" declares the same for a server on loopback.
// Operations for local clients still demand a known name.
func TestServer_Host_Elsewhere(t *testing.T) {
	local, err := auth.NewLocal(t.TempDir(), 1)
	if err != nil {
		t.Fatal(err)
	}
	srv := authed{shared().nodes[0].Server(), auth.New(auth.Config{Local: local})}
	l, err := net.Listen("tcp", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	d, _ := serveReplaced(t, shared().nodes[0], srv)
	served := make(chan error, 1)
	go func() { served <- d.Serve(l) }()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	url := "http://127.0.0.1:" + port
	eventually(t, "the server is open to others", func() bool {
		return asked(t, url, "/v1/znodes/", "zk.example") == 200
	})
	if got := asked(t, url, "/v1/cluster", "zk.example"); got != 403 {
		t.Errorf("an operator by rebinding: %d", got)
	}
	if got := asked(t, url, "/v1/cluster", "localhost"); got != 401 { // it needs the token, too
		t.Errorf("an operator on the machine: %d", got)
	}
	d.Kill()
	if err := <-served; err != nil {
		t.Error(err)
	}
	_, any := serveReplaced(t, shared().nodes[0], srv, func(c *api.Config) { c.REST.Hosts = []string{"*"} })
	if got := asked(t, any, "/v1/cluster", "zk.example"); got != 401 {
		t.Errorf("with *: %d", got)
	}
}
