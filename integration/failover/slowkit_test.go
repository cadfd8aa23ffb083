//go:build slow || privileged

package failover_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zk-lite/zk-lite/integration/cluster"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
	"github.com/zk-lite/zk-lite/internal/wire"
	"github.com/zk-lite/zk-lite/znode"
)

func mustCreate(t *testing.T, c *cluster.Conn, path string, data []byte) {
	t.Helper()
	if _, err := c.Do(wire.OpCreate, &wire.CreateRequest{
		Path: path, Data: data, ACL: znode.OpenACL,
	}); err != nil {
		t.Fatalf("create %s: %v", path, err)
	}
}

// place is a directory where children meet.
type place struct {
	t   *testing.T
	dir string
}

// event is a line of a child.
type event struct{ what, name, token string }

func (p *place) events() (list []event) {
	p.t.Helper()
	b, err := os.ReadFile(filepath.Join(p.dir, "events"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		p.t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		w := strings.Fields(line)
		if len(w) == 3 && strings.HasSuffix(line, "\n") {
			list = append(list, event{w[0], w[1], w[2]})
		}
	}
	return list
}

// await waits for the event with a number, from 0, and returns it.
func (p *place) await(n int) (e event) {
	p.t.Helper()
	wait.Succeeds(p.t, fmt.Sprintf("event %d in %s", n, p.dir), func() error {
		list := p.events()
		if len(list) <= n {
			return fmt.Errorf("there are %v", list)
		}
		e = list[n]
		return nil
	})
	return e
}

// release lets the child with a name end.
func (p *place) release(name string) {
	p.t.Helper()
	if err := os.WriteFile(filepath.Join(p.dir, "go-"+name), nil, 0o600); err != nil {
		p.t.Fatal(err)
	}
}
