// Package backupfile reads backups: what GET /v1/snapshot streams, and what servers keep. Check finds with little
// memory whether one is whole, by zstd's checksum; Restore rebuilds its tree in memory and compares the digest.
package backupfile

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/consensus/state/backup"
)

// The format: six bytes of magic and version, a label with the ensemble, then one zstd stream of blocks, each
// behind its length as an unsigned varint. The first block begins with the log's index,
// term and history, the zxid and the time; an empty one follows, one for every znode, an empty one, and one
// with the number of znodes and the state's digest.
const (
	magicName  = "zkls"
	magic      = magicName + "\x00\x05" // builds before v0.9 wrote 1 to 4
	digestSize = 8
)

const (
	// blockMax bounds a block, as the servers do.
	blockMax = 1 << 30
	// headFields is the size of the five varints that begin the first block, at most.
	headFields = 5 * binary.MaxVarintLen64
	// windowMax bounds what a damaged header can make the decoder allocate; the
	// servers' encoder uses 4 MiB.
	windowMax = 32 << 20
)

// The errors of Check.
var (
	// ErrNoBackup reports that something is no backup of this format at all.
	ErrNoBackup = errors.New("not a backup of zk-lite")
	// ErrDamaged reports that a backup is cut off or changed.
	ErrDamaged = errors.New("the backup is damaged or incomplete")
)

// errMore reports that a backup does not end where it should, or that its checksum is
// wrong, which follows the last block.
var errMore = errors.New("it does not end well")

var errShort = errors.New("the head is too short")

// Summary is the summary at the end of a backup.
type Summary struct {
	Ensemble Ensemble
	Zxid     int64     // of the last transaction in it
	Time     time.Time // of the ensemble when it was made
	Znodes   uint64
}

// Check reads a backup to its end. It calls step after each znode.
//
// Errors: ErrNoBackup, ErrDamaged.
func Check(in io.Reader, step func()) (Summary, error) {
	in, ensemble, err := labelled(in)
	if err != nil {
		return Summary{}, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	begin := make([]byte, len(magic))
	switch n, err := io.ReadFull(in, begin); {
	case err != nil && err != io.EOF && !errors.Is(err, io.ErrUnexpectedEOF):
		return Summary{}, fmt.Errorf("reading the backup: %w", err)
	case n < len(magicName) || string(begin[:len(magicName)]) != magicName:
		return Summary{}, fmt.Errorf("%w: it begins with %q", ErrNoBackup, begin[:n])
	case n < len(magic):
		return Summary{}, fmt.Errorf("%w: it has %d bytes", ErrDamaged, n)
	case string(begin) != magic:
		return Summary{}, fmt.Errorf("%w that this version can read: its format is version %d, want %d",
			ErrNoBackup, binary.BigEndian.Uint16(begin[len(magicName):]), magic[len(magic)-1])
	}
	z, err := zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(windowMax))
	if err != nil {
		return Summary{}, fmt.Errorf("reading the backup: %w", err)
	}
	defer z.Close()
	r := &reader{in: bufio.NewReaderSize(z, 1<<16)}
	s, err := r.blocks(step)
	if err != nil {
		return Summary{}, fmt.Errorf("%w: behind %d znodes: %w", ErrDamaged, r.znodes, err)
	}
	s.Ensemble = ensemble
	return s, nil
}

// reader goes through the blocks.
type reader struct {
	in     *bufio.Reader
	znodes uint64
}

func (r *reader) blocks(step func()) (s Summary, err error) {
	head, err := r.block(headFields)
	if err != nil {
		return s, err
	}
	for range 3 { // index, term and history of the log
		_, n := binary.Uvarint(head)
		if n <= 0 {
			return s, errShort
		}
		head = head[n:]
	}
	zxid, n := binary.Varint(head)
	if n <= 0 {
		return s, errShort
	}
	millis, n := binary.Varint(head[n:])
	if n <= 0 {
		return s, errShort
	}
	switch b, err := r.block(1); {
	case err != nil:
		return s, err
	case len(b) != 0:
		return s, errors.New("a restore is under way in it, as in no backup")
	}
	for {
		b, err := r.block(1)
		if err != nil {
			return s, err
		}
		if len(b) == 0 {
			break
		}
		r.znodes++
		step()
	}
	end, err := r.block(binary.MaxVarintLen64 + digestSize)
	if err != nil {
		return s, err
	}
	switch want, n := binary.Uvarint(end); {
	case n <= 0 || len(end) != n+digestSize:
		return s, errors.New("the last block is no number with a digest")
	case want != r.znodes:
		return s, fmt.Errorf("%d znodes were written", want)
	}
	if _, err := r.in.ReadByte(); err != io.EOF {
		return s, errors.Join(errMore, err)
	}
	return Summary{Zxid: zxid, Time: time.UnixMilli(millis), Znodes: r.znodes}, nil
}

// block reads a block and returns its beginning, at most so many bytes.
func (r *reader) block(keep int) ([]byte, error) {
	size, err := binary.ReadUvarint(r.in)
	if err != nil {
		return nil, cutOff(err)
	}
	if size > blockMax {
		return nil, fmt.Errorf("a block of %d bytes; at most %d are possible", size, blockMax)
	}
	b := make([]byte, min(int(size), keep))
	if _, err := io.ReadFull(r.in, b); err != nil {
		return nil, cutOff(err)
	}
	_, err = r.in.Discard(int(size) - len(b))
	return b, cutOff(err)
}

// cutOff makes an end in the middle of something recognisable.
func cutOff(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// Ensemble is the id of the ensemble that a backup is of; zero: the backup does not say.
type Ensemble [16]byte

// String is the id in hexadecimal, as servers write it; "unknown" for none.
func (e Ensemble) String() string {
	if e == (Ensemble{}) {
		return "unknown"
	}
	return fmt.Sprintf("%x", e[:])
}

// ErrUnusable reports that a backup cannot be restored: it is none, damaged, incomplete, or of another version.
var ErrUnusable = errors.New("the backup cannot be restored")

// labelled reads the ensemble, and returns what reads all, from the first byte.
func labelled(in io.Reader) (io.Reader, Ensemble, error) {
	b := bufio.NewReaderSize(in, 1<<16)
	head, _ := b.Peek(state.BackupHead) // an error comes again with the next read
	e, err := state.BackupEnsemble(head)
	return b, e, err
}

// Restore reads a backup to its end, restores it in memory and compares the digest of what that makes with the one that
// was written: nothing that a server would refuse passes.
//
// Errors: ErrUnusable.
func Restore(in io.Reader) (*backup.Backup, Ensemble, error) {
	in, e, err := labelled(in)
	var b *backup.Backup
	if err == nil {
		b, err = state.ReadBackup(in)
	}
	if err != nil {
		err = fmt.Errorf("%w: %w", ErrUnusable, err)
	}
	return b, e, err
}
