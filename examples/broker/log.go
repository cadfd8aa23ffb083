package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// Message is one of a topic.
type Message struct {
	ID     int    // its place in the topic, from 1
	From   string // the publisher
	Number int    // the publisher's; the same if a message is sent again
	Text   string
}

func (m Message) valid() bool { return m.From != "" && m.Number >= 1 && len(m.Text) <= maxMessage }

// Log is a node's file of the messages of one topic, a line of JSON each, with all of
// them in memory, too. After an error of a write the content of the file is unknown:
// open it again.
type Log struct {
	file     *os.File
	messages []Message
	ends     []int64        // where in the file each message ends
	newest   map[string]int // publisher -> its last number
}

// OpenLog opens a log. A torn last line was never acknowledged, and is cut off.
func OpenLog(path string) (*Log, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	l := &Log{file: file, newest: map[string]int{}}
	if err := errors.Join(l.load(), syncDir(filepath.Dir(path))); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return l, nil
}

func (l *Log) load() error {
	data, err := io.ReadAll(l.file)
	if err != nil {
		return err
	}
	for {
		line, rest, whole := bytes.Cut(data, []byte("\n"))
		if !whole {
			return l.Truncate(len(l.messages))
		}
		var m Message
		if err := json.Unmarshal(line, &m); err != nil || m.ID != len(l.messages)+1 {
			return fmt.Errorf("%s is damaged: want message %d, found %.80q", l.file.Name(), len(l.messages)+1, line)
		}
		l.add(m, l.end()+int64(len(line))+1)
		data = rest
	}
}

func (l *Log) add(m Message, end int64) {
	l.messages, l.ends = append(l.messages, m), append(l.ends, end)
	l.newest[m.From] = m.Number
}

func (l *Log) end() int64 {
	if len(l.ends) == 0 {
		return 0
	}
	return l.ends[len(l.ends)-1]
}

// Has reports whether the log has a message. A publisher sends the next only after the
// last is acknowledged.
func (l *Log) Has(m Message) bool { return m.Number <= l.newest[m.From] }

// Append gives messages their ids and writes them. They are on the disk when it returns.
func (l *Log) Append(messages ...Message) error {
	for _, m := range messages {
		m.ID = len(l.messages) + 1
		line, err := json.Marshal(m)
		if err != nil {
			return err
		}
		line = append(line, '\n')
		if _, err := l.file.WriteAt(line, l.end()); err != nil {
			return err
		}
		l.add(m, l.end()+int64(len(line)))
	}
	return l.file.Sync()
}

// Truncate leaves the first n messages.
func (l *Log) Truncate(n int) error {
	l.messages, l.ends, l.newest = l.messages[:n:n], l.ends[:n:n], map[string]int{}
	for _, m := range l.messages {
		l.newest[m.From] = m.Number
	}
	return errors.Join(l.file.Truncate(l.end()), l.file.Sync())
}

// Close closes the file.
func (l *Log) Close() error { return l.file.Close() }

// syncDir makes sure that a new file is found after a crash of the machine.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
