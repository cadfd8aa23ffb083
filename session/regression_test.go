package session

import "testing"

// The tree marks TTL znodes by an owner with 0xFF in the top byte (ZooKeeper's
// EphemeralType). The table took such an id for a session, whose ephemerals
// would have become TTL znodes that no close deletes.
func TestRegression_Table_Add_RefusesTTLMarkers(t *testing.T) {
	tab := NewTable()
	if tab.Add(Session{ID: -1}) || tab.Add(Session{ID: -1 << 56}) {
		t.Error("an id with 0xFF on top was accepted")
	}
	if !tab.Add(Session{ID: -1<<56 - 1}) {
		t.Error("an id with 0xFE on top, that of server 254, was refused")
	}
}
