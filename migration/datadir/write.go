package datadir

import (
	"bufio"
	"errors"
	"fmt"
	"hash"
	"hash/adler32"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/zk-lite/zk-lite/internal/durable"
	"github.com/zk-lite/zk-lite/internal/jute"
	"github.com/zk-lite/zk-lite/migration/replica"
	"github.com/zk-lite/zk-lite/znode"
)

// WriteSnapshot writes dir/version-2/snapshot.<zxid>, from which servers from 3.4 to 3.9 start whose dataDir dir is,
// and returns its name. It creates the directories. The file is durable, and readable by its owner only: it holds the
// digests of all passwords.
//
// Errors: dir holds data of a ZooKeeper server; ErrUnresolved of replica; an ephemeral whose owner would destroy an
// ensemble; of the file system. Then no snapshot is there.
func WriteSnapshot(dir string, r *replica.Replica) (string, error) {
	if err := refuseData(dir); err != nil {
		return "", err
	}
	if err := checkOwners(r); err != nil {
		return "", err
	}
	inner := filepath.Join(dir, versionDir)
	if err := os.MkdirAll(inner, 0o700); err != nil {
		return "", err
	}
	name := filepath.Join(inner, string(KindSnapshot)+"."+strconv.FormatUint(uint64(r.Zxid), 16))
	if err := writeFile(name+".tmp", r); err != nil {
		return "", err
	}
	if err := durable.Rename(name+".tmp", name); err != nil {
		return "", err
	}
	// The name of version-2 itself.
	return name, syncDir(dir)
}

// refuseData refuses a directory that a server has used, so that nothing in it is replaced or mixed with.
func refuseData(dir string) error {
	for _, d := range []string{dir, filepath.Join(dir, versionDir)} {
		names, err := os.ReadDir(d)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		for _, name := range names {
			if looksLikeData(name.Name()) {
				return fmt.Errorf("%s holds ZooKeeper data already (%s): choose a directory without", d, name.Name())
			}
		}
	}
	return nil
}

// checkOwners refuses an owner with 0xff on top that is no TTL: with extendedTypesEnabled servers cannot start from it
// ("Invalid ephemeralOwner").
func checkOwners(r *replica.Replica) error {
	snap := r.Tree.Snapshot()
	defer snap.Release()
	return snap.Walk(func(rec *znode.Record) error {
		if err := replica.CheckOwner(rec.Stat.EphemeralOwner); err != nil {
			return fmt.Errorf("znode %q: %w", rec.Path, err)
		}
		return nil
	})
}

func writeFile(path string, r *replica.Replica) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	w := &sealer{out: bufio.NewWriterSize(f, 1<<20), sum: adler32.New()}
	if err = errors.Join(w.write(r), w.out.Flush(), f.Sync(), f.Close()); err != nil {
		return errors.Join(err, os.Remove(path))
	}
	return nil
}

// sealer writes a snapshot, and sums it up.
type sealer struct {
	out *bufio.Writer
	sum hash.Hash32
}

// Write implements io.Writer.
func (w *sealer) Write(b []byte) (int, error) {
	_, _ = w.sum.Write(b)
	return w.out.Write(b)
}

func (w *sealer) write(r *replica.Replica) error {
	head := jute.AppendInt64(jute.AppendInt32(jute.AppendInt32(nil, snapshotMagic), version), -1)
	if _, err := w.Write(head); err != nil {
		return err
	}
	if err := r.Write(w); err != nil {
		return err
	}
	zxid := jute.AppendInt64(nil, int64(r.Zxid))
	digest := jute.AppendInt64(jute.AppendInt32(slices.Clone(zxid), digestVersion), int64(r.Digest()))
	return errors.Join(w.seal(), w.part(digest), w.part(zxid))
}

func (w *sealer) part(b []byte) error {
	if _, err := w.Write(b); err != nil {
		return err
	}
	return w.seal()
}

func (w *sealer) seal() error {
	_, err := w.Write(jute.AppendUstring(jute.AppendInt64(nil, int64(w.sum.Sum32())), "/"))
	return err
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
