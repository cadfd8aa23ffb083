package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"time"
)

// imageUser owns the data directory of an image; no other user has this number.
const imageUser = 65532

// file is an entry of a tar archive; one whose name ends in / is a directory.
type file struct {
	name    string
	mode    int64
	owner   int
	content []byte
}

// archive is a tar archive, all of one time.
func archive(t time.Time, files []file) ([]byte, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, f := range files {
		h := &tar.Header{
			Name: f.name, Mode: f.mode, Uid: f.owner, Gid: f.owner, Size: int64(len(f.content)), ModTime: t,
			Typeflag: tar.TypeReg, Format: tar.FormatPAX,
		}
		if f.name[len(f.name)-1] == '/' {
			h.Typeflag = tar.TypeDir
		}
		if err := w.WriteHeader(h); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.content); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// compressed is in gzip's format, without a time or name.
func compressed(content []byte) ([]byte, error) {
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(content); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

func digest(b []byte) string { return fmt.Sprintf("sha256:%x", sha256.Sum256(b)) }

// layout collects the blobs of an image.
type layout struct{ files []file }

type object = map[string]any

// add adds a blob and returns its descriptor.
func (l *layout) add(mediaType string, content []byte) object {
	l.files = append(l.files, file{name: blob(content), mode: 0o644, content: content})
	return object{"mediaType": mediaType, "digest": digest(content), "size": len(content)}
}

func blob(content []byte) string { return "blobs/sha256/" + digest(content)[len("sha256:"):] }

// addJSON adds a value as a blob.
func (l *layout) addJSON(mediaType string, v any) (descriptor object, content []byte, err error) {
	if content, err = json.Marshal(v); err != nil {
		return nil, nil, err
	}
	return l.add(mediaType, content), content, nil
}

// image writes a container image with only the binary and an empty directory for its data: an archive with the
// layout of the OCI's image specification 1.1, and the file that `docker load` needs before version 25
// (manifest.json).
func (b *builder) image(name, binary string, t target) error {
	program, err := os.ReadFile(binary)
	if err != nil {
		return err
	}
	root, err := archive(b.time, []file{
		{name: "data/", mode: 0o700, owner: imageUser}, {name: "zk-lite", mode: 0o755, content: program},
	})
	if err != nil {
		return err
	}
	layer, err := compressed(root)
	if err != nil {
		return err
	}
	labels := map[string]string{
		"org.opencontainers.image.title": "zk-lite", "org.opencontainers.image.version": b.version,
		"org.opencontainers.image.revision": b.commit, "org.opencontainers.image.source": homepage,
		"org.opencontainers.image.created":  b.time.Format(time.RFC3339),
		"org.opencontainers.image.licenses": "Apache-2.0",
	}
	const oci = "application/vnd.oci.image."
	var l layout
	layerDescriptor := l.add(oci+"layer.v1.tar+gzip", layer)
	config, configContent, err := l.addJSON(oci+"config.v1+json", object{
		"created": b.time, "os": t.system, "architecture": t.arch,
		"config": object{
			"User": fmt.Sprintf("%d:%d", imageUser, imageUser), "WorkingDir": "/",
			"Entrypoint": []string{"/zk-lite"}, "Cmd": []string{"server", "--data-dir", "/data"},
			"Volumes": object{"/data": object{}}, "StopSignal": "SIGTERM", "Labels": labels,
			"ExposedPorts": object{"2181/tcp": object{}, "2888/tcp": object{}, "8080/tcp": object{}},
		},
		"rootfs":  object{"type": "layers", "diff_ids": []string{digest(root)}},
		"history": []object{{"created": b.time, "created_by": "zk-lite's packaging"}},
	})
	if err != nil {
		return err
	}
	manifest, _, err := l.addJSON(oci+"manifest.v1+json", object{
		"schemaVersion": 2, "mediaType": oci + "manifest.v1+json", "config": config,
		"layers": []object{layerDescriptor}, "annotations": labels,
	})
	if err != nil {
		return err
	}
	manifest["platform"] = object{"os": t.system, "architecture": t.arch}
	manifest["annotations"] = object{"org.opencontainers.image.ref.name": b.version}
	files, err := topFiles(object{
		"schemaVersion": 2, "mediaType": oci + "index.v1+json", "manifests": []object{manifest},
	}, []object{{
		"Config": blob(configContent), "RepoTags": []string{"zk-lite:" + b.version}, "Layers": []string{blob(layer)},
	}})
	if err != nil {
		return err
	}
	dirs := []file{{name: "blobs/", mode: 0o755}, {name: "blobs/sha256/", mode: 0o755}}
	all, err := archive(b.time, slices.Concat(dirs, l.files, files))
	if err != nil {
		return err
	}
	return os.WriteFile(name, all, 0o644)
}

// topFiles are the files by which readers find the rest.
func topFiles(index, manifest any) ([]file, error) {
	var files []file
	for _, f := range []struct {
		name string
		v    any
	}{{"oci-layout", object{"imageLayoutVersion": "1.0.0"}}, {"index.json", index}, {"manifest.json", manifest}} {
		content, err := json.Marshal(f.v)
		if err != nil {
			return nil, err
		}
		files = append(files, file{name: f.name, mode: 0o644, content: content})
	}
	return files, nil
}
