package httpapi

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
	"time"
)

const (
	// roundPause is how long to wait when all servers have been tried and none of them
	// has said how long.
	roundPause = 200 * time.Millisecond
	// maxProblem bounds what is read of an error; those of zk-lite are short.
	maxProblem = 64 << 10
	// maxAnswer bounds an answer that is read as a whole.
	maxAnswer = 4 << 20
)

// Request is what to ask for.
type Request struct {
	Method string
	Target string // path and query: /v1/cluster
	Body   []byte // JSON, or nil
	// Content is sent instead of Body if it is not nil: it opens so many bytes, again
	// for each attempt.
	Content func() (io.ReadCloser, error)
	Size    int64
	// Key, unless it is empty, makes a server recognise a repetition: it is carried out
	// once (the header Idempotency-Key).
	Key string
	// Repeatable reports that the request does no harm when it is carried out twice. What
	// is not, is repeated only if the server says that nothing was done.
	Repeatable bool
}

// outcome is that of one attempt.
type outcome int

const (
	answered outcome = iota // for good
	notDone                 // certainly nothing has been done
	lost                    // it may have been done
)

// Do asks one server after the other until one answers for good. The caller must close
// the answer's body, whose reading ends with an error when nothing comes for Timeout.
//
// Errors: a *Problem; *UnreachableError; ErrUnknown, perhaps together with a Problem: a
// repetition got that; ctx's.
func (c *Client) Do(ctx context.Context, r *Request) (*http.Response, error) {
	t := &try{client: c, r: r, deadline: time.Now().Add(c.Timeout)}
	for {
		resp, done, err := t.round(ctx)
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case done && err != nil && t.lost != nil:
			return nil, fmt.Errorf("%w; an earlier attempt: %w", err, t.lost)
		case done:
			return resp, err
		case time.Until(t.deadline) <= t.pause, t.wouldBeLost():
			return nil, t.givenUp(err)
		}
		if err := wait(ctx, t.pause); err != nil {
			return nil, err
		}
	}
}

// try is a request on its way from server to server.
type try struct {
	client   *Client
	r        *Request
	deadline time.Time

	tokens  map[string]*credential // by server
	pause   time.Duration          // before the next round
	lost    error                  // an attempt's whose outcome is unknown
	problem *Problem               // the last one that allows another attempt
	took    time.Duration          // until the slowest of those came
}

// wouldBeLost reports that there is no time for such an answer as there was: another attempt would end with an unknown
// outcome, where it is known so far that nothing was done.
func (t *try) wouldBeLost() bool {
	left := (time.Until(t.deadline) - t.pause) / time.Duration(len(t.client.URLs))
	return t.problem != nil && t.lost == nil && left < t.took
}

// round asks every server once, and reports whether that was for good.
func (t *try) round(ctx context.Context) (resp *http.Response, done bool, err error) {
	refused := true
	var elsewhere *Problem
	t.pause = 0
	for i, at := range t.client.URLs {
		left := max(time.Until(t.deadline), roundPause) / time.Duration(len(t.client.URLs)-i)
		var what outcome
		begun := time.Now()
		resp, what, err = t.client.attempt(ctx, at, t.r, left, t.token(at))
		if what == answered || what == lost && !t.r.Repeatable || ctx.Err() != nil {
			return resp, true, err
		}
		if what == lost {
			t.lost = err
		}
		var p *Problem
		if errors.As(err, &p) {
			t.problem, t.took = p, max(t.took, time.Since(begun))
			if p.elsewhere {
				elsewhere = p
			}
			if t.pause == 0 || p.RetryAfter < t.pause {
				t.pause = p.RetryAfter
			}
		}
		refused = refused && (isRefused(err) || p != nil && p.elsewhere)
	}
	t.pause = max(t.pause, roundPause)
	switch {
	case refused && elsewhere != nil:
		return nil, true, elsewhere
	case refused:
		return nil, true, &UnreachableError{t.client.URLs, err, true}
	}
	return nil, false, err
}

// token is what to prove to a server, if it is not a password.
func (t *try) token(at string) *credential {
	if t.tokens == nil {
		t.tokens = map[string]*credential{}
	}
	if t.tokens[at] == nil {
		token := cmp.Or(t.client.Token, t.client.local[at])
		t.tokens[at] = &credential{token: token, local: t.client.User == "" && t.client.Token == ""}
	}
	return t.tokens[at]
}

// credential is a bearer token; empty: none.
type credential struct {
	token string
	local bool // the server on this machine may say where its own is
}

// givenUp is the error when there is no time left.
func (t *try) givenUp(last error) error {
	switch {
	case t.lost != nil:
		return t.lost
	case t.problem != nil:
		return t.problem
	}
	return &UnreachableError{URLs: t.client.URLs, Err: last}
}

func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// errIdle reports that nothing has moved for too long.
var errIdle = errors.New("no answer in time")

