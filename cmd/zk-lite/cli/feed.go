package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/cmd/zk-lite/cli/subtree"
)

// feedFlags are those of watch with --values.
type feedFlags struct {
	values, before bool
	list           bool
	since          string
	events, types  []string
}

func (f *feedFlags) bind(c *cobra.Command) {
	flags := c.Flags()
	flags.BoolVar(&f.values, "values", false, "print whole transactions, with values and authors")
	flags.BoolVar(&f.before, "before", false, "with --values: the value that a change replaced, too")
	flags.BoolVar(&f.list, "list", false, "with --values: begin with all znodes of one state, and go on from there")
	flags.StringVar(&f.since, "since", "", "with --values: begin after this zxid; default: now")
	flags.StringSliceVar(&f.events, "events", nil, "with --values: only these of created, changed, deleted, children")
	flags.StringSliceVar(&f.types, "types", nil, "with --values: only these of persistent, ephemeral, container, ttl")
}

// The names of events and types.
var (
	feedEvents = map[string]client.EventType{
		"created": client.EventCreated, "changed": client.EventDataChanged, "deleted": client.EventDeleted,
		"children": client.EventChildrenChanged,
	}
	feedTypes = map[string]client.Mode{
		"persistent": client.Persistent, "ephemeral": client.Ephemeral, "container": client.Container,
		"ttl": client.PersistentTTL,
	}
)

// options are the zxid to begin after, and what to leave out.
func (f *feedFlags) options() (since client.Zxid, opts []client.FeedOption, err error) {
	since = client.NoZxid
	if f.since != "" {
		n, err := strconv.ParseInt(f.since, 0, 64)
		if err != nil || n < 0 {
			return 0, nil, usagef("--since %q: want a zxid, such as 0x100000002", f.since)
		}
		since = client.Zxid(n)
	}
	if f.before {
		opts = append(opts, client.FeedBefore())
	}
	for _, name := range f.events {
		e, ok := feedEvents[name]
		if !ok {
			return 0, nil, usagef("--events: %q is none of created, changed, deleted, children", name)
		}
		opts = append(opts, client.FeedEvents(e))
	}
	for _, name := range f.types {
		m, ok := feedTypes[name]
		if !ok {
			return 0, nil, usagef("--types: %q is none of persistent, ephemeral, container, ttl", name)
		}
		opts = append(opts, client.FeedModes(m))
	}
	return since, opts, nil
}

// followValues prints transactions until there were enough, or the context ends.
func followValues(
	ctx context.Context, as output, c *cobra.Command, cl *client.Client, path string, f *feedFlags, count int,
) error {
	since, opts, err := f.options()
	if err != nil {
		return err
	}
	fmt.Fprintf(c.ErrOrStderr(), "watching %s; Ctrl-C ends it\n", path)
	if f.list {
		if since != client.NoZxid {
			return usagef("--list begins now: give it without --since")
		}
		if since, err = f.printTree(ctx, as, c.OutOrStdout(), cl, path); err != nil {
			return err
		}
	}
	for x, err := range cl.Feed(ctx, path, since, opts...) {
		if err != nil {
			return err
		}
		if err := printTransaction(as, c.OutOrStdout(), x); err != nil {
			return err
		}
		if count--; count == 0 {
			break
		}
	}
	return nil
}

// printTree prints a line for each znode of the present state, and returns its zxid.
func (f *feedFlags) printTree(
	ctx context.Context, as output, out io.Writer, cl *client.Client, path string,
) (client.Zxid, error) {
	tree, err := cl.Tree(ctx, path)
	if err != nil {
		return 0, err
	}
	defer tree.Close()
	n := 0
	for z, err := range tree.Znodes(ctx, path) {
		if err != nil {
			return 0, err
		}
		wanted := func(name string) bool { return feedTypes[name] == z.Mode && !z.Hidden }
		if len(f.types) > 0 && !slices.ContainsFunc(f.types, wanted) {
			continue
		}
		n++
		c := client.Change{Path: z.Path, Mode: z.Mode, Data: z.Data, Stat: z.Stat, Hidden: z.Hidden}
		if as.json() {
			v := newChangeJSON(&c)
			v.Event = "listed"
			err = writeJSON(out, v)
		} else {
			_, err = fmt.Fprintf(out, "  listed %s\n", valueText(&c))
		}
		if err != nil {
			return 0, err
		}
	}
	if as.json() {
		return tree.Zxid, writeJSON(out, map[string]any{"zxid": hexadecimal(tree.Zxid), "listed": n})
	}
	_, err = fmt.Fprintf(out, "%v %d znodes\n", tree.Zxid, n)
	return tree.Zxid, err
}

// valueText is a path with its data.
func valueText(c *client.Change) string {
	if c.Hidden {
		return c.Path + " (it may not be read)"
	}
	return fmt.Sprintf("%s %q", c.Path, c.Data)
}

// transactionJSON is a transaction in JSON, changeJSON one of its changes.
type (
	transactionJSON struct {
		Zxid        hexadecimal  `json:"zxid"`
		Time        string       `json:"time"`
		Session     *hexadecimal `json:"session,omitempty"`
		Author      []string     `json:"author"`
		Traceparent string       `json:"traceparent,omitempty"`
		Changes     []changeJSON `json:"changes"`
	}
	changeJSON struct {
		Event string `json:"event"`
		Type  string `json:"type"`
		dataJSON
		Before *dataJSON `json:"before,omitempty"`
		Hidden bool      `json:"hidden,omitempty"`
	}
)

func newTransactionJSON(x *client.Transaction) transactionJSON {
	v := transactionJSON{
		Zxid: hexadecimal(x.Zxid), Time: timeText(x.Time.UnixMilli()), Author: []string{}, Traceparent: x.Traceparent,
	}
	if x.Session != 0 {
		v.Session = new(hexadecimal(x.Session))
	}
	for _, id := range x.Author {
		v.Author = append(v.Author, id.Scheme+":"+id.ID)
	}
	for i := range x.Changes {
		v.Changes = append(v.Changes, newChangeJSON(&x.Changes[i]))
	}
	return v
}

func newChangeJSON(c *client.Change) changeJSON {
	one := changeJSON{dataJSON: newDataJSON(c.Path, c.Data, c.Stat, false), Hidden: c.Hidden}
	for name, is := range feedEvents {
		if is == c.Type {
			one.Event = name
		}
	}
	for name, is := range feedTypes {
		if is == c.Mode {
			one.Type = name
		}
	}
	if c.Before != nil {
		one.Before = new(dataJSON)
		one.Before.Data, one.Before.Encoding = subtree.EncodeData(c.Before)
	}
	return one
}

// printTransaction prints a line for the transaction, and one for each change.
func printTransaction(as output, out io.Writer, x *client.Transaction) error {
	v := newTransactionJSON(x)
	if as.json() {
		return writeJSON(out, v)
	}
	text := fmt.Sprintf("%v %s", v.Zxid, v.Time)
	if len(v.Author) > 0 {
		text += " by " + strings.Join(v.Author, ", ")
	}
	for i, c := range x.Changes {
		one := &v.Changes[i]
		text += fmt.Sprintf("\n  %s %s", one.Event, valueText(&c))
		if c.Before != nil {
			text += fmt.Sprintf(", before %q", c.Before)
		}
	}
	_, err := fmt.Fprintln(out, text)
	return err
}
