package wire

import (
	"github.com/zk-lite/zk-lite/internal/jute"
	"github.com/zk-lite/zk-lite/znode"
)

// GetDataRequest is the body of getData.
type GetDataRequest struct {
	Path  string
	Watch bool // also set a watch, if the call succeeds
}

func (*GetDataRequest) isRequest() {}

// Append appends the record to b.
func (g *GetDataRequest) Append(b []byte) []byte {
	return jute.AppendBool(jute.AppendUstring(b, g.Path), g.Watch)
}

// Decode reads the record.
func (g *GetDataRequest) Decode(r *jute.Reader) {
	g.Path = r.Ustring()
	g.Watch = r.Bool()
}

// GetDataResponse is the reply to getData.
type GetDataResponse struct {
	Data []byte // nil is null
	Stat znode.Stat
}

func (*GetDataResponse) isResponse() {}

// Append appends the record to b.
func (g *GetDataResponse) Append(b []byte) []byte {
	return AppendStat(jute.AppendBuffer(b, g.Data), &g.Stat)
}

// Decode reads the record.
func (g *GetDataResponse) Decode(r *jute.Reader) {
	g.Data = r.Buffer()
	DecodeStat(r, &g.Stat)
}

// ExistsRequest is the body of exists.
type ExistsRequest struct {
	Path  string
	Watch bool // also set a watch, even if the znode is missing
}

func (*ExistsRequest) isRequest() {}

// Append appends the record to b.
func (e *ExistsRequest) Append(b []byte) []byte {
	return jute.AppendBool(jute.AppendUstring(b, e.Path), e.Watch)
}

// Decode reads the record.
func (e *ExistsRequest) Decode(r *jute.Reader) {
	e.Path = r.Ustring()
	e.Watch = r.Bool()
}

// ExistsResponse is the reply to exists.
type ExistsResponse struct {
	Stat znode.Stat
}

func (*ExistsResponse) isResponse() {}

// Append appends the record to b.
func (e *ExistsResponse) Append(b []byte) []byte { return AppendStat(b, &e.Stat) }

// Decode reads the record.
func (e *ExistsResponse) Decode(r *jute.Reader) { DecodeStat(r, &e.Stat) }

// GetChildrenRequest is the body of getChildren and getChildren2.
type GetChildrenRequest struct {
	Path  string
	Watch bool // also set a watch, if the call succeeds
}

func (*GetChildrenRequest) isRequest() {}

// Append appends the record to b.
func (g *GetChildrenRequest) Append(b []byte) []byte {
	return jute.AppendBool(jute.AppendUstring(b, g.Path), g.Watch)
}

// Decode reads the record.
func (g *GetChildrenRequest) Decode(r *jute.Reader) {
	g.Path = r.Ustring()
	g.Watch = r.Bool()
}

// GetChildrenResponse is the reply to getChildren.
type GetChildrenResponse struct {
	Children []string // names, not paths
}

func (*GetChildrenResponse) isResponse() {}

// Append appends the record to b.
func (g *GetChildrenResponse) Append(b []byte) []byte {
	return jute.AppendUstrings(b, g.Children)
}

// Decode reads the record.
func (g *GetChildrenResponse) Decode(r *jute.Reader) { g.Children = r.Ustrings() }

// GetChildren2Response is the reply to getChildren2.
type GetChildren2Response struct {
	Children []string // names, not paths
	Stat     znode.Stat
}

func (*GetChildren2Response) isResponse() {}

// Append appends the record to b.
func (g *GetChildren2Response) Append(b []byte) []byte {
	return AppendStat(jute.AppendUstrings(b, g.Children), &g.Stat)
}

// Decode reads the record.
func (g *GetChildren2Response) Decode(r *jute.Reader) {
	g.Children = r.Ustrings()
	DecodeStat(r, &g.Stat)
}

// GetACLRequest is the body of getACL.
type GetACLRequest struct {
	Path string
}

func (*GetACLRequest) isRequest() {}

// Append appends the record to b.
func (g *GetACLRequest) Append(b []byte) []byte { return jute.AppendUstring(b, g.Path) }

// Decode reads the record.
func (g *GetACLRequest) Decode(r *jute.Reader) { g.Path = r.Ustring() }

// GetACLResponse is the reply to getACL.
type GetACLResponse struct {
	ACL  []znode.ACL // nil is null
	Stat znode.Stat
}

func (*GetACLResponse) isResponse() {}

// Append appends the record to b.
func (g *GetACLResponse) Append(b []byte) []byte {
	return AppendStat(AppendACLs(b, g.ACL), &g.Stat)
}

// Decode reads the record.
func (g *GetACLResponse) Decode(r *jute.Reader) {
	g.ACL = DecodeACLs(r)
	DecodeStat(r, &g.Stat)
}

// GetAllChildrenNumberRequest is the body of getAllChildrenNumber.
type GetAllChildrenNumberRequest struct {
	Path string
}

func (*GetAllChildrenNumberRequest) isRequest() {}

// Append appends the record to b.
func (g *GetAllChildrenNumberRequest) Append(b []byte) []byte {
	return jute.AppendUstring(b, g.Path)
}

// Decode reads the record.
func (g *GetAllChildrenNumberRequest) Decode(r *jute.Reader) { g.Path = r.Ustring() }

// GetAllChildrenNumberResponse is the reply to getAllChildrenNumber.
type GetAllChildrenNumberResponse struct {
	TotalNumber int32 // znodes below the path, at any depth
}

func (*GetAllChildrenNumberResponse) isResponse() {}

// Append appends the record to b.
func (g *GetAllChildrenNumberResponse) Append(b []byte) []byte {
	return jute.AppendInt32(b, g.TotalNumber)
}

// Decode reads the record.
func (g *GetAllChildrenNumberResponse) Decode(r *jute.Reader) { g.TotalNumber = r.Int32() }

// GetEphemeralsRequest is the body of getEphemerals.
type GetEphemeralsRequest struct {
	PrefixPath string // compared as text, not by the path's names
}

func (*GetEphemeralsRequest) isRequest() {}

// Append appends the record to b.
func (g *GetEphemeralsRequest) Append(b []byte) []byte {
	return jute.AppendUstring(b, g.PrefixPath)
}

// Decode reads the record.
func (g *GetEphemeralsRequest) Decode(r *jute.Reader) { g.PrefixPath = r.Ustring() }

// GetEphemeralsResponse is the reply to getEphemerals.
type GetEphemeralsResponse struct {
	Ephemerals []string // paths of the session's own ephemerals
}

func (*GetEphemeralsResponse) isResponse() {}

// Append appends the record to b.
func (g *GetEphemeralsResponse) Append(b []byte) []byte {
	return jute.AppendUstrings(b, g.Ephemerals)
}

// Decode reads the record.
func (g *GetEphemeralsResponse) Decode(r *jute.Reader) { g.Ephemerals = r.Ustrings() }
