package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/zk-lite/zk-lite/internal/durable"
)

const (
	suffix     = ".backup"
	partSuffix = ".part" // of files that are being written
	timeFormat = "20060102T150405Z"
)

// prefix begins the names of an ensemble's backups: a directory may be shared.
func prefix(ensemble [16]byte) string { return fmt.Sprintf("zk-lite-%x-", ensemble[:4]) }

// fileName is the name of a backup: with its ensemble and time, so that names sort as times do.
func fileName(ensemble [16]byte, at time.Time) string {
	return prefix(ensemble) + at.UTC().Format(timeFormat) + suffix
}

// timeOf is when the backup of this name was begun; false: it is not of this ensemble's.
func timeOf(name string, ensemble [16]byte) (time.Time, bool) {
	text, is := strings.CutPrefix(name, prefix(ensemble))
	at, err := time.Parse(timeFormat+suffix, text)
	return at, is && err == nil
}

// list returns the names of an ensemble's backups in a directory, the newest first.
func list(dir string, ensemble [16]byte) (names []string, err error) {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if _, is := timeOf(e.Name(), ensemble); is {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	slices.Reverse(names)
	return names, err
}

// newest is when the newest backup of an ensemble was begun; 1970 if there is none. The clocks of servers that share a
// directory need not agree: one from soon after now counts as one from now. One that is further ahead does not decide
// when the next is due, and is returned.
func newest(dir string, ensemble [16]byte, now time.Time, interval time.Duration) (at time.Time, ahead string) {
	names, _ := list(dir, ensemble) // an error comes again with the backup
	for _, name := range names {
		switch at, _ := timeOf(name, ensemble); {
		case !at.After(now):
			return at, ahead
		case at.Sub(now) < interval:
			return now, ahead
		}
		ahead = name
	}
	return time.Unix(0, 0), ahead
}

// toDirectory writes a backup to the directory. What could not be verified, or not be written, is not there.
func (s *Scheduler) toDirectory(ctx context.Context, b *attempt) (err error) {
	path := filepath.Join(s.cfg.Directory, b.name)
	// A new file, with a name that cannot be guessed: others who can write to the directory could otherwise have the
	// backup written to a file of theirs, or through a link over another one.
	f, err := os.CreateTemp(s.cfg.Directory, b.name+".*"+partSuffix)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	err = b.write(ctx, f)
	if err == nil {
		err = f.Sync()
	}
	if err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err == nil {
		err = b.verify(ctx, f)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return durable.Rename(f.Name(), path)
}

// prune removes backups that need not be kept, and the files of broken writes, but never the newest backup. Those with
// a later time than now are kept and not counted, or the others would be removed because of them.
func prune(dir string, ensemble [16]byte, cfg *Config) error {
	names, err := list(dir, ensemble)
	now := time.Now()
	names = slices.DeleteFunc(names, func(name string) bool {
		at, _ := timeOf(name, ensemble)
		return at.After(now)
	})
	for i, name := range names {
		at, _ := timeOf(name, ensemble)
		old := cfg.KeepAge > 0 && now.Sub(at) > cfg.KeepAge
		if i > 0 && (old || cfg.KeepCount > 0 && i >= cfg.KeepCount) {
			err = errors.Join(err, os.Remove(filepath.Join(dir, name)))
		}
	}
	parts, _ := fs.Glob(os.DirFS(dir), prefix(ensemble)+"*"+suffix+"*"+partSuffix) // the pattern is right
	for _, name := range parts {
		whole, _, _ := strings.Cut(name, suffix)
		at, is := timeOf(whole+suffix, ensemble)
		if is && now.Sub(at) > cfg.Timeout {
			err = errors.Join(err, os.Remove(filepath.Join(dir, name)))
		}
	}
	return err
}
