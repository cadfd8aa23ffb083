package config

import (
	"fmt"
	"slices"
	"strings"
)

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
				l.fail(source, p.key, "the list of servers stands in the dynamicConfigFile",
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
			l.warn(source, p.key, "stands more than once; this line, the last, counts")
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
			"have no effect: zk-lite needs no such tuning (docs/configuration.md, \"Keys without effect\")")
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
	for _, f := range foreignKeys() {
		if !f.matches(key) {
			continue
		}
		if key == "readonlymode.enabled" {
			l.readOnly = strings.EqualFold(p.value, "true")
		}
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
	want := "docs/configuration.md lists the known ones"
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
