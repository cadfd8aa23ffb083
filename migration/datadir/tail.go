package datadir

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/adler32"
	"io"

	"github.com/zk-lite/zk-lite/migration/replica"
)

// tail ends the log at the entry that begins at l.next: why is why it is none, "" for padding. The length of an entry
// has no checksum, so a server takes a damaged one for the end, and loses what follows; here a complete entry in the
// rest of the file is the proof of damage.
func (l *Log) tail(why string) (Entry, error) {
	at, err := l.laterEntry()
	switch {
	case err != nil:
		return Entry{}, err
	case at >= 0 && why == "":
		return Entry{}, l.damage(fmt.Errorf("an entry has the length 0, and another follows at byte %d", at))
	case at >= 0:
		return Entry{}, l.damage(fmt.Errorf("%s, and a complete entry follows at byte %d", why, at))
	case why == "":
		l.end(nil)
	default:
		l.end(&Torn{Offset: l.next, Why: why})
	}
	return Entry{}, io.EOF
}

const (
	window        = 1 << 20
	maxCandidates = 1 << 10 // places where an entry could begin, but has another checksum
)

// laterEntry finds a complete entry that begins after l.next, -1 if there is none.
func (l *Log) laterEntry() (int64, error) {
	b := make([]byte, max(0, min(window, l.Size-l.next-1)))
	candidates := 0
	for base := l.next + 1; base+entryBytes <= l.Size; {
		n, err := l.f.ReadAt(b, base)
		if err != nil && !errors.Is(err, io.EOF) {
			return -1, err
		}
		if n < entryBytes {
			break
		}
		for i := 0; i+12 <= n; i++ {
			// The upper half of a checksum is zero, and the lower half and the length are not.
			if b[i] != 0 {
				continue
			}
			if skip := zeros(b[i:n]); skip > 12 {
				i += skip - 12
			}
			if i+12 > n || !couldBegin(b[i:i+12]) {
				continue
			}
			complete, err := l.completeAt(base + int64(i))
			if err != nil {
				return -1, err
			}
			if complete {
				return base + int64(i), nil
			}
			if candidates++; candidates == maxCandidates {
				return -1, l.damage(errors.New("what follows is neither an entry nor the end of the log"))
			}
		}
		base += int64(n - 11)
	}
	return -1, nil
}

// zeros counts the zeros at the start of b.
func zeros(b []byte) int {
	var none [4096]byte
	n := 0
	for len(b)-n >= len(none) && bytes.Equal(b[n:n+len(none)], none[:]) {
		n += len(none)
	}
	for n < len(b) && b[n] == 0 {
		n++
	}
	return n
}

func couldBegin(head []byte) bool {
	sum, n := binary.BigEndian.Uint64(head), binary.BigEndian.Uint32(head[8:])
	return sum != 0 && sum>>32 == 0 && n >= headBytes && n <= replica.MaxField
}

// headBytes is the size of a transaction's header.
const headBytes = 8 + 4 + 8 + 8 + 4

// completeAt reports whether the entry at an offset ends in the file, and has its checksum.
func (l *Log) completeAt(at int64) (bool, error) {
	var head [12]byte
	if _, err := l.f.ReadAt(head[:], at); err != nil {
		return false, err
	}
	sum, n := binary.BigEndian.Uint64(head[:]), int64(binary.BigEndian.Uint32(head[8:]))
	if at+n+entryBytes > l.Size {
		return false, nil
	}
	var last [1]byte
	if _, err := l.f.ReadAt(last[:], at+12+n); err != nil {
		return false, err
	}
	if last[0] != entryEnd {
		return false, nil
	}
	h := adler32.New()
	if _, err := io.Copy(h, io.NewSectionReader(l.f, at+12, n)); err != nil {
		return false, err
	}
	return uint64(h.Sum32()) == sum, nil
}
