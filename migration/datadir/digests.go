package datadir

import (
	"fmt"

	"github.com/zk-lite/zk-lite/migration/replica"
	"github.com/zk-lite/zk-lite/znode"
)

// checker compares the state with the digests of the origin, and tells while the state is fuzzy.
//
// A snapshot named Z is written while transactions after Z are applied, so it may hold changes of any of them. Only
// when it is complete its server adds the digest and the zxid D of the last transaction applied
// (DataTree.serializeZxidDigest): the state is fuzzy until D. A change of D+1 may be in the snapshot all the same, as a
// server changes its tree before it notes the digest; the transaction D+1 repeats it. So the state is fuzzy until, at D
// or after it, a digest fits. Without D (3.4, 3.5, or digests off) nothing but a digest that fits can end it. D before
// Z is of an earlier epoch, whose last transaction it was; then nothing was applied meanwhile, and D counts as Z.
//
// From there on each digest must fit, but for those that the origin's leader spoilt: it knows the root by two names, so
// a write of "/" that overlaps with a child of the root makes the digests wrong that it computes until its queue is
// empty once.
type checker struct {
	report   *DigestReport
	snapshot *Digest    // nil: not known
	from     znode.Zxid // no earlier digest counts
	fuzzy    bool
	since    znode.Zxid // of the first digest that differs, if none has fitted since; else 0
	differ   int        // digests that differ since then
	excused  int        // transactions left whose digests may be spoilt
}

// spoilt is for how many transactions after a write of "/" digests may differ: clients have at most 1,000 requests in a
// leader's queue, unless zookeeper.globalOutstandingLimit is larger.
const spoilt = 10_000

// newChecker returns a checker for the state in a snapshot of zxid z, and notes whether its own digest fits.
func newChecker(r *replica.Replica, z znode.Zxid, d *Digest, report *DigestReport) *checker {
	c := &checker{report: report, fuzzy: true, from: z}
	if root, _ := r.Tree.Exists(znode.RootPath, nil); root.Mzxid > 0 && z-root.Mzxid < spoilt {
		c.excused = spoilt
	}
	if d != nil && d.Zxid >= z {
		c.snapshot, c.from = d, d.Zxid
	} else if d != nil {
		c.snapshot = &Digest{Zxid: z}
	}
	if d != nil && d.Zxid == z {
		c.note(z, r.DigestIs(d.Value))
	}
	return c
}

// after compares the state after a transaction with the transaction's digest. Errors: it differs, and must not.
func (c *checker) after(r *replica.Replica, t *replica.Txn) error {
	if writesRoot(&t.Change) {
		c.excused = spoilt
	} else if c.excused > 0 {
		c.excused--
	}
	switch d := c.snapshot; {
	case d != nil && t.Zxid == d.Zxid:
		c.note(t.Zxid, r.DigestIs(d.Value))
		return nil
	case !t.HasDigest || t.Zxid < c.from:
		c.report.None++
		return nil
	}
	c.note(t.Zxid, r.Fits(t))
	if c.since == 0 || c.excused > 0 || c.fuzzy && c.snapshot == nil {
		return nil
	}
	return c.differs(t.Zxid)
}

func (c *checker) note(zxid znode.Zxid, fits bool) {
	switch {
	case fits:
		c.report.Equal++
		c.report.Spoilt += c.differ
		c.fuzzy, c.since, c.differ = false, 0, 0
	default:
		if c.differ++; c.since == 0 {
			c.since = zxid
		}
	}
}

// end checks the state after the last transaction. Errors: it is not known to be that of the origin.
func (c *checker) end(r *replica.Replica, p *Report) error {
	switch d := c.snapshot; {
	case d != nil && r.Zxid < d.Zxid && !r.DigestIs(d.Value):
		return fmt.Errorf("the logs end with transaction %v, and the snapshot may hold a part of those up to %v: logs "+
			"are missing; is their directory (dataLogDir in zoo.cfg) another one?", r.Zxid, d.Zxid)
	case d != nil && r.Zxid < d.Zxid:
		p.remark("the logs end with transaction %v, and the snapshot holds the znodes up to %v, as its digest proves; "+
			"sessions and ACLs that these transactions changed may be those from before", r.Zxid, d.Zxid)
		c.report.Equal++
		r.Zxid = d.Zxid
	case c.since == 0:
	case c.excused > 0 && !c.fuzzy:
		p.remark("the digests of the last transactions, since %v, differ: a write of \"/\" spoils those of the origin "+
			"for a while, so these transactions are not proved", c.since)
		c.report.Spoilt += c.differ
	default:
		return c.differs(r.Zxid)
	}
	return nil
}

func (c *checker) differs(now znode.Zxid) error {
	return fmt.Errorf("the znodes differ from the origin's: no digest fits since transaction %v, up to %v. This "+
		"server's files are damaged, or its znodes were not the leader's: take the directory of another server, and "+
		"compare their digests with the command hash", c.since, now)
}

// writesRoot reports whether a change names the root.
func writesRoot(c *replica.Change) bool {
	for i := range c.Multi {
		if writesRoot(&c.Multi[i]) {
			return true
		}
	}
	return c.Path == znode.RootPath && (c.Op == replica.OpSetData || c.Op == replica.OpSetACL)
}
