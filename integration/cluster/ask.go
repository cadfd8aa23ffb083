package cluster

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/zk-lite/zk-lite/internal/testkit/fourletter"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
	"github.com/zk-lite/zk-lite/znode"
)

// The modes in srvr's answer.
const (
	ModeLeader     = "leader"
	ModeFollower   = "follower"
	ModeObserver   = "observer"
	ModeStandalone = "standalone"
)

// NotServing is the answer of most words without a majority.
const NotServing = "This ZooKeeper instance is not currently serving requests"

// FourLetter sends a four-letter word and returns the whole answer.
func (s *Server) FourLetter(word string) (string, error) {
	return fourletter.Ask(s.Addr(), word)
}

// Field is the value of a line "name: value" in the answer to srvr.
func (s *Server) Field(name string) (string, error) {
	text, err := s.FourLetter("srvr")
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(line, name+": "); ok {
			return strings.TrimSpace(value), nil
		}
	}
	return "", fmt.Errorf("srvr has no line %q: %q", name, text)
}

// Mode is the mode that the server reports, or an error if it is not serving.
func (s *Server) Mode() (string, error) { return s.Field("Mode") }

// Zxid is the last transaction that the server has applied.
func (s *Server) Zxid() (znode.Zxid, error) {
	text, err := s.Field("Zxid")
	if err != nil {
		return 0, err
	}
	var zxid int64
	if _, err := fmt.Sscanf(text, "0x%x", &zxid); err != nil {
		return 0, fmt.Errorf("zxid %q: %w", text, err)
	}
	return znode.Zxid(zxid), nil
}

// Metrics are the keys and values of mntr, without "zk_".
func (s *Server) Metrics() (map[string]string, error) {
	text, err := s.FourLetter("mntr")
	if err != nil {
		return nil, err
	}
	m := map[string]string{}
	for line := range strings.Lines(text) {
		key, value, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		if !ok {
			return nil, fmt.Errorf("mntr has a line without a tab: %q", line)
		}
		m[strings.TrimPrefix(key, "zk_")] = value
	}
	return m, nil
}

// WaitNotServing waits until a running server reports that it is not serving.
func (s *Server) WaitNotServing() {
	s.e.t.Helper()
	wait.Succeeds(s.e.t, fmt.Sprintf("server %d says that it is not serving", s.ID),
		func() error {
			text, err := s.FourLetter("srvr")
			if err == nil && !strings.HasPrefix(text, NotServing) {
				err = errors.New(text)
			}
			return err
		})
}

// sessions are the lines of dump that all replicas share.
func (s *Server) sessions() (string, error) {
	text, err := s.FourLetter("dump")
	shared, _, _ := strings.Cut(text, "Connections dump:")
	if at := strings.Index(shared, "Global Sessions("); at > 0 {
		shared = shared[at:] // behind the local ones
	}
	return shared, err
}

// StatusError is an answer over HTTP that is not one of success.
type StatusError struct {
	Code int
	Body string
}

// Error is the status with the body.
func (e *StatusError) Error() string { return fmt.Sprintf("status %d: %s", e.Code, e.Body) }

// Request sends a request to the HTTP port as the superuser, and returns the body of the answer, or a StatusError.
func (s *Server) Request(method, target, body string) ([]byte, error) {
	q, err := http.NewRequest(method, "http://"+s.HTTPAddr()+target, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	user, password, _ := strings.Cut(SuperCredentials, ":")
	q.SetBasicAuth(user, password)
	r, err := http.DefaultClient.Do(q)
	if err != nil {
		return nil, err
	}
	defer r.Body.Close()
	answer, err := io.ReadAll(r.Body)
	if err == nil && r.StatusCode >= 300 {
		err = &StatusError{r.StatusCode, string(answer)}
	}
	return answer, err
}

// AskLeader sends a request to the leader, as Request does, until it succeeds.
func (e *Ensemble) AskLeader(method, target, body string) (answer []byte) {
	e.t.Helper()
	wait.Succeeds(e.t, method+" "+target, func() (err error) {
		answer, err = e.Leader().Request(method, target, body)
		return err
	})
	return answer
}

// ChangeMembers requests a change of the ensemble from a server, below /v1/cluster, until it has happened; enough
// is a status that means so, beside those of success. It returns the answer.
func ChangeMembers(t *testing.T, s *Server, method, path, body string, enough int) (answer []byte) {
	t.Helper()
	wait.Succeeds(t, method+" "+path, func() (err error) {
		var status *StatusError
		if answer, err = s.Request(method, "/v1/cluster"+path, body); errors.As(err, &status) && status.Code == enough {
			err = nil
		}
		return err
	})
	return answer
}
