package mirror

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/migration/replica"
	"github.com/zk-lite/zk-lite/migration/seed"
	"github.com/zk-lite/zk-lite/znode"
)

// maxParts is how many parts of a snapshot are in flight.
const maxParts = 8

// load turns the state into the origin's, as one transaction of the log. It keeps r no longer than until it is encoded,
// because the state machine makes another tree of it.
func (f *feed) load(r *replica.Replica) error {
	if free, _ := f.m.log.Room(""); r.Tree.Memory() > free {
		return fmt.Errorf("%w: it takes about %d MiB, and they have %d MiB beside the present one", ErrNoRoom,
			r.Tree.Memory()>>20, max(free, 0)>>20)
	}
	findings, err := seed.Check(r.Tree, r.Sessions, &f.m.cfg.Limits)
	if err != nil {
		return err
	}
	for _, x := range findings {
		f.m.cfg.Logger.Warn("what is mirrored exceeds a setting of this server", "setting", x.Setting,
			"problem", fmt.Sprint(x.Count, " with ", x.Problem), "some", x.Some)
	}
	zxid, size, begun := r.Zxid, r.Tree.Size(), time.Now()
	f.m.loading(size.Znodes, findings)
	u := &upload{feed: f, id: rand.Uint64(), results: make(chan znode.Error, maxParts)}
	u.sum.Reset()
	if err := state.WriteMirrored(u, r); err != nil {
		return err
	}
	if err := u.commit(); err != nil {
		return err
	}
	f.m.again = false
	f.m.loaded()
	f.m.cfg.Logger.Info("the state is now that of a ZooKeeper ensemble, which it mirrors", "zxid", zxid,
		"znodes", size.Znodes, "bytes", u.bytes, "took", time.Since(begun))
	return nil
}

// upload is a snapshot on its way into the log, in the parts of a restore. It implements io.Writer and forward.Waiter,
// the latter for each part.
type upload struct {
	feed     *feed
	id       uint64
	part     []byte // the next one
	parts    uint64 // proposed
	bytes    int64
	sum      xxhash.Digest
	inFlight int
	results  chan znode.Error // has room for all in flight
}

// commit proposes the last part and, when all are there, that they are loaded.
func (u *upload) commit() error {
	if err := u.propose(); err != nil {
		return err
	}
	for u.inFlight > 0 {
		if err := u.collect(); err != nil {
			return err
		}
	}
	x, err := u.feed.m.log.Do(u.feed.ctx, &state.Command{
		Op: state.OpMirror, Mirror: state.MirrorLoad, Term: u.feed.term,
		Restore: state.RestoreCommand{Upload: u.id, Part: u.parts, Sum: u.sum.Sum64()},
	})
	if err != nil {
		return err
	}
	return u.errorOf(x.Code)
}

// Write implements io.Writer.
func (u *upload) Write(p []byte) (n int, err error) {
	for n < len(p) {
		if u.part == nil {
			u.part = make([]byte, 0, state.MaxBackupPart)
		}
		some := p[n:min(len(p), n+state.MaxBackupPart-len(u.part))]
		u.part = append(u.part, some...)
		n += len(some)
		if len(u.part) == state.MaxBackupPart {
			if err := u.propose(); err != nil {
				return n, err
			}
		}
	}
	return n, nil
}

// propose proposes the next part.
func (u *upload) propose() error {
	if len(u.part) == 0 {
		return nil
	}
	if u.inFlight == maxParts {
		if err := u.collect(); err != nil {
			return err
		}
	}
	_, _ = u.sum.Write(u.part) // never fails
	c := &state.Command{
		Op: state.OpMirror, Mirror: state.MirrorPart, Term: u.feed.term, Data: u.part,
		Restore: state.RestoreCommand{Upload: u.id, Part: u.parts},
	}
	if err := u.feed.m.log.Propose(c, u); err != nil {
		return err
	}
	u.bytes += int64(len(u.part))
	u.part = nil
	u.parts++
	u.inFlight++
	u.feed.m.uploaded(u.bytes)
	return nil
}

// collect takes the result of a part.
func (u *upload) collect() error {
	select {
	case code := <-u.results:
		u.inFlight--
		return u.errorOf(code)
	case <-u.feed.ctx.Done():
		return context.Cause(u.feed.ctx)
	}
}

// errorOf translates the codes of an upload.
func (u *upload) errorOf(code znode.Error) error {
	switch code {
	case znode.ErrDataInconsistency:
		return errors.New("parts of the snapshot are missing in the log")
	case znode.ErrBadArguments:
		return fmt.Errorf("%w: its snapshot has more than %d bytes", ErrNoRoom, int64(state.MaxBackup))
	case znode.ErrMarshalling:
		return errors.New("the snapshot did not get into the log as it was sent")
	}
	return errorOf(code)
}

// Applied implements forward.Waiter.
func (u *upload) Applied(r *state.Result) { u.results <- r.Code }

// Lost implements forward.Waiter. The part may have been applied all the same: the next one, or the load, will tell.
func (u *upload) Lost() { u.results <- znode.OK }
