package body

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
