package wire

import (
	"errors"
	"reflect"
	"testing"

	"github.com/zk-lite/zk-lite/internal/jute"
	"github.com/zk-lite/zk-lite/internal/testkit/seed"
	"github.com/zk-lite/zk-lite/znode"
)

func TestNewRequest_NewResponse_EveryClientRequestHasBoth(t *testing.T) {
	for _, op := range allOpCodes() {
		req, resp := NewRequest(op), NewResponse(op)
		wantReq := op.ClientRequest() || op == OpCheck
		if (req != nil) != wantReq {
			t.Errorf("NewRequest(%s) = %T", op, req)
		}
		if (resp != nil) != op.ClientRequest() {
			t.Errorf("NewResponse(%s) = %T", op, resp)
		}
		if op.InMulti() && op.InMultiRead() {
			t.Errorf("%s is in both kinds of multi", op)
		}
	}
}

func TestOpCode_String_NamesWhatItKnows(t *testing.T) {
	for _, op := range allOpCodes() {
		unknown := op == 10 || op >= 23 && op <= 99 || op > 107 && op < OpFeed
		if got := op.String()[:2] == "un"; got != unknown {
			t.Errorf("%d is %s", int32(op), op)
		}
	}
	if got := OpCode(10).String(); got != "unknown(10)" {
		t.Errorf("got %s", got)
	}
}

func TestOpCode_Write_IsTheTransactions(t *testing.T) {
	for _, op := range allOpCodes() {
		want := op.InMulti() && op != OpCheck
		switch op {
		case OpSetACL, OpMulti, OpBranch, OpReconfig, OpCreateSession, OpCloseSession, OpDeleteContainer:
			want = true
		}
		if op.Write() != want {
			t.Errorf("%s: Write() = %v", op, op.Write())
		}
	}
}

func TestXid_String_NamesTheSpecialOnes(t *testing.T) {
	for x, want := range map[Xid]string{
		-1: "notification", -2: "ping", -4: "auth", -8: "setWatches", 7: "7", -3: "-3",
	} {
		if got := x.String(); got != want {
			t.Errorf("Xid(%d) is %s, want %s", int32(x), got, want)
		}
	}
}

func TestParseRequest_ReportsWhatWasWrong(t *testing.T) {
	tests := []struct {
		name, hex string
		header    RequestHeader
		want      error
	}{
		{"empty", "", RequestHeader{}, znode.ErrMarshalling},
		{"short header", "00000001 000000", RequestHeader{}, znode.ErrMarshalling},
		{"unknown type", "00000001 0000000a", RequestHeader{1, 10}, znode.ErrUnimplemented},
		{"notification", "00000001 00000000", RequestHeader{1, 0}, znode.ErrUnimplemented},
		{"check", "00000001 0000000d" + hexA + "00000000", RequestHeader{1, OpCheck},
			znode.ErrUnimplemented},
		{"createSession", "00000001 fffffff6 00000000", RequestHeader{1, OpCreateSession},
			znode.ErrUnimplemented},
		{"short body", "00000001 00000004" + hexA, RequestHeader{1, OpGetData},
			znode.ErrMarshalling},
		{"negative length", "00000001 00000004 fffffffe 00", RequestHeader{1, OpGetData},
			jute.ErrNegativeLength},
		{"huge vector", "00000001 00000065 0000000000000000 7fffffff",
			RequestHeader{1, OpSetWatches}, jute.ErrCountTooLarge},
	}
	for _, tt := range tests {
		h, body, err := ParseRequest(unhex(t, tt.hex))
		if h != tt.header || body != nil || !errors.Is(err, tt.want) {
			t.Errorf("%s: got %+v, %+v, %v", tt.name, h, body, err)
		}
	}
}

func TestParseReply_NoBodyAfterError(t *testing.T) {
	h, body, err := ParseReply(unhex(t, "00000001 0000000000000002 ffffff9b"), OpGetData)
	want := ReplyHeader{Xid: 1, Zxid: 2, Err: znode.ErrNoNode}
	if h != want || body != nil || err != nil {
		t.Errorf("got %+v, %v, %v", h, body, err)
	}
}

func TestParseReply_ReportsWhatWasWrong(t *testing.T) {
	header := "00000001 0000000000000002 00000000"
	if _, _, err := ParseReply(unhex(t, header)[:15], OpGetData); !errors.Is(err, jute.ErrTruncated) {
		t.Errorf("short header: %v", err)
	}
	if _, _, err := ParseReply(unhex(t, header), OpGetData); !errors.Is(err, jute.ErrTruncated) {
		t.Errorf("no body: %v", err)
	}
	if _, _, err := ParseReply(unhex(t, header), 10); !errors.Is(err, znode.ErrUnimplemented) {
		t.Errorf("unknown type: %v", err)
	}
}

func TestAppendRequest_AppendReply_ParseBack(t *testing.T) {
	rng := seed.Rand(t)
	for _, op := range allOpCodes() {
		if !op.ClientRequest() {
			continue
		}
		req, resp := NewRequest(op), NewResponse(op)
		randomize(rng, req)
		randomize(rng, resp)
		reqHeader := RequestHeader{Xid: 5, Type: op}
		frame := AppendRequest(nil, reqHeader, req)
		h, body, err := ParseRequest(frame[FrameLengthBytes:])
		if h != reqHeader || err != nil || !reflect.DeepEqual(body, req) {
			t.Errorf("%s request: got %+v, %+v, %v; want %+v", op, h, body, err, req)
		}
		replyHeader := ReplyHeader{Xid: 5, Zxid: 6}
		frame = AppendReply(nil, replyHeader, resp)
		rh, reply, err := ParseReply(frame[FrameLengthBytes:], op)
		if rh != replyHeader || err != nil || !reflect.DeepEqual(reply, resp) {
			t.Errorf("%s reply: got %+v, %+v, %v; want %+v", op, rh, reply, err, resp)
		}
	}
}

func TestAppendReply_LeavesOutTheBodyOfAnError(t *testing.T) {
	frame := AppendReply(nil, ReplyHeader{Err: znode.ErrNoNode}, &CreateResponse{Path: "/a"})
	if len(frame) != FrameLengthBytes+ReplyHeaderBytes {
		t.Errorf("got %x", frame)
	}
}

func TestDecodeACLs_OpenACLIsShared(t *testing.T) {
	r := jute.NewReader(AppendACLs(nil, znode.OpenACL))
	if got := DecodeACLs(r); &got[0] != &znode.OpenACL[0] || r.Remaining() != 0 {
		t.Errorf("got %v, %d bytes left", got, r.Remaining())
	}
}
