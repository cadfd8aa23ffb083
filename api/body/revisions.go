package body

// Origin is when and by whom a change was made.
type Origin struct {
	Zxid        string     `json:"zxid"`
	Time        string     `json:"time"`
	Session     string     `json:"session,omitempty"`
	Author      []Identity `json:"author"`
	Traceparent string     `json:"traceparent,omitempty"`
}

// Identity is one that a client has proved.
type Identity struct {
	Scheme string `json:"scheme"`
	ID     string `json:"id"`
}

// Revisions are values that a znode had, the newest first.
type Revisions struct {
	Path      string     `json:"path"`
	Since     string     `json:"since"` // what is older is not known
	Revisions []Revision `json:"revisions"`
	Next      string     `json:"next,omitempty"` // the after= of the next page
}

// Revision is the value that a change has left.
type Revision struct {
	*Origin         // nil: the change is older than what is known
	Event   string  `json:"event,omitempty"`
	Type    string  `json:"type,omitempty"`
	Version *int32  `json:"version,omitempty"`
	Data    *string `json:"data,omitempty"` // of a deleted znode, its last
	// Encoding is utf-8 or base64.
	Encoding string `json:"encoding,omitempty"`
	Purged   bool   `json:"purged,omitempty"` // the value was removed
}

// ZnodeAt is a znode at a moment.
type ZnodeAt struct {
	Path string `json:"path"`
	Revision
}

// Revert is what brings znodes back to their values at a moment.
type Revert struct {
	Path string `json:"path"`
	To   string `json:"to"`
	// Zxid is the transaction that has done it; of a plan, the newest one that it takes into account.
	Zxid    string     `json:"zxid"`
	Plan    bool       `json:"plan"` // nothing was changed
	Changes []Reverted `json:"changes"`
	Left    []Left     `json:"left"`
}

// Reverted is what becomes of a znode.
type Reverted struct {
	Action string `json:"action"` // set, create or delete
	Path   string `json:"path"`
}

// Left is a znode that stays as it is, although it has changed.
type Left struct {
	Path   string `json:"path"`
	Reason string `json:"reason"`
}
