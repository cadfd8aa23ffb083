// Package config turns flags, environment variables and a zoo.cfg into the
// settings of one server.
//
// Every setting is one row of a table, with its name in zoo.cfg, its type,
// default, bounds, help text, and a pointer to its field: of the Config of the
// package that obeys it, as a rule. The reader of the file, the flags
// (BindFlags), the environment and the table in docs/reference/settings.md all come
// from the rows. A flag wins over an environment variable, that over the file,
// and the file over the default.
//
// A zoo.cfg of Apache ZooKeeper 3.9 is read as it is (see parseProperties for
// its syntax). A key without a meaning here is accepted with a Notice that warns of
// what its owner may miss; keys of tuning share one Notice. A key that
// asks for protection that zk-lite does not offer yet, or that changes who has a
// majority, is an error, because to start without it would be worse than not to
// start. An unknown key is an error that names the nearest known one; in the form
// of a system property, of which ZooKeeper takes any, it is a Notice.
//
// The package opens no port, creates no directory and logs nothing. It reads
// the files it is pointed at: zoo.cfg, the dynamic configuration file that one
// may name, and dataDir/myid. It starts no goroutine and keeps no state.
package config

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/zk-lite/zk-lite/consensus/storage"
	"github.com/zk-lite/zk-lite/znode"
)

// Load gathers the settings: defaults, then the zoo.cfg that --config or
// ZK_LITE_CONFIG names, then the environment, then the flags of fs that were
// given; each wins over those before. fs comes from BindFlags and has been
// parsed; nil means no flags. lookup is os.LookupEnv or a substitute; an
// empty variable counts as not set.
//
// The error joins all problems that were found, each an *Error; the Settings are of use only
// without one. The caller logs the notices once.
func Load(fs *pflag.FlagSet, lookup func(string) (string, bool)) (Settings, []Notice, error) {
	l, err := gather(fs, lookup)
	return l.s, l.notices, err
}

func gather(fs *pflag.FlagSet, lookup func(string) (string, bool)) (*loader, error) {
	l := &loader{fs: fs, lookup: lookup, source: map[string]string{}}
	l.rows = table(&l.s)
	l.s.MyID, l.s.SecureClientPort, l.s.DNSPort = noID, NoPort, NoPort
	l.s.TLS.Prefix, l.s.PeerTLS.Prefix, l.s.PeerTLS.MinVersion = "ssl.", "ssl.quorum.", tls.VersionTLS13
	l.defaults()
	l.file()
	l.outer()
	if len(l.errs) == 0 {
		l.resolve() // whose checks would only repeat what is already wrong
	}
	return l, errors.Join(l.errs...)
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

// EachGroup calls visit with the flags of each subject of settings, which BindFlags has defined in fs.
func EachGroup(fs *pflag.FlagSet, visit func(title string, flags []*pflag.Flag)) {
	for _, g := range groups(new(Settings)) {
		var flags []*pflag.Flag
		for i := range g.rows {
			flags = append(flags, fs.Lookup(g.rows[i].flagName()))
		}
		visit(g.title, flags)
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
		text := "no setting has this variable; docs/reference/settings.md lists them"
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
	"ZK_LITE_SERVER", "ZK_LITE_HTTP", "ZK_LITE_CONTEXT", "ZK_LITE_PASSWORD", "ZK_LITE_TLS", "ZK_LITE_TLS_CA",
	"ZK_LITE_TLS_CERT", "ZK_LITE_TLS_PASSWORD_FILE", "ZK_LITE_TLS_SERVER_NAME", "ZK_LITE_LOCK", "ZK_LITE_ELECTION",
	"ZK_LITE_MEMBER", "ZK_LITE_FENCING_TOKEN", "ZK_LITE_TEST_*",
}

// ofKubernetes are the variables that every pod gets for a Service whose name begins with zk-lite.
var ofKubernetes = regexp.MustCompile(`_SERVICE_(HOST|PORT)(_\w+)?$|_PORT(_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?$`)
