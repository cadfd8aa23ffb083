package lineedit

import (
	"errors"
	"strings"
)

// ErrQuote reports that a quotation has no end.
var ErrQuote = errors.New("a quotation mark is missing")

// Split splits a line into words at blanks. Single quotes keep everything as it
// is; in double quotes, and outside of quotes, a backslash takes away the meaning
// of the next character. A word that begins with # starts a comment.
func Split(line string) ([]string, error) {
	words, _, err := scan(line)
	return words, err
}

// Last splits a line that is not complete yet. It returns the complete words, the
// last one, which is "" behind a blank, and where that one starts.
func Last(line string) (words []string, last string, start int) {
	words, start, err := scan(line)
	if start == len(line) && err == nil {
		return words, "", start
	}
	return words[:len(words)-1], words[len(words)-1], start
}

// scan returns the words and where the last one starts, or the length of the line
// if that ends in a blank.
func scan(line string) (words []string, start int, err error) {
	var word strings.Builder
	var quote byte
	inWord := false
	start = len(line)
	for i := 0; i < len(line); i++ {
		b := line[i]
		blank := quote == 0 && (b == ' ' || b == '\t')
		if blank {
			if inWord {
				words = append(words, word.String())
				word.Reset()
			}
			inWord, start = false, len(line)
			continue
		}
		if !inWord {
			if b == '#' {
				return words, len(line), nil
			}
			inWord, start = true, i
		}
		switch {
		case b == '\\' && quote != '\'' && i+1 < len(line):
			i++
			word.WriteByte(line[i])
		case quote != 0 && b == quote:
			quote = 0
		case quote == 0 && (b == '\'' || b == '"'):
			quote = b
		default:
			word.WriteByte(b)
		}
	}
	if inWord {
		words = append(words, word.String())
	}
	if quote != 0 {
		err = ErrQuote
	}
	return words, start, err
}

// Quote writes a word so that Split reads it as one.
func Quote(word string) string {
	if word != "" && !strings.ContainsAny(word, " \t'\"\\#") {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
