package replica

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"unicode/utf8"

	"github.com/zk-lite/zk-lite/session"
	"github.com/zk-lite/zk-lite/znode"
)

// Export is what an operator has to know before ZooKeeper's servers start from a state.
type Export struct {
	Znodes, Sessions int
	Containers, TTLs int               // a server that does not know them takes them for ephemerals, and deletes them
	Largest          int               // bytes of data of a znode; a server reads no more than its jute.maxbuffer
	LargestPath      string            // of that znode
	Lost             []session.Session // that cannot resume: ZooKeeper's servers accept only session.CompatiblePassword
}

// ErrNotExportable reports a state that ZooKeeper's servers could not read, or would read as another.
var ErrNotExportable = errors.New("ZooKeeper cannot take this state over")

// Export checks that ZooKeeper's servers can start from the state, and describes it.
//
// Errors: ErrNotExportable, with the znode or session.
func (r *Replica) Export() (*Export, error) {
	refuse := func(format string, args ...any) (*Export, error) {
		return nil, fmt.Errorf("%w: %w", ErrNotExportable, fmt.Errorf(format, args...))
	}
	// The high half is the epoch, and the next one must be positive too: servers compare zxids as signed numbers.
	if r.Zxid < 0 || r.Zxid>>32 >= math.MaxInt32 {
		return refuse("the last zxid %v leaves no epoch for the next leader", r.Zxid)
	}
	e := &Export{Sessions: r.Sessions.Len()}
	for _, s := range r.Sessions.Clone() {
		if s.Timeout.Milliseconds() > math.MaxInt32 {
			return refuse("session %v has a timeout of %v; want at most %d ms", s.ID, s.Timeout, math.MaxInt32)
		}
		if !s.Compatible() {
			e.Lost = append(e.Lost, s)
		}
	}
	slices.SortFunc(e.Lost, func(a, b session.Session) int { return cmp.Compare(uint64(a.ID), uint64(b.ID)) })
	snap := r.Tree.Snapshot()
	defer snap.Release()
	e.Znodes = snap.Len()
	err := snap.Walk(func(rec *znode.Record) error {
		if err := r.exportable(rec); err != nil {
			return fmt.Errorf("znode %q: %w", rec.Path, err)
		}
		switch kind, _ := rec.Kind(); kind {
		case znode.KindContainer:
			e.Containers++
		case znode.KindTTL:
			e.TTLs++
		}
		if len(rec.Data) > e.Largest {
			e.Largest, e.LargestPath = len(rec.Data), rec.Path
		}
		return nil
	})
	if err != nil {
		return refuse("%w", err)
	}
	return e, nil
}

// exportable checks what a server would refuse to read, and what it would delete at its start.
func (r *Replica) exportable(rec *znode.Record) error {
	if err := CheckOwner(rec.Stat.EphemeralOwner); err != nil {
		return err
	}
	if kind, _ := rec.Kind(); kind == znode.KindEphemeral && r.Sessions.Get(rec.Stat.EphemeralOwner) == nil {
		return fmt.Errorf("it belongs to session %v, which does not exist", rec.Stat.EphemeralOwner)
	}
	for _, a := range rec.ACL {
		if !utf8.ValidString(a.ID.Scheme) || !utf8.ValidString(a.ID.ID) { // Java would read another text
			return fmt.Errorf("its ACL has an identity that is no UTF-8: %q", a.ID)
		}
	}
	return znode.ValidatePath(rec.Path)
}
