package replica

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/zk-lite/zk-lite/internal/jute"
	"github.com/zk-lite/zk-lite/session"
	"github.com/zk-lite/zk-lite/znode"
)

// The stream of a whole state, as ZooKeeper's servers send it to each other, and store it between a header and a
// checksum (SerializeUtils.serializeSnapshot):
//
//	int n, n × (long session, int timeout)
//	int n, n × (long number, vector of ACL entries)
//	then each znode after its parent: ustring path, buffer data, long number of its ACL, the Stat
//	ustring "/"
//
// The root's path is empty. The list with the number -1 is world:anyone:all, and in no table.
const (
	openNumber = -1
	end        = "/"
)

// MaxField bounds one path or the data of one znode in a stream, in bytes: a server with a jute.maxbuffer of a
// gigabyte is possible, and one field is read as it comes.
const MaxField = 1 << 30

// unknownACL is the list of a znode whose list is not known; no one has the identity.
func unknownACL() []znode.ACL {
	return []znode.ACL{{ID: znode.ID{Scheme: "zk-lite", ID: "not in the snapshot's table"}}}
}

// Visitor gets the parts of a stream as they come, which may be more than fits in memory. What a nil function would get
// is decoded and dropped. An error that a function returns ends the walk.
type Visitor struct {
	Session func(id znode.SessionID, timeoutMillis int32) error
	ACL     func(number int64, list []znode.ACL) error
	// Znode gets a znode with its internal Stat (see znode.Record), and the number of its ACL: -1 is world:anyone:all,
	// and another that ACL has not got is missing. The record stays valid only during the call.
	Znode func(rec *znode.Record, acl int64) error
}

// Walk decodes the stream of a state up to its end.
//
// Errors: of the Stream, and those of the Visitor.
func Walk(s *jute.Stream, v Visitor) error {
	for n := s.VectorLen(); n > 0 && s.Err() == nil; n-- {
		id, millis := znode.SessionID(s.Int64()), s.Int32()
		if s.Err() == nil && v.Session != nil {
			if err := v.Session(id, millis); err != nil {
				return err
			}
		}
	}
	for n := s.VectorLen(); n > 0 && s.Err() == nil; n-- {
		number := s.Int64()
		list := streamACL(s)
		if s.Err() == nil && v.ACL != nil {
			if err := v.ACL(number, list); err != nil {
				return err
			}
		}
	}
	for s.Err() == nil {
		path := s.Ustring()
		if path == end || s.Err() != nil {
			break
		}
		rec, number := readRecord(s, path)
		if s.Err() == nil && v.Znode != nil {
			if err := v.Znode(&rec, number); err != nil {
				return err
			}
		}
	}
	return s.Err()
}

// Read decodes the stream of a state up to its end, as of zxid. A fuzzy one may lack ACLs; see Unresolved.
//
// Errors: those of the Stream, and what no server can have written, each with the znode or the session.
func Read(s *jute.Stream, zxid znode.Zxid) (*Replica, error) {
	r := &Replica{Sessions: session.NewTable(), Zxid: zxid, missing: map[string]int64{}}
	lists := map[int64][]znode.ACL{openNumber: znode.OpenACL}
	b := znode.NewBuilder()
	have := map[string]bool{}
	err := Walk(s, Visitor{
		Session: r.addSession,
		ACL: func(number int64, list []znode.ACL) error {
			lists[number] = list
			return nil
		},
		Znode: func(rec *znode.Record, number int64) error {
			if rec.ACL = lists[number]; len(rec.ACL) == 0 {
				rec.ACL, r.missing[rec.Path] = unknownACL(), number
			}
			if err := CheckOwner(rec.Stat.EphemeralOwner); err != nil {
				return fmt.Errorf("znode %q: %w", rec.Path, err)
			}
			switch rec.Path {
			case znode.ConfigPath:
				forgetConfig(rec)
				have[rec.Path] = true
			case znode.QuotaPath:
				have[rec.Path] = true
			}
			return b.Add(rec)
		},
	})
	if err != nil {
		return nil, err
	}
	return r, r.build(b, have)
}

// forgetConfig leaves out the ensemble's configuration, which each server writes again at its start.
func forgetConfig(rec *znode.Record) {
	rec.Data = []byte{}
	rec.Stat = znode.Stat{Aversion: rec.Stat.Aversion}
}

// build makes the tree, with the znodes of the system that old servers do not have.
func (r *Replica) build(b *znode.Builder, have map[string]bool) (err error) {
	for path, acl := range map[string][]znode.ACL{znode.ConfigPath: znode.ReadACL, znode.QuotaPath: znode.OpenACL} {
		if have[path] {
			continue
		}
		if err := b.Add(&znode.Record{Path: path, Data: []byte{}, ACL: acl}); err != nil {
			return err
		}
	}
	if r.Tree, err = b.Tree(); err != nil {
		return err
	}
	r.replay = znode.NewReplay(r.Tree)
	return nil
}

