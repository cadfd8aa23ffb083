package backupfile

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/znode"
)

// made is a backup as servers write it.
func made(t testing.TB) []byte {
	t.Helper()
	m := state.New()
	create := state.AppendCommand(nil, &state.Command{Op: state.OpCreate, Path: "/a", ACL: znode.OpenACL})
	batch := state.Batch{Origin: state.Origin{Server: 1, Incarnation: 1}, First: 1, Count: 1, Commands: create}
	entry := state.AppendEntry(nil, 1_700_000_000_000, []state.Batch{batch})
	if err := m.Apply(7, 3, entry, state.Unobserved{}); err != nil {
		t.Fatal(err)
	}
	s := m.Snapshot()
	defer s.Release()
	var b bytes.Buffer
	if err := s.WriteBackup(&b, [16]byte{5}); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func nothing() {}

// count is how many znodes there are, by the state's own account.
func count(m *state.Machine) int {
	s := m.Tree().Snapshot()
	defer s.Release()
	return s.Len()
}

// The servers' own reader agrees on what a whole backup is.
func TestCheck_Whole_TellsWhatIsInIt(t *testing.T) {
	b := made(t)
	m, err := state.ReadSnapshot(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	steps := 0
	s, err := Check(bytes.NewReader(b), func() { steps++ })
	if err != nil || s.Znodes != uint64(count(m)) || s.Zxid != int64(m.Zxid()) || s.Zxid == 0 ||
		s.Time.UnixMilli() != 1_700_000_000_000 || s.Ensemble != (Ensemble{5}) || steps != count(m) {
		t.Errorf("%+v, %d steps, %v; want %d znodes at %v", s, steps, err, count(m), m.Zxid())
	}
}

// Cut off anywhere, it is not taken for whole; nor with more behind it.
func TestCheck_CutOffAnywhere_Refuses(t *testing.T) {
	b := made(t)
	for n := range b {
		_, err := Check(bytes.NewReader(b[:n]), nothing)
		want := ErrDamaged
		if n < len(magicName) {
			want = ErrNoBackup
		}
		if !errors.Is(err, want) {
			t.Errorf("%d of %d bytes: %v", n, len(b), err)
		}
	}
	if _, err := Check(bytes.NewReader(append(bytes.Clone(b), 0)), nothing); !errors.Is(err, ErrDamaged) {
		t.Errorf("with a byte more: %v", err)
	}
}

// A byte changed anywhere is found out by zstd's checksum, unless the change means
// nothing: some bits of zstd's header and of its codes do not.
func TestCheck_ByteChanged_Refuses(t *testing.T) {
	b := made(t)
	want := unpacked(t, b)
	for n := range b {
		c := bytes.Clone(b)
		c[n] ^= 1
		_, err := Check(bytes.NewReader(c), nothing)
		if err == nil && bytes.Equal(unpacked(t, c), want) {
			continue
		}
		if !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrNoBackup) {
			t.Errorf("byte %d of %d: %v", n, len(b), err)
		}
	}
}

// unpacked is what is compressed in a backup.
func unpacked(t *testing.T, b []byte) []byte {
	t.Helper()
	z, err := zstd.NewReader(bytes.NewReader(b[state.BackupHead:]))
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	text, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestCheck_SomethingElse_SaysSo(t *testing.T) {
	for _, text := range []string{"", "{}", "PK\x03\x04 something", "zkls\x00\x06 of the future"} {
		if _, err := Check(bytes.NewReader([]byte(text)), nothing); !errors.Is(err, ErrNoBackup) {
			t.Errorf("%q: %v", text, err)
		}
	}
	broken := io.MultiReader(bytes.NewReader(made(t)[:40]), failing{})
	if _, err := Check(broken, nothing); !errors.Is(err, errBroken) {
		t.Errorf("%v", err)
	}
}

type failing struct{}

var errBroken = errors.New("broken")

func (failing) Read([]byte) (int, error) { return 0, errBroken }

// Nothing breaks Check, and whatever a server would restore it takes for whole. Only
// the servers do not look at what stands behind the last block.
func FuzzCheck(f *testing.F) {
	b := made(f)
	f.Add(b)
	f.Add(b[:len(b)/2])
	f.Add([]byte(magic))
	f.Add([]byte("zkls\x00\x05\x28\xb5\x2f\xfd"))
	relabelled := bytes.Clone(b)
	relabelled[len(magic)]++ // another frame that zstd skips
	f.Add(relabelled)
	f.Fuzz(func(t *testing.T, b []byte) {
		_, err := Check(bytes.NewReader(b), nothing)
		if err == nil || errors.Is(err, errMore) {
			return
		}
		if _, restored := state.ReadSnapshot(bytes.NewReader(b)); restored == nil {
			t.Errorf("a server takes what Check refuses: %v", err)
		}
	})
}
