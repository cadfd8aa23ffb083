package transport

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/hashicorp/raft"

	"github.com/zk-lite/zk-lite/consensus/transport/mux"
)

// The transfer of a snapshot, on a connection of its own (mux.KindSnapshot), all numbers big-endian:
//
//	leader    length u32 | raft's request in JSON
//	follower  answer: has, how many bytes of this snapshot it has, and their sum
//	leader    u64: from which byte it goes on, that one or 0
//	leader    chunk: length u32 | sum of the snapshot up to its end u64 | bytes
//	follower  after each chunk but the last the answer has; after the last what raft answers
//
// An answer is kind u8 | u64 | u64. A follower to which the snapshot has nothing new answers the request at once.
//
// When the connection breaks, the follower keeps what it has, and the leader connects again. It holds the one chunk
// that is not acknowledged, so that it need not read again. The sums, by XXH64, keep bytes of another snapshot out.
// Servers of release 1.0 refuse the kind, and are sent raft's own stream, which begins again each time.
const (
	chunkSize = 1 << 20
	// pieceSize is how much of a chunk is sent at once: a millisecond of a link of 1 Gbit/s.
	pieceSize = 64 << 10
	// snapshotRate bounds all snapshots that a server sends, in bytes per second: half of a link of 1 Gbit/s, and
	// less than a disk writes.
	snapshotRate = 64 << 20
	// maxFruitless is how many connections in a row may bring the transfer no further.
	maxFruitless = 5
	// maxSnapshotRequest bounds raft's request in JSON. It has the configuration.
	maxSnapshotRequest = 1 << 20
	answerSize         = 1 + 8 + 8
)

// The kinds of answers.
const (
	answerHas    = 1 // bytes, sum
	answerRaft   = 2 // the term, and 1 for success
	answerFailed = 3 // see the follower's log
)

var (
	errStartOver = errors.New("transport: the follower no longer has the snapshot's beginning; it is sent again")
	errAnswer    = errors.New("transport: an answer about a snapshot makes no sense")
)

// pacer spreads bytes over time: each reservation begins where the one before ends.
type pacer struct {
	mu   sync.Mutex // protects the field below
	free time.Time  // when everything reserved has been sent
}

// reserve returns how long to wait before n bytes are sent.
func (p *pacer) reserve(n int) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if p.free.Before(now) {
		p.free = now
	}
	wait := p.free.Sub(now)
	p.free = p.free.Add(time.Duration(n) * time.Second / snapshotRate)
	return wait
}

// paced is a Reader at the pace of snapshots.
type paced struct {
	t *Transport
	r io.Reader
}

func (p paced) Read(b []byte) (int, error) {
	b = b[:min(len(b), pieceSize)]
	if !p.t.sleep(p.t.pace.reserve(len(b))) {
		return 0, raft.ErrTransportShutdown
	}
	return p.r.Read(b)
}

// outgoing is one snapshot on its way to one follower.
type outgoing struct {
	t      *Transport
	id     raft.ServerID
	target raft.ServerAddress
	req    *raft.InstallSnapshotRequest
	data   io.Reader

	have    int64 // the follower has so much
	haveSum uint64
	chunk   []byte // read from data, follows that
	sum     xxhash.Digest
}

// send sends the snapshot. When the connection breaks it goes on with another, once a heartbeat gets through.
func (o *outgoing) send(resp *raft.InstallSnapshotResponse) error {
	o.sum.Reset()
	o.haveSum = o.sum.Sum64()
	for fruitless := 0; ; {
		before := o.have
		err := o.attempt(resp)
		if refused, ok := errors.AsType[*mux.RefusedError](err); ok && refused.Code == mux.RefusedMalformed &&
			o.have == 0 && o.chunk == nil {
			return o.t.NetworkTransport.InstallSnapshot(o.id, o.target, o.req, resp, paced{o.t, o.data})
		}
		if fruitless++; o.have > before {
			fruitless = 0
		}
		if err == nil || errors.Is(err, errStartOver) || fruitless >= maxFruitless {
			return err
		}
		o.t.receivers.forget(o.id) // one out of reach is not waited for
		if !o.t.retry.wait(o.id, o.req.Term) {
			return err
		}
		o.t.receivers.sending(o.id, o.req.Term)
	}
}

