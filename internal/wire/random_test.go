package wire

import (
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/zk-lite/zk-lite/internal/jute"
	"github.com/zk-lite/zk-lite/internal/testkit/seed"
	"github.com/zk-lite/zk-lite/znode"
)

const randomRounds = 200

// allOpCodes are the numbers worth trying, known or not.
func allOpCodes() []OpCode {
	ops := []OpCode{OpCreateSession, OpCloseSession, OpError, 500, OpFeed, OpBranch, OpTree, OpRevisions, OpSyncWithin}
	for op := OpCode(0); op <= 110; op++ {
		ops = append(ops, op)
	}
	return ops
}

// allRecords returns one empty record of every type.
func allRecords() []Record {
	records := []Record{
		&ConnectRequest{}, &ConnectResponse{}, &RequestHeader{}, &ReplyHeader{},
		&MultiHeader{}, &WatcherEvent{},
	}
	seen := map[string]bool{}
	add := func(name string, rec Record) {
		if !seen[name] {
			seen[name] = true
			records = append(records, rec)
		}
	}
	for _, op := range allOpCodes() {
		if req := NewRequest(op); req != nil {
			name := reflect.TypeOf(req).String()
			if op == OpMultiRead {
				name += " for reads"
			}
			add(name, req)
		}
		if resp := NewResponse(op); resp != nil {
			add(reflect.TypeOf(resp).String(), resp)
		}
	}
	return records
}

// randomize fills rec with random values that its encoding can tell apart.
func randomize(rng *rand.Rand, rec Record) {
	switch rec := rec.(type) {
	case *MultiRequest:
		rec.Ops = randomOps(rng, rec.Read)
	case *MultiResponse:
		rec.Results = randomResults(rng)
	case *BranchRequest:
		*rec = BranchRequest{Then: append(randomOps(rng, true), randomOps(rng, false)...), Else: randomOps(rng, false)}
		for range rng.IntN(4) {
			c := znode.Condition{Of: znode.Attribute(1 + rng.IntN(7)), Is: znode.Relation(1 + rng.IntN(4)), Number: rng.Int64()}
			randomizeValue(rng, reflect.ValueOf(&c.Path).Elem())
			randomizeValue(rng, reflect.ValueOf(&c.Data).Elem())
			rec.If = append(rec.If, c)
		}
	case *BranchResponse:
		rec.Then, rec.Results = rng.IntN(2) == 0, randomResults(rng)
	default:
		randomizeValue(rng, reflect.ValueOf(rec).Elem())
	}
	switch rec := rec.(type) {
	case *ConnectRequest:
		rec.ReadOnly = rec.ReadOnly && rec.HasReadOnly
	case *ConnectResponse:
		rec.ReadOnly = rec.ReadOnly && rec.HasReadOnly
	}
}

func randomOps(rng *rand.Rand, read bool) []MultiOp {
	var ops []MultiOp
	for _, op := range allOpCodes() {
		for (read && op.InMultiRead() || !read && op.InMulti()) && rng.IntN(2) == 0 {
			req := NewRequest(op)
			randomize(rng, req)
			switch req := req.(type) {
			case *CreateRequest:
				req.Mode = znode.Mode(rng.IntN(5)) // none that needs a TTL
			case *GetDataRequest:
				req.Watch = false
			case *GetChildrenRequest:
				req.Watch = false
			}
			ops = append(ops, MultiOp{op, req})
		}
	}
	return ops
}

func randomResults(rng *rand.Rand) []MultiResult {
	var results []MultiResult
	for range rng.IntN(8) {
		op := []OpCode{OpCreate, OpCreate2, OpSetData, OpGetData, OpGetChildren,
			OpDelete, OpCheck, OpError}[rng.IntN(8)]
		result := MultiResult{Type: op}
		switch op {
		case OpError:
			result.Err = znode.Error(rng.Int32())
		case OpDelete, OpCheck:
		default:
			result.Response = NewResponse(op)
			randomize(rng, result.Response)
		}
		results = append(results, result)
	}
	return results
}

