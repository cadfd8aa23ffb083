package api_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

// benchmark sends requests over as many connections as there are clients.
func benchmark(b *testing.B, clients int, send func(c *http.Client, url string, n int) *http.Request) {
	e := shared()
	url := e.urls[0]
	newClient(b, url).put("/v1/znodes/bench?create=true", strings.Repeat("x", 100))
	b.ReportAllocs()
	b.ResetTimer()
	b.SetParallelism(max(1, clients/2))
	b.RunParallel(func(pb *testing.PB) {
		c := &http.Client{Transport: &http.Transport{}}
		defer c.CloseIdleConnections()
		for n := 0; pb.Next(); n++ {
			resp, err := c.Do(send(c, url, n))
			if err != nil {
				b.Error(err)
				return
			}
			_, _ = io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
			if resp.StatusCode >= 300 {
				b.Errorf("the answer is %s", resp.Status)
				return
			}
		}
	})
}

func BenchmarkGet(b *testing.B) {
	benchmark(b, 16, func(_ *http.Client, url string, _ int) *http.Request {
		r, _ := http.NewRequest(http.MethodGet, url+"/v1/znodes/bench", nil)
		return r
	})
}

func BenchmarkPut(b *testing.B) {
	benchmark(b, 64, func(_ *http.Client, url string, n int) *http.Request {
		r, _ := http.NewRequest(http.MethodPut, url+"/v1/znodes/bench", strings.NewReader(fmt.Sprint(n)))
		return r
	})
}

// BenchmarkStreams measures one change that a thousand streams at three servers send.
func BenchmarkStreams(b *testing.B) {
	const streams = 1000
	e := shared()
	c := newClient(b, e.urls[0])
	c.put("/v1/znodes/streams?create=true", "")
	told := make(chan struct{}, streams)
	for i := range streams {
		s := c.at(e.urls[i%3]).stream("/v1/watches/streams")
		go func() {
			for lines := bufio.NewScanner(s.in); lines.Scan(); {
				if lines.Text() == "event: changed" {
					told <- struct{}{}
				}
			}
		}()
	}
	b.ResetTimer()
	for range b.N {
		c.put("/v1/znodes/streams", "x").want(200)
		for range streams {
			<-told
		}
	}
	b.ReportMetric(float64(b.N*streams)/b.Elapsed().Seconds(), "events/s")
}
