package wire

import (
	"bytes"
	"encoding/hex"
	"reflect"
	"strings"
	"testing"

	"github.com/zk-lite/zk-lite/internal/jute"
	"github.com/zk-lite/zk-lite/znode"
)

// The golden bytes are written by hand from zookeeper.jute, a field a group.
// Those with a Java name were once compared, byte for byte, with what the
// classes of that name in ZooKeeper 3.8.0 write for the same values.

var goldenStat = znode.Stat{
	Czxid: 0x0102030405060708, Mzxid: 0x1112131415161718,
	Ctime: 0x2122232425262728, Mtime: 0x3132333435363738,
	Version: 0x41424344, Cversion: 0x51525354, Aversion: 0x61626364,
	EphemeralOwner: -2, DataLength: 0x71727374, NumChildren: 7, Pzxid: 0x0909090909090909,
}

const (
	hexA    = "00000002 2f61 " // the path /a
	hexB    = "00000002 2f62 " // the path /b
	hexStat = "0102030405060708 1112131415161718 2122232425262728 3132333435363738 " +
		"41424344 51525354 61626364 fffffffffffffffe 71727374 00000007 0909090909090909 "
	hexACL = "00000002 " +
		"00000005 00000006 646967657374 00000003 753a68 " +
		"0000001f 00000005 776f726c64 00000006 616e796f6e65 "
	hexPassword = "00000010 a0a1a2a3a4a5a6a7a8a9aaabacadaeaf "
	hexEnd      = "ffffffff 01 ffffffff "
)

func goldenACL() []znode.ACL {
	return []znode.ACL{
		{Perms: znode.PermRead | znode.PermCreate, ID: znode.ID{Scheme: "digest", ID: "u:h"}},
		{Perms: znode.PermAll, ID: znode.Anyone},
	}
}

func goldenPassword() []byte {
	p := make([]byte, znode.PasswordSize)
	for i := range p {
		p[i] = byte(0xa0 + i)
	}
	return p
}

type golden struct {
	name   string
	record Record
	hex    string
}

// goldens is a function so that every test has values of its own.
func goldens() []golden {
	return append(append(goldenRequests(), goldenResponses()...), goldenMultis()...)
}

func goldenRequests() []golden {
	joining, empty := "server.1=h:1:2;3", ""
	return []golden{
		{"ConnectRequest", &ConnectRequest{LastZxidSeen: 0x0102, TimeoutMillis: 30000,
			SessionID: 0x7000000000000001, Password: goldenPassword()},
			"00000000 0000000000000102 00007530 7000000000000001" + hexPassword},
		{"ConnectRequest with readOnly", &ConnectRequest{LastZxidSeen: 0x0102,
			TimeoutMillis: 30000, SessionID: 0x7000000000000001, Password: goldenPassword(),
			HasReadOnly: true, ReadOnly: true},
			"00000000 0000000000000102 00007530 7000000000000001" + hexPassword + "01"},
		{"RequestHeader", &RequestHeader{Xid: XidSetWatches, Type: OpSetWatches},
			"fffffff8 00000065"},
		{"CreateRequest", &CreateRequest{Path: "/aé", Data: []byte{1, 2}, ACL: goldenACL(),
			Mode: znode.EphemeralSequential},
			"00000004 2f61c3a9 00000002 0102" + hexACL + "00000003"},
		{"CreateRequest with open ACL", &CreateRequest{Path: "/a", ACL: znode.OpenACL},
			hexA + "ffffffff 00000001 0000001f 00000005 776f726c64 00000006 616e796f6e65" +
				"00000000"},
		{"CreateRequestNull", &CreateRequest{Path: "/a"}, hexA + "ffffffff ffffffff 00000000"},
		{"CreateRequestEmpty", &CreateRequest{Path: "/a", Data: []byte{}, ACL: []znode.ACL{}},
			hexA + "00000000 00000000 00000000"},
		{"CreateTTLRequest", &CreateTTLRequest{Path: "/a", Data: []byte{1}, ACL: goldenACL(),
			Mode: znode.PersistentTTL, TTLMillis: 0x0102030405},
			hexA + "00000001 01" + hexACL + "00000005 0000000102030405"},
		{"DeleteRequest", &DeleteRequest{Path: "/a", Version: -1}, hexA + "ffffffff"},
		{"DeleteContainerRequest", &DeleteContainerRequest{Path: "/a"}, hexA},
		{"ExistsRequest", &ExistsRequest{Path: "/a", Watch: true}, hexA + "01"},
		{"GetDataRequest", &GetDataRequest{Path: "/a"}, hexA + "00"},
		{"SetDataRequest", &SetDataRequest{Path: "/a", Data: []byte{8, 9}, Version: 3},
			hexA + "00000002 0809 00000003"},
		{"GetACLRequest", &GetACLRequest{Path: "/a"}, hexA},
		{"SetACLRequest", &SetACLRequest{Path: "/a", ACL: goldenACL(), Version: 2},
			hexA + hexACL + "00000002"},
		{"GetChildrenRequest", &GetChildrenRequest{Path: "/a", Watch: true}, hexA + "01"},
		{"SyncRequest", &SyncRequest{Path: "/a"}, hexA},
		{"CheckVersionRequest", &CheckRequest{Path: "/a", Version: 4}, hexA + "00000004"},
		{"SetWatches", &SetWatchesRequest{RelativeZxid: 0x0102, DataWatches: []string{"/d"},
			ExistWatches: []string{"/e", "/f"}},
			"0000000000000102 00000001 00000002 2f64 00000002 00000002 2f65 00000002 2f66" +
				"00000000"},
		{"SetWatches2", &SetWatches2Request{
			SetWatchesRequest: SetWatchesRequest{RelativeZxid: 0x0102,
				DataWatches: []string{"/d"}, ChildWatches: []string{"/c"}},
			PersistentWatches:          []string{"/p"},
			PersistentRecursiveWatches: []string{"/q"}},
			"0000000000000102 00000001 00000002 2f64 00000000 00000001 00000002 2f63" +
				"00000001 00000002 2f70 00000001 00000002 2f71"},
		{"AddWatchRequest", &AddWatchRequest{Path: "/a", Mode: AddWatchPersistentRecursive},
			hexA + "00000001"},
		{"RemoveWatchesRequest", &RemoveWatchesRequest{Path: "/a", Type: znode.WatcherAny},
			hexA + "00000003"},
		{"CheckWatchesRequest", &RemoveWatchesRequest{Path: "/a", Type: znode.WatcherData},
			hexA + "00000002"},
		{"AuthPacket", &AuthRequest{Scheme: "digest", Auth: []byte("u:p")},
			"00000000 00000006 646967657374 00000003 753a70"},
		{"GetSASLRequest", &SASLRequest{Token: []byte{1}}, "00000001 01"},
		{"ReconfigRequest", &ReconfigRequest{JoiningServers: &joining, NewMembers: &empty,
			CurConfigID: -1},
			"00000010 7365727665722e313d683a313a323b33 ffffffff 00000000 ffffffffffffffff"},
		{"GetEphemeralsRequest", &GetEphemeralsRequest{PrefixPath: "/a"}, hexA},
		{"GetAllChildrenNumberRequest", &GetAllChildrenNumberRequest{Path: "/a"}, hexA},
	}
}

