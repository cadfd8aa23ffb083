//go:build interop

package conformance_test

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/zk-lite/zk-lite/integration/cluster"
	"github.com/zk-lite/zk-lite/internal/wire"
	"github.com/zk-lite/zk-lite/znode"
)

// text writes what was received so that equal behaviour gives equal text.
func (r *run) text(item *cluster.Item) string {
	if item.Call == nil {
		return fmt.Sprintf("event %s state=%d path=%q zxid=%s",
			item.Event.Type, item.Event.State, item.Event.Path, r.zxid(item.Zxid))
	}
	call := item.Call
	text := fmt.Sprintf("%s xid=%s zxid=%s err=%s", call.Op, call.Reply.Xid, r.headerZxid(call.Reply.Zxid),
		call.Reply.Err.Name())
	if call.Err != nil {
		return text + " " + call.Err.Error()
	}
	if call.Body != nil {
		text += " " + r.body(call.Body)
	}
	return text
}

func (r *run) body(body wire.Response) string {
	switch b := body.(type) {
	case *wire.CreateResponse:
		return fmt.Sprintf("path=%q", b.Path)
	case *wire.Create2Response:
		return fmt.Sprintf("path=%q %s", b.Path, r.stat(&b.Stat))
	case *wire.ExistsResponse:
		return r.stat(&b.Stat)
	case *wire.GetDataResponse:
		return fmt.Sprintf("data=%s %s", dataText(b.Data), r.stat(&b.Stat))
	case *wire.ReconfigResponse:
		return fmt.Sprintf("data=%s %s", dataText(b.Data), r.stat(&b.Stat))
	case *wire.SetDataResponse:
		return r.stat(&b.Stat)
	case *wire.GetACLResponse:
		return fmt.Sprintf("acl=%v %s", b.ACL, r.stat(&b.Stat))
	case *wire.SetACLResponse:
		return r.stat(&b.Stat)
	case *wire.GetChildrenResponse:
		return fmt.Sprintf("children=%q", sorted(b.Children))
	case *wire.GetChildren2Response:
		return fmt.Sprintf("children=%q %s", sorted(b.Children), r.stat(&b.Stat))
	case *wire.GetEphemeralsResponse:
		return fmt.Sprintf("ephemerals=%q", sorted(b.Ephemerals))
	case *wire.GetAllChildrenNumberResponse:
		return fmt.Sprintf("total=%d", b.TotalNumber)
	case *wire.SyncResponse:
		return fmt.Sprintf("path=%q", b.Path)
	case *wire.ErrorResponse:
		return fmt.Sprintf("code=%s", b.Err.Name())
	case *wire.WhoAmIResponse:
		var all []string
		for _, id := range b.ClientInfo {
			all = append(all, id.AuthScheme+":"+id.User)
		}
		return fmt.Sprintf("ids=%q", sorted(all))
	case *wire.EmptyResponse:
		return ""
	case *wire.MultiResponse:
		var all []string
		for _, x := range b.Results {
			one := fmt.Sprintf("%s err=%s", x.Type, x.Err.Name())
			if x.Response != nil {
				one += " " + r.body(x.Response)
			}
			all = append(all, one)
		}
		return "[" + strings.Join(all, "; ") + "]"
	}
	return fmt.Sprintf("%+v", body)
}

func sorted(names []string) []string {
	names = slices.Clone(names)
	slices.Sort(names)
	return names
}

var address = regexp.MustCompile(`=[^;\n]*(:participant|:observer)(;[^\n]*)?|(?m)^version=.*`)

// dataText leaves out the addresses and the version of a configuration, which are the run's.
func dataText(b []byte) string {
	if bytes.HasPrefix(b, []byte("server.")) {
		b = address.ReplaceAll(b, []byte("$1"))
	}
	if b == nil {
		return "null"
	}
	return fmt.Sprintf("%q", b)
}

// zxid is the step that took it and its place among those that the step took, which are the
// same on both sides. Counting starts at one with every step, so that a request that takes a
// zxid on one side only is a difference of its own step and not of all steps after it.
func (r *run) zxid(z znode.Zxid) string {
	if z <= 0 {
		return fmt.Sprint(int64(z))
	}
	n, _ := slices.BinarySearch(r.ends, z)
	if n == 0 {
		return "before"
	}
	return fmt.Sprintf("%d+%d", n-1, z-r.ends[n-1])
}

// headerZxid is the zxid of a reply's header: whether the step has taken it, and
// as which one. Everything else is the newest of the steps before.
func (r *run) headerZxid(z znode.Zxid) string {
	switch taken := z - r.ends[len(r.ends)-2]; {
	case z <= 0:
		return fmt.Sprint(int64(z))
	case taken <= 0:
		return "old"
	default:
		return fmt.Sprintf("+%d", taken)
	}
}

// time is the transaction a time belongs to; a time that is not the one seen
// before for the same transaction is a fault of either side.
func (r *run) time(millis int64, of znode.Zxid) string {
	if of <= 0 {
		return fmt.Sprint(millis)
	}
	if seen, ok := r.times[of]; ok && seen != millis {
		return fmt.Sprintf("%d-instead-of-%d", millis, seen)
	}
	r.times[of] = millis
	return "of:" + r.zxid(of)
}

func (r *run) stat(s *znode.Stat) string {
	owner := "0"
	if s.EphemeralOwner != 0 {
		owner = r.names[s.EphemeralOwner]
		if owner == "" {
			owner = s.EphemeralOwner.String()
		}
	}
	return fmt.Sprintf("{czxid=%s mzxid=%s ctime=%s mtime=%s version=%d cversion=%d aversion=%d "+
		"owner=%s length=%d children=%d pzxid=%s}", r.zxid(s.Czxid), r.zxid(s.Mzxid),
		r.time(s.Ctime, s.Czxid), r.time(s.Mtime, s.Mzxid), s.Version, s.Cversion, s.Aversion,
		owner, s.DataLength, s.NumChildren, r.zxid(s.Pzxid))
}
