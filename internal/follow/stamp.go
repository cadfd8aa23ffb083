package follow

import (
	"os"
	"time"
)

// Stamp shows whether a file has changed: its content, or who may read it.
type Stamp struct {
	info    os.FileInfo
	changed time.Time // of its data about the file (ctime), where the system says it
	err     string
}

// StampOf looks at a file.
func StampOf(path string) Stamp {
	info, err := os.Stat(path)
	if err != nil {
		return Stamp{err: err.Error()}
	}
	return Stamp{info: info, changed: ctime(info)}
}

// Equal reports whether nothing has changed between two looks.
func (s Stamp) Equal(o Stamp) bool {
	if s.info == nil || o.info == nil {
		return s.info == nil && o.info == nil && s.err == o.err
	}
	return os.SameFile(s.info, o.info) && s.info.Size() == o.info.Size() &&
		s.info.ModTime().Equal(o.info.ModTime()) && s.changed.Equal(o.changed)
}
