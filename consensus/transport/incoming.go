package transport

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/hashicorp/raft"

	"github.com/zk-lite/zk-lite/consensus/transport/mux"
)

const (
	// maxSnapshotSize bounds what a leader may announce; the disk is full before.
	maxSnapshotSize = 1 << 40
	// keepIncoming is how long the beginning of a snapshot is kept after its connection has broken.
	keepIncoming = 10 * time.Minute
	// chunkWait is how long the follower waits for a chunk: longer than a leader's disk and its other followers delay
	// one.
	chunkWait = 30 * time.Second
	// flushEach is after how many bytes the file is synced: what the kernel has not yet written delays each sync of the
	// log.
	flushEach = 8 << 20
)

// incoming is the snapshot that this server is receiving, of which there is one at a time. It lies in a file, and raft
// sees it when it is whole: until then raft's main loop goes on, and a leader that dies leaves nothing behind.
type incoming struct {
	// set at construction
	t   *Transport
	dir string // of the file; empty: that of the system

	turn chan struct{} // has room for one, who may use the fields below
	key  string        // the leader and its request; other bytes are never mixed with these
	file *os.File      // has no name; nil: nothing is kept
	have int64
	sum  xxhash.Digest // of what it has
	drop *time.Timer   // when the connection is broken

	mu   sync.Mutex // protects the field below
	conn *mux.Conn  // the newest, which ends the others
}

func newIncoming(t *Transport, dir string) *incoming {
	return &incoming{t: t, dir: dir, turn: make(chan struct{}, 1)}
}

// serve receives a snapshot, or the rest of one, on a connection.
func (in *incoming) serve(c *mux.Conn) {
	defer func() { _ = c.Close() }()
	err := in.receive(c)
	if err == nil || in.t.stopped() {
		return
	}
	in.t.logger.Info("receiving a snapshot was interrupted", "server", c.ServerID(), "error", err)
	_ = c.SetDeadline(time.Now().Add(in.t.timeout))
	_ = writeAnswer(c, answerFailed, 0, 0)
}

func (in *incoming) receive(c *mux.Conn) error {
	if err := c.SetDeadline(time.Now().Add(chunkWait)); err != nil {
		return err
	}
	req, key, err := readSnapshotRequest(c)
	if err != nil {
		return err
	}
	from := RaftID(c.ServerID())
	if string(req.ID) != string(from) {
		return fmt.Errorf("the snapshot of server %s names server %.20q as its sender", from, req.ID)
	}
	if err := in.t.checkRequest(req); err != nil {
		return err
	}
	if r := in.t.raft.Load(); r != nil && r.CurrentTerm() > req.Term {
		return writeAnswer(c, answerRaft, r.CurrentTerm(), 0)
	}
	answers := make(chan raft.RPCResponse, 1)
	rpc := raft.RPC{Command: req, Reader: eofReader{}, RespChan: answers}
	if in.t.snapshots.answer(rpc, req) {
		return in.relay(c, answers)
	}
	if !in.enter(c) {
		return raft.ErrTransportShutdown
	}
	defer in.leave()
	if err := in.fill(c, req, string(from)+key); err != nil {
		return err
	}
	defer in.discard()
	if _, err := in.file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	rpc.Reader = in.file
	in.t.receive(rpc)
	return in.relay(c, answers)
}

// eofReader is a snapshot of which nothing is read.
type eofReader struct{}

func (eofReader) Read([]byte) (int, error) { return 0, io.EOF }

// relay passes raft's answer on.
func (in *incoming) relay(c *mux.Conn, answers <-chan raft.RPCResponse) error {
	select {
	case <-in.t.done:
		return raft.ErrTransportShutdown
	case r := <-answers:
		resp, ok := r.Response.(*raft.InstallSnapshotResponse)
		if r.Error != nil || !ok {
			return fmt.Errorf("installing it: %w", r.Error)
		}
		success := uint64(0)
		if resp.Success {
			success = 1
		}
		if err := c.SetDeadline(time.Now().Add(in.t.timeout)); err != nil {
			return err
		}
		return writeAnswer(c, answerRaft, resp.Term, success)
	}
}

// enter ends the connection before, which may be one that the leader has given up, and waits until it is left.
func (in *incoming) enter(c *mux.Conn) bool {
	in.mu.Lock()
	before := in.conn
	in.conn = c
	in.mu.Unlock()
	if before != nil {
		_ = before.Close()
	}
	select {
	case in.turn <- struct{}{}:
	case <-in.t.done:
		return false
	}
	if in.drop != nil {
		in.drop.Stop()
	}
	return true
}

