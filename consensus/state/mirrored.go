package state

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"strings"

	"github.com/klauspost/compress/zstd"

	"github.com/zk-lite/zk-lite/internal/jute"
	"github.com/zk-lite/zk-lite/migration/replica"
	"github.com/zk-lite/zk-lite/znode"
)

// A state to be mirrored, as the leader uploads it: a head of fixed size, in Big Endian, and a zstd stream of what
// Replica.Write writes.
//
//	byte version, int64 zxid, uint64 ZooKeeper's digest, uint64 number of znodes, uint64 number of sessions
const (
	mirroredVersion = 1
	mirroredHead    = 1 + 8 + 8 + 8 + 8
)

type errMirrorStep MirrorStep

func (e errMirrorStep) Error() string { return fmt.Sprintf("unknown step %d of a mirror", uint8(e)) }

// WriteMirrored encodes a state for a MirrorLoad. It decides nothing: a MirrorLoad keeps the ephemerals whose sessions
// do not exist, as the source does.
//
// Errors: of w and of Replica.Write.
func WriteMirrored(w io.Writer, r *replica.Replica) error {
	b := binary.BigEndian.AppendUint64([]byte{mirroredVersion}, uint64(r.Zxid))
	b = binary.BigEndian.AppendUint64(b, r.Digest())
	b = binary.BigEndian.AppendUint64(b, uint64(r.Tree.Size().Znodes))
	b = binary.BigEndian.AppendUint64(b, uint64(r.Sessions.Len()))
	if _, err := w.Write(b); err != nil {
		return fmt.Errorf("writing a state to mirror: %w", err)
	}
	z, err := zstd.NewWriter(w, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1))
	if err == nil {
		err = errors.Join(r.Write(z), z.Close())
	}
	if err != nil {
		return fmt.Errorf("writing a state to mirror: %w", err)
	}
	return nil
}

// decoded is a state to be mirrored.
type decoded struct {
	from  *upload
	parts uint64           // how many there were
	sum   uint64           // that was asked for
	state *replica.Replica // nil: the parts are none, or do not have the sum
}

// Prepare decodes the state that the next entry may load, which takes seconds and gives nothing to readers to see: they
// may read meanwhile. Only the goroutine that calls Apply calls it.
func (m *Machine) Prepare(entry []byte) {
	m.prepared = decoded{}
	if m.mirror == nil || m.upload == nil {
		return
	}
	_, _ = VisitEntry(entry, func(_ Origin, _ uint64, c *Command) error { // Apply reports what is wrong with it
		x, u := &c.Restore, m.upload
		if c.Op == OpMirror && c.Mirror == MirrorLoad && x.Upload == u.id && x.Part == uint64(len(u.parts)) {
			m.prepared = u.decode(x.Sum)
		}
		return nil
	})
}

// decode decodes the state in u, if its sum is this one.
func (u *upload) decode(sum uint64) decoded {
	d := decoded{from: u, parts: uint64(len(u.parts)), sum: sum}
	if u.sum() == sum {
		d.state, _ = readMirrored(u.reader()) // all machines fail alike
	}
	return d
}

// readMirrored decodes what WriteMirrored has written, and compares it with the head.
func readMirrored(in io.Reader) (*replica.Replica, error) {
	var b [mirroredHead]byte
	if _, err := io.ReadFull(in, b[:]); err != nil {
		return nil, err
	}
	if b[0] != mirroredVersion {
		return nil, fmt.Errorf("has version %d, this build reads version %d", b[0], mirroredVersion)
	}
	zxid, digest := znode.Zxid(binary.BigEndian.Uint64(b[1:])), binary.BigEndian.Uint64(b[9:])
	znodes, sessions := binary.BigEndian.Uint64(b[17:]), binary.BigEndian.Uint64(b[25:])
	if zxid < 0 {
		return nil, fmt.Errorf("zxid %v is negative", zxid)
	}
	z, err := zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(windowMax))
	if err != nil {
		return nil, err
	}
	defer z.Close()
	stream := jute.NewStream(&io.LimitedReader{R: z, N: maxDecoded}, replica.MaxField)
	r, err := replica.Read(stream, zxid)
	if err != nil {
		return nil, err
	}
	// zstd compares its checksum when the stream ends, and not before.
	switch n, err := io.CopyN(io.Discard, stream, 1); {
	case n > 0:
		return nil, errors.New("goes on after its end")
	case !errors.Is(err, io.EOF):
		return nil, err
	}
	if left := r.Unresolved(); len(left) > 0 {
		return nil, fmt.Errorf("the ACL of %q is not known", left[0])
	}
	if got := r.Tree.Size().Znodes; uint64(got) != znodes || uint64(r.Sessions.Len()) != sessions {
		return nil, fmt.Errorf("holds %d znodes and %d sessions, but its head says %d and %d", got, r.Sessions.Len(),
			znodes, sessions)
	}
	if got := r.Digest(); got != digest {
		return nil, fmt.Errorf("digest is %016x, but its head has %016x", got, digest)
	}
	return r, nil
}

// clone is for a snapshot.
func (x *mirror) clone() *mirror {
	if x == nil {
		return nil
	}
	c := &mirror{Mirror: x.Mirror, relays: x.relays}
	c.relays.all = maps.Clone(x.relays.all)
	return c
}

// append encodes x; Zxid is the machine's.
func (x *mirror) append(b []byte) []byte {
	b = append(appendString(append(b, mirrorSection), x.Source), flag(x.Loaded), flag(x.Online))
	b = appendUint(appendString(b, x.Fault), x.Begun)
	b = appendInt(appendUint(appendUint(b, uint64(x.LostAt)), x.Loads), x.Time)
	b = appendUint(appendUint(b, x.Compared), x.Differing)
	b = appendUint(appendUint(b, uint64(x.FirstDiffering)), uint64(x.LastDiffering))
	return x.relays.append(appendUint(b, uint64(x.DiffersSince)))
}

// readMirror decodes what follows the number of the section.
func readMirror(r *reader) *mirror {
	x := &mirror{Mirror: Mirror{Source: strings.Clone(r.string())}}
	x.Loaded, x.Online, x.Fault, x.Begun = r.byte() == 1, r.byte() == 1, strings.Clone(r.string()), r.uint()
	x.LostAt, x.Loads, x.Time = znode.Zxid(r.uint()), r.uint(), r.int()
	x.Compared, x.Differing = r.uint(), r.uint()
	x.FirstDiffering, x.LastDiffering = znode.Zxid(r.uint()), znode.Zxid(r.uint())
	x.DiffersSince = znode.Zxid(r.uint())
	x.relays.read(r)
	return x
}
