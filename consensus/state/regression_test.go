package state

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// A reader of snapshots stopped at the last block, so that zstd never compared
// its checksum, which comes behind it: a snapshot cut off there was accepted,
// and one whose index or time was damaged, which the digest does not cover.
func TestRegression_Restore_ChecksumIsCompared(t *testing.T) {
	good := write(t, busy(t))
	if _, err := ReadSnapshot(bytes.NewReader(good[:len(good)-4])); err == nil {
		t.Error("a snapshot without zstd's checksum was accepted")
	}
	bad := bytes.Clone(good)
	bad[len(bad)-1] ^= 1
	if _, err := ReadSnapshot(bytes.NewReader(bad)); err == nil {
		t.Error("a snapshot with a wrong checksum was accepted")
	}
}

// Blocks behind the last one were not looked at either.
func TestRegression_Restore_NothingBehindTheEnd(t *testing.T) {
	good := write(t, New())
	z, err := zstd.NewReader(bytes.NewReader(good[len(snapshotMagic):]))
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	var plain, out bytes.Buffer
	if _, err := plain.ReadFrom(z); err != nil {
		t.Fatal(err)
	}
	out.WriteString(snapshotMagic)
	w, err := zstd.NewWriter(&out)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(append(plain.Bytes(), 0)); err != nil || w.Close() != nil {
		t.Fatal(err)
	}
	if _, err := ReadSnapshot(&out); err == nil {
		t.Error("a byte behind the last block was ignored")
	}
}

// CheckBatch, which keeps what cannot be applied out of the log, was stricter
// than Apply about bytes behind the last command, and neither minded bytes
// behind one command. Apply did not mind bytes behind the last batch.
func TestRegression_Apply_NothingBehindCommands(t *testing.T) {
	c := create("/a")
	body := c.Append(nil)
	for name, commands := range map[string][]byte{
		"behind the command": append(binary.AppendUvarint(nil, uint64(len(body)+1)), append(body, 0)...),
		"behind the batch":   append(AppendCommand(nil, &c), 0),
	} {
		g := Batch{Origin: Origin{1, 1}, First: 1, Count: 1, Commands: commands}
		if CheckBatch(&g) == nil {
			t.Errorf("%s: CheckBatch accepts it", name)
		}
		if New().Apply(1, 1, AppendEntry(nil, 1, []Batch{g}), &recorder{}) == nil {
			t.Errorf("%s: Apply accepts it", name)
		}
	}
}

// A count of 1<<63 and more became negative, which passed for a batch without
// commands in CheckBatch and for one without an end in Apply.
func TestRegression_Group_CountBeyondInt(t *testing.T) {
	for _, count := range []int{-1, -1 << 63} {
		g := Batch{Origin: Origin{1, 1}, First: 0, Count: count}
		if CheckBatch(&g) == nil {
			t.Errorf("count %d: CheckBatch accepts it", count)
		}
		if New().Apply(1, 1, AppendEntry(nil, 1, []Batch{g}), &recorder{}) == nil {
			t.Errorf("count %d: Apply accepts it", count)
		}
	}
}