func goldenResponses() []golden {
	return []golden{
		{"ConnectResponse", &ConnectResponse{TimeoutMillis: 4000, SessionID: -1,
			Password: goldenPassword()},
			"00000000 00000fa0 ffffffffffffffff" + hexPassword},
		{"ConnectResponse with readOnly", &ConnectResponse{TimeoutMillis: 4000, SessionID: -1,
			Password: goldenPassword(), HasReadOnly: true},
			"00000000 00000fa0 ffffffffffffffff" + hexPassword + "00"},
		{"ReplyHeader", &ReplyHeader{Xid: XidNotification, Zxid: 0x0102, Err: znode.ErrNoNode},
			"ffffffff 0000000000000102 ffffff9b"},
		{"WatcherEvent", &WatcherEvent{Type: znode.EventDataChanged, State: StateSyncConnected,
			Path: "/a"}, "00000003 00000003" + hexA},
		{"ErrorResponse", &ErrorResponse{Err: znode.ErrNoNode}, "ffffff9b"},
		{"CreateResponse", &CreateResponse{Path: "/a0000000001"},
			"0000000c 2f6130303030303030303031"},
		{"Create2Response", &Create2Response{Path: "/a", Stat: goldenStat}, hexA + hexStat},
		{"ExistsResponse", &ExistsResponse{Stat: goldenStat}, hexStat},
		{"GetDataResponse", &GetDataResponse{Data: []byte{9}, Stat: goldenStat},
			"00000001 09" + hexStat},
		{"GetDataResponse null", &GetDataResponse{Stat: goldenStat}, "ffffffff" + hexStat},
		{"GetDataResponse empty", &GetDataResponse{Data: []byte{}, Stat: goldenStat},
			"00000000" + hexStat},
		{"SetDataResponse", &SetDataResponse{Stat: goldenStat}, hexStat},
		{"GetACLResponse", &GetACLResponse{ACL: goldenACL(), Stat: goldenStat},
			hexACL + hexStat},
		{"SetACLResponse", &SetACLResponse{Stat: goldenStat}, hexStat},
		{"GetChildrenResponse", &GetChildrenResponse{Children: []string{"x", "yy"}},
			"00000002 00000001 78 00000002 7979"},
		{"GetChildrenResponse empty", &GetChildrenResponse{}, "00000000"},
		{"GetChildren2Response", &GetChildren2Response{Children: []string{"x", "yy"},
			Stat: goldenStat}, "00000002 00000001 78 00000002 7979" + hexStat},
		{"SyncResponse", &SyncResponse{Path: "/a"}, hexA},
		{"SetSASLResponse", &SASLResponse{}, "ffffffff"},
		{"ReconfigResponse", &ReconfigResponse{Data: []byte{9}, Stat: goldenStat},
			"00000001 09" + hexStat},
		{"GetEphemeralsResponse", &GetEphemeralsResponse{Ephemerals: []string{"/a/e"}},
			"00000001 00000004 2f612f65"},
		{"GetAllChildrenNumberResponse", &GetAllChildrenNumberResponse{TotalNumber: 258},
			"00000102"},
		{"WhoAmIResponse", &WhoAmIResponse{ClientInfo: []ClientInfo{
			{AuthScheme: "ip", User: "127.0.0.1"}, {AuthScheme: "digest", User: "bob"}}},
			"00000002 00000002 6970 00000009 3132372e302e302e31" +
				"00000006 646967657374 00000003 626f62"},
		{"", &FeedRequest{Path: "/a", Since: 7, Events: 2, Modes: 3, Before: true},
			hexA + "0000000000000007 00000002 00000003 01"},
		{"", &SyncWithinRequest{MaxStale: 258}, "0000000000000102"},
		{"", &SyncWithinResponse{Staleness: 258}, "0000000000000102"},
		{"", &RevisionsRequest{Path: "/a", Before: 7, Limit: 2}, hexA + "0000000000000007 00000002"},
		{"", &FeedResponse{Zxid: 9, More: true, Transactions: []FeedTransaction{{Zxid: 8, TimeMillis: 7, Session: 6,
			Author: []ClientInfo{{AuthScheme: "digest", User: "bob"}}, Trace: "t", Changes: []FeedChange{
				{Type: 3, Path: "/b", Mode: 1, Data: []byte("x"), Stat: goldenStat}}}}},
			"0000000000000009 00 01 00000001" + "0000000000000008 0000000000000007 0000000000000006" +
				"00000001 00000006 646967657374 00000003 626f62 00000001 74" +
				"00000001 00000003" + hexB + "00000001 00 00000001 78 ffffffff" + hexStat},
		{"", &TreeRequest{Paths: []string{"/a", "/b"}, ID: 7, Subtree: 1, Place: 3},
			"00000002" + hexA + hexB + "0000000000000007 00000001 0000000000000003"},
		{"", &TreeResponse{Zxid: 9, Wait: true, Next: -1, Znodes: []TreeZnode{
			{Path: "/b", Mode: 1, Data: []byte("x"), Stat: goldenStat, ACL: goldenACL()}}},
			"0000000000000009 01 00 ffffffffffffffff 00000001" + hexB + "00000001 00 00000001 78" + hexStat + hexACL},
	}
}

