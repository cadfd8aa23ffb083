package config

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
)

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

// maxFileSize bounds zoo.cfg and its companions; real ones have a few KiB.
const maxFileSize = 1 << 20

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

// properties takes the entries of a zoo.cfg.
func (l *loader) properties(path string, props []property) {
	dynamic := slices.ContainsFunc(props, func(p property) bool {
		return p.key == "dynamicConfigFile"
	})
	seen := map[string]string{} // known name -> value
	for _, p := range props {
		source := fmt.Sprintf("%s:%d", path, p.line)
		key := strings.TrimPrefix(p.key, "zookeeper.")
		if strings.HasPrefix(key, "server.") && key != "server.principal" && key != "server.realm" {
			if dynamic {
				l.fail(source, p.key, "the list of servers is in the dynamicConfigFile",
					"move the line there, or remove dynamicConfigFile")
				continue
			}
			l.serverLine(source, p)
			continue
		}
		st := l.known(key)
		if st != nil {
			key = st.key
		}
		if before, ok := seen[key]; ok && before != p.value {
			l.warn(source, p.key, "appears more than once; this line, the last, counts")
		}
		seen[key] = p.value
		switch {
		case st != nil:
			l.apply(st, source, p.key, p.value)
		case key == "dynamicConfigFile":
			l.dynamic(source, p)
		case strings.HasPrefix(key, "authProvider."):
			l.provider(source, p)
		case strings.HasPrefix(key, "superUser."):
			l.superUser(source, p)
		default:
			l.foreign(source, key, p)
		}
	}
	if len(l.tuning) > 0 {
		l.warn(path, strings.Join(l.tuning, ", "),
			"have no effect: zk-lite needs no such tuning (docs/reference/settings.md, \"Keys without effect\")")
	}
}

// known is the setting with a name in zoo.cfg.
func (l *loader) known(key string) *setting {
	for i := range l.rows {
		st := &l.rows[i]
		if key != "" && st.kind != kindServers && (st.key == key || slices.Contains(st.aliases, key)) {
			return st
		}
	}
	return nil
}

// serverLine takes a line server.N.
func (l *loader) serverLine(source string, p property) {
	_, text, _ := strings.Cut(p.key, "server.")
	id, err := parseServerID(text)
	if err == nil {
		var srv Server
		if srv, err = parseServer(id, p.value); err == nil {
			l.s.Servers = append(l.s.Servers, srv)
			l.source["server"], l.source[fmt.Sprintf("server.%d", id)] = source, source
			return
		}
	}
	l.fail(source, p.key, err.Error(), "")
}

// provider takes a line authProvider.NAME=CLASS. ZooKeeper's own classes are built in.
func (l *loader) provider(source string, p property) {
	const classes = "org.apache.zookeeper.server.auth."
	name, own := strings.CutPrefix(p.value, classes)
	switch {
	case own && slices.Contains([]string{"DigestAuthenticationProvider", "IPAuthenticationProvider",
		"X509AuthenticationProvider", "SASLAuthenticationProvider"}, name):
	case own && name == "EnsembleAuthenticationProvider":
		l.s.Auth.Ensemble = true
	default:
		l.fail(source, p.key, fmt.Sprintf("zk-lite runs no Java classes, and has nothing like %q", shorten(p.value)),
			"it has the providers Digest, IP, X509, SASL and Ensemble of "+strings.TrimSuffix(classes, "."))
	}
}

// superUser takes superUser.N, of which there may be any number.
func (l *loader) superUser(source string, p property) {
	l.s.SASL.Supers = append(l.s.SASL.Supers, strings.TrimSpace(p.value))
	l.source["sasl-super-user"] = source
}

// dynamic reads the list of servers from the file that dynamicConfigFile
// names, in which ZooKeeper keeps it once it can be changed at run time.
func (l *loader) dynamic(source string, p property) {
	l.note(source, p.key, "is read once, at start; zk-lite does not change it")
	props, _ := l.read(p.value, source, p.key)
	for _, d := range props {
		at := fmt.Sprintf("%s:%d", p.value, d.line)
		switch key := strings.TrimPrefix(d.key, "zookeeper."); {
		case strings.HasPrefix(key, "server."):
			l.serverLine(at, d)
		case key == "version":
		case strings.HasPrefix(key, "group.") || strings.HasPrefix(key, "weight."):
			l.foreign(at, key, d)
		default:
			l.fail(at, d.key, "only lines server.N=... belong into a dynamic configuration file",
				"move the line to the file that names this one")
		}
	}
}

// foreign deals with a key that is no setting.
func (l *loader) foreign(source, key string, p property) {
	if f := familyOf(key); f != nil {
		switch {
		case f.off(p.value):
		case f.verdict == tuning:
			l.tuning = append(l.tuning, shorten(p.key))
		case f.verdict == ignored:
			l.warn(source, p.key, "has no effect: zk-lite %s", f.why)
		default:
			l.fail(source, p.key, "zk-lite "+f.why, "")
		}
		return
	}
	want := "docs/reference/settings.md lists the known ones"
	if n := nearest(key, l.names()); n != "" {
		want = "did you mean " + n + "?"
	}
	if key != p.key && !strings.HasPrefix(key, "ssl.") { // a system property, of which ZooKeeper takes any
		l.warn(source, shorten(p.key), "unknown key without effect; %s", want)
		return
	}
	l.fail(source, shorten(p.key), "unknown key", want)
}