// randomizeValue fills v. A slice of strings or of ClientInfo is never empty
// but not nil: that difference does not travel.
func randomizeValue(rng *rand.Rand, v reflect.Value) {
	switch v.Kind() {
	case reflect.Int32, reflect.Int64:
		v.SetInt(int64(rng.Uint64()) >> (64 - v.Type().Bits()) >> rng.IntN(v.Type().Bits()))
	case reflect.Bool:
		v.SetBool(rng.IntN(2) == 0)
	case reflect.Uint8:
		v.SetUint(rng.Uint64() & 0xff)
	case reflect.String:
		v.SetString(randomString(rng))
	case reflect.Pointer:
		if rng.IntN(3) > 0 {
			v.Set(reflect.New(v.Type().Elem()))
			randomizeValue(rng, v.Elem())
		}
	case reflect.Slice:
		elem := v.Type().Elem()
		n := rng.IntN(5) - 1
		nullable := elem.Kind() == reflect.Uint8 || elem == reflect.TypeFor[znode.ACL]()
		if n < 0 || n == 0 && !nullable {
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		for i := range n {
			randomizeValue(rng, v.Index(i))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			randomizeValue(rng, v.Field(i))
		}
	default:
		panic("no random value for a " + v.Type().String())
	}
}

func randomString(rng *rand.Rand) string {
	known := []string{"", "/", "/a/b", "world", "digest", "auth", "ip", "sasl", "x509",
		"é…\U0001f600"}
	if i := rng.IntN(len(known) + 5); i < len(known) {
		return known[i]
	}
	b := make([]byte, rng.IntN(20))
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	return string(b)
}

func TestRecord_Decode_RoundTripsRandomValues(t *testing.T) {
	rng := seed.Rand(t)
	for _, rec := range allRecords() {
		for range randomRounds {
			randomize(rng, rec)
			encoded := rec.Append(nil)
			got := blank(rec)
			r := jute.NewReader(encoded)
			got.Decode(r)
			if r.Err() != nil || r.Remaining() != 0 {
				t.Fatalf("%T %+v: error %v, %d bytes left", rec, rec, r.Err(), r.Remaining())
			}
			if !reflect.DeepEqual(got, rec) {
				t.Fatalf("%T:\n got %+v\nwant %+v", rec, got, rec)
			}
		}
	}
}

// A Decode into a record that has been used before leaves no trace of it.
func TestRecord_Decode_OverwritesEveryField(t *testing.T) {
	rng := seed.Rand(t)
	for _, rec := range allRecords() {
		for range randomRounds {
			used := blank(rec)
			randomize(rng, used)
			randomize(rng, rec)
			used.Decode(jute.NewReader(rec.Append(nil)))
			if !reflect.DeepEqual(used, rec) {
				t.Fatalf("%T:\n got %+v\nwant %+v", rec, used, rec)
			}
		}
	}
}

func TestRecord_Decode_ErrorOnTruncationAtEveryLength(t *testing.T) {
	rng := seed.Rand(t)
	for _, rec := range allRecords() {
		for range randomRounds / 4 {
			randomize(rng, rec)
			encoded := rec.Append(nil)
			for n := range encoded {
				r := jute.NewReader(encoded[:n:n])
				blank(rec).Decode(r)
				if r.Err() == nil && !isWithoutReadOnly(rec, n) {
					t.Fatalf("%T %+v: no error for %d of %d bytes", rec, rec, n, len(encoded))
				}
			}
		}
	}
}

// isWithoutReadOnly reports whether the first n bytes of rec are all but its
// optional last one.
func isWithoutReadOnly(rec Record, n int) bool {
	switch rec := rec.(type) {
	case *ConnectRequest:
		return rec.HasReadOnly && n == 28+len(rec.Password)
	case *ConnectResponse:
		return rec.HasReadOnly && n == 20+len(rec.Password)
	}
	return false
}

func TestRecord_Decode_IgnoresTrailingBytes(t *testing.T) {
	rng := seed.Rand(t)
	for _, rec := range allRecords() {
		randomize(rng, rec)
		encoded := rec.Append(nil)
		if c, ok := rec.(*ConnectRequest); ok && !c.HasReadOnly {
			continue // the next byte would be a field
		}
		if c, ok := rec.(*ConnectResponse); ok && !c.HasReadOnly {
			continue
		}
		got := blank(rec)
		r := jute.NewReader(append(encoded, 1, 2, 3))
		got.Decode(r)
		if r.Err() != nil || !reflect.DeepEqual(got, rec) {
			t.Errorf("%T: error %v\n got %+v\nwant %+v", rec, r.Err(), got, rec)
		}
	}
}
