package state

import (
	"bytes"
	"strings"
	"testing"

	"github.com/zk-lite/zk-lite/internal/testkit/golden"
)

func TestGolden_Entry(t *testing.T) {
	for name, commands := range map[string][]Command{"entry.bin": firstExamples(), "mirror.bin": mirrorExamples(),
		"reconfig.bin": reconfigExamples(), "traced.bin": tracedExamples(), "branch.bin": branchExamples()} {
		golden.Check(t, name, AppendEntry(nil, 1_700_000_000_000,
			[]Batch{newRig(t).batch(Origin{Server: 3, Incarnation: 7}, commands...)}))
	}
}

// A snapshot's bytes depend on the compressor; its content must not.
func TestGolden_Snapshot(t *testing.T) {
	g := newRig(t)
	g.m.Configure(1, 1, map[ServerID]bool{1: true}, g.rec)
	g.must(1, Command{Op: OpMember, Member: Member{ID: 1, Peer: "h:1:2", Version: "0.9.0", Commit: "c", MinLevel: 1, MaxLevel: 1}})
	g.must(1, Command{Op: OpCreateSession, Session: 0x0100000000000005, Timeout: 4e9})
	keyed := create("/a")
	keyed.Flags, keyed.Key = FlagKeyed, "key"
	g.must(1, keyed)
	g.do(1, Command{Op: OpRestore, Data: []byte("part"), Restore: RestoreCommand{Upload: 7}})
	m, err := ReadSnapshot(bytes.NewReader(golden.Read(t, "snapshot.bin", write(t, g.m))))
	if err != nil {
		t.Fatal(err)
	}
	if m.Digest() != g.m.Digest() || m.Index() != g.m.Index() || m.Level() != 1 || m.upload == nil {
		t.Errorf("the format of snapshots has changed: give it another version, and see docs/formats.md; "+
			"level %d, upload %v", m.Level(), m.upload)
	}
}

// So with the state that a leader uploads, and with the snapshot of a mirror.
func TestGolden_Mirror(t *testing.T) {
	s, g := mirroring(t)
	var b bytes.Buffer
	if err := WriteMirrored(&b, s.r); err != nil {
		t.Fatal(err)
	}
	r, err := readMirrored(bytes.NewReader(golden.Read(t, "mirrored.bin", b.Bytes())))
	if err != nil || r.Digest() != s.r.Digest() || r.Zxid != s.r.Zxid || r.Sessions.Len() != 1 {
		t.Errorf("the state that is uploaded has another format (%v): give it another version, and see docs/formats.md", err)
	}
	m, err := ReadSnapshot(bytes.NewReader(golden.Read(t, "mirror-snapshot.bin", write(t, g.m))))
	if err != nil || m.Digest() != g.m.Digest() || m.mirror == nil || m.mirror.Mirror != g.m.mirror.Mirror {
		t.Errorf("the snapshot of a mirror has another format (%v): give it another version, and see docs/formats.md", err)
	}
}

// Versions that this build does not know are refused by name.
func TestVersions_Unknown_AreRefused(t *testing.T) {
	read := func(magic string) error {
		_, err := ReadSnapshot(strings.NewReader(magic))
		return err
	}
	c := create("/a")
	command := AppendCommand(nil, &c)
	command[2] = 9 // after the length
	entry := func(version byte) []byte {
		b := AppendEntry(nil, 5, []Batch{{Origin: Origin{1, 1}, First: 1, Count: 1, Commands: command}})
		b[0] = version
		return b
	}
	for want, err := range map[string]error{
		"version 4, of a build before v0.9":                   read("zkls\x00\x04"),
		"version 6, of a newer release":                       read("zkls\x00\x06"),
		"not a snapshot":                                      read("PK\x03\x04\x00\x00"),
		"entry has version 3, this server reads version 2":    New().Apply(1, 1, entry(3), &recorder{}),
		"command has version 9, this server reads version 1":  New().Apply(1, 1, entry(2), &recorder{}),
		"command has version 9, this server reads version 1 ": CheckBatch(&Batch{Origin: Origin{1, 1}, First: 1, Count: 1, Commands: command}),
	} {
		if err == nil || !strings.Contains(err.Error(), strings.TrimSpace(want)) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
