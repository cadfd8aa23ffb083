package backup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zk-lite/zk-lite/consensus"
	"github.com/zk-lite/zk-lite/consensus/forward"
	"github.com/zk-lite/zk-lite/consensus/membership"
	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/internal/testkit/clock"
	"github.com/zk-lite/zk-lite/znode"
)

// fake is server 2 of an ensemble of three that server 3 leads.
type fake struct {
	machine *state.Machine
	status  membership.Status
	err     error // instead of status
	skew    znode.Zxid
	full    bool
}

func newFake(t *testing.T) *fake {
	t.Helper()
	m := state.New()
	noise := make([]byte, 300<<10) // more than a pipe holds
	for i, x := 0, uint32(1); i < len(noise); i++ {
		x = x*1664525 + 1013904223
		noise[i] = byte(x >> 24)
	}
	c := state.AppendCommand(nil, &state.Command{Op: state.OpCreate, Path: "/a", Data: noise, ACL: znode.OpenACL})
	batch := state.Batch{Origin: state.Origin{Server: 1, Incarnation: 1}, First: 1, Count: 1, Commands: c}
	if err := m.Apply(1, 1, state.AppendEntry(nil, 1, []state.Batch{batch}), state.Unobserved{}); err != nil {
		t.Fatal(err)
	}
	return &fake{machine: m, status: membership.Status{Leader: 3, Members: []membership.MemberStatus{
		{ID: 3, Voter: true, Connected: true}, {ID: 2, Voter: true, Connected: true}, {ID: 1, Voter: true},
	}}}
}

func (f *fake) Status() consensus.Status { return consensus.Status{Ensemble: [16]byte{0xab, 0xcd}} }
func (f *fake) Snapshot() (*state.Snapshot, znode.Zxid) {
	return f.machine.Snapshot(), f.machine.Zxid() + f.skew
}
func (f *fake) Room(string) (free, used int64) {
	if f.full {
		return -1, 1000
	}
	return 1 << 40, 1000
}
func (f *fake) Propose(*state.Command, forward.Waiter) error { return forward.ErrStopped }
func (f *fake) Do(context.Context, *state.Command) (state.Result, error) {
	return state.Result{}, forward.ErrStopped
}

// ensemble is the fake's ensemble.
type ensemble struct{ *fake }

func (e ensemble) Status(context.Context) (membership.Status, error) { return e.status, e.err }

func scheduler(f *fake, cfg Config, log *bytes.Buffer) *Scheduler {
	cfg.Logger = slog.New(slog.NewTextHandler(log, nil))
	cfg.ID = 2
	return NewScheduler(f, ensemble{f}, cfg)
}

func (s *Scheduler) counts() string {
	return fmt.Sprint(s.made.Load(), " made, ", s.failed.Load(), " failed")
}

