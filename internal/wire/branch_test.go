package wire

import (
	"strings"
	"testing"

	"github.com/zk-lite/zk-lite/internal/jute"
	"github.com/zk-lite/zk-lite/znode"
)

// What no server of this release could carry out is refused when it is decoded: it must not get into the log.
func TestBranchRequest_Decode_Refusals(t *testing.T) {
	condition := func(of, is int32) []byte {
		b := jute.AppendInt32(jute.AppendInt32(jute.AppendUstring(jute.AppendVectorLen(nil, 1), "/a"), of), is)
		return AppendMultiEnd(AppendMultiEnd(jute.AppendBuffer(jute.AppendInt64(b, 0), nil)))
	}
	set := []MultiOp{{OpSetACL, &SetACLRequest{Path: "/a"}}}
	create := []MultiOp{{OpCreate, &CreateRequest{Path: "/a", Mode: znode.PersistentTTL}}}
	for want, b := range map[string][]byte{
		"":                                    condition(1, 1),
		"unknown attribute 0 or relation 1":   condition(0, 1),
		"unknown attribute 8 or relation 1":   condition(8, 1),
		"unknown attribute 257 or relation 1": condition(257, 1), // 1 in eight bits
		"unknown attribute 1 or relation 5":   condition(1, 5),
		"setACL in a multi":                   (&BranchRequest{Then: set}).Append(nil),
		"operation 0: operation type":         (&BranchRequest{Else: set}).Append(nil),
		"create mode is not allowed":          (&BranchRequest{Else: create}).Append(nil),
	} {
		var q BranchRequest
		r := jute.NewReader(b)
		q.Decode(r)
		if err := r.Err(); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	if err := (&BranchRequest{Else: set}).Validate(); err == nil {
		t.Error("Validate lets pass what Decode refuses")
	}
}