func readRecord(s *jute.Stream, path string) (rec znode.Record, acl int64) {
	if path == "" {
		path = znode.RootPath
	}
	rec = znode.Record{Path: path, Data: s.Buffer()}
	acl = s.Int64()
	rec.Stat = znode.Stat{
		Czxid: znode.Zxid(s.Int64()), Mzxid: znode.Zxid(s.Int64()), Ctime: s.Int64(), Mtime: s.Int64(),
		Version: znode.Version(s.Int32()), Cversion: znode.Version(s.Int32()), Aversion: znode.Version(s.Int32()),
		EphemeralOwner: znode.SessionID(s.Int64()), Pzxid: znode.Zxid(s.Int64()),
	}
	return rec, acl
}

func streamACL(s *jute.Stream) (list []znode.ACL) {
	for n := s.VectorLen(); n > 0 && s.Err() == nil; n-- {
		perms := znode.Perms(s.Int32())
		list = append(list, znode.ACL{Perms: perms, ID: znode.ID{Scheme: s.Ustring(), ID: s.Ustring()}})
	}
	return list
}

// ErrUnresolved reports a state that cannot be written, because the ACLs of some znodes are not known.
var ErrUnresolved = errors.New("the ACLs of some znodes are not known")

// Write encodes the stream of the state: sessions by their ids, znodes by their paths, so that equal states give equal
// bytes. It needs the paths of all znodes in memory.
//
// Errors: of w, or ErrUnresolved.
func (r *Replica) Write(w io.Writer) error {
	if paths := r.Unresolved(); len(paths) > 0 {
		return fmt.Errorf("%w: %q and %d others", ErrUnresolved, paths[0], len(paths)-1)
	}
	snap := r.Tree.Snapshot()
	defer snap.Release()
	all := make([]znode.Record, 0, snap.Len())
	if err := snap.Walk(func(rec *znode.Record) error {
		all = append(all, *rec)
		if rec.Path == znode.ConfigPath {
			forgetConfig(&all[len(all)-1])
		}
		return nil
	}); err != nil {
		return err
	}
	slices.SortFunc(all, func(a, b znode.Record) int { return strings.Compare(a.Path, b.Path) })
	number, lists := numberLists(all)
	b := jute.AppendInt32(nil, int32(r.Sessions.Len()))
	sessions := r.Sessions.Clone()
	slices.SortFunc(sessions, func(a, b session.Session) int { return cmp.Compare(a.ID, b.ID) })
	for i := range sessions {
		b = jute.AppendInt64(b, int64(sessions[i].ID))
		b = jute.AppendInt32(b, int32(sessions[i].Timeout.Milliseconds()))
	}
	b = jute.AppendInt32(b, int32(len(lists)))
	for i, list := range lists {
		b = appendACL(jute.AppendInt64(b, int64(i+1)), list)
	}
	for i := range all {
		rec := &all[i]
		if b = appendRecord(b, rec, number(rec.ACL)); len(b) > 1<<20 {
			if _, err := w.Write(b); err != nil {
				return err
			}
			b = b[:0]
		}
	}
	_, err := w.Write(jute.AppendUstring(b, end))
	return err
}

// numberLists returns the lists of all znodes but world:anyone:all, numbered from 1 in the order of the znodes, and the
// number of each.
func numberLists(all []znode.Record) (number func([]znode.ACL) int64, lists [][]znode.ACL) {
	numbers := map[string]int64{string(appendACL(nil, znode.OpenACL)): openNumber}
	for i := range all {
		key := appendACL(nil, all[i].ACL)
		if numbers[string(key)] == 0 {
			lists = append(lists, all[i].ACL)
			numbers[string(key)] = int64(len(lists))
		}
	}
	return func(list []znode.ACL) int64 { return numbers[string(appendACL(nil, list))] }, lists
}

func appendACL(b []byte, list []znode.ACL) []byte {
	b = jute.AppendInt32(b, int32(len(list)))
	for _, a := range list {
		b = jute.AppendInt32(b, int32(a.Perms))
		b = jute.AppendUstring(jute.AppendUstring(b, a.ID.Scheme), a.ID.ID)
	}
	return b
}

func appendRecord(b []byte, rec *znode.Record, acl int64) []byte {
	path := rec.Path
	if path == znode.RootPath {
		path = ""
	}
	b = jute.AppendInt64(jute.AppendBuffer(jute.AppendUstring(b, path), rec.Data), acl)
	s := &rec.Stat
	for _, v := range []int64{int64(s.Czxid), int64(s.Mzxid), s.Ctime, s.Mtime} {
		b = jute.AppendInt64(b, v)
	}
	for _, v := range []znode.Version{s.Version, s.Cversion, s.Aversion} {
		b = jute.AppendInt32(b, int32(v))
	}
	return jute.AppendInt64(jute.AppendInt64(b, int64(s.EphemeralOwner)), int64(s.Pzxid))
}
