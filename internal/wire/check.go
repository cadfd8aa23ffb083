package wire

import (
	"github.com/zk-lite/zk-lite/internal/jute"
	"github.com/zk-lite/zk-lite/znode"
)

// CheckRequest is the body of check (CheckVersionRequest), which exists only
// inside a multi. With znode.AnyVersion it tests that the znode exists.
type CheckRequest struct {
	Path    string
	Version znode.Version // expected; znode.AnyVersion matches all
}

func (*CheckRequest) isRequest() {}

// Append appends the record to b.
func (c *CheckRequest) Append(b []byte) []byte {
	return jute.AppendInt32(jute.AppendUstring(b, c.Path), int32(c.Version))
}

// Decode reads the record.
func (c *CheckRequest) Decode(r *jute.Reader) {
	c.Path = r.Ustring()
	c.Version = znode.Version(r.Int32())
}
