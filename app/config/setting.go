package config

import (
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/consensus/storage"
	"github.com/zk-lite/zk-lite/znode"
)

// setting is one row of the table.
type setting struct {
	key     string   // the name in zoo.cfg; "" for one that has none
	aliases []string // other names of it in zoo.cfg
	flag    string   // without the dashes; made from key when empty
	kind    kind
	def     string // the default as text; "" leaves the field as it is
	// min and max bound numbers, bytes and milliseconds; both inclusive.
	min, max int64
	minusOne bool     // -1 means the default, as in ZooKeeper
	choices  []string // of kindChoice
	help     string
	to       any  // a pointer to the field that has the value; nil for servers, the file and what is retired
	not      bool // the field of a bool is true for false
}

// flagName is the flag of the row: admin.serverPort becomes admin-server-port.
func (st *setting) flagName() string {
	if st.flag != "" {
		return st.flag
	}
	var b strings.Builder
	for _, r := range st.key {
		switch {
		case r == '.':
			b.WriteByte('-')
		case unicode.IsUpper(r):
			b.WriteByte('-')
			b.WriteRune(unicode.ToLower(r))
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// envName is the environment variable of the row.
func (st *setting) envName() string {
	if st.kind == kindServers {
		return "ZK_LITE_SERVERS" // ZK_LITE_SERVER is the connect string of the client commands
	}
	return "ZK_LITE_" + strings.ToUpper(strings.ReplaceAll(st.flagName(), "-", "_"))
}

const (
	hour   = 60 * 60 * 1000 // milliseconds
	day    = 24 * hour
	maxInt = math.MaxInt32 // ZooKeeper's own numbers are Java ints

	connectRequestBytes = 45 // with less no client could connect
)

// kind is how the text of a setting is read.
type kind int

const (
	kindText kind = iota
	kindBool
	kindInt
	kindPort    // of TCP
	kindSecret  // text that is never shown
	kindBytes   // a number of bytes, or with KiB, MiB, GiB
	kindMillis  // a number of milliseconds, or a Go duration such as 90s
	kindChoice  // one of a list of words
	kindWords   // four-letter words
	kindDigest  // user:hash; never repeated in a message
	kindRole    // participant or observer
	kindLevel   // of the logger
	kindServers // server lines
	kindServer  // a server id
	kindFile    // the zoo.cfg itself
	kindHost    // a name or address to listen on, without a port
	kindOrigins // web origins, such as https://example.org
	kindHosts   // host names without a port
	kindYes     // yes or no
	kindFloat   // a number with a point, from min to max
	kindWordList
	kindIdentities // SCHEME:ID
	kindFormat     // text or json; the field is true for json
	kindRetired    // of an earlier release: accepted, without effect
)

// name is the kind in the documentation and in a flag's usage.
func (k kind) name() string {
	return [...]string{"text", "bool", "number", "number", "text", "bytes", "ms", "word", "list", "digest", "role",
		"level", "servers", "number", "file", "host", "list", "list", "word", "number", "list", "list",
		"word", "text"}[k]
}

// The words of kindFormat.
const (
	formatText = "text"
	formatJSON = "json"
)

// set reads text into the setting's field. The error says what is wrong
// and what would be right, without the key.
func (st *setting) set(text string) error {
	text = strings.TrimSpace(text)
	switch st.kind {
	case kindBool:
		return st.setBool(st.to.(*bool), text)
	case kindInt, kindPort, kindBytes:
		return st.setNumber(st.to, text)
	case kindMillis:
		return st.setDuration(st.to.(*time.Duration), text)
	case kindServer:
		n, err := parseServerID(text)
		*st.to.(*int) = n
		return err
	case kindRole:
		role, err := parseRole(text)
		*st.to.(*Role) = role
		return err
	case kindLevel:
		if err := st.to.(*slog.Level).UnmarshalText([]byte(text)); err != nil {
			return fmt.Errorf("%q is no level; want debug, info, warn or error", shorten(text))
		}
		return nil
	case kindOrigins:
		origins, err := parseOrigins(text)
		*st.to.(*[]string) = origins
		return err
	case kindHosts:
		hosts, err := parseHosts(text)
		*st.to.(*[]string) = hosts
		return err
	case kindFloat:
		f, err := strconv.ParseFloat(text, 64)
		if err != nil || !(f >= float64(st.min) && f <= float64(st.max)) {
			return fmt.Errorf("%q is not a number from %d to %d", shorten(text), st.min, st.max)
		}
		*st.to.(*float64) = f
		return nil
	case kindYes:
		return setYes(st.to.(*bool), text)
	case kindWordList:
		*st.to.(*[]string) = parseWordList(text)
		return nil
	case kindIdentities:
		ids, err := parseIdentities(text)
		*st.to.(*[]znode.ID) = ids
		return err
	case kindWords:
		*st.to.(*[]string) = parseWords(text)
		return nil
	case kindChoice, kindFormat:
		if !slices.Contains(st.choices, text) {
			return fmt.Errorf("%q is not known; want %s", shorten(text), strings.Join(st.choices, " or "))
		}
	case kindDigest:
		if err := checkDigest(text); err != nil {
			return err
		}
	case kindHost:
		var err error
		if text, err = parseHost(text); err != nil {
			return err
		}
	}
	switch to := st.to.(type) {
	case *bool:
		*to = text == formatJSON
	case *storage.LogKind:
		*to = storage.LogKind(text)
	case *string:
		*to = text
	}
	return nil
}

// setBool takes what ZooKeeper takes for its bools (QuorumPeerConfig.parseBoolean). Its
// system properties, read with Java's Boolean, would be false for yes.
func (st *setting) setBool(to *bool, text string) error {
	switch strings.ToLower(text) {
	case "true":
		*to = !st.not
	case "false":
		*to = st.not
	default:
		return fmt.Errorf("%q is neither true nor false", shorten(text))
	}
	return nil
}

// setNumber reads decimal and, because Java's system properties allow it (and
// jute.maxbuffer is often written 0xfffff), hexadecimal with 0x.
func (st *setting) setNumber(to any, text string) error {
	digits, unit := text, int64(1)
	if st.kind == kindBytes {
		for i, suffix := range []string{"KiB", "MiB", "GiB"} {
			if d, ok := strings.CutSuffix(text, suffix); ok {
				digits, unit = strings.TrimSpace(d), 1<<(10*(i+1))
			}
		}
	}
	base := 10
	if d, ok := strings.CutPrefix(digits, "0x"); ok {
		digits, base = d, 16
	}
	n, err := strconv.ParseInt(digits, base, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return fmt.Errorf("%q is not a number%s", shorten(text), commentHint(text))
	}
	if err != nil || n > st.max/unit || n*unit < st.min {
		return fmt.Errorf("%s is out of range; want %s", shorten(text), st.bounds())
	}
	switch to := to.(type) {
	case *int:
		*to = int(n * unit)
	case *int64:
		*to = n * unit
	}
	return nil
}

// setDuration reads a bare number in milliseconds, or a Go duration. -1 is 0
// where ZooKeeper has it mean "the default".
func (st *setting) setDuration(to *time.Duration, text string) error {
	d, err := time.ParseDuration(text)
	if ms, numErr := strconv.ParseInt(text, 10, 64); numErr == nil {
		if st.minusOne && ms == -1 {
			*to = 0
			return nil
		}
		if ms < st.min || ms > st.max {
			return fmt.Errorf("%s is out of range; want %s", text, st.bounds())
		}
		d, err = time.Duration(ms)*time.Millisecond, nil
	}
	if err != nil {
		return fmt.Errorf("%q is neither a number of milliseconds nor a duration such as 90s%s",
			shorten(text), commentHint(text))
	}
	if d%time.Millisecond != 0 || d.Milliseconds() < st.min || d.Milliseconds() > st.max {
		return fmt.Errorf("%s is out of range; want whole milliseconds, %s", text, st.bounds())
	}
	*to = d
	return nil
}

// bounds is the range in words.
func (st *setting) bounds() string {
	switch {
	case st.kind == kindServer:
		return fmt.Sprintf("0 to %d", state.MaxServerID)
	case st.max == 0:
		return strings.Join(st.choices, ", ")
	}
	text := fmt.Sprintf("%d to %d", st.min, st.max)
	if st.minusOne {
		text += ", or -1 for the default"
	}
	return text
}

// commentHint explains the commonest mistake in a properties file.
func commentHint(text string) string {
	if strings.ContainsAny(text, "#!") {
		return "; a comment needs a line of its own"
	}
	return ""
}

// fourLetterWords is all that ZooKeeper has (FourLetterCommands).
func fourLetterWords() []string {
	return []string{"conf", "cons", "crst", "dirs", "dump", "envi", "gtmk", "hash", "isro", "mntr",
		"ruok", "srst", "srvr", "stat", "stmk", "wchc", "wchp", "wchs"}
}

// parseWords reads 4lw.commands.whitelist; unknown words stay.
func parseWords(text string) []string {
	var words []string
	for w := range strings.SplitSeq(text, ",") {
		switch w = strings.TrimSpace(w); w {
		case "*":
			words = append(words, fourLetterWords()...)
		case "":
		default:
			words = append(words, w)
		}
	}
	slices.Sort(words)
	return slices.Compact(words)
}

// checkDigest accepts user:base64(hash), which is what ZooKeeper's
// DigestAuthenticationProvider.main prints.
func checkDigest(text string) error {
	_, hash, ok := strings.Cut(text, ":")
	if _, err := base64.StdEncoding.DecodeString(hash); text == "" || ok && err == nil {
		return nil // its length depends on the hash: see resolveAuth
	}
	return errors.New("the value is not of the form USER:HASH (it is not repeated here); `zk-lite digest` makes one")
}

// setYes takes ZooKeeper's yes and no.
func setYes(to *bool, text string) error {
	switch strings.ToLower(text) {
	case "yes", "true":
		*to = true
	case "no", "false":
		*to = false
	default:
		return fmt.Errorf("%q is neither yes nor no", shorten(text))
	}
	return nil
}

// parseIdentities reads SCHEME:ID, separated by semicolons: the names in certificates have commas.
func parseIdentities(text string) (all []znode.ID, err error) {
	for id := range strings.SplitSeq(text, ";") {
		if id = strings.TrimSpace(id); id == "" {
			continue
		}
		scheme, rest, ok := strings.Cut(id, ":")
		if !ok || rest == "" || !slices.Contains([]string{"digest", "x509", "sasl", "token"}, scheme) {
			return nil, fmt.Errorf("%q is no identity; want digest:USER:HASH, x509:SUBJECT, sasl:NAME or token:NAME",
				shorten(id))
		}
		all = append(all, znode.ID{Scheme: scheme, ID: rest})
	}
	return all, nil
}

func parseWordList(text string) (all []string) {
	for w := range strings.SplitSeq(text, ",") {
		if w = strings.TrimSpace(w); w != "" {
			all = append(all, w)
		}
	}
	return all
}
