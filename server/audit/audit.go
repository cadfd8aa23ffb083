// Package audit records the actions of clients: ZooKeeper's audit lines, for changes of znodes, and ours for what
// ZooKeeper leaves out: failed logins, refused requests, and what administrators do over HTTP.
//
// A line is handed to a queue of bounded length, and left out and counted when it is full: nothing waits for the disk,
// the goroutine that applies the log least of all. One goroutine, from Open to Close, writes them. The file is rotated
// by size; its owner alone can read it.
package audit

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"gopkg.in/natefinch/lumberjack.v2"

	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/znode"
)

// queueLength is how many events may wait: a second's writes of a busy server.
const queueLength = 16 << 10

// Result is how something ended, in ZooKeeper's words.
type Result string

// The results.
const (
	Success Result = "success"
	Failure Result = "failure"
	Invoked Result = "invoked"
)

// Event is one line, in the order of its fields; empty ones are left out.
type Event struct {
	Session   string `json:"session,omitempty"`
	User      string `json:"user,omitempty"`
	IP        string `json:"ip,omitempty"`
	Operation string `json:"operation"`
	Znode     string `json:"znode,omitempty"`
	ZnodeType string `json:"znode_type,omitempty"`
	ACL       string `json:"acl,omitempty"`
	Result    Result `json:"result"`
	// Reason is ours, and comes after the result: why something was refused.
	Reason string `json:"reason,omitempty"`
}

// Client is the client that has sent a request.
type Client struct {
	Session znode.SessionID // 0: none
	IDs     []znode.ID
	IP      string
}

// Config configures a Log.
type Config struct {
	File     string
	JSON     bool
	MaxBytes int // of the file before it is rotated
	Keep     int // rotated files
	Logger   *slog.Logger
}

// Log is where events go. Its methods are usable on nil, which keeps nothing, and by several goroutines at once.
type Log struct {
	cfg     Config
	queue   chan item
	out     io.WriteCloser
	leftOut atomic.Int64
	done    chan struct{}

	mu     sync.RWMutex // shared by those that send; protects the field below
	closed bool
}

// item is an event before it is written: text is made of it on the writer's goroutine.
type item struct {
	at      time.Time
	event   Event
	client  Client
	command *state.Command // a change of a znode; nil: none
	code    znode.Error
}

// Open starts a Log. The file is opened with the first line.
func Open(cfg Config) *Log {
	return start(cfg, &lumberjack.Logger{
		Filename: cfg.File, MaxSize: max(cfg.MaxBytes>>20, 1), MaxBackups: cfg.Keep,
	})
}

func start(cfg Config, out io.WriteCloser) *Log {
	l := &Log{cfg: cfg, queue: make(chan item, queueLength), out: out, done: make(chan struct{})}
	go l.run()
	return l
}

// Close writes what waits.
func (l *Log) Close() error {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	if !l.closed {
		l.closed = true
		close(l.queue)
	}
	l.mu.Unlock()
	<-l.done
	return l.out.Close()
}

// LeftOut counts events that were left out because the disk was too slow, or has refused them.
func (l *Log) LeftOut() int64 {
	if l == nil {
		return 0
	}
	return l.leftOut.Load()
}

// Note records an event.
func (l *Log) Note(c Client, e Event) {
	if l != nil {
		l.send(item{event: e, client: c})
	}
}

// Change records a command with its result. What it has is not changed afterwards.
func (l *Log) Change(c Client, command *state.Command, r *state.Result) {
	if l == nil || !audited(command.Op) {
		return
	}
	kept := *command
	kept.Data, kept.Identities = nil, nil
	i := item{client: c, command: &kept, code: r.Code}
	for k := range r.Multi {
		if r.Multi[k].Code != znode.OK {
			i.code = r.Multi[k].Code
		}
	}
	if r.Path != "" {
		kept.Path = r.Path // with its number, if it is sequential
	}
	if kept.Op == state.OpBranch {
		kept.Op, kept.Ops, kept.Branch = state.OpMulti, command.Taken(r), nil
	}
	if kept.Op == state.OpMulti {
		kept.Ops = append([]state.Command(nil), kept.Ops...)
		for k := range kept.Ops {
			kept.Ops[k].Data = nil
			if k < len(r.Multi) && r.Multi[k].Path != "" {
				kept.Ops[k].Path = r.Multi[k].Path
			}
		}
	}
	l.send(i)
}

func (l *Log) send(i item) {
	i.at = time.Now()
	l.mu.RLock()
	defer l.mu.RUnlock()
	if l.closed {
		return
	}
	select {
	case l.queue <- i:
	default:
		l.leftOut.Add(1)
	}
}

