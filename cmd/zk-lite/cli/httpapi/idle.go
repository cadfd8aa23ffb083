package httpapi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"
)

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
func (t *idleTimer) moved()                  { t.timer.Reset(t.patience()) }

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
