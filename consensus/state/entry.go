package state

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"
	"unsafe"

	"github.com/zk-lite/zk-lite/znode"
)

// entryVersion is the first byte of every entry. A server that reads another one is too old or
// too new for this log and must stop. Builds before v0.9 wrote version 1.
const entryVersion = 2

// Origin is a server between a start and the next: the incarnation grows with
// every start.
type Origin struct {
	Server      ServerID
	Incarnation uint64
}

// Batch is a run of commands of one origin, numbered First, First+1, ...
type Batch struct {
	Origin
	First uint64 // sequence number of the first command
	Count int
	// Commands holds Count commands, each preceded by its length
	// (AppendCommand), exactly as the origin sent them.
	Commands []byte
}

// AppendCommand adds an encoded command to a Batch's Commands.
func AppendCommand(b []byte, c *Command) []byte {
	// The length is not known yet. Nearly every command is shorter than 16 KiB,
	// so two bytes are reserved, and the command is moved if that is not
	// enough.
	const reserve = 2
	start := len(b)
	b = append(b, 0, 0)
	b = c.Append(b)
	n := len(b) - start - reserve
	if n < 1<<14 {
		b[start], b[start+1] = byte(n)|0x80, byte(n>>7) // a varint of two bytes
		return b
	}
	var prefix [10]byte
	p := appendUint(prefix[:0], uint64(n))
	b = append(b, p[reserve:]...)
	copy(b[start+len(p):], b[start+reserve:start+reserve+n])
	copy(b[start:], p)
	return b
}

// AppendEntry encodes an entry for Raft. The time is the leader's wall clock in
// milliseconds since the epoch, and that of every transaction in the entry.
func AppendEntry(b []byte, timeMillis int64, batches []Batch) []byte {
	b = append(b, entryVersion)
	b = appendInt(b, timeMillis)
	b = appendUint(b, uint64(len(batches)))
	for i := range batches {
		g := &batches[i]
		b = appendUint(appendUint(b, uint64(g.Server)), g.Incarnation)
		b = appendUint(appendUint(b, g.First), uint64(g.Count))
		b = appendUint(b, uint64(len(g.Commands)))
		b = append(b, g.Commands...)
	}
	return b
}

// CheckBatch returns an error if a batch could not be applied, so that a leader can refuse it before it is in every
// server's log. Because commands are numbered, it cannot drop a harmful one, and replaces it by one that fails.
func CheckBatch(g *Batch) error {
	if g.Count < 0 || g.Count > len(g.Commands) {
		return fmt.Errorf("%d commands in %d bytes of server %d", g.Count, len(g.Commands), g.Server)
	}
	return g.replace((*Command).harms)
}

// entryReader walks through an entry.
type entryReader struct {
	reader
	timeMillis int64
	batches    int
}

func readEntry(entry []byte) (entryReader, error) {
	e := entryReader{reader: reader{b: entry}}
	if v := e.byte(); v != entryVersion {
		return e, fmt.Errorf("entry has version %d, this server reads version %d", v, entryVersion)
	}
	e.timeMillis = e.int()
	e.batches = e.count(5)
	return e, e.err
}

func (e *entryReader) batch() Batch {
	g := Batch{Origin: Origin{ServerID(e.uint()), e.uint()}, First: e.uint(), Count: int(e.uint())}
	g.Commands = e.take(e.count(1))
	if g.Count < 0 || g.Count > len(g.Commands) {
		e.fail(fmt.Errorf("%d commands in %d bytes", g.Count, len(g.Commands)))
	}
	return g
}

// VisitEntry calls visit with each command of an entry, its origin and its number, and returns the entry's time in
// milliseconds since the epoch. It applies nothing. The Command is valid during the call.
func VisitEntry(entry []byte, visit func(o Origin, seq uint64, c *Command) error) (timeMillis int64, err error) {
	e, err := readEntry(entry)
	if err != nil {
		return 0, err
	}
	for ; e.batches > 0 && e.err == nil; e.batches-- {
		g := e.batch()
		seq := g.First - 1
		if e.err == nil {
			e.err = g.each(func(c *Command, _, _ int) error { seq++; return visit(g.Origin, seq, c) })
		}
	}
	if e.err == nil && e.off != len(e.b) {
		e.fail(fmt.Errorf("%d bytes after the last batch", len(e.b)-e.off))
	}
	return e.timeMillis, e.err
}

// rewrite returns an entry in which the commands that drop selects are replaced by others that
// fail.
func rewrite(entry []byte, drop func(*Command) bool) ([]byte, error) {
	e, err := readEntry(entry)
	if err != nil {
		return nil, err
	}
	batches := make([]Batch, e.batches)
	for i := range batches {
		batches[i] = e.batch()
		if e.err == nil {
			e.err = batches[i].replace(drop)
		}
	}
	if e.err != nil {
		return nil, e.err
	}
	return AppendEntry(nil, e.timeMillis, batches), nil
}

// replace replaces the commands of g that drop selects by others that fail; it cannot leave them out, because
// commands are numbered. If a command cannot be decoded, it returns an error and does not change g.
func (g *Batch) replace(drop func(*Command) bool) error {
	var commands []byte // with the replacements; nil before the first one
	err := g.each(func(c *Command, start, end int) error {
		switch {
		case drop(c):
			if commands == nil {
				commands = bytes.Clone(g.Commands[:start])
			}
			commands = AppendCommand(commands, c.failing())
		case commands != nil:
			commands = append(commands, g.Commands[start:end]...)
		}
		return nil
	})
	if err == nil && commands != nil {
		g.Commands = commands
	}
	return err
}

// each calls visit with each command of g, and where it lies in g.Commands with its length.
func (g *Batch) each(visit func(c *Command, start, end int) error) error {
	r := reader{b: g.Commands}
	var c Command
	for i := range g.Count {
		start := r.off
		body := reader{b: r.take(r.count(1))}
		if r.err == nil {
			c.decode(&body)
		}
		if err := firstError(r.err, body.err); err != nil {
			return fmt.Errorf("command %d of server %d: %w", g.First+uint64(i), g.Server, err)
		}
		if err := visit(&c, start, r.off); err != nil {
			return err
		}
	}
	return r.end(g.Server)
}

// failing is a command of the same client that changes nothing, and fails in every release with ErrInvalidACL.
func (c *Command) failing() *Command {
	return &Command{Op: OpSetACL, Flags: c.Flags &^ FlagKeyed, Session: c.Session, Path: znode.RootPath}
}

// end reports bytes after a batch's last command.
func (r *reader) end(from ServerID) error {
	if r.off != len(r.b) {
		return fmt.Errorf("%d bytes after the last command of server %d", len(r.b)-r.off, from)
	}
	return nil
}

func firstError(a, b error) error {
	if a != nil {
		return a
	}
	return b
}

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
