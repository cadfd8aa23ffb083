package body

import "time"

// Who is a client, as the server knows it that has its connection; both are empty if they are not to be told.
type Who struct {
	Address    string     `json:"address,omitempty"`
	Identities []Identity `json:"identities,omitempty"` // without hashes
}

// Session is what every server knows of a session or, if it is local, the server that has it.
type Session struct {
	ID         string `json:"id"`
	Timeout    string `json:"timeout"`
	Server     int    `json:"server"` // that its client was last at
	Ephemerals int    `json:"ephemerals"`
	Local      bool   `json:"local,omitempty"`
}

// SessionRow is a session in a list.
type SessionRow struct {
	Session
	Who
	LastHeard *time.Time `json:"last_heard,omitempty"` // nil: its connection is not to the server that answers
}

// Sessions is a page of sessions.
type Sessions struct {
	Sessions []SessionRow `json:"sessions"`
	Total    int          `json:"total"`
	Next     string       `json:"next,omitempty"` // the after= of the next page
}

// SessionDetail is a session with what the server knows that has its connection.
type SessionDetail struct {
	Session
	Paths      []string    `json:"paths"` // of its ephemerals, as far as the client may see them
	Connection *Connection `json:"connection,omitempty"`
	More       bool        `json:"more"` // than are listed
}

// Connection is a client's connection to the ZooKeeper port.
type Connection struct {
	Address     string     `json:"address,omitempty"`
	Identities  []Identity `json:"identities"` // without hashes
	Established time.Time  `json:"established"`
	LastHeard   *time.Time `json:"last_heard,omitempty"`
	Outstanding int        `json:"outstanding"` // requests without an answer
	Watches     []Watch    `json:"watches"`
}

// Watch is what one session watches on one path.
type Watch struct {
	Path    string   `json:"path,omitempty"`
	Session string   `json:"session,omitempty"`
	Kinds   []string `json:"kinds"`
}

// Watchers is who watches a path, by connections to the server that answers.
type Watchers struct {
	Path     string  `json:"path"`
	Watchers []Watch `json:"watchers"`
	More     bool    `json:"more"`
}

// Recipes are places where recipes are in use, those with the most waiters first.
type Recipes struct {
	Places []Place `json:"places"`
	// Deadlocks are circles of sessions, each waiting for a lock that the next one holds, the last for the first.
	Deadlocks [][]string `json:"deadlocks"`
	More      bool       `json:"more"` // there may be others
}

// Place is a znode below which a recipe has its own.
type Place struct {
	Path         string        `json:"path"`
	Kind         string        `json:"kind"`
	Participants int           `json:"participants"`
	Waiting      int           `json:"waiting"` // of them
	First        []Participant `json:"first"`   // holders, then waiters in their order
	More         bool          `json:"more"`
}

// Participant is a znode of a recipe. All but its path and state is for those who may read it.
type Participant struct {
	Path     string     `json:"path"`
	Session  string     `json:"session,omitempty"` // empty: it is no ephemeral
	Since    *time.Time `json:"since,omitempty"`
	Token    string     `json:"token,omitempty"`
	Read     bool       `json:"read,omitempty"` // it shares a read-write lock
	State    string     `json:"state"`
	WaitsFor []string   `json:"waits_for,omitempty"` // sessions
	Data     string     `json:"data,omitempty"`
}
