package config

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// Load gathers the settings: defaults, then the zoo.cfg that --config or
// ZK_LITE_CONFIG names, then the environment, then the flags of fs that were
// given; each wins over those before. fs comes from BindFlags and has been
// parsed; nil stands for no flags. lookup is os.LookupEnv or a stand-in; an
// empty variable counts as not set.
//
// The error joins all problems that were found, each an *Error; the Settings
// are of use only without one. The notices are to be logged once.
func Load(fs *pflag.FlagSet, lookup func(string) (string, bool)) (Settings, []Notice, error) {
	l, err := gather(fs, lookup)
	return l.s, l.notices, err
}

func gather(fs *pflag.FlagSet, lookup func(string) (string, bool)) (*loader, error) {
	l := &loader{fs: fs, lookup: lookup, source: map[string]string{}}
	l.rows = table(&l.s)
	l.s.MyID, l.s.SecureClientPort = noID, NoPort
	l.s.TLS.Prefix, l.s.PeerTLS.Prefix, l.s.PeerTLS.MinVersion = "ssl.", "ssl.quorum.", tls.VersionTLS13
	l.defaults()
	l.file()
	l.outer()
	if len(l.errs) == 0 {
		l.resolve() // whose checks would only repeat what is already wrong
	}
	return l, errors.Join(l.errs...)
}

// loader is one Load under way.
type loader struct {
	rows   []setting
	fs     *pflag.FlagSet
	lookup func(string) (string, bool)

	s        Settings          // which rows fill in
	source   map[string]string // flag name of a row -> where its value stands; none for a default
	notices  []Notice
	errs     []error
	tuning   []string // keys of ZooKeeper's tuning that have no effect
	readOnly bool     // readonlymode.enabled
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

// row is the setting with a flag's name.
func (l *loader) row(flag string) *setting {
	i := slices.IndexFunc(l.rows, func(st setting) bool { return st.flagName() == flag })
	if i < 0 {
		panic("config: no setting with the flag --" + flag)
	}
	return &l.rows[i]
}

// given reports whether a setting has a value other than its default.
func (l *loader) given(flag string) bool { return l.source[flag] != "" }

func (l *loader) defaults() {
	for i := range l.rows {
		if st := &l.rows[i]; st.def != "" {
			if err := st.set(st.def); err != nil {
				panic(fmt.Sprintf("config: the default of --%s: %v", st.flagName(), err))
			}
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

// file finds and reads the zoo.cfg, if one is named.
func (l *loader) file() {
	st := l.row("config")
	path, _ := l.env(st)
	if f := l.flag(st); f != nil {
		path = f.Value.String()
	}
	if path == "" {
		return
	}
	l.s.ConfigFile = path
	if props, ok := l.read(path, "", ""); ok {
		l.properties(path, props)
	}
}

// read reads a file in the properties format. source and key say where it is named; empty
// for the one that an error of its own names.
func (l *loader) read(path, source, key string) ([]property, bool) {
	text, err := readBounded(path)
	if err != nil && key != "" {
		l.fail(source, key, path+" cannot be read: "+err.Error(), "")
		return nil, false
	}
	if err != nil {
		l.fail(path, "", "cannot be read: "+err.Error(), "")
		return nil, false
	}
	props, err := parseProperties(text)
	var at *lineError
	if errors.As(err, &at) {
		l.fail(fmt.Sprintf("%s:%d", path, at.line), "", at.err.Error(), "")
	}
	return props, err == nil
}

func readBounded(path string) (string, error) {
	var text []byte
	f, err := os.Open(path)
	if err == nil {
		defer f.Close()
		text, err = io.ReadAll(io.LimitReader(f, maxFileSize+1))
	}
	var pathErr *os.PathError
	if errors.As(err, &pathErr) {
		err = pathErr.Err // the message names the path already
	}
	if err == nil && len(text) > maxFileSize {
		err = fmt.Errorf("it is larger than %d bytes", maxFileSize)
	}
	return string(text), err
}