// content is the names in a directory.
func content(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// Backups are written at intervals, and kept by number and age. Files of other ensembles stay.
func TestScheduler_KeepsByCountAndAge(t *testing.T) {
	others := []string{"notes.txt", "zk-lite-ffff0000-20000101T000000Z.backup", "zk-lite-abcd0000-x.backup"}
	const stale, fresh = "zk-lite-abcd0000-19991231T220000Z.backup.part", "zk-lite-abcd0000-20000101T055900Z.backup.9.part"
	const random = "zk-lite-abcd0000-19991231T220000Z.backup.9.part"
	for _, x := range []struct {
		count int
		age   time.Duration
		hours []int // of the backups that are left after six
	}{
		{0, 0, []int{0, 1, 2, 3, 4, 5}}, {3, 0, []int{3, 4, 5}}, {0, 150 * time.Minute, []int{3, 4, 5}},
		{2, 150 * time.Minute, []int{4, 5}}, {0, time.Minute, []int{5}},
	} {
		t.Run(fmt.Sprintf("%d,%v", x.count, x.age), func(t *testing.T) {
			dir := t.TempDir()
			for _, name := range slices.Concat(others, []string{stale, random, fresh}) {
				if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			synctest.Test(t, func(t *testing.T) {
				var log bytes.Buffer
				f := newFake(t)
				cfg := Config{Directory: dir, Interval: time.Hour, Timeout: time.Minute, KeepCount: x.count, KeepAge: x.age}
				s := scheduler(f, cfg, &log)
				ctx, cancel := context.WithCancel(t.Context())
				go s.Run(ctx)
				clock.Sleep(5*time.Hour + 5*time.Minute)
				cancel()
				synctest.Wait()
				if s.counts() != "6 made, 0 failed" || s.last.Load() < time.Now().Add(-10*time.Minute).Unix() {
					t.Errorf("%s, the last at %d; want 6 made, 0 failed, the last within 10 minutes: %s",
						s.counts(), s.last.Load(), log.String())
				}
				// A restarted server knows the existing backups.
				again := scheduler(f, cfg, &log)
				again.look(t.Context(), time.Now())
				if again.last.Load() != s.last.Load() || again.counts() != "0 made, 0 failed" {
					t.Errorf("after a restart: %s, the last at %d; want 0 made, 0 failed, the last at %d",
						again.counts(), again.last.Load(), s.last.Load())
				}
			})
			var hours []int
			for _, name := range content(t, dir) {
				if at, is := timeOf(name, [16]byte{0xab, 0xcd}); is {
					hours = append(hours, at.Hour())
					b, err := os.ReadFile(filepath.Join(dir, name))
					if err != nil {
						t.Fatal(err)
					}
					if _, err := state.ReadBackup(bytes.NewReader(b)); err != nil {
						t.Errorf("%s: %v", name, err)
					}
				} else if !slices.Contains(others, name) && name != fresh {
					t.Errorf("%s is there", name)
				}
			}
			if !slices.Equal(hours, x.hours) || len(content(t, dir)) != len(x.hours)+len(others)+1 {
				t.Errorf("backups of the hours %v, want %v; there are %q", hours, x.hours, content(t, dir))
			}
		})
	}
}

// A backup with a later time, copied in or from a server whose clock is fast, caused a new backup every 30 seconds,
// until the retention had removed all good ones.
func TestRegression_Scheduler_BackupsFromTheFuture(t *testing.T) {
	for ahead, want := range map[time.Duration]int{365 * 24 * time.Hour: 1, 25 * time.Hour: 1, 150 * time.Second: 0} {
		t.Run(ahead.String(), func(t *testing.T) {
			dir := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				ensemble := [16]byte{0xab, 0xcd}
				var before []string
				for day := range 5 {
					before = append(before, fileName(ensemble, time.Now().Add(-time.Duration(day+1)*25*time.Hour)))
				}
				for i := range 14 {
					before = append(before, fileName(ensemble, time.Now().Add(ahead+time.Duration(i)*time.Second)))
				}
				for _, name := range before {
					if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
						t.Fatal(err)
					}
				}
				var log bytes.Buffer
				cfg := Config{Directory: dir, Interval: 24 * time.Hour, Timeout: time.Minute, KeepCount: 6}
				s := scheduler(newFake(t), cfg, &log)
				ctx, cancel := context.WithCancel(t.Context())
				go s.Run(ctx)
				clock.Sleep(time.Hour)
				cancel()
				synctest.Wait()
				if got := s.counts(); got != fmt.Sprint(want, " made, 0 failed") {
					t.Errorf("got %s, want %d made", got, want)
				}
				names := content(t, dir)
				for _, name := range before {
					if !slices.Contains(names, name) {
						t.Errorf("%s was removed", name)
					}
				}
				if got := strings.Count(log.String(), "a later time"); got != want {
					t.Errorf("got %d warnings, want %d: %s", got, want, &log)
				}
			})
		})
	}
}

// All servers choose the same one, and without a leader none.
func TestScheduler_Chosen(t *testing.T) {
	member := func(id state.ServerID, voter, connected bool) membership.MemberStatus {
		return membership.MemberStatus{ID: id, Voter: voter, Connected: connected}
	}
	for _, x := range []struct {
		leader  state.ServerID
		members []membership.MemberStatus
		err     error
		want    bool
	}{
		{3, []membership.MemberStatus{member(1, true, false), member(2, true, true), member(3, true, true)}, nil, true},
		{3, []membership.MemberStatus{member(1, true, true), member(2, true, true), member(3, true, true)}, nil, false},
		{3, []membership.MemberStatus{member(3, true, true), member(4, true, true), member(2, true, true)}, nil, true},
		{3, []membership.MemberStatus{member(1, false, true), member(2, true, true), member(3, true, true)}, nil, true},
		{2, []membership.MemberStatus{member(1, true, false), member(2, true, true), member(3, true, false)}, nil, true},
		{2, []membership.MemberStatus{member(2, true, true), member(3, true, true)}, nil, false},
		{2, []membership.MemberStatus{member(2, true, true)}, nil, true},
		{2, []membership.MemberStatus{member(2, true, true)}, errors.New("no leader"), false},
	} {
		f := &fake{status: membership.Status{Leader: x.leader, Members: x.members}, err: x.err}
		if got := NewScheduler(f, ensemble{f}, Config{ID: 2}).chosen(t.Context()); got != x.want {
			t.Errorf("leader %d, %+v, %v: %v", x.leader, x.members, x.err, got)
		}
	}
}

