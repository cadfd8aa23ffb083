package recipes

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/znode"
)

const (
	// MaxBlob bounds the size of a blob: each server has its versions in memory.
	MaxBlob = 1 << 30
	// NoBlobYet is for a Write that must not replace a blob.
	NoBlobYet client.Version = math.MinInt32

	// blobPart is the size of a part, far below jute.maxbuffer: others do not wait long behind
	// one, and ZooKeeper has the last 500 transactions in memory (zookeeper.commitLogCount).
	blobPart = 128 << 10
	// blobWindow is how many parts a writer or reader has on the way. With sixteen it is no faster,
	// and the writes of others take ten times as long meanwhile.
	blobWindow = 4
	// blobFormat marks the data of a blob's znode.
	blobFormat = "zk-lite-blob-1"
	// blobPrefix starts the name of a version, before 26 random letters and digits.
	blobPrefix = "_blob-"
	// blobWriter is the ephemeral by which the writer of a version shows that it lives.
	blobWriter = "writer"
)

// The names of versions and parts. Nothing else is deleted.
var (
	blobVersion  = regexp.MustCompile(`^` + blobPrefix + `[A-Z2-7]{26}$`)
	blobPartName = regexp.MustCompile(`^[0-9]{10}$`)
)

// The errors of blobs.
var (
	// ErrNoBlob reports that the znode exists and is no blob: it has no data, or data of
	// another kind, which a blob does not replace.
	ErrNoBlob = errors.New("the znode is no blob")
	// ErrBlobReplaced reports that the version that was being read has been deleted since.
	ErrBlobReplaced = errors.New("the blob was replaced twice or deleted while it was read: open it again")
	// ErrBlobDamaged reports that the parts are not those that were written: someone has
	// changed or deleted them.
	ErrBlobDamaged = errors.New("the blob is damaged")
)

// Blob is a value of up to MaxBlob bytes, far beyond the megabyte of a znode. Write
// replaces it as a whole, and Open reads one version of it, never a mixture.
//
// Its znode has a short text in JSON, the manifest: size, SHA-256, and the name of the
// child below which the parts are, path/_blob-<random>/<number>. So the znode can be
// watched, and its version is that of the blob. A writer creates its parts first, and
// then replaces the manifest in the transaction that deletes its mark, the ephemeral
// path/_blob-<random>/writer.
//
// The version before the present one stays until the next Write begins, for those that
// still read it. Each Write deletes what is older, and the parts of writers that died:
// those without a mark to which the manifest does not refer.
type Blob struct {
	c    *client.Client
	path string
	acl  []client.ACL
}

// NewBlob returns the blob at path. Options: WithACL. By default the parts have the ACL of
// the znode at path.
func NewBlob(c *client.Client, path string, opts ...Option) *Blob {
	return &Blob{c: c, path: path, acl: newOptions(opts).acl}
}

// BlobInfo describes a version of a blob.
type BlobInfo struct {
	Size   int64
	SHA256 string // in hexadecimal digits
	// Stat is that of the znode with the manifest: Stat.Version is for the next Write. It is
	// zero after a Write whose reply was lost, if another one came before it was found out.
	Stat client.Stat
}

// blobManifest is the data of a blob's znode.
type blobManifest struct {
	Format   string `json:"format"`
	Size     int64  `json:"size"`
	SHA256   string `json:"sha256"`
	PartSize int64  `json:"partSize"`           // of all parts but the last
	Parts    string `json:"parts"`              // the child that has the parts
	Previous string `json:"previous,omitempty"` // that of the version before
}

// count is the number of the parts.
func (m *blobManifest) count() int64 { return (m.Size + m.PartSize - 1) / m.PartSize }

// refersTo reports whether the parts of a version may still be read.
func (m *blobManifest) refersTo(version string) bool {
	return m != nil && (m.Parts == version || m.Previous == version)
}

