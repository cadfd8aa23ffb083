package recipes

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"sync"

	"github.com/zk-lite/zk-lite/client"
)

// counterSize is the length of a counter's data.
const counterSize = 8

// Counter is a 64-bit number that clients change together: no change is lost, and
// none is made twice, even if connections break. It is 0 until the first change,
// and wraps around as int64 does.
//
// Its data is that of Curator's DistributedAtomicLong, eight bytes, the highest
// first. During a change the znode has an ephemeral child.
type Counter struct{ cell }

// NewCounter returns the counter at path. Options: WithACL.
func NewCounter(c *client.Client, path string, opts ...Option) *Counter {
	return &Counter{cell{c: c, path: path, acl: newOptions(opts).acl}}
}

// Get returns the value. It sees every write that was acknowledged before the
// call.
func (n *Counter) Get(ctx context.Context) (int64, error) {
	var data []byte
	var exists bool
	err := afterSync(ctx, n.c, n.path, func() (err error) {
		data, _, exists, err = n.get(ctx)
		return err
	}, nil)
	if err != nil {
		return 0, err
	}
	return n.decode(data, exists)
}

// Add adds a number, which may be negative, and returns the new value.
//
// Errors: client.ErrOutcomeUnknown if ctx or the session ends before it is known
// whether the number was added.
func (n *Counter) Add(ctx context.Context, delta int64) (int64, error) {
	_, now, err := n.change(ctx, func(v int64) (int64, bool) { return v + delta, true })
	return now, err
}

// Set replaces the value, whatever it is, and returns the old one. Errors as with
// Add.
func (n *Counter) Set(ctx context.Context, value int64) (int64, error) {
	was, _, err := n.change(ctx, func(int64) (int64, bool) { return value, true })
	return was, err
}

// CompareAndSwap replaces the value if it is the old one, and reports whether it
// was. Errors as with Add.
func (n *Counter) CompareAndSwap(ctx context.Context, old, value int64) (bool, error) {
	was, _, err := n.change(ctx, func(v int64) (int64, bool) { return value, v == old })
	return err == nil && was == old, err
}

func (n *Counter) change(
	ctx context.Context, f func(int64) (int64, bool),
) (was, now int64, err error) {
	err = n.update(ctx, func(data []byte, exists bool) ([]byte, bool, error) {
		var err error
		if was, err = n.decode(data, exists); err != nil {
			return nil, false, err
		}
		var write bool
		now, write = f(was)
		return binary.BigEndian.AppendUint64(nil, uint64(now)), write, nil
	})
	return was, now, err
}

func (n *Counter) decode(data []byte, exists bool) (int64, error) {
	switch {
	case !exists:
		return 0, nil
	case len(data) != counterSize:
		return 0, fmt.Errorf("%s is no counter: its data has %d bytes, want %d: %w",
			n.path, len(data), counterSize, client.ErrMarshalling)
	}
	return int64(binary.BigEndian.Uint64(data)), nil
}

// Codec translates between a value and the data of a znode.
type Codec[T any] struct {
	Encode func(T) ([]byte, error)
	Decode func([]byte) (T, error)
}

// JSON is the codec of values that are stored as JSON. A field that is in the data
// and not in the type is no error.
func JSON[T any]() Codec[T] {
	return Codec[T]{
		Encode: func(v T) ([]byte, error) { return json.Marshal(v) },
		Decode: func(data []byte) (v T, err error) {
			err = json.Unmarshal(data, &v)
			return v, err
		},
	}
}

// Value is a typed value that follows its znode. It has one watch and one goroutine,
// and shows the newest value; it may skip values in between. If data cannot be
// decoded, the last good value remains and Err reports the problem.
//
// All methods are safe for concurrent use.
type Value[T any] struct {
	cell  cell
	codec Codec[T]
	ctx   context.Context // of the goroutine
	stop  context.CancelFunc
	done  chan struct{}

	mu      sync.Mutex // protects the fields below
	value   T
	stat    client.Stat // of the znode that the value is from
	exists  bool
	err     error
	changed chan struct{}
	reads   int         // how many different states of the znode have been read, for Watch
	newest  client.Zxid // of the last one; 0: there was no znode
	readErr error       // why the last one is no value
}

// NewValue returns the value at path once it has been read. The znode need not
// exist. Options: WithACL, for the znode that Update may create.
//
// Errors: those of a read. Data that cannot be decoded is none; see Err.
func NewValue[T any](
	ctx context.Context, c *client.Client, path string, codec Codec[T], opts ...Option,
) (*Value[T], error) {
	f := &Value[T]{
		cell:  cell{c: c, path: path, acl: newOptions(opts).acl},
		codec: codec, done: make(chan struct{}), changed: make(chan struct{}),
	}
	w, err := f.read(ctx)
	if err != nil {
		return nil, err
	}
	f.ctx, f.stop = context.WithCancel(context.Background())
	go f.follow(w)
	return f, nil
}

