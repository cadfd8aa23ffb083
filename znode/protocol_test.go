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

func TestWatcherType_Valid(t *testing.T) {
	for i := WatcherType(-1); i < 8; i++ {
		if i.Valid() != (i >= 1 && i <= 5) {
			t.Errorf("type %d: valid is %t, want only 1 to 5 to be", i, i.Valid())
		}
	}
}
