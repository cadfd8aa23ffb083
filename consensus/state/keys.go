package state

import (
	"slices"
	"strings"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/zk-lite/zk-lite/znode"
)

// The bounds of the answers kept for Command.Key. Beyond them the oldest are dropped.
const (
	// KeyLife is how long a key is known, by the clock of the log's entries, in
	// milliseconds: longer than clients retry.
	KeyLife = 10 * 60 * 1000
	// MaxKeys and MaxKeyBytes bound the memory, which is every server's and part
	// of every snapshot.
	MaxKeys     = 20_000
	MaxKeyBytes = 16 << 20
)

// KeyOutcome is the outcome of a command with a Key (after the HTTP header
// Idempotency-Key, draft-ietf-httpapi-idempotency-key-header).
type KeyOutcome uint8

// The outcomes.
const (
	KeyFresh    KeyOutcome = iota // the command was applied, or it had no key
	KeyRepeated                   // an earlier command with the key was applied: this is its result
	KeyMismatch                   // the key belongs to another command; nothing was done
)

// keyTable holds the answers by key, and their order.
type keyTable struct {
	byKey map[string]*answer
	queue []*answer
	bytes int
}

func newKeyTable() keyTable { return keyTable{byKey: map[string]*answer{}} }

func (t *keyTable) clone() []*answer { return slices.Clone(t.queue) }

// answer is the result of a command with a key. It is immutable.
type answer struct {
	key     string
	print   uint64 // of the command; see fingerprint
	time    int64  // of its entry, milliseconds since the epoch
	session znode.SessionID
	result  Result // without Session
	bytes   int
}

// answered looks up the command's key, and fills m.result if it is known.
func (m *Machine) answered(c *Command, timeMillis int64) bool {
	m.keys.prune(timeMillis)
	a := m.keys.byKey[c.Key]
	switch {
	case a == nil:
		return false
	case a.print != fingerprint(c):
		m.result.Code, m.result.Key = znode.ErrBadArguments, KeyMismatch
		return true
	}
	multi := append(m.result.Multi, a.result.Multi...)
	m.result = a.result
	m.result.Multi, m.result.Key = multi, KeyRepeated
	if c.Op == OpCreateSession && a.result.Code == znode.OK {
		if m.result.Session = m.sessions.Get(a.session); m.result.Session == nil {
			m.result.Code = znode.ErrSessionExpired // it has been opened and closed
		}
	}
	return true
}

// fingerprint is the same for the same request. It leaves out the id and password
// of a new session, which the server chooses, and the client's address and trace, which
// may differ when it tries again.
func fingerprint(c *Command) uint64 {
	plain := *c
	plain.Flags &^= FlagKeyed | FlagTraced
	plain.Identities = slices.DeleteFunc(slices.Clone(c.Identities),
		func(id znode.ID) bool { return id.Scheme == "ip" })
	switch c.Op {
	case OpCreateSession:
		plain.Session, plain.Password = 0, [len(c.Password)]byte{}
	case OpRestore:
		// The sum identifies the backup; the server chooses its parts.
		plain.Restore.Upload, plain.Restore.Part = 0, 0
	}
	return xxhash.Sum64(plain.Append(nil))
}

// Answered reports whether the result of a command with this key is known, and will be
// for a while: the command, sent again, now gets that result and changes nothing. It is
// for requests whose preconditions were checked the first time and may no longer hold.
func (m *Machine) Answered(key string) bool {
	a := m.keys.byKey[key]
	return a != nil && m.time-a.time < KeyLife/2
}

// add stores a command's result. It copies the strings, which are part of the entry.
func (t *keyTable) add(c *Command, r *Result, timeMillis int64) {
	a := &answer{
		key: strings.Clone(c.Key), print: fingerprint(c), time: timeMillis,
		session: c.Session, result: *r,
	}
	a.result.Session, a.result.Path = nil, strings.Clone(r.Path)
	a.result.Multi = slices.Clone(r.Multi)
	for i := range a.result.Multi {
		x := &a.result.Multi[i]
		x.Path, x.Read = strings.Clone(x.Path), x.Read.clone()
	}
	t.put(a)
	t.prune(timeMillis)
}

// perResult estimates the memory of a Result or OpResult without its strings.
const perResult = 128

