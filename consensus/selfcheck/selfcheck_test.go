package selfcheck

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/zk-lite/zk-lite/consensus/state"
)

// history applies the entries from first to last whose index has no 7 at its end (Raft has entries of its own) to a
// record; those from fork on are others than without.
func history(r *Record, first, last, fork uint64) *Record {
	m := state.New()
	for i := uint64(1); i <= last; i++ {
		if i%10 == 7 {
			continue
		}
		term := uint64(1)
		if i >= fork {
			term = 2
		}
		p := m.Chain(i, term, []byte{byte(i)})
		p.Index = i
		if i >= first && !r.Add(p, false) {
			panic(fmt.Sprint(i))
		}
	}
	return r
}

const never = 1 << 62

func TestRecord_At_RecentAndOlder(t *testing.T) {
	for _, last := range []uint64{1, 900, 5000, 2_000_000} {
		r := history(&Record{}, 1, last, never)
		for _, x := range []struct {
			at, want uint64
		}{{last + 1, 0}, {last, last}, {last - last%10, last - last%10}, {17, map[bool]uint64{true: 16}[last == 900]}} {
			if p, ok := r.At(x.at); p.Index != x.want || ok != (x.want > 0) {
				t.Errorf("of %d entries, at %d: %+v %v, want %d", last, x.at, p, ok, x.want)
			}
		}
		if last == 5000 {
			for _, at := range []uint64{1023, 2046, 3071} { // before multiples of 1,024; 2047 is Raft's own
				if p, ok := r.At(at); !ok || p.Index != at {
					t.Errorf("at %d: %+v, %v", at, p, ok)
				}
			}
		}
		if b := r.Save(); len(b) > 64<<10+100 || r.Save() != nil {
			t.Errorf("%d bytes, or saved twice", len(b))
		}
	}
}

func TestRecord_Add_AgainAndAcrossAGap(t *testing.T) {
	r := history(&Record{}, 1, 3000, never)
	history(r, 1, 3005, never) // replayed
	p := r.Newest()
	if p.History++; r.Add(p, false) {
		t.Error("another history at the same index is taken")
	}
	p.Index = 9000
	if !r.Add(p, true) {
		t.Error("a snapshot is not taken")
	}
	if x, ok := r.At(8000); ok {
		t.Errorf("%+v was not seen", x)
	}
	if x, ok := r.At(3005); !ok || x.Index != 3005 {
		t.Errorf("%+v %v: what was seen last before the gap is forgotten", x, ok)
	}
}

func TestRecord_SaveAndLoad(t *testing.T) {
	r := history(&Record{}, 1, 12_345, never)
	r.SetVoters([]state.ServerID{1, 5, 7})
	b := r.Save()
	again, err := Load(b)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(again.Voters(), r.Voters()) {
		t.Errorf("voters %v", again.Voters())
	}
	if again.Save() != nil {
		t.Error("there is something to save")
	}
	for _, at := range []uint64{12_345, 12_000, 1023, 5} {
		have, ok := again.At(at)
		if want, known := r.At(at); have != want || ok != known {
			t.Errorf("at %d: %+v, want %+v", at, have, want)
		}
	}
	history(again, 1, 20_000, never)
	for i := range b {
		if _, err := Load(b[:i]); err == nil {
			t.Fatalf("%d bytes of %d are taken", i, len(b))
		}
	}
	b[100]++
	if _, err := Load(b); err == nil {
		t.Error("a changed byte is not noticed")
	}
}

func FuzzLoad(f *testing.F) {
	f.Add(history(&Record{}, 1, 3000, never).Save())
	f.Add([]byte(fileMagic))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := Load(b)
		if err != nil {
			return
		}
		r.saved = r.next + 1
		if !bytes.Equal(r.Save(), b) {
			t.Error("it is saved otherwise")
		}
	})
}

func TestRecord_Compare(t *testing.T) {
	mine := history(&Record{}, 1, 3000, never)
	for _, x := range []struct {
		name       string
		other      *Record
		last       uint64
		want       Relation
		same, from uint64
	}{
		{"equal", history(&Record{}, 1, 3000, never), 3000, Same, 0, 0},
		{"ahead", history(&Record{}, 1, 3500, never), 3500, Same, 0, 0},
		{"has applied less", history(&Record{}, 1, 2900, never), 3000, Same, 0, 0},
		{"log ends before", history(&Record{}, 1, 2900, never), 2950, Behind, 0, 0},
		{"nothing applied, log is whole", &Record{}, 3000, Unknown, 0, 0},
		{"nothing applied, no log", &Record{}, 0, Behind, 0, 0},
		{"forked lately", history(&Record{}, 1, 3000, 2995), 3000, Differs, 2994, 2995},
		{"forked long ago, ahead", history(&Record{}, 1, 4000, 2500), 4000, Differs, 1023 * 2, 2500},
		{"forked, behind", history(&Record{}, 1, 2800, 2701), 2800, Differs, 2700, 2701},
	} {
		own := mine.Newest()
		ask := func(at []uint64) *Answer {
			a := x.other.Answer(at)
			a.Last = x.last
			return a
		}
		rel, p, q := mine.Compare(own, ask([]uint64{own.Index}))
		if rel != x.want {
			t.Errorf("%s: %v, want %v (%+v, %+v)", x.name, rel, x.want, p, q)
		}
		if rel != Differs {
			continue
		}
		same, differs := mine.FirstDifference(p, ask)
		if same.Index > x.same || differs.Index < x.from || x.from > 2500 && (same.Index != x.same || differs.Index != x.from) {
			t.Errorf("%s: the same up to %d, and not from %d on; want %d and %d",
				x.name, same.Index, differs.Index, x.same, x.from)
		}
	}
	if rel, _, _ := (&Record{}).Compare(state.Point{}, mine.Answer(nil)); rel != Unknown {
		t.Errorf("who has applied nothing: %v", rel)
	}
}

