package fence

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/zk-lite/zk-lite/migration/replica"
	"github.com/zk-lite/zk-lite/znode"
)

// The errors of Judge and Next, besides ErrDamaged. Force can pass over those of this list.
var (
	// ErrTooFew reports that voters which are not fenced may be enough to acknowledge writes, or may have
	// acknowledged writes that no receipt has.
	ErrTooFew = errors.New("too few servers are fenced")
	// ErrVoters reports receipts that are not of one plan, or not of the ensemble's present voters.
	ErrVoters = errors.New("the receipts do not fit the ensemble's voters")
	// ErrDiffers reports a server whose history is not the mirror's.
	ErrDiffers = errors.New("the fenced servers' history is not the mirror's")
)

// Judge returns the receipt of the server whose log ends the ensemble's history: every write that was acknowledged is
// in the logs of a majority, so in at least one of any majority, and the log of the highest epoch, and in it the
// highest zxid, has all of them. That is the server that ZooKeeper's election would make the leader.
//
// voters is how many the ensemble has, if the receipts do not say it (ZooKeeper 3.4); known are the ids of the present
// voters, if they are known. With force, receipts of a minority, of several plans or of other voters will do, and none
// at all: then nil is returned.
//
// Errors: ErrDamaged, ErrTooFew, ErrVoters.
func Judge(receipts []*Receipt, voters int, known []int64, force bool) (*Receipt, error) {
	fenced := map[int64]bool{}
	for _, r := range receipts {
		if err := r.Check(); err != nil {
			return nil, err
		}
		fenced[r.Server] = true
	}
	if !force {
		if err := admit(receipts, voters, known, fenced); err != nil {
			return nil, err
		}
	}
	if len(receipts) == 0 {
		return nil, nil
	}
	return slices.MaxFunc(receipts, func(a, b *Receipt) int {
		return cmp.Or(cmp.Compare(a.Epoch, b.Epoch), cmp.Compare(a.Zxid, b.Zxid), cmp.Compare(a.Server, b.Server))
	}), nil
}

// admit refuses receipts that prove nothing.
func admit(receipts []*Receipt, voters int, known []int64, fenced map[int64]bool) error {
	if len(receipts) == 0 {
		return fmt.Errorf("%w: there is no receipt, and all servers count as alive", ErrTooFew)
	}
	ids := slices.Sorted(slices.Values(receipts[0].Voters))
	for _, r := range receipts {
		switch other := slices.Sorted(slices.Values(r.Voters)); {
		case !slices.Equal(other, ids):
			return fmt.Errorf("%w: the plan of server %d's receipt has the voters %v, and that of server %d's has "+
				"%v; make one plan, and fence with its command on each host again", ErrVoters, receipts[0].Server, ids,
				r.Server, other)
		case len(ids) > 0 && !slices.Contains(ids, r.Server):
			return fmt.Errorf("%w: server %d is none of the voters %v; leave its receipt out", ErrVoters, r.Server, ids)
		case changesVoters(r.Tail):
			return fmt.Errorf("%w: they were changed after the plan, as server %d's log has it; make a new plan, "+
				"and fence with its command on each host again", ErrVoters, r.Server)
		}
	}
	if known = slices.Sorted(slices.Values(known)); len(known) > 0 && len(ids) > 0 && !slices.Equal(known, ids) {
		return fmt.Errorf("%w: they are %v now, and were %v when the plan was made; make a new plan, and fence with "+
			"its command on each host again", ErrVoters, known, ids)
	}
	if len(ids) > 0 {
		voters = len(ids)
	}
	if need := voters/2 + 1; len(fenced) < need {
		alive := "the others"
		if len(ids) > 0 {
			alive = fmt.Sprint("servers ", slices.DeleteFunc(ids, func(id int64) bool { return fenced[id] }))
		}
		return fmt.Errorf("%w: %d of %d voters, and %d are needed; %s count as alive until there are receipts of "+
			"them, and could acknowledge writes", ErrTooFew, len(fenced), voters, need, alive)
	}
	return nil
}

// changesVoters reports whether there is a reconfiguration among transactions.
func changesVoters(tail [][]byte) bool {
	return slices.ContainsFunc(tail, func(raw []byte) bool {
		t, err := replica.ParseTxn(raw)
		return err == nil && t.Op == replica.OpReconfig
	})
}

// Next returns the transactions of the receipt that follow the mirror's state, which is that after a transaction and
// has a digest. With force a history that is not the mirror's is left out, and nothing follows.
//
// Errors: ErrDiffers; ErrDamaged if a transaction cannot be parsed.
func (r *Receipt) Next(zxid znode.Zxid, digest uint64, force bool) ([][]byte, error) {
	next, err := r.next(zxid, digest)
	if force && errors.Is(err, ErrDiffers) {
		return nil, nil
	}
	return next, err
}

func (r *Receipt) next(zxid znode.Zxid, digest uint64) ([][]byte, error) {
	if znode.Zxid(r.After) > zxid {
		return nil, fmt.Errorf("%w: the plan was made at zxid %v, and the mirror is at %v; make a new plan", ErrDiffers,
			znode.Zxid(r.After), zxid)
	}
	last := znode.Zxid(r.After)
	met, from := last == zxid, len(r.Tail)
	for i, raw := range r.Tail {
		t, err := replica.ParseTxn(raw)
		switch {
		case err != nil:
			return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
		case !isNext(last, t.Zxid):
			return nil, fmt.Errorf("%w: in server %d's log transaction %v follows %v", ErrDiffers, r.Server,
				t.Zxid, last)
		case t.Zxid > zxid && !met:
			return nil, fmt.Errorf("%w: server %d's log goes from transaction %v to %v, and the mirror has %v: "+
				"ZooKeeper has lost what it had committed", ErrDiffers, r.Server, last, t.Zxid, zxid)
		case t.Zxid > zxid:
			from = min(from, i)
		}
		last, met = t.Zxid, met || t.Zxid == zxid
	}
	switch {
	case from < len(r.Tail):
		return r.Tail[from:], nil
	case znode.Zxid(r.Zxid) < zxid && zxid&counterBits != 0:
		return nil, fmt.Errorf("%w: the log of server %d, which is the newest, ends with transaction %v, and the "+
			"mirror has %v: ZooKeeper has lost what it had committed, or its newest server is not among the receipts",
			ErrDiffers, r.Server, znode.Zxid(r.Zxid), zxid)
	case uint64(r.End) != digest:
		return nil, fmt.Errorf("%w: at zxid %v the znodes of server %d have the digest %v, and the mirror's have %v",
			ErrDiffers, zxid, r.Server, r.End, Digest(digest))
	}
	return nil, nil
}

// counterBits are those of a zxid that count transactions of an epoch. A leader without any has 0.
const counterBits = 1<<32 - 1

// isNext reports whether a transaction follows another without a gap: counted on, or the first of a leader.
func isNext(last, next znode.Zxid) bool {
	return next == last+1 || next>>32 > last>>32 && next&counterBits == 1
}
