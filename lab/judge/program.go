package judge

import (
	"bufio"
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/zk-lite/zk-lite/lab/sim"
)

// Limits on a program.
const (
	// MaxLine is the longest line that it may write.
	MaxLine = 64 << 10
	// maxSends is how many messages and timers one answer may have.
	maxSends = 1000
	// maxName is the longest type of a message or name of a timer.
	maxName = 40
	// maxEvents is how many events a process may have in one run.
	maxEvents = 20_000
	// patience is how long an answer may take, by the real clock.
	patience = 5 * time.Second
)

// event is a program's input.
type event struct {
	Event     string          `json:"event"`
	Task      string          `json:"task,omitempty"`
	Self      *sim.ID         `json:"self,omitempty"`
	IDs       []sim.ID        `json:"ids,omitempty"`
	Ring      []sim.ID        `json:"ring,omitempty"`
	DelayMax  float64         `json:"delay_max,omitempty"`
	Now       *float64        `json:"now,omitempty"`
	From      *sim.ID         `json:"from,omitempty"`
	Type      string          `json:"type,omitempty"`
	Body      json.RawMessage `json:"body,omitempty"`
	Name      string          `json:"name,omitempty"`
	ID        *sim.ID         `json:"id,omitempty"`
	Suspected []sim.ID        `json:"suspected,omitempty"`
}

// answer is its output.
type answer struct {
	Send []struct {
		To   *sim.ID         `json:"to"`
		Type string          `json:"type"`
		Body json.RawMessage `json:"body"`
	} `json:"send"`
	Timers []struct {
		Name   string   `json:"name"`
		After  *float64 `json:"after"`
		Cancel bool     `json:"cancel"`
	} `json:"timers"`
	Leader    json.RawMessage            `json:"leader"`
	Enter     bool                       `json:"enter"`
	Exit      bool                       `json:"exit"`
	Variables map[string]json.RawMessage `json:"variables"`
}

// decode reads an answer.
func decode(line []byte) (answer, error) {
	var a answer
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	if err := d.Decode(&a); err != nil {
		return a, fmt.Errorf("want one JSON object a line, with send, timers, leader, enter, exit, variables: %w", err)
	}
	if d.More() {
		return a, fmt.Errorf("want one JSON object a line, and nothing behind it")
	}
	if len(a.Send) > maxSends || len(a.Timers) > maxSends || len(a.Variables) > maxSends {
		return a, fmt.Errorf("%d messages, %d timers, %d variables in one answer: want at most %d", len(a.Send),
			len(a.Timers), len(a.Variables), maxSends)
	}
	for _, s := range a.Send {
		if s.To == nil || s.Type == "" || len(s.Type) > maxName {
			return a, fmt.Errorf("a message to %v of type %q: want to, and a type of 1 to %d bytes", s.To, s.Type,
				maxName)
		}
	}
	for _, t := range a.Timers {
		if t.Name == "" || len(t.Name) > maxName || t.Name == leaveTimer {
			return a, fmt.Errorf("a timer named %q: want a name of 1 to %d bytes other than %q", t.Name, maxName,
				leaveTimer)
		}
		if !t.Cancel && (t.After == nil || !(*t.After > 0 && *t.After < 1e6)) {
			return a, fmt.Errorf("timer %q: want after, above 0 and below 1000000, or cancel", t.Name)
		}
	}
	return a, nil
}

// program is one running copy.
type program struct {
	command *exec.Cmd
	in      io.WriteCloser
	lines   chan line
	asked   int   // events of this run
	err     error // the first thing that went wrong
}

// line is a line of the program's output, or the reason why there are no more.
type line struct {
	text []byte
	err  error
}

// shared lets all copies write to one log.
type shared struct {
	lock sync.Mutex
	to   io.Writer
}

// Write implements io.Writer.
func (s *shared) Write(p []byte) (int, error) {
	s.lock.Lock()
	defer s.lock.Unlock()
	return s.to.Write(p)
}

// start starts a copy. Its standard error goes to log.
func start(ctx context.Context, words []string, log io.Writer) (*program, error) {
	p := &program{command: exec.CommandContext(ctx, words[0], words[1:]...), lines: make(chan line)}
	p.command.Stderr = log
	p.command.WaitDelay = time.Second
	var err error
	if p.in, err = p.command.StdinPipe(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", words[0], err)
	}
	out, err := p.command.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", words[0], err)
	}
	if err := p.command.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", words[0], err)
	}
	go p.read(ctx, out)
	return p, nil
}

// read passes on the program's output until that ends.
func (p *program) read(ctx context.Context, out io.Reader) {
	s := bufio.NewScanner(out)
	s.Buffer(nil, MaxLine)
	for {
		var l line
		if s.Scan() {
			l.text = bytes.Clone(s.Bytes())
		} else if l.err = s.Err(); l.err == nil {
			l.err = io.EOF
		}
		select {
		case p.lines <- l:
		case <-ctx.Done():
			return
		}
		if l.err != nil {
			return
		}
	}
}

// stop ends the copy.
func (p *program) stop() {
	p.in.Close()
	_ = p.command.Process.Kill()
	_ = p.command.Wait() // it was killed, and the error only repeats that
}

// ask sends an event to the program and returns its answer. After an error it sends no more.
func (p *program) ask(e event) (answer, error) {
	if p.err != nil {
		return answer{}, p.err
	}
	if p.asked++; p.asked > maxEvents {
		p.err = fmt.Errorf("more than %d events in one run", maxEvents)
		return answer{}, p.err
	}
	a, err := p.exchange(e)
	if err != nil {
		p.err = fmt.Errorf("asked %s: %w", e.Event, err)
	}
	return a, p.err
}

func (p *program) exchange(e event) (answer, error) {
	text, err := json.Marshal(e)
	if err != nil {
		return answer{}, fmt.Errorf("encoding an event: %w", err)
	}
	switch _, err := p.in.Write(append(text, '\n')); {
	case errors.Is(err, syscall.EPIPE):
		return answer{}, errors.New("the program ended")
	case err != nil:
		return answer{}, fmt.Errorf("the program does not read: %w", err)
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case l := <-p.lines:
		switch {
		case errors.Is(l.err, io.EOF):
			return answer{}, errors.New("the program ended")
		case l.err != nil:
			return answer{}, fmt.Errorf("reading its answer (at most %d bytes): %w", MaxLine, l.err)
		}
		a, err := decode(l.text)
		if err != nil {
			return a, fmt.Errorf("answered %.200q: %w", l.text, err)
		}
		return a, nil
	case <-timer.C:
		return answer{}, fmt.Errorf("no answer in %v", patience)
	}
}

// Protocol is what a program is asked, and what it answers.
//
//go:embed protocol.md
var Protocol string

//go:embed skeleton
var skeletons embed.FS

// Languages are those of the skeletons.
func Languages() []string { return []string{"go", "python", "java"} }

// Skeleton returns a program to begin with: it speaks the protocol, and solves nothing yet.
func Skeleton(language string) (string, error) {
	file, known := map[string]string{"go": "skeleton.go.txt", "python": "skeleton.py", "java": "Program.java"}[language]
	if !known {
		return "", fmt.Errorf("language %q: want one of %s", language, strings.Join(Languages(), ", "))
	}
	text, err := skeletons.ReadFile("skeleton/" + file)
	return string(text), err
}
