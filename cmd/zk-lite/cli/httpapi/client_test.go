package httpapi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/internal/testkit/tier"
)

// patience is a timeout that no test waits for.
const patience = time.Minute

// served is a server with one handler, and how often it was asked.
func served(t *testing.T, f func(w http.ResponseWriter, r *http.Request, n int64)) (string, *atomic.Int64) {
	t.Helper()
	n := new(atomic.Int64)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f(w, r, n.Add(1))
	}))
	t.Cleanup(s.Close)
	return s.URL, n
}

// refuse answers with a problem.
func refuse(w http.ResponseWriter, status int, retryAfter string) {
	w.Header().Set("Content-Type", "application/problem+json")
	if retryAfter != "" {
		w.Header().Set("Retry-After", retryAfter)
	}
	w.WriteHeader(status)
	fmt.Fprintf(w, `{"title":"refused","detail":"status %d","hint":"do this","status":%d}`, status, status)
}

// nobody is an address without a listener.
func nobody(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return "http://" + l.Addr().String()
}

var get = &Request{Method: http.MethodGet, Target: "/x", Repeatable: true}
var once = &Request{Method: http.MethodPost, Target: "/x", Body: []byte("{}")}
var again = &Request{Method: http.MethodPost, Target: "/x", Body: []byte("{}"), Repeatable: true}

func ok(w http.ResponseWriter, _ *http.Request, _ int64) { fmt.Fprint(w, `{"a":1}`) }

// It skips servers without a listener, and those that send it elsewhere, in order.
func TestDo_OneAnswers_IsFound(t *testing.T) {
	away, asked := served(t, func(w http.ResponseWriter, _ *http.Request, _ int64) { refuse(w, 503, "60") })
	good, _ := served(t, ok)
	for _, r := range []*Request{get, once, again} {
		var v struct{ A int }
		if err := New([]string{nobody(t), away, good}, patience, nil).JSON(t.Context(), r, &v); err != nil || v.A != 1 {
			t.Errorf("%s: got %v, %v, want 1", r.Method, v.A, err)
		}
	}
	if n := asked.Load(); n != 3 {
		t.Errorf("the one that sends away was asked %d times", n)
	}
}

// Retry-After is waited for, also by what must not be repeated: nothing was done.
func TestDo_RetryAfter_IsFollowed(t *testing.T) {
	for _, r := range []*Request{get, once} {
		url, n := served(t, func(w http.ResponseWriter, r *http.Request, n int64) {
			if n < 3 {
				refuse(w, 429, "0")
				return
			}
			ok(w, r, n)
		})
		if err := New([]string{url}, patience, nil).JSON(t.Context(), r, nil); err != nil || n.Load() != 3 {
			t.Errorf("%s: %v after %d requests", r.Method, err, n.Load())
		}
	}
}

// Without it there is no use to ask that server again, and others are asked.
func TestDo_Elsewhere(t *testing.T) {
	removed, asked := served(t, func(w http.ResponseWriter, _ *http.Request, _ int64) { refuse(w, 503, "") })
	good, _ := served(t, ok)
	for _, r := range []*Request{get, once} {
		if err := New([]string{removed, good}, patience, nil).JSON(t.Context(), r, nil); err != nil {
			t.Errorf("%s: %v", r.Method, err)
		}
		err := New([]string{removed, nobody(t)}, time.Hour, nil).JSON(t.Context(), r, nil)
		var p *Problem
		if !errors.As(err, &p) || p.Status != 503 {
			t.Errorf("%s: %v", r.Method, err)
		}
	}
	if n := asked.Load(); n != 4 {
		t.Errorf("it was asked %d times", n)
	}
}

// It is not waited for beyond the timeout.
func TestDo_RetryAfterTooLate_Fails(t *testing.T) {
	url, n := served(t, func(w http.ResponseWriter, _ *http.Request, _ int64) { refuse(w, 503, "3600") })
	err := New([]string{url, nobody(t)}, patience, nil).JSON(t.Context(), get, nil)
	var p *Problem
	if !errors.As(err, &p) || p.Status != 503 || p.RetryAfter != time.Hour || n.Load() != 1 {
		t.Errorf("%v after %d requests", err, n.Load())
	}
}

func TestDo_NobodyListens_FailsAtOnce(t *testing.T) {
	err := New([]string{nobody(t), nobody(t), "http://host.invalid:1"}, patience, nil).JSON(t.Context(), once, nil)
	var none *UnreachableError
	if !errors.As(err, &none) || !none.Refused || len(none.URLs) != 3 {
		t.Errorf("%v", err)
	}
}