// Get returns the value, and false if there is none: the znode does not exist, or
// its data could never be decoded.
func (f *Value[T]) Get() (T, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.value, f.exists
}

// Stat is that of the znode when it had the value.
func (f *Value[T]) Stat() client.Stat {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.stat
}

// Err is the reason why the value is not that of the znode: the newest data cannot be
// decoded, or the value is no longer followed (client.ErrClosed, context.Canceled
// after Close). It is nil otherwise.
func (f *Value[T]) Err() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err
}

// Changed returns a channel that is closed when Get, Stat or Err change next. To
// miss nothing, call it before them.
func (f *Value[T]) Changed() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.changed
}

// Watch yields the value, and again whenever another one is there; a slow reader gets the
// newest alone. Instead of a value it yields an error when the data cannot be decoded or
// the znode does not exist (client.ErrNoNode), and goes on. The last item is the error of
// ctx, or Err once the value is no longer followed.
func (f *Value[T]) Watch(ctx context.Context) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		seen := 0
		for {
			f.mu.Lock()
			value, err, reads, changed := f.value, f.readErr, f.reads, f.changed
			f.mu.Unlock()
			if err != nil {
				value = none
			}
			if reads != seen && !yield(value, err) {
				return
			}
			seen = reads
			select {
			case <-changed:
			case <-f.done:
				yield(none, f.Err())
				return
			case <-ctx.Done():
				yield(none, ctx.Err())
				return
			}
		}
	}
}

// Update replaces the value by the result of change, exactly once; it creates the
// znode if it does not exist. If another client was faster, it calls change again
// with the newer value. When Update returns, Get may still return the old one.
//
// Errors: that of change or the codec; client.ErrOutcomeUnknown if ctx or the session
// ends before it is known whether the value was stored.
func (f *Value[T]) Update(ctx context.Context, change func(T) (T, error)) error {
	return f.cell.update(ctx, func(old []byte, exists bool) ([]byte, bool, error) {
		var v T
		var err error
		if exists {
			if v, err = f.decode(old); err != nil {
				return nil, false, err
			}
		}
		if v, err = change(v); err != nil {
			return nil, false, err
		}
		data, err := f.codec.Encode(v)
		return data, true, err
	})
}

// Close stops following the znode. The value remains.
func (f *Value[T]) Close() {
	f.stop()
	<-f.done
}

func (f *Value[T]) decode(data []byte) (T, error) {
	v, err := f.codec.Decode(data)
	if err != nil {
		err = fmt.Errorf("decoding the data of %s: %w", f.cell.path, err)
	}
	return v, err
}

// follow is the goroutine.
func (f *Value[T]) follow(w *client.Watch) {
	defer close(f.done)
	defer f.stop()
	for {
		err := waitEvents(f.ctx, w)
		if err == nil || startAgain(f.ctx, f.cell.c, err) {
			w, err = f.read(f.ctx)
		}
		if err != nil {
			f.mu.Lock()
			f.err = err
			f.noteLocked()
			f.mu.Unlock()
			return
		}
	}
}

// read takes in the newest value, and leaves a watch.
func (f *Value[T]) read(ctx context.Context) (*client.Watch, error) {
	for {
		data, stat, w, err := f.cell.c.GetW(ctx, f.cell.path)
		exists := true
		if errors.Is(err, client.ErrNoNode) {
			exists, _, w, err = f.cell.c.ExistsW(ctx, f.cell.path)
			if exists {
				w.Cancel()
				continue // it was created in between: read it
			}
		}
		if err == nil {
			f.store(data, stat, exists)
			return w, nil
		}
		if !startAgain(ctx, f.cell.c, err) {
			return nil, err
		}
	}
}

func (f *Value[T]) store(data []byte, stat client.Stat, exists bool) {
	var v T
	var err error
	if exists {
		v, err = f.decode(data)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err = err; err == nil {
		f.value, f.stat, f.exists = v, stat, exists
	}
	if f.reads == 0 || stat.Mzxid != f.newest { // or only the watch was set again
		f.reads++
		f.newest, f.readErr = stat.Mzxid, err
		if !exists {
			f.readErr = fmt.Errorf("%s: %w", f.cell.path, client.ErrNoNode)
		}
	}
	f.noteLocked()
}

func (f *Value[T]) noteLocked() {
	close(f.changed)
	f.changed = make(chan struct{})
}
