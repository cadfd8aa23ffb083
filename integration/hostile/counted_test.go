//go:build privileged

package hostile_test

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/integration/cluster"
	"github.com/zk-lite/zk-lite/internal/wire"
)

// countedPackages lists the packages whose blocks are counted: those that a request runs through, and the loops of the
// standard library in which quadratic work hides.
const countedPackages = "./cmd/zk-lite,./znode/...,./session/...,./watch/...,./server/...,./api/...,./consensus/...,./internal/wire," +
	"./internal/jute,slices,maps,strings,bytes,sort"

// buildCounted builds the checkout at source with counters of the blocks that it runs, which testdata/counters.go
// serves.
func buildCounted(source, binary string) error {
	added, err := filepath.Abs("testdata/counters.go")
	if err != nil {
		return err
	}
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {
		filepath.Join(source, "app", "counters.go"): added}})
	if err != nil {
		return err
	}
	file := binary + ".overlay.json"
	if err := os.WriteFile(file, overlay, 0o640); err != nil {
		return err
	}
	return build(source, binary, "-overlay", file, "-cover", "-covermode=atomic", "-coverpkg="+countedPackages)
}

// build builds the checkout at source.
func build(source, binary string, flags ...string) error {
	c := exec.Command("go", append(append([]string{"build", "-o", binary}, flags...), "./cmd/zk-lite")...)
	c.Dir, c.Env = source, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("building %s: %w\n%s", source, err, out)
	}
	return nil
}

// work is what requests have cost a server.
type work struct{ blocks, allocated int64 } // of code; bytes

// counters are those of a server, at a socket.
type counters struct {
	t         *testing.T
	socket    string
	allocated int64 // until the last look
}

// take returns the work since the last look; an error if the server has ended.
func (c *counters) take() (w work, err error) {
	nc, err := net.Dial("unix", c.socket)
	if err != nil {
		return work{}, err
	}
	defer nc.Close()
	b, err := io.ReadAll(nc)
	if err != nil {
		return work{}, err
	}
	if len(b) < 8 {
		return work{}, io.ErrUnexpectedEOF
	}
	allocated := int64(binary.BigEndian.Uint64(b))
	w.allocated, c.allocated = allocated-c.allocated, allocated
	if w.blocks, err = sumCounters(b[8:]); err != nil {
		c.t.Fatalf("the counters are not as Go 1.26 writes them: %v", err)
	}
	return w, nil
}

// sumCounters adds up a file of counters, as internal/coverage/encodecounter writes it: a header of 32 bytes; the number
// of functions, the lengths of strings and arguments; these; and for each function the number of its counters, its
// package, its own number and the counters, all of them ULEB128; a footer of 16 bytes.
func sumCounters(b []byte) (sum int64, err error) {
	const header, segment, footer = 32, 16, 16
	if len(b) < header+segment+footer || string(b[:4]) != "\x00cwm" {
		return 0, fmt.Errorf("%d bytes, %q", len(b), b[:min(len(b), 4)])
	}
	s := b[header:]
	functions := binary.LittleEndian.Uint64(s)
	s = s[segment+binary.LittleEndian.Uint32(s[8:])+binary.LittleEndian.Uint32(s[12:]):]
	next := func() (v uint64) {
		v, n := binary.Uvarint(s)
		if n <= 0 {
			err = io.ErrUnexpectedEOF
			return 0
		}
		s = s[n:]
		return v
	}
	for range functions {
		n := next()
		next()
		next()
		for range n {
			sum += int64(next())
		}
		if err != nil {
			return 0, err
		}
	}
	if len(s) != footer || !strings.HasPrefix(string(s), "\x00cwm") {
		return 0, fmt.Errorf("%d bytes are left", len(s))
	}
	return sum, nil
}

// The bounds of a request's cost. They are about three times the need of the worst request of each kind.
const (
	blocksPerByte, blocksBeside       = 100, 4_000_000
	allocatedPerByte, allocatedBeside = 100, 64 << 20
)

// cost is the cost of a request, and its length.
type cost struct {
	name        string
	work        work
	requests    int64
	size, reply int64
}

func (c *cost) String() string {
	return fmt.Sprintf("%9d bytes, reply %9d, %10d blocks (%6.1f a byte), %5d MiB allocated: %.150s", c.size, c.reply,
		c.work.blocks, float64(c.work.blocks)/float64(c.size), c.work.allocated>>20, c.name)
}

// excess is how far a request is beyond the bounds: above 1 it is.
func (c *cost) excess() float64 {
	bytes := c.size + c.reply
	return max(float64(c.work.blocks)/float64(blocksBeside*c.requests+blocksPerByte*bytes),
		float64(c.work.allocated)/float64(allocatedBeside*c.requests+allocatedPerByte*bytes))
}