// An answer for good ends it: no other server is asked.
func TestDo_Problem_IsReturned(t *testing.T) {
	url, _ := served(t, func(w http.ResponseWriter, _ *http.Request, _ int64) { refuse(w, 409, "") })
	other, n := served(t, ok)
	err := New([]string{url, other}, patience, nil).JSON(t.Context(), again, nil)
	var p *Problem
	if !errors.As(err, &p) || p.Status != 409 || p.URL != url || n.Load() != 0 || err.Error() != "status 409; do this" {
		t.Errorf("%v, the other was asked %d times", err, n.Load())
	}
}

// hangUp closes the connection without an answer.
func hangUp(http.ResponseWriter, *http.Request, int64) { panic(http.ErrAbortHandler) }

func TestDo_AnswerLost_IsRepeatedOnlyIfHarmless(t *testing.T) {
	for _, lose := range []func(http.ResponseWriter, *http.Request, int64){
		hangUp,
		func(w http.ResponseWriter, _ *http.Request, _ int64) { refuse(w, 504, "") },
		func(w http.ResponseWriter, _ *http.Request, _ int64) { w.WriteHeader(http.StatusBadGateway) }, // a proxy's
	} {
		bad, _ := served(t, lose)
		good, n := served(t, ok)
		c := New([]string{bad, good}, patience, nil)
		if err := c.JSON(t.Context(), once, nil); !errors.Is(err, ErrUnknown) || n.Load() != 0 {
			t.Errorf("%v, repeated %d times", err, n.Load())
		}
		for _, r := range []*Request{get, again} {
			if err := c.JSON(t.Context(), r, nil); err != nil {
				t.Errorf("%s: %v", r.Method, err)
			}
		}
	}
}

// A repetition that fails says that the first attempt may have been carried out.
func TestDo_RepetitionRefused_OutcomeIsUnknown(t *testing.T) {
	bad, _ := served(t, hangUp)
	other, _ := served(t, func(w http.ResponseWriter, _ *http.Request, _ int64) { refuse(w, 404, "") })
	c := New([]string{bad, other}, patience, nil)
	err := c.JSON(t.Context(), again, nil)
	var p *Problem
	if !errors.Is(err, ErrUnknown) || !errors.As(err, &p) || p.Status != 404 {
		t.Errorf("%v", err)
	}
	if err := c.JSON(t.Context(), get, nil); errors.Is(err, ErrUnknown) || !errors.As(err, &p) {
		t.Errorf("what only reads has no outcome: %v", err)
	}
}

// One that does not answer does not take the others' time.
func TestDo_OneIsSilent_AnotherAnswers(t *testing.T) {
	tier.Seconds(t)
	t.Parallel()
	silent := make(chan struct{})
	bad, _ := served(t, func(http.ResponseWriter, *http.Request, int64) { <-silent })
	t.Cleanup(func() { close(silent) })
	good, _ := served(t, ok)
	if err := New([]string{bad, good}, 5*time.Second, nil).JSON(t.Context(), get, nil); err != nil {
		t.Error(err)
	}
	err := New([]string{bad}, 2*time.Second, nil).JSON(t.Context(), once, nil)
	if !errors.Is(err, ErrUnknown) {
		t.Errorf("%v", err)
	}
	err = New([]string{bad}, 2*time.Second, nil).JSON(t.Context(), get, nil)
	var none *UnreachableError
	if !errors.As(err, &none) || none.Refused {
		t.Errorf("%v", err)
	}
}

// An answer that is cut off, or stops, is an error and not the end.
func TestDo_BodyEndsEarly_IsAnError(t *testing.T) {
	tier.Seconds(t)
	t.Parallel()
	cut, _ := served(t, func(w http.ResponseWriter, _ *http.Request, _ int64) {
		fmt.Fprint(w, "part")
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	})
	silent := make(chan struct{})
	stops, _ := served(t, func(w http.ResponseWriter, _ *http.Request, _ int64) {
		fmt.Fprint(w, "part")
		_ = http.NewResponseController(w).Flush()
		<-silent
	})
	t.Cleanup(func() { close(silent) })
	for url, want := range map[string]string{cut: "unexpected EOF", stops: "nothing came for 3s"} {
		resp, err := New([]string{url}, 3*time.Second, nil).Do(t.Context(), get)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(resp.Body)
		if string(text) != "part" || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q %v; want %s", text, err, want)
		}
		resp.Body.Close()
	}
}

