package doctor

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/zk-lite/zk-lite/app"
	"github.com/zk-lite/zk-lite/app/config"
	"github.com/zk-lite/zk-lite/internal/process"
)

// files looks at the directories of the data, and at who may read what.
func (d *doctor) files() {
	s := &d.Settings
	dirs := []struct{ setting, path string }{{"dataDir", s.DataDir}}
	if s.DataLogDir != s.DataDir {
		dirs = append(dirs, struct{ setting, path string }{"dataLogDir", s.DataLogDir})
		if same, err := process.SameDisk(existing(s.DataDir), existing(s.DataLogDir)); err == nil && same {
			d.warn("disks", fmt.Sprintf("dataDir %s and dataLogDir %s are on the same disk: snapshots delay "+
				"the log", s.DataDir, s.DataLogDir), "move dataLogDir to a disk of its own, or remove the key")
		}
	}
	for _, x := range dirs {
		at := existing(x.path)
		if free, err := process.FreeBytes(at); err == nil && free < d.Limits.Free {
			d.warn("disks", fmt.Sprintf("%s: %d MiB are free at %s", x.setting, free>>20, at),
				fmt.Sprintf("make room for %d MiB, and for two snapshots of the tree", d.Limits.Free>>20))
		}
		if kind := unsafeFileSystem(at); kind != "" {
			d.warn("disks", fmt.Sprintf("%s: %s is %s", x.setting, at, kind),
				"name a directory on a local disk, with ext4 or XFS")
		}
		if info, err := os.Stat(filepath.Join(x.path, "snapshots")); err == nil && info.Mode().Perm()&0o007 != 0 {
			d.warn("modes", fmt.Sprintf("%s: every user of this machine can read %s/snapshots, which has the "+
				"data of all znodes", x.setting, x.path), "chmod o= "+filepath.Join(x.path, "snapshots"))
		}
	}
	d.sync(existing(s.DataLogDir))
	for _, x := range []struct{ setting, path string }{
		{"http.tokenFile", s.TokenFile}, {"peer.joinSecretFile", s.PeerTLS.Keys.SecretFile},
		{"ssl.keyStore.passwordPath", s.TLS.Key.PasswordFile},
		{"ssl.quorum.keyStore.passwordPath", s.PeerTLS.Key.PasswordFile}, {"--config", secretConfig(s)},
	} {
		if info, err := os.Stat(x.path); err == nil && info.Mode().Perm()&0o007 != 0 {
			d.warn("modes", fmt.Sprintf("%s: every user of this machine can read %s, which has secrets",
				x.setting, x.path), "chmod o= "+x.path)
		}
	}
}

// secretConfig is the configuration file if it has a password in it.
func secretConfig(s *config.Settings) string {
	if s.TLS.Key.Password != "" || s.PeerTLS.Key.Password != "" || s.Auth.SuperDigest != "" {
		return s.ConfigFile
	}
	return ""
}

// existing is the directory, or what will be the one above it when it is made.
func existing(path string) string {
	for {
		if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) || filepath.Dir(path) == path {
			return path
		}
		path = filepath.Dir(path)
	}
}

const (
	syncs    = 50 // that are measured
	syncTime = time.Second
	// syncSize is that of a small entry of the log.
	syncSize = 4096
)

// sync measures the disk of the log, for a second at most, as the log uses it: short writes to room that is there.
func (d *doctor) sync(dir string) {
	f, err := os.CreateTemp(dir, ".zk-lite-doctor-")
	if err != nil {
		d.fail("disks", "no file can be made where the data belong: "+err.Error(),
			"give the directory to the user that runs the server (chown), or correct dataDir and dataLogDir")
		return
	}
	defer func() { _ = os.Remove(f.Name()) }()
	defer f.Close()
	block := make([]byte, syncSize)
	var took []time.Duration
	for began := time.Now(); len(took) < syncs && time.Since(began) < syncTime; {
		one := time.Now()
		_, err := f.WriteAt(block, 0)
		if err = errors.Join(err, f.Sync()); err != nil {
			d.fail("disks", "the disk refuses a write: "+err.Error(), "make room, or replace the disk")
			return
		}
		took = append(took, time.Since(one))
	}
	slices.Sort(took)
	if median := took[len(took)/2]; median > d.Limits.Sync {
		d.warn("disks", fmt.Sprintf("a sync in %s takes %v (median of %d, longest %v): each write waits for one",
			dir, median.Round(time.Microsecond), len(took), took[len(took)-1].Round(time.Microsecond)),
			fmt.Sprintf("move dataLogDir to a disk whose syncs take less than %v", d.Limits.Sync))
	}
}

const (
	mostACLs = 10       // long ACLs that are named
	largeACL = 16 << 20 // bytes, that may keep a server from starting
)

// data looks for what an earlier release has stored and this one would refuse.
func (d *doctor) data() {
	long, err := app.LongACLs(app.Options{Settings: d.Settings, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		d.warn("data", "the snapshot and the log cannot be read: "+err.Error(),
			"correct what the message names, or run this again when the server is stopped")
	}
	for i, x := range long {
		if i == mostACLs {
			d.warn("data", fmt.Sprintf("%d more ACLs are as long", len(long)-i), "shorten those that are named first")
			return
		}
		severity, do := Warning, "it stays as it is, but may not grow: set a shorter one (docs/limits.md)"
		if x.Memory > largeACL {
			do = "set a shorter one; if a server ends at each start because its memory is too small for it: " +
				"zk-lite recover --skip-acls-over 16"
		}
		if d.Memory > 0 && x.Memory > d.Memory/4 {
			severity = Error
		}
		d.found(severity, "data", x.String(), do)
	}
}
