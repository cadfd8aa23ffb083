package play

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/zk-lite/zk-lite/lab/election"
	"github.com/zk-lite/zk-lite/lab/mutex"
)

// Option is one option of a command: --name, or --name VALUE.
type Option struct {
	Name    string
	Value   string // the value's form, such as ID@TIME; empty for a switch
	Default string
	Help    string
	Choices []string // the possible values, if that is a short list
	Repeat  bool

	set   func(text string) error
	given bool
}

// Set gives the option a value; a switch takes true or false.
func (o *Option) Set(text string) error {
	if err := o.set(text); err != nil {
		return err
	}
	o.given = true
	return nil
}

func text(to *string, name, value, def, help string, choices ...string) *Option {
	*to = def
	return &Option{Name: name, Value: value, Default: def, Help: help, Choices: choices,
		set: func(text string) error { *to = text; return nil }}
}

func toggle(to *bool, name, help string) *Option {
	return &Option{Name: name, Help: help, set: func(text string) error {
		v, err := strconv.ParseBool(text)
		if err != nil {
			return fmt.Errorf("want true or false")
		}
		*to = v
		return nil
	}}
}

func number(to *int, name string, def int, help string) *Option {
	*to = def
	return &Option{Name: name, Value: "N", Default: strconv.Itoa(def), Help: help, set: func(text string) error {
		v, err := strconv.Atoi(text)
		if err != nil {
			return fmt.Errorf("want a whole number")
		}
		*to = v
		return nil
	}}
}

func seed(to *uint64) *Option {
	*to = 1
	const help = "seed of all randomness"
	return &Option{Name: "seed", Value: "N", Default: "1", Help: help, set: func(text string) error {
		v, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			return fmt.Errorf("want a whole number from 0")
		}
		*to = v
		return nil
	}}
}

func probability(to *float64, name, help string) *Option {
	return &Option{Name: name, Value: "P", Default: "0", Help: help, set: func(text string) error {
		v, err := strconv.ParseFloat(text, 64)
		if err != nil || !(v >= 0 && v <= 1) {
			return fmt.Errorf("want a probability from 0 to 1")
		}
		*to = v
		return nil
	}}
}

// each takes values that are separated by commas, too.
func each(to *[]string, name, value, help string) *Option {
	return &Option{Name: name, Value: value, Help: help, Repeat: true, set: func(text string) error {
		*to = append(*to, strings.Split(text, ",")...)
		return nil
	}}
}

// whole takes values in which commas mean something else.
func whole(to *[]string, name, value, help string) *Option {
	return &Option{Name: name, Value: value, Help: help, Repeat: true, set: func(text string) error {
		*to = append(*to, text)
		return nil
	}}
}

// Command is one command, with its options. Its values are those of one run: use a new one for
// the next.
type Command struct {
	Name    string
	Short   string
	Long    string
	Example string
	Options []*Option
	// Keep keeps the records, without which there is no trace and no picture.
	Keep bool
	// Limit bounds a run for a caller that did not choose it.
	Limit Limit

	run func(c *Command) (Outcome, error)
}

// Limit bounds a run; zero means only the simulator's own bound.
type Limit struct {
	Processes int
	Events    int // taken from the simulator's queue
}

// Commands returns all commands.
func Commands() []*Command {
	return []*Command{electionCommand(new(electionOptions)), mutexCommand(new(mutexOptions)), detectorCommand(),
		problemCommand(), raceCommand(), exploreCommand()}
}

// New returns the command of that name, which exists.
func New(name string) *Command {
	c, err := find(name)
	if err != nil {
		panic(fmt.Sprintf("play: invariant broken: %v", err))
	}
	return c
}

// find returns the command of that name.
func find(name string) (*Command, error) {
	var names []string
	for _, c := range Commands() {
		if c.Name == name {
			return c, nil
		}
		names = append(names, c.Name)
	}
	return nil, fmt.Errorf("command %q is unknown: want one of %s", name, strings.Join(names, ", "))
}

// Option returns the option of that name, or nil.
func (c *Command) Option(name string) *Option {
	at := slices.IndexFunc(c.Options, func(o *Option) bool { return o.Name == name })
	if at < 0 {
		return nil
	}
	return c.Options[at]
}

func (c *Command) given(name string) bool { return c.Option(name).given }

// refuse reports options that were given although they mean nothing here.
func (c *Command) refuse(why string, names ...string) error {
	for _, name := range names {
		if c.given(name) {
			return fmt.Errorf("--%s: %s", name, why)
		}
	}
	return nil
}

// parse reads the words after the command's name.
func (c *Command) parse(words []string) error {
	for i := 0; i < len(words); i++ {
		word, dashed := strings.CutPrefix(words[i], "--")
		name, value, has := strings.Cut(word, "=")
		o := c.Option(name)
		switch {
		case !dashed || o == nil:
			return fmt.Errorf("%s: %q is no option of it", c.Name, words[i])
		case !has && o.Value == "":
			value = "true"
		case !has:
			if i++; i == len(words) {
				return fmt.Errorf("--%s: want %s behind it", name, o.Value)
			}
			value = words[i]
		}
		if err := o.Set(value); err != nil {
			return fmt.Errorf("--%s %s: %w", name, value, err)
		}
	}
	return nil
}

// ElectionConfig reads options of the command election for an algorithm of the caller's own.
func ElectionConfig(words []string) (election.Config, error) {
	var f electionOptions
	c := electionCommand(&f)
	if err := c.parse(words); err != nil {
		return election.Config{}, err
	}
	return f.config(c)
}

// MutexConfig reads options of the command mutex.
func MutexConfig(words []string) (mutex.Config, error) {
	var f mutexOptions
	c := mutexCommand(&f)
	if err := c.parse(words); err != nil {
		return mutex.Config{}, err
	}
	return f.config(c)
}
