package wire

import (
	"time"

	"github.com/zk-lite/zk-lite/internal/jute"
	"github.com/zk-lite/zk-lite/znode"
)

// CreateRequest is the body of create, create2 and createContainer, which
// differ in the opcode alone. createContainer makes a container in any Mode.
type CreateRequest struct {
	Path string
	Data []byte      // nil is null
	ACL  []znode.ACL // nil is null
	Mode znode.Mode  // as sent: the receiver checks it
}

func (*CreateRequest) isRequest() {}

// Append appends the record to b.
func (c *CreateRequest) Append(b []byte) []byte {
	b = jute.AppendUstring(b, c.Path)
	b = jute.AppendBuffer(b, c.Data)
	b = AppendACLs(b, c.ACL)
	return jute.AppendInt32(b, int32(c.Mode))
}

// Decode reads the record.
func (c *CreateRequest) Decode(r *jute.Reader) {
	c.Path = r.Ustring()
	c.Data = r.Buffer()
	c.ACL = DecodeACLs(r)
	c.Mode = znode.Mode(r.Int32())
}

// CreateTTLRequest is the body of createTTL.
type CreateTTLRequest struct {
	Path      string
	Data      []byte      // nil is null
	ACL       []znode.ACL // nil is null
	Mode      znode.Mode  // as sent: the receiver checks it
	TTLMillis int64       // time to live
}

func (*CreateTTLRequest) isRequest() {}

// Append appends the record to b.
func (c *CreateTTLRequest) Append(b []byte) []byte {
	b = jute.AppendUstring(b, c.Path)
	b = jute.AppendBuffer(b, c.Data)
	b = AppendACLs(b, c.ACL)
	b = jute.AppendInt32(b, int32(c.Mode))
	return jute.AppendInt64(b, c.TTLMillis)
}

// Decode reads the record.
func (c *CreateTTLRequest) Decode(r *jute.Reader) {
	c.Path = r.Ustring()
	c.Data = r.Buffer()
	c.ACL = DecodeACLs(r)
	c.Mode = znode.Mode(r.Int32())
	c.TTLMillis = r.Int64()
}

// CreateResponse is the reply to create.
type CreateResponse struct {
	Path string // final: with the sequence number, if any
}

func (*CreateResponse) isResponse() {}

// Append appends the record to b.
func (c *CreateResponse) Append(b []byte) []byte { return jute.AppendUstring(b, c.Path) }

// Decode reads the record.
func (c *CreateResponse) Decode(r *jute.Reader) { c.Path = r.Ustring() }

// Create2Response is the reply to create2, createContainer and createTTL.
type Create2Response struct {
	Path string // final: with the sequence number, if any
	Stat znode.Stat
}

func (*Create2Response) isResponse() {}

// Append appends the record to b.
func (c *Create2Response) Append(b []byte) []byte {
	return AppendStat(jute.AppendUstring(b, c.Path), &c.Stat)
}

// Decode reads the record.
func (c *Create2Response) Decode(r *jute.Reader) {
	c.Path = r.Ustring()
	DecodeStat(r, &c.Stat)
}

// SetDataRequest is the body of setData.
type SetDataRequest struct {
	Path    string
	Data    []byte        // nil is null
	Version znode.Version // expected; znode.AnyVersion matches all
}

func (*SetDataRequest) isRequest() {}

// Append appends the record to b.
func (s *SetDataRequest) Append(b []byte) []byte {
	b = jute.AppendUstring(b, s.Path)
	b = jute.AppendBuffer(b, s.Data)
	return jute.AppendInt32(b, int32(s.Version))
}

// Decode reads the record.
func (s *SetDataRequest) Decode(r *jute.Reader) {
	s.Path = r.Ustring()
	s.Data = r.Buffer()
	s.Version = znode.Version(r.Int32())
}

// SetDataResponse is the reply to setData.
type SetDataResponse struct {
	Stat znode.Stat
}

func (*SetDataResponse) isResponse() {}

// Append appends the record to b.
func (s *SetDataResponse) Append(b []byte) []byte { return AppendStat(b, &s.Stat) }

// Decode reads the record.
func (s *SetDataResponse) Decode(r *jute.Reader) { DecodeStat(r, &s.Stat) }

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

// SetACLRequest is the body of setACL.
type SetACLRequest struct {
	Path    string
	ACL     []znode.ACL   // nil is null
	Version znode.Version // expected aversion; znode.AnyVersion matches all
}

func (*SetACLRequest) isRequest() {}

