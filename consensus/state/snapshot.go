package state

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/klauspost/compress/zstd"

	"github.com/zk-lite/zk-lite/session"
	"github.com/zk-lite/zk-lite/znode"
)

// The snapshot file: six bytes of magic and version, then a zstd stream of
// blocks, each with its length in front. The first block holds everything but
// the tree; then one block a znode; an empty block ends them; the last block
// is the number of znodes and the state's digest, which a restore computes
// again. zstd's own checksum guards the bytes, the digest the whole way from
// tree to tree.
//
// Version 2 has the parts of a restore's upload behind the first block: a block
// that describes it, and one for each part. It is written only when there is
// something that version 1 has no place for, so that servers and tools that know
// no restores can read all other snapshots.
const (
	snapshotMagic  = "zkls\x00\x01"
	snapshotMagic2 = "zkls\x00\x02"
)

// blockMax bounds a block, so that damage cannot make a reader allocate
// without end: a znode is at most a client's frame, the head grows with the
// sessions (about 40 bytes each).
const blockMax = 1 << 30

// windowMax bounds what a damaged zstd header can make the decoder allocate;
// the encoder's level uses 4 MiB.
const windowMax = 32 << 20

// Snapshot is the state at one index. Write may run in another goroutine.
type Snapshot struct {
	index    uint64
	zxid     znode.Zxid
	time     int64
	voters   map[ServerID]bool
	members  map[ServerID]Member
	origins  map[ServerID]progress
	sessions []session.Session
	keys     []*answer
	upload   *upload
	tree     *znode.Snapshot
}

// Snapshot freezes the present state. It holds up the writer for microseconds,
// and a few more for every ten thousand sessions. Release it when done.
func (m *Machine) Snapshot() *Snapshot {
	return &Snapshot{
		index: m.index, zxid: m.zxid, time: m.time,
		voters: maps.Clone(m.voters), members: maps.Clone(m.members), origins: maps.Clone(m.origins),
		sessions: m.sessions.Clone(),
		keys:     m.keys.clone(),
		upload:   m.upload.clone(),
		tree:     m.tree.Snapshot(),
	}
}

// Index is the Raft index of the last entry in the snapshot.
func (s *Snapshot) Index() uint64 { return s.index }

// Release lets the machine edit znodes in place again.
func (s *Snapshot) Release() { s.tree.Release() }

// Empty reports whether the tree holds nothing but the root and /zookeeper with
// what is below it.
func (s *Snapshot) Empty() bool {
	return s.tree.Walk(func(r *znode.Record) error {
		if r.Path == znode.RootPath || r.Path == znode.SystemPath || strings.HasPrefix(r.Path, znode.SystemPath+"/") {
			return nil
		}
		return errTreeNotEmpty
	}) == nil
}

var errTreeNotEmpty = errors.New("the tree is not empty")

// Write encodes the snapshot.
func (s *Snapshot) Write(w io.Writer) error {
	if _, err := io.WriteString(w, s.magic()); err != nil {
		return fmt.Errorf("writing snapshot: %w", err)
	}
	z, err := zstd.NewWriter(w, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1))
	if err != nil {
		return fmt.Errorf("writing snapshot: %w", err)
	}
	out := bufio.NewWriterSize(z, 1<<16)
	if err := s.writeBlocks(out); err != nil {
		_ = z.Close()
		return fmt.Errorf("writing snapshot: %w", err)
	}
	if err := errors.Join(out.Flush(), z.Close()); err != nil {
		return fmt.Errorf("writing snapshot: %w", err)
	}
	return nil
}

func (s *Snapshot) writeBlocks(out *bufio.Writer) error {
	var b, block []byte
	put := func() error {
		block = appendUint(block[:0], uint64(len(b)))
		if _, err := out.Write(block); err != nil {
			return err
		}
		_, err := out.Write(b)
		return err
	}
	b = s.appendHead(b)
	if err := put(); err != nil {
		return err
	}
	if s.magic() == snapshotMagic2 {
		b = s.upload.appendHead(b[:0])
		if err := put(); err != nil {
			return err
		}
		if s.upload != nil {
			for _, b = range s.upload.parts {
				if err := put(); err != nil {
					return err
				}
			}
		}
		b = nil // a part is not to be written to
	}
	acls := map[*znode.ACL]int{}
	err := s.tree.Walk(func(r *znode.Record) error {
		b = appendRecord(b[:0], r, acls)
		return put()
	})
	if err != nil {
		return err
	}
	b = b[:0]
	if err := put(); err != nil {
		return err
	}
	b = binary.BigEndian.AppendUint64(appendUint(b, uint64(s.tree.Len())), s.Digest())
	return put()
}

