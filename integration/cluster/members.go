package cluster

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/zk-lite/zk-lite/internal/testkit/wait"
)

// ChangeMembers asks a server for a change of the ensemble, below /v1/cluster, until it has happened; enough is a
// status that says that it has, beside those of success. It returns the answer.
func ChangeMembers(t *testing.T, s *Server, method, path, body string, enough int) (answer []byte) {
	t.Helper()
	wait.Succeeds(t, method+" "+path, func() error {
		q, err := http.NewRequest(method, "http://"+s.HTTPAddr()+"/v1/cluster"+path, strings.NewReader(body))
		if err != nil {
			return err
		}
		user, password, _ := strings.Cut(SuperCredentials, ":")
		q.SetBasicAuth(user, password)
		r, err := http.DefaultClient.Do(q)
		if err != nil {
			return err
		}
		defer r.Body.Close()
		answer, _ = io.ReadAll(r.Body)
		if r.StatusCode >= 300 && r.StatusCode != enough {
			return fmt.Errorf("%s: %s", r.Status, answer)
		}
		return nil
	})
	return answer
}
