package wire

import (
	"errors"
	"reflect"
	"testing"

	"github.com/zk-lite/zk-lite/internal/jute"
	"github.com/zk-lite/zk-lite/znode"
)

func decodeMulti(read bool, in []byte) (*MultiRequest, error) {
	m := &MultiRequest{Read: read}
	r := jute.NewReader(in)
	m.Decode(r)
	return m, r.Err()
}

func TestMultiRequest_Decode_AllowsTheTypesOfItsKind(t *testing.T) {
	for _, read := range []bool{false, true} {
		for _, op := range allOpCodes() {
			req := NewRequest(op)
			if req == nil {
				req = new(EmptyRequest)
			}
			m := &MultiRequest{Read: read, Ops: []MultiOp{{op, req}}}
			_, err := decodeMulti(read, m.Append(nil))
			allowed := !read && op.InMulti() || read && op.InMultiRead()
			if allowed && err != nil || !allowed && !errors.Is(err, ErrMultiType) {
				t.Errorf("%s, read %v: %v", op, read, err)
			}
			if valid := m.Validate() == nil; valid != allowed {
				t.Errorf("%s, read %v: Validate: %v", op, read, m.Validate())
			}
		}
	}
}

func TestMultiRequest_Decode_ErrorOnMixedKinds(t *testing.T) {
	m := &MultiRequest{Ops: []MultiOp{
		{OpDelete, &DeleteRequest{Path: "/a"}}, {OpGetData, &GetDataRequest{Path: "/a"}},
	}}
	for _, read := range []bool{false, true} {
		if _, err := decodeMulti(read, m.Append(nil)); !errors.Is(err, ErrMultiType) {
			t.Errorf("read %v: %v", read, err)
		}
	}
}

// TestMultiRequest_Decode_Mode: a mode that is unknown, or that needs a TTL which a create does not have.
func TestMultiRequest_Decode_Mode(t *testing.T) {
	for _, mode := range []znode.Mode{-1, znode.PersistentTTL, znode.PersistentSequentialTTL, 7, 99} {
		for _, op := range []OpCode{OpCreate, OpCreate2, OpCreateContainer} {
			m := &MultiRequest{Ops: []MultiOp{{op, &CreateRequest{Mode: mode}}}}
			if _, err := decodeMulti(false, m.Append(nil)); !errors.Is(err, ErrMultiMode) {
				t.Errorf("%s with mode %d: %v", op, mode, err)
			}
		}
		m := &MultiRequest{Ops: []MultiOp{{OpCreateTTL, &CreateTTLRequest{Mode: mode}}}}
		if _, err := decodeMulti(false, m.Append(nil)); err != nil {
			t.Errorf("createTTL with mode %d: %v", mode, err)
		}
	}
}

func TestMultiRequest_Decode_DropsWatches(t *testing.T) {
	in := &MultiRequest{Read: true, Ops: []MultiOp{
		{OpGetData, &GetDataRequest{Path: "/a", Watch: true}},
		{OpGetChildren, &GetChildrenRequest{Path: "/a", Watch: true}},
	}}
	want := &MultiRequest{Read: true, Ops: []MultiOp{
		{OpGetData, &GetDataRequest{Path: "/a"}}, {OpGetChildren, &GetChildrenRequest{Path: "/a"}},
	}}
	if got, err := decodeMulti(true, in.Append(nil)); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v", got, err)
	}
}

// The number of operations has no bound of its own: the smallest one takes
// multiOpMinBytes of the frame.
func TestMultiRequest_Append_SmallestOperation(t *testing.T) {
	smallest := 1 << 10
	for _, op := range allOpCodes() {
		if op.InMulti() || op.InMultiRead() {
			with := &MultiRequest{Ops: []MultiOp{{op, NewRequest(op)}}}
			without := &MultiRequest{}
			smallest = min(smallest, len(with.Append(nil))-len(without.Append(nil)))
		}
	}
	if smallest != multiOpMinBytes {
		t.Errorf("the smallest operation has %d bytes, want %d", smallest, multiOpMinBytes)
	}
}

func TestMultiRequest_Validate_ErrorOnForeignBody(t *testing.T) {
	for _, op := range []MultiOp{
		{OpDelete, &CheckRequest{}}, {OpCheck, &DeleteRequest{}}, {OpDelete, nil},
		{OpCreate, &CreateTTLRequest{}}, {OpCreateTTL, &CreateRequest{}},
	} {
		m := &MultiRequest{Ops: []MultiOp{op}}
		if err := m.Validate(); !errors.Is(err, ErrMultiType) {
			t.Errorf("%s with %T: %v", op.Type, op.Request, err)
		}
	}
}

// The expected types are those of MultiOperationRecord and Op in 3.9.
func TestMultiOp_EffectiveType_FollowsTheMode(t *testing.T) {
	const c, c2, cc, ttl = OpCreate, OpCreate2, OpCreateContainer, OpCreateTTL
	tests := []struct {
		op   OpCode
		want [7]OpCode // by mode
	}{
		{c, [7]OpCode{c, c, c, c, cc, ttl, ttl}},
		{c2, [7]OpCode{c2, c2, c2, c2, cc, ttl, ttl}},
		{cc, [7]OpCode{cc, cc, cc, cc, cc, ttl, ttl}},
		{ttl, [7]OpCode{c, c, c, c, cc, ttl, ttl}},
	}
	for _, tt := range tests {
		for mode, want := range tt.want {
			op := MultiOp{Type: tt.op, Request: &CreateRequest{Mode: znode.Mode(mode)}}
			if tt.op == OpCreateTTL {
				op.Request = &CreateTTLRequest{Mode: znode.Mode(mode)}
			}
			if got := op.EffectiveType(); got != want {
				t.Errorf("%s with mode %d is %s, want %s", tt.op, mode, got, want)
			}
		}
	}
	op := MultiOp{Type: OpDelete, Request: &DeleteRequest{}}
	if got := op.EffectiveType(); got != OpDelete {
		t.Errorf("delete is %s", got)
	}
}

func TestOpCode_ResultType_IsWhatAMultiResponseCarries(t *testing.T) {
	for op, want := range map[OpCode]OpCode{
		OpCreate: OpCreate, OpCreate2: OpCreate2, OpCreateContainer: OpCreate2,
		OpCreateTTL: OpCreate2, OpDelete: OpDelete, OpSetData: OpSetData, OpCheck: OpCheck,
		OpGetData: OpGetData, OpGetChildren: OpGetChildren,
	} {
		if got := op.ResultType(); got != want {
			t.Errorf("%s travels as %s, want %s", op, got, want)
		}
	}
}

func TestMultiResponse_Decode_ErrorOnUnknownResult(t *testing.T) {
	for _, op := range []string{"00000013", "00000015", "00000003", "0000000a"} {
		r := jute.NewReader(unhex(t, op+"00 00000000"+hexEnd))
		new(MultiResponse).Decode(r)
		if !errors.Is(r.Err(), ErrMultiType) {
			t.Errorf("%s: %v", op, r.Err())
		}
	}
}