// Content is sent only to who wants it, and from the beginning each time.
func TestDo_Content_IsSentAgain(t *testing.T) {
	url, _ := served(t, func(w http.ResponseWriter, r *http.Request, n int64) {
		if key := r.Header.Get("Idempotency-Key"); key != "the-same" {
			t.Errorf("key %q", key)
		}
		if n == 1 {
			refuse(w, 503, "0")
			return
		}
		user, password, _ := r.BasicAuth()
		text, err := io.ReadAll(r.Body)
		if err != nil || string(text) != "content" || user != "ann" || password != "a:b" || r.ContentLength != 7 {
			t.Errorf("%q %v, %s:%s, length %d", text, err, user, password, r.ContentLength)
		}
		ok(w, r, n)
	})
	c := New([]string{url}, patience, nil)
	c.User, c.Password = "ann", "a:b"
	opened := 0
	err := c.JSON(t.Context(), &Request{
		Method: http.MethodPost, Target: "/x", Size: 7, Key: "the-same",
		Content: func() (io.ReadCloser, error) {
			opened++
			return io.NopCloser(strings.NewReader("content")), nil
		},
	}, nil)
	if err != nil || opened != 2 {
		t.Errorf("%v, opened %d times", err, opened)
	}
	if err := c.JSON(t.Context(), &Request{Method: http.MethodPost, Target: "/x",
		Content: func() (io.ReadCloser, error) { return nil, io.ErrClosedPipe }}, nil); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("%v", err)
	}
}

func TestDo_Interrupted_SaysSo(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	url, _ := served(t, func(w http.ResponseWriter, _ *http.Request, _ int64) {
		cancel()
		refuse(w, 503, "1")
	})
	if err := New([]string{url}, patience, nil).JSON(ctx, get, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

func TestDo_SomebodyElsesServer_IsNotTakenForOurs(t *testing.T) {
	for _, f := range []func(http.ResponseWriter, *http.Request, int64){
		func(w http.ResponseWriter, r *http.Request, _ int64) { http.NotFound(w, r) },
		func(w http.ResponseWriter, r *http.Request, _ int64) { http.Redirect(w, r, "/other", http.StatusFound) },
		func(w http.ResponseWriter, _ *http.Request, _ int64) { fmt.Fprint(w, "<html>") },
	} {
		url, n := served(t, f)
		var v any
		err := New([]string{url}, patience, nil).JSON(t.Context(), get, &v)
		if err == nil || !strings.Contains(err.Error(), "not as the HTTP API of zk-lite does") || n.Load() != 1 {
			t.Errorf("%v", err)
		}
	}
}

func TestDo_APortWithTLS(t *testing.T) {
	url, _ := served(t, func(w http.ResponseWriter, _ *http.Request, _ int64) {
		http.Error(w, "This port speaks TLS: use https://, or the port without TLS.", http.StatusBadRequest)
	})
	want := " speaks TLS: https://" + strings.TrimPrefix(url, "http://") + ", and --tls-ca names"
	if err := New([]string{url}, patience, nil).JSON(t.Context(), get, nil); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %q", err, want)
	}
}

func TestParseURLs(t *testing.T) {
	got, err := ParseURLs("http://a:1/, b:2,https://c/prefix ")
	if err != nil || strings.Join(got, " ") != "http://a:1 http://b:2 https://c/prefix" {
		t.Errorf("%q %v", got, err)
	}
	for _, bad := range []string{"", "a:1,", "ftp://a", "http://", "http://a:x", "http://a?b", "http://u:p@a", "://"} {
		if got, err := ParseURLs(bad); err == nil || strings.Contains(err.Error(), "u:p") {
			t.Errorf("%q is taken for %q; %v", bad, got, err)
		}
	}
}

// A server without a leader says after a while that it has done nothing. The attempt after that was cut off by the end of
// the client's time, and a change was said to have happened perhaps.
func TestRegression_Do_NoAttemptThatHasNoTime(t *testing.T) {
	tier.Seconds(t)
	at, n := served(t, func(w http.ResponseWriter, r *http.Request, _ int64) {
		select {
		case <-time.After(800 * time.Millisecond):
			refuse(w, 503, "0")
		case <-r.Context().Done():
		}
	})
	var p *Problem
	err := New([]string{nobody(t), at}, 2400*time.Millisecond, nil).JSON(t.Context(), again, nil)
	if !errors.As(err, &p) || errors.Is(err, ErrUnknown) || n.Load() == 0 {
		t.Errorf("after %d attempts: %v", n.Load(), err)
	}
}
