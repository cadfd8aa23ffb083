package doctor

import (
	"fmt"
	"log/slog"

	"github.com/zk-lite/zk-lite/app"
)

const (
	mostACLs = 10       // long ACLs that are named
	largeACL = 16 << 20 // bytes, that may keep a server from starting
)

// data looks for what an earlier release has stored and this one would refuse.
func (d *doctor) data() {
	long, err := app.LongACLs(app.Options{Settings: d.Settings, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		d.warn("data", "the snapshot and the log cannot be read: "+err.Error(),
			"correct what the message names, or run this again when the server is stopped")
	}
	for i, x := range long {
		if i == mostACLs {
			d.warn("data", fmt.Sprintf("%d more ACLs are as long", len(long)-i), "shorten those that are named first")
			return
		}
		severity, do := Warning, "it stays as it is, but may not grow: set a shorter one (docs/limits.md)"
		if x.Memory > largeACL {
			do = "set a shorter one; if a server ends at each start because its memory is too small for it: " +
				"zk-lite recover --skip-acls-over 16"
		}
		if d.Memory > 0 && x.Memory > d.Memory/4 {
			severity = Error
		}
		d.found(severity, "data", x.String(), do)
	}
}
