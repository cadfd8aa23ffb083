package api_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// A connection that a browser had opened in advance made a server's stop wait for more than five seconds.
func TestRegression_Shutdown_UnusedConnectionsDoNotMatter(t *testing.T) {
	d, url := serve(t, shared().nodes[0].Server())
	c, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	eventually(t, "the server has the connection", func() bool { return d.Conns() == 1 })
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	if err := d.Shutdown(ctx); err != nil {
		t.Error(err)
	}
}

// A client that never pauses lost a request to a server that stopped: it was on its way when the idle connection
// was closed.
func TestRegression_Shutdown_NoRequestIsLost(t *testing.T) {
	for range 10 {
		d, url := serve(t, shared().nodes[0].Server())
		transport := &http.Transport{}
		client := http.Client{Transport: transport}
		ended := make(chan error, 1)
		for i := range 200 {
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
			if i == 199 {
				t.Error("the server that stops keeps the connection")
			}
		}
		transport.CloseIdleConnections()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}
