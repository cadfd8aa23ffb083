package replica

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/zk-lite/zk-lite/session"
	"github.com/zk-lite/zk-lite/znode"
)

// Replica is the state of a ZooKeeper server. It has one writer.
type Replica struct {
	Tree     *znode.Tree
	Sessions *session.Table
	Zxid     znode.Zxid // of the last transaction applied, or of the snapshot
	// Each, unless nil, is called after each change that a transaction makes; of a multi for each operation.
	Each func(*Change)

	replay  *znode.Replay
	missing map[string]int64 // znodes whose ACL the snapshot's table lacks, with its number there; see Unresolved
}

// New returns a Replica of a tree and sessions that are in our own state already, for what follows.
func New(tree *znode.Tree, sessions *session.Table, zxid znode.Zxid) *Replica {
	return &Replica{Tree: tree, Sessions: sessions, Zxid: zxid, replay: znode.NewReplay(tree)}
}

// ErrCorrupt reports a transaction that no ZooKeeper server can have committed in this state.
var ErrCorrupt = errors.New("the transaction does not fit the state")

// Apply carries out one transaction, and sets Zxid to its zxid unless that is larger already. Its events are in x,
// which it resets.
//
// fuzzy is whether the state may contain changes of this and later transactions, as after a snapshot that was written
// meanwhile: what has been done already is then no error, and digests do not count. Otherwise an operation that fails
// is ErrCorrupt. Errors: also a session with an id that is impossible here. After an error the state is useless.
func (r *Replica) Apply(x *znode.Txn, t *Txn, fuzzy bool) error {
	x.Reset()
	x.Zxid, x.TimeMillis, x.Session = t.Zxid, t.Time, t.Session
	err := r.apply(x, t, &t.Change, fuzzy)
	if err != nil {
		return fmt.Errorf("transaction %v, %v %q: %w", t.Zxid, t.Op, t.Path, err)
	}
	r.Zxid = max(r.Zxid, t.Zxid)
	return nil
}

// Fits reports whether the digest that a transaction brings is that of the state after it.
func (r *Replica) Fits(t *Txn) bool { return !t.HasDigest || r.replay.DigestIs(t.Digest) }

// Digest is the digest of the znodes, as ZooKeeper 3.6 computes it.
func (r *Replica) Digest() uint64 { return r.replay.Digest() }

// DigestIs reports whether a ZooKeeper server with this digest has the same znodes.
func (r *Replica) DigestIs(d uint64) bool { return r.replay.DigestIs(d) }

func (r *Replica) apply(x *znode.Txn, t *Txn, c *Change, fuzzy bool) error {
	code := znode.OK
	switch c.Op {
	case OpCreate, OpCreate2, OpCreateContainer, OpCreateTTL:
		code = r.create(x, c)
	case OpDelete, OpDeleteContainer:
		code = r.delete(x, c.Path, fuzzy)
	case OpSetData, OpReconfig:
		if c.Path != znode.ConfigPath { // our configuration is there, and no digest counts it
			code = r.replay.SetData(x, c.Path, c.Data, c.Version)
		}
	case OpSetACL:
		code = r.replay.SetACL(c.Path, c.ACL, c.Version)
		delete(r.missing, c.Path)
	case OpMulti:
		if c.Failed() {
			return nil
		}
		for i := range c.Multi {
			if err := r.apply(x, t, &c.Multi[i], fuzzy); err != nil {
				return err
			}
		}
	case OpCreateSession:
		return r.addSession(t.Session, t.Timeout)
	case OpCloseSession:
		return r.closeSession(x, t, c, fuzzy)
	case OpCheck, OpError:
	default:
		return ErrUnknownOp
	}
	switch {
	case code == znode.OK:
		if r.Each != nil && c.Op != OpMulti {
			r.Each(c)
		}
		return nil
	case fuzzy && (code == znode.ErrNoNode || code == znode.ErrNodeExists):
		return nil
	}
	return fmt.Errorf("%w: %v of %q: %w", ErrCorrupt, c.Op, c.Path, code)
}