func TestCompareDigests(t *testing.T) {
	digest := func(index, history, state uint64) Digest { return Digest{point(index, history), state} }
	of := func(d ...Digest) *Answer { return &Answer{Digests: d} }
	good, better := digest(10, 1, 1), digest(20, 2, 2)
	halted := of(digest(20, 9, 9))
	halted.Halted = "diverged"
	for _, x := range []struct {
		name     string
		own      []Digest
		others   []*Answer // of servers 2, 3, ...
		voters   int
		index    uint64
		majority bool // there is one
		self     bool // and this server differs from it
		differ   []state.ServerID
	}{
		{"all equal", []Digest{good, better}, []*Answer{of(good, better), of(better)}, 3, 20, true, false, nil},
		{"one is slow", []Digest{good, better}, []*Answer{of(good), of(good)}, 3, 10, true, false, nil},
		{"the newest counts", []Digest{good, better}, []*Answer{of(digest(10, 1, 9), better), nil}, 3, 20, true, false, nil},
		{"another differs", []Digest{good}, []*Answer{of(good), of(digest(10, 1, 2))}, 3, 10, true, false, []state.ServerID{3}},
		{"this one differs", []Digest{digest(10, 1, 7)}, []*Answer{of(good), of(good)}, 3, 10, true, true, []state.ServerID{2, 3}},
		{"its history differs", []Digest{digest(10, 7, 1)}, []*Answer{of(good), of(good)}, 3, 10, true, true, []state.ServerID{2, 3}},
		{"all differ", []Digest{good}, []*Answer{of(digest(10, 1, 2)), of(digest(10, 1, 3))}, 3, 10, false, false, []state.ServerID{2, 3}},
		{"two of three differ from each other", []Digest{good}, []*Answer{of(digest(10, 1, 2)), nil}, 3, 10, false, false, []state.ServerID{2}},
		{"two of five have answered", []Digest{good}, []*Answer{of(digest(10, 1, 2)), nil, nil, nil}, 5, 0, false, false, nil},
		{"who is halted does not count", []Digest{better}, []*Answer{of(better), halted}, 3, 20, true, false, nil},
		{"an observer differs", []Digest{digest(10, 1, 7)}, []*Answer{of(good), of(good)}, -3, 10, true, true, []state.ServerID{2, 3}},
	} {
		voters, others := map[state.ServerID]bool{}, map[state.ServerID]*Answer{}
		for i := range max(x.voters, -x.voters) {
			voters[state.ServerID(i+1)] = true
		}
		if x.voters < 0 {
			delete(voters, 1)
		}
		for i, a := range x.others {
			others[state.ServerID(i+2)] = a
		}
		v := CompareDigests(1, x.own, others, voters)
		slices.Sort(v.Differ)
		differs := v.Majority != nil && (v.Majority.History != v.Own.History || v.Majority.State != v.Own.State)
		if v.Own.Index != x.index || v.Majority != nil != x.majority || differs != x.self || !slices.Equal(v.Differ, x.differ) {
			t.Errorf("%s: verdict %+v; want index %d, a majority: %t, differing: %t, servers %v",
				x.name, v, x.index, x.majority, x.self, x.differ)
		}
	}
}

func point(index, history uint64) state.Point { return state.Point{Index: index, History: history} }

// At returns a point that was added, at its index or before, whatever was added.
func TestRecord_Random(t *testing.T) {
	const seed = 1
	rng := rand.New(rand.NewPCG(seed, 0))
	for range 50 {
		r, all, index := &Record{}, map[uint64]state.Point{}, uint64(0)
		for range 3000 {
			gap := rng.IntN(500) == 0
			if index += 1 + uint64(rng.IntN(3)); gap {
				index += uint64(rng.IntN(5000))
			}
			all[index] = point(index, rng.Uint64())
			r.Add(all[index], gap)
		}
		for range 1000 {
			at := rng.Uint64N(index + 2)
			if p, ok := r.At(at); ok && (p != all[p.Index] || p.Index > at) {
				t.Fatalf("seed %d: at %d: %+v", seed, at, p)
			}
		}
	}
}
