package recipes

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
)

// FuzzBlobManifest: any data of a znode is a manifest in range, or not a blob's. A reader can rely on the numbers and
// names: it asks for parts below the blob alone.
func FuzzBlobManifest(f *testing.F) {
	const good = `{"format":"zk-lite-blob-1","size":131073,"sha256":"` + zeros + `","partSize":131072,` +
		`"parts":"_blob-AAAAAAAAAAAAAAAAAAAAAAAAAA","previous":"_blob-BBBBBBBBBBBBBBBBBBBBBBBBBB"}`
	if m, err := decodeManifest([]byte(good)); err != nil || m.count() != 2 {
		f.Fatalf("got %+v, %v; want a manifest of two parts", m, err)
	}
	f.Add([]byte(good))
	for _, change := range [][2]string{
		{`131073`, `-1`}, {`131073`, `1073741825`}, {`131072`, `0`}, {`blob-1`, `blob-2`}, {zeros, "00"}, {zeros, "zz"},
		{"_blob-A", "/"}, {"_blob-A", "../_blob-A"}, {"_blob-B", "b"}, {`"parts"`, `"part"`}, {`{`, `[`}, {`1`, `1e3`},
	} {
		bad := []byte(strings.Replace(good, change[0], change[1], 1))
		if m, err := decodeManifest(bad); !errors.Is(err, ErrNoBlob) {
			f.Errorf("%s: got %+v, %v; want ErrNoBlob", bad, m, err)
		}
		f.Add(bad)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := decodeManifest(data)
		if err != nil || m == nil {
			if (err == nil) != (len(data) == 0) || err != nil && !errors.Is(err, ErrNoBlob) {
				t.Fatalf("%q: got %+v, %v; want ErrNoBlob", data, m, err)
			}
			return
		}
		if n := m.count(); n < 0 || n > MaxBlob || n*m.PartSize < m.Size || n > 0 && (n-1)*m.PartSize >= m.Size ||
			strings.ContainsAny(m.Parts+m.Previous, "/.") {
			t.Fatalf("%q: got %+v with %d parts, want a manifest in range", data, m, n)
		}
		again, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		if other, err := decodeManifest(again); err != nil || !reflect.DeepEqual(m, other) {
			t.Fatalf("%s: got %+v, %v; want %+v", again, other, err, m)
		}
	})
}

// zeros is a SHA-256.
const zeros = "0000000000000000000000000000000000000000000000000000000000000000"