// attempt sends as much as one connection carries.
func (o *outgoing) attempt(resp *raft.InstallSnapshotResponse) error {
	c, err := o.t.mux.DialMember(mux.KindSnapshot, string(o.target), o.t.timeout)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	head, err := json.Marshal(o.req)
	if err != nil {
		return fmt.Errorf("transport: encoding the request of a snapshot: %w", err)
	}
	if err := c.SetDeadline(time.Now().Add(o.t.timeout)); err != nil {
		return err
	}
	if _, err := c.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(head))), head...)); err != nil {
		return err
	}
	kind, a, b, err := readAnswer(c)
	if err != nil || kind != answerHas {
		return o.answered(kind, a, b, err, resp)
	}
	if err := o.align(a, b); err != nil {
		_, _ = c.Write(make([]byte, 8)) // the follower drops what it has
		return err
	}
	if _, err := c.Write(binary.BigEndian.AppendUint64(nil, uint64(o.have))); err != nil {
		return err
	}
	for {
		if len(o.chunk) == 0 && o.have < o.req.Size {
			if err := o.read(chunkSize); err != nil {
				return err
			}
		}
		last := o.have+int64(len(o.chunk)) == o.req.Size
		if err := o.write(c, last); err != nil {
			return err
		}
		kind, a, b, err := readAnswer(c)
		if err != nil || kind != answerHas {
			return o.answered(kind, a, b, err, resp)
		}
		if last || int64(a) != o.have+int64(len(o.chunk)) || b != o.sum.Sum64() {
			return errAnswer
		}
		o.acknowledged()
	}
}

// align goes to where the follower goes on, which has so many bytes with this sum.
func (o *outgoing) align(has, sum uint64) error {
	if has > uint64(o.req.Size) {
		return errAnswer
	}
	if has == 0 && o.have == 0 {
		return nil
	}
	for o.have < int64(has) {
		if len(o.chunk) == 0 {
			if err := o.read(min(chunkSize, int64(has)-o.have)); err != nil {
				return err
			}
		}
		o.acknowledged()
	}
	if o.have != int64(has) || o.haveSum != sum {
		return errStartOver
	}
	return nil
}

// read reads the next chunk.
func (o *outgoing) read(most int64) error {
	if cap(o.chunk) == 0 {
		o.chunk = make([]byte, 0, chunkSize)
	}
	b := o.chunk[:min(most, o.req.Size-o.have)]
	if _, err := io.ReadFull(o.data, b); err != nil {
		return fmt.Errorf("transport: reading the snapshot to be sent: %w", err)
	}
	o.chunk = b
	_, _ = o.sum.Write(b)
	return nil
}

// acknowledged notes that the follower has the chunk.
func (o *outgoing) acknowledged() {
	o.have, o.haveSum = o.have+int64(len(o.chunk)), o.sum.Sum64()
	o.chunk = o.chunk[:0]
}

// write sends the chunk at the pace of snapshots, unless the leadership has ended. The answer to the last waits for the
// follower to install it, for as long as raft's own transport waits.
func (o *outgoing) write(c *mux.Conn, last bool) error {
	if !o.t.retry.may(o.id, o.req.Term) {
		return errors.New("transport: this server no longer leads; a snapshot is not sent to its end")
	}
	b := binary.BigEndian.AppendUint32(nil, uint32(len(o.chunk)))
	b = binary.BigEndian.AppendUint64(b, o.sum.Sum64())
	for rest := o.chunk; ; {
		piece := rest[:min(len(rest), pieceSize)]
		if !o.t.sleep(o.t.pace.reserve(len(piece))) {
			return raft.ErrTransportShutdown
		}
		if err := c.SetDeadline(time.Now().Add(o.t.timeout)); err != nil {
			return err
		}
		if _, err := c.Write(append(b, piece...)); err != nil {
			return err
		}
		if b, rest = nil, rest[len(piece):]; len(rest) == 0 {
			break
		}
	}
	if !last {
		return nil
	}
	scale := o.req.Size / raft.DefaultTimeoutScale
	return c.SetDeadline(time.Now().Add(o.t.timeout * time.Duration(max(1, scale))))
}

// answered takes the answer that ends a transfer.
func (o *outgoing) answered(kind byte, a, b uint64, err error, resp *raft.InstallSnapshotResponse) error {
	switch {
	case err != nil:
		return err
	case kind == answerRaft:
		resp.Term, resp.Success = a, b == 1
		return nil
	case kind == answerFailed:
		return errors.New("transport: the follower could not take the snapshot; its log says why")
	}
	return errAnswer
}

func readAnswer(r io.Reader) (kind byte, a, b uint64, err error) {
	var buf [answerSize]byte
	if _, err := io.ReadFull(r, buf[:]); err != nil {
		return 0, 0, 0, err
	}
	return buf[0], binary.BigEndian.Uint64(buf[1:]), binary.BigEndian.Uint64(buf[9:]), nil
}

func writeAnswer(w io.Writer, kind byte, a, b uint64) error {
	buf := binary.BigEndian.AppendUint64([]byte{kind}, a)
	_, err := w.Write(binary.BigEndian.AppendUint64(buf, b))
	return err
}
