package fence

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/zk-lite/zk-lite/internal/jute"
	"github.com/zk-lite/zk-lite/migration/replica"
	"github.com/zk-lite/zk-lite/znode"
)

// point is where the plans of these tests were made.
const point = 5<<32 + 100

// txn is a transaction that failed, or a reconfiguration.
func txn(zxid znode.Zxid, op replica.Op) []byte {
	b := jute.AppendInt64(jute.AppendInt32(jute.AppendInt64(nil, 7), 1), int64(zxid))
	b = jute.AppendInt32(jute.AppendInt64(b, 0), int32(op))
	if op == replica.OpReconfig {
		b = jute.AppendBuffer(jute.AppendUstring(b, znode.ConfigPath), []byte("server.9=a:1:2"))
	}
	return jute.AppendInt32(b, 0)
}

// receipt is one of a server that has transactions after the point.
func receipt(server, epoch int64, zxids ...znode.Zxid) *Receipt {
	r := &Receipt{Format: format, Server: server, Epoch: epoch, Zxid: point, End: 1,
		Point: Point{After: point, Digest: 1, Voters: []int64{1, 2, 3}}}
	for _, z := range zxids {
		r.Tail, r.Zxid = append(r.Tail, txn(z, replica.OpError)), Zxid(z)
	}
	r.Seal()
	return r
}

// edited is a receipt with another content, and the right checksum.
func edited(r *Receipt, edit func(*Receipt)) *Receipt {
	edit(r)
	r.Seal()
	return r
}

// TestJudge: the history ends with the log of the highest epoch and, in it, the highest zxid, as ZooKeeper's election
// would have it; receipts that are not of a majority of the voters prove nothing.
func TestJudge(t *testing.T) {
	a, b, c := receipt(1, 5, point+1, point+2), receipt(2, 5, point+1), receipt(3, 6)
	damaged := receipt(1, 5)
	damaged.Zxid++
	old := func(server int64) *Receipt {
		return edited(receipt(server, 5), func(r *Receipt) { r.Voters = nil })
	}
	for _, x := range []struct {
		what     string
		receipts []*Receipt
		voters   int
		known    []int64
		want     int64 // 0: an error
		err      error
		text     string
	}{
		{"the longer of an epoch", []*Receipt{b, a}, 0, nil, 1, nil, ""},
		{"a later epoch, although it is shorter", []*Receipt{a, b, c}, 0, []int64{3, 2, 1}, 3, nil, ""},
		{"none", nil, 3, nil, 0, ErrTooFew, "all servers count as alive"},
		{"one of three", []*Receipt{a}, 0, nil, 0, ErrTooFew, "servers [2 3] count as alive"},
		{"one, twice", []*Receipt{a, a}, 0, nil, 0, ErrTooFew, "1 of 3 voters"},
		{"damaged", []*Receipt{damaged, b}, 0, nil, 0, ErrDamaged, "server 1"},
		{"no voter", []*Receipt{a, receipt(7, 5)}, 0, nil, 0, ErrVoters, "server 7 is none of the voters"},
		{"two plans", []*Receipt{a, edited(receipt(2, 5), func(r *Receipt) { r.Voters = []int64{1, 2} })}, 0, nil, 0,
			ErrVoters,
			"make one plan"},
		{"other voters now", []*Receipt{a, b}, 0, []int64{1, 2, 4}, 0, ErrVoters, "[1 2 4] now"},
		{"reconfigured", []*Receipt{a, edited(receipt(2, 5), func(r *Receipt) {
			r.Tail = [][]byte{txn(point+1, replica.OpReconfig)}
		})}, 0, nil, 0, ErrVoters, "server 2's log"},
		{"3.4", []*Receipt{old(1), old(2)}, 3, nil, 2, nil, ""},
		{"3.4, too few", []*Receipt{old(1), old(2)}, 5, nil, 0, ErrTooFew, "2 of 5 voters, and 3 are needed"},
	} {
		got, err := Judge(x.receipts, x.voters, x.known, false)
		switch {
		case x.want == 0 && (!errors.Is(err, x.err) || !strings.Contains(err.Error(), x.text)):
			t.Errorf("%s: %v, want %v: %q", x.what, err, x.err, x.text)
		case x.want != 0 && (err != nil || got.Server != x.want):
			t.Errorf("%s: %+v, %v; want server %d", x.what, got, err, x.want)
		}
		if x.err == ErrDamaged {
			continue
		}
		if _, err := Judge(x.receipts, x.voters, x.known, true); err != nil {
			t.Errorf("%s, forced: %v, want none", x.what, err)
		}
	}
}