// decodeManifest returns nil for no data. Errors: ErrNoBlob.
func decodeManifest(data []byte) (*blobManifest, error) {
	if len(data) == 0 {
		return nil, nil
	}
	m := new(blobManifest)
	if err := json.Unmarshal(data, m); err != nil || m.Format != blobFormat {
		return nil, fmt.Errorf("%w: its data is not that of one (format %s)", ErrNoBlob, blobFormat)
	}
	sum, err := hex.DecodeString(m.SHA256)
	if err != nil || len(sum) != sha256.Size || m.Size < 0 || m.Size > MaxBlob || m.PartSize < 1 ||
		m.PartSize > MaxBlob || !blobVersion.MatchString(m.Parts) ||
		m.Previous != "" && !blobVersion.MatchString(m.Previous) {
		return nil, fmt.Errorf("%w: the fields of its manifest are out of range", ErrNoBlob)
	}
	return m, nil
}

// manifest reads the manifest, nil if the znode has no data.
func (b *Blob) manifest(ctx context.Context) (*blobManifest, client.Stat, error) {
	data, stat, err := b.c.Get(ctx, b.path)
	return b.decoded(data, stat, err)
}

// newest is manifest after every write that was acknowledged before.
func (b *Blob) newest(ctx context.Context) (*blobManifest, client.Stat, error) {
	var data []byte
	var stat client.Stat
	err := afterSync(ctx, b.c, b.path, func() (err error) {
		data, stat, err = b.c.Get(ctx, b.path)
		return err
	}, nil)
	return b.decoded(data, stat, err)
}

func (b *Blob) decoded(data []byte, stat client.Stat, err error) (*blobManifest, client.Stat, error) {
	if err != nil {
		return nil, stat, err
	}
	m, err := decodeManifest(data)
	if err != nil {
		err = fmt.Errorf("%s: %w", b.path, err)
	}
	return m, stat, err
}

// Delete deletes the blob: its parts, and its znode unless that has other children. A
// Write that is going on continues, and creates the blob again. Delete may be repeated
// after any error.
//
// Errors: client.ErrNoNode; ErrNoBlob for data of another kind.
func (b *Blob) Delete(ctx context.Context) error {
	for {
		m, stat, err := b.newest(ctx)
		if err == nil && m != nil {
			_, err = b.c.Set(ctx, b.path, nil, stat.Version)
		}
		if err == nil {
			break
		}
		if ctx.Err() != nil || !errors.Is(err, client.ErrBadVersion) && !isUnknown(err) {
			return err
		}
	}
	if err := b.clean(ctx, false); err != nil {
		return err
	}
	err := remove(ctx, b.c, b.path)
	if errors.Is(err, client.ErrNotEmpty) {
		return nil
	}
	return err
}

// clean deletes the versions that no one needs: not the present one, not that before with
// keepPrevious, and not those that are being written. If a connection breaks, some are
// left to the next Write.
//
// The session is one and the same, so that each read sees what those before it saw.
func (b *Blob) clean(ctx context.Context, keepPrevious bool) error {
	ctx, cancel := b.c.Session().Context(ctx)
	defer cancel()
	names, _, err := b.c.Children(ctx, b.path)
	if err != nil {
		return err
	}
	for _, name := range names {
		if !blobVersion.MatchString(name) {
			continue
		}
		version := znode.Join(b.path, name)
		parts, _, err := b.c.Children(ctx, version)
		if errors.Is(err, client.ErrNoNode) || slices.Contains(parts, blobWriter) {
			continue
		}
		// After the list: a version without a mark is in the manifest by now, or will never be.
		var m *blobManifest
		if err == nil {
			m, _, err = b.manifest(ctx)
		}
		if err != nil {
			return err
		}
		if m.refersTo(name) && (keepPrevious || m.Parts == name) {
			continue
		}
		err = b.deleteVersion(ctx, version, parts)
		if err != nil && !errors.Is(err, client.ErrNotEmpty) && !isUnknown(err) {
			return err
		}
	}
	return nil
}

// deleteVersion deletes these children of a version that are its parts or its mark, and then
// the version. Others may do the same.
func (b *Blob) deleteVersion(ctx context.Context, version string, children []string) (err error) {
	var pending []*client.Pending[struct{}]
	for _, name := range children {
		if name == blobWriter || blobPartName.MatchString(name) {
			pending = append(pending, b.c.Async().Delete(ctx, znode.Join(version, name), client.AnyVersion))
		}
	}
	pending = append(pending, b.c.Async().Delete(ctx, version, client.AnyVersion))
	for _, p := range pending {
		if _, e := p.Wait(ctx); e != nil && !errors.Is(e, client.ErrNoNode) && err == nil {
			err = e
		}
	}
	return err
}
