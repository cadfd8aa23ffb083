package recipes

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/znode"
)

// BlobReader reads one version of a blob. It is for one goroutine, and need not be closed.
type BlobReader struct {
	b     *Blob
	ctx   context.Context
	m     *blobManifest
	stat  client.Stat
	ahead []*client.Pending[client.GetReply] // parts that were asked for, the next one first
	asked int64                              // how many parts
	rest  []byte                             // of the part that came last
	hash  hash.Hash
	err   error // of the next Read, when rest is empty
}

// Open returns a reader of the present version: that of the last Write that was acknowledged
// before the call, or a later one. It ends with ctx.
//
// Errors: client.ErrNoNode; ErrNoBlob.
func (b *Blob) Open(ctx context.Context) (*BlobReader, error) {
	m, stat, err := b.newest(ctx)
	if err == nil && m == nil {
		err = fmt.Errorf("%s: %w: it has no data", b.path, ErrNoBlob)
	}
	if err != nil {
		return nil, err
	}
	return &BlobReader{b: b, ctx: ctx, m: m, stat: stat, hash: sha256.New()}, nil
}

// Info describes the version that is read.
func (r *BlobReader) Info() BlobInfo {
	return BlobInfo{Size: r.m.Size, SHA256: r.m.SHA256, Stat: r.stat}
}

// Read reads on. io.EOF comes only if the SHA-256 of all is right.
//
// Errors: ErrBlobReplaced, ErrBlobDamaged; those of a read.
func (r *BlobReader) Read(p []byte) (int, error) {
	for len(r.rest) == 0 {
		if r.err != nil {
			return 0, r.err
		}
		r.rest, r.err = r.next()
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// next returns the next part, and asks for others ahead.
func (r *BlobReader) next() ([]byte, error) {
	for ; len(r.ahead) < blobWindow && r.asked < r.m.count(); r.asked++ {
		r.ahead = append(r.ahead, r.b.c.Async().Get(r.ctx, r.part(r.asked)))
	}
	if len(r.ahead) == 0 {
		if hex.EncodeToString(r.hash.Sum(nil)) != r.m.SHA256 {
			return nil, fmt.Errorf("%s: %w: its SHA-256 is not that of the manifest", r.b.path, ErrBlobDamaged)
		}
		return nil, io.EOF
	}
	i := r.asked - int64(len(r.ahead))
	reply, err := r.ahead[0].Wait(r.ctx)
	r.ahead = r.ahead[1:]
	if errors.Is(err, client.ErrNoNode) || errors.Is(err, client.ErrConnectionLoss) || startAgain(r.ctx, r.b.c, err) {
		reply.Data, err = r.again(r.part(i))
	}
	if err != nil {
		return nil, err
	}
	if want := min(r.m.PartSize, r.m.Size-i*r.m.PartSize); int64(len(reply.Data)) != want {
		return nil, fmt.Errorf("%s: %w: %s has %d bytes, want %d",
			r.b.path, ErrBlobDamaged, r.part(i), len(reply.Data), want)
	}
	r.hash.Write(reply.Data)
	return reply.Data, nil
}

// again reads a part that a server did not have, which may lag, or whose reply was lost.
func (r *BlobReader) again(part string) (data []byte, err error) {
	for {
		err = afterSync(r.ctx, r.b.c, part, func() (err error) {
			data, _, err = r.b.c.Get(r.ctx, part)
			return err
		}, nil)
		if !startAgain(r.ctx, r.b.c, err) {
			break
		}
	}
	if !errors.Is(err, client.ErrNoNode) {
		return data, err
	}
	m, _, err := r.b.manifest(r.ctx)
	switch {
	case err != nil && !errors.Is(err, client.ErrNoNode) && !errors.Is(err, ErrNoBlob):
		return nil, err
	case m != nil && m.Parts == r.m.Parts:
		return nil, fmt.Errorf("%s: %w: %s is missing", r.b.path, ErrBlobDamaged, part)
	}
	return nil, fmt.Errorf("%s: %w", r.b.path, ErrBlobReplaced)
}

// part is the path of a part.
func (r *BlobReader) part(i int64) string {
	return znode.Join(znode.Join(r.b.path, r.m.Parts), blobPartOf(i))
}