// names is every name that may stand in a zoo.cfg, beginnings left out.
func (l *loader) names() []string {
	names := []string{"dynamicConfigFile"}
	for _, st := range l.rows {
		if st.key != "" {
			names = append(append(names, st.key), st.aliases...)
		}
	}
	for _, f := range foreignKeys() {
		for _, k := range f.keys {
			if !strings.HasSuffix(k, "*") {
				names = append(names, k)
			}
		}
	}
	return names
}

// property is one entry of a file in the format of java.util.Properties.
type property struct {
	line       int // 1-based, of the entry's first line
	key, value string
}

// parseProperties reads the format that ZooKeeper reads its files with
// (java.util.Properties.load): key and value separated by =, : or blanks,
// comment lines that begin with # or !, a backslash at the end of a line that
// continues it, and the escapes \t \n \r \f \uXXXX, while the backslash before any
// other character is dropped. Line ends may be LF, CR LF or CR. As ZooKeeper
// does, it trims blanks around keys and values.
//
// Different from Java, the text is UTF-8, a byte order mark at the beginning is
// skipped, and an empty key is an error.
func parseProperties(text string) ([]property, error) {
	var props []property
	lines := splitLines(strings.TrimPrefix(text, "\ufeff"))
	for i := 0; i < len(lines); i++ {
		line := strings.TrimLeft(lines[i], blanks)
		if line == "" || line[0] == '#' || line[0] == '!' {
			continue
		}
		first := i + 1
		for continued(line) {
			line = line[:len(line)-1]
			if i+1 == len(lines) {
				break
			}
			i++
			line += strings.TrimLeft(lines[i], blanks)
		}
		rawKey, rawValue := cutKey(line)
		key, err := unescape(rawKey)
		if err != nil {
			return nil, &lineError{first, err}
		}
		value, err := unescape(rawValue)
		if err != nil {
			return nil, &lineError{first, err}
		}
		if key = strings.TrimSpace(key); key == "" {
			return nil, &lineError{first, fmt.Errorf("no key before the separator")}
		}
		props = append(props, property{line: first, key: key, value: strings.TrimSpace(value)})
	}
	return props, nil
}

// blanks is Java's white space within a line.
const blanks = " \t\f"

// lineError is a syntax error with its place.
type lineError struct {
	line int
	err  error
}

func (e *lineError) Error() string { return fmt.Sprintf("line %d: %v", e.line, e.err) }

func (e *lineError) Unwrap() error { return e.err }

// splitLines cuts at LF, CR LF and CR.
func splitLines(text string) []string {
	text = strings.ReplaceAll(text, "\r\n", "\n")
	return strings.Split(strings.ReplaceAll(text, "\r", "\n"), "\n")
}

// continued reports whether a line ends in an odd number of backslashes.
func continued(line string) bool {
	return (len(line)-len(strings.TrimRight(line, `\`)))%2 == 1
}

// cutKey splits a logical line, still escaped, at the first unescaped =, : or
// blank; blanks around the separator belong to it.
func cutKey(line string) (key, value string) {
	end := 0
	for end < len(line) && !strings.ContainsRune("=:"+blanks, rune(line[end])) {
		if line[end] == '\\' {
			end++
		}
		end++
	}
	end = min(end, len(line))
	rest := strings.TrimLeft(line[end:], blanks)
	if rest != "" && (rest[0] == '=' || rest[0] == ':') {
		rest = strings.TrimLeft(rest[1:], blanks)
	}
	return line[:end], rest
}

func unescape(s string) (string, error) {
	if !strings.Contains(s, `\`) {
		return s, nil
	}
	var b strings.Builder
	var units []uint16 // a run of \uXXXX, of which two may be one character
	flush := func() {
		b.WriteString(string(utf16.Decode(units)))
		units = units[:0]
	}
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			flush()
			if s[i] != '\\' {
				b.WriteByte(s[i])
			}
			continue
		}
		i++
		if s[i] == 'u' {
			if len(s) < i+5 {
				return "", fmt.Errorf(`incomplete escape \%s; four hexadecimal digits follow \u`, s[i:])
			}
			n, err := strconv.ParseUint(s[i+1:i+5], 16, 16)
			if err != nil {
				return "", fmt.Errorf(`bad escape \%s; four hexadecimal digits follow \u`, s[i:i+5])
			}
			units = append(units, uint16(n))
			i += 4
			continue
		}
		flush()
		if at := strings.IndexByte("tnrf", s[i]); at >= 0 {
			b.WriteByte("\t\n\r\f"[at])
		} else {
			b.WriteByte(s[i])
		}
	}
	flush()
	return b.String(), nil
}