// magic is the version that the snapshot needs.
func (s *Snapshot) magic() string {
	restores := func(a *answer) bool { return a.result.Op == OpRestore }
	if s.upload != nil || slices.ContainsFunc(s.keys, restores) {
		return snapshotMagic2
	}
	return snapshotMagic
}

func (s *Snapshot) appendHead(b []byte) []byte {
	b = appendUint(b, s.index)
	b = appendInt(appendInt(b, int64(s.zxid)), s.time)
	b = appendUint(b, uint64(len(s.voters)))
	for id, v := range s.voters {
		b = append(appendUint(b, uint64(id)), flag(v))
	}
	b = appendUint(b, uint64(len(s.members)))
	for id, m := range s.members {
		b = append(m.append(appendUint(b, uint64(id))), flag(m.Voter))
	}
	b = appendUint(b, uint64(len(s.origins)))
	for id, o := range s.origins {
		b = appendUint(appendUint(appendUint(b, uint64(id)), o.incarnation), o.last)
	}
	b = appendUint(b, uint64(len(s.sessions)))
	for i := range s.sessions {
		x := &s.sessions[i]
		b = appendInt(appendInt(b, int64(x.ID)), x.Timeout.Milliseconds())
		b = appendUint(append(b, x.Password[:]...), x.Owner)
	}
	b = appendUint(b, uint64(len(s.keys)))
	for _, a := range s.keys {
		b = a.append(b)
	}
	return b
}

func flag(v bool) byte {
	if v {
		return 1
	}
	return 0
}

// appendRecord encodes a znode. An ACL is written out where it is first used
// and a number from then on.
func appendRecord(b []byte, r *znode.Record, acls map[*znode.ACL]int) []byte {
	b = appendData(appendString(b, r.Path), r.Data)
	st := &r.Stat
	for _, v := range [...]int64{
		int64(st.Czxid), int64(st.Mzxid), int64(st.Pzxid), st.Ctime, st.Mtime,
		int64(st.Version), int64(st.Cversion), int64(st.Aversion), int64(st.EphemeralOwner),
	} {
		b = appendInt(b, v)
	}
	if n, ok := acls[&r.ACL[0]]; ok {
		return appendUint(b, uint64(n))
	}
	b = appendUint(b, uint64(len(acls)))
	acls[&r.ACL[0]] = len(acls)
	return appendACL(b, r.ACL)
}

// ReadSnapshot reads a snapshot into a new Machine.
func ReadSnapshot(in io.Reader) (*Machine, error) { return readSnapshot(in, math.MaxInt64) }

// readSnapshot is ReadSnapshot of a snapshot that has at most limit bytes when decoded.
func readSnapshot(in io.Reader, limit int64) (*Machine, error) {
	magic := make([]byte, len(snapshotMagic))
	if _, err := io.ReadFull(in, magic); err != nil {
		return nil, fmt.Errorf("reading snapshot: %w", err)
	}
	if string(magic) != snapshotMagic && string(magic) != snapshotMagic2 {
		return nil, fmt.Errorf("reading snapshot: starts with %q, not with %q: not a snapshot, "+
			"or one of another version", magic, snapshotMagic)
	}
	z, err := zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(windowMax))
	if err != nil {
		return nil, fmt.Errorf("reading snapshot: %w", err)
	}
	defer z.Close()
	limited := io.LimitedReader{R: z, N: limit}
	m, err := readBlocks(bufio.NewReaderSize(&limited, 1<<16), string(magic) == snapshotMagic2)
	if err != nil && limited.N <= 0 {
		err = fmt.Errorf("it has more than %d bytes when it is decompressed", limit)
	}
	if err != nil {
		return nil, fmt.Errorf("reading snapshot: %w", err)
	}
	return m, nil
}

