package znode

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestError_Names(t *testing.T) {
	for code := range errorText {
		if code.Name() == "" || code.Error() == "" || strings.HasPrefix(code.Name(), "UNKNOWN") {
			t.Errorf("%d has no text", code)
		}
	}
	if OK.Err() != nil || !errors.Is(fmt.Errorf("x: %w", ErrNoNode.Err()), ErrNoNode) {
		t.Error("Err")
	}
	if got := Error(-99).Name() + " " + Error(-99).Error(); got != "UNKNOWN(-99) unknown error code -99" {
		t.Errorf("an unknown code is %q, want its number in the name and in the text", got)
	}
}

func TestNames_AreZooKeepers(t *testing.T) {
	for got, want := range map[string]string{
		Zxid(-1).String(): "0xffffffffffffffff", Zxid(1<<32 | 5).String(): "0x100000005",
		SessionID(-1 << 56).String(): "0xff00000000000000",
		PermAll.String():             "cdrwa", (PermRead | PermAdmin).String(): "ra", Perms(0).String(): "",
		EventCreated.String(): "NodeCreated", EventDeleted.String(): "NodeDeleted",
		EventDataChanged.String(): "NodeDataChanged", EventChildrenChanged.String(): "NodeChildrenChanged",
		EventType(9).String(): "None",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestBuilder_BadRecords: what no tree can be made of is refused.
func TestBuilder_BadRecords(t *testing.T) {
	system := func() *Builder {
		b := NewBuilder()
		s := NewTree().Snapshot()
		defer s.Release()
		if err := s.Walk(b.Add); err != nil {
			t.Fatal(err)
		}
		return b
	}
	b := system()
	if err := b.Add(&Record{Path: "/x/", ACL: OpenACL}); !errors.Is(err, ErrBadArguments) {
		t.Errorf("bad path: %v", err)
	}
	if err := b.Add(&Record{Path: "/zookeeper", ACL: OpenACL}); err == nil {
		t.Error("a path twice")
	}
	if err := b.Add(&Record{Path: "/no/parent", ACL: OpenACL}); err != nil {
		t.Fatal(err) // it may come later
	}
	if _, err := b.Tree(); err == nil || !strings.Contains(err.Error(), "/no/parent") {
		t.Errorf("an orphan: %v", err)
	}
	if _, err := NewBuilder().Tree(); err == nil {
		t.Error("a tree without a root")
	}
	stop := errors.New("stop")
	s := NewTree().Snapshot()
	defer s.Release()
	if err := s.Walk(func(*Record) error { return stop }); err != stop {
		t.Error(err)
	}
}

func TestTree_EphemeralOwners_Counts(t *testing.T) {
	tree := NewTree()
	for i, s := range []SessionID{1, 2, 2} {
		mustCreate(t, tree, &Txn{Zxid: 1, Session: s}, &CreateRequest{Path: fmt.Sprintf("/e%d", i), Mode: Ephemeral, ACL: OpenACL})
	}
	got := map[SessionID]int{}
	tree.EphemeralOwners(func(s SessionID, n int) { got[s] = n })
	if len(got) != 2 || got[1] != 1 || got[2] != 2 {
		t.Errorf("ephemerals by owner: %v, want 1 of session 1 and 2 of session 2", got)
	}
}