// TestHostile_Work sends each request to a server that counts its work, alone, from a connection without identities
// and, where identities matter, from one with as many as there may be.
func TestHostile_Work(t *testing.T) {
	if !cluster.Privileged() {
		t.Logf("%s is set: hostile clients are NOT TESTED", cluster.UnprivilegedVariable)
		return
	}
	if err := buildCounted(source, countedBinary); err != nil {
		t.Fatal(err)
	}
	t.Setenv(cluster.BinaryVariable, countedBinary)
	k := &counting{t: t, worst: map[string]*cost{}}
	k.start()
	for _, x := range k.a.chosen() {
		k.try(x.op.String(), x.String(), func() (*cost, error) { return k.opcode(x, 0) })
		if x.hasACL() || x.has(guarded) || x.has(others) || x.op == wire.OpMulti || x.op == wire.OpMultiRead {
			k.try(x.op.String(), x.String()+" with as many identities as there may be",
				func() (*cost, error) { return k.opcode(x, mostIdentities) })
		}
	}
	for _, x := range k.a.chosenHTTP() {
		k.try(x.method+" "+x.pattern, x.String(), func() (*cost, error) { return k.operation(x) })
	}
	for _, name := range slices.Sorted(maps.Keys(k.worst)) {
		t.Log(k.worst[name])
	}
}

// counting sends requests to a server one by one.
type counting struct {
	t       *testing.T
	a       *arena
	s       *cluster.Server
	c       *counters
	peers   [2]*peer // without and with identities
	janitor *cluster.Conn
	sent    int
	deaths  int
	dirty   bool             // something but a request has cost work since the last look
	worst   map[string]*cost // of each opcode and operation
}

// start starts a server.
func (k *counting) start() {
	k.c = &counters{t: k.t, socket: filepath.Join(k.t.TempDir(), "counters")}
	k.a = enter(k.t, 1, "ZK_LITE_TEST_COUNTERS="+k.c.socket)
	k.s, k.peers, k.janitor, k.sent, k.dirty = k.a.e.Server(1), [2]*peer{}, nil, 0, true
}

// try judges one request. If the server ends that is a fault, and another one is started.
func (k *counting) try(kind, name string, measure func() (*cost, error)) {
	err := k.judge(kind, measure)
	if err == nil {
		return
	}
	if k.deaths++; k.deaths > 20 {
		k.t.Fatalf("%s: %v; too many servers have ended", name, err)
	}
	k.t.Errorf("%s: the server has ended: %v", name, err)
	if k.s.Running() {
		k.s.Kill()
	}
	k.start()
}

// forget leaves out of the next count what the kit itself has cost.
func (k *counting) forget() (err error) {
	if k.dirty {
		_, err = k.c.take()
		k.dirty = false
	}
	return err
}

// clean removes what requests have created, in a session of its own.
func (k *counting) clean() (err error) {
	k.dirty = true
	if k.janitor != nil {
		k.janitor.Drop()
	}
	if k.janitor, err = cluster.Dial(k.s.Addr(), cluster.ConnectOptions{}); err == nil {
		err = k.a.clean(k.janitor)
	}
	return err
}

// judge measures a request, and once more if it is beyond the bounds: a snapshot that is written meanwhile costs work,
// too. An error means that the server has ended.
func (k *counting) judge(kind string, measure func() (*cost, error)) error {
	c, err := measure()
	if err == nil && c.excess() > 1 {
		var again *cost
		if err = k.clean(); err == nil {
			again, err = measure()
		}
		if err == nil && again.excess() < c.excess() {
			c = again
		}
	}
	if err == nil {
		k.note(kind, c)
	}
	return err
}

// opcode measures one request.
func (k *counting) opcode(x *shape, identities int) (c *cost, err error) {
	p := &k.peers[min(identities, 1)]
	if k.sent++; k.sent%32 == 1 {
		if err := k.clean(); err != nil {
			return nil, err
		}
	}
	if *p == nil {
		k.dirty = true
		if *p, err = dial(k.s.Addr(), identities); err != nil {
			return nil, err
		}
		go (*p).drain()
	}
	b := (*p).frames(nil, x.op, x.build(), 1)
	if err := k.forget(); err != nil {
		return nil, err
	}
	before := (*p).bytes.Load()
	(*p).write(b, dialPatience)
	answered := (*p).answered(4 * dialPatience)
	w, err := k.c.take()
	if err != nil {
		return nil, err
	}
	name := x.String()
	if identities > 0 {
		name += ", with as many identities as there may be"
	}
	c = &cost{name, w, 1, int64(len(b)), (*p).bytes.Load() - before}
	if answered != nil && !x.ends() {
		k.a.errorf("%s: %v", name, answered)
	}
	if answered != nil || x.ends() {
		(*p).close()
		*p = nil
	}
	return c, nil
}

// operation measures one request of the HTTP port.
func (k *counting) operation(x *httpShape) (*cost, error) {
	if err := k.forget(); err != nil {
		return nil, err
	}
	answers, size := sendHTTP(k.s, x, "hostile:hostile", 150*time.Millisecond)
	w, err := k.c.take()
	n := int64(max(1, answers))
	return &cost{x.String(), w, n, n * int64(len(x.bytes(""))), size}, err
}

func (k *counting) note(kind string, c *cost) {
	if c.excess() > 1 {
		k.a.errorf("more work than it may be: %s", c)
	}
	if w := k.worst[kind]; w == nil || c.excess() > w.excess() {
		k.worst[kind] = c
	}
}
