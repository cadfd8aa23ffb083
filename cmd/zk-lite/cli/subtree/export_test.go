package subtree

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/znode"
)

func TestParseACL(t *testing.T) {
	for _, s := range []string{
		"world:anyone:cdrwa", "digest:ann:aGFzaA==:rw", "auth::r", "ip:10.0.0.0/8:cd", "x509:CN=a:b:w",
	} {
		acl, err := ParseACL(s)
		if err != nil || FormatACL(acl) != s {
			t.Errorf("%s: %+v, which is %s, error %v", s, acl, FormatACL(acl), err)
		}
	}
	for _, s := range []string{"", "world", "world:anyone", ":anyone:r", "world:anyone:", "world:anyone:x", "world:anyone:R"} {
		if acl, err := ParseACL(s); err == nil {
			t.Errorf("%q is accepted: %+v", s, acl)
		}
	}
}

func TestComparePaths_IsTheOrderOfWalk(t *testing.T) {
	order := []string{"", "a", "a/b", "a/b/c", "a/c", "a!", "a-b", "b"}
	for i, a := range order {
		for j, b := range order {
			if got := comparePaths(a, b); (got < 0) != (i < j) || (got == 0) != (i == j) {
				t.Errorf("comparePaths(%q, %q) = %d", a, b, got)
			}
		}
	}
}

func TestRelative_JoinIsItsInverse(t *testing.T) {
	for _, c := range [][3]string{
		{"/", "/", ""}, {"/", "/a", "a"}, {"/", "/a/b", "a/b"},
		{"/a", "/a", ""}, {"/a", "/a/b", "b"}, {"/a/b", "/a/b/c/d", "c/d"},
	} {
		if got := relative(c[0], c[1]); got != c[2] || join(c[0], got) != c[1] {
			t.Errorf("relative(%q, %q) = %q, want %q; join: %q", c[0], c[1], got, c[2], join(c[0], got))
		}
	}
	for _, c := range []struct {
		root, path string
		want       bool
	}{{"/a", "/a", true}, {"/a", "/a/b", true}, {"/a", "/ab", false}, {"/", "/x", true}, {"/a/b", "/a", false}} {
		if within(c.root, c.path) != c.want {
			t.Errorf("within(%q, %q) is not %v", c.root, c.path, c.want)
		}
	}
}

// FuzzReader_Next: whatever is accepted is a znode that could exist, and is read
// again from what an export would write of it.
func FuzzReader_Next(f *testing.F) {
	head := `{"format":"zk-lite-export-1","root":"/app"}` + "\n"
	f.Add(head + `{"path":"","data":"x","encoding":"utf-8","acl":["world:anyone:r"]}` + "\n" + `{"end":1}` + "\n")
	f.Add(head + `{"path":"a/b","data":"/wA=","encoding":"base64","acl":[],"ephemeral":true}` + "\n")
	f.Add(head + `{"end":0}`)
	f.Add(head + `{"path":"..","data":null}`)
	f.Fuzz(func(t *testing.T, text string) {
		r, err := NewReader(strings.NewReader(text))
		if err != nil {
			return
		}
		for {
			rec, err := r.Next(r.Root)
			if err != nil {
				if errors.Is(err, io.EOF) && errors.Is(err, ErrTruncated) {
					t.Error("both the end and too early")
				}
				return
			}
			if err := znode.ValidatePath(rec.Path); err != nil || !within(r.Root, rec.Path) {
				t.Fatalf("the path %q in the export of %q: %v", rec.Path, r.Root, err)
			}
			b, err := json.Marshal(lineOf(&Node{
				Rel: relative(r.Root, rec.Path), Data: rec.Data, ACL: rec.ACL,
				Stat: client.Stat{EphemeralOwner: map[bool]client.SessionID{true: 1}[rec.Ephemeral]},
			}))
			if err != nil {
				t.Fatal(err)
			}
			var again line
			if err := json.Unmarshal(b, &again); err != nil {
				t.Fatal(err)
			}
			twin, err := again.record(r.Root)
			if err != nil || twin.Path != rec.Path || !bytes.Equal(twin.Data, rec.Data) ||
				(twin.Data == nil) != (rec.Data == nil) || len(twin.ACL) != len(rec.ACL) || twin.Ephemeral != rec.Ephemeral {
				t.Fatalf("%+v is read again as %+v, %v", rec, twin, err)
			}
		}
	})
}
