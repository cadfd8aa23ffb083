package state

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/zk-lite/zk-lite/znode"
)

// LongACL is a list that no client can set today: a znode of release 1.0 has it, or a command in its log sets it.
type LongACL struct {
	Index   uint64 // of the log's entry; 0: in the snapshot
	Path    string // of the znode
	Entries int    // with "auth" replaced by the client's identities
	Memory  int64  // bytes, about
}

// String describes where the list is and how long it is.
func (l LongACL) String() string {
	where := "in the snapshot"
	if l.Index > 0 {
		where = fmt.Sprintf("set by entry %d of the log", l.Index)
	}
	return fmt.Sprintf("the ACL of %.200q, %s: %d entries, %d MiB", l.Path, where, l.Entries, l.Memory>>20)
}

// LongACLsOf returns the long lists of a snapshot's znodes.
func LongACLsOf(snapshot io.Reader) (found []LongACL, err error) {
	err = VisitSnapshot(snapshot, func(z *znode.Record) error {
		if memory := znode.ACLMemory(z.ACL); len(z.ACL) > znode.MaxACL || memory > maxACLMemory {
			found = append(found, LongACL{Path: strings.Clone(z.Path), Entries: len(z.ACL), Memory: memory})
		}
		return nil
	})
	return found, err
}

// LongACLsIn returns the long lists of the commands in an entry of the log. It applies nothing.
func LongACLsIn(index uint64, entry []byte) (found []LongACL, err error) {
	_, err = rewrite(entry, func(c *Command) bool {
		found = c.longACLs(index, c.Identities, found)
		return false
	})
	return found, err
}

func (c *Command) longACLs(index uint64, ids []znode.ID, found []LongACL) []LongACL {
	for i := range c.Ops {
		found = c.Ops[i].longACLs(index, ids, found)
	}
	if len(c.ACL) > 0 {
		if n, m := znode.CompletedACL(c.ACL, ids); n > znode.MaxACL || m > maxACLMemory {
			found = append(found, LongACL{index, strings.Clone(c.Path), n, m})
		}
	}
	return found
}

// WithoutACLs returns an entry in which commands whose ACLs take more than limit bytes are replaced by others that
// fail, and the lists of those. It makes a log readable that cannot be applied in the available memory.
func WithoutACLs(index uint64, entry []byte, limit int64) (without []byte, skipped []LongACL, err error) {
	without, err = rewrite(entry, func(c *Command) bool {
		longest, memory := c.completedACLs(c.Identities)
		if memory > limit {
			skipped = append(skipped, LongACL{index, strings.Clone(c.pathOfACL()), longest, memory})
		}
		return memory > limit
	})
	return without, skipped, err
}

// pathOfACL is the first path to which c gives an ACL.
func (c *Command) pathOfACL() string {
	for i := range c.Ops {
		if len(c.Ops[i].ACL) > 0 {
			return c.Ops[i].Path
		}
	}
	return c.Path
}

// rewrite returns an entry in which the commands that drop selects are replaced by others that
// fail.
func rewrite(entry []byte, drop func(*Command) bool) ([]byte, error) {
	e, err := readEntry(entry)
	if err != nil {
		return nil, err
	}
	batches := make([]Batch, e.batches)
	for i := range batches {
		batches[i] = e.batch()
		if e.err == nil {
			e.err = batches[i].replace(drop)
		}
	}
	if e.err != nil {
		return nil, e.err
	}
	return AppendEntry(nil, e.timeMillis, batches), nil
}

// replace replaces the commands of g that drop selects by others that fail; it cannot leave them out, because
// commands are numbered. If a command cannot be decoded, it returns an error and does not change g.
func (g *Batch) replace(drop func(*Command) bool) error {
	r := reader{b: g.Commands}
	var c Command
	var commands []byte // with the replacements; nil before the first one
	for i := range g.Count {
		start := r.off
		body := reader{b: r.take(r.count(1))}
		if r.err == nil {
			c.decode(&body)
		}
		if err := firstError(r.err, body.err); err != nil {
			return fmt.Errorf("command %d of server %d: %w", g.First+uint64(i), g.Server, err)
		}
		switch {
		case drop(&c):
			if commands == nil {
				commands = bytes.Clone(g.Commands[:start])
			}
			commands = AppendCommand(commands, c.failing())
		case commands != nil:
			commands = append(commands, g.Commands[start:r.off]...)
		}
	}
	if err := r.end(g.Server); err != nil {
		return err
	}
	if commands != nil {
		g.Commands = commands
	}
	return nil
}

// failing is a command of the same client that changes nothing, and fails in every release with ErrInvalidACL.
func (c *Command) failing() *Command {
	return &Command{Op: OpSetACL, Flags: c.Flags &^ FlagKeyed, Session: c.Session, Path: znode.RootPath}
}
