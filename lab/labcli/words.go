package labcli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/zk-lite/zk-lite/lab/sim"
)

// traced adds the key trace, the lines of the chart, to a result.
type traced struct {
	result any
	lines  []string
}

// MarshalJSON implements json.Marshaler.
func (t traced) MarshalJSON() ([]byte, error) {
	object, err := json.Marshal(t.result)
	if err != nil {
		return nil, err
	}
	lines, err := json.Marshal(t.lines)
	if err != nil {
		return nil, err
	}
	return fmt.Appendf(bytes.TrimSuffix(object, []byte("}")), `,"trace":%s}`, lines), nil
}

func writeCounts(w io.Writer, m sim.Messages, lost int) {
	fmt.Fprintf(w, "messages: %d", m.Total)
	for _, kind := range slices.Sorted(maps.Keys(m.ByType)) {
		fmt.Fprintf(w, "  %s %d", kind, m.ByType[kind])
	}
	if lost > 0 {
		fmt.Fprintf(w, "  (not delivered: %d)", lost)
	}
	fmt.Fprintln(w)
}
