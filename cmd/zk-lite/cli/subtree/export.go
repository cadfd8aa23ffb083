package subtree

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/znode"
)

// Format is what the first line of an export calls itself.
const Format = "zk-lite-export-1"

// maxLine bounds a line of an export: the largest data that a server takes by
// default, as base64, and a path and ACL of a generous length. Servers with a
// larger jute.maxbuffer are rare, and up to about eleven megabytes of data fit.
const maxLine = 16 << 20

// The encodings of data.
const (
	encodingUTF8   = "utf-8"
	encodingBase64 = "base64"
)

// Errors of an import.
var (
	// ErrNotExport reports that the input is no export.
	ErrNotExport = errors.New("not an export of zk-lite")
	// ErrTruncated reports that the end of an export is missing.
	ErrTruncated = errors.New("the export is incomplete: its last line is missing")
)

// header is the first line.
type header struct {
	Format string `json:"format"`
	Root   string `json:"root"`
	Zxid   string `json:"zxid,omitempty"` // of the state that it shows
}

// line is a znode. The path is relative to the root, which has "".
type line struct {
	Path     *string  `json:"path"`
	Data     *string  `json:"data"` // null is none
	Encoding string   `json:"encoding,omitempty"`
	ACL      []string `json:"acl"`

	Ephemeral bool `json:"ephemeral,omitempty"`
}

// trailer is the last line.
type trailer struct {
	End *int `json:"end"` // how many znodes there were
}

// EncodeData writes data as JSON can hold it: as text if it is valid UTF-8, else
// as base64. nil stays nil.
func EncodeData(b []byte) (text *string, encoding string) {
	if b == nil {
		return nil, ""
	}
	s, encoding := string(b), encodingUTF8
	if !utf8.Valid(b) {
		s, encoding = base64.StdEncoding.EncodeToString(b), encodingBase64
	}
	return &s, encoding
}

func decodeData(text *string, encoding string) ([]byte, error) {
	if text == nil {
		return nil, nil
	}
	switch encoding {
	case "", encodingUTF8:
		return []byte(*text), nil
	case encodingBase64:
		b, err := base64.StdEncoding.DecodeString(*text)
		if err != nil {
			return nil, fmt.Errorf("data: %w", err)
		}
		return b, nil
	}
	return nil, fmt.Errorf("encoding %q: want %s or %s", encoding, encodingUTF8, encodingBase64)
}

// Export writes a subtree as lines of JSON: a header, the znodes, parents first,
// and a last line with their number, which it returns. The header has the zxid of the
// state. The error of a znode below root that cannot be read goes to unreadable: if that
// returns nil, it is left out with all below it.
//
// Errors: ErrNoNode; one if root belongs to the servers; ErrNoAuth if root may not be read as a whole.
func Export(
	ctx context.Context, c *client.Client, root string, out io.Writer, step func(), unreadable func(error) error,
) (int, error) {
	if systemPath(root) {
		return 0, systemError(root)
	}
	w := bufio.NewWriter(out)
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	n := 0
	s, err := open(ctx, c, root)
	if err != nil {
		return 0, err
	}
	defer s.close()
	head := header{Format: Format, Root: root}
	if s.Zxid != 0 {
		head.Zxid = s.Zxid.String()
	}
	for node, err := range s.walk(root, wholeZnodes) {
		if err != nil && node.Depth > 0 {
			if err = unreadable(err); err == nil {
				continue
			}
		}
		if err == nil && n == 0 { // not before it is known that there is a root
			err = enc.Encode(head)
		}
		if err == nil {
			err = enc.Encode(lineOf(&node))
		}
		if err != nil {
			return n, err
		}
		n++
		step()
	}
	if err := enc.Encode(trailer{&n}); err != nil {
		return n, err
	}
	return n, w.Flush()
}

func lineOf(n *Node) *line {
	l := &line{Path: &n.Rel, Ephemeral: Ephemeral(n.Stat)}
	l.Data, l.Encoding = EncodeData(n.Data)
	for _, acl := range n.ACL {
		l.ACL = append(l.ACL, FormatACL(acl))
	}
	return l
}

// Reader reads an export.
type Reader struct {
	Root string // where the export was taken

	in      *bufio.Scanner
	number  int // of the current line
	records int
}

// NewReader reads the header of an export.
//
// Errors: ErrNotExport.
func NewReader(in io.Reader) (*Reader, error) {
	r := &Reader{in: bufio.NewScanner(in)}
	r.in.Buffer(nil, maxLine)
	b, err := r.line()
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	var h header
	if err != nil || json.Unmarshal(b, &h) != nil || h.Format != Format {
		return nil, fmt.Errorf("%w: the first line does not say %q", ErrNotExport, Format)
	}
	if err := znode.ValidatePath(h.Root); err != nil {
		return nil, fmt.Errorf("%w: its root: %w", ErrNotExport, err)
	}
	r.Root = h.Root
	return r, nil
}

func (r *Reader) line() ([]byte, error) {
	r.number++
	if r.in.Scan() {
		return r.in.Bytes(), nil
	}
	if err := r.in.Err(); err != nil {
		return nil, fmt.Errorf("line %d: %w", r.number, err)
	}
	return nil, io.EOF
}

