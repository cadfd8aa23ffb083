package config

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"
)

// maxFileSize bounds zoo.cfg and its companions; real ones have a few KiB.
const maxFileSize = 1 << 20

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
