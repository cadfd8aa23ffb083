package wire

import (
	"github.com/zk-lite/zk-lite/internal/jute"
	"github.com/zk-lite/zk-lite/znode"
)

// DeleteRequest is the body of delete.
type DeleteRequest struct {
	Path    string
	Version znode.Version // expected; znode.AnyVersion matches all
}

func (*DeleteRequest) isRequest() {}

// Append appends the record to b.
func (d *DeleteRequest) Append(b []byte) []byte {
	return jute.AppendInt32(jute.AppendUstring(b, d.Path), int32(d.Version))
}

// Decode reads the record.
func (d *DeleteRequest) Decode(r *jute.Reader) {
	d.Path = r.Ustring()
	d.Version = znode.Version(r.Int32())
}

// DeleteContainerRequest is the body of deleteContainer.
type DeleteContainerRequest struct {
	Path string
}

func (*DeleteContainerRequest) isRequest() {}

// Append appends the record to b.
func (d *DeleteContainerRequest) Append(b []byte) []byte { return jute.AppendUstring(b, d.Path) }

// Decode reads the record.
func (d *DeleteContainerRequest) Decode(r *jute.Reader) { d.Path = r.Ustring() }
