package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/spf13/cobra"

	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/znode"
)

const (
	ensembleID = "30313233343536373839616263646566"
	otherID    = "ffffffffffffffffffffffffffffffff"
)

// backupOf is the backup of an ensemble with some znodes, as servers write it.
func backupOf(t *testing.T, ensemble string, change ...state.Command) []byte {
	t.Helper()
	m := state.New()
	var all []byte
	for i := range 200 {
		all = state.AppendCommand(all, &state.Command{Op: state.OpCreate, Path: "/z" + strings.Repeat("x", i),
			Data: bytes.Repeat([]byte{byte(i * i), byte(i)}, 40), ACL: znode.OpenACL})
	}
	for i := range change {
		all = state.AppendCommand(all, &change[i])
	}
	batch := state.Batch{Origin: state.Origin{Server: 1, Incarnation: 1}, First: 1, Count: 200 + len(change),
		Commands: all}
	if err := m.Apply(1, 1, state.AppendEntry(nil, 1_700_000_000_000, []state.Batch{batch}), state.Unobserved{}); err != nil {
		t.Fatal(err)
	}
	s := m.Snapshot()
	defer s.Release()
	var b bytes.Buffer
	if err := s.WriteBackup(&b, [16]byte([]byte(ensemble))); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// runCLI runs a command, and returns its exit code and output.
func runCLI(args ...string) (code int, out string) {
	root := &cobra.Command{SilenceErrors: true, SilenceUsage: true}
	AddCommands(root, nil, nil)
	var b bytes.Buffer
	root.SetOut(&b)
	root.SetErr(&b)
	root.SetArgs(args)
	err := root.Execute()
	if err != nil {
		b.WriteString(Message(err))
	}
	return ExitCode(err), b.String()
}

// rewritten is a backup whose znodes were changed, and all of zstd's checksums with them.
func rewritten(t *testing.T, b []byte, change func([]byte)) []byte {
	t.Helper()
	z, err := zstd.NewReader(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	text, err := z.DecodeAll(b[state.BackupHead:], nil)
	if err != nil {
		t.Fatal(err)
	}
	change(text)
	w, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	return w.EncodeAll(text, slices.Clone(b[:state.BackupHead]))
}

// damagedBody is a backup with a flipped bit behind its middle that makes a difference: zstd has bits without a meaning.
func damagedBody(t *testing.T, b []byte) []byte {
	t.Helper()
	z, err := zstd.NewReader(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	for at := len(b) / 2; at < len(b); at++ {
		damaged := slices.Clone(b)
		damaged[at] ^= 0x10
		if _, err := z.DecodeAll(damaged[state.BackupHead:], nil); err != nil {
			return damaged
		}
	}
	t.Fatal("no flipped bit makes a difference")
	return nil
}

// Each kind of damage is found, and a whole backup passes.
func TestBackupVerify_FindsDamage(t *testing.T) {
	const ensemble = "0123456789abcdef" // in hexadecimal: ensembleID
	good := backupOf(t, ensemble)
	half := len(good) / 2
	with := func(change func(b []byte)) []byte {
		b := slices.Clone(good)
		change(b)
		return b
	}
	flip := func(at int) []byte { return with(func(b []byte) { b[at] ^= 0x10 }) }
	for _, x := range []struct {
		name, problem string // problem "": none
		file          []byte
	}{
		{"whole", "", good},
		{"of a build without labels", "", slices.Concat(good[:6], good[state.BackupHead:])},
		{"empty", "EOF", nil},
		{"something else", "not a snapshot", []byte("PK\x03\x04 something else")},
		{"truncated in its label", "label", good[:20]},
		{"truncated in the middle", "unexpected EOF", good[:half]},
		{"truncated by its last byte", "EOF", good[:len(good)-1]},
		{"a flipped bit in its magic", "not a snapshot", flip(1)},
		{"a flipped bit in its label", "label", flip(20)},
		{"a flipped bit in its body", "reading snapshot", damagedBody(t, good)},
		{"a flipped bit in its last bytes", "reading snapshot", flip(len(good) - 2)},
		{"an older version", "version 4", with(func(b []byte) { b[5] = 4 })},
		{"a newer version", "version 6", with(func(b []byte) { b[5] = 6 })},
		{"half-written: zeros from the middle on", "reading snapshot", with(func(b []byte) { clear(b[half:]) })},
		{"swapped parts", "reading snapshot", with(func(b []byte) {
			copy(b[half:half+64], good[half+64:half+128])
			copy(b[half+64:half+128], good[half:half+64])
		})},
		{"written twice", "reading snapshot", slices.Concat(good, good)},
		{"with the end of another", "reading snapshot", slices.Concat(good[:half],
			backupOf(t, ensemble, state.Command{Op: state.OpDelete, Path: "/z", Version: -1})[half:])},
		{"other data under right checksums", "digest is", rewritten(t, good, func(b []byte) {
			b[bytes.Index(b, bytes.Repeat([]byte{49, 7}, 40))] ^= 1
		})},
		{"of another ensemble", "another ensemble: " + otherID, backupOf(t, strings.Repeat("\xff", 16))},
	} {
		t.Run(x.name, func(t *testing.T) {
			name := filepath.Join(t.TempDir(), "zk.backup")
			if err := os.WriteFile(name, x.file, 0o600); err != nil {
				t.Fatal(err)
			}
			want := ensembleID
			if x.name == "of a build without labels" {
				want = "unknown"
			}
			code, out := runCLI("backup", "verify", "-o", "json", "--ensemble", want, filepath.Dir(name))
			var f struct {
				Problem       string
				Znodes, Bytes int
			}
			if err := json.Unmarshal([]byte(out), &f); err != nil {
				t.Fatalf("got %q, want JSON: %v", out, err)
			}
			if x.problem == "" {
				if code != 0 || f.Problem != "" || f.Znodes < 200 || f.Bytes != len(x.file) {
					t.Errorf("code %d, %s", code, out)
				}
				return
			}
			if code != ExitFailed || !strings.Contains(f.Problem, x.problem) {
				t.Errorf("code %d, problem %q, want %q", code, f.Problem, x.problem)
			}
		})
	}
}

// Two backups are compared by path.
func TestBackupDiff(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, b []byte) string {
		t.Helper()
		name = filepath.Join(dir, name)
		if err := os.WriteFile(name, b, 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	const ensemble = "0123456789abcdef"
	first := write("a.backup", backupOf(t, ensemble))
	second := write("b.backup", backupOf(t, ensemble,
		state.Command{Op: state.OpDelete, Path: "/z", Version: -1},
		state.Command{Op: state.OpSetData, Path: "/zx", Version: -1},
		state.Command{Op: state.OpSetACL, Path: "/zxx", Version: -1,
			ACL: []znode.ACL{{Perms: znode.PermRead, ID: znode.ID{Scheme: "world", ID: "anyone"}}}},
		state.Command{Op: state.OpDelete, Path: "/zxxx", Version: -1},
		state.Command{Op: state.OpCreate, Path: "/zxxx", Kind: znode.CreateContainer, Mode: znode.Container, ACL: znode.OpenACL},
		state.Command{Op: state.OpCreate, Path: "/new", ACL: znode.OpenACL}))
	for _, x := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{first, second}, ExitFailed, "+ /new\n- /z\n~ /zx  data\n~ /zxx  acl\n~ /zxxx  data, ephemeral\n"},
		{[]string{"--no-acl", second, first}, ExitFailed, "- /new\n+ /z\n~ /zx  data\n~ /zxxx  data, ephemeral\n"},
		{[]string{first, first}, 0, ""},
	} {
		if code, out := runCLI(append([]string{"backup", "diff"}, x.args...)...); code != x.code || out != x.want {
			t.Errorf("%q: code %d, %q; want %d, %q", x.args, code, out, x.code, x.want)
		}
	}
	if code, out := runCLI("backup", "diff", first, dir+"/none"); code != ExitFailed || !strings.Contains(out, "no such file") {
		t.Errorf("code %d, %q", code, out)
	}
	code, out := runCLI("backup", "ls", dir)
	if code != 0 || strings.Count(out, ensembleID) != 2 || strings.Count(out, "2023-11-14T22:13:20Z") != 2 {
		t.Errorf("code %d, %s", code, out)
	}
	write("c.backup", []byte("zkls"))
	if code, out := runCLI("backup", "ls", dir); code != ExitFailed || !strings.Contains(out, "damaged") {
		t.Errorf("code %d, %s", code, out)
	}
	if code, out := runCLI("backup", "ls", t.TempDir()); code != ExitFailed || !strings.Contains(out, "name the files") {
		t.Errorf("code %d, %s", code, out)
	}
}
