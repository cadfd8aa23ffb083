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

// Subtrees is the largest subtrees at and below a znode, each with its znodes; watches are this server's.
type Subtrees struct {
	Server   int       `json:"server"`
	By       string    `json:"by"`
	Subtrees []Subtree `json:"subtrees"`
	LeftOut  []string  `json:"left_out,omitempty"` // znodes of which not all children were looked at
	Missed   int64     `json:"missed,omitempty"`   // a subtree with so many watches, or less, may be missing
}

// Subtree is a znode and all below it.
type Subtree struct {
	Path    string `json:"path"`
	Znodes  int64  `json:"znodes"`
	Bytes   int64  `json:"bytes"` // of data
	Watches int64  `json:"watches"`
}

// Rights is what a client may do with a znode.
type Rights struct {
	Path   string  `json:"path"`
	Rights []Right `json:"rights"`
}

// Right is whether a client may do one thing.
type Right struct {
	Operation string `json:"operation"`
	May       *bool  `json:"may,omitempty"` // nil: the asker may not read the ACL
	Needs     string `json:"needs"`         // the permission's letter
	Of        string `json:"of"`            // the znode whose ACL decides
	Entry     string `json:"entry,omitempty"`
	Why       string `json:"why"`
}
