package recipes

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/znode"
)

// Write replaces the blob by what content has, if the znode's version is the given one;
// client.AnyVersion and NoBlobYet also create the znode and missing parents. Readers see the
// old version until the whole of the new one is there. Half a megabyte of the content is in
// memory.
//
// Errors, after which the old version is still there: that of content;
// client.ErrBadVersion, client.ErrNoNode, client.ErrNodeExists with NoBlobYet; ErrNoBlob if
// the znode has data of another kind; client.ErrTooLarge beyond MaxBlob;
// client.ErrSessionExpired if the session is lost meanwhile. client.ErrOutcomeUnknown if ctx
// or the session ends before it is known whether the new version is there.
func (b *Blob) Write(ctx context.Context, content io.Reader, version client.Version) (BlobInfo, error) {
	session := b.c.Session()
	bound, cancel := session.Context(ctx)
	defer cancel()
	w := &blobWrite{Blob: b, ctx: bound, version: version, hash: sha256.New()}
	err := w.begin()
	published := false
	if err == nil {
		err = w.send(content)
	}
	if err == nil {
		published = true // perhaps
		err = w.publish()
	}
	switch {
	case err == nil:
		_ = b.clean(bound, true) // the blob is written; what is left waits for the next Write
		return w.info, nil
	case bound.Err() == nil:
		w.discard(bound)
	default:
		go func() {
			own, cancel := session.Context(context.Background())
			defer cancel()
			w.discard(own)
		}()
	}
	if isUnknown(err) && !published { // whether one of its requests has happened does not matter
		err = fmt.Errorf("writing %s: %w", b.path, contextError(bound))
	}
	return BlobInfo{}, err
}

// blobWrite is a Write.
type blobWrite struct {
	*Blob
	ctx      context.Context // ends with the session, and so with the mark
	version  client.Version  // as the caller gave it
	base     client.Version  // that the znode must have
	dir      string          // of this version
	partsACL []client.ACL
	hash     hash.Hash
	info     BlobInfo
}

// begin makes room, and creates the version with its mark.
func (w *blobWrite) begin() error {
	for try := 1; ; try++ {
		err := w.prepare()
		if err == nil {
			w.dir = znode.Join(w.path, blobPrefix+rand.Text())
			err = w.mark()
		}
		// A Delete, or the end of an empty container above, may come in between.
		creates := w.version == client.AnyVersion || w.version == NoBlobYet
		if !errors.Is(err, client.ErrNoNode) || !creates || try == maxParentTries {
			return err
		}
		err = withParents(w.ctx, w.c, znode.Parent(w.path), w.acl, func() error {
			_, _, err := w.c.Create(w.ctx, w.path, nil, client.Persistent, w.acl...)
			return err
		})
		if err != nil && !errors.Is(err, client.ErrNodeExists) && !(isUnknown(err) && w.ctx.Err() == nil) {
			return err
		}
	}
}

// prepare checks what is there, and deletes what no one needs.
func (w *blobWrite) prepare() error {
	m, stat, err := w.newest(w.ctx)
	if err != nil {
		return err
	}
	if w.base = w.version; w.version == NoBlobYet {
		if m != nil {
			return &client.OpError{Op: "create", Path: w.path, Err: client.ErrNodeExists}
		}
		w.base = stat.Version
	}
	if err := w.check(stat); err != nil {
		return err
	}
	if w.partsACL = w.acl; w.acl == nil {
		if w.partsACL, _, err = w.c.GetACL(w.ctx, w.path); err != nil {
			return err
		}
		for _, a := range w.partsACL {
			if a.ID.Scheme == "digest" && a.ID.ID == znode.WithoutHash(a.ID) {
				return fmt.Errorf("%s: the server hides a hash of its ACL, which the parts should have, too: "+
					"give an ACL for them: %w", w.path, client.ErrInvalidACL)
			}
		}
	}
	return w.clean(w.ctx, false)
}

// check compares the version of the znode.
func (w *blobWrite) check(stat client.Stat) error {
	if w.base != client.AnyVersion && w.base != stat.Version {
		return &client.OpError{Op: "setData", Path: w.path, Err: client.ErrBadVersion}
	}
	return nil
}

// mark creates the version with its mark, so that one without is never seen. No other has
// its name: if it exists, the reply to the first try was lost.
func (w *blobWrite) mark() error {
	for {
		m := w.c.Multi()
		m.Create(w.dir, nil, client.Container, w.partsACL...)
		m.Create(znode.Join(w.dir, blobWriter), nil, client.Ephemeral, w.partsACL...)
		err := m.Commit(w.ctx)
		switch {
		case errors.Is(err, client.ErrNodeExists):
			return nil
		case !isUnknown(err) || w.ctx.Err() != nil:
			return err
		}
	}
}

