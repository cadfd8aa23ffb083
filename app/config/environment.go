package config

import (
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strings"
)

// ofCommands are the variables of the program's other commands, or beginnings of them where a * follows: the flags of
// clients (package cli), what they tell the commands that they run, and what tests say to themselves.
var ofCommands = []string{
	"ZK_LITE_SERVER", "ZK_LITE_HTTP", "ZK_LITE_PASSWORD", "ZK_LITE_TLS", "ZK_LITE_TLS_CA", "ZK_LITE_TLS_CERT",
	"ZK_LITE_TLS_PASSWORD_FILE", "ZK_LITE_TLS_SERVER_NAME", "ZK_LITE_LOCK", "ZK_LITE_ELECTION", "ZK_LITE_MEMBER",
	"ZK_LITE_FENCING_TOKEN", "ZK_LITE_TEST_*",
}

// ofKubernetes are the variables that every pod gets for a Service whose name begins with zk-lite.
var ofKubernetes = regexp.MustCompile(`_SERVICE_(HOST|PORT)(_\w+)?$|_PORT(_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?$`)

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
