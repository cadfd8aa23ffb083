package state

import (
	"strings"

	"github.com/zk-lite/zk-lite/znode"
)

// answer is the result of a command with a key. It is immutable.
type answer struct {
	key     string
	print   uint64 // of the command; see fingerprint
	time    int64  // of its entry, milliseconds since the epoch
	session znode.SessionID
	result  Result // without Session
	bytes   int
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
		b = appendStat(appendString(b, o.Path), &o.Stat)
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
		x.Multi = append(x.Multi, o)
	}
	if x.Op == OpRestore {
		for _, n := range x.Restored.Counts() {
			*n = int(r.int())
		}
	}
	return a
}