// sentPart is a part on its way.
type sentPart struct {
	path    string
	data    []byte
	pending *client.Pending[client.CreateReply]
}

// send creates the parts, a few at a time.
func (w *blobWrite) send(content io.Reader) error {
	var window [blobWindow]sentPart
	for i, last := 0, false; !last; i++ {
		p := &window[i%blobWindow]
		if err := w.created(p); err != nil {
			return err
		}
		if p.data == nil {
			p.data = make([]byte, blobPart)
		}
		var n int
		var err error
		if n, last, err = fill(content, p.data[:blobPart]); err != nil {
			return fmt.Errorf("reading the content of %s: %w", w.path, err)
		}
		if n == 0 {
			break
		}
		p.path, p.data = znode.Join(w.dir, blobPartOf(int64(i))), p.data[:n]
		if w.info.Size += int64(n); w.info.Size > MaxBlob {
			return fmt.Errorf("the content of %s: want %d bytes at most: %w", w.path, MaxBlob, client.ErrTooLarge)
		}
		w.hash.Write(p.data)
		p.pending = w.c.Async().Create(w.ctx, p.path, p.data, client.Persistent, w.partsACL...)
	}
	for i := range window {
		if err := w.created(&window[i]); err != nil {
			return err
		}
	}
	return nil
}

// fill reads until the buffer is full or the content ends. io.ReadFull does not tell its end from
// an io.ErrUnexpectedEOF of the reader, which means that something is missing.
func fill(r io.Reader, buf []byte) (n int, last bool, err error) {
	for n < len(buf) {
		more, err := r.Read(buf[n:])
		n += more
		if err == io.EOF {
			return n, true, nil
		}
		if err != nil {
			return n, false, err
		}
	}
	return n, false, nil
}

// created waits until a part is there. If the reply was lost, it is created again.
func (w *blobWrite) created(p *sentPart) error {
	if p.pending == nil {
		return nil
	}
	_, err := p.pending.Wait(w.ctx)
	for isUnknown(err) && w.ctx.Err() == nil {
		_, _, err = w.c.Create(w.ctx, p.path, p.data, client.Persistent, w.partsACL...)
	}
	p.pending = nil
	if errors.Is(err, client.ErrNodeExists) {
		return nil
	}
	return err
}

// publish makes the version the present one. Its mark says whether that has happened.
func (w *blobWrite) publish() error {
	w.info.SHA256 = hex.EncodeToString(w.hash.Sum(nil))
	next := blobManifest{
		Format: blobFormat, Size: w.info.Size, SHA256: w.info.SHA256, PartSize: blobPart, Parts: znode.Base(w.dir),
	}
	for {
		m, stat, err := w.manifest(w.ctx)
		if err == nil {
			err = w.check(stat)
		}
		if err != nil {
			return err
		}
		if next.Previous = ""; m != nil {
			next.Previous = m.Parts
		}
		data, err := json.Marshal(&next)
		if err != nil {
			return err
		}
		multi := w.c.Multi()
		multi.Delete(znode.Join(w.dir, blobWriter), client.AnyVersion)
		set := multi.Set(w.path, data, stat.Version)
		err = multi.Commit(w.ctx)
		switch {
		case err == nil:
			w.info.Stat = set.Stat
			return nil
		case isUnknown(err):
			done, unclear := w.published()
			if unclear != nil {
				return fmt.Errorf("%w: %w", err, unclear)
			}
			if done {
				return nil
			}
		case errors.Is(err, client.ErrBadVersion):
			w.c.Async().Sync(w.ctx, w.path) // the server may lag behind the write that won
		default:
			return err
		}
	}
}

// published finds out whether a transaction happened whose reply was lost.
func (w *blobWrite) published() (bool, error) {
	mark := znode.Join(w.dir, blobWriter)
	var marked bool
	err := afterSync(w.ctx, w.c, mark, func() (err error) {
		marked, _, err = w.c.Exists(w.ctx, mark)
		return err
	}, nil)
	if err != nil || marked {
		return false, err
	}
	m, stat, err := w.manifest(w.ctx)
	switch version := znode.Base(w.dir); {
	case err != nil:
		return false, err
	case !m.refersTo(version):
		return false, errors.New("if so, it has been replaced or deleted since")
	case m.Parts == version:
		w.info.Stat = stat
	}
	return true, nil
}

// discard ends a Write that has failed: without its mark, the version is deleted unless it is
// the present one after all. What it does not do before ctx ends is done by the next Write.
func (w *blobWrite) discard(ctx context.Context) {
	if w.dir != "" && remove(ctx, w.c, znode.Join(w.dir, blobWriter)) == nil {
		_ = w.clean(ctx, true)
	}
}

// blobPartOf is the name of a part.
func blobPartOf(i int64) string { return fmt.Sprintf("%010d", i) }