func goldenMultis() []golden {
	return []golden{
		{"MultiRequest", &MultiRequest{Ops: []MultiOp{
			{OpCreate, &CreateRequest{Path: "/a", Data: []byte{1}, ACL: goldenACL()}},
			{OpCreateTTL, &CreateTTLRequest{Path: "/t", ACL: goldenACL(),
				Mode: znode.PersistentTTL, TTLMillis: 7}},
			{OpCreateContainer, &CreateRequest{Path: "/c", ACL: goldenACL(),
				Mode: znode.Container}},
			{OpSetData, &SetDataRequest{Path: "/a", Data: []byte{2}}},
			{OpDelete, &DeleteRequest{Path: "/a", Version: 1}},
			{OpCheck, &CheckRequest{Path: "/b", Version: -1}},
		}},
			"00000001 00 ffffffff" + hexA + "00000001 01" + hexACL + "00000000" +
				"00000015 00 ffffffff 00000002 2f74 ffffffff" + hexACL +
				"00000005 0000000000000007" +
				"00000013 00 ffffffff 00000002 2f63 ffffffff" + hexACL + "00000004" +
				"00000005 00 ffffffff" + hexA + "00000001 02 00000000" +
				"00000002 00 ffffffff" + hexA + "00000001" +
				"0000000d 00 ffffffff" + hexB + "ffffffff" + hexEnd},
		{"MultiRequest of nothing", &MultiRequest{}, hexEnd},
		{"MultiReadRequest", &MultiRequest{Read: true, Ops: []MultiOp{
			{OpGetChildren, &GetChildrenRequest{Path: "/a"}},
			{OpGetData, &GetDataRequest{Path: "/b"}},
		}},
			"00000008 00 ffffffff" + hexA + "00 00000004 00 ffffffff" + hexB + "00" + hexEnd},
		{"MultiResponse", &MultiResponse{Results: []MultiResult{
			{Type: OpCreate, Response: &CreateResponse{Path: "/a"}},
			{Type: OpCreate2, Response: &Create2Response{Path: "/b", Stat: goldenStat}},
			{Type: OpSetData, Response: &SetDataResponse{Stat: goldenStat}},
			{Type: OpDelete},
			{Type: OpCheck},
		}},
			"00000001 00 00000000" + hexA + "0000000f 00 00000000" + hexB + hexStat +
				"00000005 00 00000000" + hexStat + "00000002 00 00000000" +
				"0000000d 00 00000000" + hexEnd},
		{"MultiResponseFailed", &MultiResponse{Results: []MultiResult{
			MultiError(znode.OK), MultiError(znode.ErrNodeExists),
			MultiError(znode.ErrRuntimeInconsistency),
		}},
			"ffffffff 00 00000000 00000000 ffffffff 00 ffffff92 ffffff92" +
				"ffffffff 00 fffffffe fffffffe" + hexEnd},
		{"MultiReadResponse", &MultiResponse{Results: []MultiResult{
			{Type: OpGetChildren, Response: &GetChildrenResponse{Children: []string{"x"}}},
			{Type: OpGetData, Response: &GetDataResponse{Data: []byte{1}, Stat: goldenStat}},
			MultiError(znode.ErrNoNode),
		}},
			"00000008 00 00000000 00000001 00000001 78" +
				"00000004 00 00000000 00000001 01" + hexStat +
				"ffffffff 00 ffffff9b ffffff9b" + hexEnd},
		{"", &BranchRequest{
			If: []znode.Condition{{Path: "/a", Of: znode.OfData, Is: znode.Less, Data: []byte{7}},
				{Path: "/b", Of: znode.OfMzxid, Is: znode.Equal, Number: 8}},
			Then: []MultiOp{{OpDelete, &DeleteRequest{Path: "/a", Version: 1}}, {OpGetData, &GetDataRequest{Path: "/b"}}},
		},
			"00000002" + hexA + "00000007 00000003 0000000000000000 00000001 07" +
				hexB + "00000003 00000001 0000000000000008 ffffffff" +
				"00000002 00 ffffffff" + hexA + "00000001 00000004 00 ffffffff" + hexB + "00" + hexEnd + hexEnd},
		{"", &BranchResponse{Then: true, Results: []MultiResult{{Type: OpDelete}}}, "01 00000002 00 00000000" + hexEnd},
	}
}

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// blank returns an empty record of the same type. Whether a MultiRequest reads is not in its bytes, so that is copied.
func blank(rec Record) Record {
	if m, ok := rec.(*MultiRequest); ok {
		return &MultiRequest{Read: m.Read}
	}
	return reflect.New(reflect.TypeOf(rec).Elem()).Interface().(Record)
}

