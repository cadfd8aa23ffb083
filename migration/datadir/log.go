package datadir

import (
	"bufio"
	"errors"
	"fmt"
	"hash/adler32"
	"io"
	"os"

	"github.com/zk-lite/zk-lite/internal/jute"
	"github.com/zk-lite/zk-lite/migration/replica"
	"github.com/zk-lite/zk-lite/znode"
)

// A log is a header, entries, and zeros up to the end of the file, which servers extend in steps of 64 MiB
// (FileTxnLog):
//
//	"ZKLG", int version 2, long database 0
//	long Adler-32 of the entry, buffer entry, byte 'B'
const (
	logMagic    = 0x5a4b4c47
	version     = 2
	headerBytes = 4 + 4 + 8
	entryEnd    = 'B'
	entryBytes  = 8 + 4 + 1 // besides the entry itself
)

// Log is a transaction log that is being read.
type Log struct {
	Path string
	Size int64      // of the file
	Name znode.Zxid // in the file's name: that of the first transaction; 0 if it has none

	f    *os.File
	in   *bufio.Reader
	next int64 // offset of the next entry
	torn *Torn
	err  error
}

// Entry is a transaction in a log.
type Entry struct {
	*replica.Txn
	Raw    []byte // what Txn was parsed of
	Offset int64  // of the entry's checksum
}

// Torn tells where a log ends inside an entry: its server died while it wrote the entry, which is in no other place
// and was acknowledged to no one.
type Torn struct {
	File   string `json:"file"`
	Offset int64  `json:"offset"` // where the entry begins
	Why    string `json:"why"`
}

// DamageError reports a file with bytes that its server did not write.
type DamageError struct {
	File   string
	Offset int64 // in the file, or in what it holds uncompressed
	Err    error
}

// Error names file, offset and reason.
func (e *DamageError) Error() string {
	return fmt.Sprintf("%s is damaged at byte %d: %v", e.File, e.Offset, e.Err)
}

// Unwrap returns the reason.
func (e *DamageError) Unwrap() error { return e.Err }

// OpenLog opens a log and checks its header. A file that ends in its header is torn and has no entry.
//
// Errors: of the file system, or a DamageError if it is no log.
func OpenLog(path string) (*Log, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	l := &Log{Path: path, f: f, in: bufio.NewReaderSize(f, 64<<10), next: headerBytes}
	_, l.Name, _ = parseName(path)
	if err := l.open(); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return l, nil
}

func (l *Log) open() error {
	info, err := l.f.Stat()
	if err != nil {
		return err
	}
	if l.Size = info.Size(); l.Size < headerBytes {
		l.end(&Torn{Offset: 0, Why: fmt.Sprintf("the file has %d bytes, and a header has %d", l.Size, headerBytes)})
		return nil
	}
	var b [headerBytes]byte
	if _, err := io.ReadFull(l.in, b[:]); err != nil {
		return err
	}
	return checkHeader(b[:], l.Path, logMagic)
}

// checkHeader checks the FileHeader of a log or a snapshot.
func checkHeader(b []byte, path string, magic int32) error {
	r := jute.NewReader(b)
	switch m, v := r.Int32(), r.Int32(); {
	case m == magic && v == version:
		return nil
	case m == magic:
		return &DamageError{path, 4, fmt.Errorf("it has version %d of the format; want %d", v, version)}
	case m == snapshotMagic:
		return &DamageError{path, 0, errors.New("it is a snapshot and not a log")}
	case m == logMagic:
		return &DamageError{path, 0, errors.New("it is a log and not a snapshot")}
	}
	return &DamageError{path, 0, fmt.Errorf("it begins with %q; want %q", b[:4], jute.AppendInt32(nil, magic))}
}

// Close closes the file.
func (l *Log) Close() error { return l.f.Close() }

// Torn returns where the log ends inside an entry, once Next has returned io.EOF; nil if it ends after one.
func (l *Log) Torn() *Torn { return l.torn }

// Next returns the next transaction, io.EOF after the last. After an error it returns the error again.
//
// Errors: a DamageError; of the file system.
func (l *Log) Next() (Entry, error) {
	if l.err != nil {
		return Entry{}, l.err
	}
	e, err := l.read()
	if err != nil {
		l.err = err
	}
	return e, err
}

func (l *Log) end(t *Torn) {
	l.err = io.EOF
	if t != nil {
		t.File = l.Path
		l.torn = t
	}
}

// read reads the entry at l.next.
func (l *Log) read() (Entry, error) {
	left := l.Size - l.next
	var head [12]byte
	if left < int64(len(head)) {
		if _, err := io.ReadFull(l.in, head[:left]); err != nil {
			return Entry{}, err
		}
		if head == [12]byte{} {
			return Entry{}, io.EOF
		}
		return l.tail(fmt.Sprintf("%d bytes remain", left))
	}
	if _, err := io.ReadFull(l.in, head[:]); err != nil {
		return Entry{}, err
	}
	r := jute.NewReader(head[:])
	sum, n := r.Int64(), int64(r.Int32())
	switch {
	case n == 0:
		return l.tail("") // the padding
	case n < 0 || n > replica.MaxField:
		return l.tail(fmt.Sprintf("the entry has a length of %d bytes", n))
	case n+entryBytes > left:
		return l.tail(fmt.Sprintf("the entry has %d bytes, and %d remain", n+entryBytes, left))
	}
	b := make([]byte, n+1) // not more than the file has
	if _, err := io.ReadFull(l.in, b); err != nil {
		return Entry{}, err
	}
	if b[n] != entryEnd {
		return l.tail(fmt.Sprintf("the entry ends with the byte %#x; want %#x", b[n], entryEnd))
	}
	b = b[:n:n]
	if have := int64(adler32.Checksum(b)); have != sum {
		return Entry{}, l.damage(fmt.Errorf("the entry has the checksum %#x; want %#x. A server would refuse to "+
			"start. Take the directory of another server, or repair this one with ZooKeeper's TxnLogToolkit",
			have, sum))
	}
	txn, err := replica.ParseTxn(b)
	if err != nil {
		return Entry{}, l.damage(err)
	}
	e := Entry{Txn: txn, Raw: b, Offset: l.next}
	l.next += n + entryBytes
	return e, nil
}

func (l *Log) damage(err error) error { return &DamageError{l.Path, l.next, err} }
