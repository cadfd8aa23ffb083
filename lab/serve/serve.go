package serve

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

// patience bounds how long a client may take for a request, and how long an answer may
// take: an experiment on servers that waits for its turn, or megabytes on the way to a slow browser.
const patience = 2 * experimentTime

// maxHeader bounds the headers of a request.
const maxHeader = 16 << 10

// Serve answers requests on l until ctx ends.
func Serve(ctx context.Context, l net.Listener, h http.Handler) error {
	s := &http.Server{Handler: h, ReadTimeout: patience, WriteTimeout: patience, IdleTimeout: time.Minute,
		MaxHeaderBytes: maxHeader}
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	select {
	case err := <-done:
		return fmt.Errorf("serving the page: %w", err)
	case <-ctx.Done():
	}
	// Nothing is lost with an interrupted request: the page can repeat it.
	err := s.Close()
	if served := <-done; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}
