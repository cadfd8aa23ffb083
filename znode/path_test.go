package znode

import (
	"errors"
	"testing"
	"unicode/utf16"
	"unicode/utf8"
)

// The examples of ZooKeeper's own test (ClientTest.testPathValidation) and of
// the limits of every forbidden range.
func TestValidatePath_Examples(t *testing.T) {
	for path, want := range map[string]bool{
		"": false, "/": true, "//": false, "foo": false, "/f/": false, "/f//f": false, "/f/./f": false,
		"/f/../f": false, "/./f": false, "/../f": false, "/f/.": false, "/f/..": false, "/.": false,
		"/..": false, "/.foo": true, "/.f.": true, "/..f": true, "/..f..": true, "/f.c": true,
		"/f\u0040f": true, "/f/.f": true, "/f/f.": true, "/f/..f": true, "/f/f..": true, "/...": true,
		"/f/.../f": true, "/ ": true, "/\u0000": false, "/f\u0001f": false, "/f\u001ff": false,
		"/f\u0020f": true, "/f\u007ef": true, "/f\u007ff": false, "/f\u009ff": false, "/f\u00a0f": true,
		"/f\ud7fff": true, "/f\uf8fff": false, "/f\uf900f": true, "/f\uffeff": true, "/f\ufff0f": false,
		"/f\ufffff": false, "/f\ufffdf": false, "/f\U0001f600": false, "/f\xff": false, "/\xed\xa0\x80": false,
	} {
		err := ValidatePath(path)
		if (err == nil) != want {
			t.Errorf("path %q: error %v, want valid: %t", path, err, want)
		}
		if err != nil && !errors.Is(err, ErrBadArguments) {
			t.Errorf("%q: %v is no ErrBadArguments", path, err)
		}
	}
}

// javaValid is PathUtils.validatePath, word for word over UTF-16 units.
func javaValid(path string) bool {
	c := utf16.Encode([]rune(path))
	if len(c) == 0 || c[0] != '/' {
		return false
	}
	if len(c) == 1 {
		return true
	}
	if c[len(c)-1] == '/' {
		return false
	}
	ends := func(i int) bool { return i+1 == len(c) || c[i+1] == '/' }
	for i := 1; i < len(c); i++ {
		u, last := c[i], c[i-1]
		switch {
		case u == 0, u == '/' && last == '/',
			u == '.' && last == '.' && c[i-2] == '/' && ends(i),
			u == '.' && last == '/' && ends(i),
			u >= 1 && u <= 0x1f, u >= 0x7f && u <= 0x9f, u >= 0xd800 && u <= 0xf8ff, u >= 0xfff0:
			return false
		}
	}
	return true
}

func FuzzValidatePath(f *testing.F) {
	for _, s := range []string{"/", "/a/b", "/a/../b", "/.", "/a/.b.", "//", "/\u0085", "/\U0001f600", "/\ufff0", "/\xc3("} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, path string) {
		want := utf8.ValidString(path) && javaValid(path)
		if got := ValidatePath(path); (got == nil) != want {
			t.Errorf("%q: %v, ZooKeeper says %v", path, got, want)
		}
	})
}

func TestPath_Parts(t *testing.T) {
	for _, c := range [][3]string{{"/a/b", "/a", "b"}, {"/a", "/", "a"}} {
		if Parent(c[0]) != c[1] || Base(c[0]) != c[2] || Join(c[1], c[2]) != c[0] {
			t.Errorf("%s has parent %s and base %s, want %s and %s", c[0], Parent(c[0]), Base(c[0]), c[1], c[2])
		}
	}
	if Parent("/") != "/" || Base("/") != "" {
		t.Errorf("root: %q %q", Parent("/"), Base("/"))
	}
}
