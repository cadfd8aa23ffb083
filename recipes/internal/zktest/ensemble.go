package zktest

import (
	"bytes"
	"context"
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

// startTimeout bounds how long servers may take until they serve: long for a
// Java process on a loaded machine.
const startTimeout = 60 * time.Second

// pollEvery is how often WaitFor looks.
const pollEvery = 5 * time.Millisecond

// Ensemble is a number of servers that belong together. It ends with the test.
type Ensemble struct {
	Servers []*Server
}

// Server is one of an ensemble.
type Server struct {
	Address string // of the client port
	process
}

// Start starts n servers, and waits until all of them serve.
func Start(tb testing.TB, n int) *Ensemble {
	tb.Helper()
	e := newEnsemble(startProcesses(tb, n))
	for _, s := range e.Servers {
		s.WaitServing(tb)
	}
	return e
}

func newEnsemble(all []process) *Ensemble {
	e := new(Ensemble)
	for _, p := range all {
		e.Servers = append(e.Servers, &Server{Address: p.address(), process: p})
	}
	return e
}

// ConnectString names all servers.
func (e *Ensemble) ConnectString() string {
	var list []string
	for _, s := range e.Servers {
		list = append(list, s.Address)
	}
	return strings.Join(list, ",")
}

// WaitServing waits until the server answers clients.
func (s *Server) WaitServing(tb testing.TB) {
	tb.Helper()
	waitFor(tb, startTimeout, s.Address+" serves", func() bool {
		return bytes.Contains(s.Ask("srvr"), []byte("Mode:"))
	})
}

// Ask sends a four-letter word and returns the answer, or nothing if there is
// none.
func (s *Server) Ask(word string) []byte {
	conn, err := net.DialTimeout("tcp", s.Address, time.Second)
	if err != nil {
		return nil
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(2 * time.Second)); err != nil {
		return nil
	}
	if _, err := io.WriteString(conn, word); err != nil {
		return nil
	}
	answer, _ := io.ReadAll(conn) // a partial answer is one
	return answer
}

// WaitFor waits until a condition holds, and fails the test if it does not within
// half a minute.
func WaitFor(tb testing.TB, what string, condition func() bool) {
	tb.Helper()
	waitFor(tb, 30*time.Second, what, condition)
}

func waitFor(tb testing.TB, timeout time.Duration, what string, condition func() bool) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for !condition() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			tb.Fatalf("after %v it does not hold that %s", timeout, what)
		}
	}
}
