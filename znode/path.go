package znode

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// ValidatePath checks that path is valid for a znode (ZooKeeper's
// PathUtils.validatePath). The error describes what is wrong and where; it
// wraps ErrBadArguments.
//
// ZooKeeper checks UTF-16 units and refuses surrogates, so no character
// beyond U+FFFF is allowed in a name.
func ValidatePath(path string) error {
	switch {
	case path == "":
		return badPath(path, "a path cannot be empty; the root is /")
	case path[0] != '/':
		return badPath(path, "a path starts with /")
	case len(path) == 1:
		return nil
	case path[len(path)-1] == '/':
		return badPath(path, "a path does not end with /")
	}
	for start := 1; start <= len(path); {
		end := strings.IndexByte(path[start:], '/')
		if end < 0 {
			end = len(path) - start
		}
		switch name := path[start : start+end]; name {
		case "":
			return badPath(path, "an empty name (//) at byte %d", start)
		case ".", "..":
			return badPath(path, "relative name %q at byte %d", name, start)
		}
		start += end + 1
	}
	for i, r := range path {
		if r == utf8.RuneError {
			if _, size := utf8.DecodeRuneInString(path[i:]); size == 1 {
				return badPath(path, "invalid UTF-8 at byte %d", i)
			}
		}
		if forbidden(r) {
			return badPath(path, "character %U at byte %d is not allowed", r, i)
		}
	}
	return nil
}

func forbidden(r rune) bool {
	return r <= 0x1f || r >= 0x7f && r <= 0x9f || r >= 0xd800 && r <= 0xf8ff || r >= 0xfff0
}

func badPath(path, format string, args ...any) error {
	return fmt.Errorf("path %q: %s: %w", path, fmt.Sprintf(format, args...), ErrBadArguments)
}

// Parent returns the path of the znode above path; the root is its own parent.
func Parent(path string) string {
	if i := strings.LastIndexByte(path, '/'); i > 0 {
		return path[:i]
	}
	return "/"
}

// Base returns the last name of path; that of the root is empty.
func Base(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }

// Join appends a child's name to its parent's path.
func Join(parent, name string) string {
	if parent == "/" {
		return "/" + name
	}
	return parent + "/" + name
}

// paths is a set of paths, which most often has one: a map takes 300 bytes.
type paths struct {
	one  string              // not in more; empty: there is none
	more map[string]struct{} // nil: there have been no others
}

func (p paths) len() int {
	if p.one == "" {
		return len(p.more)
	}
	return 1 + len(p.more)
}

// all yields the paths, in no particular order.
func (p paths) all(yield func(string) bool) {
	if p.one != "" && !yield(p.one) {
		return
	}
	for path := range p.more {
		if !yield(path) {
			return
		}
	}
}

// with returns the set with a path that is not in it. The old one may no longer be used.
func (p paths) with(path string) paths {
	switch {
	case p.one == "":
		p.one = path
	case p.more == nil:
		p.more = map[string]struct{}{path: {}}
	default:
		p.more[path] = struct{}{}
	}
	return p
}

// without returns the set without a path. The old one may no longer be used.
func (p paths) without(path string) paths {
	if p.one == path {
		p.one = ""
	} else if delete(p.more, path); len(p.more) == 0 {
		p.more = nil
	}
	return p
}
