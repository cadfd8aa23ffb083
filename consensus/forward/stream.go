package forward

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/zk-lite/zk-lite/internal/crash"

	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/znode"
)

// The stream between a server and the leader: frames of a 4-byte length and a
// type byte. The length counts what follows it.
//
//	server → leader  open     incarnation u64, limit u64
//	server → leader  batch    incarnation u64, first u64, count u32, commands
//	server → leader  touch    stamp u64, session ids u64...
//	leader → server  contact  stamp u64 of the touch it answers, 0 at first; limit u64
//
// A limit is how much memory the tree may take: on that server, and on all voters whose streams have been
// connected; 0: no limit. A server that sends none in open gets none in contact.
//
// The leader sends contact only while it leads; when it no longer does, it
// closes the stream. Everything is bounded by maxStreamFrame.
const (
	frameOpen    = 1
	frameBatch   = 2
	frameTouch   = 3
	frameContact = 4
)

const (
	// maxStreamFrame holds a batch of the largest command, whatever jute.maxbuffer is on the servers.
	maxStreamFrame = state.MaxCommand + 1<<20
	// maxTouched is how many sessions a touch has at most.
	maxTouched = 100_000
	// frameStep is the most memory that an announced length takes by itself, and how much has to pass within
	// streamWriteTimeout.
	frameStep = 1 << 20
)

// errMalformed is wrapped by the error of a frame that no server sends.
var errMalformed = errors.New("malformed")

const batchHeader = 8 + 8 + 4

func beginFrame(b []byte, kind byte) []byte { return append(b, 0, 0, 0, 0, kind) }

// endFrame fills in the length of the frame that b holds.
func endFrame(b []byte) []byte {
	binary.BigEndian.PutUint32(b, uint32(len(b)-4))
	return b
}

func appendU64(b []byte, v uint64) []byte { return binary.BigEndian.AppendUint64(b, v) }

// appendBatchHeader is completed by finishBatch after the commands.
func appendBatchHeader(b []byte) []byte {
	b = beginFrame(b, frameBatch)
	return append(b, make([]byte, batchHeader)...)
}

func finishBatch(b []byte, g *state.Batch) []byte {
	h := b[5:]
	binary.BigEndian.PutUint64(h, g.Incarnation)
	binary.BigEndian.PutUint64(h[8:], g.First)
	binary.BigEndian.PutUint32(h[16:], uint32(g.Count))
	return endFrame(b)
}

func parseBatch(body []byte, from state.ServerID) (state.Batch, error) {
	if len(body) < batchHeader {
		return state.Batch{}, fmt.Errorf("%w: batch frame of %d bytes", errMalformed, len(body))
	}
	g := state.Batch{
		Origin:   state.Origin{Server: from, Incarnation: binary.BigEndian.Uint64(body)},
		First:    binary.BigEndian.Uint64(body[8:]),
		Count:    int(binary.BigEndian.Uint32(body[16:])),
		Commands: body[batchHeader:],
	}
	// Every server must be able to read what the leader puts into the log: a
	// damaged batch stops here, not at the state machine.
	if err := state.CheckBatch(&g); err != nil {
		return g, fmt.Errorf("%w: %w", errMalformed, err)
	}
	return g, nil
}

func appendTouch(b []byte, stamp uint64, ids []znode.SessionID) []byte {
	b = appendU64(beginFrame(b, frameTouch), stamp)
	for _, id := range ids {
		b = appendU64(b, uint64(id))
	}
	return endFrame(b)
}

func parseTouch(body []byte) (stamp uint64, ids []znode.SessionID, err error) {
	if len(body) < 8 || len(body)%8 != 0 {
		return 0, nil, fmt.Errorf("%w: touch frame of %d bytes", errMalformed, len(body))
	}
	stamp = binary.BigEndian.Uint64(body)
	for body = body[8:]; len(body) > 0; body = body[8:] {
		ids = append(ids, znode.SessionID(binary.BigEndian.Uint64(body)))
	}
	return stamp, ids, nil
}

func appendOpen(b []byte, incarnation uint64, limit int64) []byte {
	return endFrame(appendU64(appendU64(beginFrame(b, frameOpen), incarnation), uint64(limit)))
}

func parseOpen(body []byte) (limit int64, hasLimit bool, err error) {
	switch len(body) {
	case 8:
		return 0, false, nil
	case 16:
		return parseLimit(body[8:]), true, nil
	}
	return 0, false, fmt.Errorf("%w: open frame of %d bytes", errMalformed, len(body))
}

func appendContact(b []byte, stamp uint64, limit int64, hasLimit bool) []byte {
	b = appendU64(beginFrame(b, frameContact), stamp)
	if hasLimit {
		b = appendU64(b, uint64(limit))
	}
	return endFrame(b)
}

func parseContact(body []byte) (stamp, limit int64, err error) {
	switch len(body) {
	case 16:
		limit = parseLimit(body[8:])
	case 8:
	default:
		return 0, 0, fmt.Errorf("%w: contact frame of %d bytes", errMalformed, len(body))
	}
	return int64(binary.BigEndian.Uint64(body)), limit, nil
}

// parseLimit reads a limit; one beyond all numbers is none.
func parseLimit(b []byte) int64 { return max(0, int64(binary.BigEndian.Uint64(b))) }

