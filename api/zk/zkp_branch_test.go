package zk_test

import (
	"fmt"
	"testing"

	"github.com/zk-lite/zk-lite/internal/wire"
	"github.com/zk-lite/zk-lite/znode"
)

func (c *client) branch(q wire.BranchRequest) (wire.ReplyHeader, *wire.BranchResponse) {
	c.t.Helper()
	h, x := c.want(znode.OK, wire.OpBranch, &q)
	return h, x.(*wire.BranchResponse)
}

// Servers of an ensemble that has not been upgraded must not send it.
func TestZKP_Branch_IsUnimplemented(t *testing.T) {
	c := start(t).connect()
	c.want(znode.ErrUnimplemented, wire.OpBranch, &wire.BranchRequest{})
	c.fence()
}

// A branch has the results of the list that was taken, each under its own type; reads see the writes before them.
func TestZKP_Branch(t *testing.T) {
	c := newReconfigurable(t).connect()
	c.want(znode.OK, wire.OpCreate, create("/m", "x", znode.Persistent))
	get, list := op(wire.OpGetData, &wire.GetDataRequest{Path: "/m"}), op(wire.OpGetChildren, &wire.GetChildrenRequest{Path: "/m"})
	q := wire.BranchRequest{
		If: []znode.Condition{{Path: "/m", Of: znode.OfChildren, Is: znode.Less, Number: 1}},
		Then: []wire.MultiOp{get, op(wire.OpSetData, &wire.SetDataRequest{Path: "/m", Data: []byte("y"), Version: -1}),
			op(wire.OpCreate2, create("/m/s-", "", znode.PersistentSequential)), get, list},
		Else: []wire.MultiOp{list, op(wire.OpCheck, &wire.CheckRequest{Path: "/m", Version: 7}), get},
	}
	h, x := c.branch(q)
	said := fmt.Sprint(x.Then)
	for _, r := range x.Results {
		switch v := r.Response.(type) {
		case *wire.GetDataResponse:
			said += fmt.Sprintf(" %s %d %v", v.Data, v.Stat.NumChildren, v.Stat.Mzxid == h.Zxid)
		case *wire.GetChildrenResponse:
			said += fmt.Sprint(" ", v.Children)
		case *wire.Create2Response:
			said += " " + v.Path
		default:
			said += " " + r.Type.String()
		}
	}
	if want := "true x 0 false setData /m/s-0000000000 y 1 true [s-0000000000]"; said != want {
		t.Errorf("got %q, want %q", said, want)
	}
	_, x = c.branch(q)
	if want := "false [{error no error <nil>} {error version does not match <nil>} {error not tried: an earlier operation of the multi failed <nil>}]"; fmt.Sprint(x.Then, x.Results) != want {
		t.Errorf("got %v %v, want %s", x.Then, x.Results, want)
	}
	acl := []znode.ACL{{Perms: znode.PermWrite, ID: znode.Anyone}}
	c.want(znode.OK, wire.OpSetACL, &wire.SetACLRequest{Path: "/m", ACL: acl, Version: -1})
	c.want(znode.ErrNoAuth, wire.OpBranch, &q)
	c.want(znode.ErrBadArguments, wire.OpBranch, &wire.BranchRequest{If: []znode.Condition{{Path: "m", Of: znode.OfVersion, Is: znode.Equal}}})
	c.fence()
}
