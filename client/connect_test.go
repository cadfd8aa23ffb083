package client

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func TestClient_Reconnect_StickyAndBackoff(t *testing.T) {
	withFake(t, func(t *testing.T, s *fakeServer, c *Client) {
		w := c.States()
		nextState(t, w, StateConnected)
		<-time.After(testTimeout)
		s.do(func() { s.down = true; s.dials = s.dials[:1] })
		s.cutAll()
		nextState(t, w, StateSuspended)
		<-time.After(testTimeout / 3)
		dials := get(s, &s.dials)
		if dials[0] != dials[1] {
			t.Errorf("first %s is tried, want the last good server %s", dials[1], dials[0])
		}
		// In 3 s: the pauses are 50 ms, 100, ... 2 s, each between its half and
		// itself: 6 to 8 rounds of 3 servers.
		if n := (len(dials) - 1) / 3; n < 6 || n > 8 {
			t.Errorf("%d rounds in %v, want 6 to 8: %v", n, testTimeout/3, dials)
		}
		s.do(func() { s.down = false })
		nextState(t, w, StateReconnected)
	})
}

func TestConnect_NoServer_ErrorNamesLastAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeServer(t)
		s.down = true
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := Connect(ctx, "10.0.0.1", WithDialer(s.dial))
		wantErr(t, err, context.DeadlineExceeded, errRefused)
		s.stop()
	})
}

func TestConnect_WrongCredentials_Final(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeServer(t)
		s.credentials = map[string]bool{"u:right": true}
		_, err := Connect(t.Context(), "10.0.0.1", WithDialer(s.dial),
			WithAuth("digest", []byte("u:wrong")))
		wantErr(t, err, ErrAuthFailed)
		s.stop()
	})
}

func TestClient_Close_WithoutConnectionSaysSo(t *testing.T) {
	withFake(t, func(t *testing.T, s *fakeServer, c *Client) {
		s.do(func() { s.down = true })
		s.cutAll()
		synctest.Wait()
		p := c.Async().Set(t.Context(), "/", nil, AnyVersion)
		wantErr(t, c.Close(), ErrNotClosed)
		_, err := p.Wait(t.Context())
		wantErr(t, err, ErrClosed)
		mustNot(t, c.Close())
	})
}

func TestClient_Close_SilentServerDoesNotHang(t *testing.T) {
	withFake(t, func(t *testing.T, s *fakeServer, c *Client) {
		s.do(func() { s.silent = true })
		p := c.Async().Set(t.Context(), "/", nil, AnyVersion)
		start := time.Now()
		wantErr(t, c.Close(), ErrNotClosed)
		if d := time.Since(start); d > maxCloseWait {
			t.Errorf("Close took %v", d)
		}
		_, err := p.Wait(t.Context())
		wantErr(t, err, ErrClosed, ErrOutcomeUnknown)
	})
}
