package storage

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/internal/durable"
)

// FormFile keeps which voters an ensemble may be formed without, because an operator has said so (`zk-lite form`). The
// server that forms it reads the file before, and until it is done. The zero value keeps nothing.
type FormFile string

const formName = "form.json"

// formVersion is that of form.json.
const formVersion = 1

type formJSON struct {
	Version int              `json:"version"`
	Without []state.ServerID `json:"without"`
}

// Form is the file of the data directory.
func (c *Config) Form() FormFile { return FormFile(filepath.Join(c.Dir, formName)) }

// Load returns the voters that may be missing; none if nobody has said so. An error names the file.
func (f FormFile) Load() ([]state.ServerID, error) {
	if f == "" {
		return nil, nil
	}
	b, err := os.ReadFile(string(f))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var j formJSON
	if err == nil {
		err = json.Unmarshal(b, &j)
	}
	if err == nil && j.Version != formVersion {
		err = fmt.Errorf("it has version %d, and this release reads version %d", j.Version, formVersion)
	}
	if err != nil {
		return nil, fmt.Errorf("%s, which `zk-lite form` writes, cannot be used: %w; remove it, and say it again",
			string(f), err)
	}
	return j.Without, nil
}

// Save returns when it is durable.
func (f FormFile) Save(without []state.ServerID) error {
	b, err := json.Marshal(formJSON{formVersion, without})
	if err == nil {
		err = os.MkdirAll(filepath.Dir(string(f)), 0o700)
	}
	if err == nil {
		err = durable.WriteFile(string(f), append(b, '\n'))
	}
	if err != nil {
		return fmt.Errorf("writing %s: %w", string(f), err)
	}
	return nil
}

// Remove removes the file, if there is one.
func (f FormFile) Remove() error {
	if err := os.Remove(string(f)); f != "" && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
