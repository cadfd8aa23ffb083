package raftlog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
)

const (
	manifestName  = "manifest"
	manifestTemp  = "manifest.tmp"
	manifestMagic = "zkraftmf"
	manifestSize  = 64

	highWaterName  = "highwater"
	highWaterMagic = "zkrafthw"
	highWaterSize  = 32
)

// manifest lists the segments that exist. It is replaced atomically and is always durable before
// anything relies on it: a segment is named before the first record goes into it, and no longer
// named before its file is removed.
type manifest struct {
	store     uint64   // random; names this log
	opens     uint32   // times the log was opened; upper half of every generation
	first     uint32   // first and last segment, prepared ones included; last = first-1: none
	last      uint32   //
	highWater position // known durable when the manifest was written
}

func (m manifest) encode() []byte {
	b := make([]byte, 0, manifestSize)
	b = append(b, manifestMagic...)
	b = binary.LittleEndian.AppendUint32(b, formatVersion)
	b = binary.LittleEndian.AppendUint32(b, m.opens)
	b = binary.LittleEndian.AppendUint64(b, m.store)
	b = binary.LittleEndian.AppendUint32(b, m.first)
	b = binary.LittleEndian.AppendUint32(b, m.last)
	b = binary.LittleEndian.AppendUint64(b, uint64(m.highWater))
	return putTrailer(b[:manifestSize])
}

// decodeManifest is the inverse of encode; path is for errors only.
func decodeManifest(b []byte, path string) (manifest, error) {
	var m manifest
	corrupt := func(format string, args ...any) error {
		return &CorruptError{File: path, Reason: fmt.Sprintf(format, args...)}
	}
	if len(b) != manifestSize {
		return m, corrupt("the manifest has %d bytes, want %d", len(b), manifestSize)
	}
	if err := checkTrailer(b, manifestMagic); err != nil {
		return m, corrupt("%v", err)
	}
	if v := binary.LittleEndian.Uint32(b[8:]); v != formatVersion {
		return m, fmt.Errorf("%s has format version %d, this program reads version %d",
			path, v, formatVersion)
	}
	m.opens = binary.LittleEndian.Uint32(b[12:])
	m.store = binary.LittleEndian.Uint64(b[16:])
	m.first = binary.LittleEndian.Uint32(b[24:])
	m.last = binary.LittleEndian.Uint32(b[28:])
	m.highWater = position(binary.LittleEndian.Uint64(b[32:]))
	if m.first == 0 || m.last < m.first-1 {
		return m, corrupt("segments %d-%d", m.first, m.last)
	}
	return m, nil
}

// commitManifest makes m the manifest. If committed is true the new one may have replaced the old
// one even though there is an error, so nothing may be assumed about which of them counts.
func commitManifest(fsys FS, dir string, m manifest) (committed bool, err error) {
	temp := filepath.Join(dir, manifestTemp)
	f, err := openOrCreate(fsys, temp)
	if err != nil {
		return false, fmt.Errorf("creating the manifest: %w", err)
	}
	err = writeFull(f, m.encode(), 0)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return false, fmt.Errorf("writing the manifest: %w", err)
	}
	if err := fsys.Rename(temp, filepath.Join(dir, manifestName)); err != nil {
		return true, fmt.Errorf("replacing the manifest: %w", err)
	}
	if err := fsys.SyncDir(dir); err != nil {
		return true, fmt.Errorf("syncing directory %s: %w", dir, err)
	}
	preallocateManifest(fsys, temp)
	return true, nil
}

// preallocateManifest takes the space of the next manifest in advance: on a full disk the manifest must
// still change, because that is how segments are dropped. It may fail, the next commit then needs
// space.
func preallocateManifest(fsys FS, temp string) {
	f, err := fsys.Create(temp)
	if err != nil {
		return
	}
	if writeFull(f, make([]byte, manifestSize), 0) == nil {
		_ = f.Sync()
	}
	_ = f.Close()
}

func openOrCreate(fsys FS, path string) (File, error) {
	f, err := fsys.Open(path)
	if isNotExist(err) {
		f, err = fsys.Create(path)
	}
	return f, err
}

// readSmall reads a file of at most limit bytes.
func readSmall(fsys FS, path string, limit int64) ([]byte, error) {
	f, err := fsys.Open(path)
	if err != nil {
		return nil, err
	}
	size, err := f.Size()
	if err == nil && size > limit {
		size = limit + 1 // enough to be noticed as too long
	}
	b := make([]byte, size)
	if err == nil {
		err = readFull(f, b, 0)
	}
	return b, errors.Join(err, f.Close())
}

func isNotExist(err error) bool { return errors.Is(err, fs.ErrNotExist) }

// encodeHighWater encodes the content of the high-water file: a position known durable.
func encodeHighWater(store uint64, p position) []byte {
	b := make([]byte, 0, highWaterSize)
	b = append(b, highWaterMagic...)
	b = binary.LittleEndian.AppendUint64(b, store)
	b = binary.LittleEndian.AppendUint64(b, uint64(p))
	return putTrailer(b[:highWaterSize])
}

// decodeHighWater returns 0 if b is not a high-water file of this store: the file is written
// without syncs, so any content is possible after a power cut.
func decodeHighWater(b []byte, store uint64) position {
	if len(b) != highWaterSize || checkTrailer(b, highWaterMagic) != nil ||
		binary.LittleEndian.Uint64(b[8:]) != store {
		return 0
	}
	return position(binary.LittleEndian.Uint64(b[16:]))
}