// leave keeps what there is for a while.
func (in *incoming) leave() {
	if in.file != nil {
		in.drop = time.AfterFunc(keepIncoming, in.close)
	}
	<-in.turn
}

// close drops what is kept, unless a connection goes on with it.
func (in *incoming) close() {
	select {
	case in.turn <- struct{}{}:
		in.discard()
		<-in.turn
	default:
	}
}

// discard forgets what was received.
func (in *incoming) discard() {
	if in.file != nil {
		_ = in.file.Close()
	}
	in.file, in.key, in.have = nil, "", 0
	in.sum.Reset()
}

// begin makes an empty file. It has no name, so that the end of the process removes it.
func (in *incoming) begin(key string) (err error) {
	in.discard()
	if in.file, err = os.CreateTemp(in.dir, "incoming-snapshot-*"); err != nil {
		return fmt.Errorf("making a file for the snapshot: %w", err)
	}
	in.key = key
	_ = os.Remove(in.file.Name())
	return nil
}

// fill receives what is missing of the snapshot with this key.
func (in *incoming) fill(c *mux.Conn, req *raft.InstallSnapshotRequest, key string) error {
	if in.key != key || in.file == nil {
		if err := in.begin(key); err != nil {
			return err
		}
	}
	if err := writeAnswer(c, answerHas, uint64(in.have), in.sum.Sum64()); err != nil {
		return err
	}
	var from [8]byte
	if _, err := io.ReadFull(c, from[:]); err != nil {
		return err
	}
	switch at := binary.BigEndian.Uint64(from[:]); at {
	case uint64(in.have):
	case 0:
		if err := in.begin(key); err != nil {
			return err
		}
	default:
		return fmt.Errorf("the leader goes on at byte %d, but this server has %d", at, in.have)
	}
	for buf := make([]byte, chunkSize); ; {
		if err := in.chunk(c, buf, req.Size-in.have); err != nil {
			return err
		}
		if in.have == req.Size {
			return nil
		}
		if err := writeAnswer(c, answerHas, uint64(in.have), in.sum.Sum64()); err != nil {
			return err
		}
	}
}

// chunk receives a chunk, of at most so many bytes.
func (in *incoming) chunk(c *mux.Conn, buf []byte, most int64) error {
	if err := c.SetDeadline(time.Now().Add(chunkWait)); err != nil {
		return err
	}
	var head [4 + 8]byte
	if _, err := io.ReadFull(c, head[:]); err != nil {
		return err
	}
	n, want := binary.BigEndian.Uint32(head[:]), binary.BigEndian.Uint64(head[4:])
	if int64(n) > min(most, chunkSize) || n == 0 && most > 0 {
		return fmt.Errorf("a chunk of %d bytes, at most %d are possible", n, min(most, chunkSize))
	}
	b := buf[:n]
	if _, err := io.ReadFull(c, b); err != nil {
		return err
	}
	sum := in.sum
	_, _ = sum.Write(b)
	if got := sum.Sum64(); got != want {
		in.discard()
		return fmt.Errorf("the sum of the snapshot up to its byte %d is %016x, not %016x", in.have+int64(n), got, want)
	}
	_, err := in.file.Write(b)
	if err == nil && in.have/flushEach != (in.have+int64(n))/flushEach {
		err = in.file.Sync()
	}
	if err != nil {
		in.discard() // what is in the file is not known
		return fmt.Errorf("writing the snapshot: %w", err)
	}
	in.have, in.sum = in.have+int64(n), sum
	return nil
}

// readSnapshotRequest returns also the request's bytes.
func readSnapshotRequest(r io.Reader) (*raft.InstallSnapshotRequest, string, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, "", err
	}
	n := binary.BigEndian.Uint32(head[:])
	if n > maxSnapshotRequest {
		return nil, "", fmt.Errorf("a request of %d bytes, at most %d are possible", n, maxSnapshotRequest)
	}
	b, err := io.ReadAll(io.LimitReader(r, int64(n)))
	if err != nil {
		return nil, "", err
	}
	if len(b) < int(n) {
		return nil, "", io.ErrUnexpectedEOF
	}
	req := new(raft.InstallSnapshotRequest)
	if err := json.Unmarshal(b, req); err != nil {
		return nil, "", fmt.Errorf("the request of a snapshot: %w", err)
	}
	if req.Size < 0 || req.Size > maxSnapshotSize {
		return nil, "", errors.New("the request of a snapshot announces an impossible size")
	}
	return req, string(b), nil
}
