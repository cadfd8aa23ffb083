package datadir

import (
	"bufio"
	"compress/flate"
	"compress/gzip"
	"errors"
	"fmt"
	"hash"
	"hash/adler32"
	"io"
	"os"

	"github.com/zk-lite/zk-lite/internal/jute"
	"github.com/zk-lite/zk-lite/migration/replica"
	"github.com/zk-lite/zk-lite/znode"
)

// A snapshot is one stream, compressed or not, of (FileSnap.serialize):
//
//	"ZKSN", int version 2, long database -1
//	the state; see replica.Read
//	seal: long Adler-32 of everything before, ustring "/"
//	3.6, unless its digests are off: long zxid, int version, long digest of the tree after it; seal
//	3.9, unless switched off: long last zxid; seal
const snapshotMagic = 0x5a4b534e

// Snapshot is the file of a snapshot that is being read.
type Snapshot struct {
	Path        string
	Size        int64      // of the file
	Zxid        znode.Zxid // in the file's name: the state has all changes up to it; 0 if the name has none
	Compression string     // "", "gzip" or "snappy", by the file's first bytes

	// What follows the state, which Walk and Read find.
	Digest *Digest    // nil: none
	Last   znode.Zxid // the state may have changes up to it; 0: not there

	f      *os.File
	stream *jute.Stream
	sum    hash.Hash32
}

// Digest is the digest of a tree after a transaction.
type Digest struct {
	Zxid  znode.Zxid
	Value uint64
}

// digestVersion is the version of digests that replica computes.
const digestVersion = 2

// OpenSnapshot opens the file of a snapshot and reads its header.
//
// Errors: of the file system, or a DamageError if it is no snapshot.
func OpenSnapshot(path string) (*Snapshot, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	s := &Snapshot{Path: path, f: f, sum: adler32.New()}
	_, s.Zxid, _ = parseName(path)
	if err := s.open(); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return s, nil
}

// open finds out how the file is compressed: ZooKeeper goes by the name, but a file may have been renamed.
func (s *Snapshot) open() error {
	info, err := s.f.Stat()
	if err != nil {
		return err
	}
	s.Size = info.Size()
	raw := bufio.NewReaderSize(s.f, 64<<10)
	first, err := raw.Peek(len(snappyMagic))
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	in := io.Reader(raw)
	switch {
	case len(first) >= 2 && first[0] == 0x1f && first[1] == 0x8b:
		s.Compression = "gzip"
		if in, err = gzip.NewReader(raw); err != nil {
			return s.damage(0, err)
		}
	case string(first) == snappyMagic:
		s.Compression = "snappy"
		in = newSnappyReader(raw)
	}
	s.stream = jute.NewStream(bufio.NewReaderSize(in, 64<<10), replica.MaxField)
	s.stream.Tee(s.sum)
	var head [headerBytes]byte
	if _, err := io.ReadFull(s.stream, head[:]); err != nil {
		return s.fault(err)
	}
	return checkHeader(head[:], s.Path, snapshotMagic)
}

// Close closes the file.
func (s *Snapshot) Close() error { return s.f.Close() }

// Read decodes the state, and checks the seals. It can be called once, and instead of Walk.
//
// Errors: a DamageError; what no server can have written, although the seals are right; of the file system.
func (s *Snapshot) Read() (*replica.Replica, error) {
	r, err := replica.Read(s.stream, s.Zxid)
	if err != nil {
		return nil, s.fault(err)
	}
	return r, s.trailer()
}

// Walk gives v the state as it comes, and checks the seals. It can be called once, and instead of Read.
//
// Errors: those of v; a DamageError; of the file system.
func (s *Snapshot) Walk(v replica.Visitor) error {
	if err := replica.Walk(s.stream, v); err != nil {
		return s.fault(err)
	}
	return s.trailer()
}

// The sizes of what may follow the state's seal.
const (
	sealBytes   = 8 + 4 + 1
	digestBytes = 8 + 4 + 8 + sealBytes
	lastBytes   = 8 + sealBytes
)

// trailer reads what follows the state. Each part may be there or not: only the size tells.
func (s *Snapshot) trailer() error {
	if err := s.seal(s.stream.Offset(), s.sum.Sum32(), s.stream.Int64(), s.stream.Ustring()); err != nil {
		return err
	}
	s.stream.Tee(nil)
	at := s.stream.Offset()
	rest, err := io.ReadAll(io.LimitReader(s.stream, digestBytes+lastBytes+1))
	if err != nil {
		return s.fault(err)
	}
	size := len(rest)
	if size != 0 && size != digestBytes && size != lastBytes && size != digestBytes+lastBytes {
		return s.damage(at, fmt.Errorf("%d bytes follow the state's seal; want a digest (%d bytes), a last zxid (%d), "+
			"both or nothing", size, digestBytes, lastBytes))
	}
	if size >= digestBytes {
		r := jute.NewReader(rest)
		zxid, kind, value := znode.Zxid(r.Int64()), r.Int32(), uint64(r.Int64())
		if rest, err = s.part(rest, &at, digestBytes); err != nil {
			return err
		}
		if zxid > 0 && kind == digestVersion { // a server that has applied nothing writes 0
			s.Digest = &Digest{zxid, value}
		}
	}
	if len(rest) > 0 {
		s.Last = znode.Zxid(jute.NewReader(rest).Int64())
		_, err = s.part(rest, &at, lastBytes)
	}
	return err
}

// part checks the seal at the end of the first n bytes of b, which are at offset at, and returns the bytes after it.
func (s *Snapshot) part(b []byte, at *int64, n int) ([]byte, error) {
	_, _ = s.sum.Write(b[:n-sealBytes])
	sum := s.sum.Sum32()
	_, _ = s.sum.Write(b[n-sealBytes : n])
	*at += int64(n)
	r := jute.NewReader(b[n-sealBytes : n])
	return b[n:], s.seal(*at-sealBytes, sum, r.Int64(), r.Ustring())
}

// seal compares a seal at an offset with the checksum of everything before it.
func (s *Snapshot) seal(at int64, have uint32, sum int64, mark string) error {
	switch err := s.stream.Err(); {
	case err != nil:
		return s.fault(err)
	case sum != int64(have):
		return s.damage(at, fmt.Errorf("the checksum of everything before is %#x; want %#x", have, sum))
	case mark != "/":
		return s.damage(at+8, fmt.Errorf("the seal ends with %q; want %q", mark, "/"))
	}
	return nil
}

func (s *Snapshot) damage(at int64, err error) error { return &DamageError{s.Path, at, err} }

// fault makes a DamageError of an error that the bytes of the file caused.
func (s *Snapshot) fault(err error) error {
	var field *jute.Error
	var corrupt flate.CorruptInputError
	switch {
	case errors.As(err, &field), errors.As(err, &corrupt), errors.Is(err, errSnappy),
		errors.Is(err, gzip.ErrChecksum), errors.Is(err, gzip.ErrHeader):
		return s.damage(s.stream.Offset(), err)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return s.damage(s.stream.Offset(), errors.New("it ends early"))
	}
	return fmt.Errorf("%s, before byte %d: %w", s.Path, s.stream.Offset(), err)
}
