package state

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"

	"github.com/cespare/xxhash/v2"
	"github.com/klauspost/compress/zstd"

	"github.com/zk-lite/zk-lite/session"
	"github.com/zk-lite/zk-lite/znode"
)

// The snapshot file: six bytes of magic and version, then a zstd stream of
// blocks, each preceded by its length. The first block holds everything but the
// tree; then there is one block per znode; an empty block ends them; the last
// block is the number of znodes and the state's digest, which a restore computes
// again. zstd's own checksum guards the bytes, the digest the whole way from
// tree to tree. The first block is followed by those of a restore's upload: one
// that describes it, empty if there is none, and one for each part.
//
// Builds before v0.9 wrote the versions 1 to 4.
const (
	snapshotName    = "zkls\x00"
	snapshotVersion = 5
	snapshotMagic   = snapshotName + "\x05"
)

// blockMax bounds a block, so that damage cannot make a reader allocate without
// bound: a znode is at most a client's frame, and the head grows with the
// sessions (about 40 bytes each).
const blockMax = 1 << 30

// windowMax bounds what a damaged zstd header can make the decoder allocate;
// the encoder's level uses 4 MiB.
const windowMax = 32 << 20

// Snapshot is the state at one index. Write may run in another goroutine.
type Snapshot struct {
	index    uint64
	term     uint64
	history  uint64
	zxid     znode.Zxid
	time     int64
	level    Level
	voters   map[ServerID]bool
	members  map[ServerID]Member
	origins  map[ServerID]progress
	sessions []session.Session
	keys     []*answer
	upload   *upload
	mirror   *mirror
	takeover Takeover
	reconfig *Reconfiguration
	leaving  map[ServerID]bool
	tree     *znode.Snapshot
}

// Snapshot freezes the current state. It delays the writer for microseconds,
// and a few more for every ten thousand sessions. Release it when done.
func (m *Machine) Snapshot() *Snapshot {
	return &Snapshot{
		index: m.index, term: m.term, history: m.history, zxid: m.zxid, time: m.time, level: m.level,
		voters: maps.Clone(m.voters), members: maps.Clone(m.members), origins: maps.Clone(m.origins),
		sessions: m.sessions.Clone(),
		keys:     m.keys.clone(),
		upload:   m.upload.clone(),
		mirror:   m.mirror.clone(),
		takeover: m.takeover,
		reconfig: m.reconfig, leaving: maps.Clone(m.leaving),
		tree: m.tree.Snapshot(),
	}
}

// Index is the Raft index of the last entry in the snapshot.
func (s *Snapshot) Index() uint64 { return s.index }

// Release lets the machine edit znodes in place again.
func (s *Snapshot) Release() { s.tree.Release() }

// Write encodes the snapshot.
func (s *Snapshot) Write(w io.Writer) error {
	if _, err := io.WriteString(w, snapshotMagic); err != nil {
		return fmt.Errorf("writing snapshot: %w", err)
	}
	return s.writeStream(w)
}

// writeStream encodes the part after the magic.
func (s *Snapshot) writeStream(w io.Writer) error {
	z, err := zstd.NewWriter(w, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1))
	if err != nil {
		return fmt.Errorf("writing snapshot: %w", err)
	}
	out := bufio.NewWriterSize(z, 1<<16)
	if err := s.writeBlocks(out, blockMax); err != nil {
		_ = z.Close()
		return fmt.Errorf("writing snapshot: %w", err)
	}
	if err := errors.Join(out.Flush(), z.Close()); err != nil {
		return fmt.Errorf("writing snapshot: %w", err)
	}
	return nil
}

// writeBlocks refuses a block that a reader would refuse: the log is truncated for a snapshot that has never been read.
func (s *Snapshot) writeBlocks(out *bufio.Writer, most int) error {
	var b, block []byte
	put := func() error {
		if len(b) > most {
			return fmt.Errorf("a block of %d bytes, %q: at most %d can be read again",
				len(b), b[:min(len(b), 100)], most)
		}
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
		b = nil // do not write into a part
	}
	acls := map[*znode.ACL]int{}
	var sum znode.Digest
	err := s.tree.Walk(func(r *znode.Record) error {
		sum.Add(r)
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
	b = binary.BigEndian.AppendUint64(appendUint(b, uint64(s.tree.Len())), s.digest(sum.Sum))
	return put()
}

func (s *Snapshot) appendHead(b []byte) []byte {
	b = appendUint(appendUint(appendUint(b, s.index), s.term), s.history)
	b = appendUint(appendInt(appendInt(b, int64(s.zxid)), s.time), uint64(s.level))
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
	return s.appendSections(b)
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

// Digest is a number that is the same on servers in the same state: the same
// znodes, sessions, members, origins and zxid. It is a sum of hashes, so that
// no order of iteration matters.
func (s *Snapshot) Digest() uint64 { return s.digest(s.tree.Digest()) }

// digest is Digest for a tree with this digest.
func (s *Snapshot) digest(tree uint64) uint64 {
	sum := tree
	add := func(b []byte) { sum += xxhash.Sum64(b) }
	add(appendInt([]byte("zxid"), int64(s.zxid)))
	add(appendUint([]byte("level"), uint64(s.level)))
	for id, v := range s.voters {
		add(append(appendUint([]byte("voter"), uint64(id)), flag(v)))
	}
	for _, m := range s.members {
		add(append(m.append(appendUint([]byte("member"), uint64(m.ID))), flag(m.Voter)))
	}
	for id, o := range s.origins {
		add(appendUint(appendUint(appendUint([]byte("origin"), uint64(id)), o.incarnation), o.last))
	}
	for i := range s.sessions {
		x := &s.sessions[i]
		b := appendInt(appendInt([]byte("session"), int64(x.ID)), x.Timeout.Milliseconds())
		add(appendUint(append(b, x.Password[:]...), x.Owner))
	}
	for _, a := range s.keys {
		add(a.append([]byte("key")))
	}
	if b := s.appendSections(nil); len(b) > 0 {
		add(append([]byte("sections"), b...))
	}
	if s.upload != nil {
		add(s.upload.appendHead([]byte("upload")))
		for i, p := range s.upload.parts {
			sum += xxhash.Sum64(p) * (2*uint64(i) + 1) // their order does matter
		}
	}
	return sum
}

// Digest computes the digest of the current state; it reads every znode.
func (m *Machine) Digest() uint64 {
	s := m.Snapshot()
	defer s.Release()
	return s.Digest()
}
