package inspect

import (
	"bufio"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/zk-lite/zk-lite/znode"
)

// printer prints items, of which each has a form in text and one in JSON.
type printer struct {
	ctx  context.Context
	w    *bufio.Writer
	json *json.Encoder
	o    Options
}

func newPrinter(ctx context.Context, w io.Writer, o Options) *printer {
	p := &printer{ctx: ctx, w: bufio.NewWriterSize(w, 64<<10), o: o}
	p.json = json.NewEncoder(p.w)
	p.json.SetEscapeHTML(false)
	return p
}

// item is a line of JSON, and text.
type item interface{ text(w io.Writer) }

// put prints an item. Errors: of the output, or of the context.
func (p *printer) put(i item) error {
	if err := p.ctx.Err(); err != nil {
		return err
	}
	if p.o.JSON {
		return p.json.Encode(i)
	}
	i.text(p.w)
	_, err := p.w.Write(nil) // its error stays
	return err
}

// hex is a zxid or an id of a session, as in all output of ours.
type hex int64

func (h hex) String() string { return fmt.Sprintf("0x%x", uint64(h)) }

// MarshalText implements encoding.TextMarshaler.
func (h hex) MarshalText() ([]byte, error) { return []byte(h.String()), nil }

func timeText(millis int64) string {
	return time.UnixMilli(millis).UTC().Format("2006-01-02T15:04:05.000Z")
}

// shown is a text of a file, which may hold anything, for a terminal.
func shown(text string) string {
	if strings.ContainsFunc(text, func(r rune) bool { return !strconv.IsPrint(r) }) {
		return strconv.Quote(text)
	}
	return text
}

// field is a name with a value in the text of an item.
func field(w io.Writer, name string, value any) { fmt.Fprintf(w, "  %s = %v\n", name, value) }

// fileItem is the head of a file.
type fileItem struct {
	Kind     string `json:"kind"` // "file"
	File     string `json:"file"`
	Format   string `json:"format"`
	Zxid     *hex   `json:"zxid,omitempty"` // of a snapshot; nil: the file does not say
	Index    uint64 `json:"index,omitempty"`
	Term     uint64 `json:"term,omitempty"`
	Time     string `json:"time,omitempty"`
	Ensemble string `json:"ensemble,omitempty"`
	Level    uint32 `json:"level,omitempty"`
	Mirror   string `json:"mirror,omitempty"` // what it mirrors, or has taken over
}

func (f *fileItem) text(w io.Writer) {
	fmt.Fprintf(w, "%s: %s\n", f.File, f.Format)
	for _, x := range []struct{ name, value string }{
		{"ensemble", f.Ensemble}, {"time", f.Time}, {"index", number(f.Index)}, {"term", number(f.Term)},
		{"feature level", number(uint64(f.Level))}, {"mirror", f.Mirror},
	} {
		if x.value != "" {
			field(w, x.name, x.value)
		}
	}
	if f.Zxid != nil {
		field(w, "zxid", f.Zxid)
	}
}

func number(n uint64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatUint(n, 10)
}

// content is the data of a znode or of a change; its length alone unless asked for.
type content struct {
	Length *int    `json:"dataLength,omitempty"` // nil: there is none
	Null   bool    `json:"null,omitempty"`
	Data   *string `json:"data,omitempty"` // base64
}

func (p *printer) content(data []byte) content {
	n := len(data)
	c := content{Length: &n, Null: data == nil}
	if p.o.Data && data != nil {
		text := base64.StdEncoding.EncodeToString(data)
		c.Data = &text
	}
	return c
}

// acl is a list as the command getacl prints it. Without Options.Data, the hash of a digest is x, as servers answer
// clients that may not administer the znode.
func (p *printer) acl(list []znode.ACL) []string {
	all := make([]string, 0, len(list))
	for _, a := range list {
		id := a.ID.ID
		if user, _, ok := strings.Cut(id, ":"); ok && a.ID.Scheme == "digest" && !p.o.Data {
			id = user + ":x"
		}
		all = append(all, a.ID.Scheme+":"+id+":"+a.Perms.String())
	}
	return all
}

// stat is a Stat under the names of the protocol, as stored: cversion is the number of children ever created.
type stat struct {
	Czxid          hex    `json:"czxid"`
	Mzxid          hex    `json:"mzxid"`
	Ctime          string `json:"ctime"`
	Mtime          string `json:"mtime"`
	Version        int32  `json:"version"`
	Cversion       int32  `json:"cversion"`
	Aversion       int32  `json:"aversion"`
	EphemeralOwner hex    `json:"ephemeralOwner"`
	Pzxid          hex    `json:"pzxid"`
}

// znodeItem is a znode of a snapshot.
type znodeItem struct {
	Kind string   `json:"kind"` // "znode"
	Path string   `json:"path"`
	Life string   `json:"lifetime"`
	TTL  int64    `json:"ttl_ms,omitempty"`
	Stat stat     `json:"stat"`
	ACL  []string `json:"acl"` // empty: the file does not have it
	content
}