// attempt asks one server, which has so long to answer.
func (c *Client) attempt(
	ctx context.Context, at string, r *Request, patience time.Duration, proof *credential,
) (*http.Response, outcome, error) {
	whole := ctx
	ctx, cancel := context.WithCancelCause(ctx)
	idle := newIdleTimer(patience, cancel)
	sent := new(atomic.Bool)
	req, err := c.request(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) {
			sent.Store(true)
			if !r.Repeatable || r.Content != nil { // the others have to wait for this one
				idle.allow(c.Timeout)
			}
		},
	}), at, r, idle)
	if err != nil {
		idle.stop()
		return nil, answered, err
	}
	if proof.token != "" {
		req.Header.Set("Authorization", "Bearer "+proof.token)
	}
	resp, err := c.transport.RoundTrip(req)
	if err != nil {
		idle.stop()
		if errors.Is(context.Cause(ctx), errIdle) {
			err = errIdle
		}
		if !sent.Load() || r.Method == http.MethodGet {
			return nil, notDone, err
		}
		return nil, lost, fmt.Errorf("%w (%s: %w)", ErrUnknown, at, reason(err))
	}
	idle.allow(c.Timeout)
	resp.Body = &watchedBody{resp.Body, idle, ctx}
	if resp.StatusCode >= 200 && resp.StatusCode < 300 {
		return resp, answered, nil
	}
	defer resp.Body.Close()
	var noToken error
	if proof.local {
		proof.local = false
		if proof.token, noToken = localToken(at, resp); proof.token != "" {
			return c.attempt(whole, at, r, patience, proof)
		}
	}
	what, err := refusal(at, r, resp)
	if p, ok := errors.AsType[*Problem](err); ok {
		p.NoToken = noToken
	}
	if what == lost && r.Method == http.MethodGet {
		what = notDone
	}
	return nil, what, err
}

// request makes a request of net/http.
func (c *Client) request(
	ctx context.Context, at string, r *Request, idle *idleTimer,
) (*http.Request, error) {
	var body io.Reader
	if r.Body != nil {
		body = bytes.NewReader(r.Body)
	}
	if r.Content != nil {
		content, err := r.Content()
		if err != nil {
			return nil, err
		}
		body = &watchedContent{content, idle}
	}
	req, err := http.NewRequestWithContext(ctx, r.Method, at+r.Target, body)
	if err != nil {
		return nil, fmt.Errorf("asking %s: %w", at, err)
	}
	if r.Body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if r.Content != nil {
		req.ContentLength = r.Size
		req.Header.Set("Content-Type", "application/octet-stream")
		req.Header.Set("Expect", "100-continue")
	}
	if r.Key != "" {
		req.Header.Set("Idempotency-Key", r.Key)
	}
	if c.User != "" {
		req.SetBasicAuth(c.User, c.Password)
	}
	return req, nil
}

// JSON asks for something and decodes the answer into v, unless it is nil.
func (c *Client) JSON(ctx context.Context, r *Request, v any) error {
	resp, err := c.Do(ctx, r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return fmt.Errorf("reading the answer of %s: %w", resp.Request.URL.Host, err)
	}
	if v == nil {
		return nil
	}
	if err := json.Unmarshal(text, v); err != nil {
		return &foreignError{url: resp.Request.URL.Host, status: resp.Status}
	}
	return nil
}

// idleTimer ends a request when nothing has moved for a while.
type idleTimer struct {
	cancel context.CancelCauseFunc
	timer  *time.Timer
	after  atomic.Int64 // a time.Duration
}

func newIdleTimer(after time.Duration, cancel context.CancelCauseFunc) *idleTimer {
	t := &idleTimer{cancel: cancel}
	t.after.Store(int64(after))
	t.timer = time.AfterFunc(after, func() { cancel(errIdle) })
	return t
}

// allow changes how long nothing may move, from now on.
func (t *idleTimer) allow(after time.Duration) {
	t.after.Store(int64(after))
	t.moved()
}

func (t *idleTimer) patience() time.Duration { return time.Duration(t.after.Load()) }

func (t *idleTimer) moved() { t.timer.Reset(t.patience()) }

func (t *idleTimer) stop() {
	t.timer.Stop()
	t.cancel(nil)
}

// watchedContent is what is being sent.
type watchedContent struct {
	io.ReadCloser
	idle *idleTimer
}

func (w *watchedContent) Read(b []byte) (int, error) {
	n, err := w.ReadCloser.Read(b)
	if n > 0 {
		w.idle.moved()
	}
	return n, err
}

// watchedBody is what is being received.
type watchedBody struct {
	io.ReadCloser
	idle *idleTimer
	ctx  context.Context // of the request
}

func (w *watchedBody) Read(b []byte) (int, error) {
	n, err := w.ReadCloser.Read(b)
	if n > 0 {
		w.idle.moved()
	}
	if err != nil && !errors.Is(err, io.EOF) && errors.Is(context.Cause(w.ctx), errIdle) {
		err = fmt.Errorf("nothing came for %v: %w", w.idle.patience(), errIdle)
	}
	return n, err
}

func (w *watchedBody) Close() error {
	w.idle.stop()
	return w.ReadCloser.Close()
}