// put adds an answer as the newest. It reports false if the key exists.
func (t *keyTable) put(a *answer) bool {
	if t.byKey[a.key] != nil {
		return false
	}
	a.bytes = perResult*(2+len(a.result.Multi)) + len(a.key) + len(a.result.Path) + a.result.ReadBytes()
	for i := range a.result.Multi {
		a.bytes += len(a.result.Multi[i].Path)
	}
	t.byKey[a.key] = a
	t.queue = append(t.queue, a)
	t.bytes += a.bytes
	return true
}

// prune drops the oldest answers beyond the bounds.
func (t *keyTable) prune(timeMillis int64) {
	n := 0
	for n < len(t.queue) {
		a := t.queue[n]
		if timeMillis-a.time < KeyLife && len(t.queue)-n <= MaxKeys && t.bytes <= MaxKeyBytes {
			break
		}
		delete(t.byKey, a.key)
		t.bytes -= a.bytes
		n++
	}
	switch {
	case n == 0:
	case n == len(t.queue):
		*t = newKeyTable() // an emptied map keeps its size
	default:
		clear(t.queue[:n]) // the slice's front stays allocated until it grows
		t.queue = t.queue[n:]
	}
}

// KeyBytes estimates the memory of the answer to a command with a key.
func KeyBytes(c *Command) int {
	const sequence = 10 // digits
	n := perResult*(2+len(c.Ops)) + len(c.Key) + len(c.Path) + sequence
	reads := 0
	for i := range c.Ops {
		n += len(c.Ops[i].Path) + sequence
		if c.Ops[i].Op.Reads() {
			reads = MaxKeyedReads
		}
	}
	return n + reads
}

// KeysKnownFor returns the shortest time for which a key would have been known that is dropped for this many more
// keys with this many bytes in all. It is KeyLife if none is dropped. nowMillis is the time, or an earlier one.
func (m *Machine) KeysKnownFor(keys, bytes int, nowMillis int64) time.Duration {
	life := KeyLife * time.Millisecond
	keys, bytes = keys+len(m.keys.queue), bytes+m.keys.bytes
	for _, a := range m.keys.queue {
		if keys <= MaxKeys && bytes <= MaxKeyBytes {
			break
		}
		keys, bytes = keys-1, bytes-a.bytes
		life = time.Duration(max(nowMillis, m.time)-a.time) * time.Millisecond
	}
	return min(life, KeyLife*time.Millisecond)
}

// minAnswerBytes is the least size of an answer in a snapshot.
const minAnswerBytes = 6 + 11

func (a *answer) append(b []byte) []byte {
	r := &a.result
	b = appendUint(appendString(b, a.key), a.print)
	b = appendInt(appendInt(b, a.time), int64(a.session))
	b = appendInt(append(b, byte(r.Op)), int64(r.Zxid))
	b = appendInt(b, int64(r.Code))
	b = appendStat(appendString(b, r.Path), &r.Stat)
	b = appendUint(b, uint64(len(r.Multi)))
	for i := range r.Multi {
		o := &r.Multi[i]
		b = appendInt(append(b, byte(o.Op), byte(o.Kind)), int64(o.Code))
		if b = appendStat(appendString(b, o.Path), &o.Stat); o.Op.Reads() {
			b = o.Read.append(b)
		}
	}
	if r.Op == OpBranch {
		b = append(b, flag(r.Then))
	}
	if r.Op == OpRestore {
		for _, n := range r.Restored.Counts() {
			b = appendInt(b, int64(*n))
		}
	}
	return b
}

func readAnswer(r *reader) *answer {
	a := &answer{
		key: strings.Clone(r.string()), print: r.uint(), time: r.int(),
		session: znode.SessionID(r.int()),
	}
	x := &a.result
	x.Op, x.Zxid, x.Code = Op(r.byte()), znode.Zxid(r.int()), znode.Error(r.int())
	x.Path, x.Stat = strings.Clone(r.string()), readStat(r)
	for n := r.count(4 + 11); n > 0; n-- {
		o := OpResult{Op: Op(r.byte()), Kind: znode.CreateKind(r.byte()), Code: znode.Error(r.int())}
		o.Path, o.Stat = strings.Clone(r.string()), readStat(r)
		if o.Op.Reads() {
			o.Read = readRead(r)
		}
		x.Multi = append(x.Multi, o)
	}
	if x.Op == OpBranch {
		x.Then = r.byte() == 1
	}
	if x.Op == OpRestore {
		for _, n := range x.Restored.Counts() {
			*n = int(r.int())
		}
	}
	return a
}