func (p *printer) znode(r *znode.Record) *znodeItem {
	s := &r.Stat
	life, ttl := r.Kind()
	return &znodeItem{
		Kind: "znode", Path: r.Path, Life: life, TTL: ttl, ACL: p.acl(r.ACL), content: p.content(r.Data),
		Stat: stat{
			Czxid: hex(s.Czxid), Mzxid: hex(s.Mzxid), Ctime: timeText(s.Ctime), Mtime: timeText(s.Mtime),
			Version: int32(s.Version), Cversion: int32(s.Cversion), Aversion: int32(s.Aversion),
			EphemeralOwner: hex(s.EphemeralOwner), Pzxid: hex(s.Pzxid),
		},
	}
}

// text has the fields of SnapshotFormatter, and two more.
func (z *znodeItem) text(w io.Writer) {
	fmt.Fprintf(w, "----\n%s\n", shown(z.Path))
	s := &z.Stat
	field(w, "cZxid", s.Czxid)
	field(w, "ctime", s.Ctime)
	field(w, "mZxid", s.Mzxid)
	field(w, "mtime", s.Mtime)
	field(w, "pZxid", s.Pzxid)
	field(w, "cversion", s.Cversion)
	field(w, "dataVersion", s.Version)
	field(w, "aclVersion", s.Aversion)
	field(w, "ephemeralOwner", s.EphemeralOwner)
	switch {
	case z.TTL > 0:
		field(w, "lifetime", fmt.Sprintf("%s, %d ms", z.Life, z.TTL))
	case z.Life != znode.KindPersistent:
		field(w, "lifetime", z.Life)
	}
	field(w, "acl", shown(strings.Join(z.ACL, ",")))
	if z.Null {
		field(w, "dataLength", "0 (null)")
	} else {
		field(w, "dataLength", *z.Length)
	}
	if z.Data != nil {
		field(w, "data", *z.Data)
	}
}

// sessionItem is a session of a snapshot.
type sessionItem struct {
	Kind       string `json:"kind"` // "session"
	ID         hex    `json:"session"`
	Timeout    int64  `json:"timeout_ms"`
	Ephemerals int    `json:"ephemerals"`
}

func (s *sessionItem) text(w io.Writer) {
	fmt.Fprintf(w, "%v, %d, %d\n", s.ID, s.Timeout, s.Ephemerals)
}

type line string

func (l line) text(w io.Writer) { fmt.Fprintln(w, string(l)) }

// tally collects what follows the znodes of a snapshot.
type tally struct {
	sessions []*sessionItem
	znodes   int
	owned    map[znode.SessionID]int
}

func newTally() *tally { return &tally{owned: map[znode.SessionID]int{}} }

func (t *tally) session(id znode.SessionID, timeoutMillis int64) {
	t.sessions = append(t.sessions, &sessionItem{Kind: "session", ID: hex(id), Timeout: timeoutMillis})
}

func (t *tally) znode(r *znode.Record) {
	t.znodes++
	if kind, _ := r.Kind(); kind == znode.KindEphemeral {
		t.owned[r.Stat.EphemeralOwner]++
	}
}

// put prints the sessions, with their ephemerals as far as the znodes were read.
func (t *tally) put(p *printer) error {
	slices.SortFunc(t.sessions, func(a, b *sessionItem) int { return cmp.Compare(uint64(a.ID), uint64(b.ID)) })
	if !p.o.JSON {
		if err := p.put(line("----\nsessions (id, timeout in ms, ephemerals):")); err != nil {
			return err
		}
	}
	for _, s := range t.sessions {
		s.Ephemerals = t.owned[znode.SessionID(s.ID)]
		if err := p.put(s); err != nil {
			return err
		}
	}
	return nil
}

// endItem is the end of a file that is whole.
type endItem struct {
	Kind     string `json:"kind"` // "end"
	Znodes   *int   `json:"znodes,omitempty"`
	Sessions *int   `json:"sessions,omitempty"`
	Entries  *int   `json:"entries,omitempty"`      // of a log of ours
	Txns     *int   `json:"transactions,omitempty"` // of ZooKeeper's
	Offset   int64  `json:"offset,omitempty"`       // of the end of a log
	Digest   string `json:"digest,omitempty"`
	Note     string `json:"note"`
}

func (e *endItem) text(w io.Writer) {
	fmt.Fprint(w, "----\n")
	for _, x := range []struct {
		n    *int
		what string
	}{{e.Znodes, "znodes"}, {e.Sessions, "sessions"}, {e.Entries, "entries"}, {e.Txns, "transactions"}} {
		if x.n != nil {
			fmt.Fprintf(w, "%d %s, ", *x.n, x.what)
		}
	}
	fmt.Fprintln(w, e.Note)
}