// TestReceipt_Next: what is taken over follows the mirror's last transaction without a gap, or is refused.
func TestReceipt_Next(t *testing.T) {
	for _, x := range []struct {
		what   string
		r      *Receipt
		zxid   znode.Zxid // of the mirror
		digest uint64
		first  znode.Zxid // of what is taken over; 0: nothing
		n      int
		text   string // of the error
	}{
		{"nothing", receipt(1, 5), point, 1, 0, 0, ""},
		{"all of the tail", receipt(1, 5, point+1, point+2), point, 1, point + 1, 2, ""},
		{"a part of the tail", receipt(1, 5, point+1, point+2, 6<<32+1), point + 2, 1, 6<<32 + 1, 1, ""},
		{"nothing of the tail", receipt(1, 5, point+1), point + 1, 1, 0, 0, ""},
		{"other znodes", receipt(1, 5, point+1), point + 1, 2, 0, 0, "have the digest 0000000000000001"},
		{"a gap", receipt(1, 5, point+1, point+3), point, 1, 0, 0, "transaction 0x500000067 follows 0x500000065"},
		{"a gap at the start", receipt(1, 5, point+2), point, 1, 0, 0, "follows 0x500000064"},
		{"the mirror is ahead", receipt(1, 5, point+1), point + 2, 1, 0, 0, "ends with transaction 0x500000065"},
		{"the mirror has what the epoch has lost", receipt(1, 6, point+1, 6<<32+1), point + 2, 1, 0, 0, "goes from"},
		{"the mirror is older than the plan", receipt(1, 5), point - 1, 1, 0, 0, "make a new plan"},
		{"an epoch that begins", edited(receipt(1, 5), func(r *Receipt) { r.Zxid = point - 1 }), 6 << 32, 1, 0, 0, ""},
	} {
		got, err := x.r.Next(x.zxid, x.digest, false)
		if x.text != "" {
			if !errors.Is(err, ErrDiffers) || !strings.Contains(err.Error(), x.text) {
				t.Errorf("%s: %v, want %q", x.what, err, x.text)
			}
			if got, err := x.r.Next(x.zxid, x.digest, true); len(got) > 0 || err != nil {
				t.Errorf("%s, forced: %d transactions, %v; want none", x.what, len(got), err)
			}
			continue
		}
		if err != nil || len(got) != x.n {
			t.Errorf("%s: %d transactions, %v; want %d", x.what, len(got), err, x.n)
			continue
		}
		if x.n > 0 {
			if first, _ := replica.ParseTxn(got[0]); first.Zxid != x.first {
				t.Errorf("%s: begins with %v, want %v", x.what, first.Zxid, x.first)
			}
		}
	}
}

// FuzzReceipt: no text makes Judge or Next fail in another way than by an error, also if its checksum is right, and
// what follows the mirror does so without a gap.
func FuzzReceipt(f *testing.F) {
	for _, r := range []*Receipt{receipt(1, 5), receipt(2, 6, point+1, point+2), receipt(3, 5, point+2)} {
		b, err := json.Marshal(r)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add([]byte(`{"format":1,"zxid":"0xffffffffffffffff"}`))
	f.Add([]byte(`{"format":1,"after":"0x1","digest":"xyz","tail":["AA=="]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		r := new(Receipt)
		if json.Unmarshal(text, r) != nil {
			return
		}
		r.Format = format
		r.Seal()
		if _, err := Judge([]*Receipt{r, receipt(2, 5)}, 3, nil, false); errors.Is(err, ErrDamaged) {
			t.Fatalf("a receipt with the right checksum: %v, want no damage", err)
		}
		next, err := r.Next(point, 1, false)
		last := znode.Zxid(point)
		for _, raw := range next {
			txn, parseErr := replica.ParseTxn(raw)
			if err != nil || parseErr != nil || !isNext(last, txn.Zxid) {
				t.Fatalf("after %v comes %+v (%v, %v), want the next one", last, txn, err, parseErr)
			}
			last = txn.Zxid
		}
	})
}
