package cli

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/cmd/zk-lite/cli/subtree"
)

// feedFlags are those of watch with --values.
type feedFlags struct {
	values, before bool
	since          string
	events, types  []string
}

func (f *feedFlags) bind(c *cobra.Command) {
	flags := c.Flags()
	flags.BoolVar(&f.values, "values", false, "print whole transactions, with values and authors")
	flags.BoolVar(&f.before, "before", false, "with --values: the value that a change replaced, too")
	flags.StringVar(&f.since, "since", "", "with --values: begin after this zxid; default: now")
	flags.StringSliceVar(&f.events, "events", nil, "with --values: only these of created, changed, deleted")
	flags.StringSliceVar(&f.types, "types", nil, "with --values: only these of persistent, ephemeral, container, ttl")
}

// The names of events and types.
var (
	feedEvents = map[string]client.EventType{
		"created": client.EventCreated, "changed": client.EventDataChanged, "deleted": client.EventDeleted,
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
			return 0, nil, usagef("--events: %q is none of created, changed, deleted", name)
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
	for _, c := range x.Changes {
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
		v.Changes = append(v.Changes, one)
	}
	return v
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
		text += fmt.Sprintf("\n  %s %s", one.Event, c.Path)
		if c.Hidden {
			text += " (it may no longer be read)"
		} else {
			text += fmt.Sprintf(" %q", c.Data)
		}
		if c.Before != nil {
			text += fmt.Sprintf(", before %q", c.Before)
		}
	}
	_, err := fmt.Fprintln(out, text)
	return err
}
