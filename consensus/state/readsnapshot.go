package state

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/klauspost/compress/zstd"

	"github.com/zk-lite/zk-lite/session"
	"github.com/zk-lite/zk-lite/znode"
)

// ReadSnapshot reads a snapshot, or a backup, into a new Machine.
func ReadSnapshot(in io.Reader) (*Machine, error) { return readSnapshot(in, math.MaxInt64) }

// readSnapshot is ReadSnapshot of a snapshot that has at most limit bytes when decoded.
func readSnapshot(in io.Reader, limit int64) (m *Machine, err error) {
	err = decodeSnapshot(in, limit, func(in *bufio.Reader) error {
		m, err = readBlocks(in)
		return err
	})
	if err != nil {
		return nil, err
	}
	return m, nil
}

// VisitSnapshot calls visit with each znode of a snapshot, in no particular order, until it returns an error. It takes
// little memory, and does not compare the digest.
func VisitSnapshot(in io.Reader, visit func(*znode.Record) error) error {
	return decodeSnapshot(in, math.MaxInt64, func(in *bufio.Reader) error {
		_, _, err := readZnodes(in, func(*Machine) error { return nil }, visit)
		return err
	})
}

// ScanSnapshot calls head with a Machine that has all of a snapshot, or of a backup, but its znodes, and then visit
// with each znode, in no particular order. At the end it compares the number of znodes, the checksum and the digest.
// It takes little memory.
//
// Errors: of ReadSnapshot, of head and of visit.
func ScanSnapshot(in io.Reader, head func(*Machine) error, visit func(*znode.Record) error) error {
	return decodeSnapshot(in, math.MaxInt64, func(in *bufio.Reader) error {
		var d znode.Digest
		m, count, err := readZnodes(in, head, func(r *znode.Record) error {
			d.Add(r)
			return visit(r)
		})
		if err != nil {
			return err
		}
		s := m.Snapshot()
		defer s.Release()
		return readEnd(in, count, func() uint64 { return s.digest(d.Sum) })
	})
}

// decodeSnapshot calls read with the blocks of a snapshot that has at most limit bytes when decoded.
func decodeSnapshot(in io.Reader, limit int64, read func(*bufio.Reader) error) error {
	// zstd skips a damaged label like a whole one.
	labelled := bufio.NewReader(in)
	head, _ := labelled.Peek(BackupHead) // the next read returns its error
	if _, err := BackupEnsemble(head); err != nil {
		return fmt.Errorf("reading snapshot: %w", err)
	}
	magic := make([]byte, len(snapshotMagic))
	if _, err := io.ReadFull(labelled, magic); err != nil {
		return fmt.Errorf("reading snapshot: %w", err)
	}
	if err := checkMagic(string(magic)); err != nil {
		return fmt.Errorf("reading snapshot: %w", err)
	}
	z, err := zstd.NewReader(labelled, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(windowMax))
	if err != nil {
		return fmt.Errorf("reading snapshot: %w", err)
	}
	defer z.Close()
	limited := io.LimitedReader{R: z, N: limit}
	err = read(bufio.NewReaderSize(&limited, 1<<16))
	if err != nil && limited.N <= 0 {
		err = fmt.Errorf("%w: it has more than %d bytes", ErrDecodedTooLarge, limit)
	}
	if err != nil {
		return fmt.Errorf("reading snapshot: %w", err)
	}
	return nil
}

// checkMagic returns an error with the version of a snapshot or backup that this build
// cannot read.
func checkMagic(magic string) error {
	version := magic[len(snapshotName)]
	switch {
	case magic[:len(snapshotName)] != snapshotName:
		return fmt.Errorf("starts with %q, not with %q: not a snapshot", magic, snapshotMagic)
	case version < snapshotVersion:
		return fmt.Errorf("has version %d, of a build before v0.9; this build reads version %d: read it with "+
			"the build "+
			"that wrote it, and bring the znodes over with zk-lite export and zk-lite import", version, snapshotVersion)
	case version > snapshotVersion:
		return fmt.Errorf("has version %d, of a newer release; this build reads version %d: use that release",
			version, snapshotVersion)
	}
	return nil
}

// readZnodes reads the head, and passes it and the znodes on.
func readZnodes(
	in *bufio.Reader, head func(*Machine) error, visit func(*znode.Record) error,
) (m *Machine, count uint64, err error) {
	m = New()
	b, err := readBlock(in, nil)
	if err != nil {
		return nil, 0, fmt.Errorf("head: %w", err)
	}
	if err := m.readHead(b); err != nil {
		return nil, 0, fmt.Errorf("head: %w", err)
	}
	if m.upload, err = readUpload(in); err != nil {
		return nil, 0, fmt.Errorf("upload: %w", err)
	}
	if err := head(m); err != nil {
		return nil, 0, err
	}
	var acls [][]znode.ACL
	for ; ; count++ {
		if b, err = readBlock(in, b); err != nil {
			return nil, 0, fmt.Errorf("znode %d: %w", count, err)
		}
		if len(b) == 0 {
			return m, count, nil
		}
		rec, err := readRecord(b, &acls)
		if err == nil {
			err = visit(&rec)
		}
		if err != nil {
			return nil, 0, fmt.Errorf("znode %d: %w", count, err)
		}
	}
}

func readBlocks(in *bufio.Reader) (*Machine, error) {
	builder := znode.NewBuilder()
	m, count, err := readZnodes(in, func(*Machine) error { return nil }, builder.Add)
	if err != nil {
		return nil, err
	}
	if m.tree, err = builder.Tree(); err != nil {
		return nil, err
	}
	s := m.Snapshot()
	defer s.Release()
	return m, readEnd(in, count, func() uint64 { return s.digest(builder.Digest()) })
}

// readEnd reads the end of a snapshot, and compares it with what came before.
func readEnd(in *bufio.Reader, count uint64, digest func() uint64) error {
	b, err := readBlock(in, nil)
	if err != nil {
		return fmt.Errorf("end: %w", err)
	}
	r := reader{b: b}
	n, sum := r.uint(), r.take(8)
	if r.err != nil || n != count || r.off != len(b) {
		return fmt.Errorf("holds %d znodes, but its end gives their number as %d", count, n)
	}
	// zstd compares its checksum when the stream ends, and not before.
	switch _, err := in.ReadByte(); {
	case err == nil:
		return errors.New("goes on after its end")
	case err != io.EOF:
		return fmt.Errorf("end: %w", err)
	}
	if got := digest(); got != binary.BigEndian.Uint64(sum) {
		return fmt.Errorf("digest is %016x, but its end has %x", got, sum)
	}
	return nil
}

// readBlock reads a block into b, or a larger one. It never allocates much more
// than it has read.
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
	m.index, m.term, m.history = r.uint(), r.uint(), r.uint()
	m.zxid, m.time, m.level = znode.Zxid(r.int()), r.int(), Level(r.uint())
	m.voters = map[ServerID]bool{}
	for n := r.count(2); n > 0; n-- {
		id := ServerID(r.uint())
		m.voters[id] = r.byte() == 1
	}
	for n := r.count(memberBytes); n > 0; n-- {
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
	if r.err == nil {
		m.readSections(&r)
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
