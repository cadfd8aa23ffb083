package disk

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"unsafe"
)

// The kernel's protocol, version 7 (Linux, include/uapi/linux/fuse.h).
const (
	protocolMajor = 7
	protocolMinor = 31

	opLookup      = 1
	opForget      = 2
	opGetAttr     = 3
	opSetAttr     = 4
	opMkdir       = 9
	opUnlink      = 10
	opRmdir       = 11
	opRename      = 12
	opOpen        = 14
	opRead        = 15
	opWrite       = 16
	opStatFS      = 17
	opRelease     = 18
	opFsync       = 20
	opInit        = 26
	opOpenDir     = 27
	opReadDir     = 28
	opReleaseDir  = 29
	opFsyncDir    = 30
	opCreate      = 35
	opInterrupt   = 36
	opDestroy     = 38
	opBatchForget = 42
	opRename2     = 45

	flagBigWrites = 1 << 5

	headerIn, headerOut = 40, 16 // bytes
	maxWrite            = 128 << 10
	maxBackground       = 64
)

// order is that of the processor, as the kernel shares its memory.
var order = binary.NativeEndian

// request is one request of the kernel.
type request struct {
	op     uint32
	unique uint64
	node   uint64
	body   []byte
}

func (r *request) u32(at int) uint32 { return order.Uint32(r.body[at:]) }
func (r *request) u64(at int) uint64 { return order.Uint64(r.body[at:]) }

// names are the strings at the end of the body, from an offset.
func (r *request) names(at int) (all []string) {
	begin := at
	for i := at; i < len(r.body); i++ {
		if r.body[i] == 0 {
			all = append(all, string(r.body[begin:i]))
			begin = i + 1
		}
	}
	return append(all, "", "")
}

func (d *Disk) mount() error {
	fd, err := syscall.Open("/dev/fuse", syscall.O_RDWR|syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("opening /dev/fuse: %w", err)
	}
	options := fmt.Sprintf("fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other", fd)
	if err := syscall.Mount("zk-lite-disk", d.dir, "fuse", syscall.MS_NOSUID|syscall.MS_NODEV,
		options); err != nil {
		return errors.Join(fmt.Errorf("mounting: %w", err), syscall.Close(fd))
	}
	// Only now can it be waited for.
	d.dev = os.NewFile(uintptr(fd), "/dev/fuse")
	go d.read()
	return d.refusePolls()
}

// refusePolls has the kernel ask once whether files can be polled, and be told that they
// cannot. Go's runtime asks when it opens a file, in a way that keeps a processor from this
// process, which has to answer.
func (d *Disk) refusePolls() error {
	path := filepath.Join(d.dir, "poll")
	fd, err := syscall.Open(path, syscall.O_CREAT|syscall.O_RDWR|syscall.O_CLOEXEC, 0o600)
	if err != nil {
		return fmt.Errorf("opening a file on the disk: %w", err)
	}
	ask := struct {
		fd              int32
		events, answers int16
	}{fd: int32(fd), events: 1}
	_, _, code := syscall.Syscall(syscall.SYS_POLL, uintptr(unsafe.Pointer(&ask)), 1, 0)
	if code != 0 {
		err = fmt.Errorf("polling a file on the disk: %w", code)
	}
	return errors.Join(err, syscall.Close(fd), syscall.Unlink(path))
}

// close unmounts. Processes that still have files open meet errors.
func (d *Disk) close() error {
	err := syscall.Unmount(d.dir, syscall.MNT_DETACH)
	err = errors.Join(err, d.dev.Close())
	<-d.reader
	return err
}

// read takes requests until the disk is unmounted.
func (d *Disk) read() {
	defer close(d.reader)
	buf := make([]byte, maxWrite+pageSize)
	for {
		n, err := d.dev.Read(buf)
		switch {
		case errors.Is(err, syscall.ENOENT) || errors.Is(err, syscall.EINTR):
			continue // a request was taken back
		case err != nil || n < headerIn:
			return // unmounted, or closed
		}
		r := &request{op: order.Uint32(buf[4:]), unique: order.Uint64(buf[8:]),
			node: order.Uint64(buf[16:]), body: append([]byte(nil), buf[headerIn:n]...)}
		switch r.op {
		case opInit:
			d.reply(r, d.init(r), 0)
		case opForget:
			d.forget(r.node, r.u64(0))
		case opBatchForget:
			for i := range int(r.u32(0)) {
				d.forget(r.u64(8+16*i), r.u64(16+16*i))
			}
		case opInterrupt: // the request that is meant ends by itself
		default:
			go func() {
				body, code := d.handle(r)
				d.reply(r, body, code)
			}()
		}
	}
}

func (d *Disk) forget(id, lookups uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.forgetLocked(id, lookups)
}

// reply answers. An error means that whoever asked has gone.
func (d *Disk) reply(r *request, body []byte, code syscall.Errno) {
	if code != 0 {
		body = nil
	}
	b := make([]byte, headerOut, headerOut+len(body))
	order.PutUint32(b, uint32(headerOut+len(body)))
	order.PutUint32(b[4:], uint32(-int32(code)))
	order.PutUint64(b[8:], r.unique)
	_, _ = d.dev.Write(append(b, body...))
}

// init agrees on the protocol.
func (d *Disk) init(r *request) []byte {
	b := order.AppendUint32(nil, protocolMajor)
	b = order.AppendUint32(b, min(protocolMinor, r.u32(4)))
	b = order.AppendUint32(b, r.u32(8)) // read ahead
	b = order.AppendUint32(b, flagBigWrites&r.u32(12))
	b = order.AppendUint16(b, maxBackground)
	b = order.AppendUint16(b, maxBackground)
	b = order.AppendUint32(b, maxWrite)
	b = order.AppendUint32(b, 1) // nanoseconds
	return append(b, make([]byte, 36)...)
}

// attr is how the kernel sees a node.
func (n *node) attr(b []byte) []byte {
	mode, size := uint32(syscall.S_IFREG), n.data.size
	if n.dir {
		mode, size = syscall.S_IFDIR, pageSize
	}
	b = order.AppendUint64(b, n.id)
	b = order.AppendUint64(b, uint64(size))
	b = order.AppendUint64(b, uint64((size+511)/512))
	b = append(b, make([]byte, 36)...) // times
	b = order.AppendUint32(b, mode|n.mode)
	b = order.AppendUint32(b, 1)       // links
	b = append(b, make([]byte, 12)...) // owner, group, device
	b = order.AppendUint32(b, pageSize)
	return order.AppendUint32(b, 0)
}

// attrReply says nothing about how long it holds: the kernel asks every time.
func (n *node) attrReply() []byte { return n.attr(make([]byte, 16)) }

func (n *node) entryReply() []byte {
	b := order.AppendUint64(nil, n.id)
	return n.attr(append(b, make([]byte, 32)...))
}
