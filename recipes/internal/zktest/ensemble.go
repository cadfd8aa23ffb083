package zktest

import (
	"bytes"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/internal/testkit/wait"
)

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
	wait.Until(tb, s.Address+" serves", func() bool {
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
