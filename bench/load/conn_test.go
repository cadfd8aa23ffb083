package load

import (
	"bufio"
	"bytes"
	"testing"

	"github.com/zk-lite/zk-lite/internal/wire"
	"github.com/zk-lite/zk-lite/znode"
)

// FuzzConn_Read: whatever a server sends ends in replies or an error.
func FuzzConn_Read(f *testing.F) {
	f.Add(wire.AppendReply(nil, wire.ReplyHeader{Xid: 1}, &wire.SetDataResponse{}))
	f.Add(wire.AppendReply(nil, wire.ReplyHeader{Xid: wire.XidPing}, nil))
	f.Add([]byte{0, 0, 0, 3, 1, 2, 3})
	f.Add([]byte{0xff, 0xff, 0xff, 0xff})
	f.Add([]byte{0, 2, 0, 0, 1})
	f.Fuzz(func(t *testing.T, in []byte) {
		c := &conn{nc: &scripted{in: bytes.NewReader(in)}}
		c.r = bufio.NewReaderSize(c.nc, 64)
		for range in {
			c.ready()
			a, err := c.read()
			if err != nil {
				return
			}
			_ = multiError(a.body)
		}
	})
}

func TestConn_Read_LargerThanTheBuffer(t *testing.T) {
	data := bytes.Repeat([]byte("x"), 3*readBytes)
	in := wire.AppendReply(nil, wire.ReplyHeader{Xid: 5, Zxid: 9}, &wire.GetDataResponse{Data: data})
	in = wire.AppendReply(in, wire.ReplyHeader{Xid: 6, Err: znode.ErrNoNode}, nil)
	c := &conn{nc: &scripted{in: bytes.NewReader(in)}}
	c.r = bufio.NewReaderSize(c.nc, readBytes)
	a, err := c.read()
	if err != nil || a.Xid != 5 || a.Zxid != 9 || !bytes.Contains(a.body, data) {
		t.Errorf("xid %d, %d bytes, %v", a.Xid, len(a.body), err)
	}
	if a, err = c.read(); err != nil || a.Xid != 6 || a.Err != znode.ErrNoNode {
		t.Errorf("xid %d, error %v, %v", a.Xid, a.Err, err)
	}
	if c.session.zxid != 9 {
		t.Errorf("largest zxid %d, want 9", c.session.zxid)
	}
}

func TestMultiError_FindsTheOneToBlame(t *testing.T) {
	for _, c := range []struct {
		results []wire.MultiResult
		want    error
	}{
		{nil, nil},
		{[]wire.MultiResult{{Type: wire.OpSetData, Response: &wire.SetDataResponse{}}}, nil},
		{[]wire.MultiResult{wire.MultiError(znode.OK), wire.MultiError(znode.ErrNoNode),
			wire.MultiError(znode.ErrRuntimeInconsistency)}, znode.ErrNoNode},
	} {
		body := (&wire.MultiResponse{Results: c.results}).Append(nil)
		if got := multiError(body); got != c.want {
			t.Errorf("%v: %v, want %v", c.results, got, c.want)
		}
	}
	if multiError(nil) == nil {
		t.Error("an answer without results is taken for a good one")
	}
}