func (r *Replica) create(x *znode.Txn, c *Change) znode.Error {
	req := znode.CreateRequest{Path: c.Path, Data: c.Data, ACL: c.ACL, TTL: c.TTL}
	switch {
	case c.Op == OpCreateContainer:
		req.Kind = znode.CreateContainer
	case c.Op == OpCreateTTL:
		req.Kind = znode.CreateTTL
	case c.Ephemeral:
		req.Mode = znode.Ephemeral
	}
	delete(r.missing, c.Path)
	return r.replay.Create(x, &req, c.Creates)
}

// delete deletes a znode. In a fuzzy state it may have children: then it was deleted, created again and used before its
// snapshot was taken, and what is there now comes again with the transactions that follow.
func (r *Replica) delete(x *znode.Txn, path string, fuzzy bool) znode.Error {
	delete(r.missing, path)
	code := r.replay.Delete(x, path)
	if code != znode.ErrNotEmpty || !fuzzy {
		return code
	}
	names, _, _ := r.Tree.Children(path, []znode.ID{znode.SuperIDs})
	slices.Sort(names)
	for _, name := range names {
		if code := r.delete(x, znode.Join(path, name), fuzzy); code != znode.OK {
			return code
		}
	}
	return r.replay.Delete(x, path)
}

// addSession adds a session, or gives one that a fuzzy snapshot has already its timeout.
func (r *Replica) addSession(id znode.SessionID, millis int32) error {
	r.Sessions.Remove(id)
	if millis < 0 {
		return fmt.Errorf("session %v has a timeout of %d ms", id, millis)
	}
	timeout := time.Duration(millis) * time.Millisecond
	s := session.Session{ID: id, Timeout: timeout, Password: session.CompatiblePassword(id)}
	if !r.Sessions.Add(s) {
		return fmt.Errorf("session %v %w", id, errImpossibleID)
	}
	return nil
}

var errImpossibleID = errors.New("has an id that means something else: 0 is no session, 0x8000000000000000 marks " +
	"containers, and the top byte 0xff marks znodes with a TTL; such ids come from a server with the id 255 or from " +
	"a broken id generator; let the sessions end before the state is copied")

// CheckOwner refuses an ephemeral's owner that looks like a TTL and is none: with extendedTypesEnabled no server starts
// that finds it in a snapshot or a log (EphemeralType.get).
func CheckOwner(id znode.SessionID) error {
	const reserved = 0x00ffff << 40
	if uint64(id)>>56 == 0xff && (uint64(id)&reserved != 0 || id<<8 == 0) {
		return fmt.Errorf("owner %v %w", id, errImpossibleID)
	}
	return nil
}

// closeSession removes a session and its ephemerals: those that the transaction names, which servers before 3.6 do not,
// and those that are there.
func (r *Replica) closeSession(x *znode.Txn, t *Txn, c *Change, fuzzy bool) error {
	r.Sessions.Remove(t.Session)
	left := r.Tree.Ephemerals(t.Session, "")
	slices.Sort(left)
	for _, path := range append(slices.Clone(c.Closed), left...) {
		// One that is not there was deleted by a request before this one.
		if code := r.delete(x, path, fuzzy); code != znode.OK && code != znode.ErrNoNode {
			return fmt.Errorf("%w: %q of session %v: %w", ErrCorrupt, path, t.Session, code)
		}
	}
	return nil
}

// Unresolved returns the znodes whose ACL is not known: a fuzzy snapshot's table is older than its znodes, and the
// transactions that follow bring it.
func (r *Replica) Unresolved() []string {
	var paths []string
	for path := range r.missing {
		paths = append(paths, path)
	}
	slices.Sort(paths)
	return paths
}

// Recount writes the usage of every quota, which a snapshot has as its writer counted it.
func (r *Replica) Recount(x *znode.Txn) { r.replay.Recount(x) }

// Finish prepares the state for service, once every transaction is applied: it counts the usage of quotas, and deletes
// the ephemerals of sessions that do not exist, whose paths it returns; ZooKeeper's servers do the same at their start.
func (r *Replica) Finish() (ownerless []string) {
	x := &znode.Txn{Zxid: r.Zxid}
	r.Tree.EphemeralOwners(func(id znode.SessionID, _ int) {
		if r.Sessions.Get(id) == nil {
			ownerless = append(ownerless, r.Tree.Ephemerals(id, "")...)
		}
	})
	slices.Sort(ownerless)
	for _, path := range ownerless {
		_ = r.delete(x, path, true) // they are there
	}
	r.replay.Recount(x)
	return ownerless
}
