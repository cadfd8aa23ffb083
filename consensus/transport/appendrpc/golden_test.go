package appendrpc

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/hashicorp/raft"

	"github.com/zk-lite/zk-lite/internal/testkit/golden"
)

func TestGolden(t *testing.T) {
	req := requests()["full"]
	req.Entries[0].Data = []byte("short")
	request := encodeRequest(t, formRequest, req)
	var answer bytes.Buffer
	if err := writeAnswer(&answer, raft.RPCResponse{
		Response: &raft.AppendEntriesResponse{RPCHeader: header, Term: 5, LastLog: 9, Success: true},
	}); err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "request.bin", request)
	golden.Check(t, "answer.bin", answer.Bytes())

	request[4], answer.Bytes()[4] = 2, 2
	_, _, err := decodeRequest(request[4:])
	for _, err := range []error{err, decodeAnswer(answer.Bytes()[4:], &raft.AppendEntriesResponse{})} {
		if !errors.Is(err, ErrMalformed) || !strings.Contains(err.Error(), "has version 2, want 1") {
			t.Errorf("a version of the future: %v", err)
		}
	}
}
