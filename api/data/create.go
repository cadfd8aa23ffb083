package data

import (
	"time"

	"github.com/zk-lite/zk-lite/api/rest"
	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/znode"
)

const (
	// maxTTL is what fits into the znode's field (EphemeralType.TTL).
	maxTTL = time.Duration(0x00FFFFFFFFFF) * time.Millisecond
)

// createMode is a value of mode=.
type createMode struct {
	mode znode.Mode
	kind znode.CreateKind
}

// parseMode reads a mode; persistent when it is empty.
func parseMode(param, text string) (createMode, error) {
	switch text {
	case "", "persistent":
		return createMode{znode.Persistent, znode.CreatePlain}, nil
	case "ephemeral":
		return createMode{znode.Ephemeral, znode.CreatePlain}, nil
	case "persistent_sequential":
		return createMode{znode.PersistentSequential, znode.CreatePlain}, nil
	case "ephemeral_sequential":
		return createMode{znode.EphemeralSequential, znode.CreatePlain}, nil
	case "container":
		return createMode{znode.Container, znode.CreateContainer}, nil
	case "ttl":
		return createMode{znode.PersistentTTL, znode.CreateTTL}, nil
	case "ttl_sequential":
		return createMode{znode.PersistentSequentialTTL, znode.CreateTTL}, nil
	}
	return createMode{}, rest.BadRequest(param, "%q is none of persistent, ephemeral, "+
		"persistent_sequential, ephemeral_sequential, container, ttl, ttl_sequential", text)
}

// createZnode creates the znode of the URL with the body as its data.
func createZnode(q *rest.Request) error {
	if err := refuse(q, "If-Match", "the znode is not there yet; PUT changes one that is"); err != nil {
		return err
	}
	c, err := createCommand(q)
	if err != nil {
		return err
	}
	parents, err := q.Query.Flag("parents")
	if err != nil {
		return err
	}
	if c.Data, err = q.Data(); err != nil {
		return err
	}
	if !parents {
		r, err := q.Do(&c)
		if err == nil && r.Code != znode.OK {
			err = rest.CreateFailure(r.Code, c.Path)
		}
		if err != nil {
			return err
		}
		return created(q, r.Path, &r.Stat)
	}
	r, err := createWithParents(q, &c)
	if err != nil {
		return err
	}
	return created(q, r.Path, &r.Stat)
}

// createCommand is what the URL asks for.
func createCommand(q *rest.Request) (state.Command, error) {
	c := state.Command{Op: state.OpCreate, Path: q.RawPath()}
	mode, err := parseMode("mode", q.Query.Text("mode"))
	if err != nil {
		return c, err
	}
	c.Mode, c.Kind = mode.mode, mode.kind
	if q.Query.Has("ttl") {
		ttl, err := q.Query.Duration("ttl", 0, time.Millisecond, maxTTL)
		if err != nil {
			return c, err
		}
		c.TTL = ttl.Milliseconds()
	}
	if c.ACL, err = q.Query.ACL("acl"); err != nil {
		return c, err
	}
	return c, checkCreate(q, "path", "mode", "ttl", &c)
}

// checkCreate finds errors that the state machine would refuse without a reason.
func checkCreate(q *rest.Request, path, mode, ttl string, c *state.Command) error {
	full := c.Path
	if c.Mode.Sequential() {
		full += "0" // the name may be the number alone
	}
	if err := rest.CheckPath(path, full); err != nil {
		return err
	}
	switch {
	case c.Mode.TTL() && c.TTL == 0:
		return rest.BadRequest(ttl, "a znode with a time to live needs one, such as ttl=30s")
	case !c.Mode.TTL() && c.TTL != 0:
		return rest.BadRequest(ttl, "it can be used with mode=ttl or ttl_sequential only")
	case c.Mode.Ephemeral() && q.Session == 0:
		p := rest.BadRequest(mode, "an ephemeral znode needs a session, and the request "+
			"came without one")
		p.Path = c.Path
		p.Hint = "POST /v1/sessions opens one; send the header " + rest.HeaderSession +
			": <id>.<secret>"
		return p
	}
	return nil
}

// createWithParents creates a znode and those missing above it in one transaction,
// all with its ACL, so that a client that may not change it may not delete it either.
//
// With an Idempotency-Key, how many are missing is found by trying, from the znode
// itself upwards: the commands then follow from the results alone, as Do demands.
func createWithParents(q *rest.Request, c *state.Command) (state.OpResult, error) {
	above := rest.Ancestors(c.Path)
	if len(above) > rest.MaxParents {
		return state.OpResult{}, rest.BadRequest("parents", "%d levels; it goes %d deep at most",
			len(above), rest.MaxParents)
	}
	missing := 0
	if q.Key == "" {
		missing = rest.Missing(q, above)
	}
	for range rest.MaxTries + len(above) {
		r, err := q.Do(withParents(above[len(above)-missing:], c))
		if err != nil {
			return state.OpResult{}, err
		}
		if len(r.Multi) == 0 {
			r.Multi = []state.OpResult{{Code: r.Code, Path: r.Path, Stat: r.Stat}}
		}
		i := firstFailed(r.Multi)
		if i < 0 {
			return r.Multi[missing], nil
		}
		switch code := r.Multi[i].Code; {
		case i == 0 && code == znode.ErrNoNode && missing < len(above):
			missing++
		case i < missing && code == znode.ErrNodeExists:
			missing -= i + 1 // another client has created it meanwhile
		default:
			path := append(above, c.Path)[len(above)-missing+i]
			return state.OpResult{}, rest.CreateFailure(code, path)
		}
	}
	return state.OpResult{}, rest.TooMany(1, "%s: others create and delete the znodes above it too often", c.Path)
}

// withParents is the command that creates the znodes at some paths, then c's.
func withParents(parents []string, c *state.Command) *state.Command {
	if len(parents) == 0 {
		one := *c
		return &one
	}
	multi := &state.Command{Op: state.OpMulti}
	for _, p := range parents {
		multi.Ops = append(multi.Ops, state.Command{
			Op: state.OpCreate, Path: p, Data: []byte{}, ACL: c.ACL,
		})
	}
	multi.Ops = append(multi.Ops, *c)
	return multi
}

// firstFailed is the first operation of a multi that failed; -1: none did.
func firstFailed(results []state.OpResult) int {
	for i := range results {
		if results[i].Code != znode.OK {
			return i
		}
	}
	return -1
}