// Next returns the next znode, its path being the one below root, and io.EOF
// behind the last.
//
// Errors: ErrTruncated; what is wrong with a line, with its number, also behind the
// last.
func (r *Reader) Next(root string) (Record, error) {
	b, err := r.line()
	if errors.Is(err, io.EOF) {
		return Record{}, ErrTruncated
	}
	if err != nil {
		return Record{}, err
	}
	var both struct {
		line
		trailer
	}
	if err := json.Unmarshal(b, &both); err != nil {
		return Record{}, fmt.Errorf("line %d: %w", r.number, err)
	}
	switch {
	case both.End != nil && *both.End != r.records:
		return Record{}, fmt.Errorf("line %d: %d znodes were written and %d are here: %w",
			r.number, *both.End, r.records, ErrTruncated)
	case both.End != nil:
		return Record{}, r.end()
	}
	rec, err := both.record(root)
	if err != nil {
		return Record{}, fmt.Errorf("line %d: %w", r.number, err)
	}
	r.records++
	return rec, nil
}

// end reads what follows the last line. Only blank lines may: a second export there
// would be ignored.
func (r *Reader) end() error {
	for {
		b, err := r.line()
		if err != nil {
			return err
		}
		if len(bytes.TrimSpace(b)) > 0 {
			return fmt.Errorf("line %d: the export has ended above: want one export, and nothing behind it",
				r.number)
		}
	}
}

func (l *line) record(root string) (Record, error) {
	if l.Path == nil {
		return Record{}, errors.New("neither a path nor the end")
	}
	rec := Record{Path: join(root, *l.Path), Ephemeral: l.Ephemeral}
	if err := znode.ValidatePath(rec.Path); err != nil {
		return rec, err
	}
	var err error
	if rec.Data, err = decodeData(l.Data, l.Encoding); err != nil {
		return rec, err
	}
	for _, s := range l.ACL {
		acl, err := ParseACL(s)
		if err != nil {
			return rec, err
		}
		rec.ACL = append(rec.ACL, acl)
	}
	return rec, nil
}

// Import writes the znodes of an export below root. What was written before an
// error stays; with Keep or Replace, Import can be repeated. Ephemerals are left
// out, and counted. The root / is there always, and is replaced only by Replace.
//
// Errors: ErrNodeExists (Refuse), ErrTruncated, a bad line.
func Import(
	ctx context.Context, c *client.Client, r *Reader, root string, existing Existing, step func(),
) (Count, error) {
	w := &writer{ctx: ctx, c: c, existing: existing, step: step}
	err := w.read(r, root)
	err = errors.Join(err, w.flush())
	return w.Count, err
}

func (w *writer) read(r *Reader, root string) error {
	for {
		rec, err := r.Next(root)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case systemPath(rec.Path):
			return fmt.Errorf("%s belongs to the servers and cannot be imported", rec.Path)
		case rec.Path == "/" && w.existing != Replace:
			w.Kept++
			continue
		}
		if err := w.put(rec); err != nil {
			return err
		}
	}
}

// permLetters are the permissions in zkCli's order.
const permLetters = "cdrwa"

// ParseACL reads an entry in zkCli's form, scheme:id:perms, such as
// world:anyone:cdrwa, digest:user:hash:r or auth::rw. The scheme ends at the
// first colon, the permissions begin behind the last.
func ParseACL(s string) (client.ACL, error) {
	first, last := strings.IndexByte(s, ':'), strings.LastIndexByte(s, ':')
	if first <= 0 || first == last {
		return client.ACL{}, fmt.Errorf("ACL %q: want scheme:id:perms, as in world:anyone:r", s)
	}
	acl := client.ACL{ID: client.ID{Scheme: s[:first], ID: s[first+1 : last]}}
	for _, letter := range s[last+1:] {
		perm, ok := permOf(letter)
		if !ok {
			return client.ACL{}, fmt.Errorf("ACL %q: permission %q is none of c d r w a", s, letter)
		}
		acl.Perms |= perm
	}
	if acl.Perms == 0 {
		return client.ACL{}, fmt.Errorf("ACL %q: no permission; want some of cdrwa", s)
	}
	return acl, nil
}

func permOf(letter rune) (client.Perms, bool) {
	switch letter {
	case 'c':
		return client.PermCreate, true
	case 'd':
		return client.PermDelete, true
	case 'r':
		return client.PermRead, true
	case 'w':
		return client.PermWrite, true
	case 'a':
		return client.PermAdmin, true
	}
	return 0, false
}

// FormatACL is the inverse of ParseACL. Bits that have no letter are not shown.
func FormatACL(acl client.ACL) string {
	var perms strings.Builder
	for _, letter := range permLetters {
		if p, _ := permOf(letter); acl.Perms&p != 0 {
			perms.WriteRune(letter)
		}
	}
	return acl.ID.Scheme + ":" + acl.ID.ID + ":" + perms.String()
}

// masked reports whether the server has hidden a part of the list: without the
// permission ADMIN the hashes of digests come as x (FinalRequestProcessor).
func masked(list []client.ACL) bool {
	for _, acl := range list {
		if acl.ID.Scheme == "digest" && strings.HasSuffix(acl.ID.ID, ":x") {
			return true
		}
	}
	return false
}
