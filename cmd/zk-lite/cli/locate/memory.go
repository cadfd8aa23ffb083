package locate

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// The memory is a file that can be lost at any time: what cannot be read or written is as if it were not there.
const (
	maxServers  = 255     // of an ensemble
	maxEntries  = 50      // the oldest are dropped
	maxMemory   = 2 << 20 // bytes of the file that are read
	memoryFresh = 24 * time.Hour
)

// entry is what was told at some addresses.
type entry struct {
	Ensemble
	At time.Time `json:"at"`
}

// DefaultMemory is the file of this user; empty if there is no directory for it.
func DefaultMemory() string {
	dir, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "zk-lite", "servers.json")
}

// Recall returns what was found by the addresses before; nil: nothing.
func (f *Finder) Recall(addresses []string) *Ensemble {
	if x, ok := f.entries()[key(addresses)]; ok {
		return &x.Ensemble
	}
	return nil
}

// Fresh reports whether it is of no use to ask again soon: there is no memory, or it is new.
func (f *Finder) Fresh(addresses []string) bool {
	return f.Memory == "" || time.Since(f.entries()[key(addresses)].At) < memoryFresh
}

func key(addresses []string) string { return strings.Join(addresses, ",") }

// entries reads the memory.
func (f *Finder) entries() map[string]entry {
	all := map[string]entry{}
	file, err := os.Open(f.Memory)
	if err != nil {
		return all
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxMemory))
	if err != nil || json.Unmarshal(text, &all) != nil {
		return map[string]entry{}
	}
	return all
}

// remember writes the memory. Of two commands at the same time one may be forgotten.
func (f *Finder) remember(addresses []string, e *Ensemble) {
	if f.Memory == "" {
		return
	}
	all := f.entries()
	all[key(addresses)] = entry{*e, time.Now().UTC()}
	for len(all) > maxEntries {
		oldest := ""
		for name, x := range all {
			if oldest == "" || x.At.Before(all[oldest].At) {
				oldest = name
			}
		}
		delete(all, oldest)
	}
	text, err := json.MarshalIndent(all, "", " ")
	if err == nil {
		_ = WriteFile(f.Memory, append(text, '\n'))
	}
}

// WriteFile replaces a file of this user alone, as a whole or not at all.
func WriteFile(name string, text []byte) error {
	dir := filepath.Dir(name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	part, err := os.CreateTemp(dir, filepath.Base(name)+".*") // its mode is 0600
	if err != nil {
		return err
	}
	_, err = part.Write(text)
	if err = errors.Join(err, part.Close()); err == nil {
		err = os.Rename(part.Name(), name)
	}
	if err != nil {
		_ = os.Remove(part.Name())
	}
	return err
}
