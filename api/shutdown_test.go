package api_test

import (
	"io"
	"net/http"
	"testing"
)

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
