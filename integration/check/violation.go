package check

import "fmt"

// Violation is one broken promise.
type Violation struct {
	Guarantee string // its name in docs/guarantees.md
	What      string
}

// String names the guarantee and says what happened.
func (v Violation) String() string { return v.Guarantee + ": " + v.What }

// maxViolations is how many one checker reports: the first ones tell the story.
const maxViolations = 10

// findings gathers the violations of one checker.
type findings struct{ list []Violation }

func (f *findings) add(guarantee, format string, args ...any) {
	if len(f.list) < maxViolations {
		f.list = append(f.list, Violation{guarantee, fmt.Sprintf(format, args...)})
	}
}

// All runs every checker.
func All(h *History) []Violation {
	all, _ := Linearizable(h)
	all = append(all, Sessions(h)...)
	all = append(all, Once(h)...)
	all = append(all, Watches(h)...)
	all = append(all, Ephemerals(h)...)
	all = append(all, Sequences(h)...)
	return append(all, Tokens(h)...)
}

// say describes an operation for a report.
func (o *Op) say() string {
	text := fmt.Sprintf("op %d (client %d, conn %d, server %d) %v %s", o.ID, o.Client, o.Conn,
		o.Server, o.Kind, o.Path)
	if o.Value != "" {
		text += fmt.Sprintf(" value %q", o.Value)
	}
	for i := range o.Ops {
		text += fmt.Sprintf(" [%v %s version %d %q]", o.Ops[i].Kind, o.Ops[i].Path,
			o.Ops[i].Version, o.Ops[i].Value)
	}
	text += fmt.Sprintf(" called %v", o.Call)
	switch o.Outcome {
	case OK:
		text += fmt.Sprintf(" ok at %v, zxid %x", o.Return, int64(o.Zxid))
	case Failed:
		text += fmt.Sprintf(" %s at %v, zxid %x", o.Code.Name(), o.Return, int64(o.Zxid))
	default:
		text += " without an answer"
	}
	return text
}