func readBlocks(in *bufio.Reader, withUpload bool) (*Machine, error) {
	m := New()
	b, err := readBlock(in, nil)
	if err != nil {
		return nil, fmt.Errorf("head: %w", err)
	}
	if err := m.readHead(b); err != nil {
		return nil, fmt.Errorf("head: %w", err)
	}
	if withUpload {
		if m.upload, err = readUpload(in); err != nil {
			return nil, fmt.Errorf("upload: %w", err)
		}
	}
	builder, acls, count := znode.NewBuilder(), [][]znode.ACL(nil), uint64(0)
	for ; ; count++ {
		if b, err = readBlock(in, b); err != nil {
			return nil, fmt.Errorf("znode %d: %w", count, err)
		}
		if len(b) == 0 {
			break
		}
		rec, err := readRecord(b, &acls)
		if err == nil {
			err = builder.Add(&rec)
		}
		if err != nil {
			return nil, fmt.Errorf("znode %d: %w", count, err)
		}
	}
	if m.tree, err = builder.Tree(); err != nil {
		return nil, err
	}
	if b, err = readBlock(in, b); err != nil {
		return nil, fmt.Errorf("end: %w", err)
	}
	r := reader{b: b}
	n, sum := r.uint(), r.take(8)
	if r.err != nil || n != count || r.off != len(b) {
		return nil, fmt.Errorf("holds %d znodes, its end says %d", count, n)
	}
	// zstd compares its checksum when the stream ends, and not before.
	switch _, err := in.ReadByte(); {
	case err == nil:
		return nil, errors.New("goes on behind its end")
	case err != io.EOF:
		return nil, fmt.Errorf("end: %w", err)
	}
	if got := m.Digest(); got != binary.BigEndian.Uint64(sum) {
		return nil, fmt.Errorf("digest is %016x, its end says %x", got, sum)
	}
	return m, nil
}

// readBlock reads a block into b, or a larger one. It never allocates much
// more than has really been read.
func readBlock(in *bufio.Reader, b []byte) ([]byte, error) {
	n, err := binary.ReadUvarint(in)
	if err != nil {
		return nil, err
	}
	if n > blockMax {
		return nil, fmt.Errorf("block of %d bytes, at most %d are possible", n, blockMax)
	}
	b = b[:0]
	for left := int(n); left > 0; {
		part := min(left, 1<<20)
		if cap(b)-len(b) < part {
			b = append(make([]byte, 0, 2*len(b)+part), b...)
		}
		b = b[:len(b)+part]
		if _, err := io.ReadFull(in, b[len(b)-part:]); err != nil {
			return nil, err
		}
		left -= part
	}
	return b, nil
}

func (m *Machine) readHead(b []byte) error {
	r := reader{b: b}
	m.index, m.zxid, m.time = r.uint(), znode.Zxid(r.int()), r.int()
	m.voters = map[ServerID]bool{}
	for n := r.count(2); n > 0; n-- {
		id := ServerID(r.uint())
		m.voters[id] = r.byte() == 1
	}
	for n := r.count(7); n > 0; n-- {
		x := readMember(ServerID(r.uint()), &r)
		x.Voter = r.byte() == 1
		m.members[x.ID] = x.clone()
	}
	for n := r.count(3); n > 0; n-- {
		id := ServerID(r.uint())
		m.origins[id] = progress{incarnation: r.uint(), last: r.uint()}
	}
	for n := r.count(3 + znode.PasswordSize); n > 0; n-- {
		s := session.Session{
			ID: znode.SessionID(r.int()), Timeout: r.millis(),
		}
		copy(s.Password[:], r.take(znode.PasswordSize))
		s.Owner = r.uint()
		if r.err == nil && !m.sessions.Add(s) {
			r.fail(fmt.Errorf("session %v is impossible or there twice", s.ID))
		}
	}
	for n := r.count(minAnswerBytes); n > 0; n-- {
		if a := readAnswer(&r); r.err == nil && !m.keys.put(a) {
			r.fail(fmt.Errorf("the idempotency key %q is there twice", a.key))
		}
	}
	if r.err == nil && r.off != len(b) {
		r.fail(fmt.Errorf("%d bytes behind the head", len(b)-r.off))
	}
	return r.err
}

func readRecord(b []byte, acls *[][]znode.ACL) (znode.Record, error) {
	r := reader{b: b}
	rec := znode.Record{Path: r.string(), Data: r.data(), Stat: znode.Stat{
		Czxid: znode.Zxid(r.int()), Mzxid: znode.Zxid(r.int()), Pzxid: znode.Zxid(r.int()),
		Ctime: r.int(), Mtime: r.int(),
		Version: znode.Version(r.int()), Cversion: znode.Version(r.int()), Aversion: znode.Version(r.int()),
		EphemeralOwner: znode.SessionID(r.int()),
	}}
	switch n := r.uint(); {
	case n < uint64(len(*acls)):
		rec.ACL = (*acls)[n]
	case n == uint64(len(*acls)):
		list := r.acl()
		if len(list) == 0 {
			r.fail(errors.New("empty ACL"))
		}
		for i := range list { // the block's bytes will be overwritten
			list[i].ID = cloneID(list[i].ID)
		}
		*acls, rec.ACL = append(*acls, list), list
	default:
		r.fail(fmt.Errorf("ACL %d, only %d are known", n, len(*acls)))
	}
	return rec, r.err
}