// smaller is the smaller of two limits, of which 0 is none.
func smaller(a, b int64) int64 {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// readFrame reads one frame. The body is new: batches are kept.
func readFrame(r *bufio.Reader) (kind byte, body []byte, err error) {
	var head [5]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, nil, err
	}
	n := binary.BigEndian.Uint32(head[:])
	switch {
	case n < 1 || n > maxStreamFrame:
		return 0, nil, fmt.Errorf("%w: stream frame of %d bytes; 1 to %d are possible", errMalformed, n, maxStreamFrame)
	case n <= frameStep:
		body = make([]byte, n-1)
		_, err = io.ReadFull(r, body)
	default:
		body, err = io.ReadAll(io.LimitReader(r, int64(n-1)))
		if err == nil && len(body) < int(n-1) {
			err = io.ErrUnexpectedEOF
		}
	}
	return head[4], body, err
}

// Accept serves the other servers' streams until there are no more.
func (f *Forwarder) Accept() {
	for {
		conn, from, err := f.cfg.Network.Accept()
		if err != nil {
			return
		}
		f.cfg.Tasks.Go(func() {
			defer conn.Close()
			if err := f.serveStream(conn, from); err != nil {
				f.logEnd(from, err)
			}
		})
	}
}

// logEnd logs why the stream of another server has ended. That of a server that stops is nothing special.
func (f *Forwarder) logEnd(from state.ServerID, err error) {
	if !errors.Is(err, errMalformed) {
		f.cfg.Logger.Debug("a server's stream has ended", "server", from, "error", err)
		return
	}
	const refused = "refusing what another server sends on its stream"
	if pass, leftOut := f.repeats.Pass(refused); pass {
		f.cfg.Logger.Error(refused, "server", from, "error", err, "left_out", leftOut)
	}
}

// serveStream takes commands from another server while this one leads. It returns what is wrong with the stream.
func (f *Forwarder) serveStream(conn net.Conn, from state.ServerID) error {
	b := f.batcher.Load()
	if b == nil || !f.cfg.Ensemble.Leads() {
		return nil
	}
	defer context.AfterFunc(b.ctx, func() { _ = conn.Close() })()
	in := bufio.NewReaderSize(conn, 64<<10)
	kind, body, err := readFrame(in)
	if err != nil {
		return err
	}
	if kind != frameOpen {
		return fmt.Errorf("%w: the first frame has type %d", errMalformed, kind)
	}
	limit, hasLimit, err := parseOpen(body)
	if err != nil {
		return err
	}
	if err := writeFrame(conn, appendContact(nil, 0, f.ensembleLimit(), hasLimit)); err != nil {
		return err
	}
	f.cfg.Streams.add(from, conn, limit)
	defer f.cfg.Streams.remove(from, conn)
	defer crash.OnPanic()
	for {
		kind, body, err := readFrame(in)
		if err != nil {
			return err
		}
		f.cfg.Streams.received(from)
		switch kind {
		case frameBatch:
			x, err := parseBatch(body, from)
			if err != nil {
				return err
			}
			if !b.submit(x) {
				return nil
			}
		case frameTouch:
			stamp, ids, err := parseTouch(body)
			if err != nil || !f.cfg.Ensemble.Leads() {
				return err
			}
			f.cfg.Touched(from, ids)
			if err := writeFrame(conn, appendContact(nil, stamp, f.ensembleLimit(), hasLimit)); err != nil {
				return err
			}
		default:
			return fmt.Errorf("%w: unknown frame of type %d", errMalformed, kind)
		}
	}
}

// Streams are the other servers whose streams are connected here.
type Streams struct {
	mu   sync.Mutex // protects the fields below
	open map[state.ServerID]net.Conn
	// Also of streams that have ended: when something last came, and the limit for the memory
	// of the server's tree (0: none).
	last   map[state.ServerID]time.Time
	limits map[state.ServerID]int64
}

func (s *Streams) add(id state.ServerID, c net.Conn, limit int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open == nil {
		s.open, s.last = map[state.ServerID]net.Conn{}, map[state.ServerID]time.Time{}
		s.limits = map[state.ServerID]int64{}
	}
	s.open[id], s.last[id], s.limits[id] = c, time.Now(), limit
}

// limit is the smallest limit of the servers that vote, as far as they have been connected here; 0: none has
// one. That of a server that is down counts, since it is to come back.
func (s *Streams) limit(voters map[state.ServerID]bool) (least int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, limit := range s.limits {
		if voters[id] {
			least = smaller(least, limit)
		}
	}
	return least
}

// received notes that something came on a server's stream.
func (s *Streams) received(id state.ServerID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last[id] = time.Now()
}

func (s *Streams) remove(id state.ServerID, c net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open[id] == c {
		delete(s.open, id)
	}
}

// Contact returns whether a server's stream is connected, and when something last came on
// one; the zero Time if nothing ever has.
func (s *Streams) Contact(id state.ServerID) (open bool, last time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open[id] != nil, s.last[id]
}

// Count counts the connected servers that vote and those that do not.
func (s *Streams) Count(voters map[state.ServerID]bool) (voting, others int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id := range s.open {
		if voters[id] {
			voting++
		} else {
			others++
		}
	}
	return voting, others
}
