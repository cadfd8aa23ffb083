package znode

// Mode is the kind of znode that a create asks for; the numbers are those of
// ZooKeeper's CreateMode flags.
type Mode int32

// The seven kinds.
const (
	Persistent              Mode = 0
	Ephemeral               Mode = 1 // deleted when its session ends
	PersistentSequential    Mode = 2 // a 10-digit counter is appended to the name
	EphemeralSequential     Mode = 3
	Container               Mode = 4 // deleted some time after its last child
	PersistentTTL           Mode = 5 // deleted when childless and unchanged for its TTL
	PersistentSequentialTTL Mode = 6
)

// Valid reports whether m is one of the seven kinds.
func (m Mode) Valid() bool { return m >= Persistent && m <= PersistentSequentialTTL }

// Sequential reports whether the server appends a number to the name.
func (m Mode) Sequential() bool {
	return m == PersistentSequential || m == EphemeralSequential || m == PersistentSequentialTTL
}

// Ephemeral reports whether the znode belongs to a session.
func (m Mode) Ephemeral() bool { return m == Ephemeral || m == EphemeralSequential }

// TTL reports whether the znode has a time to live.
func (m Mode) TTL() bool { return m == PersistentTTL || m == PersistentSequentialTTL }
