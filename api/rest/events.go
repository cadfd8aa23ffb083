package rest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/zk-lite/zk-lite/server"
	"github.com/zk-lite/zk-lite/server/changes"
)

const (
	// ProgressInterval is how long a stream is silent at most: short enough for a
	// client to notice soon that its server is lost, and far below the limits of
	// proxies.
	ProgressInterval = 5 * time.Second
	// TouchesPerTimeout is how often a stream or a long poll keeps its session alive
	// within the timeout: one touch may be lost.
	TouchesPerTimeout = 3
	// DefaultWait is how long a long poll waits.
	DefaultWait = 30 * time.Second
	// MaxWait is the longest wait that it may ask for: shorter than most proxies keep a
	// silent connection.
	MaxWait = 5 * time.Minute
	// reconnectMillis is how long a browser waits before it connects again.
	reconnectMillis = 1000
)

var errClientGone = errors.New("the client has closed its side of the connection")

// EventStream sends server-sent events (HTML standard, 9.2). It belongs to one goroutine.
type EventStream struct {
	At changes.Position // the id of the next event: where a client may continue

	// Context ends, with its cause, when the client disconnects, the long requests end, or
	// Cancel is called.
	Context context.Context
	Cancel  context.CancelCauseFunc
	stop    func() bool

	q   *Request
	out []byte // not sent yet
}

// StartEvents begins the answer. The caller must call Close.
func StartEvents(q *Request, at changes.Position) *EventStream {
	s := &EventStream{At: at, q: q}
	s.Context, s.Cancel = context.WithCancelCause(q.HTTP.Context())
	long := q.Core.Long.Until()
	s.stop = context.AfterFunc(long, func() { s.Cancel(context.Cause(long)) })
	h := q.W.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no") // nginx would collect events before it passes them on
	q.Begin(http.StatusOK)
	s.retry(reconnectMillis)
	return s
}

// Close frees what the stream holds.
func (s *EventStream) Close() {
	s.stop()
	s.Cancel(nil)
}

// Event adds an event, which Flush sends.
func (s *EventStream) Event(name string, data any) {
	s.out = append(s.out, "id: "+FormatPosition(s.At)+"\n"...)
	s.Item(name, data)
}

// Item adds an event without an id: a client cannot continue after it.
func (s *EventStream) Item(name string, data any) {
	text, encoded := data.(Text)
	if !encoded {
		text = Encode(data)
	}
	s.out = append(s.out, "event: "+name+"\ndata: "...)
	s.out = append(append(s.out, text...), "\n\n"...)
}

// Text is the data of an event as JSON, in one line.
type Text []byte

// Encode writes the data of an event.
func Encode(data any) Text {
	text, err := json.Marshal(data)
	if err != nil {
		panic("rest: invariant broken: an event cannot be encoded: " + err.Error())
	}
	return text
}

// Progress reports the client's position although nothing happened to its paths.
func (s *EventStream) Progress(st *changes.Stream) {
	s.At = Reached(st, s.At)
	s.Event("progress", map[string]string{"zxid": FormatPosition(s.At)})
}

// Gone reports why the stream cannot continue. It is the last event.
func (s *EventStream) Gone(err error) {
	s.Event("gone", ProblemOf(err, s.q.Anonymous).document())
	s.Flush()
}

// Reconnect asks the client to continue at another server. It is the last event. A
// client that has disconnected does not read it.
func (s *EventStream) Reconnect(why error, st *changes.Stream) {
	if errors.Is(why, context.Canceled) { // it may have closed its own side only, and read on
		why = errClientGone
	}
	s.At = Reached(st, s.At)
	s.retry(0)
	s.Event("reconnect", map[string]any{
		"zxid": FormatPosition(s.At), "reason": why.Error(), "servers": others(s.q.Core),
	})
	s.Flush()
}

func (s *EventStream) retry(millis int) {
	s.out = fmt.Appendf(s.out, "retry: %d\n\n", millis)
}

// Flush sends the events and reports false if the client has disconnected, or does
// not read.
func (s *EventStream) Flush() bool {
	ctl := http.NewResponseController(s.q.W)
	_ = ctl.SetWriteDeadline(time.Now().Add(WriteTimeout))
	_, err := s.q.Write(s.out)
	s.out = s.out[:0]
	return err == nil && ctl.Flush() == nil
}

// flushBytes is how much is gathered before it is sent, if there is more at once: one write costs as much as encoding
// some events.
const flushBytes = 16 << 10

// FlushLong is Flush when much is gathered.
func (s *EventStream) FlushLong() bool { return len(s.out) < flushBytes || s.Flush() }

// others are the known HTTP addresses of the other servers.
func others(c *Core) []string {
	list := []string{}
	c.Server.View(func(v *server.View) {
		for id, m := range v.Machine().Members() {
			if id != c.Config.ID && m.HTTP != "" {
				list = append(list, m.HTTP)
			}
		}
	})
	return list
}

// WantsStream reports whether the client accepts server-sent events.
func WantsStream(r *http.Request) bool {
	for _, field := range r.Header.Values("Accept") {
		for media := range strings.SplitSeq(field, ",") {
			media, _, _ = strings.Cut(media, ";")
			if strings.EqualFold(strings.TrimSpace(media), "text/event-stream") {
				return true
			}
		}
	}
	return false
}

// FormatPosition writes a place in the order of changes: the zxid, and .n after it
// within a transaction.
func FormatPosition(p changes.Position) string {
	if p.Part == 0 {
		return p.Zxid.String()
	}
	return fmt.Sprintf("%s.%d", p.Zxid, p.Part)
}

// ParsePosition is the inverse of FormatPosition.
func ParsePosition(param, text string) (changes.Position, error) {
	digits, part, midst := strings.Cut(text, ".")
	var p changes.Position
	var err error
	if p.Zxid, err = ParseZxid(param, digits); err != nil {
		return p, BadRequest(param, "%q is not a position: the zxid, or the id of a stream's "+
			"event, such as 0x100000002 or 0x100000002.1", text)
	}
	if !midst {
		return p, nil
	}
	if p.Part, err = strconv.Atoi(part); err != nil || p.Part < 1 || p.Zxid == 0 {
		return p, BadRequest(param, "%q: after the point there must be a number from 1", text)
	}
	return p, nil
}

// ResumePoint is where the client wants to continue, and the parameter or header that gives it; both are empty if it
// begins.
func ResumePoint(q *Request) (param, text string) {
	if id := q.HTTP.Header.Get("Last-Event-ID"); id != "" {
		return "Last-Event-ID", id
	}
	if q.Query.Has("since") {
		return "since", q.Query.Text("since")
	}
	return "", ""
}

// Reached is how far a stream has come: where its last change was, or later if
// nothing has happened since that concerns it.
func Reached(st *changes.Stream, last changes.Position) changes.Position {
	if z := st.Zxid(); z > last.Zxid {
		return changes.Position{Zxid: z}
	}
	return last
}

// ReadAgain is the hint for those whose position is unknown.
const ReadAgain = "read the znodes again, and watch since the Zk-Zxid of that answer"

// SubscribeProblem explains why a stream cannot be opened or continue.
func SubscribeProblem(q *Request, err error) error {
	if !errors.Is(err, changes.ErrTooOld) {
		return err
	}
	p := &Problem{
		Status: http.StatusGone, Title: "resume point too old", Detail: err.Error(), Hint: ReadAgain,
	}
	if param, _ := ResumePoint(q); param != "" {
		p.Param, p.Detail = param, param+": "+p.Detail
	}
	return p
}