// Append appends the record to b.
func (s *SetACLRequest) Append(b []byte) []byte {
	b = jute.AppendUstring(b, s.Path)
	b = AppendACLs(b, s.ACL)
	return jute.AppendInt32(b, int32(s.Version))
}

// Decode reads the record.
func (s *SetACLRequest) Decode(r *jute.Reader) {
	s.Path = r.Ustring()
	s.ACL = DecodeACLs(r)
	s.Version = znode.Version(r.Int32())
}

// SetACLResponse is the reply to setACL.
type SetACLResponse struct {
	Stat znode.Stat
}

func (*SetACLResponse) isResponse() {}

// Append appends the record to b.
func (s *SetACLResponse) Append(b []byte) []byte { return AppendStat(b, &s.Stat) }

// Decode reads the record.
func (s *SetACLResponse) Decode(r *jute.Reader) { DecodeStat(r, &s.Stat) }

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

// SyncRequest is the body of sync.
type SyncRequest struct {
	Path string // echoed, not looked up
}

func (*SyncRequest) isRequest() {}

// Append appends the record to b.
func (s *SyncRequest) Append(b []byte) []byte { return jute.AppendUstring(b, s.Path) }

// Decode reads the record.
func (s *SyncRequest) Decode(r *jute.Reader) { s.Path = r.Ustring() }

// SyncResponse is the reply to sync.
type SyncResponse struct {
	Path string // that of the request
}

func (*SyncResponse) isResponse() {}

// Append appends the record to b.
func (s *SyncResponse) Append(b []byte) []byte { return jute.AppendUstring(b, s.Path) }

// Decode reads the record.
func (s *SyncResponse) Decode(r *jute.Reader) { s.Path = r.Ustring() }

// ReconfigRequest is the body of reconfig. The three lists are separated by
// commas; nil is null, which differs from an empty list: the change is
// incremental if and only if NewMembers is null.
type ReconfigRequest struct {
	JoiningServers *string
	LeavingServers *string
	NewMembers     *string
	CurConfigID    int64 // expected version of the configuration; -1 matches all
}

func (*ReconfigRequest) isRequest() {}

// Append appends the record to b.
func (c *ReconfigRequest) Append(b []byte) []byte {
	b = jute.AppendNullableUstring(b, c.JoiningServers)
	b = jute.AppendNullableUstring(b, c.LeavingServers)
	b = jute.AppendNullableUstring(b, c.NewMembers)
	return jute.AppendInt64(b, c.CurConfigID)
}

// Decode reads the record.
func (c *ReconfigRequest) Decode(r *jute.Reader) {
	c.JoiningServers = r.NullableUstring()
	c.LeavingServers = r.NullableUstring()
	c.NewMembers = r.NullableUstring()
	c.CurConfigID = r.Int64()
}

// ReconfigResponse is the reply to reconfig: the znode of the configuration, in
// the layout of a reply to getData.
type ReconfigResponse struct {
	Data []byte // nil is null
	Stat znode.Stat
}

func (*ReconfigResponse) isResponse() {}

// Append appends the record to b.
func (c *ReconfigResponse) Append(b []byte) []byte {
	return AppendStat(jute.AppendBuffer(b, c.Data), &c.Stat)
}

// Decode reads the record.
func (c *ReconfigResponse) Decode(r *jute.Reader) {
	c.Data = r.Buffer()
	DecodeStat(r, &c.Stat)
}

// SyncWithinRequest is the body of syncWithin, which is a sync unless the server's state is known to have everything
// that was acknowledged MaxStale ago.
type SyncWithinRequest struct{ MaxStale time.Duration }

func (*SyncWithinRequest) isRequest() {}

// Append appends the record to b.
func (q *SyncWithinRequest) Append(b []byte) []byte { return jute.AppendInt64(b, int64(q.MaxStale)) }

// Decode reads the record.
func (q *SyncWithinRequest) Decode(r *jute.Reader) { q.MaxStale = time.Duration(r.Int64()) }

// SyncWithinResponse is the reply to syncWithin: the state has everything that was acknowledged so long before.
type SyncWithinResponse struct{ Staleness time.Duration }

func (*SyncWithinResponse) isResponse() {}

// Append appends the record to b.
func (p *SyncWithinResponse) Append(b []byte) []byte { return jute.AppendInt64(b, int64(p.Staleness)) }

// Decode reads the record.
func (p *SyncWithinResponse) Decode(r *jute.Reader) { p.Staleness = time.Duration(r.Int64()) }