func (l *Log) run() {
	defer close(l.done)
	broken := false
	for i := range l.queue {
		for _, e := range i.events() {
			if _, err := l.out.Write(l.line(i.at, &e)); err != nil {
				l.leftOut.Add(1)
				if !broken {
					l.cfg.Logger.Error("the audit log cannot be written", "file", l.cfg.File, "error", err)
				}
				broken = true
				continue
			}
			broken = false
		}
	}
}

// line is an event as text: the time in ZooKeeper's form, then what its AuditEvent writes.
func (l *Log) line(at time.Time, e *Event) []byte {
	if l.cfg.JSON {
		b, err := json.Marshal(struct {
			Time string `json:"time"`
			*Event
		}{at.UTC().Format(time.RFC3339Nano), e})
		if err != nil {
			panic("audit: invariant broken: an event cannot be encoded: " + err.Error())
		}
		return append(b, '\n')
	}
	var b strings.Builder
	b.WriteString(at.Format("2006-01-02 15:04:05,000") + " INFO audit: ")
	head := b.Len()
	for _, f := range [...]struct{ key, value string }{
		{"session", e.Session}, {"user", e.User}, {"ip", e.IP}, {"operation", e.Operation}, {"znode", e.Znode},
		{"znode_type", e.ZnodeType}, {"acl", e.ACL}, {"result", string(e.Result)}, {"reason", e.Reason},
	} {
		if f.value == "" {
			continue
		}
		if b.Len() > head {
			b.WriteByte('\t')
		}
		b.WriteString(f.key + "=" + strings.Map(printable, f.value))
	}
	b.WriteByte('\n')
	return []byte(b.String())
}

// printable leaves out what would begin another field or line.
func printable(r rune) rune {
	if r == '\t' || r == '\n' || r == '\r' {
		return -1
	}
	return r
}

// users are the names of a client as ZooKeeper's audit lines have them: without hashes, and without super.
func users(ids []znode.ID) string {
	var names []string
	for _, id := range ids {
		switch id.Scheme {
		case "super":
		case "digest":
			name, _, _ := strings.Cut(id.ID, ":")
			names = append(names, name)
		default:
			names = append(names, id.ID)
		}
	}
	return strings.Join(names, ",")
}

func (c *Client) fill(e *Event) {
	if c.Session != 0 {
		e.Session = fmt.Sprintf("0x%x", uint64(c.Session))
	}
	if e.User == "" {
		e.User = users(c.IDs)
	}
	e.IP = c.IP
}

// operations are ZooKeeper's names (AuditConstants) of commands.
var operations = map[state.Op]string{
	state.OpCreate: "create", state.OpDelete: "delete", state.OpSetData: "setData", state.OpSetACL: "setAcl",
	state.OpMulti: "multiOperation", state.OpReconfig: "reconfig", state.OpDeleteAll: "deleteAll", // ours, as the next
	state.OpBranch: "multiOperation", state.OpPurge: "purge",
}

func audited(op state.Op) bool { return operations[op] != "" }

// events are the lines of an item: of a transaction that went well, one for each change.
func (i *item) events() []Event {
	if i.command == nil {
		i.client.fill(&i.event)
		return []Event{i.event}
	}
	result := Success
	if i.code != znode.OK {
		result = Failure
	}
	if i.command.Op != state.OpMulti || result == Failure {
		return []Event{i.change(i.command, result)}
	}
	var all []Event
	for k := range i.command.Ops {
		if op := &i.command.Ops[k]; audited(op.Op) { // a check changes nothing
			all = append(all, i.change(op, result))
		}
	}
	return all
}

func (i *item) change(c *state.Command, result Result) Event {
	e := Event{Operation: operations[c.Op], Znode: c.Path, Result: result}
	i.client.fill(&e)
	switch c.Op {
	case state.OpCreate:
		e.ZnodeType = createMode(c)
	case state.OpSetACL:
		e.ACL = aclText(c.ACL)
	}
	if result == Failure {
		e.Reason = i.code.Name()
	}
	return e
}

// createMode is ZooKeeper's CreateMode in small letters.
func createMode(c *state.Command) string {
	names := []string{"persistent", "ephemeral", "persistent_sequential", "ephemeral_sequential", "container",
		"persistent_with_ttl", "persistent_sequential_with_ttl"}
	switch m := int(c.Mode); {
	case c.Kind == znode.CreateContainer:
		return "container"
	case m >= 0 && m < len(names):
		return names[m]
	}
	return "unknown"
}

// aclText is ZKUtil.aclToString, but for the hashes of passwords.
func aclText(list []znode.ACL) string {
	var parts []string
	for _, a := range list {
		id := a.ID.ID
		if user, _, ok := strings.Cut(id, ":"); ok && a.ID.Scheme == "digest" {
			id = user + ":x"
		}
		parts = append(parts, a.ID.Scheme+":"+id+":"+a.Perms.String())
	}
	return strings.Join(parts, ",")
}