func TestRecord_Append_GoldenBytes(t *testing.T) {
	for _, g := range goldens() {
		want := unhex(t, g.hex)
		prefix := []byte{0xee}
		got := g.record.Append(prefix)
		if !bytes.Equal(got[1:], want) || got[0] != 0xee {
			t.Errorf("%s:\n got ee %x\nwant ee %x", g.name, got, want)
		}
	}
}

func TestRecord_Decode_GoldenBytes(t *testing.T) {
	for _, g := range goldens() {
		in := unhex(t, g.hex)
		got := blank(g.record)
		r := jute.NewReader(in)
		got.Decode(r)
		if r.Err() != nil || r.Remaining() != 0 {
			t.Errorf("%s: error %v, %d bytes left", g.name, r.Err(), r.Remaining())
		}
		if !reflect.DeepEqual(got, g.record) {
			t.Errorf("%s:\n got %+v\nwant %+v", g.name, got, g.record)
		}
	}
}

func TestConnect_Append_Sizes(t *testing.T) {
	p := goldenPassword()
	for want, rec := range map[int]Record{
		44: &ConnectRequest{Password: p},
		45: &ConnectRequest{Password: p, HasReadOnly: true},
		36: &ConnectResponse{Password: p},
		37: &ConnectResponse{Password: p, HasReadOnly: true},
	} {
		if got := len(rec.Append(nil)); got != want {
			t.Errorf("%T has %d bytes, want %d", rec, got, want)
		}
	}
}

func TestRecord_Decode_NullPathIsEmpty(t *testing.T) {
	for _, rec := range []Record{&GetDataRequest{}, &DeleteRequest{}, &SyncRequest{}} {
		in := unhex(t, "ffffffff 00000000")
		r := jute.NewReader(in)
		rec.Decode(r)
		if r.Err() != nil || reflect.ValueOf(rec).Elem().FieldByName("Path").String() != "" {
			t.Errorf("%T: %+v, error %v", rec, rec, r.Err())
		}
	}
}
