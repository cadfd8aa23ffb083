package inspect

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/zk-lite/zk-lite/consensus/raftlog"
	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/znode"
)

// printState prints a state of ours: a backup, or a server's snapshot.
func printState(p *printer, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	head := make([]byte, state.BackupHead)
	n, _ := io.ReadFull(f, head) // what is missing is found again below
	ensemble, err := state.BackupEnsemble(head[:n])
	if err != nil {
		return fmt.Errorf("%s: byte %d: %w; %s", path, 0, err, remedyState)
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	in := &counter{r: f}
	t := newTally()
	begin := func(m *state.Machine) error {
		at := m.Point()
		zxid := hex(m.Zxid())
		item := &fileItem{
			Kind: "file", File: path, Format: "snapshot of zk-lite", Zxid: &zxid, Index: at.Index, Term: at.Term,
			Time: timeText(at.Time), Level: uint32(m.Level()),
		}
		if ensemble != [16]byte{} {
			item.Format, item.Ensemble = "backup of zk-lite", fmt.Sprintf("%x", ensemble)
		}
		switch now, on := m.Mirror(); {
		case on:
			item.Mirror = now.Source
		case now.Taken.Source != "":
			item.Mirror = now.Taken.String()
		}
		for _, s := range m.Sessions().Clone() {
			t.session(s.ID, s.Timeout.Milliseconds())
		}
		return p.put(item)
	}
	err = state.ScanSnapshot(in, begin, func(r *znode.Record) error {
		t.znode(r)
		return p.put(p.znode(r))
	})
	if err != nil && p.ctx.Err() == nil {
		err = fmt.Errorf("%s: at or before byte %d, after %d znodes: %w; %s", path, in.n, t.znodes, err, remedyState)
	}
	if err := errors.Join(err, t.put(p)); err != nil {
		return err
	}
	sessions := len(t.sessions)
	return p.put(&endItem{Kind: "end", Znodes: &t.znodes, Sessions: &sessions, Note: "checksum and digest fit"})
}

const remedyState = "take another backup (`zk-lite backup ls DIRECTORY` says which are whole), or the snapshot of " +
	"another server"

// counter counts what is read.
type counter struct {
	r io.Reader
	n int64
}

func (c *counter) Read(b []byte) (int, error) {
	n, err := c.r.Read(b)
	c.n += int64(n)
	return n, err
}

// commandItem is a command in our log.
type commandItem struct {
	Server      state.ServerID `json:"server"`
	Incarnation uint64         `json:"incarnation"`
	Number      uint64         `json:"number"`
	Session     hex            `json:"session"`
	change
}

// recordItem is a record of our log.
type recordItem struct {
	Kind     string        `json:"kind"` // "entry", or another of FORMAT.md
	File     string        `json:"file"`
	Offset   int64         `json:"offset"`
	Index    uint64        `json:"index"`
	Term     uint64        `json:"term,omitempty"`
	Type     string        `json:"type,omitempty"`     // raft's name
	Appended string        `json:"appended,omitempty"` // to this server's log
	Time     string        `json:"time,omitempty"`     // of the transactions
	Commands []commandItem `json:"commands,omitempty"`
}

func (r *recordItem) text(w io.Writer) {
	fmt.Fprintf(w, "%s index %d", r.Kind, r.Index)
	if r.Kind == raftlog.FoundEntry {
		fmt.Fprintf(w, " term %d %s", r.Term, r.Type)
		if r.Time != "" {
			fmt.Fprintf(w, " %s", r.Time)
		}
	}
	fmt.Fprintf(w, " (%s, byte %d)\n", r.File, r.Offset)
	for i := range r.Commands {
		c := &r.Commands[i]
		fmt.Fprintf(w, "  server %d.%d command %d session %v %v\n", c.Server, c.Incarnation, c.Number, c.Session,
			&c.change)
	}
}

// printRaftLog prints a segment of our log, or all of it. A zxid is no part of it: each server computes it when it
// applies the entry.
func printRaftLog(p *printer, path string, dir bool) error {
	format := "segment of the log of zk-lite"
	if dir {
		format = "log of zk-lite"
	}
	if err := p.put(&fileItem{Kind: "file", File: path, Format: format}); err != nil {
		return err
	}
	entries := 0
	return raftlog.Inspect(path, dir, func(f *raftlog.Found) error {
		if f.Kind == raftlog.FoundEnd {
			note := "every record's checksum fits"
			if f.Reason != "" {
				note += "; what follows was never durable: " + f.Reason
			}
			return p.put(&endItem{Kind: "end", Entries: &entries, Offset: f.Offset, Note: note})
		}
		item := &recordItem{Kind: f.Kind, File: f.File, Offset: f.Offset, Index: f.Index, Term: f.Term, Type: f.Type}
		if f.Kind == raftlog.FoundEntry {
			entries++
			if !f.Time.IsZero() {
				item.Appended = f.Time.UTC().Format(time.RFC3339Nano)
			}
			if f.Type == "LogCommand" {
				if err := p.commands(item, f.Data); err != nil {
					return fmt.Errorf("%s: byte %d: entry %d: %w; read it with the release that wrote it", f.File,
						f.Offset, f.Index, err)
				}
			}
		}
		return p.put(item)
	})
}

func (p *printer) commands(item *recordItem, entry []byte) error {
	millis, err := state.VisitEntry(entry, func(o state.Origin, seq uint64, c *state.Command) error {
		item.Commands = append(item.Commands, commandItem{
			Server: o.Server, Incarnation: o.Incarnation, Number: seq, Session: hex(c.Session), change: p.command(c),
		})
		return nil
	})
	item.Time = timeText(millis)
	return err
}
