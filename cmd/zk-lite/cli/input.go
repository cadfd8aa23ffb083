package cli

import (
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
)

// maxInput bounds what is read as the data of one znode. Servers take a megabyte
// unless their jute.maxbuffer is raised, which goes up to this in practice.
const maxInput = 64 << 20

// dataSource is where the data of set and create comes from.
type dataSource struct{ file string }

func (d *dataSource) bind(c *cobra.Command) {
	c.Flags().StringVarP(&d.file, "file", "f", "", "take the data from a file")
}

// take returns the data, and the arguments behind it. Without any it is nil.
func (d *dataSource) take(a *app, c *cobra.Command, args []string) ([]byte, []string, error) {
	switch {
	case d.file != "":
		f, err := os.Open(d.file)
		if err != nil {
			return nil, nil, err
		}
		defer f.Close()
		data, err := readAll(f)
		return data, args, err
	case len(args) == 0:
		return nil, nil, nil
	case args[0] == "-" && a.shell != nil:
		return nil, nil, usagef("in the shell, - is not possible: use --file")
	case args[0] == "-":
		data, err := readAll(c.InOrStdin())
		return data, args[1:], err
	}
	return []byte(args[0]), args[1:], nil
}

func readAll(r io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxInput+1))
	if err != nil {
		return nil, fmt.Errorf("reading the data: %w", err)
	}
	if len(data) > maxInput {
		return nil, fmt.Errorf("the data is longer than %d bytes", maxInput)
	}
	return data, nil
}
