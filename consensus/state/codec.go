package state

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"
	"unsafe"

	"github.com/zk-lite/zk-lite/znode"
)

// The encoding of log entries and snapshots: varints (zig-zag where a number
// may be negative), strings and data preceded by their length. The length of
// data and ACLs is incremented by one, so that 0 is null.

func appendUint(b []byte, v uint64) []byte { return binary.AppendUvarint(b, v) }

func appendInt(b []byte, v int64) []byte { return binary.AppendVarint(b, v) }

func appendString(b []byte, s string) []byte { return append(appendUint(b, uint64(len(s))), s...) }

func appendData(b, data []byte) []byte {
	if data == nil {
		return append(b, 0)
	}
	return append(appendUint(b, uint64(len(data))+1), data...)
}

func appendACL(b []byte, list []znode.ACL) []byte {
	b = appendUint(b, uint64(len(list)))
	for _, a := range list {
		b = appendString(appendString(appendInt(b, int64(a.Perms)), a.ID.Scheme), a.ID.ID)
	}
	return b
}

var errShort = errors.New("ends too early")

// reader decodes bytes. The first error sticks and everything after it reads as
// zero; it trusts no count or length beyond the remaining bytes.
type reader struct {
	b   []byte
	off int
	err error
}

func (r *reader) fail(err error) {
	if r.err == nil {
		r.err = fmt.Errorf("at byte %d: %w", r.off, err)
	}
	r.off = len(r.b)
}

func (r *reader) byte() byte {
	if r.off >= len(r.b) {
		r.fail(errShort)
		return 0
	}
	r.off++
	return r.b[r.off-1]
}

func (r *reader) uint() uint64 {
	v, n := binary.Uvarint(r.b[r.off:])
	if n <= 0 {
		r.fail(errShort)
		return 0
	}
	r.off += n
	return v
}

func (r *reader) int() int64 {
	v, n := binary.Varint(r.b[r.off:])
	if n <= 0 {
		r.fail(errShort)
		return 0
	}
	r.off += n
	return v
}

// millis reads a duration in milliseconds. It refuses one too long for a
// time.Duration, which would differ between a state and its snapshot.
func (r *reader) millis() time.Duration {
	v := r.int()
	if v < 0 || v > int64(math.MaxInt64/time.Millisecond) {
		r.fail(fmt.Errorf("duration of %d ms", v))
		return 0
	}
	return time.Duration(v) * time.Millisecond
}

// count reads a number of items that take at least size bytes each.
func (r *reader) count(size int) int {
	v := r.uint()
	if v > uint64((len(r.b)-r.off)/size) {
		r.fail(fmt.Errorf("count of %d: %w", v, errShort))
		return 0
	}
	return int(v)
}

// take returns the next n bytes, not copied.
func (r *reader) take(n int) []byte {
	if n < 0 || n > len(r.b)-r.off {
		r.fail(errShort)
		return nil
	}
	r.off += n
	return r.b[r.off-n : r.off : r.off]
}

// string returns a string that shares the entry's bytes, which never change.
func (r *reader) string() string {
	b := r.take(r.count(1))
	return unsafe.String(unsafe.SliceData(b), len(b))
}

func (r *reader) data() []byte {
	n := r.uint()
	switch {
	case n == 0:
		return nil
	case n-1 > uint64(len(r.b)-r.off):
		r.fail(errShort)
		return nil
	}
	b := r.take(int(n - 1))
	if b == nil && r.err == nil {
		b = []byte{}
	}
	return b
}

func (r *reader) acl() []znode.ACL {
	n := r.count(3)
	if n == 0 {
		return nil
	}
	list := make([]znode.ACL, 0, n)
	for ; n > 0; n-- {
		list = append(list, znode.ACL{
			Perms: znode.Perms(r.int()), ID: znode.ID{Scheme: r.string(), ID: r.string()},
		})
	}
	return list
}

func flag(v bool) byte {
	if v {
		return 1
	}
	return 0
}

func cloneID(id znode.ID) znode.ID {
	return znode.ID{Scheme: strings.Clone(id.Scheme), ID: strings.Clone(id.ID)}
}

func appendStat(b []byte, st *znode.Stat) []byte {
	for _, v := range [...]int64{
		int64(st.Czxid), int64(st.Mzxid), int64(st.Pzxid), st.Ctime, st.Mtime,
		int64(st.Version), int64(st.Cversion), int64(st.Aversion), int64(st.EphemeralOwner),
		int64(st.DataLength), int64(st.NumChildren),
	} {
		b = appendInt(b, v)
	}
	return b
}

func readStat(r *reader) znode.Stat {
	return znode.Stat{
		Czxid: znode.Zxid(r.int()), Mzxid: znode.Zxid(r.int()), Pzxid: znode.Zxid(r.int()),
		Ctime: r.int(), Mtime: r.int(), Version: znode.Version(r.int()),
		Cversion: znode.Version(r.int()), Aversion: znode.Version(r.int()),
		EphemeralOwner: znode.SessionID(r.int()),
		DataLength:     int32(r.int()), NumChildren: int32(r.int()),
	}
}
