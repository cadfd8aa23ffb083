package config

import (
	"strings"

	"github.com/spf13/pflag"
)

// BindFlags defines one flag for every setting, --config and --server included.
// Their values are checked by Load, together with those of the other sources.
func BindFlags(fs *pflag.FlagSet) {
	for _, st := range table(new(Settings)) {
		usage := strings.ReplaceAll(st.help, "`", "")
		if st.key != "" {
			usage += " [" + st.key + "]"
		}
		if st.kind == kindServers {
			fs.StringArray(st.flagName(), nil, usage)
			continue
		}
		f := fs.VarPF(&flagValue{kind: st.kind}, st.flagName(), "", usage)
		f.DefValue, f.Hidden = st.def, st.kind == kindRetired
		if st.kind == kindBool || st.kind == kindRetired {
			f.NoOptDefVal = "true"
		}
	}
}

// flagValue keeps a flag's text for Load.
type flagValue struct {
	text string
	kind kind
}

func (v *flagValue) String() string     { return v.text }
func (v *flagValue) Set(s string) error { v.text = s; return nil }
func (v *flagValue) Type() string       { return v.kind.name() }
