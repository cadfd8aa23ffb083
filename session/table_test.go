package session

import (
	"math"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/znode"
)

func TestTable_Add_RefusesWhatIsNoSession(t *testing.T) {
	tab := NewTable()
	for _, c := range []struct {
		id   znode.SessionID
		want bool
	}{
		{1, true}, {1, false}, {0, false}, {math.MinInt64, false}, {math.MinInt64 + 1, true}, {-1 << 57, true},
	} {
		if got := tab.Add(Session{ID: c.id}); got != c.want {
			t.Errorf("Add(%v) = %v", c.id, got)
		}
	}
	if tab.Len() != 3 {
		t.Errorf("%d sessions", tab.Len())
	}
}

func TestTable_Attach_NeedsThePassword(t *testing.T) {
	tab := NewTable()
	tab.Add(Session{ID: 7, Owner: 1, Timeout: time.Second, Password: Password{1, 2}})
	if _, ok := tab.Attach(7, Password{1, 3}, time.Minute, 2); ok {
		t.Error("a wrong password was accepted")
	}
	if _, ok := tab.Attach(8, Password{1, 2}, time.Minute, 2); ok {
		t.Error("an unknown session was attached")
	}
	if s := tab.Get(7); s.Owner != 1 || s.Timeout != time.Second {
		t.Errorf("a refused attach changed %+v", s)
	}
	if former, ok := tab.Attach(7, Password{1, 2}, time.Minute, 2); !ok || former != 1 {
		t.Errorf("attach: %d, %v", former, ok)
	}
	if s := tab.Get(7); s.Owner != 2 || s.Timeout != time.Minute {
		t.Errorf("attach left %+v", s)
	}
}

func TestTable_Clone_IsACopy(t *testing.T) {
	tab := NewTable()
	tab.Add(Session{ID: 1, Owner: 1})
	tab.Add(Session{ID: 2, Owner: 1})
	all := tab.Clone()
	tab.Attach(1, Password{}, 0, 9)
	if !tab.Remove(2) || tab.Remove(2) {
		t.Error("Remove")
	}
	if len(all) != 2 || all[0].Owner != 1 || all[1].Owner != 1 {
		t.Errorf("clone %+v", all)
	}
	seen := 0
	tab.Each(func(s *Session) { seen++ })
	if seen != 1 || tab.Len() != 1 || tab.Get(2) != nil {
		t.Errorf("%d sessions are left", seen)
	}
}
