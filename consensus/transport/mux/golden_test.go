package mux

import (
	"testing"

	"github.com/zk-lite/zk-lite/internal/testkit/golden"
)

func TestGolden(t *testing.T) {
	golden.Check(t, "hello.bin", hello{kind: KindAppend, ensemble: [16]byte{1, 15: 16}, from: 1, to: 2}.append(nil))
	golden.Check(t, "answer.bin", appendAnswer(nil, &RefusedError{Code: RefusedVersion, Reason: "why"}))
}
