package config

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// Load gathers the settings: defaults, then the zoo.cfg that --config or
// ZK_LITE_CONFIG names, then the environment, then the flags of fs that were
// given; each wins over those before. fs comes from BindFlags and has been
// parsed; nil means no flags. lookup is os.LookupEnv or a substitute; an
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

// Value is a setting as a server would use it.
type Value struct {
	Name   string // in zoo.cfg; the flag's, with its dashes, if there is none
	Text   string // the value, after other settings and ZooKeeper's rules have been applied
	Source string // as in Error; "default" if it is not set
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

// loader is one Load under way.
type loader struct {
	rows   []setting
	fs     *pflag.FlagSet
	lookup func(string) (string, bool)

	s        Settings          // which rows fill in
	source   map[string]string // flag name of a row -> the place of its value; none for a default
	notices  []Notice
	errs     []error
	tuning   []string // keys of ZooKeeper's tuning that have no effect
	readOnly bool     // readonlymode.enabled
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

// BindFlags defines one flag for every setting, --config and --server included.
// Their values are checked by Load, together with those of the other sources.
func BindFlags(fs *pflag.FlagSet) {
	for _, st := range table(new(Settings)) {
		usage := strings.ReplaceAll(st.help, "`", "")
		if st.key != "" {
			usage += " [" + st.key + "]"
		}
		if st.kind == kindServers {
			fs.StringArray(st.flagName(), nil, usage)
			continue
		}
		f := fs.VarPF(&flagValue{kind: st.kind}, st.flagName(), "", usage)
		f.DefValue, f.Hidden = st.def, st.kind == kindRetired
		if st.kind == kindBool || st.kind == kindRetired {
			f.NoOptDefVal = "true"
		}
	}
}

// flagValue keeps a flag's text for Load.
type flagValue struct {
	text string
	kind kind
}

func (v *flagValue) String() string { return v.text }

func (v *flagValue) Set(s string) error { v.text = s; return nil }

func (v *flagValue) Type() string { return v.kind.name() }

// UnknownVariables finds the variables ZK_LITE_* of an environment, in the form of os.Environ, that are no setting and
// of no use to any other command: misspelt ones. The notices are warnings.
func UnknownVariables(environ []string) (notices []Notice) {
	const prefix = "ZK_LITE_"
	var names []string // without the prefix, which all have in common
	for _, st := range table(new(Settings)) {
		names = append(names, strings.TrimPrefix(st.envName(), prefix))
	}
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		short, ours := strings.CutPrefix(name, prefix)
		if !ours || slices.Contains(names, short) || ofKubernetes.MatchString(name) ||
			strings.Contains(value, "://") || slices.ContainsFunc(ofCommands, func(of string) bool {
			begin, is := strings.CutSuffix(of, "*")
			return name == of || is && strings.HasPrefix(name, begin)
		}) {
			continue
		}
		text := "no setting has this variable; docs/configuration.md lists them"
		if n := nearest(short, names); n != "" {
			text = fmt.Sprintf("no setting has this variable; did you mean %s?", prefix+n)
		}
		notices = append(notices, Notice{slog.LevelWarn, "environment", shorten(name), text})
	}
	return notices
}

// ofCommands are the variables of the program's other commands, or beginnings of them where a * follows: the flags of
// clients (package cli), the variables that they set for the commands that they run, and those of tests.
var ofCommands = []string{
	"ZK_LITE_SERVER", "ZK_LITE_HTTP", "ZK_LITE_PASSWORD", "ZK_LITE_TLS", "ZK_LITE_TLS_CA", "ZK_LITE_TLS_CERT",
	"ZK_LITE_TLS_PASSWORD_FILE", "ZK_LITE_TLS_SERVER_NAME", "ZK_LITE_LOCK", "ZK_LITE_ELECTION", "ZK_LITE_MEMBER",
	"ZK_LITE_FENCING_TOKEN", "ZK_LITE_TEST_*",
}

// ofKubernetes are the variables that every pod gets for a Service whose name begins with zk-lite.
var ofKubernetes = regexp.MustCompile(`_SERVICE_(HOST|PORT)(_\w+)?$|_PORT(_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?$`)