// Whatever fails is logged and counted, leaves nothing under a final name, and is tried again after a pause.
func TestScheduler_DirectoryFails(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	now := time.Now()
	for _, x := range []struct {
		name, want string
		prepare    func(f *fake, c *Config)
	}{
		{"missing directory", "no such file", func(_ *fake, c *Config) { c.Directory += "/missing" }},
		{"no directory", "not a directory", func(_ *fake, c *Config) { c.Directory = os.DevNull }},
		{"no room in memory", "limits.treeBytes", func(f *fake, _ *Config) { f.full = true }},
		{"not verified", "it has zxid 0x100000001, not 0x100000002", func(f *fake, _ *Config) { f.skew = 1 }},
		{"too slow", "backup.timeout", func(_ *fake, c *Config) { c.Timeout = 0 }},
	} {
		t.Run(x.name, func(t *testing.T) {
			dir := t.TempDir()
			f, log := newFake(t), &bytes.Buffer{}
			cfg := Config{Directory: dir, Interval: time.Hour, Timeout: time.Hour}
			x.prepare(f, &cfg)
			s := scheduler(f, cfg, log)
			s.look(t.Context(), now)
			if s.counts() != "0 made, 1 failed" || !strings.Contains(log.String(), x.want) {
				t.Errorf("%s, want 0 made, 1 failed and the log %q, got %s", s.counts(), x.want, log)
			}
			if names := content(t, dir); len(names) > 0 {
				t.Errorf("there is %q", names)
			}
			s.look(t.Context(), now.Add(retryAfter-time.Second))
			s.look(t.Context(), now.Add(retryAfter))
			if got := s.made.Load() + s.failed.Load(); got != 2 {
				t.Errorf("%s after the pause", s.counts())
			}
		})
	}
	s := scheduler(newFake(t), Config{Directory: t.TempDir(), Interval: time.Hour, Timeout: time.Hour}, &bytes.Buffer{})
	if s.look(ended, now); s.counts() != "0 made, 0 failed" {
		t.Errorf("a stop counts: %s", s.counts())
	}
}

// A command gets the backup, and sees its end only when it is verified.
func TestScheduler_Command(t *testing.T) {
	for _, x := range []struct {
		name, command, want string // want "": it is taken
		timeout             time.Duration
		skew                znode.Zxid
	}{
		{"takes it", `cat > "$DIR/$ZK_LITE_BACKUP"`, "", time.Minute, 0},
		{"fails", `cat > /dev/null; exit 3`, "exit code 3", time.Minute, 0},
		{"fails at once", `exit 3`, "exit code 3", time.Minute, 0},
		{"does not read", `exit 0`, "broken pipe", time.Minute, 0},
		{"hangs", `sleep 1000`, "backup.timeout", 50 * time.Millisecond, 0},
		{"hangs at the end", `cat > /dev/null; sleep 1000`, "backup.timeout", 500 * time.Millisecond, 0},
		{"is not verified", `cat > /dev/null; touch "$DIR/whole"`, "verifying", time.Minute, 1},
	} {
		t.Run(x.name, func(t *testing.T) {
			dir := t.TempDir()
			t.Setenv("DIR", dir)
			f, log := newFake(t), &bytes.Buffer{}
			f.skew = x.skew
			s := scheduler(f, Config{Command: x.command, Interval: time.Hour, Timeout: x.timeout}, log)
			now := time.Now()
			s.look(t.Context(), now)
			names := content(t, dir)
			if x.want != "" {
				if s.counts() != "0 made, 1 failed" || !strings.Contains(log.String(), x.want) || len(names) > 0 {
					t.Errorf("%s, files %q; want 0 made, 1 failed, none, and the log %q, got %s",
						s.counts(), names, x.want, log)
				}
				return
			}
			if s.counts() != "1 made, 0 failed" || !slices.Equal(names, []string{fileName([16]byte{0xab, 0xcd}, now)}) {
				t.Fatalf("%s, files %q; want 1 made, 0 failed, one file: %s", s.counts(), names, log)
			}
			b, err := os.ReadFile(filepath.Join(dir, names[0]))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := state.ReadBackup(bytes.NewReader(b)); err != nil {
				t.Error(err)
			}
			if s.look(t.Context(), now.Add(time.Minute)); s.counts() != "1 made, 0 failed" {
				t.Errorf("%s before the next is due", s.counts())
			}
		})
	}
}

// In a directory that others write to, a backup went through a link that had its name over whatever file this server
// may write, or into a file that another user had opened.
func TestRegression_Directory_NoOneElsesFileIsWritten(t *testing.T) {
	now, dir := time.Now(), t.TempDir()
	victim := filepath.Join(t.TempDir(), "victim")
	if err := os.WriteFile(victim, []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	name := fileName([16]byte{0xab, 0xcd}, now)
	if err := os.Symlink(victim, filepath.Join(dir, name+partSuffix)); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	s := scheduler(newFake(t), Config{Directory: dir, Interval: time.Hour, Timeout: time.Hour}, &log)
	s.look(t.Context(), now)
	if got, err := os.ReadFile(victim); err != nil || string(got) != "kept" {
		t.Errorf("the file that the link leads to: %.20q, %v", got, err)
	}
	info, err := os.Lstat(filepath.Join(dir, name))
	if s.counts() != "1 made, 0 failed" || err != nil || info.Mode() != 0o600 {
		t.Errorf("%s, file %v (%v); want 1 made, 0 failed, mode 0600: %s", s.counts(), info, err, log.String())
	}
}
