package config

import (
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/zk-lite/zk-lite/consensus/storage"
	"github.com/zk-lite/zk-lite/znode"
)

// Value is a setting as a server would use it.
type Value struct {
	Name   string // in zoo.cfg; the flag's, with its dashes, if there is none
	Text   string // the value, after other settings and ZooKeeper's rules have been applied
	Source string // as in Error; "default" if nobody has set it
}

// Explain is Load for people: every setting in the order of the documentation, and a row for
// each server. The hash of the super user is not in it.
func Explain(fs *pflag.FlagSet, lookup func(string) (string, bool)) ([]Value, error) {
	l, err := gather(fs, lookup)
	if err != nil {
		return nil, err
	}
	var all []Value
	for i := range l.rows {
		st := &l.rows[i]
		v := Value{Name: st.key, Source: l.source[st.flagName()]}
		if v.Name == "" {
			v.Name = "--" + st.flagName()
		}
		if v.Source == "" {
			v.Source = "default"
		}
		switch st.kind {
		case kindFile, kindRetired:
			continue // the sources name the file
		case kindServers:
			for _, srv := range l.s.Servers {
				all = append(all, Value{fmt.Sprintf("server.%d", srv.ID), srv.String(), l.ownSource(srv.ID)})
			}
			continue
		}
		v.Text = st.text()
		all = append(all, v)
	}
	return all, nil
}

// ownSource is where a server's line stands.
func (l *loader) ownSource(id int) string {
	if src := l.source[fmt.Sprintf("server.%d", id)]; src != "" {
		return src
	}
	return l.source["server"] // a flag or variable has the whole list
}

// text is the value of the setting's field.
func (st *setting) text() string {
	var text string
	switch p := st.to.(type) {
	case *bool:
		switch {
		case st.kind == kindFormat && *p:
			text = formatJSON
		case st.kind == kindFormat:
			text = formatText
		default:
			text = strconv.FormatBool(*p != st.not)
		}
	case *int:
		text = strconv.Itoa(*p)
	case *int64:
		text = strconv.FormatInt(*p, 10)
	case *float64:
		text = strconv.FormatFloat(*p, 'g', -1, 64)
	case *time.Duration:
		text = p.String()
	case *string:
		text = *p
	case *[]string:
		text = strings.Join(*p, ",")
	case *[]znode.ID:
		ids := make([]string, len(*p))
		for i, id := range *p {
			ids[i] = id.Scheme + ":" + id.ID
		}
		text = strings.Join(ids, ",")
	case *storage.LogKind:
		text = string(*p)
	case *Role:
		text = string(*p)
	case *slog.Level:
		text = strings.ToLower(p.String())
	}
	switch {
	case st.kind == kindPort && text == strconv.Itoa(NoPort):
		return "none"
	case text == "" && st.kind == kindHost:
		return "all interfaces"
	case text == "":
		return "none"
	case st.kind == kindDigest || st.kind == kindSecret:
		return "set, and not shown"
	}
	return text
}
