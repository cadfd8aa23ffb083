package config

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// loader is one Load under way.
type loader struct {
	rows   []setting
	fs     *pflag.FlagSet
	lookup func(string) (string, bool)

	s       Settings          // which rows fill in
	source  map[string]string // flag name of a row -> the place of its value; none for a default
	notices []Notice
	errs    []error
	tuning  []string // keys of ZooKeeper's tuning that have no effect
}

func (l *loader) defaults() {
	for i := range l.rows {
		if st := &l.rows[i]; st.def != "" {
			if err := st.set(st.def); err != nil {
				panic(fmt.Sprintf("config: the default of --%s: %v", st.flagName(), err))
			}
		}
	}
}

// outer takes the environment and the flags.
func (l *loader) outer() {
	for i := range l.rows {
		st := &l.rows[i]
		if text, ok := l.env(st); ok && st.kind == kindServers {
			l.servers("environment "+st.envName(), strings.Fields(text))
		} else if ok && st.kind != kindFile {
			l.apply(st, "environment "+st.envName(), st.key, text)
		}
		f := l.flag(st)
		if f == nil {
			continue
		}
		switch st.kind {
		case kindFile:
		case kindServers:
			l.servers("flag --"+st.flagName(), f.Value.(pflag.SliceValue).GetSlice())
		default:
			l.apply(st, "flag --"+st.flagName(), st.key, f.Value.String())
		}
	}
}

// apply takes a row's value from a source.
func (l *loader) apply(st *setting, source, key, text string) {
	if st.kind == kindRetired {
		l.warn(source, key, "no longer has any effect; remove it before the next release, which will not know it")
		return
	}
	if err := st.set(text); err != nil {
		l.fail(source, key, err.Error(), "")
		return
	}
	l.source[st.flagName()] = source
}

// flag is the row's flag if it was given on the command line.
func (l *loader) flag(st *setting) *pflag.Flag {
	if l.fs == nil {
		return nil
	}
	if f := l.fs.Lookup(st.flagName()); f != nil && f.Changed {
		return f
	}
	return nil
}

// env is the row's variable. Kubernetes gives every pod variables such as
// ZK_LITE_CLIENT_PORT=tcp://10.0.0.1:2181 for a Service called zk-lite-client;
// those are not meant for us.
func (l *loader) env(st *setting) (string, bool) {
	text, ok := l.lookup(st.envName())
	if !ok || text == "" {
		return "", false
	}
	if scheme, _, ok := strings.Cut(text, "://"); ok &&
		slices.Contains([]string{"tcp", "udp", "sctp"}, scheme) {
		l.note("environment "+st.envName(), st.key,
			"ignored, because %q is what Kubernetes sets for a Service of that name", shorten(text))
		return "", false
	}
	return text, true
}

// servers replaces the list of servers by that of a flag or variable.
func (l *loader) servers(source string, lines []string) {
	var list []Server
	for _, line := range lines {
		srv, err := parseServerAssignment(line)
		if err != nil {
			l.fail(source, "server.N", err.Error(), "")
			continue
		}
		list = append(list, srv)
	}
	for _, srv := range l.s.Servers {
		delete(l.source, fmt.Sprintf("server.%d", srv.ID))
	}
	l.s.Servers = list
	l.source["server"] = source
}

// given reports whether a setting has a value other than its default.
func (l *loader) given(flag string) bool { return l.source[flag] != "" }

// row is the setting with a flag's name.
func (l *loader) row(flag string) *setting {
	i := slices.IndexFunc(l.rows, func(st setting) bool { return st.flagName() == flag })
	if i < 0 {
		panic("config: no setting with the flag --" + flag)
	}
	return &l.rows[i]
}

// where is the place of a setting for a message.
func (l *loader) where(flag string) string {
	if src := l.source[flag]; src != "" {
		return src
	}
	if l.s.ConfigFile != "" {
		return l.s.ConfigFile
	}
	return "defaults"
}

// ownSource is the place of a server's line.
func (l *loader) ownSource(id int) string {
	if src := l.source[fmt.Sprintf("server.%d", id)]; src != "" {
		return src
	}
	return l.source["server"] // a flag or variable has the whole list
}

func (l *loader) warn(source, key, format string, args ...any) {
	l.notices = append(l.notices, Notice{slog.LevelWarn, source, key, fmt.Sprintf(format, args...)})
}

func (l *loader) note(source, key, format string, args ...any) {
	l.notices = append(l.notices, Notice{slog.LevelInfo, source, key, fmt.Sprintf(format, args...)})
}

func (l *loader) fail(source, key, problem, want string) {
	l.errs = append(l.errs, &Error{Source: source, Key: key, Problem: problem, Want: want})
}
