package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/cmd/zk-lite/cli/subtree"
	"github.com/zk-lite/zk-lite/znode"
)

// writeJSON writes a value on one line.
func writeJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// hexadecimal is how zxids and session ids are written, as ZooKeeper's tools do.
// JSON has no integers of 64 bits that all readers keep.
type hexadecimal int64

func (h hexadecimal) String() string { return fmt.Sprintf("0x%x", uint64(h)) }

func (h hexadecimal) MarshalText() ([]byte, error) { return []byte(h.String()), nil }

// statJSON is a Stat in the words of the protocol.
type statJSON struct {
	Czxid          hexadecimal   `json:"czxid"`
	Mzxid          hexadecimal   `json:"mzxid"`
	Ctime          string        `json:"ctime"`
	Mtime          string        `json:"mtime"`
	Version        znode.Version `json:"version"`
	Cversion       znode.Version `json:"cversion"`
	Aversion       znode.Version `json:"aversion"`
	EphemeralOwner hexadecimal   `json:"ephemeralOwner"`
	DataLength     int32         `json:"dataLength"`
	NumChildren    int32         `json:"numChildren"`
	Pzxid          hexadecimal   `json:"pzxid"`
}

func newStatJSON(s client.Stat) *statJSON {
	return &statJSON{
		hexadecimal(s.Czxid), hexadecimal(s.Mzxid), timeText(s.Ctime), timeText(s.Mtime),
		s.Version, s.Cversion, s.Aversion, hexadecimal(s.EphemeralOwner),
		s.DataLength, s.NumChildren, hexadecimal(s.Pzxid),
	}
}

func timeText(millis int64) string {
	return time.UnixMilli(millis).UTC().Format("2006-01-02T15:04:05.000Z")
}

// printStat writes a Stat under the names of zkCli.
func printStat(w io.Writer, s client.Stat) {
	fmt.Fprintf(w, "cZxid = %v\n", hexadecimal(s.Czxid))
	fmt.Fprintf(w, "ctime = %s\n", timeText(s.Ctime))
	fmt.Fprintf(w, "mZxid = %v\n", hexadecimal(s.Mzxid))
	fmt.Fprintf(w, "mtime = %s\n", timeText(s.Mtime))
	fmt.Fprintf(w, "pZxid = %v\n", hexadecimal(s.Pzxid))
	fmt.Fprintf(w, "cversion = %d\n", s.Cversion)
	fmt.Fprintf(w, "dataVersion = %d\n", s.Version)
	fmt.Fprintf(w, "aclVersion = %d\n", s.Aversion)
	fmt.Fprintf(w, "ephemeralOwner = %v\n", hexadecimal(s.EphemeralOwner))
	fmt.Fprintf(w, "dataLength = %d\n", s.DataLength)
	fmt.Fprintf(w, "numChildren = %d\n", s.NumChildren)
}

// parseACL reads scheme:id:perms,... (zkCli's AclParser): the scheme ends at
// the first colon, the permissions begin behind the last.
func parseACL(s string) ([]client.ACL, error) {
	var list []client.ACL
	for item := range strings.SplitSeq(s, ",") {
		acl, err := subtree.ParseACL(strings.TrimSpace(item))
		if err != nil {
			return nil, Usage(err)
		}
		list = append(list, acl)
	}
	return list, nil
}

// lineTracker notes whether what was written ends a line, for prompts that must
// not follow data on the same line.
type lineTracker struct {
	w io.Writer

	mu      sync.Mutex // protects the field below, and the order of writes
	midLine bool
}

func (t *lineTracker) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(b) > 0 {
		t.midLine = b[len(b)-1] != '\n'
	}
	return t.w.Write(b)
}

// endLine begins a new line if the last one is not complete.
func (t *lineTracker) endLine() {
	t.mu.Lock()
	open := t.midLine
	t.mu.Unlock()
	if open {
		_, _ = io.WriteString(t, "\n") // a broken output shows in the next write
	}
}
