package chart

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/zk-lite/zk-lite/lab/sim"
)

// Sizes of the text chart, in characters.
const (
	// MinWidth is the least width in which two columns and a label fit.
	MinWidth = 40
	// timeWidth holds times up to 99999.999.
	timeWidth = 10
	// labelWidth is kept free to the right of the lifelines.
	labelWidth = 32
	// minColumn is the least distance of lifelines that leaves an arrow a body
	// and a head.
	minColumn = 5
	// maxColumn keeps the arrows of a chart of few columns short.
	maxColumn = 12
)

// Text writes the run as a message-sequence chart no wider than width, and of at
// most rows rows. A message is drawn when it arrives. If the columns do not fit,
// each row is a sentence instead.
func (r Run) Text(w io.Writer, width, rows int) error {
	if width < MinWidth || rows < 1 {
		return fmt.Errorf("chart of width %d and %d rows: want a width of %d or more, 1 row or more",
			width, rows, MinWidth)
	}
	t := texter{columns: r.columns(), at: map[sim.ID]int{}, down: map[sim.ID]bool{}, width: width}
	t.gap = min((width-timeWidth-labelWidth)/len(t.columns), maxColumn)
	for i, id := range t.columns {
		t.at[id] = i
		if len(id.String())+1 > t.gap {
			t.gap = 0
		}
	}
	var b strings.Builder
	if t.gap >= minColumn {
		b.WriteString(t.header())
	}
	steps := r.steps()
	for i, s := range steps {
		if i == rows {
			fmt.Fprintf(&b, "… %d more rows\n", len(steps)-rows)
			break
		}
		b.WriteString(t.row(s))
	}
	if r.Truncated {
		b.WriteString("… the run was longer than the records kept\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

type texter struct {
	columns []sim.ID
	at      map[sim.ID]int
	down    map[sim.ID]bool
	width   int
	gap     int // between lifelines; below minColumn there are none
}

func (t *texter) header() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%*s  ", timeWidth-2, "time")
	for _, id := range t.columns {
		fmt.Fprintf(&b, "%-*s", t.gap, id)
	}
	return strings.TrimRight(b.String(), " ") + "\n"
}

func (t *texter) row(s step) string {
	label := s.text
	if s.kind == sim.Delivered && s.at-s.sent != sim.Unit {
		label += fmt.Sprintf(" (sent %s)", sim.FormatTime(s.sent))
	}
	if t.gap < minColumn {
		if s.to != sim.None {
			label = fmt.Sprintf("%v -> %v  %s", s.from, s.to, label)
		}
		return t.clip(fmt.Sprintf("%*s  %s", timeWidth-2, sim.FormatTime(s.at), label))
	}
	line := make([]rune, t.gap*len(t.columns))
	for i := range line {
		line[i] = ' '
	}
	if s.kind == sim.Recovered {
		delete(t.down, s.from)
	}
	for i, id := range t.columns {
		if !t.down[id] {
			line[i*t.gap] = '|'
		}
	}
	if s.to == sim.None {
		line[t.at[s.from]*t.gap] = mark(s)
		if s.kind == sim.Crashed {
			t.down[s.from] = true
		}
	} else {
		t.arrow(line, s)
	}
	return t.clip(fmt.Sprintf("%*s  %s%s", timeWidth-2, sim.FormatTime(s.at), string(line), label))
}

// arrow draws from the sender's lifeline to just before the receiver's, or back
// to the own one for a message that went round a ring of one.
func (t *texter) arrow(line []rune, s step) {
	a, b := t.at[s.from]*t.gap, t.at[s.to]*t.gap
	head := map[bool]rune{true: '>', false: '<'}[a < b]
	if s.kind == sim.Lost {
		head = 'x'
	}
	if a == b {
		line[a+1] = '@'
		return
	}
	step := 1
	if b < a {
		step = -1
	}
	for i := a + step; i != b; i += step {
		line[i] = '-'
	}
	line[a] = '+'
	line[b-step] = head
}

func mark(s step) rune {
	switch s.kind {
	case sim.Crashed:
		return 'X'
	case sim.Recovered:
		return '^'
	case sim.Told:
		return '!'
	case sim.TimedOut:
		return 'o'
	case sim.Changed:
		return '='
	}
	return '*'
}

// clip cuts a line to the width.
func (t *texter) clip(line string) string {
	line = strings.TrimRight(line, " ")
	if utf8.RuneCountInString(line) > t.width {
		line = string([]rune(line)[:t.width-1]) + "…"
	}
	return line + "\n"
}
