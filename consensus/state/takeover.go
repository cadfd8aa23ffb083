package state

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/zk-lite/zk-lite/znode"
)

// Takeover records that a mirror has ended by a take-over: its source cannot carry out anything more. The machine keeps
// it until another mirror is begun.
type Takeover struct {
	Source string     // that was mirrored; empty: there was no take-over
	Time   int64      // of the end, by the clock of the log's entries, milliseconds since the epoch
	Server int64      // of the source, whose log ended its history; 0: none was read
	Last   znode.Zxid // the last transaction in that log
	Digest uint64     // ZooKeeper's, of the znodes after it
	Tail   uint64     // transactions that only that log had
	Forced bool
}

// String says how it was done.
func (t *Takeover) String() string {
	text := fmt.Sprintf("taken over from %s, without a log", t.Source)
	if t.Last != 0 {
		text = fmt.Sprintf("taken over from %s, up to zxid %v of server %d, whose log alone had %d of the transactions",
			t.Source, t.Last, t.Server, t.Tail)
	}
	if t.Forced {
		text += ", by force"
	}
	return text
}

// Append encodes t, as the Data of a MirrorStop. The machine sets Source and Time.
func (t *Takeover) Append(b []byte) []byte {
	b = appendInt(appendString(append(b, takeoverSection, flag(t.Forced)), t.Source), t.Time)
	b = appendInt(appendInt(b, t.Server), int64(t.Last))
	return appendUint(appendUint(b, t.Digest), t.Tail)
}

// readTakeover decodes what follows the version.
func readTakeover(r *reader) Takeover {
	return Takeover{
		Forced: r.byte() == 1, Source: strings.Clone(r.string()), Time: r.int(), Server: r.int(),
		Last: znode.Zxid(r.int()), Digest: r.uint(), Tail: r.uint(),
	}
}

// ParseTakeover decodes the Data of a MirrorStop; without any the mirror has ended without a take-over.
func ParseTakeover(data []byte) (t Takeover, err error) {
	if len(data) == 0 {
		return t, nil
	}
	r := reader{b: data}
	if v := r.byte(); v != takeoverSection {
		return t, fmt.Errorf("the record of a take-over has version %d; this build reads version %d", v,
			takeoverSection)
	}
	t = readTakeover(&r)
	if r.err == nil && r.off != len(data) {
		r.fail(errors.New("the record of a take-over goes on after its end"))
	}
	return t, r.err
}

// stopMirror ends the mirror in a transaction, which deletes the ephemerals of sessions that do not exist, as
// ZooKeeper's servers do when they start. From then on zxids are drawn again, above all of the source's.
func (m *Machine) stopMirror(c *Command, term uint64, timeMillis int64, obs Observer) znode.Error {
	record, err := ParseTakeover(c.Data)
	if err != nil {
		return znode.ErrMarshalling
	}
	if len(c.Data) > 0 {
		record.Source, record.Time = m.mirror.Source, timeMillis
	}
	m.loseRelays(obs)
	m.mirror, m.upload, m.takeover = nil, nil, record
	m.begin(term, timeMillis)
	var gone []znode.SessionID
	m.tree.EphemeralOwners(func(id znode.SessionID, _ int) {
		if m.sessions.Get(id) == nil {
			gone = append(gone, id)
		}
	})
	slices.Sort(gone)
	for _, id := range gone {
		m.tree.DeleteOwned(&m.txn, id)
	}
	m.reportEvents(obs)
	return znode.OK
}
