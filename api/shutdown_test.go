package api_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
)

// A connection that a browser had opened in advance made a server's stop wait for more than five seconds.
func TestRegression_Shutdown_UnusedConnectionsDoNotMatter(t *testing.T) {
	stop := func() error {
		d, url := serve(t, shared().nodes[0])
		c, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		eventually(t, "the server has the connection", func() bool { return d.Conns() == 1 })
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		return d.Shutdown(ctx)
	}
	var err error
	for range 3 { // a busy machine may take three seconds for nothing, but not each time
		if err = stop(); err == nil {
			return
		}
	}
	t.Error(err)
}

// A client that never pauses lost a request to a server that stopped: it was on its way when the idle connection
// was closed.
func TestRegression_Shutdown_NoRequestIsLost(t *testing.T) {
	for range 10 {
		d, url := serve(t, shared().nodes[0])
		transport := &http.Transport{}
		client := http.Client{Transport: transport}
		ended := make(chan error, 1)
		begin := time.Now()
		for i := 0; ; i++ {
			if i == 100 {
				go func() { ended <- d.Shutdown(t.Context()) }()
			}
			resp, err := client.Get(url + "/v1/znodes/")
			if err != nil {
				t.Fatalf("request %d: %v", i, err)
			}
			_, _ = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
			if resp.Close { // the next one would be another server's
				break
			}
			if resp.StatusCode != http.StatusOK {
				t.Fatalf("request %d: %s", i, resp.Status)
			}
			if time.Since(begin) > wait.Patience {
				t.Fatal("the server that stops keeps the connection")
			}
		}
		transport.CloseIdleConnections()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// halfClosed sends a request, closes its side of the connection, and reads the answer.
func halfClosed(t *testing.T, url, request, header, body string) (status int, answer string) {
	t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprintf(c, "%s HTTP/1.1\r\nHost: localhost\r\n%s\r\nContent-Length: %d\r\n\r\n%s", request, header, len(body), body)
	if err := c.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatalf("%s: %v", request, err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("%s: %v", request, err)
	}
	return resp.StatusCode, string(b)
}

// A client that had closed its side of the connection got the answer that the outcome of its write was not known,
// although it was: scripts that tried again made duplicates.
func TestRegression_HalfClosed_GetsTheAnswer(t *testing.T) {
	srv := shared().nodes[0].Server()
	_, url := serveReplaced(t, shared().nodes[0], faulty{Server: srv, do: func(ctx context.Context, c *state.Command) (state.Result, error) {
		r, err := srv.Do(ctx, c)
		select {
		case <-ctx.Done():
			return state.Result{}, ctx.Err()
		case <-time.After(100 * time.Millisecond): // longer than the server takes to see the end
			return r, err
		}
	}})
	c := newCoordinator(t, url)
	r := root(t, c.client)
	dir := strings.TrimPrefix(r, "/v1/znodes")
	lock := "/v1/locks" + dir + "/lock"
	for _, x := range []struct {
		request, body string
		status        int
		says          string
	}{
		{"PUT " + r, "x", 200, `"version":1`},
		{"POST " + r + "/n-?mode=persistent_sequential", "", 201, "/n-0000000000"},
		{"POST /v1/multi", `{"ops":[{"op":"set","path":"` + dir + `","data":"y"}]}`, 200, `"version":2`},
		{"GET " + r + "?consistency=linearizable", "", 200, `"data":"y"`},
		{"GET /v1/search" + dir + "?name=n-", "", 200, "/n-0000000000"},
		{"GET /v1/watches" + dir + "?wait=1m", "", 200, `"events":[]`},
		{"DELETE " + r + "/n-0000000000", "", 204, ""},
		{"POST /v1/sessions", "", 201, "secret"},
		{"POST " + lock, "", 200, "fencing_token"},
		{"POST " + lock + "?wait=0s", "", 409, "held by another"},
		{"POST " + lock + "?wait=1m", "", 400, "nothing is held"},
	} {
		if status, body := halfClosed(t, url, x.request, c.headers[0], x.body); status != x.status || !strings.Contains(body, x.says) {
			t.Errorf("%s: %d %s, want %d and %q", x.request, status, body, x.status, x.says)
		}
	}
	c.get(lock).want(200).has("length", 0)
	c.get(r+"?children").want(200).has("stat.numChildren", 1)
}

// A body that did not come used up the time that a server has to stop. Nothing that is half sent holds it up.
func TestRegression_Shutdown_HalfSentBodiesDoNotMatter(t *testing.T) {
	d, url := serve(t, shared().nodes[0])
	conns := map[string]net.Conn{}
	for _, request := range []string{
		"PUT /v1/znodes/a", "PUT /v1/nothing", "POST /v1/snapshot", "POST /v1/locks/a", "BREW /v1/znodes/a", "GET /livez",
	} {
		for _, length := range []string{"Content-Length: 10", "Content-Length: 1000000", "Transfer-Encoding: chunked"} {
			c, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			fmt.Fprintf(c, "%s HTTP/1.1\r\nHost: localhost\r\n%s\r\n%s\r\n\r\n", request, basic("super:secret"), length)
			conns[request+", "+length] = c
		}
	}
	eventually(t, "all are being answered", func() bool { return d.Active() == len(conns) })
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second) // a body may take 30
	defer cancel()
	if err := d.Shutdown(ctx); err != nil {
		t.Error(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(conns["PUT /v1/znodes/a, Content-Length: 10"]), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("the answer is %s, want 503", resp.Status)
	}
}
