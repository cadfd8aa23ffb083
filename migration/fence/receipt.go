// Package fence keeps a ZooKeeper server that was stopped from starting again, and says what the servers that were
// fenced prove together. Fence moves the files that a server needs, and returns a Receipt; Unfence moves them back.
// Judge says whether receipts are those of a majority, and which server's log ends the history: the one that
// ZooKeeper's election would choose.
//
// The package reads files by package datadir. It knows no connection and no log of ours, stops no process, and decides
// no take-over. It has no goroutine and no lock.
package fence

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/zk-lite/zk-lite/znode"
)

// format is the version of receipts.
const format = 1

// MaxTail bounds the transactions of a receipt, in bytes.
const MaxTail = 16 << 20

// MaxReceipt bounds a receipt as JSON: base64 makes a third more of the transactions.
const MaxReceipt = MaxTail*4/3 + MaxTail/4 + 64<<10

// Zxid is a zxid that is 0x and hexadecimal digits in JSON.
type Zxid znode.Zxid

// String is that text.
func (z Zxid) String() string { return znode.Zxid(z).String() }

// MarshalText implements encoding.TextMarshaler.
func (z Zxid) MarshalText() ([]byte, error) { return []byte(z.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (z *Zxid) UnmarshalText(b []byte) error {
	n, err := strconv.ParseInt(string(b), 0, 64)
	if err != nil || n < 0 {
		return fmt.Errorf("%.40q is no zxid; want 0x and hexadecimal digits", b)
	}
	*z = Zxid(n)
	return nil
}

// Digest is ZooKeeper's digest of the znodes, 16 hexadecimal digits in JSON.
type Digest uint64

// String is the 16 digits.
func (d Digest) String() string { return fmt.Sprintf("%016x", uint64(d)) }

// MarshalText implements encoding.TextMarshaler.
func (d Digest) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *Digest) UnmarshalText(b []byte) error {
	n, err := strconv.ParseUint(string(b), 16, 64)
	if err != nil {
		return fmt.Errorf("%.40q is no digest; want 16 hexadecimal digits", b)
	}
	*d = Digest(n)
	return nil
}

// Point is a state of the mirror, from which a plan is made.
type Point struct {
	After  Zxid   `json:"after"`  // the last transaction that is in it
	Digest Digest `json:"digest"` // of its znodes
	// Voters are the ids of the ensemble's voters; empty if they are not known (ZooKeeper 3.4).
	Voters []int64 `json:"voters,omitempty"`
}

// Receipt says that a server cannot start, and what its files hold.
type Receipt struct {
	Format  int       `json:"format"`
	Server  int64     `json:"server"` // its myid
	Host    string    `json:"host"`
	DataDir string    `json:"dataDir"`
	LogDir  string    `json:"logDir"`
	Time    time.Time `json:"time"`

	Epoch    int64  `json:"currentEpoch"` // the last of which it had a leader's whole history
	Accepted int64  `json:"acceptedEpoch"`
	Zxid     Zxid   `json:"zxid"` // of its last transaction
	End      Digest `json:"end"`  // after it
	Point
	// Compared is whether the server had got as far as the Point; its znodes were the same then.
	Compared bool     `json:"compared"`
	Tail     [][]byte `json:"tail"` // the transactions after the Point
	Sum      string   `json:"sum"`  // SHA-256 of the rest
}

// Seal sets the checksum.
func (r *Receipt) Seal() { r.Sum = r.sum() }

// sum is the checksum of all but Sum.
func (r *Receipt) sum() string {
	c := *r
	c.Sum = ""
	b, err := json.Marshal(&c)
	if err != nil {
		panic(err) // there is nothing in it that JSON has not
	}
	s := sha256.Sum256(b)
	return hex.EncodeToString(s[:])
}

// ErrDamaged reports a receipt that is not as Fence made it.
var ErrDamaged = errors.New("the receipt is damaged")

// Check reports ErrDamaged if the receipt is not as Fence made it.
func (r *Receipt) Check() error {
	switch {
	case r.Format != format:
		return fmt.Errorf("%w: it has format %d; want %d, as zk-lite takeover fence of this release prints it",
			ErrDamaged, r.Format, format)
	case r.Sum != r.sum():
		return fmt.Errorf("%w: the checksum of server %d's is not that of its text; print it again, with the same "+
			"command on its host", ErrDamaged, r.Server)
	}
	return nil
}
